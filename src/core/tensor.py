"""Tensors: arithmetic that records itself. Chapter 1 builds this file step by step.

Every operation has the same parts: compute the output, say how its gradient flows to the inputs, attach that to the
output. A reader who adds an operation writes them too:

    out = Tensor(x.data * x.data)

    def gradient_fn():
        x.grad += out.grad * 2 * x.data

    return out.attach(gradient_fn, (x,))
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from .arrays import check_broadcast, check_product, power, product
from .graph import CONSTANT, Variable


class Tensor(Variable):
    """An array with a gradient and arithmetic: + - * / ** @, with tensors, arrays and numbers.

    Shapes broadcast as in NumPy. Arrays, numbers and integer tensors are constants and take the dtype of the other
    operand. Every operation raises TypeError when float32 and float64 tensors meet.

    >>> x = Tensor([1.0, 2.0])
    >>> (x * x).sum().backward()
    >>> x.grad
    array([2., 4.], dtype=float32)
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        a, b = _operands(self, other)
        out = Tensor(a.data + b.data)

        def gradient_fn() -> None:
            if a.differentiable:
                a.grad += out.grad
            if b.differentiable:
                b.grad += out.grad

        return out.attach(gradient_fn, (a, b))

    def __mul__(self, other: Any) -> Tensor:
        a, b = _operands(self, other)
        out = Tensor(a.data * b.data)

        def gradient_fn() -> None:
            if a.differentiable:
                a.grad += out.grad * b.data
            if b.differentiable:
                b.grad += out.grad * a.data

        return out.attach(gradient_fn, (a, b))

    def __truediv__(self, other: Any) -> Tensor:
        a, b = _operands(self, other)
        out = Tensor(a.data / b.data)

        def gradient_fn() -> None:
            if a.differentiable:
                a.grad += out.grad / b.data
            if b.differentiable:
                b.grad -= out.grad * out.data / b.data

        return out.attach(gradient_fn, (a, b))

    def __pow__(self, exponent: Any) -> Tensor:
        """This tensor to a constant power, a number or an array."""
        if isinstance(exponent, Tensor) and exponent.differentiable:
            raise TypeError("the exponent must be a number or an array: for two tensors write (a.log() * b).exp()")
        x, n = _operands(self, exponent)
        out = Tensor(power(x.data, n.data))

        def gradient_fn() -> None:
            slope = n.data * power(x.data, np.where(n.data == 0, 1, n.data - 1).astype(x.dtype))
            x.grad += out.grad * slope

        return out.attach(gradient_fn, (x,))

    def __matmul__(self, other: Any) -> Tensor:
        a, b = _as_tensors(self, other)
        if a.ndim == 0 or b.ndim == 0:
            raise ValueError(f"@ needs vectors or matrices, got shapes {a.shape} and {b.shape}: use * for numbers")
        if a.ndim == 1:
            row = a.reshape(1, -1) @ b
            return row.reshape(*row.shape[:-2], *row.shape[-1:]) if b.ndim > 1 else row.reshape(())
        if b.ndim == 1:
            return (a @ b.reshape(-1, 1)).reshape(a.shape[:-1])
        check_product(a.shape, b.shape)
        out = Tensor(product(a.data, b.data))

        def gradient_fn() -> None:
            if a.differentiable:
                a.grad += product(out.grad, b.data.swapaxes(-1, -2))
            if b.differentiable and b.ndim == 2:  # the rows of all batches count: one large product
                b.grad += a.data.reshape(-1, a.shape[-1]).T @ out.grad.reshape(-1, b.shape[-1])
            elif b.differentiable:
                b.grad += a.data.swapaxes(-1, -2) @ out.grad

        return out.attach(gradient_fn, (a, b))

    def __neg__(self) -> Tensor:
        return self * -1

    def __sub__(self, other: Any) -> Tensor:
        return self + -_as_tensors(self, other)[1]  # as tensors: NumPy would turn -uint8(1) into 255

    def __radd__(self, other: Any) -> Tensor:
        return self + other

    def __rmul__(self, other: Any) -> Tensor:
        return self * other

    def __rsub__(self, other: Any) -> Tensor:
        return -self + other

    def __rtruediv__(self, other: Any) -> Tensor:
        return _constant(other) / self

    def __rmatmul__(self, other: Any) -> Tensor:
        return _constant(other) @ self

    def __rpow__(self, base: Any) -> Tensor:
        if not isinstance(base, int | float | np.number) or base <= 0:
            raise ValueError(f"the base of a power must be a positive number, got {base!r}")
        return (self * math.log(base)).exp()

    def reshape(self, *shape: Any) -> Tensor:
        """The same numbers in another shape, given as numbers or as one tuple; -1 stands for "what is left"."""
        try:
            out = Tensor(self.data.reshape(*shape))
        except ValueError:
            wanted = shape[0] if len(shape) == 1 else shape
            raise ValueError(f"the {self.data.size} numbers of shape {self.shape} do not fill shape {wanted}") from None

        def gradient_fn() -> None:
            self.grad += out.grad.reshape(self.shape)

        return out.attach(gradient_fn, (self,))

    def transpose(self, *axes: Any) -> Tensor:
        """Axis `i` of the result is axis `axes[i]` of this tensor, given as numbers or as one tuple.

        Raises ValueError unless each axis is named once.

        >>> Tensor(np.zeros((2, 3, 4))).transpose((0, 2, 1)).shape
        (2, 4, 3)
        """
        axes = axes[0] if len(axes) == 1 and np.ndim(axes[0]) else axes
        order = [axis + self.ndim if axis < 0 else axis for axis in axes]
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"a tensor of {self.ndim} axes needs each of 0 to {self.ndim - 1} once, got {tuple(axes)}")
        out = Tensor(self.data.transpose(order))

        def gradient_fn() -> None:
            self.grad += out.grad.transpose(np.argsort(order))  # the inverse permutation

        return out.attach(gradient_fn, (self,))

    def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
        """Sum over one axis, several axes or (None) all of them; `keepdims` keeps them with size 1."""
        out = Tensor(self.data.sum(axis=axis, keepdims=keepdims))

        def gradient_fn() -> None:
            grad: np.ndarray = out.grad
            if axis is not None and not keepdims:
                grad = np.expand_dims(grad, axis)
            self.grad += np.broadcast_to(grad, self.shape)

        return out.attach(gradient_fn, (self,))

    def mean(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
        """The average over one axis, several axes or (None) all of them."""
        total = self.sum(axis, keepdims)
        return total / (self.data.size / max(total.data.size, 1))

    def exp(self) -> Tensor:
        """e to the power of each element."""
        out = Tensor(np.exp(self.data))

        def gradient_fn() -> None:
            self.grad += out.grad * out.data

        return out.attach(gradient_fn, (self,))

    def log(self) -> Tensor:
        """The natural logarithm of each element."""
        out = Tensor(np.log(self.data))

        def gradient_fn() -> None:
            self.grad += out.grad / self.data

        return out.attach(gradient_fn, (self,))

    def tanh(self) -> Tensor:
        """The hyperbolic tangent of each element."""
        out = Tensor(np.tanh(self.data))

        def gradient_fn() -> None:
            self.grad += out.grad * (1.0 - out.data * out.data)

        return out.attach(gradient_fn, (self,))

    def __getitem__(self, index: Any) -> Tensor:
        """The elements that NumPy's indexing gives; an element taken several times gets the sum of the gradients."""
        index = _fixed(index)
        out = Tensor(self.data[index])

        def gradient_fn() -> None:
            grad = np.zeros(self.shape, dtype=self.dtype)
            np.add.at(grad, index, out.grad)  # `grad[index] += ...` would count a repeated index once
            self.grad += grad

        return out.attach(gradient_fn, (self,))

    def __eq__(self, other: Any) -> Any:
        """Where the elements are equal, as a constant tensor of booleans; so `==` is the way to make a mask."""
        if other is None or isinstance(other, str):
            return NotImplemented
        a, b = _operands(self, other)
        return _constant(a.data == b.data)

    def __ne__(self, other: Any) -> Any:
        """Where the elements differ, as a constant tensor of booleans."""
        same = self.__eq__(other)
        return same if same is NotImplemented else _constant(~same.data)

    __hash__ = object.__hash__  # a tensor in a set or dictionary is itself, whatever it holds

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a tensor with no axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        if self.data.size != 1:
            raise ValueError(f"shape {self.shape} is neither true nor false: write (a == b).data.all(), or any()")
        return bool(self.item())


def _constant(value: Any) -> Tensor:
    """An array or a number as a tensor that gets no gradient."""
    tensor = Tensor(value)
    tensor._record = CONSTANT
    return tensor


def _operands(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of shapes that broadcast."""
    a, b = _as_tensors(a, b)
    if a.shape != b.shape:
        check_broadcast(a.shape, b.shape)
    return a, b


def _as_tensors(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Both operands as tensors; an integer one takes the float type of the other (int64 @ float32 would be float64)."""
    a = a if isinstance(a, Tensor) else _constant(a)
    b = b if isinstance(b, Tensor) else _constant(b)
    if a.dtype.kind == "f" and b.dtype.kind != "f":
        b = _constant(b.data.astype(a.dtype))
    elif b.dtype.kind == "f" and a.dtype.kind != "f":
        a = _constant(a.data.astype(b.dtype))
    return a, b


def _fixed(index: Any) -> Any:
    """An index as NumPy takes it, copied, so that a later change of it does not lead the gradient elsewhere."""
    if isinstance(index, tuple):
        return tuple(_fixed(part) for part in index)
    return deepcopy(index.data if isinstance(index, Tensor) else index)
