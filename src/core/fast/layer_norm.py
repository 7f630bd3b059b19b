"""Layer normalisation, block of rows by block of rows."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from .operation import Back
from .threads import filled, ones, share_blocks


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> tuple[np.ndarray, Back]:
    """(x - mean) / sqrt(variance + eps) * weight + bias, (..., C) to the same shape."""
    size = x.shape[-1]
    rows = x.reshape(-1, size)  # (N, C)
    normal, result = np.empty_like(rows), np.empty_like(rows)
    inverse = np.empty((len(rows), 1), dtype=rows.dtype)
    shares = filled(size, 1.0 / size, rows.dtype)  # (C, 1): BLAS adds up faster than NumPy's reductions

    def forward(given: np.ndarray, centred: np.ndarray, y: np.ndarray, root: np.ndarray) -> None:
        np.subtract(given, given @ shares, out=centred)  # (n, C) - (n, 1)
        centred -= centred @ shares  # what rounding has left of the mean
        np.vecdot(centred, centred, out=root[:, 0])
        root += size * eps  # size times (variance + eps)
        np.sqrt(root, out=root)
        np.divide(math.sqrt(size), root, out=root)
        centred *= root
        np.multiply(centred, weight, out=y)
        y += bias

    def back(grad: np.ndarray, wanted: bool = True) -> tuple[np.ndarray | None, ...]:
        x_grad = np.empty_like(normal)
        weighted = shares * weight[:, None]  # (C, 1)

        def backward(g: np.ndarray, along: np.ndarray, scaled: np.ndarray, root: np.ndarray) -> np.ndarray:
            sums = np.empty((2, size), dtype=g.dtype)  # the gradients of weight and bias
            one = ones(len(g), g.dtype)
            np.multiply(g, along, out=scaled)
            np.matmul(one, scaled, out=sums[0])
            np.matmul(one, g, out=sums[1])
            along *= scaled @ weighted  # the part of the gradient that would only stretch the row
            along += g @ weighted  # and the part that would only move it
            np.multiply(g, weight, out=scaled)
            scaled -= along
            scaled *= root
            return sums

        sums = share_blocks(backward, grad.reshape(normal.shape), normal, x_grad, inverse)
        weight_grad, bias_grad = reduce(np.add, sums)
        return x_grad.reshape(grad.shape) if wanted else None, weight_grad, bias_grad

    share_blocks(forward, rows, normal, result, inverse)
    return result.reshape(x.shape), back
