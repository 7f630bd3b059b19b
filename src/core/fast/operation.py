"""A kernel computes on plain arrays. It returns its result and its backward function, from the gradient of the result
to the gradients of what went in. `operation` makes a kernel an operation on tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor
from .threads import prepare

# backward(grad, wanted=True) may be called once. It gives a gradient, or None, for each array that went in;
# wanted=False says that the first one is not needed.
KernelBackward = Callable[..., tuple[Any, ...]]


def operation(kernel: Callable[..., tuple[np.ndarray, KernelBackward]], *tensors: Any, **settings: Any) -> Tensor:
    """`kernel(*arrays, **settings)` on tensors; a missing one is None for the kernel too."""
    prepare()
    result, backward = kernel(*(None if tensor is None else tensor.data for tensor in tensors), **settings)
    out = Tensor(result)

    def gradient_fn() -> None:
        for tensor, gradient in zip(tensors, backward(out.received, tensors[0].differentiable), strict=True):
            if tensor is not None and gradient is not None and tensor.differentiable:
                tensor.receive(gradient)

    return out.attach(gradient_fn, tuple(tensor for tensor in tensors if tensor is not None))
