"""The training loop, for any model, loss and dataset. Chapter 10 explains it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .dataset import Dataset
from .layer import Layer
from .loss import Loss
from .optimizer import Optimizer
from .scheduler import WarmupCosineScheduler
from .tensor import Tensor


class Trainer:
    """Trains and evaluates a model. Raises TypeError when model, loss and optimizer are not in this order."""

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

    def train(
        self,
        dataset: Dataset,
        epochs: int,
        scheduler: WarmupCosineScheduler | None = None,
        max_steps: int | None = None,
    ) -> list[float]:
        """Go through the training part `epochs` times, or for `max_steps` steps if that is less; the loss of each step.

        The model and the dataset are left in training mode.
        """
        losses: list[float] = []
        self.model.train()
        for _ in range(epochs):
            dataset.train()
            for index in range(len(dataset)):
                if max_steps is not None and len(losses) >= max_steps:
                    return losses
                losses.append(self.train_step(*dataset[index], scheduler))
        return losses

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

    def test(self, dataset: Dataset) -> tuple[list[Tensor], float]:
        """The prediction for every test batch, and the mean loss over all targets."""
        predictions: list[Tensor] = []
        loss = self._evaluate(dataset, predictions)
        return predictions, loss

    def evaluate(self, dataset: Dataset) -> float:
        """The mean loss over all targets of the test part. Keeps no predictions, so memory stays small."""
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
