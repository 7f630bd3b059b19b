"""Keep freed memory in the process.

A training step makes many arrays that live for milliseconds. Left to itself, the C library may give their memory back
at the end of each step, and the system clears every page anew in the next.
"""

from __future__ import annotations

import sys
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in glibc's malloc.h
LARGEST = 32 << 20  # bytes of an array that is still kept; glibc takes no higher value
KEPT = 1 << 30  # bytes of free memory that are kept at the end of the heap


@cache
def keep_freed_memory() -> bool:
    """Tell the C library, once in a process. False where it cannot be told: it is glibc that has the switch."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(MMAP_THRESHOLD, LARGEST) == 1 and mallopt(TRIM_THRESHOLD, KEPT) == 1
