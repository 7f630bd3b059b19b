"""Softmax and cross-entropy, block of rows by block of rows."""

from __future__ import annotations

import numpy as np

from .operation import KernelBackward
from .threads import share_blocks


def cross_entropy(logits: np.ndarray, rows: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, KernelBackward]:
    """The mean of -ln softmax(logits)[target] over those rows of logits (..., V) that have targets, both (M,)."""
    numbers = logits.reshape(-1, logits.shape[-1])  # (N, V)
    shifted = np.empty_like(numbers)
    share_blocks(_shift, numbers, shifted)
    picked = shifted[rows, targets]
    exps, total = shifted, np.empty((len(numbers), 1), dtype=numbers.dtype)
    share_blocks(_exp, exps, total)
    losses = np.log(total[rows, 0]) - picked  # -ln(exp(s_target) / total), without the division

    def backward(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray]:
        softmax = exps
        share_blocks(np.divide, exps, total, softmax)
        softmax[rows, targets] -= 1.0  # minus one-hot
        softmax *= grad / max(len(rows), 1)
        if len(rows) < len(softmax):
            softmax[np.delete(np.arange(len(softmax)), rows)] = 0.0  # rows that do not count
        return (softmax.reshape(logits.shape),)

    return losses.sum(dtype=np.float64) / max(len(rows), 1), backward


def _shift(logits: np.ndarray, shifted: np.ndarray) -> None:
    """Take the highest of each row from it: exp then cannot overflow."""
    np.subtract(logits, np.maximum.reduce(logits, axis=-1, keepdims=True), out=shifted)


def _exp(numbers: np.ndarray, total: np.ndarray) -> None:
    """exp of the numbers in their place, and the sum of each row."""
    np.exp(numbers, out=numbers)
    np.add.reduce(numbers, axis=-1, keepdims=True, out=total)
