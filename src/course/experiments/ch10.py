"""Chapter 10: rates, warm-up, clipping and dropout compared on a validation text, with the optimizer itself varied.

python -m src.course.experiments.ch10     # trains what is missing of PLANS, and NANO; stores them in data/runs/ch10
python -m src.course runs 10              # trains EXPERIMENTS: the rungs of the ladder
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from src.core import AdamWOptimizer, Dataset, SGDOptimizer, Tensor, WarmupCosineScheduler, seed
from src.core.checkpoint import write_atomically
from src.course.corpora import corpus_path
from src.course.runs import EVERY, FOLDER, Experiment, Setup, load_runs
from src.gpt import GPT, CharDataset, GPTLoss, GPTTrainer
from src.gpt.settings import read_settings
from src.gpt.training import Run

SEEDS = (0, 1, 2)
NANO = FOLDER.parent / "models" / "nano.toml"  # what `python -m src.gpt train` trains in some minutes
SAMPLE = 1000  # windows on which a loss is measured, for training and validation alike

LOG = {"training, mean since the point before": "training_loss", "test": "test_loss"}  # names of its two curves


@dataclass(frozen=True)
class Plan:
    """How a GPT of two blocks with 64 channels is trained on windows of 32 characters, 16 a step."""

    optimizer: str = "AdamW"  # or "SGD": plain descent
    lr: float = 0.001
    warmup_steps: int = 60
    falls: bool = True  # along the cosine, to a tenth; False: the rate stays where the warm-up has brought it
    clipped: bool = True
    dropout: float = 0.0
    weight_decay: float = 0.01
    characters: int | None = None  # train on so many characters; None: on all of the training text
    steps: int = 600
    measured_every: int = 600  # steps between two points of the curve


class ThreeParts(CharDataset):
    """The corpus without its test part: eight tenths for training, the ninth for validation, in the place of a test."""

    def __init__(self, plan: Plan):
        self.characters = plan.characters
        super().__init__(corpus_path("shakespeare"), 16, context_size=32, stride=32, shuffle=True)

    def load(self) -> None:
        super().load()
        start, end = int(0.8 * len(self.tokens)), int(0.9 * len(self.tokens))
        self.train_data = self._windows("training", self.tokens[: self.characters or start])
        self.test_data = self._windows("validation", self.tokens[start:end])

    def sample(self, training: bool) -> Sample:
        """SAMPLE windows, spread evenly over the training or the validation text."""
        x, y = self.train_data if training else self.test_data
        places = np.linspace(0, len(x) - 1, SAMPLE).astype(int)
        return Sample(x[places], y[places])


class Sample(Dataset):
    """A few windows to measure a loss on."""

    def __init__(self, x: np.ndarray, y: np.ndarray):
        self.pair = (x, y)
        super().__init__(batch_size=64, drop_last=False)

    def load(self) -> None:
        self.train_data = self.test_data = self.pair


class Unclipped(AdamWOptimizer):
    """AdamW that measures the gradient norm and leaves the gradients as they are."""

    def clip_grad_norm(self, max_norm: float = 1.0) -> float:
        return super().clip_grad_norm(math.inf)


@dataclass
class Trained:
    """The loss of each step, and the curve: step, training loss, validation loss, both without dropout."""

    losses: list[float]
    curve: list[tuple[int, float, float]]
    trainer: GPTTrainer = field(repr=False)
    dataset: ThreeParts = field(repr=False)


def build(plan: Plan, number: int) -> tuple[ThreeParts, GPTTrainer, WarmupCosineScheduler]:
    """Text, trainer and schedule of a plan, from seed `number`."""
    seed(number)
    dataset = ThreeParts(plan)
    model = GPT(dataset.vocab_size, 32, 64, blocks=2, dropout=plan.dropout)
    if plan.optimizer == "SGD":
        optimizer: Any = SGDOptimizer(model.parameters, plan.lr)
    else:
        kind = AdamWOptimizer if plan.clipped else Unclipped
        optimizer = kind(model.parameters, plan.lr, weight_decay=plan.weight_decay)
    least = plan.lr / 10 if plan.falls else plan.lr
    schedule = WarmupCosineScheduler(plan.lr, plan.steps, plan.warmup_steps, least)
    return dataset, GPTTrainer(model, GPTLoss(), optimizer), schedule


def train(plan: Plan, number: int = 0, steps: int | None = None) -> Trained:
    """Train by a plan; with `steps`, stop there."""
    dataset, trainer, schedule = build(plan, number)
    samples = dataset.sample(True), dataset.sample(False)
    losses: list[float] = []
    curve: list[tuple[int, float, float]] = []
    end = plan.steps if steps is None else steps
    while True:
        if len(losses) % plan.measured_every == 0:
            learned, unseen = (trainer.evaluate(sample) for sample in samples)
            curve.append((len(losses), learned, unseen))
        if len(losses) >= end:
            return Trained(losses, curve, trainer, dataset)
        part = min(plan.measured_every, end - len(losses))
        losses += trainer.train(dataset, plan.steps, schedule, max_steps=part)


class _Thousandfold(GPTLoss):
    """The loss, and so its gradient, a thousand times as large."""

    def loss(self, p: Tensor, y: Tensor) -> Tensor:
        return super().loss(p, y) * 1000.0


def with_bad_batch(clipped: bool, step: int, steps: int) -> list[float]:
    """The loss of each step of a run in which one step gets a gradient a thousand times as large as it should be."""
    dataset, trainer, schedule = build(Plan(lr=0.004, clipped=clipped), 0)
    losses = trainer.train(dataset, 1, schedule, max_steps=step)
    trainer.loss_fn = _Thousandfold()
    losses += trainer.train(dataset, 1, schedule, max_steps=1)
    trainer.loss_fn = GPTLoss()
    return losses + trainer.train(dataset, 1, schedule, max_steps=steps - step - 1)


SGD = Plan(optimizer="SGD")
SMALL = Plan(lr=0.004, characters=20_000, steps=1000, measured_every=50)  # a text so small that it is learned by heart
PLANS = {
    "rates": {
        **{f"SGD {lr}": replace(SGD, lr=lr) for lr in (0.1, 1.0, 10.0)},
        **{f"AdamW {lr}": Plan(lr=lr) for lr in (0.0001, 0.001, 0.004, 0.016, 0.064)},
    },
    "warmup": {f"AdamW {lr}": Plan(lr=lr, warmup_steps=0) for lr in (0.001, 0.004, 0.016)},
    "level": {f"AdamW {lr}": Plan(lr=lr, falls=False) for lr in (0.001, 0.004, 0.016)},
    "clipping": {f"AdamW {lr}": Plan(lr=lr, clipped=False) for lr in (0.004, 0.016)},
    "dropout": {f"dropout {rate}": replace(SMALL, dropout=rate) for rate in (0.0, 0.1, 0.2)},
    "decay": {f"decay {rate}": replace(SMALL, weight_decay=rate) for rate in (0.0, 0.1, 1.0)},
}

# The rungs of the ladder: test loss, whole training text, the same steps as in all chapters.
EXPERIMENTS = [
    Experiment(
        "ch10-rate",
        Setup(lr=0.004, min_lr=0.0004),
        {"GPT": GPT, "dropout 0.1": partial(GPT, dropout=0.1)},
        SEEDS,
    ),
]


def load(name: str) -> dict[str, Any]:
    """The stored runs of a group of PLANS: of each variant plan, seeds, losses (every ten steps) and curves."""
    return load_runs(f"ch10/{name}")["variants"]


def log_curves(log: list[dict[str, Any]]) -> dict[str, tuple[list[int], list[float]]]:
    """The rows of a log of `python -m src.gpt train` as two curves; the training loss has no point at step 0."""
    points = {name: [(row["step"], row[key]) for row in log if row[key] is not None] for name, key in LOG.items()}
    return {name: ([step for step, _ in each], [loss for _, loss in each]) for name, each in points.items()}


def make() -> None:
    """Train what is missing, one run after the other; each is stored when it is done."""
    for name, plans in PLANS.items():
        path = FOLDER / "ch10" / f"{name}.json"
        old = load(name) if path.exists() else {}
        variants: dict[str, Any] = {}
        for variant, plan in plans.items():
            runs: dict[str, Any] = {"plan": asdict(plan), "seeds": [], "losses": [], "curve": []}
            if old.get(variant, {}).get("plan") == runs["plan"]:
                runs = old[variant]
            variants[variant] = runs
            for number in SEEDS[len(runs["seeds"]) :]:
                run = train(plan, number)
                print(f"{name}, {variant}, seed {number}: {run.curve[-1][2]:.4f}", flush=True)
                runs["seeds"].append(number)
                runs["losses"].append([round(loss, 4) for loss in run.losses[::EVERY]])
                runs["curve"].append([[step, round(one, 4), round(two, 4)] for step, one, two in run.curve])
                _write(name, {"variants": variants})
        _write(name, {"variants": variants})


def nano_run() -> Run:
    """The run that NANO describes, before its first step. Nothing is written to its folder before `save`."""
    return Run(read_settings(NANO), corpus_path("shakespeare"), FOLDER / "ch10")


def make_nano() -> None:
    """Train by NANO, as the command line does, and store its log; and the loss of each of the first 100 steps."""
    path = FOLDER / "ch10" / "nano.json"
    if path.exists():
        return
    run, losses = nano_run(), []
    print(run.evaluate(), flush=True)
    while not run.finished:
        losses.append(round(run.step(), 5))
        if run.steps % run.settings.training.evaluate_every == 0:
            print(run.evaluate(), flush=True)
    _write("nano", run.about | {"log": run.log, "losses": losses[:100]})


def _write(name: str, record: dict[str, Any]) -> None:
    text = json.dumps({"command": "python -m src.course.experiments.ch10"} | record, indent=1)
    text = re.sub(r"\[([^\[\]{}]*)\]", lambda found: f"[{' '.join(found[1].split())}]", text)  # a list a line
    (FOLDER / "ch10").mkdir(parents=True, exist_ok=True)
    write_atomically(FOLDER / "ch10" / f"{name}.json", (text + "\n").encode())


if __name__ == "__main__":
    make()
    make_nano()
