"""Causal attention of several heads, for some sequences at a time, without storing the weights.

A full table of weights is the largest array of a training step. Here it is made for a few sequences, used while it is
in the cache and dropped; for the backward pass, which needs it again, only the logarithm of each row's sum is kept
(Dao et al. 2022, section 3.1). A table that fits the cache as a whole is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from ..masking import causal_mask
from .operation import KernelBackward
from .threads import PASS, blocks, filled, one_block, share

SAFE = 20.0  # exp of a number between -20 and 20 is far from overflow and from zero, times any usual value too


def causal_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    heads: int,
    kept: np.ndarray | None = None,
    kept_scale: float = 1.0,
) -> tuple[np.ndarray, KernelBackward]:
    """Query (B, Tq, C), key (B, Tk, C) and value (B, Tk, E) to (B, Tq, E), with H heads that divide C and E.

    Head h has channels h * D to (h + 1) * D, D = C / H; those of the values are E / H wide. Queries stand at the last
    Tq of the Tk places. Dropout keeps `kept` (B, H, Tq, Tk) of the weights, times `kept_scale`.
    """
    arrays = query, key, value
    result = np.empty((*query.shape[:2], value.shape[-1]), dtype=query.dtype)
    q, k, v, mixed = (split(array, heads) for array in (*arrays, result))
    work = _Attention(q, k, v, mixed, kept, kept_scale)

    def backward(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray, ...]:
        grads = tuple(np.empty(array.shape, dtype=array.dtype) for array in arrays)
        given, q_grad, k_grad, v_grad = (split(each, heads) for each in (grad, *grads))
        fill = partial(work.backward, given=given, q_grad=q_grad, k_grad=k_grad, v_grad=v_grad)
        _share_sequences(fill, *work.table, 5 * work.size + 8 * PASS)
        return grads

    _share_sequences(work.forward, *work.table, 2 * work.size + 8 * PASS)
    return result, backward


class _Attention:
    """Attention of arrays (B, H, T, D), for a slice of the sequences at a time; `mixed` is where the result goes."""

    def __init__(
        self, q: np.ndarray, k: np.ndarray, v: np.ndarray, mixed: np.ndarray, kept: np.ndarray | None, kept_scale: float
    ):
        batch, heads, queries, self.size = q.shape
        self.q, self.k, self.v, self.mixed, self.kept, self.kept_scale = q, k, v, mixed, kept, kept_scale
        self.scale = 1.0 / math.sqrt(self.size)
        self.forbidden = _forbidden(queries, k.shape[2], q.dtype)
        self.table = batch, heads * queries * k.shape[2]  # sequences, and weights of one
        self.small = one_block(math.prod(self.table)) and kept is None
        self.weights: np.ndarray | None = None  # kept if they are small
        self.logsums = np.empty((batch, heads, queries, 1), dtype=q.dtype)

    def forward(self, part: slice) -> None:
        weights = self.scores(part)
        highest = _shift(weights)
        np.exp(weights, out=weights)
        total = weights @ filled(weights.shape[-1], 1.0, weights.dtype)  # BLAS adds up faster than NumPy's reductions
        if self.small:
            weights /= total
            self.weights = weights
            np.matmul(weights, self.v[part], out=self.mixed[part])
            return
        self.drop(weights, part)
        np.matmul(weights, self.v[part], out=self.mixed[part])
        self.mixed[part] /= total
        np.log(total, out=total)
        np.add(total, highest, out=self.logsums[part])

    def backward(
        self, part: slice, given: np.ndarray, q_grad: np.ndarray, k_grad: np.ndarray, v_grad: np.ndarray
    ) -> None:
        weights = self.weights if self.weights is not None else self.again(part)
        change = given[part] @ self.v[part].swapaxes(-1, -2)  # of the weights
        self.drop(change, part)
        change -= np.vecdot(given[part], self.mixed[part])[..., None]
        change *= weights
        self.drop(weights, part)
        np.matmul(weights.swapaxes(-1, -2), given[part], out=v_grad[part])
        change *= self.scale  # of the scores
        np.matmul(change, self.k[part], out=q_grad[part])
        np.matmul(change.swapaxes(-1, -2), self.q[part], out=k_grad[part])

    def scores(self, part: slice) -> np.ndarray:
        """Q K^T times scale, -inf above the diagonal: (b, H, Tq, D) @ (b, H, D, Tk) -> (b, H, Tq, Tk)."""
        scores = self.q[part] @ self.k[part].swapaxes(-1, -2)
        scores *= self.scale
        if self.forbidden is not None:
            scores += self.forbidden
        return scores

    def again(self, part: slice) -> np.ndarray:
        """The weights, from the scores and the logarithms of their sums."""
        weights = self.scores(part)
        weights -= self.logsums[part]
        return np.exp(weights, out=weights)

    def drop(self, numbers: np.ndarray, part: slice) -> None:
        if self.kept is not None:
            numbers *= self.kept[part]
            numbers *= self.kept_scale


def split(x: np.ndarray, heads: int) -> np.ndarray:
    """(B, T, C) seen as (B, H, T, D): the same memory."""
    batch, time, size = x.shape
    return x.reshape(batch, time, heads, size // heads).swapaxes(1, 2)


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
