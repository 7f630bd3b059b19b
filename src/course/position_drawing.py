"""Pictures of position tables (chapter 8): a heatmap beside a binary counter, and single channels as waves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import seaborn
from matplotlib.style import context as style_context

from src.course.drawing import SIGNED_MAP, STYLE, UNSIGNED_MAP, WIDTH, Figure, new_figure
from src.course.figures import COLOURS
from src.course.printing import plain_array


def binary_counter(length: int, bits: int) -> np.ndarray:
    """The numbers 0 to length - 1 in binary (length, bits), the lowest bit first.

    Raises ValueError when the last number needs more bits.

    >>> binary_counter(4, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if length > 2**bits:
        raise ValueError(f"{bits} bits count to {2**bits - 1}, asked for {length} numbers: take more bits")
    return np.arange(length)[:, None] >> np.arange(bits) & 1


def heatmap_beside_counter(table: object, bits: int) -> Figure:
    """Draw a table of positions (T, C) with values from -1 to 1, and beside it a binary counter (T, bits).

    Rows are positions in both. Raises ValueError for a table that is not (T, C) and for too few bits.

    >>> len(heatmap_beside_counter(np.zeros((4, 6)), 2).axes)  # two tables, each with its colour bar
    4
    """
    waves = plain_array(table)
    if waves.ndim != 2:
        raise ValueError(f"a table of positions has the shape (T, C), got {waves.shape}")
    counter = binary_counter(len(waves), bits)
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 5.4)
        left, right = figure.subplots(1, 2, width_ratios=[4, 1], sharey=True)
        seaborn.heatmap(waves, vmin=-1, vmax=1, cmap=SIGNED_MAP, cbar=False, ax=left)
        seaborn.heatmap(counter, vmin=0, vmax=1, cmap=UNSIGNED_MAP, cbar=False, ax=right)
        figure.colorbar(left.collections[0], ax=left, label="value of a wave", aspect=30, location="top")
        figure.colorbar(right.collections[0], ax=right, label="value of a bit", aspect=8, location="top", ticks=[0, 1])
        for axes, name, step in ((left, "channel", 8), (right, "bit", 1)):
            _number(axes.xaxis, waves.shape[1] if axes is left else bits, step)
            axes.set_xlabel(name)
        _number(left.yaxis, len(waves), 8)
        left.set_ylabel("place")
    return figure


def wave_panels(table: object, channels: Sequence[int] = (0, 1, 2, 3)) -> Figure:
    """Draw some channels of a table of positions (T, C), a panel each: value against position, two panels side by side.

    Raises ValueError for a table that is not (T, C) or has no such channel.

    >>> [axes.get_title() for axes in wave_panels(np.zeros((16, 4)), [0, 3]).axes]
    ['channel 0', 'channel 3']
    """
    waves = plain_array(table)
    if waves.ndim != 2 or not 0 <= min(channels) <= max(channels) < waves.shape[1]:
        raise ValueError(f"channels {list(channels)} of a table (T, C) are wanted, got shape {waves.shape}")
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 0.5 + 1.7 * -(-len(channels) // 2))
        grid = list(figure.subplots(-(-len(channels) // 2), 2, squeeze=False, sharex=True, sharey=True).flat)
        for axes in grid[len(channels) :]:
            axes.remove()
        for axes, channel in zip(grid, channels, strict=False):
            places = np.arange(len(waves))
            seaborn.lineplot(x=places, y=waves[:, channel], marker="o", color=COLOURS[0], ax=axes)
            axes.set(title=f"channel {channel}", ylim=(-1.15, 1.15), yticks=(-1, 0, 1))
            axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
            axes.spines[["top", "right"]].set_visible(False)
        figure.supxlabel("place", fontsize="medium")
        figure.supylabel("value", fontsize="medium")
    return figure


def _number(axis: object, count: int, step: int) -> None:
    """Write every `step`-th number under the middle of its cell."""
    numbers = np.arange(0, count, step)
    axis.set_ticks(numbers + 0.5, [str(number) for number in numbers], rotation=0)  # type: ignore[attr-defined]
