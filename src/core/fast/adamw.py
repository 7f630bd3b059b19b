"""One AdamW step over all parameters at once: their numbers laid end to end, block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor
from .threads import share_blocks

LINE = 64  # bytes of a line of the cache: NumPy is a tenth faster on rows that begin with one


class Flat:
    """Zeros in the shapes of some arrays, as pieces of one row of numbers: `row` (N,) and `pieces`.

    Arrays of different float types cannot share a row; then `joined` is False and the row empty. In a deep copy, too,
    the pieces are of its row.
    """

    def __init__(self, like: Sequence[np.ndarray]):
        self.joined = len({array.dtype for array in like}) == 1
        self.row = _zeros(sum(array.size for array in like) if self.joined else 0, like[0].dtype)
        self.pieces = [np.zeros_like(array) for array in like]
        if self.joined:
            ends = np.cumsum([array.size for array in like])
            cut = np.split(self.row, ends[:-1])
            self.pieces = [piece.reshape(array.shape) for piece, array in zip(cut, like, strict=True)]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.joined:  # `copy` and `pickle` copied row and pieces each by itself
            joined = Flat(self.pieces)
            self.row = joined.row
            for place, (piece, copied) in enumerate(zip(joined.pieces, self.pieces, strict=True)):
                piece[...] = copied
                self.pieces[place] = piece  # in the same list, which the optimizer holds as well


def _zeros(count: int, dtype: np.dtype) -> np.ndarray:
    """(count,), from the beginning of a line of the cache on."""
    room = np.zeros(count * dtype.itemsize + LINE, dtype=np.uint8)
    return np.ndarray(count, dtype, buffer=room, offset=-room.ctypes.data % LINE)


def adamw_step(
    parameters: Sequence[Tensor],
    grads: Sequence[np.ndarray],
    means: Flat,
    squares: Flat,
    changes: Flat,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
    steps: int,
) -> None:
    """What AdamWOptimizer.update does to each parameter, where all have a gradient and all are at step `steps`.

    `changes` is room for the gradients, and then for what is subtracted.
    """
    beta1, beta2 = betas
    root = math.sqrt(1.0 - beta2**steps)  # m / (sqrt(v / root^2) + eps) is root m / (sqrt(v) + root eps)
    np.concatenate(grads, axis=None, out=changes.row)
    _replace(changes.row, means.row, squares.row, betas, root * eps, root * lr / (1.0 - beta1**steps))
    kept = np.array(1.0 - lr * weight_decay, dtype=changes.row.dtype)  # a number would be made an array each time
    for parameter, change in zip(parameters, changes.pieces, strict=True):
        storage = parameter._storage  # `parameter.data -= change`, with less around it
        numbers = storage.data
        if numbers.ndim >= 2:
            numbers *= kept
        numbers -= change
        storage.version += 1


def _replace(
    grad: np.ndarray, mean: np.ndarray, square: np.ndarray, betas: tuple[float, float], eps: float, rate: float
) -> None:
    """Update rows of averages, and put rate * mean / (sqrt(square) + eps) in place of the gradients."""
    beta1, beta2 = betas

    def work(g: np.ndarray, m: np.ndarray, v: np.ndarray) -> None:
        scratch = g * g
        scratch *= 1.0 - beta2
        v *= beta2
        v += scratch
        g *= 1.0 - beta1
        m *= beta1
        m += g
        np.sqrt(v, out=scratch)
        scratch += eps
        np.divide(m, scratch, out=g)
        g *= rate

    share_blocks(work, grad, mean, square, passes=11)
