"""Draw a loss of one parameter, its tangent at the start, and where steps of several sizes lead (card 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from matplotlib.style import context as style_context
from numpy.typing import NDArray

from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.figures import COLOURS, LINES, MARKERS
from src.course.printing import plain_array


def draw_descent(
    loss: Callable[[NDArray], NDArray], slope: float, paths: Mapping[str, object], low: float, high: float
) -> Figure:
    """Draw `loss` from `low` to `high` and each path, the places w that a descent visits, as arrows on it.

    All paths begin at one place; `slope` is that of the loss there, not 0. Raises ValueError if they do not.

    >>> axes = draw_descent(lambda w: w * w, -4.0, {"rate 0.1": [-2.0, -1.6], "rate 0.4": [-2.0, -0.4]}, -3, 3).axes[0]
    >>> [text for text in axes.get_legend_handles_labels()[1]]
    ['loss', 'tangent', 'rate 0.1', 'rate 0.4']
    """
    places = {name: plain_array(path).astype(float) for name, path in paths.items()}
    starts = sorted({float(path[0]) for path in places.values()})
    if len(starts) != 1 or slope == 0:
        raise ValueError(f"the paths start at {starts} with the slope {slope}: one start where the loss is not flat")
    line, start = np.linspace(low, high, 200), starts[0]
    foot = start - float(loss(np.array(start))) / slope  # where the tangent is 0
    ends = np.array([start - (foot - start) / 3, foot])
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 3.8)
        axes = figure.subplots()
        axes.plot(line, loss(line), color="0.55", linewidth=2.5, label="loss")
        axes.plot(ends, slope * (ends - foot), "k--", label="tangent")
        for number, (name, path) in enumerate(places.items()):
            colour, dashes = COLOURS[number], LINES[number % len(LINES)]
            axes.plot(path, loss(path), color=colour, linestyle="", marker=MARKERS[number], label=name, zorder=3)
            for tail, head in pairwise(zip(path.tolist(), loss(path).tolist(), strict=True)):
                axes.annotate("", xy=head, xytext=tail, arrowprops={"arrowstyle": "->", "color": colour, "ls": dashes})
        axes.plot([start], [loss(np.array(start))], "ko", zorder=4)
        axes.set(xlabel="w", ylabel="loss")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
