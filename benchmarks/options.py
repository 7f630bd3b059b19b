"""What the command line decides for every benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How long and how often to measure.

    rounds: how often the sides take turns. seconds: how long a side computes each time, at least for one step.
    threads: the numbers of threads that each side may use; the best counts. baseline: the file of the plain engine,
    or None. folder: where a figure is written, or None for nowhere.
    """

    rounds: int = 9
    seconds: float = 1.0
    threads: tuple[int, ...] = (1, 2)
    baseline: Path | None = None
    folder: Path | None = None


def say(text: str) -> None:
    """A line of progress."""
    print(text, flush=True)
