"""Run a reader's answer safely: nothing it does, raises, prints or forgets to end stops the check (all chapters)."""

import contextlib
import functools
import io
import re
import types
import warnings
from collections.abc import Callable
from typing import Any

from src.course.exercise import NotAttempted, Wrong
from src.course.limit import TimeUp, run_limited

ANSWERING_METHODS = ("forward", "__call__", "loss")  # the methods of a reader's class that must return something
LONGEST_INPUT = 120  # characters


def refuse_holes(answer: Any) -> None:
    """Raise `NotAttempted` if the answer is `...` or None, or a list, tuple or dict with such a hole in it."""
    if answer is None or answer is ... or (isinstance(answer, str) and answer.strip() in ("", "...")):
        raise NotAttempted("Put your answer in the place of the three dots and run the cell again.")
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        for part in answer:
            refuse_holes(part)


def find_problem(test: Callable[[Any], str | None], answer: Any, seconds: float) -> str:
    """Return what `test` says against the answer, or what the answer did instead of answering; "" if all is well.

    Raises:
        NotAttempted: if the answer is a stub: a function that returns None or `...` or raises NotImplementedError.
    """
    calls: list[str] = []  # the input of the last call of the reader's function, as text
    watched = _watch(answer, calls)
    try:
        with _quiet():
            return run_limited(lambda: test(watched) or "", seconds)
    except (NotAttempted, KeyboardInterrupt):
        raise
    except NotImplementedError:
        raise NotAttempted("Write the body of your function and run the cell again.") from None
    except Wrong as error:
        return str(error)
    except TimeUp:
        return f"it still runs after {seconds:g} seconds{_for_input(calls)}: does its loop end?"
    except BaseException as error:  # also SystemExit: a reader's exit() must not end the kernel
        text = re.sub(r"0x[0-9a-fA-F]{4,}", "0x…", str(error))
        return f"{type(error).__name__}{_in_line(error, answer)}{_for_input(calls)}: {text}"


@contextlib.contextmanager
def _quiet():
    """Keep what the reader's code prints and warns out of the verdict, which has three lines at most."""
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        yield


def _watch(answer: Any, calls: list[str]) -> Any:
    """A stand-in for a reader's function or class that notes its input and refuses to return nothing."""
    if isinstance(answer, types.FunctionType):
        return _watch_function(answer, calls, skip=0)
    if isinstance(answer, type):
        own = {name: vars(answer)[name] for name in ANSWERING_METHODS if name in vars(answer)}
        watched = {name: _watch_function(method, calls, skip=1) for name, method in own.items()}
        return type(answer)(answer.__name__, (answer,), watched) if watched else answer
    return answer


def _watch_function(function: Callable[..., Any], calls: list[str], skip: int) -> Callable[..., Any]:
    @functools.wraps(function)
    def watched(*arguments: Any, **named: Any) -> Any:
        calls[:] = [_describe(arguments[skip:], named)]
        result = function(*arguments, **named)
        if result is None:
            raise NotAttempted(f"{function.__name__} returned None{_for_input(calls)}: is a `return` missing?")
        if result is ... or (isinstance(result, tuple) and any(part is ... for part in result)):
            raise NotAttempted(f"{function.__name__} returned three dots: put your own code in their place.")
        return result

    return watched


def _describe(arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """The input as text, taken before the call, because the function may overwrite it."""
    from src.course.compare import show

    parts = [show(value) for value in arguments] + [f"{name}={show(value)}" for name, value in named.items()]
    text = ", ".join(parts)
    return text if len(text) <= LONGEST_INPUT else ""


def _for_input(calls: list[str]) -> str:
    return f" for the input {calls[-1]}" if calls and calls[-1] else ""


def _in_line(error: BaseException, answer: Any) -> str:
    """Where in the reader's cell it happened, if the answer is a function or a class with a `forward`."""
    function = answer if isinstance(answer, types.FunctionType) else getattr(answer, "forward", None)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" in line {line} of its cell" if line else ""
