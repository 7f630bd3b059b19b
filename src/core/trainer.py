"""The training loop, for any model, loss and dataset. Chapter 10 explains it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from .checkpoint import check_generator_state, generator_state, load_checkpoint, save_checkpoint
from .dataset import Dataset
from .layer import Layer
from .loss import Loss
from .optimizer import Optimizer
from .random import default_generator
from .scheduler import WarmupCosineScheduler
from .tensor import Tensor


class Trainer:
    """Trains and evaluates a model.

    Raises TypeError when model, loss and optimizer are not in this order, ValueError when the optimizer holds a
    parameter that the model does not have.
    """

    def __init__(self, model: Layer, loss_fn: Loss, optimizer: Optimizer):
        for name, part, kind in (
            ("model", model, Layer),
            ("loss_fn", loss_fn, Loss),
            ("optimizer", optimizer, Optimizer),
        ):
            if not isinstance(part, kind):
                raise TypeError(
                    f"{name} must be a {kind.__name__}, got {type(part).__name__}: Trainer(model, loss_fn, optimizer)"
                )
        self.model, self.loss_fn, self.optimizer = model, loss_fn, optimizer
        self.steps = 0  # taken so far; the scheduler goes on from here
        self.position = 0  # the next batch of the epoch that was begun
        self._dataset: Dataset | None = None  # the one that this epoch goes through, in this order
        self._order: np.ndarray | None = None
        self._check_parameters()

    def train(
        self,
        dataset: Dataset,
        epochs: int,
        scheduler: WarmupCosineScheduler | None = None,
        max_steps: int | None = None,
    ) -> list[float]:
        """Go through the training part `epochs` times, or for `max_steps` steps if that is less; the loss of each step.

        An epoch of this dataset that an earlier call left unfinished is finished first, in its order, and counts as
        one. A batch whose step was interrupted is taken again. The model and the dataset are left in training mode.
        """
        if max_steps is not None and max_steps < 0:
            raise ValueError(f"max_steps must be zero or more, got {max_steps}")
        self._check_parameters()
        self.model.train()
        losses = []
        for batch in islice(self._batches(dataset, epochs), max_steps):
            steps = self.steps
            try:
                losses.append(self.train_step(*batch, scheduler))
            except BaseException:
                self.position -= self.steps == steps  # the batch was not learned from: it is the next one again
                raise
        return losses

    def _batches(self, dataset: Dataset, epochs: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of `epochs` passes, the first from where the last call stopped."""
        for _ in range(epochs):
            dataset.training = True
            if self._dataset is dataset and self.position < len(dataset):
                dataset.order = self._order
            else:
                dataset.train()
                self._dataset, self._order, self.position = dataset, dataset.order, 0
            while self.position < len(dataset):
                self.position += 1
                yield dataset[self.position - 1]

    def train_step(self, feature: Tensor, label: Tensor, scheduler: WarmupCosineScheduler | None = None) -> float:
        """One step: forward, backward, clip the gradient norm at 1, update. Returns the loss before the update."""
        if scheduler is not None:
            self.optimizer.lr = scheduler.step(self.steps)
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(feature), label)
        loss.backward()
        self.optimizer.clip_grad_norm()
        self.optimizer.step()
        self.steps += 1
        return loss.item()

    def save(self, path: str | os.PathLike[str], dataset: Dataset, metadata: Mapping[str, Any] | None = None) -> None:
        """Write all that a killed run needs to go on to the same bytes, also from the middle of an epoch.

        That is weights, the optimizer's state, steps, the place in the epoch and its order, and where the random
        generators of model and dataset are. `metadata` is a dictionary that JSON can hold. The file is always whole.
        """
        begun = self._dataset is dataset
        run = {
            "steps": self.steps,
            "position": self.position if begun else 0,
            "order": self._order.tolist() if begun and self._order is not None else None,
            "data": dataset.settings,
            "generators": [generator_state(generator) for generator in self._generators(dataset)],
        }
        save_checkpoint(path, self.model, self.optimizer, metadata={"run": run, "metadata": dict(metadata or {})})

    def load(self, path: str | os.PathLike[str], dataset: Dataset) -> dict[str, Any]:
        """Go on where `save` was called; return its metadata. Then train with the same schedule.

        Model, optimizer and dataset must be built as they were. Raises ValueError, before anything is changed, when
        the file is damaged or does not fit them.
        """
        notes, generators = load_checkpoint(path), self._generators(dataset)
        run: Any = notes.get("run")
        _check_run(path, run, dataset, len(generators))
        load_checkpoint(path, self.model, self.optimizer)
        for generator, state in zip(generators, run["generators"], strict=True):
            generator.bit_generator.state = state
        self.steps, self.position = run["steps"], run["position"]
        self._dataset = dataset if self.position else None  # at 0 no epoch was begun
        self._order = None if run["order"] is None else np.array(run["order"])
        return notes.get("metadata", {})

    def _generators(self, dataset: Dataset) -> list[np.random.Generator]:
        """The default generator and those that dataset and layers hold, each once."""
        held = [value for layer in self.model.layers_within() for value in vars(layer).values()]
        found = [item for item in held if isinstance(item, np.random.Generator)]
        return list({id(item): item for item in (default_generator(), dataset.generator, *found)}.values())

    def _check_parameters(self) -> None:
        own = {id(parameter) for parameter in self.model.parameters}
        pairs = zip(self.optimizer.names, self.optimizer.parameters, strict=True)
        strange = [name for name, parameter in pairs if id(parameter) not in own]
        if strange:
            raise ValueError(
                f"the optimizer changes {', '.join(strange)}, which the model does not have (any more): "
                "build the optimizer from model.parameters after the last change of the model"
            )

    def test(self, dataset: Dataset) -> tuple[list[Tensor], float]:
        """The prediction for every test batch, and the mean loss as `evaluate` gives it."""
        predictions: list[Tensor] = []
        loss = self._evaluate(dataset, predictions)
        return predictions, loss

    def evaluate(self, dataset: Dataset) -> float:
        """The mean loss over all targets of the test part. Keeps no predictions, so memory stays small.

        With `drop_last` in the dataset, as by default, a last batch that is not full does not count.
        """
        return self._evaluate(dataset, None)

    def _evaluate(self, dataset: Dataset, predictions: list[Tensor] | None) -> float:
        total, count = 0.0, 0
        with evaluating(self.model, dataset):
            for index in range(len(dataset)):
                feature, label = dataset[index]
                prediction = self.model(feature)
                targets = self.loss_fn.count(label)  # a batch counts by its targets: the last one may be short
                total += self.loss_fn(prediction, label).item() * targets
                count += targets
                if predictions is not None:
                    predictions.append(prediction)
        return total / max(count, 1)


@contextmanager
def evaluating(model: Layer, dataset: Dataset | None = None) -> Iterator[None]:
    """Inside, the model does not drop and nothing is recorded; afterwards, even after an error, modes are as before."""
    modes = [(layer, layer.training) for layer in model.layers_within()]
    was_training = dataset is not None and dataset.training
    model.eval()
    if dataset is not None:
        dataset.eval()
    try:
        with Tensor.no_grad():
            yield
    finally:
        for layer, training in modes:
            layer.training = training
        if dataset is not None:
            dataset.training = was_training


def _check_run(path: Any, run: Any, dataset: Dataset, generators: int) -> None:
    """Raise ValueError unless `run` is what `Trainer.save` wrote for such a dataset and so many generators."""
    if not isinstance(run, dict) or run.keys() != {"steps", "position", "order", "data", "generators"}:
        raise ValueError(f"{path} holds no training run: save it with Trainer.save(path, dataset)")
    if run["data"] != dataset.settings:
        raise ValueError(f"{path} was trained on data with {run['data']}, this has {dataset.settings}: make them equal")
    states, order, pairs = run["generators"], run["order"], dataset.settings["pairs"]
    if not isinstance(states, list) or len(states) != generators:
        raise ValueError(f"{path} does not have {generators} random generators, as model and dataset have now")
    for state in states:
        check_generator_state(path, state)
    whole = isinstance(order, list) and all(type(place) is int for place in order)
    if order is not None and not (whole and sorted(order) == list(range(pairs))):
        raise ValueError(f"{path} is damaged: its order is none of {pairs} pairs")
    if not all(type(run[name]) is int and run[name] >= 0 for name in ("steps", "position")):
        raise ValueError(f"{path} is damaged: steps {run['steps']} and position {run['position']} are counted from 0")
