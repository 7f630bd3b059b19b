"""The recipe against the clock: 1.88 on tinyshakespeare, in what part of the time of PyTorch's run as published?

The yardstick is nanoGPT's small configuration for a CPU, data/models/nano.toml: 2,000 steps of PyTorch, whose time is
measured on some of them before and after ours. Our side trains data/models/quick.toml, the same sizes, whole, with all
that a run does but its evaluations and checkpoints, and then gives the loss over the whole validation part.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from src.course.corpora import corpus_path
from src.gpt.settings import read_settings
from src.gpt.training import Run

from .options import Options
from .report import Row, shown_time
from .side import ROOT, Contender, Process
from .step import NANOGPT

CONFIGURATION, TARGET, THEIR_STEPS = ROOT / "data" / "models" / "quick.toml", 1.88, 2000


class Training:
    """A run of a configuration from its first step to its last."""

    def __init__(self, configuration: str, text: str):
        self.settings, self.text = read_settings(configuration), Path(text)

    def run(self) -> None:
        """All steps."""
        self.trained = Run(self.settings, self.text, ROOT / "work" / "never-written")
        while not self.trained.finished:
            self.trained.step()

    def loss(self) -> float:
        """The loss of what was trained, over the whole validation part."""
        return self.trained.evaluate()["test_loss"]


def beat_the_clock(options: Options) -> list[Row | str]:
    try:
        text = corpus_path("tinyshakespeare")
    except RuntimeError:
        return [
            "Left out: the recipe against the clock, for want of tinyshakespeare; data/README.md tells where it is."
        ]
    threads = max(options.threads)
    contender = Contender("benchmarks.recipe:Training", {"configuration": str(CONFIGURATION), "text": str(text)})
    before = _their_step(options)
    with Process(contender, threads) as process:
        seconds, loss = process.ask("once", 0.0), process.ask("loss", 0.0)
    theirs = THEIR_STEPS * np.array([before, _their_step(options)])
    reached = f"{CONFIGURATION.stem}.toml, test loss {loss:.3f}"
    if loss > TARGET:
        return [f"Not reached: {TARGET} within {seconds:.0f} s; {reached}."]
    times = shown_time(seconds, threads), shown_time(float(theirs.mean()))
    what = f"{TARGET} on tinyshakespeare ({reached}), {THEIR_STEPS} steps as published"
    return [Row(what, 0.25, *times, seconds / theirs)]


def _their_step(options: Options) -> float:
    """Seconds a step of PyTorch, with the number of threads that is best for it."""
    best = np.inf
    for threads in options.threads:
        with Process(Contender("benchmarks.theirs:Step", NANOGPT), threads) as process:
            if process.ask("time", 0.0) < 4.0 * best:  # else its threads are in each other's way
                best = min(best, process.ask("time", 3.0 * options.seconds))
    return float(best)
