"""Training runs that are too long for a page: made once by a command, stored in data/runs, drawn by the chapters.

A chapter loads its runs with `load_runs`, trains the first steps of one of them live with `train`, and asserts that
the two agree. `python -m src.course runs 5` trains what is missing of chapter 5's experiments (experiments/ch05.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from src.core import AdamWOptimizer, WarmupCosineScheduler, seed
from src.core.checkpoint import write_atomically
from src.course.corpora import corpus_path
from src.gpt import GPT, CharDataset, GPTLoss, GPTTrainer, TokenDataset

FOLDER = Path(__file__).resolve().parents[2] / "data" / "runs"
EVERY = 10  # steps between two stored losses


@dataclass(frozen=True)
class Setup:
    """What a comparison holds fixed: corpus, windows, size of the model, optimizer and schedule."""

    corpus: str = "shakespeare"
    batch_size: int = 16
    context_size: int = 32
    stride: int = 16
    embedding_size: int = 64
    blocks: int = 2
    steps: int = 2000
    lr: float = 1e-3
    min_lr: float = 1e-4
    warmup_steps: int = 100
    shuffle: bool = True

    def dataset(self) -> TokenDataset:
        """The corpus in windows, a token a character. A subclass may choose other tokens."""
        path = corpus_path(self.corpus)
        return CharDataset(path, self.batch_size, self.context_size, self.stride, shuffle=self.shuffle)


@dataclass
class Run:
    """One trained model: its number of parameters, the loss of every step taken, the loss on the test part."""

    parameters: int
    losses: list[float]
    test_loss: float | None
    trainer: GPTTrainer = field(repr=False)
    dataset: TokenDataset = field(repr=False)


def train(setup: Setup, model: Callable[..., GPT] = GPT, number: int = 0, steps: int | None = None) -> Run:
    """Train `model` (the GPT, or the GPT with some of its options fixed) from seed `number`.

    With `steps`, stop there instead of at the end of the schedule, and leave out the test loss. The seed decides on the
    initial weights and on the order of the windows.
    """
    seed(number)
    dataset = setup.dataset()
    gpt = model(dataset.vocab_size, setup.context_size, setup.embedding_size, setup.blocks)
    trainer = GPTTrainer(gpt, GPTLoss(), AdamWOptimizer(gpt.parameters, lr=setup.lr))
    scheduler = WarmupCosineScheduler(setup.lr, setup.steps, setup.warmup_steps, setup.min_lr)
    wanted = setup.steps if steps is None else steps
    losses = trainer.train(dataset, -(-wanted // len(dataset)), scheduler, max_steps=wanted)
    test_loss = trainer.evaluate(dataset) if steps is None else None
    return Run(sum(tensor.data.size for tensor in gpt.parameters), losses, test_loss, trainer, dataset)


def load_runs(name: str) -> dict[str, Any]:
    """The stored runs of that name, with "setup", "command" and "variants". Raises ValueError if there are none.

    Each variant has "parameters" and, in the order of "seeds", "test_loss" and "losses" (one every ten steps).
    """
    path = FOLDER / f"{name}.json"
    if not path.exists():
        stored = ", ".join(sorted(each.stem for each in FOLDER.glob("*.json"))) or "none"
        raise ValueError(f"no runs are stored as {name!r}, there are: {stored}")
    return json.loads(path.read_text(encoding="utf-8"))


def make_runs(chapter: int, names: Iterable[str] | None = None) -> None:
    """Train every variant and seed of a chapter's experiments that is not stored yet; store each when it is done."""
    folder = Path(__file__).parent / "experiments"
    with_runs = sorted(int(path.stem[2:]) for path in folder.glob("ch[0-9][0-9].py"))
    if chapter not in with_runs:
        known = ", ".join(map(str, with_runs))
        raise ValueError(f"chapter {chapter} has no stored runs that this makes: choose one of {known}")
    made = 0
    for experiment in import_module(f"src.course.experiments.ch{chapter:02d}").EXPERIMENTS:
        if names is not None and experiment.name not in names:
            continue
        stored = _stored(experiment, f"python -m src.course runs {chapter}")
        for variant, model in experiment.variants.items():
            runs = stored["variants"].setdefault(variant, {"parameters": 0, "seeds": [], "test_loss": [], "losses": []})
            for number in experiment.seeds:
                if number in runs["seeds"]:
                    continue
                run = train(experiment.setup, model, number)
                print(f"{experiment.name}, {variant}, seed {number}: {run.test_loss:.4f}", flush=True)
                runs["parameters"] = run.parameters
                runs["seeds"].append(number)
                runs["test_loss"].append(round(run.test_loss or 0.0, 6))
                runs["losses"].append([round(loss, 5) for loss in run.losses[::EVERY]])
                _store(experiment.name, stored)
                made += 1
    if not made:
        print(f"all runs of chapter {chapter} are stored: nothing is missing")


@dataclass(frozen=True)
class Experiment:
    """Variants of the GPT, each trained from the same seeds in the same setup, stored under `name`."""

    name: str
    setup: Setup
    variants: Mapping[str, Callable[..., GPT]]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


def _stored(experiment: Experiment, command: str) -> dict[str, Any]:
    """What is stored of an experiment. Runs of another setup are worthless: they are dropped."""
    fresh = {"command": command, "setup": asdict(experiment.setup), "variants": {}}
    if not (FOLDER / f"{experiment.name}.json").exists():
        return fresh
    stored = load_runs(experiment.name)
    return stored if stored["setup"] == fresh["setup"] else fresh


def _store(name: str, runs: dict[str, Any]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(runs, indent=1)
    # One list of numbers a line keeps the file readable and its changes small.
    text = re.sub(r"\[([^\[\]{}]*)\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    write_atomically(FOLDER / f"{name}.json", (text + "\n").encode())
