"""Chapters 3 and 4: from averaging a window, by place or by content, to the causal mask."""

import math
from functools import partial

import numpy as np

from src.core import Composite, Linear, Softmax, Tensor, Tril
from src.course.runs import Experiment, Setup
from src.gpt import GPT
from src.gpt.block import Identity


class Averaging(Composite):
    """Mixes the tokens of a window and projects the result: (B, T, C) to (B, T, C). Subclasses say with which weights.

    `causal` lets each token mix in only itself and those before it. The weights of the last pass, (T, T) or (B, T, T),
    stay in the attribute `weights`.
    """

    def __init__(self, channels: int, causal: bool = True):
        self.mask = Tril() if causal else Identity()
        self.value = Linear(channels, channels)
        self.output = Linear(channels, channels)
        super().__init__([self.mask, self.value, self.output])

    def scores(self, x: Tensor) -> Tensor:
        """The scores (T, T) or (B, T, T) that softmax turns into weights."""
        raise NotImplementedError("say how much each token is worth to each")

    def forward(self, x: Tensor) -> Tensor:
        weights = Softmax()(self.mask(self.scores(x)))
        self.weights = weights.data
        return self.output(weights @ self.value(x))  # (T, T) @ (B, T, C) -> (B, T, C)


class PlainAverage(Averaging):
    """All tokens in sight count alike."""

    def scores(self, x: Tensor) -> Tensor:
        return Tensor(np.zeros((x.shape[1], x.shape[1])))


class TableAverage(Averaging):
    """A learned table says how much each place is worth to each place, whatever stands there.

    The scores are ten times the table: an optimizer's step moves every number about equally far, and with softmax in
    between a table of scores has a longer way to go than the other weights.
    """

    def __init__(self, channels: int, time: int = 32, causal: bool = True):
        self.table = Tensor(np.zeros((time, time)))  # all places alike at first
        super().__init__(channels, causal)

    def scores(self, x: Tensor) -> Tensor:
        return self.table[: x.shape[1], : x.shape[1]] * 10.0


class ContentAverage(Averaging):
    """Tokens that look alike are worth much to each other: scores are dot products of x with itself."""

    def scores(self, x: Tensor) -> Tensor:
        return x @ x.transpose((0, 2, 1)) / math.sqrt(x.shape[-1])


class OthersAverage(ContentAverage):
    """The same, but no token mixes in itself: its score with itself, the largest of its row, is struck out."""

    def scores(self, x: Tensor) -> Tensor:
        return super().scores(x) + np.where(np.eye(x.shape[1], dtype=bool), -np.inf, 0.0)


EXPERIMENTS = [
    Experiment(
        "ch03-averages",
        Setup(),
        {
            "average, no mask": partial(GPT, attention=partial(PlainAverage, causal=False)),
            "average, masked": partial(GPT, attention=PlainAverage),
            "table, no mask": partial(GPT, attention=partial(TableAverage, causal=False)),
            "table, masked": partial(GPT, attention=TableAverage),
            "x x^T, no mask": partial(GPT, attention=partial(ContentAverage, causal=False)),
            "x x^T, masked": partial(GPT, attention=ContentAverage),
        },
        seeds=(0, 1, 2),
    ),
    Experiment(
        "ch03-self",
        Setup(),
        {
            "x x^T without itself, no mask": partial(GPT, attention=partial(OthersAverage, causal=False)),
            "x x^T without itself, masked": partial(GPT, attention=OthersAverage),
        },
        seeds=(0, 1, 2),
    ),
]
