"""The drawing of chapter 11: what is computed for the third, fourth and fifth token, without a cache and with one.

python assets/draw_cache.py     # writes assets/cache.svg
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

TOKENS = "ROMEO"
LENGTHS = (3, 4, 5)  # tokens in the window, one table each
DRAWING = Path(__file__).with_name("cache.svg")
STEP, BOX = 24, 20  # from one tile to the next; a tile
LEFT, GAP = 84, 22  # room for the names of rows, between tables
KINDS = {  # how a tile looks: computed in this step, kept from earlier ones, not needed any more
    "new": 'fill="#de8f05" stroke="#8a5a00"',
    "kept": 'fill="#cfd8e3" stroke="#57606a"',
    "unused": 'fill="none" stroke="#b6bcc4" stroke-dasharray="3 3"',
}
STYLE = (
    "text { font: 14px sans-serif; fill: #1f2328 } .column { text-anchor: middle; font-family: monospace } "
    ".row { text-anchor: end; font-size: 13px; fill: #57606a }"
)
LEGEND = {"new": "computed now", "kept": "kept", "unused": "not needed"}


def tiles_of(length: int, cached: bool) -> tuple[list[str], list[list[str]]]:
    """The kinds of the keys (and values) of a window, and of its scores, a row a query.

    >>> tiles_of(2, cached=True)
    (['kept', 'new'], [['unused', 'unused'], ['new', 'new']])
    """
    earlier = "kept" if cached else "new"
    keys = [earlier] * (length - 1) + ["new"]
    rows = [["unused" if cached else "new"] * length for _ in range(length - 1)]
    return keys, [*rows, ["new"] * length]


def draw() -> str:
    """Two rows of three tables as SVG text."""
    width = LEFT + STEP * sum(LENGTHS) + GAP * (len(LENGTHS) - 1) + 8
    part = 26 + 18 + STEP * (max(LENGTHS) + 1) + 8  # heading, names of columns, keys and scores, room
    height = 2 * part + 52
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
        ' aria-labelledby="title">',
        '<title id="title">Keys, values and scores that are computed for the third, fourth and fifth token: without a'
        " cache all of them each time, with a cache one key, one value and one row of scores</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (name, cached) in enumerate((("without", False), ("with", True))):
        top = 4 + number * (part + 10)
        heading = f"{name} a cache, {', '.join(map(str, LENGTHS))} tokens"
        lines.append(f'<text x="6" y="{top + 15}">{heading}</text>')
        lines.append(f'<g class="{name}">')
        lines += _draw_tables(cached, top + 44)
        lines.append("</g>")
    left = 6
    for kind, text in LEGEND.items():
        lines.append(f'<rect x="{left}" y="{height - 28}" width="{BOX}" height="{BOX}" rx="3" {KINDS[kind]}/>')
        lines.append(f'<text x="{left + 27}" y="{height - 13}">{text}</text>')
        left += 50 + 7 * len(text)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _draw_tables(cached: bool, top: int) -> Iterator[str]:
    """Three tables side by side; `top` is where the row of keys and values begins."""
    yield f'<text class="row" x="{LEFT - 8}" y="{top + 15}">key, value</text>'
    left = LEFT
    for length in LENGTHS:
        keys, scores = tiles_of(length, cached)
        for column, kind in enumerate(keys):
            x = left + STEP * column
            yield f'<text class="column" x="{x + BOX // 2}" y="{top - 6}">{TOKENS[column]}</text>'
            yield _tile("key", kind, x, top)
        for row, kinds in enumerate(scores, start=1):
            for column, kind in enumerate(kinds):
                yield _tile("score", kind, left + STEP * column, top + 4 + STEP * row)
        left += STEP * length + GAP
    yield f'<text class="row" x="{LEFT - 8}" y="{top + 4 + STEP + 15}">scores</text>'


def _tile(what: str, kind: str, x: int, y: int) -> str:
    return f'<rect class="{what} {kind}" x="{x}" y="{y}" width="{BOX}" height="{BOX}" rx="3" {KINDS[kind]}/>'


if __name__ == "__main__":
    DRAWING.write_text(draw(), encoding="utf-8", newline="\n")
    print(f"{DRAWING.name} is written.")
