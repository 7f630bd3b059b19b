"""Our side: training steps and generating, as a user of src.gpt would write them. No PyTorch is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import numpy as np

from src.core import AdamWOptimizer, Tensor
from src.gpt import GPT, BareTransformer, GPTLoss, GPTTrainer, generate

VOCABULARY = 65  # characters of tinyshakespeare
BATCHES = 8  # different ones, taken in turn


def batches(batch: int, context: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Token ids and the ids after them, both (B, T), endlessly: the same for every side."""
    windows = np.random.default_rng(0).integers(0, VOCABULARY, (BATCHES, batch, context + 1))
    return cycle([(window[:, :-1], window[:, 1:]) for window in windows])


class Step:
    """Training steps of the finished GPT."""

    def __init__(self, batch: int, context: int, size: int, heads: int, blocks: int):
        self.train(GPT(VOCABULARY, context, size, blocks, heads), batch, context)

    def train(self, model: GPT, batch: int, context: int) -> None:
        """Prepare to train this model."""
        self.model = model
        self.trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters, lr=1e-3))
        self.batches = ((Tensor(x), Tensor(y)) for x, y in batches(batch, context))

    def run(self) -> float:
        """One step; the loss before it."""
        return self.trainer.train_step(*next(self.batches))


class BareStep(Step):
    """Training steps of the model of chapter 5, without residual and normalisation."""

    def __init__(self, batch: int, context: int, size: int, heads: int, blocks: int):
        bare = GPT(VOCABULARY, context, size, blocks, heads, block=BareTransformer, normalization=None, std=None)
        self.train(bare, batch, context)


class Generation:
    """Texts of `steps` characters after a first one, drawn one by one."""

    def __init__(self, context: int, size: int, heads: int, blocks: int, steps: int, temperature: float = 1.0):
        self.model = GPT(VOCABULARY, context, size, blocks, heads)
        self.steps, self.temperature = steps, temperature

    def run(self) -> list[int]:
        """One text; its tokens."""
        return generate(self.model, [0], self.steps, self.temperature)
