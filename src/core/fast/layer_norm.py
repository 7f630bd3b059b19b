"""Layer normalisation, block of rows by block of rows."""

from __future__ import annotations

import math
from functools import partial, reduce

import numpy as np

from .operation import KernelBackward
from .threads import filled, ones, share_blocks


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> tuple[np.ndarray, KernelBackward]:
    """(x - mean) / sqrt(variance + eps) * weight + bias, (..., C) to the same shape."""
    rows = x.reshape(-1, x.shape[-1])  # (N, C)
    normal, result = np.empty_like(rows), np.empty_like(rows)
    inverse = np.empty((len(rows), 1), dtype=rows.dtype)

    def backward(grad: np.ndarray, wanted: bool = True) -> tuple[np.ndarray | None, ...]:
        x_grad = np.empty_like(normal)
        sums = share_blocks(partial(_backward, weight), grad.reshape(normal.shape), normal, x_grad, inverse)
        weight_grad, bias_grad = reduce(np.add, sums)
        return x_grad.reshape(grad.shape) if wanted else None, weight_grad, bias_grad

    share_blocks(partial(_forward, weight, bias, eps), rows, normal, result, inverse)
    return result.reshape(x.shape), backward


def _forward(
    weight: np.ndarray,
    bias: np.ndarray,
    eps: float,
    x: np.ndarray,
    normal: np.ndarray,
    y: np.ndarray,
    inverse: np.ndarray,
) -> None:
    """Fill y, and what the backward pass needs: the normalised rows and 1 / sqrt(variance + eps)."""
    size = x.shape[-1]
    average = filled(size, 1.0 / size, x.dtype)  # (C, 1): BLAS adds up faster than NumPy's reductions
    np.subtract(x, x.dot(average), out=normal)  # (n, C) - (n, 1)
    normal -= normal.dot(average)  # what rounding has left of the mean
    np.vecdot(normal, normal, out=inverse[:, 0])
    inverse += size * eps  # size times (variance + eps)
    np.sqrt(inverse, out=inverse)
    np.divide(math.sqrt(size), inverse, out=inverse)
    normal *= inverse
    np.multiply(normal, weight, out=y)
    y += bias


def _backward(
    weight: np.ndarray, grad: np.ndarray, normal: np.ndarray, x_grad: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    """Fill x_grad, and give the gradients of weight and bias, (2, C). It uses up `normal`."""
    size = grad.shape[-1]
    weighted = filled(size, 1.0 / size, grad.dtype) * weight[:, None]  # (C, 1)
    one = ones(len(grad), grad.dtype)
    sums = np.empty((2, size), dtype=grad.dtype)
    np.multiply(grad, normal, out=x_grad)
    one.dot(x_grad, out=sums[0])
    one.dot(grad, out=sums[1])
    normal *= x_grad.dot(weighted)  # the part of the gradient that would only stretch the row
    normal += grad.dot(weighted)  # and the part that would only move it
    np.multiply(grad, weight, out=x_grad)
    x_grad -= normal
    x_grad *= inverse
    return sums
