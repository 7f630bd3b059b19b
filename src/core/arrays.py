"""What tensor.py asks of arrays: which shapes fit together, and products and powers that NumPy makes slowly."""

from __future__ import annotations

import numpy as np

Shape = tuple[int, ...]


def check_broadcast(first: Shape, second: Shape) -> None:
    """Raise ValueError unless the sizes, counted from the last axis, are equal or 1.

    >>> check_broadcast((2, 3), (4, 1, 3))
    """
    pairs = zip(first[::-1], second[::-1], strict=False)
    if any(one != other and 1 not in (one, other) for one, other in pairs):
        raise ValueError(
            f"shapes {first} and {second} do not broadcast: counted from the last axis, sizes must be equal or 1"
        )


def check_product(first: Shape, second: Shape) -> None:
    """Raise ValueError unless there is a product of matrices (..., n, k) @ (..., k, m)."""
    if first[-1] != second[-2]:
        raise ValueError(
            f"@ sums over the last axis of the first and the last but one of the second: "
            f"{first} @ {second} has {first[-1]} against {second[-2]}"
        )
    pairs = zip(first[-3::-1], second[-3::-1], strict=False)
    if any(one != other and 1 not in (one, other) for one, other in pairs):
        raise ValueError(
            f"{first} @ {second}: the leading axes {first[:-2]} and {second[:-2]} do not broadcast, "
            "sizes must be equal or 1"
        )


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b; with one matrix on the right the rows of all batches make one large product, which is faster."""
    if b.ndim > 2 or a.ndim == 2:
        return a @ b
    return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])


def power(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """x ** n; NumPy takes 40 times as long for a cube as for two products."""
    return x * x * x if n.ndim == 0 and n == 3 else x**n
