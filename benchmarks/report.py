"""What was measured, as a table: on the screen, and in README.md between two marker lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
HEAD = ["what", "goal, at most", "ours", "theirs", "ratio", "quartiles", "met"]


@dataclass(frozen=True)
class Row:
    """One line of the table: `ratios` are ours to theirs, one for each round. Without a goal it is for comparison."""

    what: str
    goal: float | None
    ours: str
    theirs: str
    ratios: np.ndarray

    def cells(self) -> list[str]:
        low, middle, high = np.quantile(self.ratios, [0.25, 0.5, 0.75])
        goal, met = ("", "") if self.goal is None else (f"{self.goal:.2f}", "yes" if middle <= self.goal else "no")
        return [self.what, goal, self.ours, self.theirs, f"{middle:.3f}", f"{low:.3f} to {high:.3f}", met]


def shown_time(seconds: float, threads: int | None = None) -> str:
    """Three digits of a time, and the number of threads that it took.

    >>> shown_time(0.0123, 2), shown_time(1.2345), shown_time(123.4)
    ('12.3 ms (2 threads)', '1.23 s', '123 s')
    """
    if seconds < 0.9995:
        time = f"{1e3 * seconds:.3g} ms"
    else:
        time = f"{seconds:.3g} s" if seconds < 100 else f"{seconds:,.0f} s"
    return time if threads is None else f"{time} ({threads} thread{'s' if threads > 1 else ''})"


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown."""
    align = ("left", *["right"] * 6)
    return tabulate([row.cells() for row in rows], HEAD, "pipe", colalign=align, disable_numparse=True)


def render(results: Iterable[Row | str], conditions: str) -> str:
    """Conditions, the table, then the paragraphs."""
    results = list(results)
    rows = [result for result in results if isinstance(result, Row)]
    paragraphs = [result for result in results if isinstance(result, str)]
    return "\n\n".join([conditions, *([table(rows)] if rows else []), *paragraphs])


def write(text: str, path: Path = README) -> None:
    """Put the text between the marker lines. Raises ValueError unless each is there once, in order."""
    page = path.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise ValueError(f"{path} needs the lines {BEGIN} and {END}, each once and in this order")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
