"""The residual stream drawn beside what arrives in the backward pass at each depth (chapter 9)."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.style import context as style_context

from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.figures import COLOURS
from src.course.printing import plain_array

BOX: dict[str, Any] = {"facecolor": "0.85", "edgecolor": "black", "linewidth": 0.8}
PATH: dict[str, Any] = {"color": COLOURS[0], "linewidth": 2.5, "solid_capstyle": "butt"}
SIDE: dict[str, Any] = {"color": "black", "linewidth": 1.0}


def stream_figure(gradients: Mapping[str, object], residual: Collection[str] = ()) -> Figure:
    """Draw each model as a stack of boxes, depth upwards, and right of it the gradient norm at every depth.

    `gradients` maps a name to the norms before the first block and after each block. Models named in `residual` have
    their boxes beside the stream, all others in its way. Raises ValueError for norms that are not positive and for
    models of different depth.

    >>> stream_figure({"plain": [4.0, 2.0, 1.0]}).axes[1].get_xlabel()
    'gradient norm'
    """
    norms = {name: plain_array(values).astype(float) for name, values in gradients.items()}
    depths = {len(values) - 1 for values in norms.values()}
    if len(depths) != 1 or not set(residual) <= set(norms):
        raise ValueError(f"models of one depth, by name, are wanted: got depths {sorted(depths)}, names {list(norms)}")
    for name, values in norms.items():
        if not (np.isfinite(values).all() and values.min() > 0):
            raise ValueError(f"{name}: a logarithmic axis wants positive norms, the smallest is {values.min()}")
    blocks = depths.pop()
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 4.2)
        axes = figure.subplots(1, 2 * len(norms), sharey=True, width_ratios=[1, 2.2] * len(norms))
        low = min(values.min() for values in norms.values())
        high = max(values.max() for values in norms.values())
        for i, (name, values) in enumerate(norms.items()):
            _draw_stack(axes[2 * i], blocks, beside=name in residual)
            _draw_norms(axes[2 * i + 1], name, values, (low / 3, high * 3))
        axes[0].set_ylabel("depth: blocks passed")
    return figure


def _draw_stack(axes: Axes, blocks: int, beside: bool) -> None:
    """The way of a vector from the bottom to the top; a block stands beside it, or in it."""
    axes.plot([0, 0], [0, blocks], zorder=1, **PATH)
    left = 0.55 if beside else -0.35
    for block in range(blocks):
        axes.add_patch(Rectangle((left, block + 0.25), 0.7, 0.5, zorder=2, **BOX))
        if beside:
            middle = left + 0.35
            axes.plot([0, middle, middle], [block + 0.08, block + 0.08, block + 0.25], zorder=1, **SIDE)
            axes.plot([middle, middle, 0], [block + 0.75, block + 0.92, block + 0.92], zorder=1, **SIDE)
    axes.set(xlim=(-0.5, 1.4), ylim=(-0.4, blocks + 0.4), xticks=[], yticks=range(0, blocks + 1, 2))
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)


def _draw_norms(axes: Axes, name: str, values: np.ndarray, limits: tuple[float, float]) -> None:
    """The norms as dots at their depth, the norm on a logarithmic axis."""
    axes.plot(values, np.arange(len(values)), marker="o", markersize=4, color=COLOURS[1])
    axes.set(xscale="log", xlim=limits, xlabel="gradient norm", title=name)
    axes.tick_params(left=False)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)
