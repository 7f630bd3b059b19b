"""Draw points and the lines that are to fit them (chapter 1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.style import context as style_context

from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.figures import COLOURS, LINES
from src.course.printing import plain_array


def draw_fit(x: object, y: object, lines: Mapping[str, tuple[float, float]]) -> Figure:
    """Draw the points (x, y) and, for each name, the line weight * x + bias, given as (weight, bias).

    Shapes (N,) and (N, 1) will do. Raises ValueError if x and y differ in length.

    >>> len(draw_fit([0, 1, 2], [1, 3, 5], {"2x + 1": (2.0, 1.0)}).axes[0].lines)
    2
    """
    across, up = plain_array(x).reshape(-1), plain_array(y).reshape(-1)
    if len(across) != len(up):
        raise ValueError(f"{len(across)} places but {len(up)} heights: a point needs one of each")
    ends = np.array([across.min(), across.max()])
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 3.4)
        axes = figure.subplots()
        axes.plot(across, up, "o", color="0.4", markersize=5, label="points")
        for number, (name, (weight, bias)) in enumerate(lines.items()):
            colour, dashes = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
            axes.plot(ends, weight * ends + bias, color=colour, linestyle=dashes, label=name)
        axes.set(xlabel="input", ylabel="answer")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
