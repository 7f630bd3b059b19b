"""Causal attention of several heads, for some sequences at a time, without storing the weights.

A full table of weights is the largest array of a training step. Here it is made for a few sequences, used while it is
in the cache and dropped; for the backward pass, which needs it again, only the logarithm of each row's sum is kept
(Dao et al. 2022, section 3.1). A table that fits the cache as a whole is kept.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..masking import causal_mask
from .operation import KernelBackward
from .threads import PASS, filled, one_block, share_blocks

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
    result = np.empty((*query.shape[:2], value.shape[-1]), dtype=query.dtype)
    q, k, v, mixed = (split(array, heads) for array in (query, key, value, result))
    batch, _, queries, size = q.shape
    table = heads * queries * k.shape[2]  # weights of one sequence
    work = _Attention(q, k.shape[2], kept_scale, small=kept is None and one_block(batch * table))
    memory = np.empty((batch, heads, queries, k.shape[2] if work.small else 1), dtype=query.dtype)
    more = [memory] if kept is None else [memory, kept]

    def backward(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray, ...]:
        grads = tuple(np.empty(array.shape, dtype=array.dtype) for array in (query, key, value))
        pieces = [split(array, heads) for array in (grad, *grads)]
        share_blocks(work.backward, *pieces, q, k, v, mixed, *more, width=table, passes=8 + 5 * size // PASS)
        return grads

    share_blocks(work.forward, q, k, v, mixed, *more, width=table, passes=8 + 2 * size // PASS)
    return result, backward


class _Attention:
    """Attention of arrays (b, H, T, D), of as many sequences as are given.

    What is kept for the backward pass lies in `memory`: the weights (b, H, Tq, Tk) if they are small, or else the
    logarithm of each row's sum (b, H, Tq, 1).
    """

    def __init__(self, q: np.ndarray, keys: int, kept_scale: float, small: bool):
        self.scale, self.kept_scale, self.small = 1.0 / math.sqrt(q.shape[3]), kept_scale, small
        self.forbidden = _forbidden(q.shape[2], keys, q.dtype)

    def forward(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        mixed: np.ndarray,
        memory: np.ndarray,
        kept: np.ndarray | None = None,
    ) -> None:
        """Fill `mixed` and `memory`."""
        weights = self.scores(q, k, memory if self.small else None)
        highest = _shift(weights)
        np.exp(weights, out=weights)
        total = weights @ filled(weights.shape[-1], 1.0, weights.dtype)  # BLAS adds up faster than NumPy's reductions
        if self.small:
            weights /= total
            np.matmul(weights, v, out=mixed)
            return
        self.drop(weights, kept)
        np.matmul(weights, v, out=mixed)
        mixed /= total
        np.log(total, out=total)
        np.add(total, highest, out=memory)

    def backward(
        self,
        grad: np.ndarray,
        q_grad: np.ndarray,
        k_grad: np.ndarray,
        v_grad: np.ndarray,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        mixed: np.ndarray,
        memory: np.ndarray,
        kept: np.ndarray | None = None,
    ) -> None:
        """Fill the gradients of q, k and v from that of `mixed`."""
        weights = memory if self.small else self.again(q, k, memory)
        change = grad @ v.swapaxes(-1, -2)  # of the weights
        self.drop(change, kept)
        change -= np.vecdot(grad, mixed)[..., None]
        change *= weights
        self.drop(weights, kept)
        np.matmul(weights.swapaxes(-1, -2), grad, out=v_grad)
        change *= self.scale  # of the scores
        np.matmul(change, k, out=q_grad)
        np.matmul(change.swapaxes(-1, -2), q, out=k_grad)

    def scores(self, q: np.ndarray, k: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Q K^T times scale, -inf above the diagonal: (b, H, Tq, D) @ (b, H, D, Tk) -> (b, H, Tq, Tk)."""
        scores = np.matmul(q, k.swapaxes(-1, -2), out=out)
        scores *= self.scale
        if self.forbidden is not None:
            scores += self.forbidden
        return scores

    def again(self, q: np.ndarray, k: np.ndarray, logsums: np.ndarray) -> np.ndarray:
        """The weights, from the scores and the logarithms of their sums."""
        weights = self.scores(q, k)
        weights -= logsums
        return np.exp(weights, out=weights)

    def drop(self, numbers: np.ndarray, kept: np.ndarray | None) -> None:
        if kept is not None:
            numbers *= kept
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
    own = scores.diagonal(scores.shape[-1] - scores.shape[-2], axis1=-2, axis2=-1)
    if scores.max(initial=0.0) < SAFE and own.min(initial=0.0) > -SAFE:  # not if one is NaN
        return 0.0
    highest = scores.max(axis=-1, keepdims=True)
    scores -= highest
    return highest


@lru_cache(maxsize=4)
def _forbidden(queries: int, keys: int, dtype: np.dtype) -> np.ndarray | None:
    """0 where a query may attend, -inf where it may not; None if it may everywhere."""
    if queries == 1:
        return None
    table = np.where(causal_mask(queries, keys), 0.0, -np.inf).astype(dtype)
    table.flags.writeable = False
    return table
