"""Two sides take turns: each in processes of its own, one for each number of threads, and the best number counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np

from .options import Options, say

ROOT = Path(__file__).resolve().parents[1]
HOPELESS = 4.0  # so many times slower than one thread: spinning against other programs, not worth waiting for


@dataclass(frozen=True)
class Contender:
    """What a side computes: the name of a class with `run()`, and the settings to make it with."""

    factory: str
    settings: dict

    @property
    def name(self) -> str:
        """ours, theirs or baseline: the module of the class."""
        return self.factory.partition(":")[0].rpartition(".")[2]


class Process:
    """A contender at work with a number of threads."""

    def __init__(self, contender: Contender, threads: int):
        command = [sys.executable, "-m", "benchmarks.worker", contender.factory, json.dumps(contender.settings)]
        self.contender, self.threads = contender, threads
        self._worker = subprocess.Popen(
            command,
            cwd=ROOT,
            env=_environment(contender, threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, question: str, number: float) -> float:
        """The worker's answer. Raises RuntimeError if it has ended, its own message being on the screen."""
        assert self._worker.stdin is not None and self._worker.stdout is not None  # both are pipes
        try:
            self._worker.stdin.write(f"{question} {number}\n")
            self._worker.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self._worker.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.contender} has ended with code {self._worker.wait()}: see its message above")
        return float(answer)

    def __str__(self) -> str:
        return f"{self.contender.factory.removeprefix('benchmarks.')}, {self.threads} thread(s)"

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.kill()
        self._worker.communicate()


def _environment(contender: Contender, threads: int) -> dict[str, str]:
    """The engine has threads of its own and holds BLAS at one; all else computes with those of its libraries."""
    blas = 1 if contender.name in ("ours", "recipe") else threads
    counts = {"ENGINE_THREADS": threads, "OPENBLAS_NUM_THREADS": blas, "OMP_NUM_THREADS": blas, "MKL_NUM_THREADS": blas}
    return os.environ | {name: str(count) for name, count in counts.items()}


@dataclass(frozen=True)
class Turns:
    """What a side answered in each round, with the number of threads that was best for it."""

    threads: int
    answers: np.ndarray

    @property
    def median(self) -> float:
        return float(np.median(self.answers))


def take_turns(contenders: list[Contender], options: Options) -> list[Turns]:
    """Seconds a step of each contender in every round: one after the other, round by round."""
    with ExitStack() as stack:
        sides = [
            [stack.enter_context(Process(contender, threads)) for threads in options.threads]
            for contender in contenders
        ]
        sides = [_worthwhile(side) for side in sides]
        running = [process for side in sides for process in side]
        rounds = []
        for number in range(options.rounds):
            rounds.append([process.ask("time", options.seconds) for process in running])
            shown = (f"{process}: {1e3 * seconds:.2f} ms" for process, seconds in zip(running, rounds[-1], strict=True))
            say(f"    round {number + 1} of {options.rounds}: {'; '.join(shown)}")
    answers = dict(zip(running, np.array(rounds).T, strict=True))
    return [
        min((Turns(process.threads, answers[process]) for process in side), key=attrgetter("median")) for side in sides
    ]


def _worthwhile(side: list[Process]) -> list[Process]:
    """The processes of one contender but for those whose threads are in each other's way, after their first steps."""
    first = [process.ask("time", 0.0) for process in side]
    limit = HOPELESS * first[0]
    for process, seconds in zip(side, first, strict=True):
        if seconds > limit:
            say(f"    {process} left out: {1e3 * seconds:.2f} ms")
    return [process for process, seconds in zip(side, first, strict=True) if seconds <= limit]


def ask_afresh(contender: Contender, options: Options, question: str, number: float) -> np.ndarray:
    """Answers of new processes with the most threads, one for each round."""
    answers = []
    for _ in range(options.rounds):
        with Process(contender, max(options.threads)) as process:
            answers.append(process.ask(question, number))
    return np.array(answers)
