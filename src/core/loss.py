"""Losses: one number that says how wrong predictions are. Chapter 2 explains cross-entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fast.cross_entropy import cross_entropy
from .fast.operation import operation
from .fast.switch import is_on
from .tensor import Tensor


class Loss:
    """A function of predictions and targets. Subclasses define `loss(p, y)`, which returns a scalar Tensor.

    Raises TypeError when it returns anything else than a Tensor.
    """

    def __call__(self, p: Any, y: Any) -> Tensor:
        loss = self.loss(_tensor(p), _tensor(y))
        if not isinstance(loss, Tensor):
            raise TypeError(
                f"{type(self).__name__}.loss must return a Tensor, got {type(loss).__name__}: "
                "compute it from p with operations of the engine, so that its gradient reaches the model"
            )
        return loss

    def loss(self, p: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} needs a method loss(self, p, y) that returns a scalar Tensor")

    def count(self, y: Tensor) -> int:
        """How many targets the mean runs over; evaluation over several batches weighs each batch by it."""
        return y.data.size


class MSELoss(Loss):
    """The mean of (p - y)^2 over all elements; p and y have the same shape, or ValueError.

    >>> MSELoss()(Tensor([1.0, 2.0]), Tensor([1.0, 4.0])).item()
    2.0
    """

    def loss(self, p: Tensor, y: Tensor) -> Tensor:
        if p.shape != y.shape:
            raise ValueError(f"predictions have shape {p.shape}, targets {y.shape}: they must be equal")
        return ((p - y) ** 2).mean()


class CrossEntropyLoss(Loss):
    """The mean of -ln softmax(p)[target]: logits p (..., V), integer targets y (...).

    Targets equal to `ignore_index` do not count, neither in the sum nor in the number it is divided by; if all are
    ignored the loss is 0.0 and so is the gradient. Raises TypeError for targets that are not integers and ValueError
    for shapes that do not fit or a target outside 0 to V - 1.

    >>> CrossEntropyLoss()(Tensor([[0.0, 50.0]]), Tensor([0])).item()
    50.0
    """

    def __init__(self, ignore_index: int | None = None):
        if isinstance(ignore_index, bool) or not isinstance(ignore_index, int | np.integer | None):
            raise TypeError(f"ignore_index is an integer such as -100, or None, got {ignore_index!r}")
        self.ignore_index = ignore_index

    def count(self, y: Tensor) -> int:
        return len(self._counted(y.data.reshape(-1)))

    def loss(self, p: Tensor, y: Tensor) -> Tensor:
        rows, targets = self._check(p, y)
        if is_on():
            return operation(cross_entropy, p, rows=rows, targets=targets)
        logits = p.data.reshape(-1, p.shape[-1])  # (N, V)
        count = max(len(rows), 1)
        shifted = logits - logits.max(axis=-1, keepdims=True)
        exps = np.exp(shifted)
        total = exps.sum(axis=-1, keepdims=True)
        losses = np.log(total[rows, 0]) - shifted[rows, targets]  # -ln(exp(s_target) / total), without the division
        out = Tensor(losses.sum(dtype=np.float64) / count)

        def gradient_fn() -> None:
            grad = exps / total  # softmax
            grad[rows, targets] -= 1.0  # minus one-hot
            grad *= out.grad / count
            if len(rows) < len(grad):
                grad[np.delete(np.arange(len(grad)), rows)] = 0.0  # targets that do not count
            p.grad += grad.reshape(p.shape)

        return out.attach(gradient_fn, (p,))

    def _counted(self, targets: np.ndarray) -> np.ndarray:
        """The places of the targets that count, in one row of them."""
        if self.ignore_index is None:
            return np.arange(len(targets))
        return np.flatnonzero(targets != self.ignore_index)

    def _check(self, p: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """The places of the targets that count, and these targets."""
        if y.dtype.kind != "i":
            raise TypeError(f"targets are integers, got {y.dtype}: pass the index of the right class")
        if p.ndim < 1 or p.shape[:-1] != y.shape or p.dtype.kind != "f":
            raise ValueError(
                f"logits {p.shape} of {p.dtype} and targets {y.shape} do not fit: "
                "logits are floats with the shape of the targets and one more axis for the classes"
            )
        targets = y.data.reshape(-1)
        rows = self._counted(targets)
        targets = targets[rows]
        if len(targets) and not 0 <= targets.min() <= targets.max() < p.shape[-1]:
            wrong = targets[(targets < 0) | (targets >= p.shape[-1])]
            raise ValueError(
                f"targets go from 0 to {p.shape[-1] - 1}, got {wrong[0]}: "
                "use CrossEntropyLoss(ignore_index=...) for padding"
            )
        return rows, targets


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(value)
