"""The tanh form of GELU, block by block."""

from __future__ import annotations

import math

import numpy as np

from .operation import Back
from .threads import share_blocks

TWICE = 2.0 * math.sqrt(2.0 / math.pi)
CUBIC = 0.044715
KEPT = 1 << 19  # numbers, two megabytes of float32: of a larger array the gates are computed again on the way back


def gelu_tanh(x: np.ndarray) -> tuple[np.ndarray, Back]:
    """x times the gate 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3); any shape."""
    numbers = x.reshape(-1)
    result = np.empty_like(numbers)
    gates = np.empty_like(numbers) if numbers.size <= KEPT else None

    def forward(part: slice) -> None:
        gate = gate_of(numbers[part], None if gates is None else gates[part])
        np.multiply(numbers[part], gate, out=result[part])

    def back(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray]:
        given, x_grad = grad.reshape(-1), np.empty_like(numbers)

        def backward(part: slice) -> None:
            gate = gate_of(numbers[part]) if gates is None else gates[part]
            slope = numbers[part] * numbers[part]
            slope *= TWICE * 3.0 * CUBIC
            slope += TWICE  # the derivative of 2 u
            change = np.subtract(1.0, gate, out=x_grad[part])
            change *= result[part]  # first, so that 0 times a large number stays 0
            change *= slope
            change += gate  # gate + x gate (1 - gate) (2 u)'
            change *= given[part]

        share_blocks(backward, numbers.size, 1)
        return (x_grad.reshape(x.shape),)

    share_blocks(forward, numbers.size, 1)
    return result.reshape(x.shape), back


def gate_of(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The part of each number that GELU lets through, in the shape of x."""
    with np.errstate(over="ignore"):  # where a cube or exp is infinite the gate is the right 0 or 1
        gate = np.multiply(x, x, out=out)
        gate *= -TWICE * CUBIC
        gate -= TWICE
        gate *= x  # -2 u
        np.exp(gate, out=gate)
        gate += 1.0
        return np.divide(1.0, gate, out=gate)
