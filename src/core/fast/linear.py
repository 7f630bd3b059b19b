"""x @ weight + bias; products are cut into parts for the threads where that pays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .operation import KernelBackward
from .threads import MOST, ones, share, worth_sharing

SMALLEST = 128  # rows or columns: smaller parts make BLAS pack the other matrix too often


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> tuple[np.ndarray, KernelBackward]:
    """(..., I) @ (I, O) + (O,) -> (..., O). Shapes are checked by the caller."""
    inputs, outputs = weight.shape
    rows = x.reshape(-1, inputs)  # (N, I)
    product = shared_product if worth_sharing(rows.size * outputs) else np.ndarray.dot  # as @, with less around it
    y = product(rows, weight)
    if bias is not None:
        y += bias

    def backward(grad: np.ndarray, wanted: bool = True) -> tuple[np.ndarray | None, ...]:
        grad = grad.reshape(-1, outputs)
        x_grad = product(grad, weight.T).reshape(x.shape) if wanted else None
        weight_grad = product(rows.T, grad)
        if bias is None:
            return x_grad, weight_grad, None
        bias_grad = ones(len(grad), grad.dtype).dot(grad)
        return x_grad, weight_grad, bias_grad if bias.ndim < 2 else bias_grad.reshape(1, outputs)

    return y.reshape(*x.shape[:-1], outputs), backward


def linears(x: np.ndarray, *parameters: np.ndarray | None) -> tuple[tuple[np.ndarray, ...], KernelBackward]:
    """Several linear layers of one x, given as weight, bias, weight, bias and so on: a result for each."""
    pairs: Any = zip(parameters[::2], parameters[1::2], strict=True)
    results, backwards = zip(*[linear(x, weight, bias) for weight, bias in pairs], strict=True)

    def backward(grads: Sequence[np.ndarray], _: bool = True) -> tuple[np.ndarray | None, ...]:
        x_grad, *found = backwards[0](grads[0])
        for each, grad in zip(backwards[1:], grads[1:], strict=True):
            more, *others = each(grad)
            x_grad += more
            found += others
        return x_grad, *found

    return results, backward


def shared_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(N, K) @ (K, M), cut along the longer side of the result; for products that are worth it."""
    rows, columns = len(a), b.shape[1]
    work = a.size * columns
    parts = max(1, min(MOST, max(rows, columns) // SMALLEST))
    edges = [max(rows, columns) * part // parts for part in range(parts + 1)]
    slices = [slice(start, stop) for start, stop in pairwise(edges)]
    out = np.empty((rows, columns), dtype=a.dtype)
    if columns >= rows:
        share([partial(np.matmul, a, b[:, part], out=out[:, part]) for part in slices], work)
    else:
        share([partial(np.matmul, a[part], b, out=out[part]) for part in slices], work)
    return out
