"""One source of randomness for the whole engine, the same in every process. Chapter 1 uses it first."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def default_generator() -> np.random.Generator:
    """The generator that layers draw from when none is passed to them. It starts at seed 0 in every process."""
    return np.random.Generator(np.random.PCG64(0))


def seed(n: int) -> None:
    """Put the default generator back to the start of sequence `n`, also for layers that already hold it.

    Raises ValueError for a negative number and TypeError for anything but an integer.

    >>> seed(1); first = default_generator().random()
    >>> seed(1); first == default_generator().random()
    True
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"a seed is an integer such as 0, got {n!r}")
    if n < 0:
        raise ValueError(f"a seed is zero or a positive integer, got {n}")
    default_generator().bit_generator.state = np.random.PCG64(int(n)).state


def choose_generator(generator: np.random.Generator | None) -> np.random.Generator:
    """The generator that was passed, or the default one. Raises TypeError for anything else."""
    if generator is None:
        return default_generator()
    if not isinstance(generator, np.random.Generator):
        raise TypeError(f"generator must be a np.random.Generator such as np.random.default_rng(0), got {generator!r}")
    return generator
