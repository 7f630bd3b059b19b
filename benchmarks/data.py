"""One epoch over all the plays: how much of its time is not the model's.

The model's part is `Trainer.train_step`: forward, backward, optimizer. All else is run for a whole epoch, and a step is
timed on its own: a whole epoch of steps would take from minutes to half an hour.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from src.core import AdamWOptimizer, Tensor, WarmupCosineScheduler
from src.course.corpora import corpus_path
from src.gpt import GPT, CharDataset, GPTLoss, GPTTrainer

from .options import Options
from .report import Row, shown_time
from .side import Contender, take_turns
from .step import NANOGPT, SMALL, shown

CORPUS = "shakespeare-complete"


class Loading:
    """Finding the corpus, checking it, reading it, its vocabulary and its tokens."""

    def __init__(self, batch: int, context: int):
        self.batch, self.context = batch, context

    def run(self) -> CharDataset:
        return CharDataset(corpus_path(CORPUS), self.batch, self.context, shuffle=True)


class IdleTrainer(GPTTrainer):
    """Does all that `train` does for a step but the step."""

    def train_step(self, feature: Tensor, label: Tensor, scheduler: WarmupCosineScheduler | None = None) -> float:
        if scheduler is not None:
            self.optimizer.lr = scheduler.step(self.steps)
        self.steps += 1
        return 0.0


class Batching(Loading):
    """An epoch without the model: shuffling, cutting batches, the loop and the schedule."""

    @cached_property
    def dataset(self) -> CharDataset:
        return super().run()

    def run(self) -> list[float]:  # type: ignore[override]
        model = GPT(self.dataset.vocab_size, self.context, 8, blocks=1)
        trainer = IdleTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters))
        return trainer.train(self.dataset, 1, WarmupCosineScheduler(1e-3, len(self.dataset), 100, 1e-4))


def epoch(options: Options) -> list[Row | str]:
    return [_share(sizes, options) for sizes in (SMALL, NANOGPT)]


def _share(sizes: dict[str, int], options: Options) -> Row:
    cut = {"batch": sizes["batch"], "context": sizes["context"]}
    names = [("data:Loading", cut), ("data:Batching", cut), ("ours:Step", sizes)]
    contenders = [Contender(f"benchmarks.{name}", settings) for name, settings in names]
    loading, batching, step = (turns.answers for turns in take_turns(contenders, options))
    steps = len(Loading(**cut).run())
    own, all_of_it = loading + batching, loading + batching + steps * step
    times = shown_time(float(np.median(own))), f"{shown_time(float(np.median(all_of_it)))} in all"
    return Row(f"an epoch over {CORPUS} without the model, {shown(sizes)}", 0.03, *times, own / all_of_it)
