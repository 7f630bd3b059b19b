"""Causal attention of several heads, for some sequences at a time, without storing the weights.

A full table of weights is the largest array of a training step. Here it is made for a few sequences, used while it is
in the cache and dropped; for the way back, which needs it again, only the logarithm of each row's sum is kept
(Dao et al. 2022, section 3.1). A table that fits the cache as a whole is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from ..masking import causal_mask
from .operation import Back
from .threads import PASS, blocks, filled, one_block, share

SAFE = 50.0  # exp of a number between -50 and 50 is finite and not zero, and so are sums of thousands of them


def causal_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    heads: int,
    kept: np.ndarray | None = None,
    kept_scale: float = 1.0,
) -> tuple[np.ndarray, Back]:
    """Query (B, Tq, C), key (B, Tk, C) and value (B, Tk, E) to (B, Tq, E), with H heads that divide C and E.

    Head h has channels h * D to (h + 1) * D, D = C / H, and of the values E / H in the same way. Queries are the last
    ones of the keys. Dropout keeps `kept` (B, H, Tq, Tk) of the weights, times `kept_scale`. Shapes are checked by the
    caller.
    """
    batch, queries, size = query.shape
    keys = key.shape[1]
    arrays = query, key, value
    q, k, v = (split(array, heads) for array in arrays)
    scale = 1.0 / math.sqrt(size // heads)
    forbidden = _forbidden(queries, keys, q.dtype)
    result = np.empty((batch, queries, value.shape[-1]), dtype=q.dtype)
    mixed = split(result, heads)
    table = heads * queries * keys  # weights of one sequence
    small = one_block(batch * table) and kept is None
    stored: list[np.ndarray] = []  # the weights, if they are small
    logsums = np.empty((batch, heads, queries, 1), dtype=q.dtype)

    def drop(numbers: np.ndarray, part: slice) -> None:
        if kept is not None:
            numbers *= kept[part]
            numbers *= kept_scale

    def forward(part: slice) -> None:
        scores = _scores(q[part], k[part], scale, forbidden)
        highest = _shift(scores)
        np.exp(scores, out=scores)
        total = scores @ filled(keys, 1.0, q.dtype)  # BLAS adds up faster than NumPy's reductions
        if small:
            scores /= total
            stored.append(scores)
            np.matmul(scores, v[part], out=mixed[part])
            return
        drop(scores, part)
        np.matmul(scores, v[part], out=mixed[part])
        mixed[part] /= total
        np.log(total, out=total)
        np.add(total, highest, out=logsums[part])

    def again(part: slice) -> np.ndarray:
        weights = _scores(q[part], k[part], scale, forbidden)
        weights -= logsums[part]
        return np.exp(weights, out=weights)

    def back(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray, ...]:
        given = split(grad, heads)
        grads = tuple(np.empty(array.shape, dtype=q.dtype) for array in arrays)
        q_grad, k_grad, v_grad = (split(each, heads) for each in grads)

        def backward(part: slice) -> None:
            weights = stored[0] if small else again(part)
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
        return grads

    _share_sequences(forward, batch, table, 2 * size // heads + 8 * PASS)
    return result, back


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


def _shift(scores: np.ndarray) -> np.ndarray | float:
    """Take the highest of each row from it, so that exp can neither overflow nor vanish; return what was taken.

    Mostly no score is large, and then nothing is taken: that is much faster to find out. A row holds the score of the
    token itself, which no mask forbids.
    """
    own = np.diagonal(scores, scores.shape[-1] - scores.shape[-2], axis1=-2, axis2=-1)
    if scores.max(initial=0.0) < SAFE and own.min(initial=0.0) > -SAFE:  # not if one is NaN
        return 0.0
    highest = scores.max(axis=-1, keepdims=True)
    scores -= highest
    return highest


def _share_sequences(work: Callable[[slice], object], batch: int, table: int, each: int) -> None:
    """`work(part)` for groups of sequences whose tables of weights, of `table` numbers each, fit the cache.

    `each` is how many multiplications a weight takes, as `share` counts them.
    """
    if one_block(batch * table):
        work(slice(0, batch))
    else:
        share([partial(work, part) for part in blocks(batch, table)], batch * table * each)


@lru_cache(maxsize=4)
def _forbidden(queries: int, keys: int, dtype: np.dtype) -> np.ndarray | None:
    """0 where a query may attend, -inf where it may not; None if it may everywhere."""
    if queries == 1:
        return None
    table = np.where(causal_mask(queries, keys), 0.0, -np.inf).astype(dtype)
    table.flags.writeable = False
    return table
