"""Values as the corners of a triangle, and the mixtures of them as points inside (chapter 3)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Polygon
from matplotlib.style import context as style_context
from numpy.typing import NDArray

from src.course.drawing import STYLE, Figure, new_figure
from src.course.figures import COLOURS
from src.course.printing import plain_array

AT_CORNER = 0.05  # closer than this, an edge of the triangle would run through the name of a dot


def draw_mixtures(
    corners: object, points: object, corner_names: Sequence[str], point_names: Sequence[str], outside: object = ()
) -> Figure:
    """Draw three values (3, 2) as a triangle, the mixtures (N, 2) as dots with names, points `outside` as crosses.

    The dots are joined in their order. A name stands left of its dot; corners are named on their far side. Raises
    ValueError for other shapes and for names that do not fit.

    >>> figure = draw_mixtures([[1, 0], [0, 1], [1, 1]], [[0.7, 0.8]], "abc", ["scale 1"])
    >>> figure.axes[0].get_xlabel()
    'first number'
    """
    ends, dots = plain_array(corners), plain_array(points)
    if ends.shape != (3, 2) or dots.ndim != 2 or dots.shape[1] != 2:
        raise ValueError(f"three corners (3, 2) and points (N, 2) can be drawn, got {ends.shape} and {dots.shape}")
    if len(corner_names) != 3 or len(point_names) != len(dots):
        raise ValueError(
            f"3 corners and {len(dots)} points, but {len(corner_names)} and {len(point_names)} names: give one each"
        )
    with style_context(["default", STYLE]):
        figure = new_figure(4.4, 4.2)
        axes = figure.subplots()
        axes.add_patch(Polygon(ends, facecolor=COLOURS[0], alpha=0.15, edgecolor="none"))
        axes.add_patch(Polygon(ends, facecolor="none", edgecolor=COLOURS[0], linewidth=1.5))
        axes.plot(*dots.T, "o-", color=COLOURS[1], markersize=6, linewidth=1, label="outputs")
        if len(crosses := plain_array(outside)):
            axes.plot(*crosses.T, "x", color="0.25", markersize=9, markeredgewidth=2, label="out of reach")
        _name_points(axes, ends, dots, corner_names, point_names)
        axes.set(xlabel="first number", ylabel="second number", aspect="equal")
        axes.margins(0.15)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _name_points(
    axes: Axes, ends: NDArray, dots: NDArray, corner_names: Sequence[str], point_names: Sequence[str]
) -> None:
    """Write corner names away from the middle of the triangle, names of dots to their left, higher at a corner."""
    middle = ends.mean(axis=0)
    for name, end in zip(corner_names, ends, strict=True):
        away = 16 * (end - middle) / abs(end - middle).max()
        axes.annotate(name, end, away, textcoords="offset points", ha="center", va="center", weight="bold")
    for name, dot in zip(point_names, dots, strict=True):
        lift = 9 if abs(ends - dot).max(axis=1).min() < AT_CORNER else 0
        axes.annotate(name, dot, (-8, lift), textcoords="offset points", ha="right", va="center", fontsize=9)
