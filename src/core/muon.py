"""Muon: an update of a weight matrix in which all directions count alike. A page beside chapter 10 explains it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from .fast.threads import share
from .optimizer import AdamWOptimizer, Optimizer, check_settings
from .tensor import Tensor

# p(s) = a s + b s^3 + c s^5, applied five times, takes every s from 0.01 to 1 near 1 (Jordan et al. 2024).
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
ROOT_MEAN_SQUARE = 0.2  # of the entries of an update at learning rate 1; Adam's are about as large (Liu et al. 2025)


class MuonOptimizer(Optimizer):
    """Muon (Jordan et al. 2024) for weight matrices, AdamW for all other parameters, with one learning rate.

    For each of `matrices`, which are among `parameters`: the gradient is added to `momentum` times the sum so far,
    looked at one step ahead (Nesterov), made orthogonal (see `orthogonalized`) and scaled so that its entries are as
    large as those of an Adam update (Liu et al. 2025, equation 4); weight decay comes first, as in AdamW. Parameters
    without a gradient are skipped. Raises ValueError for a matrix that is not among the parameters or not a matrix, for
    a momentum outside [0, 1), and for what AdamWOptimizer refuses.

    >>> weight, bias = Tensor([[3.0, 0.0], [0.0, 1.0]]), Tensor([0.0, 0.0])
    >>> weight.grad += np.array([[2.0, 0.0], [0.0, 0.1]])  # one direction is twenty times as steep as the other
    >>> bias.grad += np.array([1.0, 1.0])
    >>> MuonOptimizer([weight, bias], [weight], lr=0.1, weight_decay=0.0).step()
    >>> (np.array([3.0, 1.0]) - np.diag(weight.data)).round(3)  # they change about equally
    array([0.02 , 0.021])
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        matrices: Iterable[Tensor],
        lr: float = 4e-3,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ):
        parameters, self.matrices = list(parameters), list(matrices)
        _check_matrices(parameters, self.matrices, momentum)
        chosen = {id(matrix) for matrix in self.matrices}
        others = [parameter for parameter in parameters if id(parameter) not in chosen]
        self.rest = AdamWOptimizer(others, lr, betas, eps, weight_decay) if others else None
        super().__init__(parameters, lr)
        check_settings(betas, eps, weight_decay)
        self.momentum, self.weight_decay = float(momentum), float(weight_decay)
        self.sums = [np.zeros_like(matrix.data) for matrix in self.matrices]

    def step(self) -> None:
        received = [index for index, matrix in enumerate(self.matrices) if matrix.has_grad]
        others = self.rest is not None and any(parameter.has_grad for parameter in self.rest.parameters)
        if not received and not others:
            raise RuntimeError("no parameter has received a gradient: call loss.backward() before step()")
        work = sum(30 * min(matrix.shape) * matrix.data.size for matrix in self.matrices)
        share([lambda index=index: self._turn(index) for index in received], work)  # type: ignore[misc]
        if self.rest is not None and others:
            self.rest.lr = self.lr
            self.rest.step()

    def _turn(self, index: int) -> None:
        """The step of one matrix. It touches nothing else, so that several may be taken at once."""
        matrix, total = self.matrices[index], self.sums[index]
        total *= self.momentum
        total += matrix.received
        ahead = matrix.received + self.momentum * total
        change = orthogonalized(ahead)
        change *= self.lr * ROOT_MEAN_SQUARE * math.sqrt(max(matrix.shape))
        matrix.data *= 1.0 - self.lr * self.weight_decay
        matrix.data -= change

    def state_dict(self) -> dict[str, np.ndarray]:
        state = super().state_dict() | {f"sum.{index}": total.copy() for index, total in enumerate(self.sums)}
        state |= {"momentum": np.array(self.momentum), "weight_decay": np.array(self.weight_decay)}
        rest = {} if self.rest is None else self.rest.state_dict()
        return state | {f"rest.{name}": array for name, array in rest.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        self.momentum, self.weight_decay = float(state["momentum"]), float(state["weight_decay"])
        for index, total in enumerate(self.sums):
            total[...] = state[f"sum.{index}"]
        if self.rest is not None:
            self.rest.load_state_dict(_rest_of(state))

    def check_state(self, state: Mapping[str, np.ndarray]) -> None:
        super().check_state(state)
        _check_momentum(float(state["momentum"]))
        if self.rest is not None:
            self.rest.check_state(_rest_of(state))


def orthogonalized(matrix: np.ndarray) -> np.ndarray:
    """The matrix with its singular values taken near 1 and its singular vectors kept, (I, O) to (I, O).

    Five steps of an iteration on the matrix itself do it (Jordan et al. 2024), without finding the singular vectors:
    the results are between 0.65 and 1.3 for singular values from 0.01 of the norm on. A matrix of zeros stays zero.

    >>> np.linalg.svd(orthogonalized(np.array([[2.0, 0.0], [0.0, 0.1]])))[1].round(2)
    array([0.76, 0.7 ])
    """
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = wide * (1.0 / (math.sqrt(float(np.vdot(wide, wide))) + 1e-7))  # now every singular value is at most 1
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = x @ x.T  # (r, r), r the smaller side
        mixed = square @ square
        mixed *= c
        square *= b
        mixed += square
        x = a * x + mixed @ x  # a x + b x x^T x + c x x^T x x^T x
    return x if wide is matrix else x.T


def _rest_of(state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix("rest."): array for name, array in state.items() if name.startswith("rest.")}


def _check_matrices(parameters: list[Tensor], matrices: list[Tensor], momentum: float) -> None:
    _check_momentum(momentum)
    known = {id(parameter) for parameter in parameters}
    if not matrices or len({id(matrix) for matrix in matrices}) < len(matrices):
        raise ValueError(
            f"Muon needs at least one matrix and each once, got {len(matrices)}: pass gpt.block_matrices()"
        )
    for matrix in matrices:
        if not isinstance(matrix, Tensor) or matrix.ndim != 2:
            raise ValueError(f"Muon changes matrices, got {matrix!r}: leave the others to AdamW")
        if id(matrix) not in known:
            raise ValueError(
                f"{matrix.name or 'a matrix'} of shape {matrix.shape} is not among the parameters: "
                "pass model.parameters, which has all of them"
            )


def _check_momentum(momentum: float) -> None:
    if not 0.0 <= momentum < 1.0:
        raise ValueError(f"momentum is a number from 0 up to but not including 1, got {momentum}")
