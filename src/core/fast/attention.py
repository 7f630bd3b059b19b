"""Causal attention of several heads as one operation, for some sequences at a time, without storing the weights.

A full table of weights is the largest array of a training step. Here it is made for a few sequences, used while it is
in the cache and dropped; for the way back, which needs it again, only the logarithm of each row's sum is kept
(Dao et al. 2022, section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..masking import causal_mask
from ..tensor import Tensor
from .threads import BLOCK, PASS, share


def causal_attention(
    query: Tensor, key: Tensor, value: Tensor, heads: int, kept: np.ndarray | None = None, kept_scale: float = 1.0
) -> Tensor:
    """Query (B, Tq, C), key (B, Tk, C) and value (B, Tk, E) to (B, Tq, E), with H heads that divide C and E.

    Head h has channels h * D to (h + 1) * D, D = C / H, and of the values E / H in the same way. Queries are the last
    ones of the keys. Dropout keeps `kept` (B, H, Tq, Tk) of the weights, times `kept_scale`. Shapes are checked by the
    caller.
    """
    batch, queries, size = query.shape
    keys = key.shape[1]
    q, k, v = (split(tensor.data, heads) for tensor in (query, key, value))
    scale = 1.0 / math.sqrt(size // heads)
    forbidden = _forbidden(queries, keys, q.dtype)
    ones = np.ones((keys, 1), dtype=q.dtype)
    result = np.empty((batch, queries, value.shape[-1]), dtype=q.dtype)
    mixed = split(result, heads)
    logsums = np.empty((batch, heads, queries, 1), dtype=q.dtype)

    def drop(numbers: np.ndarray, part: slice) -> None:
        if kept is not None:
            numbers *= kept[part]
            numbers *= kept_scale

    def forward(part: slice) -> None:
        scores = _scores(q[part], k[part], scale, forbidden)
        highest = scores.max(axis=-1, keepdims=True)
        scores -= highest
        np.exp(scores, out=scores)
        total = scores @ ones  # BLAS adds up faster than NumPy's reductions
        drop(scores, part)
        np.matmul(scores, v[part], out=mixed[part])
        mixed[part] /= total
        np.log(total, out=total)
        np.add(total, highest, out=logsums[part])

    table = heads * queries * keys  # weights of one sequence
    _share_sequences(forward, batch, table, 2 * size // heads + 8 * PASS)
    out = Tensor(result)

    def gradient_fn() -> None:
        given = split(out.received, heads)
        grads = [np.empty(tensor.shape, dtype=q.dtype) for tensor in (query, key, value)]
        q_grad, k_grad, v_grad = (split(grad, heads) for grad in grads)

        def backward(part: slice) -> None:
            weights = _scores(q[part], k[part], scale, forbidden)
            weights -= logsums[part]
            np.exp(weights, out=weights)
            change = given[part] @ v[part].swapaxes(-1, -2)  # of the weights
            drop(change, part)
            change -= np.vecdot(given[part], mixed[part])[..., None]
            change *= weights
            drop(weights, part)
            np.matmul(weights.swapaxes(-1, -2), given[part], out=v_grad[part])
            change *= scale  # of the scores
            np.matmul(change, k[part], out=q_grad[part])
            np.matmul(change.swapaxes(-1, -2), q[part], out=k_grad[part])

        _share_sequences(backward, batch, table, 5 * size // heads + 8 * PASS)
        for tensor, grad in zip((query, key, value), grads, strict=True):
            if tensor.differentiable:
                tensor.receive(grad)

    return out.attach(gradient_fn, (query, key, value))


def split(x: np.ndarray, heads: int) -> np.ndarray:
    """(B, T, C) seen as (B, H, T, D): the same memory."""
    batch, time, size = x.shape
    return x.reshape(batch, time, heads, size // heads).swapaxes(1, 2)


def _scores(q: np.ndarray, k: np.ndarray, scale: float, forbidden: np.ndarray | None) -> np.ndarray:
    """Q K^T times scale, -inf above the diagonal: (b, H, Tq, D) @ (b, H, D, Tk) -> (b, H, Tq, Tk)."""
    scores = q @ k.swapaxes(-1, -2)
    scores *= scale
    if forbidden is not None:
        scores += forbidden
    return scores


def _share_sequences(work: Callable[[slice], object], batch: int, table: int, each: int) -> None:
    """`work(part)` for groups of sequences whose tables of weights, of `table` numbers each, fit the cache.

    `each` is how many multiplications a weight takes, as `share` counts them.
    """
    step = max(1, BLOCK // table)
    parts = [slice(start, min(start + step, batch)) for start in range(0, batch, step)]
    share([lambda part=part: work(part) for part in parts], batch * table * each)  # type: ignore[misc]


@lru_cache(maxsize=4)
def _forbidden(queries: int, keys: int, dtype: np.dtype) -> np.ndarray | None:
    """0 where a query may attend, -inf where it may not; None if it may everywhere."""
    if queries == 1:
        return None
    table = np.where(causal_mask(queries, keys), 0.0, -np.inf).astype(dtype)
    table.flags.writeable = False
    return table
