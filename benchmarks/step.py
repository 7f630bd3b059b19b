"""A training step: forward, backward, clipping the gradient, AdamW."""

from __future__ import annotations

from .options import Options
from .report import Row, shown_time
from .side import Contender, take_turns

# batch B, context T, channels C, heads H, blocks
SMALL = {"batch": 4, "context": 32, "size": 64, "heads": 1, "blocks": 2}
NANOGPT = {"batch": 12, "context": 64, "size": 128, "heads": 4, "blocks": 4}
LARGE = {"batch": 32, "context": 128, "size": 256, "heads": 8, "blocks": 4}


def small(options: Options) -> list[Row | str]:
    return [_against_torch(SMALL, 0.70, options)]


def floor(options: Options) -> list[Row | str]:
    """How much of it NumPy itself takes."""
    return [_against_torch(SMALL, None, options, "floor", "the same in bare NumPy calls, without an engine")]


def nanogpt(options: Options) -> list[Row | str]:
    return [_against_torch(NANOGPT, 1.00, options)]


def large(options: Options) -> list[Row | str]:
    return [_against_torch(LARGE, 1.10, options)]


def bare(options: Options) -> list[Row | str]:
    if options.baseline is None or not options.baseline.is_file():
        return [
            "Left out: the chapter-5 model against the plain engine, whose file is not part of this repository; "
            "`--baseline` names it."
        ]
    plain = Contender("benchmarks.baseline:Step", {"path": str(options.baseline.resolve()), **SMALL})
    ours, theirs = take_turns([Contender("benchmarks.ours:BareStep", SMALL), plain], options)
    times = shown_time(ours.median, ours.threads), shown_time(theirs.median, theirs.threads)
    return [Row("training step of the chapter-5 model, the plain engine", 0.20, *times, ours.answers / theirs.answers)]


def _against_torch(
    sizes: dict[str, int], goal: float | None, options: Options, side: str = "ours", what: str = "training step"
) -> Row:
    sides = [Contender(f"benchmarks.{side}:Step", sizes), Contender("benchmarks.theirs:Step", sizes)]
    ours, theirs = take_turns(sides, options)
    times = shown_time(ours.median, ours.threads), shown_time(theirs.median, theirs.threads)
    return Row(f"{what}, {shown(sizes)}", goal, *times, ours.answers / theirs.answers)


def shown(sizes: dict[str, int]) -> str:
    """The sizes, as the table gives them.

    >>> shown(SMALL)
    'B, T, C, heads, blocks = 4, 32, 64, 1, 2'
    """
    return "B, T, C, heads, blocks = " + ", ".join(map(str, sizes.values()))
