"""The one place where the fast forms are switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_on: ContextVar[bool] = ContextVar("fast", default=True)  # each thread has its own


def is_on() -> bool:
    """True if operations take their fast form: always, but inside `plain()`."""
    return _on.get()


@contextmanager
def plain() -> Iterator[None]:
    """Inside `with plain():` this thread computes with the plain forms that the chapters explain.

    The two differ by rounding, and where a model drops: the fast form may draw other numbers (see layers.py).

    >>> with plain():
    ...     is_on()
    False
    """
    before = _on.get()
    _on.set(False)
    try:
        yield
    finally:
        _on.set(before)
