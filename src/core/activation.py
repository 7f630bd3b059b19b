"""Activations: functions of single numbers (ReLU, GELU), and the softmax of a row. Chapters 3 and 7 explain them."""

from __future__ import annotations

import math

import numpy as np

from .erf import erf
from .fast.gelu import gelu_tanh
from .fast.operation import operation
from .fast.switch import is_on
from .layer import Layer
from .tensor import Tensor

SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)  # Python floats: a NumPy float64 would turn float32 arrays into float64
SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


class ReLU(Layer):
    """max(x, 0), any shape. At 0 the derivative is taken as 0.

    >>> ReLU()(Tensor([-1.0, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        out = Tensor(np.maximum(x.data, 0))

        def gradient_fn() -> None:
            x.grad += np.where(x.data > 0, out.grad, 0.0)

        return out.attach(gradient_fn, (x,))


class GELU(Layer):
    """x P(X <= x) for a standard normal X, any shape (Hendrycks and Gimpel 2016).

    `approximate="none"` is the exact form with erf, `"tanh"` the approximation that GPT-2 uses; they differ by up to
    4.7e-4. Raises ValueError for any other name.

    >>> round(GELU()(Tensor(1.0)).item(), 5), round(GELU(approximate="tanh")(Tensor(1.0)).item(), 5)
    (0.84134, 0.84119)
    """

    def __init__(self, approximate: str = "none"):
        if approximate not in ("none", "tanh"):
            raise ValueError(f'approximate is "none" (exact) or "tanh", got {approximate!r}')
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        if self.approximate == "none":
            return _gelu_exact(x)
        return operation(gelu_tanh, x) if is_on() and x.dtype.kind == "f" else _gelu_tanh(x)


def _gelu_exact(x: Tensor) -> Tensor:
    area = 0.5 * (1.0 + erf(x.data * SQRT_HALF))  # P(X <= x)
    out = Tensor(x.data * area)

    def gradient_fn() -> None:
        density = np.exp(-0.5 * x.data * x.data) * INV_SQRT_2PI  # the derivative of the area
        x.grad += out.grad * (area + x.data * density)

    return out.attach(gradient_fn, (x,))


def _gelu_tanh(x: Tensor) -> Tensor:
    square = x.data * x.data  # u = sqrt(2 / pi) (x + 0.044715 x^3)
    # (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), but the right side keeps its digits where tanh(u) is close to -1.
    with np.errstate(over="ignore"):  # where exp is infinite the gate is the right 0
        gate = 1.0 / (1.0 + np.exp(-2.0 * SQRT_2_OVER_PI * x.data * (1.0 + 0.044715 * square)))
    out = Tensor(x.data * gate)

    def gradient_fn() -> None:
        slope = 2.0 * SQRT_2_OVER_PI * (1.0 + 3 * 0.044715 * square)  # the derivative of 2u
        x.grad += out.grad * (gate + x.data * gate * (1.0 - gate) * slope)

    return out.attach(gradient_fn, (x,))


class Softmax(Layer):
    """exp(x) / sum(exp(x)) over the last axis, any shape.

    The maximum of each row is subtracted first, so large scores do not overflow. A row of nothing but -inf (a query
    that may attend to no key) gives zeros, and its gradient is zero.

    >>> Softmax()(Tensor([0.0, math.log(2), math.log(4)])).data.round(4)  # 1/7, 2/7, 4/7
    array([0.1429, 0.2857, 0.5714], dtype=float32)
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype.kind != "f" or x.ndim == 0 or x.shape[-1] == 0:
            raise ValueError(f"Softmax needs rows of floats, got shape {x.shape} of {x.dtype}")
        weights = softmax(x.data)
        out = Tensor(weights)

        def gradient_fn() -> None:
            x.grad += softmax_gradient(weights, out.grad)

        return out.attach(gradient_fn, (x,))


def softmax(scores: np.ndarray) -> np.ndarray:
    """The softmax of an array over its last axis; a row of -inf gives zeros."""
    highest = scores.max(axis=-1, keepdims=True)
    highest[highest == -np.inf] = 0.0  # -inf - (-inf) would be NaN
    weights = np.exp(scores - highest)
    total = weights.sum(axis=-1, keepdims=True)
    total[total == 0.0] = 1.0  # a row of zeros stays one
    weights /= total
    return weights


def softmax_gradient(weights: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """The gradient of the scores from the gradient of the softmax: w * (g - sum(g * w)), row by row."""
    inner = (weights * grad).sum(axis=-1, keepdims=True)
    return weights * (grad - inner)
