"""Draw how far a gate opens (the area under the bell curve left of x), and how far others are off (chapter 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.style import context as style_context

from src.core.erf import erf
from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.figures import COLOURS
from src.course.printing import plain_array

EDGE = 3.5  # the curves are drawn from -EDGE to EDGE


def draw_gate(places: Sequence[float]) -> Figure:
    """Draw for each place x the bell curve with the area left of x, and below it x, dashed, and x times that area.

    Raises ValueError without a place, and for places outside of the picture.

    >>> [axes.get_title() for axes in draw_gate([-1.0, 1.0]).axes[:2]]
    ['area left of -1: 0.16', 'area left of 1: 0.84']
    """
    if not places or any(not abs(place) < EDGE for place in places):
        raise ValueError(f"places lie between -{EDGE} and {EDGE}, at least one, got {list(places)}")
    x = np.linspace(-EDGE, EDGE, 281)
    height = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 4.2)
        grid = figure.subplots(2, len(places), sharex=True, sharey="row", squeeze=False)
        for (above, below), place in zip(grid.T, places, strict=True):
            area = float(_area(np.array(place)))
            above.plot(x, height, color="0.3")
            above.fill_between(x, 0, height, where=x <= place, color=COLOURS[0], alpha=0.4, linewidth=0)
            above.set_title(f"area left of {place:g}: {area:.2f}")
            below.plot(x, x, color="0.5", linestyle="--", label="x")
            below.plot(x, x * _area(x), color=COLOURS[0], label="x times area")
            below.plot([place, place], [place, place * area], color=COLOURS[1], linewidth=2)
            below.plot([place], [place * area], "o", color=COLOURS[1])
            below.set(xlabel="x", ylim=(-1.3, 2.0))
            below.grid(alpha=0.3)
        grid[0, 0].set_ylabel("bell curve")
        grid[1, 0].set_ylabel("output")
        figure.legend(*grid[1, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return figure


def draw_errors(x: object, errors: Mapping[str, object]) -> Figure:
    """Draw each error over x in a panel of its own, and mark its largest and its smallest value right of 0.

    Raises ValueError if an error and x differ in length.

    >>> draw_errors([-1, 0, 1], {"tanh": [2, 0, 2]}).axes[0].get_title()
    'tanh'
    """
    across = plain_array(x)
    curves = {name: plain_array(error) for name, error in errors.items()}
    for name, error in curves.items():
        if error.shape != across.shape:
            raise ValueError(f"{name} has the shape {error.shape} and x has {across.shape}: give one error a place")
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 2.0 * len(curves))
        panels = figure.subplots(len(curves), sharex=True, squeeze=False)[:, 0]
        for axes, (name, error) in zip(panels, curves.items(), strict=True):
            axes.plot(across, error, color=COLOURS[0])
            right = np.where(across >= 0, error, np.nan)
            places = [int(np.nanargmax(right)), int(np.nanargmin(right))]
            axes.plot(across[places], error[places], "o", color=COLOURS[1])
            axes.set(title=name, ylabel="difference")
            axes.ticklabel_format(axis="y", scilimits=(-1, 1), useMathText=True)
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
        panels[-1].set_xlabel("x")
    return figure


def _area(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + erf(x * math.sqrt(0.5)))
