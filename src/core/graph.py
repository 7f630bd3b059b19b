"""How a computation is recorded and replayed backwards. Chapter 1 builds this file step by step.

`attach` records one operation; `backward` replays the records, newest first. Arithmetic is in tensor.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

import numpy as np

from .gradient import Gradient, Storage
from .precision import Precision, as_array

_serials = itertools.count()
_recording: ContextVar[bool] = ContextVar("recording", default=True)  # each thread has its own

# Why a computed variable has no record. One that was not computed (a parameter, data) has None instead.
NO_GRAD = "it was computed inside Tensor.no_grad()"
CONSTANT = "it was computed from integers and numbers only"
REPLACED = "attach() returns the tensor to use: write `return out.attach(...)` and use what it returns"
FREED = (
    "backward() has already used this part of the graph and freed it: "
    "run the forward pass again, or add the losses and call backward() once"
)


class Record:
    """One operation of the forward pass: how to send its gradient on, and the records of the tensors it used.

    Records are numbered in the order of their creation, so an operation always has a higher number than those it uses.
    """

    __slots__ = ("gradient_fn", "parents", "read", "serial")

    def __init__(self, serial: int, gradient_fn: Callable[[], Any], used: tuple[Variable, ...]):
        self.serial = serial
        self.gradient_fn: Callable[[], Any] | None = gradient_fn
        self.parents = [variable._record for variable in used if isinstance(variable._record, Record)]
        self.read = [(variable._storage, variable._storage.version, variable.name) for variable in used]

    def check(self) -> None:
        """Raise RuntimeError if this record was replayed before or what it used has changed since."""
        if self.gradient_fn is None:
            raise RuntimeError(FREED)
        for storage, version, name in self.read:
            if storage.version != version:
                raise RuntimeError(
                    f"{name or 'a tensor'} of shape {storage.data.shape} was changed after the forward "
                    "pass that used it: call backward() before optimizer.step() or any other change of .data"
                )

    def replay(self) -> None:
        """Send the gradient on to the parents, then let go of everything that was kept for it."""
        gradient_fn, self.gradient_fn = self.gradient_fn, None
        self.parents, self.read = [], []
        if gradient_fn is None:  # a gradient_fn that was replayed before this one has called backward() itself
            raise RuntimeError(FREED)
        gradient_fn()

    def __deepcopy__(self, memo: dict[int, Any]) -> Record:
        raise RuntimeError(
            "a computed tensor cannot be copied with its graph, whose operations belong to the tensors they used: "
            "copy its numbers, Tensor(x.data.copy())"
        )


def reachable(record: Record) -> list[Record]:
    """The record and all that it depends on, each once, oldest first. Checks every one of them."""
    found = {record.serial: record}
    waiting = [record]
    while waiting:
        current = waiting.pop()
        current.check()
        for parent in current.parents:
            if parent.serial not in found:
                found[parent.serial] = parent
                waiting.append(parent)
    return [found[serial] for serial in sorted(found)]


class Variable:
    """An array with a gradient and a record of how it was computed: all of a Tensor but its arithmetic.

    `data` is anything NumPy makes an array of. Floats are stored in the current precision (float32, see
    `Tensor.precision`) unless `dtype` says float32 or float64; integers are stored as int64, booleans as bool, and both
    are constants without a gradient. An array that already has the right dtype is shared, not copied.
    Raises TypeError for text, objects and tensors inside lists, ValueError for rows of different lengths.
    """

    __slots__ = ("__weakref__", "_record", "_storage", "name")
    __array_ufunc__ = None  # so that `array + tensor` comes to Tensor.__radd__ instead of an array of objects

    def __init__(self, data: Any, dtype: Any = None):
        self._storage = Storage(as_array(data, dtype))
        self._record: Record | str | None = None
        self.name: str | None = None  # set by Layer.named_parameters

    # ---- what a tensor holds -------------------------------------------------------------------------------------

    @property
    def data(self) -> np.ndarray:
        """The numbers, as a NumPy array. Assigning copies into that array, so whoever shares it sees the change.

        `x.data = ...` and `x.data += ...` between forward and backward are noticed by `backward`. A change of single
        elements, `x.data[0] = 1`, or of an array that the tensor shares, is not: do that before the forward pass.
        """
        return self._storage.data

    @data.setter
    def data(self, values: Any) -> None:
        self._storage.version += 1
        if values is self._storage.data:  # the second half of `x.data += 1`
            return
        values = np.asarray(values)
        if values.shape != self.shape:
            raise ValueError(f"this tensor has shape {self.shape}, got data of shape {values.shape}: make a new Tensor")
        if values.dtype.kind == "f" and self.dtype.kind != "f":
            raise TypeError(f"this tensor holds {self.dtype}, got data of {values.dtype}: make a new Tensor")
        self._storage.data[...] = values

    @property
    def grad(self) -> Gradient:
        """The gradient received so far, of the shape and dtype of `data`; zeros if there is none. `+=` adds to it.

        What is assigned has the shape of `data`, or is None, which clears it.
        """
        return self._storage.view()

    @grad.setter
    def grad(self, values: Any) -> None:
        if values is None:
            self._storage.gradient = None
            return
        if isinstance(values, Gradient) and values.belongs_to(self._storage):  # the second half of `x.grad += g`
            return
        if np.shape(values) != self.shape:
            raise ValueError(
                f"a gradient of shape {np.shape(values)} cannot belong to a tensor of shape {self.shape}: "
                "make them equal; only += sums over what was broadcast"
            )
        fresh = Storage(self.data)  # received apart, so that a gradient that does not fit leaves the old one alone
        fresh.receive(values)
        self._storage.gradient = fresh.gradient

    @property
    def received(self) -> np.ndarray:
        """The gradient as a plain array: its own memory, or new zeros if none was received. For where speed matters."""
        gradient = self._storage.gradient
        return np.zeros(self.shape, dtype=self.dtype) if gradient is None else gradient

    def receive(self, gradient: np.ndarray) -> None:
        """Add a gradient in a new array that nobody else holds: the first one is kept, not copied."""
        self._storage.receive(gradient, fresh=True)

    @property
    def has_grad(self) -> bool:
        """True if a gradient was received since it was last cleared with `grad = None`."""
        return self._storage.gradient is not None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._storage.data.shape

    @property
    def ndim(self) -> int:
        return self._storage.data.ndim

    @property
    def dtype(self) -> np.dtype:
        return self._storage.data.dtype

    @property
    def differentiable(self) -> bool:
        """False for constants: integers, and what was computed from them or without recording."""
        return self._storage.data.dtype.kind == "f" and not isinstance(self._record, str)

    @property
    def computed(self) -> bool:
        """True for the result of an operation, False for what was made by `Tensor(...)`."""
        return self._record is not None

    def item(self) -> Any:
        """The only number of this tensor, as a Python number. Raises ValueError if there is more than one."""
        if self.data.size != 1:
            raise ValueError(f"item() needs a tensor with one element, this one has shape {self.shape}")
        return self.data.item()

    def __repr__(self) -> str:
        values = np.array2string(self.data, separator=", ", prefix="Tensor(")
        return f"Tensor({values}, dtype={self.dtype})"

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("a Tensor is not an array: use its .data, or operations of the engine to keep its gradient")

    # ---- recording and replaying ---------------------------------------------------------------------------------

    def attach(self, gradient_fn: Callable[[], Any], parents: Iterable[Variable]) -> Self:
        """Record that this tensor was computed from `parents`; return the tensor to use from here on.

        `gradient_fn()` reads this tensor's `grad` and adds to the parents' `grad`. The result is a new handle on the
        same numbers and gradient: it owns the record, while `gradient_fn` refers to this tensor, so no cycle arises
        and memory is freed as soon as the handle is. (After `out = out.attach(...)` the closure would refer to the
        handle: a cycle, freed much later. Write `return out.attach(...)`.) Raises TypeError when a parent has another
        float type, RuntimeError when this tensor was itself computed from tensors.
        """
        if self.computed:
            raise RuntimeError(
                "attach() is for a tensor made of arrays, this one was computed from tensors and would send its "
                "gradient twice: write out = Tensor(...) of their .data, as in Tensor(x.data * x.data)"
            )
        parents = (parents,) if isinstance(parents, Variable) else tuple(parents)
        differentiable = self._check_parents(parents)
        if not differentiable or not _recording.get():
            unrecorded = differentiable or any(parent._record is NO_GRAD for parent in parents)
            self._record = NO_GRAD if unrecorded else CONSTANT
            return self
        handle = object.__new__(type(self))
        handle._storage, handle.name = self._storage, None
        handle._record = Record(next(_serials), gradient_fn, (*parents, self))
        self._record = REPLACED
        return handle

    def _check_parents(self, parents: tuple[Any, ...]) -> bool:
        """True if one of them is differentiable. Raises for what cannot be a parent of this tensor."""
        differentiable, own = False, self.dtype
        for parent in parents:
            if not isinstance(parent, Variable):
                raise TypeError(
                    f"parents are the tensors used, as in attach(gradient_fn, (x,)), got {type(parent).__name__}"
                )
            if parent._record is REPLACED:
                raise RuntimeError(REPLACED)
            dtype = parent._storage.data.dtype
            if dtype is not own and dtype.kind == "f" and dtype != own:
                raise TypeError(
                    f"{dtype} tensor of shape {parent.shape} used where results are {own}: "
                    f"work inside Tensor.precision(np.{dtype}), or build everything in one precision"
                )
            differentiable = differentiable or parent.differentiable
        return differentiable

    def backward(self, grad: Any = None) -> None:
        """Add the derivative of this tensor to the `grad` of every tensor it was computed from.

        `grad` has this tensor's shape and says what to start from; a scalar needs none and starts from 1. Operations
        are replayed newest first, each once, and their records are freed on the way: a second call raises RuntimeError.
        Raises TypeError for integers, which are constants, and ValueError for a missing or misshapen `grad`.
        """
        if self.dtype.kind != "f" or self._record is CONSTANT:
            raise TypeError("nothing to differentiate: integers are constants, write Tensor([1., 2., 3.])")
        if isinstance(self._record, str):
            raise RuntimeError(f"backward() needs a recorded tensor: {self._record}")
        if grad is None and self.data.size != 1:
            raise ValueError(
                f"backward() starts from one number, this tensor has shape {self.shape}: use .sum(), or pass grad"
            )
        grad = np.ones(self.shape) if grad is None else np.asarray(grad)
        if grad.shape != self.shape:
            raise ValueError(f"grad has shape {grad.shape}, the tensor {self.shape}: they must be equal")
        records = reachable(self._record) if self._record is not None else []
        self._storage.receive(grad)
        while records:
            records.pop().replay()

    @staticmethod
    @contextmanager
    def no_grad() -> Iterator[None]:
        """Inside `with Tensor.no_grad():` nothing is recorded in this thread: it saves time and memory."""
        before = _recording.get()
        _recording.set(False)
        try:
            yield
        finally:
            _recording.set(before)

    @staticmethod
    def recording() -> bool:
        """False inside `no_grad`."""
        return _recording.get()

    @staticmethod
    def precision(dtype: Any) -> Precision:
        """Store floats as `dtype` (np.float32 or np.float64) from now on, or inside `with Tensor.precision(...)`.

        It holds for the whole process, in all threads.
        """
        return Precision(dtype)
