"""Generating text one character at a time, in nanoGPT's CPU configuration with context 256."""

from __future__ import annotations

from .options import Options
from .report import Row, shown_time
from .side import Contender, take_turns

SETTINGS = {"context": 256, "size": 128, "heads": 4, "blocks": 4, "steps": 200}


def with_cache(options: Options) -> list[Row | str]:
    return [_against("Generation", "with cache", 0.70, options)]


def without_cache(options: Options) -> list[Row | str]:
    return [_against("GenerationWithoutCache", "without cache", 0.15, options)]


def _against(theirs: str, how: str, goal: float, options: Options) -> Row:
    sides = [Contender("benchmarks.ours:Generation", SETTINGS), Contender(f"benchmarks.theirs:{theirs}", SETTINGS)]
    own, other = take_turns(sides, options)
    times = shown_time(own.median, own.threads), shown_time(other.median, other.threads)
    return Row(f"generating {SETTINGS['steps']} characters, PyTorch {how}", goal, *times, own.answers / other.answers)
