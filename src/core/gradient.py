"""What a gradient is in this engine: the one door it comes in by, and the check of what came in. See chapter 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .tensor import Tensor


def unbroadcast(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum a gradient over the axes along which an operand of the given shape was broadcast.

    Raises ValueError when that shape cannot have been broadcast to the gradient's shape.

    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])
    >>> unbroadcast(np.ones((4, 3)), (4, 1)).shape
    (4, 1)
    """
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    wide = gradient.shape[max(extra, 0) :]  # the axes that line up with those of the operand
    if extra < 0 or any(own not in (1, size) for own, size in zip(shape, wide, strict=True)):
        raise ValueError(
            f"a gradient of shape {gradient.shape} cannot belong to a tensor of shape {shape}: "
            "it must have the tensor's shape, or a shape that the tensor was broadcast to"
        )
    summed = [extra + axis for axis, size in enumerate(shape) if size == 1]
    return gradient.sum(axis=(*range(extra), *summed)).reshape(shape)


class Storage:
    """The numbers of a tensor and their gradient. A tensor and the handle that `attach` returns share one storage."""

    __slots__ = ("data", "gradient", "version")

    def __init__(self, data: np.ndarray):
        self.data = data
        self.gradient: np.ndarray | None = None  # None until something has been received
        self.version = 0  # counts the changes of data, so that `backward` notices one that came too early

    def receive(self, gradient: Any, fresh: bool = False) -> None:
        """The one door into a gradient: undo broadcasting, check the shape, keep the dtype, own the buffer.

        `fresh` says that the caller made the array for this and lets go of it, so that it need not be copied.
        """
        if self.data.dtype.kind != "f":
            raise TypeError("integers are constants and get no gradient, write Tensor([1., 2., 3.])")
        fits = type(gradient) is np.ndarray and (gradient.shape, gradient.dtype) == (self.data.shape, self.data.dtype)
        if fits and fresh and self.gradient is None:  # the usual case, first
            self.gradient = gradient
            return
        gradient = unbroadcast(np.asarray(gradient), self.data.shape)
        if self.gradient is None:
            # A copy, unless it is fresh: no two tensors share a buffer.
            self.gradient = np.array(gradient, dtype=self.data.dtype, copy=None if fresh else True)
        else:
            np.add(self.gradient, gradient, out=self.gradient, casting="same_kind")

    def take(self, gradient: np.ndarray) -> None:
        """`receive` for a fresh array whose shape is known to fit: it is not looked at again."""
        if self.gradient is None and gradient.dtype is self.data.dtype:
            self.gradient = gradient
        else:
            self.receive(gradient, fresh=True)

    def view(self) -> Gradient:
        """The gradient as an array whose `+=` is the door; read-only zeros as long as nothing was received."""
        values = self.gradient
        if values is None:
            # One zero, seen from every place: no memory, and no cost for the many gradients that are about to come.
            zero = np.zeros((), dtype=self.data.dtype)
            values = np.ndarray(self.data.shape, zero.dtype, buffer=zero, strides=(0,) * self.data.ndim)
            values.flags.writeable = False
        view = values.view(Gradient)
        view.storage, view.source = self, self.gradient
        return view


class Gradient(np.ndarray):
    """What `tensor.grad` gives: an ordinary array, except that `+=` goes through `Storage.receive`.

    Kept after the tensor's gradient was cleared or replaced, it is an ordinary array that belongs to nobody.
    """

    storage: Storage | None = None  # slices and copies have none and behave as plain arrays
    source: np.ndarray | None = None  # the gradient of `storage` when this view was taken

    def belongs_to(self, storage: Storage | None) -> bool:
        """True if this is a view of the gradient that `storage` has now."""
        return storage is not None and self.storage is storage and self.source is storage.gradient

    def __iadd__(self, other: Any) -> Gradient:  # type: ignore[override, misc]
        storage = self.storage
        if storage is None or not self.belongs_to(storage):
            return super().__iadd__(other)
        storage.receive(other)
        return storage.view()

    def __isub__(self, other: Any) -> Gradient:  # type: ignore[override, misc]
        return self.__iadd__(-np.asarray(other)) if self.belongs_to(self.storage) else super().__isub__(other)

    def __imul__(self, other: Any) -> Gradient:  # type: ignore[override, misc]
        self._check_received()
        return super().__imul__(other)

    def __itruediv__(self, other: Any) -> Gradient:  # type: ignore[override, misc]
        self._check_received()
        return super().__itruediv__(other)

    def _check_received(self) -> None:
        if self.storage is not None and self.source is None:
            raise RuntimeError("no gradient was received that could be scaled: call backward() first")

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:  # `x.grad *= 2`
            return self
        return array[()] if return_scalar else np.asarray(array)  # what is computed from a gradient is a plain array

    def __repr__(self) -> str:
        return repr(np.asarray(self))


HIDDEN = 1e-3  # what rounding may hide at most, of a gradient of 1 or more


def check_gradients(
    function: Callable[..., Tensor], *inputs: Tensor, step: float = 1e-6, tolerance: float = 1e-6, seed: int = 0
) -> float:
    """Compare the gradients of `function(*inputs)` with central differences; return the largest error found.

    The output is projected on a fixed random direction R, so the check is of L = sum(R * output): each element of each
    input is moved by `step` up and down, and (L(x + step) - L(x - step)) / (2 step) must agree with the gradient. The
    error is |difference| / largest |gradient| of the input, less what rounding makes of L. Inputs must be float64 (use
    `Tensor.precision(np.float64)`), and layers in the function must not draw random numbers. Raises ValueError naming
    input, index and both numbers when an error is above `tolerance`, or when the output is so large that rounding could
    hide one, TypeError when an input is not float64.

    >>> from src.core import Tensor
    >>> with Tensor.precision(np.float64):
    ...     check_gradients(lambda x: x * x, Tensor([1.0, 2.0])) < 1e-8
    True
    """
    if not inputs:
        raise ValueError("there is nothing to check: pass the function and at least one input")
    for number, tensor in enumerate(inputs):
        if tensor.dtype != np.float64:
            raise TypeError(f"input {number} is {tensor.dtype}: check gradients inside Tensor.precision(np.float64)")
        tensor.grad = None
    output = function(*inputs)
    direction = np.random.Generator(np.random.PCG64(seed)).standard_normal(output.shape)
    output.backward(direction)
    rounding = 10 * np.finfo(np.float64).eps * float(np.abs(output.data * direction).sum()) / step
    worst = 0.0
    for number, tensor in enumerate(inputs):
        numeric = np.zeros(tensor.shape)
        for index in np.ndindex(tensor.shape):
            numeric[index] = _central_difference(function, inputs, tensor, index, direction, step)
        worst = max(worst, _largest_error(number, np.array(tensor.grad, subok=False), numeric, rounding, tolerance))
    return worst


def _largest_error(number: int, analytic: np.ndarray, numeric: np.ndarray, rounding: float, tolerance: float) -> float:
    both = np.abs([analytic, numeric])
    size = both.max(where=np.isfinite(both), initial=0.0) or 1.0  # all zero: any size will do
    if rounding > HIDDEN * max(size, 1.0):
        raise ValueError(
            f"input {number}: rounding of so large an output could hide a wrong gradient: make the output smaller, "
            "by fewer elements or without its constant part"
        )
    with np.errstate(invalid="ignore"):
        excess = np.abs(numeric - analytic) - rounding
        errors = np.where(excess <= 0.0, 0.0, excess / size)  # NaN stays NaN
    for index in np.ndindex(errors.shape):
        if not errors[index] <= tolerance:
            raise ValueError(
                f"input {number} at {index}: the gradient is {analytic[index]:.9g}, "
                f"central differences give {numeric[index]:.9g}"
            )
    return float(errors.max(initial=0.0))


def _central_difference(
    function: Callable[..., Tensor],
    inputs: tuple[Tensor, ...],
    tensor: Tensor,
    index: tuple[int, ...],
    direction: np.ndarray,
    step: float,
) -> float:
    values = tensor.data
    kept = values[index]
    sides = []
    try:
        with tensor.no_grad():
            for move in (step, -step):
                values[index] = kept + move
                sides.append(float((function(*inputs).data * direction).sum()))
    finally:
        values[index] = kept
    return (sides[0] - sides[1]) / (2 * step)
