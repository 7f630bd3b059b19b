"""A picture of rotary positions (the page beside chapter 8): a hand for each place, a panel for each pair."""

from __future__ import annotations

import numpy as np
from matplotlib.style import context as style_context

from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.figures import COLOURS
from src.course.printing import plain_array

NEAR = 0.29  # radians: tips closer than that to the last one with a number get none


def turning_panels(turned: object) -> Figure:
    """Draw the pairs of turned vectors (T, D) as hands: row t is place t, channels 2i and 2i + 1 are panel i.

    Tips have the number of their place, unless they stand close to the one before. Raises ValueError for a table that
    is not (T, D) with an even D.

    >>> [axes.get_title() for axes in turning_panels(np.ones((3, 4))).axes]
    ['channels 0, 1', 'channels 2, 3']
    """
    table = plain_array(turned)
    if table.ndim != 2 or table.shape[1] % 2:
        raise ValueError(f"turned vectors (T, D) with an even D are wanted, got shape {table.shape}")
    pairs = table.reshape(len(table), -1, 2)  # (T, D / 2, 2)
    count = pairs.shape[1]
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 2.6 * -(-count // 2))
        grid = list(figure.subplots(-(-count // 2), 2, squeeze=False).flat)
        for axes in grid[count:]:
            axes.remove()
        for pair, axes in enumerate(grid[:count]):
            _draw_hands(axes, pairs[:, pair])
            axes.set(title=f"channels {2 * pair}, {2 * pair + 1}")
    return figure


def _draw_hands(axes, tips: np.ndarray) -> None:
    reach = 1.3 * max(np.linalg.norm(tips, axis=1).max(), 1e-9)
    for radius in np.unique(np.linalg.norm(tips, axis=1).round(6)):
        around = np.linspace(0, 2 * np.pi, 100)
        axes.plot(radius * np.cos(around), radius * np.sin(around), color="0.8", linewidth=0.8)
    for x, y in tips:
        axes.plot([0, x], [0, y], color=COLOURS[0], marker="o", markevery=[1], markersize=4)
    angles = np.unwrap(np.arctan2(tips[:, 1], tips[:, 0]))
    last = -np.inf
    for place, (angle, tip) in enumerate(zip(angles, tips, strict=True)):
        if angle - last >= NEAR:
            axes.text(*(1.18 * tip), str(place), ha="center", va="center")
            last = angle
    axes.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    axes.spines[["top", "right"]].set_visible(False)
