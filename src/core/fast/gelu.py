"""The tanh form of GELU, block by block, with nothing kept for the way back but its input."""

from __future__ import annotations

import math

import numpy as np

from ..tensor import Tensor
from .threads import share_blocks

TWICE = 2.0 * math.sqrt(2.0 / math.pi)
CUBIC = 0.044715


def gelu_tanh(x: Tensor) -> Tensor:
    """x times the gate 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3); any shape."""
    numbers = x.data.reshape(-1)
    result = np.empty_like(numbers)

    def forward(part: slice) -> None:
        np.multiply(numbers[part], gate_of(numbers[part]), out=result[part])

    share_blocks(forward, numbers.size, 1)
    out = Tensor(result.reshape(x.shape))

    def gradient_fn() -> None:
        given, x_grad = out.received.reshape(-1), np.empty_like(numbers)

        def backward(part: slice) -> None:
            gate = gate_of(numbers[part])
            slope = numbers[part] * numbers[part]
            slope *= TWICE * 3.0 * CUBIC
            slope += TWICE  # the derivative of 2 u
            change = np.subtract(1.0, gate, out=x_grad[part])
            change *= result[part]  # first, so that 0 times a large number stays 0
            change *= slope
            change += gate  # gate + x gate (1 - gate) (2 u)'
            change *= given[part]

        share_blocks(backward, numbers.size, 1)
        x.receive(x_grad.reshape(x.shape))

    return out.attach(gradient_fn, (x,))


def gate_of(x: np.ndarray) -> np.ndarray:
    """The part of each number that GELU lets through, in the shape of x."""
    with np.errstate(over="ignore"):  # where a cube or exp is infinite the gate is the right 0 or 1
        gate = x * x
        gate *= -TWICE * CUBIC
        gate -= TWICE
        gate *= x  # -2 u
        np.exp(gate, out=gate)
        gate += 1.0
        return np.divide(1.0, gate, out=gate)
