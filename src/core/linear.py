"""The linear layer, x @ weight + bias. Chapter 1 derives it."""

from __future__ import annotations

import math

import numpy as np

from .fast.linear import linear
from .fast.operation import operation
from .fast.switch import is_on
from .layer import Layer
from .random import choose_generator
from .tensor import Tensor


class Linear(Layer):
    """y = x @ weight + bias, from (..., inputs) to (..., outputs).

    The weight (inputs, outputs) starts normal with variance 2 / inputs (He et al. 2015, equation 10), which keeps the
    size of the signal from layer to layer where half of it is cut off by ReLU or GELU; the bias (outputs,) starts at
    zero. Raises ValueError when sizes are not positive or x does not end in `inputs`.

    >>> layer = Linear(3, 2)
    >>> layer(Tensor(np.ones((4, 3)))).shape
    (4, 2)
    """

    def __init__(self, inputs: int, outputs: int, bias: bool = True, generator: np.random.Generator | None = None):
        check_size("inputs", inputs)
        check_size("outputs", outputs)
        draw = choose_generator(generator).standard_normal((inputs, outputs))
        self.weight = Tensor(draw * math.sqrt(2.0 / inputs))
        self.bias = Tensor(np.zeros(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        inputs = self.weight.shape[0]
        if x.ndim == 0 or x.shape[-1] != inputs:
            raise ValueError(f"Linear takes {inputs} inputs in the last axis, got shape {x.shape}")
        if is_on() and x.dtype == self.weight.dtype:
            return operation(linear, x, self.weight, self.bias)
        y = x @ self.weight  # (..., inputs) @ (inputs, outputs) -> (..., outputs)
        return y if self.bias is None else y + self.bias


def check_size(name: str, value: int) -> None:
    """Raise unless `value` is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
