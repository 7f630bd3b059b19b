"""Rows of weights as bars, one panel a row (chapter 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.style import context as style_context

from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.figures import COLOURS, SUM_TOLERANCE
from src.course.printing import format_number, plain_array, visible


def weight_bars(
    rows: object, labels: Sequence[object], titles: Sequence[str], decimals: int = 3, label_name: str = "key"
) -> Figure:
    """Draw each row of weights (R, K) as K bars from 0 to 1 with their numbers above, two panels side by side.

    `labels` name the K bars, a string is one label a character, `label_name` says what they are; `titles` name the R
    rows. Raises ValueError for labels or titles that do not fit and for rows that are no weights.

    >>> weight_bars([[1 / 7, 2 / 7, 4 / 7]], "abc", ["scale 1"]).axes[0].get_title()
    'scale 1'
    >>> weight_bars([[0.5, 0.5]], "ab", ["even"], label_name="token").get_supxlabel()
    'token'
    """
    table = np.atleast_2d(plain_array(rows))
    names = [visible(label) for label in labels]
    if table.shape != (len(titles), len(names)):
        raise ValueError(f"{len(titles)} titles and {len(names)} labels need as many rows and columns: {table.shape}")
    if not (table >= 0).all() or abs(table.sum(axis=1) - 1).max() > SUM_TOLERANCE:
        raise ValueError(f"weights are at least 0 and each row sums to 1, the sums are {table.sum(axis=1).round(3)}")
    across = min(2, len(table))
    down = -(-len(table) // across)
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 0.3 + 1.7 * down)
        grid = list(figure.subplots(down, across, squeeze=False, sharey=True).flat)
        for panel in grid[len(table) :]:
            panel.remove()
        for panel, weights, title in zip(grid, table, titles, strict=False):
            bars = panel.bar(np.arange(len(names)), weights, width=0.7, color=COLOURS[0])
            panel.bar_label(bars, [format_number(weight, decimals) for weight in weights], fontsize=9)
            panel.set(title=title, ylim=(0, 1.15), yticks=(0, 0.5, 1))
            panel.set_xticks(np.arange(len(names)), names, parse_math=False)
            panel.spines[["top", "right"]].set_visible(False)
        figure.supxlabel(label_name, fontsize="medium")
        figure.supylabel("weight", fontsize="medium")
    return figure
