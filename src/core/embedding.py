"""The embedding: a table with one row for each token. Chapter 2 explains it."""

from __future__ import annotations

import numpy as np

from .fast.embedding import embedding
from .fast.operation import operation
from .fast.switch import is_on
from .layer import Layer
from .linear import check_size
from .random import choose_generator
from .tensor import Tensor


class Embedding(Layer):
    """Row `i` of the weight (count, size) for each integer `i` in x: from (...) to (..., size).

    Rows start normal with standard deviation 0.1: small against the 1 that later layers are scaled for, so that
    different tokens begin nearly alike and the first predictions nearly uniform, yet large enough to tell them apart.
    Raises TypeError when x is not of integers, ValueError when one is negative or at least `count`.

    >>> table = Embedding(5, 2)
    >>> table(Tensor([[0, 3, 3]])).shape
    (1, 3, 2)
    """

    def __init__(self, count: int, size: int, generator: np.random.Generator | None = None):
        check_size("count", count)
        check_size("size", size)
        self.weight = Tensor(0.1 * choose_generator(generator).standard_normal((count, size)))

    def forward(self, x: Tensor) -> Tensor:
        check_ids(x.data, self.weight.shape[0])
        if is_on():
            return operation(embedding, x, self.weight)
        ids = x.data.copy()  # what is looked up now, should someone write into x.data before backward
        out = Tensor(self.weight.data[ids])  # (..., size)

        def gradient_fn() -> None:
            grad = np.zeros(self.weight.shape, dtype=self.weight.dtype)
            np.add.at(grad, ids, out.grad)  # an id that occurs twice receives both gradients
            self.weight.grad += grad

        return out.attach(gradient_fn, (self.weight, x))


def check_ids(ids: np.ndarray, count: int) -> None:
    """Raise TypeError unless ids are integers, ValueError unless they are rows of a table of `count`."""
    if ids.dtype.kind != "i":
        raise TypeError(f"Embedding looks up integers, got {ids.dtype}: pass token ids")
    if ids.size and not 0 <= ids.min() <= ids.max() < count:
        raise ValueError(f"token ids go from 0 to {count - 1}, got {ids.min()} to {ids.max()}")
