"""The drawing of chapter 2: a text as a strip, and two windows with their targets, one character later.

python assets/draw_windows.py     # writes assets/windows.svg
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from src.course.printing import visible

TEXT = "First Citizen"
CONTEXT_SIZE, STRIDE = 8, 4
DRAWING = Path(__file__).with_name("windows.svg")
STEP, BOX = 36, 32  # from one character to the next; a box
LEFT, TOP, GAP = 68, 30, 18  # room for the names of rows, for the places, between windows
COLOURS = {"text": "#6b7280", "x": "#0173b2", "y": "#b35900"}  # told apart by names too
STYLE = (
    "text { font: 17px monospace; text-anchor: middle; fill: #1f2328 } "
    ".name { text-anchor: end; font-family: sans-serif; font-size: 15px } "
    ".place { font-family: sans-serif; font-size: 13px; fill: #57606a } rect { stroke-width: 2 }"
)


class Row(NamedTuple):
    """A row of boxes: its name, x, y or text, the place of its first character, the characters."""

    name: str
    kind: str
    start: int
    characters: str


def rows_of(text: str = TEXT, context_size: int = CONTEXT_SIZE, stride: int = STRIDE) -> list[Row]:
    """The text, then x and y of each window.

    >>> [row.characters for row in rows_of("abcde", context_size=3, stride=1)]
    ['abcde', 'abc', 'bcd', 'bcd', 'cde']
    """
    rows = [Row("text", "text", 0, text)]
    for number, start in enumerate(range(0, len(text) - context_size, stride)):
        window = text[start : start + context_size + 1]
        rows.append(Row(f"x[{number}]", "x", start, window[:-1]))
        rows.append(Row(f"y[{number}]", "y", start + 1, window[1:]))
    return rows


def draw(rows: list[Row]) -> str:
    """The rows as SVG text, below the places in the text; boxes of one place stand below each other."""
    heights = [TOP + STEP * index + GAP * ((index + 1) // 2) for index in range(len(rows))]
    width, height = LEFT + STEP * len(rows[0].characters) + 4, heights[-1] + BOX + 6
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
        ' aria-labelledby="title">',
        '<title id="title">A text as a strip of characters; below it windows x, and targets y one character later'
        "</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for place in range(len(rows[0].characters)):
        lines.append(f'<text class="place" x="{_middle(place)}" y="{TOP - 10}">{place}</text>')
    for row, top in zip(rows, heights, strict=True):
        lines += _draw_row(row, top)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _draw_row(row: Row, top: int) -> Iterator[str]:
    baseline = top + BOX // 2 + 6
    yield f'<g class="{row.kind}"><text class="name" x="{LEFT - 12}" y="{baseline}">{row.name}</text>'
    for place, character in enumerate(row.characters, start=row.start):
        box = f'x="{_middle(place) - BOX // 2}" y="{top}" width="{BOX}" height="{BOX}" rx="4"'
        yield f'<rect {box} fill="{COLOURS[row.kind]}" fill-opacity="0.12" stroke="{COLOURS[row.kind]}"/>'
        yield f'<text x="{_middle(place)}" y="{baseline}">{escape(visible(character))}</text>'
    yield "</g>"


def _middle(place: int) -> int:
    return LEFT + STEP * place + STEP // 2


if __name__ == "__main__":
    DRAWING.write_text(draw(rows_of()), encoding="utf-8", newline="\n")
    print(f"{DRAWING.name} is written.")
