"""One side of a comparison, in a process of its own that stays alive and answers one line with one number.

    python -m benchmarks.worker benchmarks.ours:Step '{"batch": 4, ...}'

"time S" runs one step unmeasured, then steps for S seconds, at least one, and answers seconds a step. "peak N" runs N
steps and answers by how many bytes the peak of the resident memory exceeds what was resident before. "once 0" answers
the seconds of one run, "loss 0" the loss that it ended with.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, Protocol

STATUS, FORGET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Runnable(Protocol):
    def run(self) -> object: ...


def make(name: str, settings: dict) -> Runnable:
    """What "package.module:Class" names, made with these settings."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)(**settings)


def time_steps(side: Runnable, seconds: float) -> float:
    """Seconds a step; the first, which wakes threads and fills caches, does not count."""
    side.run()
    steps, start = 0, time.perf_counter()
    while True:
        side.run()
        steps += 1
        passed = time.perf_counter() - start
        if passed >= seconds:
            return passed / steps


def peak_growth(side: Runnable, steps: float) -> float:
    """Bytes that steps need, at their peak, beyond what was resident before the first. On Linux only."""
    FORGET_PEAK.write_text("5", encoding="ascii")  # what importing needed once is not what a step needs
    before = _status("VmRSS")
    for _ in range(int(steps)):
        side.run()
    return _status("VmHWM") - before


def time_once(side: Runnable, _: float) -> float:
    """Seconds of one run, its first step and all."""
    start = time.perf_counter()
    side.run()
    return time.perf_counter() - start


def loss(side: Any, _: float) -> float:
    """What the side says of the loss after its run."""
    return side.loss()


def _status(field: str) -> float:
    found = re.search(rf"^{field}:\s+(\d+) kB$", STATUS.read_text(encoding="ascii"), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{STATUS} has no line {field}")
    return 1024.0 * int(found[1])


ANSWERS = {"time": time_steps, "peak": peak_growth, "once": time_once, "loss": loss}


def main() -> None:
    side = make(sys.argv[1], json.loads(sys.argv[2]))
    for line in sys.stdin:
        question, number = line.split()
        print(ANSWERS[question](side, float(number)), flush=True)


if __name__ == "__main__":
    main()
