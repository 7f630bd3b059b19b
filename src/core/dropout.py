"""Dropout: switch a random part of the numbers off during training. Chapter 10 explains it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from .layer import Layer
from .random import choose_generator, default_generator
from .tensor import Tensor


class Dropout(Layer):
    """In training each number becomes 0 with probability `rate`, the others are divided by 1 - rate; any shape.

    In evaluation, and at rate 0, the very same tensor comes back (Srivastava et al. 2014). Raises ValueError when rate
    is not between 0 and 1.

    >>> layer = Dropout(0.5).eval()
    >>> x = Tensor([1.0, 2.0])
    >>> layer(x) is x
    True
    """

    def __init__(self, rate: float, generator: np.random.Generator | None = None):
        self.rate = check_rate(rate)
        self.generator = choose_generator(generator)

    def __deepcopy__(self, memo: dict[int, Any]) -> Dropout:
        memo[id(default_generator())] = default_generator()  # a copy draws from it, too, and `seed` reaches the copy
        copied = memo[id(self)] = object.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))
        return copied

    def forward(self, x: Tensor) -> Tensor:
        kept = self.draw(x.shape)
        if kept is None:
            return x
        out = Tensor(np.where(kept, x.data * self.scale, 0.0))

        def gradient_fn() -> None:
            x.grad += np.where(kept, out.grad * self.scale, 0.0)

        return out.attach(gradient_fn, (x,))

    @property
    def scale(self) -> float:
        """What the kept numbers are multiplied by, so that their expected sum stays what it was."""
        return 1.0 / (1.0 - float(self.rate)) if self.rate < 1.0 else 0.0

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator | None = None) -> np.ndarray | None:
        """True where a number is kept, newly drawn, from another generator if one is given; None where all are."""
        if not self.training or self.rate == 0.0:
            return None
        return (generator or self.generator).random(shape, dtype=np.float32) >= self.rate


def check_rate(rate: float) -> float:
    """The rate as a float; raises ValueError unless 0 <= rate <= 1."""
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a dropout rate lies between 0 and 1, got {rate}")
    return float(rate)
