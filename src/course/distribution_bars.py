"""Distributions over the next token as bars, before and after temperature, top-k and top-p (chapter 11)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.style import context as style_context

from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.figures import COLOURS, SUM_TOLERANCE
from src.course.printing import plain_array, visible

MOST = 14  # tokens in a panel


def distribution_bars(
    rows: object, before: object, labels: Sequence[object], titles: Sequence[str], most: int = MOST
) -> Figure:
    """Draw each distribution of `rows` (R, V) as bars, two panels side by side, over the outline of the one `before`.

    `before` is (R, V), or (V,) for all panels alike. The tokens are its `most` likeliest, best first, equals by their
    order; `labels` name all V tokens, a string is one label a character; `titles` name the R panels. Raises ValueError
    for labels or titles that do not fit and for rows that are no distributions.

    >>> distribution_bars([[1, 0]], [0.75, 0.25], "ab", ["temperature 0"]).axes[0].get_title()
    'temperature 0'
    """
    table, outlines = _check(rows, before, labels, titles)
    down = -(-len(table) // 2)
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 0.5 + 1.7 * down)
        grid = list(figure.subplots(down, min(2, len(table)), squeeze=False, sharey="row").flat)
        for panel in grid[len(table) :]:
            panel.remove()
        for number, (panel, row, outline, title) in enumerate(zip(grid, table, outlines, titles, strict=False)):
            beside = slice(number // 2 * 2, number // 2 * 2 + 2)  # the panels of this line
            order = np.argsort(-outline, kind="stable")[:most]
            places, names = np.arange(len(order)), [visible(labels[token]) for token in order]
            panel.bar(places, row[order], width=0.8, color=COLOURS[0], label="after")
            panel.bar(places, outline[order], width=0.8, facecolor="none", edgecolor="0.25", label="before")
            panel.set(title=title, ylim=(0, 1.05 * max(table[beside].max(), outlines[beside].max())))
            panel.set_xticks(places, names, parse_math=False, fontsize=9, fontfamily="monospace")
            panel.spines[["top", "right"]].set_visible(False)
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
        figure.supxlabel("next token, likeliest first", fontsize="medium")
        figure.supylabel("probability", fontsize="medium")
    return figure


def _check(
    rows: object, before: object, labels: Sequence[object], titles: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The distributions and those before as two arrays (R, V), if they are that."""
    table, outlines = np.atleast_2d(plain_array(rows)), np.atleast_2d(plain_array(before))
    if table.shape != (len(titles), len(labels)) or outlines.shape not in (table.shape, (1, len(labels))):
        raise ValueError(
            f"{len(titles)} titles and {len(labels)} labels need as many rows and columns, before as many or one row: "
            f"got {table.shape} and {outlines.shape}"
        )
    sums = np.array([*table.sum(axis=1), *outlines.sum(axis=1)])
    if min(table.min(), outlines.min()) < 0 or abs(sums - 1).max() > SUM_TOLERANCE:
        raise ValueError(f"probabilities are at least 0 and each row sums to 1, the sums are {sums.round(3)}")
    return table, np.broadcast_to(outlines, table.shape)
