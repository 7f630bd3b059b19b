"""The drawing of chapter 6: tiles of 4 tokens and 6 channels, split into three heads, the right way and a wrong one.

python assets/draw_heads.py     # writes assets/heads.svg
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

TOKENS, CHANNELS, HEADS = 4, 6, 3
DRAWING = Path(__file__).with_name("heads.svg")
STEP, BOX = 34, 30  # from one tile to the next; a tile
LEFT, GAP = 84, 30  # room for the names of tokens, between heads
COLOURS = ["#0173b2", "#b35900", "#029e73", "#7a4f9e"]  # one a token; the number of a tile tells its token too
STYLE = (
    "text { font: 15px monospace; text-anchor: middle; fill: #1f2328 } "
    ".name, .line { font-family: sans-serif; font-size: 14px } .line { text-anchor: start } "
    ".token { text-anchor: end } .token, .channel { font-family: sans-serif; font-size: 13px; fill: #57606a } "
    "rect { stroke-width: 2 }"
)


class Table(NamedTuple):
    """A table of tiles: its kind (x, right or wrong), its name, its numbers, where it stands."""

    kind: str
    name: str
    numbers: np.ndarray
    left: int
    top: int


def tables_of() -> list[Table]:
    """x, then its heads by reshape and transpose, then by reshape alone.

    >>> [table.numbers[1].tolist() for table in tables_of()]
    [[6, 7, 8, 9, 10, 11], [6, 7], [8, 9], [10, 11], [2, 3], [10, 11], [18, 19]]
    """
    x = np.arange(TOKENS * CHANNELS).reshape(TOKENS, CHANNELS)
    right = x.reshape(TOKENS, HEADS, -1).swapaxes(0, 1)  # (T, C) -> (T, H, D) -> (H, T, D)
    wrong = x.reshape(HEADS, TOKENS, -1)  # (T, C) -> (H, T, D)
    across = STEP * CHANNELS // HEADS + GAP
    tables = [Table("x", "", x, LEFT, 50)]
    for kind, heads, top in (("right", right, 268), ("wrong", wrong, 486)):
        tables += [
            Table(kind, f"head {number}", head, LEFT + across * number, top) for number, head in enumerate(heads)
        ]
    return tables


def draw(tables: list[Table]) -> str:
    """The tables as SVG text; a tile has the colour of the token that it belongs to."""
    width, height = LEFT + STEP * CHANNELS + GAP * (HEADS - 1) + 8, tables[-1].top + STEP * TOKENS + 6
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
        ' aria-labelledby="title">',
        '<title id="title">Four tokens of six channels, split into three heads of two channels: by reshape and'
        " transpose each head has all four tokens, by reshape alone it has two</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text class="line" x="6" y="18">x (4, 6): a row is a token, a column a channel</text>',
        '<text class="line" x="6" y="236">right: reshape (4, 3, 2), then transpose</text>',
        '<text class="line" x="6" y="454">wrong: reshape (3, 4, 2) alone</text>',
    ]
    for channel in range(CHANNELS):
        lines.append(f'<text class="channel" x="{LEFT + STEP * channel + BOX // 2}" y="42">{channel}</text>')
    for table in tables:
        if table.left == LEFT:
            lines += _name_rows(table)
        lines += _draw_table(table)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _name_rows(table: Table) -> Iterator[str]:
    """Rows of x are tokens; those of a head are meant to be."""
    for row in range(TOKENS):
        name = f"token {row}" if table.kind != "wrong" else f"place {row}"
        yield f'<text class="token" x="{LEFT - 10}" y="{table.top + STEP * row + 20}">{name}</text>'


def _draw_table(table: Table) -> Iterator[str]:
    middle = table.left + STEP * table.numbers.shape[1] // 2
    yield f'<g class="{table.kind}"><text class="name" x="{middle}" y="{table.top - 10}">{table.name}</text>'
    for (row, column), number in np.ndenumerate(table.numbers):
        colour, x, y = COLOURS[number // CHANNELS], table.left + STEP * column, table.top + STEP * row
        box = f'x="{x}" y="{y}" width="{BOX}" height="{BOX}" rx="4"'
        yield f'<rect {box} fill="{colour}" fill-opacity="0.15" stroke="{colour}"/>'
        yield f'<text x="{x + BOX // 2}" y="{y + 20}">{number}</text>'
    yield "</g>"


if __name__ == "__main__":
    DRAWING.write_text(draw(tables_of()), encoding="utf-8", newline="\n")
    print(f"{DRAWING.name} is written.")
