"""Layer normalisation, block of rows by block of rows."""

from __future__ import annotations

import numpy as np

from ..tensor import Tensor
from .threads import blocks, share_blocks


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias, (..., C) to the same shape."""
    size = x.shape[-1]
    rows = x.data.reshape(-1, size)  # (N, C)
    result = np.empty_like(rows)
    shares = np.full((size, 1), 1.0 / size, dtype=rows.dtype)  # BLAS adds up faster than NumPy's reductions
    mean, inverse = np.empty((2, len(rows), 1), dtype=rows.dtype)

    def forward(part: slice) -> None:
        average = rows[part] @ shares  # (n, C) @ (C, 1) -> (n, 1)
        centred = np.subtract(rows[part], average, out=result[part])
        left = centred @ shares  # what rounding has left of the mean
        centred -= left
        np.add(average, left, out=mean[part])
        variance = np.vecdot(centred, centred)[:, None]
        variance *= 1.0 / size
        variance += eps
        np.sqrt(variance, out=variance)
        np.divide(1.0, variance, out=inverse[part])
        centred *= inverse[part]
        centred *= weight.data
        centred += bias.data

    share_blocks(forward, len(rows), size)
    out = Tensor(result.reshape(x.shape))

    def gradient_fn() -> None:
        given, x_grad = out.received.reshape(rows.shape), np.empty_like(rows)
        starts = {part.start: index for index, part in enumerate(blocks(len(rows), size))}
        sums = np.empty((2, len(starts), size), dtype=rows.dtype)  # one row a block: added in order, whoever was first

        weighted = shares * weight.data[:, None]  # (C, 1)

        def backward(part: slice) -> None:
            normal = rows[part] - mean[part]
            normal *= inverse[part]
            product = given[part] * normal
            ones = np.ones(len(product), dtype=rows.dtype)
            np.matmul(ones, product, out=sums[0, starts[part.start]])
            np.matmul(ones, given[part], out=sums[1, starts[part.start]])
            scaled = np.multiply(given[part], weight.data, out=x_grad[part])
            normal *= product @ weighted  # the part of the gradient that would only stretch the row
            scaled -= given[part] @ weighted  # and the part that would only move it
            scaled -= normal
            scaled *= inverse[part]

        share_blocks(backward, len(rows), size)
        weight.receive(sums[0].sum(axis=0))
        bias.receive(sums[1].sum(axis=0))
        if x.differentiable:
            x.receive(x_grad.reshape(x.shape))

    return out.attach(gradient_fn, (x, weight, bias))
