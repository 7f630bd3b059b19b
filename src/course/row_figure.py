"""A table as a heatmap, and one of its rows pulled out as bars below it (chapter 2)."""

from collections.abc import Sequence

import numpy as np
import seaborn
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.style import context as style_context

from src.course.drawing import SMALLEST_LABEL, STYLE, UNSIGNED_MAP, WIDTH, Figure, new_figure
from src.course.figures import COLOURS
from src.course.printing import plain_array, visible

MARK = COLOURS[1]  # the frame around the row, and its bars


def heatmap_with_row(
    values: object,
    labels: Sequence[object],
    row: object,
    *,
    row_name: str = "row",
    column_name: str = "column",
    value_name: str = "value",
    brightest: float = 1.0,
) -> Figure:
    """Draw a table (V, V) of values of at least 0, and the row labelled `row` again as bars, column below column.

    Both axes have the same labels; a string is one label a character. Values from `brightest` up share the brightest
    colour; the bars show the whole value. Raises ValueError for a table that is not square or does not fit its labels,
    for values that are negative or not finite and for a row that is no label.

    >>> heatmap_with_row([[0.5, 0.5], [0.9, 0.1]], "ab", "b").axes[1].get_title()
    'row b'
    """
    table = plain_array(values)
    names = [visible(label) for label in labels]
    if table.shape != (len(names), len(names)):
        raise ValueError(f"{len(names)} labels need a table of as many rows and columns, got shape {table.shape}")
    if not np.isfinite(table).all() or table.min() < 0:
        raise ValueError(f"values are finite and at least 0, the smallest here is {table.min()}")
    if visible(row) not in names:
        raise ValueError(f"there is no row {row!r}: choose one of {' '.join(names)}")
    place = names.index(visible(row))
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 6.4)
        upper, lower = figure.subplots(2, 1, height_ratios=[4.2, 1.3])
        _draw_table(upper, table, place, brightest)
        figure.colorbar(upper.collections[0], ax=[upper, lower], label=value_name, aspect=40, extend="max")
        lower.bar(np.arange(len(names)) + 0.5, table[place], width=0.8, color=MARK)
        lower.set(xlim=(0, len(names)), title=f"{row_name} {names[place]}", ylabel=value_name)
        font = max(SMALLEST_LABEL, min(9.0, 270 / len(names)))
        for axis in (upper.xaxis, upper.yaxis, lower.xaxis):
            axis.set_ticks(np.arange(len(names)) + 0.5, names, fontsize=font, rotation=0, parse_math=False)
        upper.set(ylabel=row_name, xlabel=column_name)
        lower.set_xlabel(column_name)
    return figure


def _draw_table(axes: Axes, table: np.ndarray, place: int, brightest: float) -> None:
    """The heatmap, with a frame around one row."""
    seaborn.heatmap(table, vmin=0.0, vmax=brightest, cmap=UNSIGNED_MAP, cbar=False, ax=axes)
    axes.add_patch(Rectangle((0, place), len(table), 1, fill=False, edgecolor=MARK, linewidth=2, clip_on=False))
