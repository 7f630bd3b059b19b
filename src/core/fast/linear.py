"""x @ weight + bias as one operation; the products are cut into parts for the threads."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from ..tensor import Tensor
from .threads import Task, share, works_apart

SMALLEST = 128  # rows or columns: smaller parts make BLAS pack the other matrix too often
PARTS = 4


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(..., I) @ (I, O) + (O,) -> (..., O). Shapes are checked by the caller."""
    rows = x.data.reshape(-1, weight.shape[0])  # (N, I)
    y = np.empty((len(rows), weight.shape[1]), dtype=rows.dtype)  # (N, O)
    added = None if bias is None else bias.data
    share(
        [partial(_product, rows[part], weight.data, y[part], added) for part in cut(len(rows))], rows.size * y.shape[1]
    )
    out = Tensor(y.reshape(*x.shape[:-1], y.shape[1]))

    def gradient_fn() -> None:
        grad = out.received.reshape(y.shape)
        tasks: list[Task] = []
        if x.differentiable:
            x_grad = np.empty(rows.shape, dtype=rows.dtype)
            tasks += [partial(_product, grad[part], weight.data.T, x_grad[part]) for part in cut(len(rows))]
        weight_grad = np.empty(weight.shape, dtype=weight.dtype)
        tasks += weight_tasks(rows, grad, weight_grad)
        share(tasks, 2 * rows.size * y.shape[1])
        if x.differentiable:
            x.receive(x_grad.reshape(x.shape))
        weight.receive(weight_grad)
        if bias is not None:
            bias.receive(np.ones(len(grad), dtype=grad.dtype) @ grad)

    return out.attach(gradient_fn, (x, weight) if bias is None else (x, weight, bias))


def weight_tasks(rows: np.ndarray, grad: np.ndarray, out: np.ndarray) -> list[Task]:
    """out = rows.T @ grad, cut along the longer side of the result."""
    inputs, outputs = out.shape
    if outputs >= inputs:
        return [partial(_product, rows.T, grad[:, part], out[:, part]) for part in cut(outputs)]
    return [partial(_product, rows.T[part], grad, out[part]) for part in cut(inputs)]


def cut(size: int) -> list[slice]:
    """At most PARTS slices of a length, none much smaller than SMALLEST; one for a thread that works for itself."""
    parts = min(PARTS, size // SMALLEST)
    if parts < 2 or works_apart():
        return [slice(0, size)]
    edges = [size * part // parts for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def _product(a: np.ndarray, b: np.ndarray, out: np.ndarray, added: np.ndarray | None = None) -> None:
    np.matmul(a, b, out=out)
    if added is not None:
        out += added
