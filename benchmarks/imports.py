"""How long `import src.core` takes, against `import numpy`, each in new processes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from .options import Options
from .report import Row, shown_time
from .side import ROOT

CODE = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
TIMES = 5  # as many for each round: they are short


def engine(options: Options) -> list[Row | str]:
    seconds("src.core"), seconds("numpy")  # the first import also compiles
    pairs = np.array([(seconds("src.core"), seconds("numpy")) for _ in range(TIMES * options.rounds)])
    ours, theirs = map(shown_time, np.median(pairs, axis=0))
    return [Row("`import src.core`, `import numpy`", 1.20, ours, theirs, pairs[:, 0] / pairs[:, 1])]


def seconds(module: str) -> float:
    """The time of the import alone, without starting Python."""
    command = [sys.executable, "-c", CODE.format(module)]
    return float(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
