"""A kernel computes on plain arrays: it returns its result and the way back, a function from the gradient of the result
to the gradients of what went in. `operation` makes a kernel an operation on tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor
from .threads import prepare

# back(grad, wanted=True) gives a gradient for each array that went in, once; None for the first if it is not wanted.
Back = Callable[..., tuple[Any, ...]]


def operation(kernel: Callable[..., tuple[np.ndarray, Back]], *tensors: Any, **settings: Any) -> Tensor:
    """`kernel(*arrays, **settings)` on tensors; a missing one is None for the kernel too."""
    prepare()
    result, back = kernel(*(None if tensor is None else tensor.data for tensor in tensors), **settings)
    out = Tensor(result)

    def gradient_fn() -> None:
        for tensor, gradient in zip(tensors, back(out.received, tensors[0].differentiable), strict=True):
            if tensor is not None and gradient is not None and tensor.differentiable:
                tensor.receive(gradient)

    return out.attach(gradient_fn, tuple(tensor for tensor in tensors if tensor is not None))
