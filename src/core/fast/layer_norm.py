"""Layer normalisation, block of rows by block of rows."""

from __future__ import annotations

import math

import numpy as np

from .operation import Back
from .threads import block_rows, filled, ones, share_blocks


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> tuple[np.ndarray, Back]:
    """(x - mean) / sqrt(variance + eps) * weight + bias, (..., C) to the same shape."""
    size = x.shape[-1]
    rows = x.reshape(-1, size)  # (N, C)
    count, dtype = len(rows), rows.dtype
    normal, result = np.empty_like(rows), np.empty_like(rows)
    inverse = np.empty((count, 1), dtype=dtype)
    shares = filled(size, 1.0 / size, dtype)  # (C, 1): BLAS adds up faster than NumPy's reductions

    def forward(part: slice) -> None:
        given, centred, y, root = rows[part], normal[part], result[part], inverse[part]
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
        grads, x_grad = grad.reshape(count, size), np.empty((count, size), dtype=dtype)
        weighted = shares * weight[:, None]  # (C, 1)
        step = block_rows(size)
        number = -(-count // step)
        sums = np.empty((2, number, size), dtype=dtype)  # one row a block: added in order, whoever was first

        def backward(part: slice) -> None:
            g, along, scaled = grads[part], normal[part], x_grad[part]
            one, index = ones(len(g), dtype), part.start // step
            np.multiply(g, along, out=scaled)
            np.matmul(one, scaled, out=sums[0, index])
            np.matmul(one, g, out=sums[1, index])
            along *= scaled @ weighted  # the part of the gradient that would only stretch the row
            along += g @ weighted  # and the part that would only move it
            np.multiply(g, weight, out=scaled)
            scaled -= along
            scaled *= inverse[part]

        share_blocks(backward, count, size)
        weight_grad, bias_grad = ones(number, dtype) @ sums
        return x_grad.reshape(x.shape) if wanted else None, weight_grad, bias_grad

    share_blocks(forward, count, size)
    return result.reshape(x.shape), back
