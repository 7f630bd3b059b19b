"""Run a reader's function, but not for ever: after two seconds it is interrupted, wherever it is.

A signal does it where there are timers (Linux, macOS) and the code runs in the main thread, as notebook cells do: it
also ends a `sleep`. On Windows, and in other threads, a watchdog raises the exception from outside. Either way the
exception is no `Exception`, so `except Exception` in the reader's loop lets it pass, and it is raised again ten times
a second, so a bare `except:` holds it up only for a moment. What cannot be interrupted is a single call into C that
never comes back, such as `sum(itertools.count())`.
"""

import ctypes
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
AGAIN = 0.1  # seconds between two interruptions, if the first was swallowed


class TimeUp(BaseException):
    """The time is over."""


def run_limited(function: Callable[[], Value], seconds: float = 2.0) -> Value:
    """Return `function()`, or raise `TimeUp` after `seconds`.

    >>> run_limited(lambda: 6 * 7)
    42
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        return _run_with_timer(function, seconds)
    return _run_with_watchdog(function, seconds)


def _run_with_timer(function: Callable[[], Value], seconds: float) -> Value:
    def ring(signal_number: int, frame: object) -> None:
        raise TimeUp

    old_handler = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        return function()
    finally:

        def put_back() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old_handler or signal.SIG_DFL)

        _finish(put_back)


def _run_with_watchdog(function: Callable[[], Value], seconds: float) -> Value:
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
    done = threading.Event()

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            raise_in_thread(thread, ctypes.py_object(TimeUp))
            wait = AGAIN

    watchdog = threading.Thread(target=watch, daemon=True)
    watchdog.start()
    try:
        return function()
    finally:

        def put_back() -> None:
            done.set()
            watchdog.join()
            raise_in_thread(thread, None)  # one that was sent and has not arrived yet

        _finish(put_back)


def _finish(put_back: Callable[[], None]) -> None:
    """Call `put_back` until it comes through: an interruption may arrive while it runs."""
    while True:
        try:
            return put_back()
        except TimeUp:
            continue
