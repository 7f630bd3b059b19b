"""The one place where the fast forms are switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_on = True


def is_on() -> bool:
    """True if operations take their fast form: always, but inside `plain()`."""
    return _on


@contextmanager
def plain() -> Iterator[None]:
    """Inside `with plain():` the whole process computes with the plain forms that the chapters explain.

    >>> with plain():
    ...     is_on()
    False
    """
    global _on
    before, _on = _on, False
    try:
        yield
    finally:
        _on = before
