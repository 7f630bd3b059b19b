"""What a measurement depends on: machine, versions, and how busy the machine is."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
from pathlib import Path

import numpy as np

from .options import Options

BUSY = 0.5  # programs that want a processor, for each that there is


def conditions(options: Options) -> str:
    """One paragraph for the report."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index, call-overload]
    threads = " or ".join(map(str, options.threads))
    return (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, {processor()}, {cores()} cores, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__} with "
        f"{blas['name']} {blas['version']}, PyTorch {importlib.metadata.version('torch')}; {options.rounds} rounds of "
        f"{options.seconds:g} s a side, {threads} threads; load before: {load():.1f}."
    )


def busy() -> bool:
    """True if other programs would disturb a measurement."""
    return load() > BUSY * cores()


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> float:
    """Programs that wanted a processor in the last minute, on average; NaN where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def processor() -> str:
    """The name of the processor, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    named = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or "unknown processor"
