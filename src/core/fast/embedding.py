"""The gradient of a table of vectors. NumPy's `add.at` adds number by number; here a product of matrices does it."""

from __future__ import annotations

import numpy as np

from .operation import Back

LARGEST = 2048  # rows of the table: for a larger one the matrix of ones and zeros costs more than it saves


def embedding(ids: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, Back]:
    """Row i of the table (V, C) for each id i: (...) to (..., C). Ids are checked by the caller."""
    ids = ids.copy()  # what is looked up now, should someone write into the array before the way back

    def back(grad: np.ndarray, _: bool = False) -> tuple[np.ndarray | None, ...]:
        return None, table_gradient(ids, grad, table.shape)

    return table[ids], back


def table_gradient(ids: np.ndarray, grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Row i of the result is the sum of those rows of grad (..., C) whose id (...) is i; `shape` is (V, C)."""
    count, size = shape
    rows = grad.reshape(-1, size)  # (N, C)
    if count > LARGEST:
        table = np.zeros(shape, dtype=grad.dtype)
        np.add.at(table, ids.reshape(-1), rows)
        return table
    chosen = np.zeros((count, len(rows)), dtype=grad.dtype)
    chosen[ids.reshape(-1), np.arange(len(rows))] = 1.0
    return chosen @ rows  # (V, N) @ (N, C) -> (V, C)
