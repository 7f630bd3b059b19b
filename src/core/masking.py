"""Masks: which query may attend to which key. Chapter 4 explains them.

One convention everywhere: a mask is an array of booleans, True means "may attend".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .layer import Layer
from .tensor import Tensor


def causal_mask(queries: int, keys: int) -> np.ndarray:
    """True where a query may look: at itself and at earlier keys. Shape (queries, keys).

    With fewer queries than keys the queries are the last ones, as when cached keys come first.

    >>> causal_mask(2, 3).astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    return np.tri(queries, keys, keys - queries, dtype=bool)


def check_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The mask as a boolean array that broadcasts to scores of `shape` (..., Tq, Tk), or an error that says what to do.

    Its last two axes are (Tq, Tk) or (1, Tk); leading axes are absent, or all present and each equal or 1.
    Raises TypeError for anything but booleans and ValueError for other shapes.
    """
    array = np.asarray(mask.data if isinstance(mask, Tensor) else mask)
    if array.dtype != np.bool_:
        raise TypeError(
            f"a mask holds booleans, True where a query may attend, got {array.dtype}: "
            "write mask == 1 for zeros and ones, mask == 0 for an additive mask of 0 and -inf"
        )
    queries, keys = shape[-2:]
    fits = array.ndim in (2, len(shape)) and array.shape[-2] in (1, queries) and array.shape[-1] == keys
    leading = zip(array.shape[:-2], shape[:-2], strict=False)
    if not fits or any(own not in (1, size) for own, size in leading):
        raise ValueError(
            f"the mask has shape {array.shape}, the scores {shape}: give {shape[-2:]} or {(1, keys)}, "
            "with no leading axes or all of them, each equal or 1"
        )
    return array


class Tril(Layer):
    """Keep scores on and below the diagonal, put `value` above it: (..., Tq, Tk) to the same shape.

    This is the causal mask as a layer. With fewer queries than keys it is aligned at the end.

    >>> Tril()(Tensor(np.ones((2, 2))))
    Tensor([[  1., -inf],
            [  1.,   1.]], dtype=float32)
    """

    def __init__(self, value: float = -np.inf):
        self.value = float(value)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2:
            raise ValueError(f"Tril needs a table of queries and keys, got shape {x.shape}")
        keep = causal_mask(*x.shape[-2:])
        out = Tensor(np.where(keep, x.data, self.value))

        def gradient_fn() -> None:
            x.grad += np.where(keep, out.grad, 0.0)

        return out.attach(gradient_fn, (x,))
