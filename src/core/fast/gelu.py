"""The tanh form of GELU, block by block."""

from __future__ import annotations

import math

import numpy as np

from .operation import KernelBackward
from .threads import share_blocks

TWICE = 2.0 * math.sqrt(2.0 / math.pi)
CUBIC = 0.044715
KEPT = 1 << 19  # numbers, two megabytes of float32: of a larger array the gates are computed again in the backward pass


def gelu_tanh(x: np.ndarray) -> tuple[np.ndarray, KernelBackward]:
    """x times the gate 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3); any shape."""
    numbers = x.reshape(-1)
    result = np.empty_like(numbers)
    gates = [np.empty_like(numbers)] if numbers.size <= KEPT else []

    def backward(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray]:
        x_grad = np.empty_like(numbers)
        share_blocks(_backward, grad.reshape(-1), numbers, result, x_grad, *gates)
        return (x_grad.reshape(grad.shape),)

    share_blocks(_forward, numbers, result, *gates)
    return result.reshape(x.shape), backward


def _forward(x: np.ndarray, y: np.ndarray, gate: np.ndarray | None = None) -> None:
    """Fill y, and the gate if it is kept."""
    np.multiply(x, gate_of(x, gate), out=y)


def _backward(
    grad: np.ndarray, x: np.ndarray, y: np.ndarray, x_grad: np.ndarray, gate: np.ndarray | None = None
) -> None:
    """Fill x_grad with grad (gate + x gate (1 - gate) (2 u)')."""
    gate = gate_of(x) if gate is None else gate
    slope = x * x
    slope *= TWICE * 3.0 * CUBIC
    slope += TWICE  # (2 u)'
    np.subtract(1.0, gate, out=x_grad)
    x_grad *= y  # first, so that 0 times a large number stays 0
    x_grad *= slope
    x_grad += gate
    x_grad *= grad


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
