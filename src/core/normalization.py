"""Layer normalisation: every token's channels to mean 0 and variance 1. Chapter 9 explains it."""

import numpy as np

from .fast.layer_norm import layer_norm
from .fast.operation import operation
from .fast.switch import is_on
from .layer import Layer
from .linear import check_size
from .tensor import Tensor


class LayerNorm(Layer):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis, from (..., size) to the same shape.

    The variance divides by `size`, not size - 1, and `eps` stands inside the root (Ba et al. 2016). Weight and bias
    (size,) start at one and zero. Raises ValueError when x does not end in `size` or eps is negative, TypeError when x
    is not of floats.

    >>> LayerNorm(4)(Tensor([1.0, 2.0, 3.0, 4.0])).data.round(4)
    array([-1.3416, -0.4472,  0.4472,  1.3416], dtype=float32)
    """

    def __init__(self, size: int, eps: float = 1e-5):
        check_size("size", size)
        if not 0.0 <= eps < np.inf:
            raise ValueError(f"eps must be zero or a small positive number such as 1e-5, got {eps}")
        self.eps = float(eps)
        self.weight = Tensor(np.ones(size))
        self.bias = Tensor(np.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        size = self.weight.shape[0]
        if x.dtype.kind != "f":
            raise TypeError(f"LayerNorm needs floats, got {x.dtype} of shape {x.shape}: write Tensor([1., 2., 3.])")
        if x.ndim == 0 or x.shape[-1] != size:
            raise ValueError(f"LayerNorm({size}) needs {size} channels in the last axis, got shape {x.shape}")
        if is_on() and x.dtype == self.weight.dtype:
            return operation(layer_norm, x, self.weight, self.bias, eps=self.eps)
        # Summed in float64: a mean off by one float32 rounding, divided by sqrt(eps), shows in a row of equal numbers.
        mean = x.data.mean(axis=-1, keepdims=True, dtype=np.float64).astype(x.dtype)  # (..., 1)
        centred = x.data - mean  # (..., size)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        inverse = 1.0 / np.sqrt(variance + self.eps)  # (..., 1)
        normal = centred * inverse  # (..., size)
        out = Tensor(normal * self.weight.data + self.bias.data)

        def gradient_fn() -> None:
            self.weight.grad += out.grad * normal
            self.bias.grad += out.grad
            if x.differentiable:
                g = out.grad * self.weight.data
                along = (g * normal).mean(axis=-1, keepdims=True)  # the part that would only stretch the row
                x.grad += inverse * (g - g.mean(axis=-1, keepdims=True) - normal * along)

        return out.attach(gradient_fn, (x, self.weight, self.bias))
