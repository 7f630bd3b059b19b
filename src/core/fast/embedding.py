"""Rows of a table of vectors. Their gradient is a product of matrices: NumPy's `add.at` adds number by number."""

from __future__ import annotations

import numpy as np

from .operation import KernelBackward

LARGEST = 2048  # rows of the table: for a larger one the matrix of ones and zeros costs more than it saves


def embedding(ids: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, KernelBackward]:
    """Row i of the table (V, C) for each id i: (...) to (..., C). Ids are checked by the caller."""
    ids = ids.copy()  # what is looked up now, should someone write into the array before the backward pass

    def backward(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray | None, ...]:
        return None, table_gradient(ids, grad, table.shape)

    return table[ids], backward


def table_gradient(ids: np.ndarray, grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Row i of the result is the sum of those rows of grad (..., C) whose id (...) is i; `shape` is (V, C)."""
    count, size = shape
    rows = grad.reshape(-1, size)  # (N, C)
    if count > LARGEST:
        return _added(ids, rows, shape)
    chosen = np.zeros((count, len(rows)), dtype=grad.dtype)
    chosen[ids.reshape(-1), np.arange(len(rows))] = 1.0
    with np.errstate(invalid="ignore"):  # 0 times infinity is no number
        table = chosen @ rows  # (V, N) @ (N, C) -> (V, C)
    return table if np.isfinite(table).all() else _added(ids, rows, shape)


def _added(ids: np.ndarray, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    table = np.zeros(shape, dtype=rows.dtype)
    np.add.at(table, ids.reshape(-1), rows)
    return table
