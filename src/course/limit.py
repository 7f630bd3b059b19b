"""Run a reader's function, but not for ever: after two seconds it is interrupted, wherever it is.

A watchdog thread does it on every system. In the main thread, where notebook cells run, it sends SIGINT, the signal of
Jupyter's interrupt button, which also ends a `sleep` on Linux and macOS; in other threads it raises the exception from
outside. The exception is no `Exception`, so `except Exception` in the reader's loop lets it pass. A bare `except:`
swallows it; then it comes again, and in the main thread several times in a row, so that one of them is raised outside
of the `try`. What cannot be interrupted is one call into C that never returns, such as `sum(itertools.count())`.
"""

import _thread
import ctypes
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

Value = TypeVar("Value")
AGAIN = 0.1  # seconds until the next interruption, if one was swallowed


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
        wait = seconds
        while not is_done.wait(wait):
            is_late.set()
            interrupt()
            wait = AGAIN

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
    burst = remaining = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal burst, remaining
        if not is_late.is_set():  # the reader's own interrupt
            if callable(old_handler):
                old_handler(number, frame)
            return
        if remaining == 0:  # the first raises once, the next twice in a row, and so on
            burst += 1
            remaining = burst
        remaining -= 1
        if remaining:
            _thread.interrupt_main()  # comes back here at the next instruction that looks for signals
        raise TimeUp

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
