"""The command line: python -m benchmarks [--only NAME ...]."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from . import data, generation, growth, imports, memory, recipe, report, step
from .machine import busy, conditions, load
from .options import Options, say
from .report import Row
from .side import ROOT

BASELINE = ROOT.parent / "shared" / "baselines" / "seed_engine.py"

BENCHMARKS: dict[str, tuple[str, Callable[[Options], list[Row | str]]]] = {
    "step-small": ("training step, B, T, C, heads, blocks = 4, 32, 64, 1, 2", step.small),
    "step-small-floor": ("the same in bare NumPy calls, without an engine", step.floor),
    "step-nanogpt": ("training step, 12, 64, 128, 4, 4", step.nanogpt),
    "step-large": ("training step, 32, 128, 256, 8, 4", step.large),
    "step-bare": ("training step of the chapter-5 model against a plain engine", step.bare),
    "generation": ("200 characters one by one, both with a cache", generation.with_cache),
    "generation-without-cache": ("the same, PyTorch without a cache", generation.without_cache),
    "memory": ("peak memory of a training step", memory.peak),
    "data": ("what is not the model in an epoch over all the plays", data.epoch),
    "growth": ("step time against context and batch, with a figure", growth.step_time),
    "recipe": ("1.88 on tinyshakespeare against the time of PyTorch's run as published", recipe.beat_the_clock),
    "imports": ("import src.core against import numpy", imports.engine),
}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the engine side by side with PyTorch. A run of all of them writes benchmarks/README.md.",
    )
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=BENCHMARKS, help="these; README.md stays as it is")
    parser.add_argument("--rounds", type=_positive(int), default=9, help="how often the sides take turns (9)")
    parser.add_argument("--seconds", type=_positive(float), default=1.0, help="how long each side computes a turn (1)")
    parser.add_argument(
        "--threads", type=_positive(int), nargs="+", default=[1, 2], help="numbers of threads to try (1 2); best counts"
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        default=Path(os.environ.get("BENCHMARK_BASELINE", BASELINE)),
        help="file of the plain engine; also BENCHMARK_BASELINE",
    )
    return parser.parse_args(arguments)


def _positive(kind: type[int] | type[float]) -> Callable[[str], int | float]:
    def convert(text: str) -> int | float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError
        return value

    convert.__name__ = f"positive {kind.__name__}"  # argparse names it when it refuses
    return convert


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    if given.list:
        for name, (text, _) in BENCHMARKS.items():
            print(f"{name:26}{text}")
        return
    folder = report.README.parent if given.only is None else None
    threads = tuple(sorted(set(given.threads)))
    options = Options(given.rounds, given.seconds, threads, given.baseline, folder)
    if busy():
        say(f"Other programs are at work (load {load():.1f}): times will be longer, and ratios less certain.")
    before = conditions(options)
    text = report.render(measure(given.only or list(BENCHMARKS), options), before)
    print(f"\n{text}")
    if folder is not None:
        report.write(text)


def measure(names: list[str], options: Options) -> list[Row | str]:
    """The results of the named benchmarks."""
    results: list[Row | str] = []
    for name in names:
        text, benchmark = BENCHMARKS[name]
        say(f"{name}: {text}")
        results += benchmark(options)
    return results


if __name__ == "__main__":
    main()
