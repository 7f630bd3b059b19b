"""Compare a reader's numbers with the right ones, and name the slip if it is a common one (all chapters).

Messages say what is wrong with the reader's value and never what the right one is.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from src.course.exercise import NotAttempted, Wrong

MOST_ENTRIES = 12  # an array with more is shown by its shape
EXACT = 1e-6  # how well a slip that is only scaled, moved or turned must fit


def compare(
    answer: Any,
    expected: Any,
    tolerance: float = 5e-4,
    name: str = "your value",
    known: Mapping[str, Any] | None = None,
) -> str | None:
    """Return None if `answer` equals `expected`, else one sentence about the difference.

    `tolerance` is absolute for values up to 1 and relative above: the default accepts three decimals, which suits
    numbers worked out by hand; a function's result deserves 1e-5. `known` maps messages to the wrong values that
    they are about, such as {"this is PyTorch's layout: transpose": weight.T}; they come before the general slips.
    Only a right number with too few decimals is called so first, unless a known mistake leads to exactly that number.

    Raises:
        Wrong: if `answer` is not numbers; NotAttempted: if it has a hole.

    >>> compare("2/7", 0.285714), compare([0.2857, "5/7"], [2 / 7, 5 / 7])
    (None, None)
    >>> compare(0.3, 2 / 7)
    'your value is rounded too early: keep at least 3 decimals'
    >>> compare([[1, 2], [3, 5]], [[1, 2], [3, 4]], name="the output")
    'the output: yours is 5 at [1, 1] (3 of 4 entries are right)'
    """
    got, want = to_array(answer, name), to_array(expected)
    if want.ndim == 0 and got.size == 1:
        got = got.reshape(())
    if _close(got, want, tolerance):
        return None
    near = {message: value for message, value in (known or {}).items() if _close(got, to_array(value), tolerance)}
    exact = [message for message, value in near.items() if _close(got, to_array(value), EXACT)]
    rounded = [f"{name} {words}" for fits, words in _roundings(got, want, tolerance) if fits]
    if near:
        return (exact + rounded + list(near))[0]
    if got.shape != want.shape:
        return _shape_message(got, want, tolerance, name)
    if not np.isfinite(got).all() and np.isfinite(want).all():
        return f"{_yours(name)} is {show(got[~np.isfinite(got)][0])}{_place(~np.isfinite(got))}"
    if rounded:
        return rounded[0]
    slip = next((message for fits, message in _slips(got, want, tolerance) if fits), None)
    return f"{name} {slip}" if slip else _first_difference(got, want, tolerance, name)


def choose(answer: Any, right: str, others: Mapping[str, str]) -> str | None:
    """Compare a chosen word or letter; `others` maps each wrong choice to its own message.

    >>> choose(" B ", "b", {"a": "a is fine: look at the mask"})
    >>> choose("a", "b", {"a": "a is fine: look at the mask"})
    'a is fine: look at the mask'
    >>> choose("x", "b", {"a": "..."})
    "choose one of a, b; yours is 'x'"
    """
    word = str(answer).strip().lower()
    if word == right:
        return None
    return others.get(word, f"choose one of {', '.join(sorted([right, *others]))}; yours is {word!r}")


def to_array(value: Any, name: str = "your value") -> np.ndarray:
    """A number, "2/7", "28.57%", a Fraction, a nested list of these, an array or a tensor as a float64 array.

    Raises:
        Wrong: if it is none of these; NotAttempted: if a hole is left in it.

    >>> to_array(["2/7", Fraction(1, 2), "50%"]).round(4).tolist()
    [0.2857, 0.5, 0.5]
    """
    if hasattr(value, "detach"):  # a PyTorch tensor, without importing PyTorch
        value = value.detach().cpu().numpy()
    elif isinstance(getattr(value, "data", None), np.ndarray):  # a Tensor of src.core; an array's own .data is memory
        value = value.data
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            return value.astype(np.float64)
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return np.array(_to_number(value, name))
    parts = [to_array(part, name) for part in value]
    shapes = sorted({part.shape for part in parts})
    if len(shapes) > 1:
        raise Wrong(f"{name} must have rows of equal length, yours have the shapes {', '.join(map(str, shapes))}")
    return np.array(parts, dtype=np.float64)


def show(value: Any) -> str:
    """A value as short, plain text, the same on every machine.

    >>> show(2 / 7), show(np.float32(-0.0)), show([[1, 0.5], [0, 1 / 3]]), show(np.zeros((8, 16)))
    ('0.2857', '0', '[[1, 0.5], [0, 0.3333]]', 'an array of shape (8, 16)')
    """
    if value is None or isinstance(value, str | bool | np.bool_):
        return repr(value.item() if isinstance(value, np.bool_) else value)
    try:
        array = to_array(value)
    except (Wrong, NotAttempted):
        return getattr(value, "__name__", type(value).__name__)
    return f"an array of shape {array.shape}" if array.size > MOST_ENTRIES else _show_numbers(array.tolist())


def _show_numbers(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_show_numbers(part) for part in value) + "]"
    return f"{value + 0.0:.4g}"  # + 0.0 turns -0.0 into 0.0


def _to_number(value: Any, name: str) -> float:
    if value is None or value is ... or value == "...":
        raise NotAttempted("A hole is left in your answer: put a number in the place of each three dots.")
    try:
        if isinstance(value, str):
            text = re.sub(r"\s*([/%+-])\s*", r"\1", value.strip())  # "2 / 7"; but "4 2/3" is no number
            return float(Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text))
        return float(value)
    except (TypeError, ValueError, ZeroDivisionError):
        shown = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
        raise Wrong(f'{name} must be made of numbers such as 0.25 or "1/4", there is {shown} in it') from None


def _close(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    return got.shape == want.shape and bool(_near(got, want, tolerance).all())


def _near(got: np.ndarray, want: np.ndarray, tolerance: float) -> np.ndarray:
    """Entry by entry; equal infinities are near, NaN never is."""
    with np.errstate(invalid="ignore"):
        close = np.abs(got - want) <= tolerance * np.maximum(1.0, np.abs(want))
    return (got == want) | (close & np.isfinite(want))  # infinity allows for no tolerance


def _shape_message(got: np.ndarray, want: np.ndarray, tolerance: float, name: str) -> str:
    if got.ndim >= 2 and _close(np.swapaxes(got, -1, -2), want, tolerance):
        return f"{name} has the right numbers, transposed: rows and columns are swapped"
    if got.size == want.size and _close(got.reshape(want.shape), want, tolerance):
        return f"{name} has the right numbers in the shape {got.shape}, wanted is {want.shape}"
    return f"{name} has the shape {got.shape}, wanted is {want.shape}"


def _slips(got: np.ndarray, want: np.ndarray, tolerance: float) -> Iterator[tuple[bool, str]]:
    """Common slips, the likeliest first: does it fit, and what to say about it."""

    def equals(value: np.ndarray) -> bool:
        return _close(got, value, max(tolerance, EXACT))

    yield equals(100 * want), "is in percent: give fractions of 1"
    yield equals(-want), "has the wrong sign"
    if want.ndim >= 2 and want.shape[-1] == want.shape[-2]:
        yield equals(np.swapaxes(want, -1, -2)), "is transposed: rows and columns are swapped"
    for factor, words in ((2.0, "twice too large"), (0.5, "half of what it should be")):
        yield equals(factor * want), f"is {words}"
    yield equals(want / np.log(2)), "is in bits: use the natural logarithm"
    yield equals(want / np.log(10)), "uses the logarithm to base 10: use the natural one"
    with np.errstate(divide="ignore", invalid="ignore"):
        yield equals(1 / want), "is upside down: you gave one over it"
    yield from _sum_slips(got, want, tolerance)
    if want.ndim >= 1:
        yield equals(np.flip(want, 0)), "is in reverse order"
        yield _close(np.sort(got, None), np.sort(want, None), tolerance), "has the right numbers in another order"
    elif 0 < want < 1:
        yield equals(1 - want), "belongs to the opposite case: you gave 1 minus it"


def _roundings(got: np.ndarray, want: np.ndarray, tolerance: float) -> Iterator[tuple[bool, str]]:
    """The right numbers with fewer decimals than the tolerance asks for."""
    decimals = max(1, round(-np.log10(2 * tolerance)))
    for kept in range(1, decimals):
        scale = 10.0**kept
        rounded = [np.round(want, kept), np.trunc(want * scale) / scale]
        fits = bool(got.any()) and any(_close(got, each, EXACT) for each in rounded)
        yield fits, f"is rounded too early: keep at least {decimals} decimals"


def _sum_slips(got: np.ndarray, want: np.ndarray, tolerance: float) -> Iterator[tuple[bool, str]]:
    """Slips with rows that should sum to 1."""
    if want.ndim == 0 or not np.allclose(want.sum(axis=-1), 1):
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = got / got.sum(axis=-1, keepdims=True)
    yield _close(shares, want, tolerance), "is not yet divided by the sum of each row"
    if want.ndim >= 2:
        columns = np.allclose(got.sum(axis=-2), 1, atol=5e-3) and not np.allclose(got.sum(axis=-1), 1, atol=5e-3)
        yield columns, "has columns that sum to 1: it is the rows that must (softmax runs over the keys)"


def _first_difference(got: np.ndarray, want: np.ndarray, tolerance: float, name: str) -> str:
    differs = ~_near(got, want, tolerance)
    count = int((~differs).sum())
    right = f" ({count} of {got.size} entries {'is' if count == 1 else 'are'} right)" if got.ndim else ""
    return f"{_yours(name)} is {show(got[differs][0])}{_place(differs)}{right}"


def _yours(name: str) -> str:
    """The beginning of a sentence that shows a reader's number, so that none is taken for the right one."""
    return name if re.search(r"\byours?\b", name) else f"{name}: yours"


def _place(differs: np.ndarray) -> str:
    """Where the first marked entry is, in words; empty for a single number."""
    return f" at {[int(i) for i in np.argwhere(differs)[0]]}" if differs.ndim else ""
