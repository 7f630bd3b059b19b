"""The memory of a training step: how far its peak lies above what was resident before the first."""

from __future__ import annotations

import numpy as np

from .options import Options, say
from .report import Row
from .side import Contender, ask_afresh
from .step import LARGE, shown
from .worker import FORGET_PEAK

STEPS = 5  # the optimizer's averages come with the first, all else has come with the third


def peak(options: Options) -> list[Row | str]:
    if not FORGET_PEAK.exists():
        return ["Left out: the memory of a training step, which is read from Linux's `/proc`."]
    ours = ask_afresh(Contender("benchmarks.ours:Step", LARGE), options, "peak", STEPS)
    theirs = ask_afresh(Contender("benchmarks.theirs:Step", LARGE), options, "peak", STEPS)
    say(f"    ours {_shown(ours)}, theirs {_shown(theirs)}")
    return [Row(f"peak memory of a training step, {shown(LARGE)}", 1.00, _shown(ours), _shown(theirs), ours / theirs)]


def _shown(peaks: np.ndarray) -> str:
    return f"{np.median(peaks) / 2**20:.0f} MB"
