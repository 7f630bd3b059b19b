"""Share the parts of an operation among a few threads. NumPy computes outside the interpreter lock, so they overlap.

Parts are cut by the shapes alone and each writes its own piece of the result, so the result does not depend on how many
threads there are. The BLAS library inside NumPy has threads of its own, which wait by spinning: from the first fast
operation on it is held at one, if we may use more than one ourselves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .memory import keep_freed_memory

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

MOST = 4  # more threads than that find too little to do in models of this size
WORTHWHILE = 8_000_000  # multiplications in products, below which handing over costs more than it saves
PASS = 4  # as many multiplications take as long as one pass over a number in the cache
BLOCK = 1 << 17  # numbers, half a megabyte of float32: a few such arrays fit the cache, and calls between them are few

Task = Callable[[], object]


def share(tasks: Iterable[Task], work: int) -> None:
    """Run all tasks, in any order. `work` is about how many multiplications they are: the caller does few alone."""
    tasks = list(tasks)
    waiting = iter(tasks)  # whoever is free takes the next

    def take() -> None:
        for task in waiting:
            task()

    helpers = _submit(take, min(count(), len(tasks)) - 1) if len(tasks) > 1 and worth_sharing(work) else []
    try:
        take()
    finally:  # one that has not begun is not needed any more; of the others none may go on behind the caller's back
        errors = [helper.exception() for helper in helpers if not helper.cancel()]
    for error in errors:
        if error is not None:
            raise error


def _submit(take: Callable[[], None], wanted: int) -> list[Future]:
    """`take` handed over to so many threads; to fewer or none if the system or a program at its end starts no more."""
    helpers: list[Future] = []
    try:
        if (pool := _pool()) is not None:
            for _ in range(wanted):
                helpers.append(pool.submit(copy_context().run, take))  # with the caller's np.errstate
    except RuntimeError:  # the main thread has ended: what runs in others goes on without help
        pass
    return helpers


class _Apart(threading.local):
    """Whether this thread runs a task that has its thread for itself: what it would share it does alone."""

    busy = False


_apart = _Apart()


def run_apart(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of large tasks, each run by one thread from beginning to end; a task alone may share its parts."""
    if len(tasks) == 1:
        return [tasks[0]()]
    results: list[Any] = [None] * len(tasks)

    def alone(index: int) -> None:
        before, _apart.busy = _apart.busy, True
        try:
            results[index] = tasks[index]()
        finally:
            _apart.busy = before

    share([partial(alone, index) for index in range(len(tasks))], WORTHWHILE)
    return results


def worth_sharing(work: int) -> bool:
    """True if so many operations are worth handing over, and this thread is not there for a task of `run_apart`."""
    return work >= WORTHWHILE and not _apart.busy


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Consecutive slices of `rows` rows, `width` numbers each, that are about as large as BLOCK."""
    step = max(1, BLOCK // max(width, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def one_block(numbers: int) -> bool:
    """True if so many numbers are not cut into blocks."""
    return numbers <= BLOCK


def share_blocks(work: Callable[..., Any], *arrays: np.ndarray, passes: int = 8, width: int | None = None) -> list[Any]:
    """`work(*pieces)` for all blocks of rows of arrays that have equally many; the results, in order.

    `width` is how many numbers `work` has in hand for each row, those of the first array unless it is given, `passes`
    how often it goes through them.
    """
    rows = len(arrays[0])
    numbers = arrays[0].size if width is None else rows * width
    if one_block(numbers):
        return [work(*arrays)]
    parts = list(blocks(rows, numbers // rows))
    results: list[Any] = [None] * len(parts)

    def store(index: int, part: slice) -> None:
        results[index] = work(*[array[part] for array in arrays])

    share([partial(store, *each) for each in enumerate(parts)], numbers * passes * PASS)
    return results


@lru_cache(maxsize=64)
def filled(count: int, value: float, dtype: np.dtype) -> np.ndarray:
    """The column (count, 1) of one number, read-only: `x @ filled(...)` adds up rows, faster than NumPy does."""
    column = np.full((count, 1), value, dtype=dtype)
    column.flags.writeable = False
    return column


@lru_cache(maxsize=64)
def ones(count: int, dtype: np.dtype) -> np.ndarray:
    """(count,), read-only: `ones(...) @ x` adds up columns."""
    return filled(count, 1.0, dtype).reshape(-1)


@cache
def count() -> int:
    """How many threads share the work: the processors this process may use, at most MOST; ENGINE_THREADS overrides."""
    wanted = os.environ.get("ENGINE_THREADS", "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ValueError(f"ENGINE_THREADS is a number of threads, 1 or more, got {wanted!r}: change or unset it")
        return int(wanted)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MOST)


@cache
def prepare() -> bool:
    """Before the first fast operation: keep freed memory, and hold BLAS at one thread. False if it cannot be held.

    Two of its threads wait for each other at every product: beside another busy program that takes many times as long.
    """
    keep_freed_memory()
    if count() == 1:
        return True  # one processor, or threads were declined: then BLAS has its own settings
    try:
        from threadpoolctl import threadpool_limits  # imported when needed: `import src.core` stays quick
    except ImportError:
        return False
    threadpool_limits(limits=1, user_api="blas")
    return True


@cache
def _pool() -> ThreadPoolExecutor | None:
    """The threads, or None if there is one processor or BLAS cannot be held at one thread."""
    if count() == 1 or not prepare():
        return None
    from concurrent.futures import ThreadPoolExecutor

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of these threads
    return ThreadPoolExecutor(count() - 1, thread_name_prefix="engine")
