"""Run a reader's function, but not for ever: after two seconds it is interrupted, wherever it is.

A watchdog thread does it on every system. In the main thread, where notebook cells run, it sends SIGINT, the signal of
Jupyter's interrupt button, which also ends a `sleep` on Linux and macOS; in other threads it raises the exception from
outside. The exception is no `Exception`, so `except Exception` in the reader's loop lets it pass. A bare `except:`
swallows it; then it comes again and again, until it is raised where the loop jumps back, outside of the `try`. What
cannot be interrupted is one call into C that never returns, such as `sum(itertools.count())`.
"""

import _thread
import ctypes
import itertools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

Value = TypeVar("Value")
PAUSES = (0.1, 0.01)  # seconds from the first interruption to the second, and between all later ones


class TimeUp(BaseException):
    """The time is over."""


def run_limited(function: Callable[[], Value], seconds: float = 2.0) -> Value:
    """Return `function()`, or raise `TimeUp` after `seconds`.

    >>> run_limited(lambda: 6 * 7)
    42
    """
    is_late, is_done = threading.Event(), threading.Event()
    in_main = threading.current_thread() is threading.main_thread()
    interrupt, put_back = _by_signal(is_late) if in_main else _by_exception()

    def watch() -> None:
        for pause in itertools.chain((seconds,), PAUSES, itertools.repeat(PAUSES[-1])):
            if is_done.wait(pause):
                return
            is_late.set()
            interrupt()

    watchdog = threading.Thread(target=watch, daemon=True)
    try:
        watchdog.start()
        return function()
    finally:
        while True:
            try:
                is_done.set()
                watchdog.join()
                put_back()
                break
            except TimeUp:  # an interruption on its way arrived here: finish all the same
                continue


def _by_signal(is_late: threading.Event) -> tuple[Callable[[], None], Callable[[], object]]:
    """How to interrupt the main thread, and how to put its handler back."""
    old_handler = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

    def handle(number: int, frame: FrameType | None) -> None:
        if is_late.is_set():
            raise TimeUp
        if callable(old_handler):  # the reader's own interrupt
            old_handler(number, frame)

    def interrupt() -> None:
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:  # Windows
            _thread.interrupt_main()

    signal.signal(signal.SIGINT, handle)
    return interrupt, lambda: signal.signal(signal.SIGINT, old_handler)


def _by_exception() -> tuple[Callable[[], None], Callable[[], object]]:
    """How to interrupt this thread, and how to call back an exception that has not arrived yet."""
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return lambda: raise_in_thread(thread, ctypes.py_object(TimeUp)), lambda: raise_in_thread(thread, None)
