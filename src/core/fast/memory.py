"""Keep freed memory in the process.

The arrays of a training step are large, and live for milliseconds. By default the C library asks the system for each
and gives it back, and the system clears every page anew: half of the time of a step. Told not to, it hands the same
memory out again.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in glibc's malloc.h
KEPT = 1 << 30  # bytes: the size from which an array is given back at once, and how much is kept at the end of the heap


@cache
def keep_freed_memory() -> bool:
    """Tell the C library, once in a process. False where it cannot be told: it is glibc that has the switch."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(option, KEPT) == 1 for option in (MMAP_THRESHOLD, TRIM_THRESHOLD))
