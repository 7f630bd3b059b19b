"""Optimizers: how a gradient becomes a change of the weights. Chapter 10 explains AdamW."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NoReturn

import numpy as np

from .fast.adamw import Flat, adamw_step
from .fast.switch import is_on
from .tensor import Tensor


class Optimizer:
    """Holds parameters and changes them by their gradients. Subclasses define `update(index, parameter)`.

    Raises ValueError for no parameters, one given twice, two that share their numbers, or a learning rate that is
    negative or not finite, TypeError for anything but float tensors.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float):
        self.parameters = list(parameters)
        _check_parameters(self.parameters)
        self.names = [parameter.name or f"parameter {index}" for index, parameter in enumerate(self.parameters)]
        self.lr = lr

    @property
    def lr(self) -> float:
        """The learning rate. Setting a negative or non-finite one raises ValueError."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        _check_rate(value)
        self._lr = float(value)

    def zero_grad(self) -> None:
        """Forget the gradients received so far."""
        for parameter in self.parameters:
            parameter.grad = None

    def clip_grad_norm(self, max_norm: float = 1.0) -> float:
        """Scale all gradients together so that their norm is at most `max_norm`; return the norm before.

        Raises RuntimeError, naming the parameter, when a gradient is not finite, and ValueError unless max_norm > 0.
        """
        if not max_norm > 0.0:
            raise ValueError(f"max_norm must be positive, got {max_norm}")
        grads = self._received()
        total = 0.0
        for grad in grads:
            total += float(np.vdot(grad, grad))
        if not math.isfinite(total):
            self._refuse_gradient()
        norm = math.sqrt(total)
        if norm > max_norm:
            for grad in grads:
                grad *= max_norm / norm
        return norm

    def _received(self) -> list[np.ndarray]:
        """The gradients that there are: the arrays themselves."""
        gradients = [parameter._storage.gradient for parameter in self.parameters]
        return [gradient for gradient in gradients if gradient is not None]

    def _refuse_gradient(self) -> NoReturn:
        """Raise RuntimeError, naming the first gradient whose square is not finite, or else the largest."""
        pairs = zip(self.names, self.parameters, strict=True)
        squares = [(float(np.vdot(each.received, each.received)), name) for name, each in pairs if each.has_grad]
        _, name = next((each for each in squares if not math.isfinite(each[0])), max(squares))
        raise RuntimeError(
            f"the gradient of {name} is not finite, or too large to square: "
            "lower the learning rate, or look for a log(0)"
        )

    def step(self) -> None:
        """Change every parameter that received a gradient. Raises RuntimeError if none did."""
        received = [(index, parameter) for index, parameter in enumerate(self.parameters) if parameter.has_grad]
        if not received:
            raise RuntimeError("no parameter has received a gradient: call loss.backward() before step()")
        for index, parameter in received:
            self.update(index, parameter)

    def update(self, index: int, parameter: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__} needs a method update(self, index, parameter)")

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly as before, as a flat dictionary of arrays (copies)."""
        return {"lr": np.array(self.lr)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a state that `state_dict` gave. It is checked before anything is changed."""
        self.check_state(state)
        self.lr = float(state["lr"])

    def check_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Raise ValueError unless names, shapes and values of a state are those of such an optimizer."""
        own = self.state_dict()
        if own.keys() != state.keys():
            raise ValueError(
                f"this state has {len(state)} entries ({', '.join(sorted(state)[:4])}...), {type(self).__name__} has "
                f"{len(own)} ({', '.join(sorted(own)[:4])}...): build it with the parameters it was saved with"
            )
        for name, array in own.items():
            given = np.asarray(state[name])
            if given.shape != array.shape or given.dtype.kind != array.dtype.kind:
                raise ValueError(
                    f"{name} is {given.dtype} of shape {given.shape} in the state, {array.dtype} of {array.shape} "
                    "in the optimizer: build it with the parameters it was saved with"
                )
        _check_rate(float(state["lr"]))


class SGDOptimizer(Optimizer):
    """Stochastic gradient descent: parameter -= lr * gradient.

    >>> x = Tensor(3.0)
    >>> (x * x).backward()
    >>> SGDOptimizer([x], lr=0.5).step()
    >>> x.item()
    0.0
    """

    def update(self, index: int, parameter: Tensor) -> None:
        parameter.data -= self.lr * parameter.grad


class AdamWOptimizer(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

    First the decay, parameter *= 1 - lr * weight_decay, only for tensors with two or more axes (weight matrices and
    embedding tables, not biases and not LayerNorm); then the Adam step with bias-corrected averages of the gradient and
    of its square. Parameters without a gradient are skipped, their averages and step counts too. Raises ValueError for
    betas outside [0, 1), and for a negative eps or weight_decay.

    >>> weight = Tensor([[1.0]])
    >>> weight.grad += np.array([[0.1]])
    >>> AdamWOptimizer([weight], lr=0.01, weight_decay=0.1).step()
    >>> round(weight.item(), 5)
    0.989
    """

    _changes: Flat | None = None  # room for what a step subtracts, made by the first one; copies and files do without

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ):
        super().__init__(parameters, lr)
        self._set(betas, eps, weight_decay)
        self._means = Flat([parameter.data for parameter in self.parameters])
        self._squares = Flat([parameter.data for parameter in self.parameters])
        self.means, self.squares = self._means.pieces, self._squares.pieces  # an array for each parameter
        self.steps = np.zeros(len(self.parameters), dtype=np.int64)

    def step(self) -> None:
        grads = self._received()
        if not (is_on() and self._alike(len(grads))):
            super().step()
            return
        if self._changes is None:
            self._changes = Flat([parameter.data for parameter in self.parameters])
        settings = (self.lr, self.betas, self.eps, self.weight_decay, int(self.steps[0]) + 1)
        adamw_step(self.parameters, grads, self._means, self._squares, self._changes, *settings)
        self.steps += 1

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_changes"}

    def _alike(self, received: int) -> bool:
        """True if one formula holds for all parameters: each has a gradient, and as many steps as the others."""
        own = getattr(self.update, "__func__", None) is not UPDATE  # what another one does is not known here
        alike = self._means.joined and not own and (self.steps == self.steps[0]).all()
        return bool(alike) and received == len(self.parameters)

    def update(self, index: int, parameter: Tensor) -> None:
        beta1, beta2 = self.betas
        mean, square, grad = self.means[index], self.squares[index], parameter.grad
        self.steps[index] += 1
        steps = int(self.steps[index])
        mean *= beta1
        mean += (1.0 - beta1) * grad
        square *= beta2
        square += (1.0 - beta2) * grad * grad
        if parameter.ndim >= 2:
            parameter.data *= 1.0 - self.lr * self.weight_decay
        root = np.sqrt(square / (1.0 - beta2**steps))
        root += self.eps
        parameter.data -= (self.lr / (1.0 - beta1**steps)) * mean / root

    def state_dict(self) -> dict[str, np.ndarray]:
        state = super().state_dict() | {"steps": self.steps.copy(), "betas": np.array(self.betas)}
        state |= {"eps": np.array(self.eps), "weight_decay": np.array(self.weight_decay)}
        for index, (mean, square) in enumerate(zip(self.means, self.squares, strict=True)):
            state |= {f"mean.{index}": mean.copy(), f"square.{index}": square.copy()}
        return state

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        self._set(state["betas"].tolist(), float(state["eps"]), float(state["weight_decay"]))
        self.steps[...] = state["steps"]
        for index in range(len(self.parameters)):
            self.means[index][...] = state[f"mean.{index}"]
            self.squares[index][...] = state[f"square.{index}"]

    def check_state(self, state: Mapping[str, np.ndarray]) -> None:
        super().check_state(state)
        check_settings(state["betas"].tolist(), float(state["eps"]), float(state["weight_decay"]))
        if (state["steps"] < 0).any():
            raise ValueError(f"steps are counted from 0, the state has {state['steps'].min()}: it is damaged")
        for index in range(len(self.parameters)):
            if not (state[f"square.{index}"] >= 0.0).all():
                raise ValueError(f"square.{index} is an average of squares and has a negative number: it is damaged")

    def _set(self, betas: Sequence[float], eps: float, weight_decay: float) -> None:
        check_settings(betas, eps, weight_decay)
        self.betas = (float(betas[0]), float(betas[1]))  # Python floats: NumPy's would turn float32 arrays into float64
        self.eps, self.weight_decay = float(eps), float(weight_decay)


UPDATE = AdamWOptimizer.update  # should someone replace it in the class


def _check_parameters(parameters: list[Tensor]) -> None:
    for parameter in parameters:
        if not isinstance(parameter, Tensor) or not parameter.differentiable or parameter.computed:
            raise TypeError(
                f"parameters are float tensors made by Tensor(...), got {parameter!r}: pass model.parameters"
            )
    if not parameters:
        raise ValueError("an optimizer needs at least one parameter, got 0: pass model.parameters")
    if len({id(parameter) for parameter in parameters}) < len(parameters):
        raise ValueError("a parameter is in the list twice and would be changed twice: pass model.parameters")
    for (i, one), (j, other) in combinations(enumerate(parameters), 2):
        if np.shares_memory(one.data, other.data):
            raise ValueError(
                f"{one.name or f'parameter {i}'} and {other.name or f'parameter {j}'} share their numbers, which would "
                "be changed twice: make one tensor of them, or copy the array, Tensor(array.copy())"
            )


def _check_rate(value: float) -> None:
    if not 0.0 <= value < math.inf:
        raise ValueError(f"a learning rate is zero or a positive number such as 0.001, got {value}")


def check_settings(betas: Sequence[float], eps: float, weight_decay: float) -> None:
    if len(betas) != 2 or not all(0.0 <= beta < 1.0 for beta in betas):
        raise ValueError(f"betas are two numbers from 0 up to but not including 1, got {betas}")
    for name, value in (("eps", eps), ("weight_decay", weight_decay)):
        if not 0.0 <= value < math.inf:
            raise ValueError(f"{name} must be zero or a positive number, got {value}")
