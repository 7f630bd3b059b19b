"""A training run in a folder, as `python -m src.gpt train` does it. Chapter 10 uses it.

The folder holds `checkpoint.safetensors`, from which the run goes on if it was stopped, `log.json` with the losses, and
at the end `model.safetensors`. What is written depends on the settings and the text alone, not on times, paths or on
how often the run was stopped.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from tqdm import tqdm

from ..core import (
    AdamWOptimizer,
    MuonOptimizer,
    Optimizer,
    WarmupCosineScheduler,
    WarmupLinearScheduler,
    load_checkpoint,
    seed,
)
from ..core.checkpoint import write_atomically
from .data import TokenDataset, read_utf8
from .loss import GPTLoss
from .model import GPT
from .sampling import generate
from .saved import build_gpt, save_model
from .settings import Settings, TextSettings, TrainingSettings, settings_from
from .tokenizer import BytePairTokenizer, CharTokenizer
from .trainer import GPTTrainer


class Run:
    """One run: its data, model, optimizer and schedule, built from settings; `steps` says how far it has come.

    The folder is made by the first `save`. `log` has a row for every evaluation: the step, the mean training loss since
    the row before, the mean test loss over the test part, cut into windows that do not overlap.
    Raises ValueError for settings that nothing can be built of.
    """

    def __init__(self, settings: Settings, text: Path, folder: Path):
        self.settings, self.folder = settings, folder
        content, training, sizes = read_utf8(text), settings.training, settings.model
        seed(training.seed)
        self.tokenizer = _build_tokenizer(settings.text, content)
        data = partial(TokenDataset, text, self.tokenizer, training.batch_size, sizes.context_size)
        self.dataset = data(stride=training.stride, split=settings.text.split, shuffle=True)
        self.test = data(stride=sizes.context_size, split=settings.text.split, drop_last=False)
        self.model = build_gpt({"vocab_size": self.tokenizer.vocab_size} | asdict(sizes))
        self.trainer = GPTTrainer(self.model, GPTLoss(), _build_optimizer(training, self.model))
        self.scheduler = _build_scheduler(training)
        self.log: list[dict[str, Any]] = []
        self.losses: list[float] = []  # of the steps since the last row of the log
        self.about = self._about(text.name, content)
        self.start = "\n" if "\n" in content else content[0]  # what a sample continues

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self.trainer.steps

    @property
    def finished(self) -> bool:
        return self.steps >= self.settings.training.steps

    def step(self) -> float:
        """Take one step; return its loss, which it had before its weights changed."""
        (loss,) = self.trainer.train(self.dataset, 1, self.scheduler, max_steps=1)
        self.losses.append(loss)
        return loss

    def evaluate(self) -> dict[str, Any]:
        """Append a row to the log, and return it."""
        mean = sum(self.losses) / len(self.losses) if self.losses else None
        self.log.append({"step": self.steps, "training_loss": mean, "test_loss": self.trainer.evaluate(self.test)})
        self.losses = []
        return self.log[-1]

    def save(self) -> None:
        """Write the checkpoint, then the log that belongs to it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = {"about": self.about, "log": self.log, "losses": self.losses}
        self.trainer.save(self.folder / "checkpoint.safetensors", self.dataset, notes)
        text = json.dumps(self.about | {"log": self.log}, indent=1)
        write_atomically(self.folder / "log.json", (text + "\n").encode())

    def resume(self) -> bool:
        """Go on from the folder's checkpoint, if there is one; say whether there was.

        Raises ValueError when it is damaged, or belongs to a run with other settings or another text.
        """
        path = self.folder / "checkpoint.safetensors"
        if not path.exists():
            return False
        try:
            self._check_same(load_checkpoint(path).get("metadata"))
            notes = self.trainer.load(path, self.dataset)
        except ValueError as error:
            raise ValueError(f"{error}\nTo train anew, choose another --out, or delete {self.folder}") from None
        self.log, self.losses = notes["log"], notes["losses"]
        return True

    def finish(self) -> Path:
        """Write the model with what it came from; return the path."""
        path = self.folder / "model.safetensors"
        save_model(path, self.model, self.tokenizer, self.about | self.log[-1], self.settings.training.half)
        return path

    def sample(self, length: int = 300) -> str:
        """A text by the model, always the same for the same weights. Takes nothing from the run's own generator."""
        start = self.tokenizer.encode(self.start)
        generator = np.random.default_rng(self.settings.training.seed)
        return self.tokenizer.decode(generate(self.model, start, length, temperature=0.8, generator=generator))

    def _about(self, name: str, content: str) -> dict[str, Any]:
        """What a reader has to know to make this run again, and to compare its losses with others."""
        boundary = int(len(content) * self.settings.text.split)
        tested = len(self.tokenizer.encode(content[boundary:]))
        settings = asdict(self.settings)
        settings["text"]["file"] = name  # where it lies does not matter
        return {
            "settings": settings,
            "text_characters": len(content),
            "text_sha256": hashlib.sha256(content.encode()).hexdigest(),
            "vocab_size": self.tokenizer.vocab_size,
            "test_characters_per_token": (len(content) - boundary) / tested,
            "parameters": sum(tensor.data.size for tensor in self.model.parameters),
        }

    def _check_same(self, notes: Any) -> None:
        """Raise ValueError unless a checkpoint's notes are of a run with these settings and this text."""
        begun = notes.get("about") if isinstance(notes, dict) else None
        if not isinstance(begun, dict):
            raise ValueError(f"the checkpoint in {self.folder} is of no run of `python -m src.gpt train`")
        settings = asdict(settings_from(begun.get("settings", {})))  # what was not yet a setting had its default
        before, now = _flat(begun | {"settings": settings}), _flat(self.about)
        differ = [name for name in before | now if before.get(name) != now.get(name)]
        if differ:
            listed = ", ".join(f"{name} was {before.get(name)!r}, is {now.get(name)!r}" for name in differ)
            raise ValueError(f"the run in {self.folder} was begun with other settings: {listed}")


def train(run: Run, asked: Sequence[object], report: Callable[[str], None], bar: tqdm) -> bool:
    """Take the steps that are missing, and save; say whether all are taken. Stops when there is something in `asked`.

    A run that is stopped between two steps and goes on later writes the same bytes as one that was not.
    """
    every, started = run.settings.training, time.monotonic()
    if not run.log:
        report(_line(run, run.evaluate(), started))
    while not run.finished and not asked:
        bar.set_postfix(loss=f"{run.step():.3f}", refresh=False)
        bar.update()
        if run.finished or run.steps % every.evaluate_every == 0:
            report(_line(run, run.evaluate(), started))
        if run.finished or run.steps % every.save_every == 0:
            run.save()
    if not run.finished:
        run.save()
    return run.finished


@contextmanager
def stop_on_interrupt() -> Iterator[list[int]]:
    """Inside, a first Ctrl-C only fills the list, so that a step is never cut in two; a second one stops at once."""
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)
        print("\nstopping after this step; Ctrl-C again stops at once", file=sys.stderr, flush=True)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def _line(run: Run, row: dict[str, Any], started: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    total = run.settings.training.steps
    trained = "" if row["training_loss"] is None else f"training loss {row['training_loss']:.4f}, "
    place = f"step {row['step']:>{len(str(total))}} of {total}"
    return f"{place}: {trained}test loss {row['test_loss']:.4f}  ({minutes}:{seconds:02})"


def _build_tokenizer(settings: TextSettings, content: str) -> CharTokenizer | BytePairTokenizer:
    """Merges are learned on the training part alone; a character that only the test part has is still a character."""
    if settings.tokenizer == "characters":
        return CharTokenizer.from_text(content)
    return BytePairTokenizer.train(content[: int(len(content) * settings.split)], settings.vocab_size)


def _build_optimizer(training: TrainingSettings, model: GPT) -> Optimizer:
    """The optimizer of that name (settings.OPTIMIZERS)."""
    betas = (training.betas[0], training.betas[1])
    if training.optimizer == "muon":
        matrices = model.block_matrices()
        return MuonOptimizer(
            model.parameters, matrices, training.lr, training.momentum, betas, weight_decay=training.weight_decay
        )
    return AdamWOptimizer(model.parameters, training.lr, betas, weight_decay=training.weight_decay)


def _build_scheduler(training: TrainingSettings) -> WarmupCosineScheduler:
    """The schedule of that name (settings.SCHEDULES)."""
    kind = WarmupLinearScheduler if training.schedule == "linear" else WarmupCosineScheduler
    return kind(training.lr, training.steps, training.warmup_steps, training.min_lr)


def _flat(about: dict[str, Any]) -> dict[str, Any]:
    """Each setting and each fact by its own name."""
    tables = about.get("settings", {})
    settings = {f"{name} in [{table}]": value for table, values in tables.items() for name, value in values.items()}
    return settings | {name: value for name, value in about.items() if name != "settings"}
