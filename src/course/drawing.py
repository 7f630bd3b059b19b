"""How the pictures of the chapters look: sizes, colours, labels. What they show and refuse stands in `figures.py`."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.figure
import numpy as np
import seaborn
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.style import context as style_context
from numpy.typing import NDArray

from src.course.printing import format_number, visible

Labels = tuple[Sequence[object] | None, Sequence[object] | None]  # of the rows, of the columns

# 5 inches of 120 pixels: on a page letters are as high as those of the text, on a phone, which halves it, 9 pixels.
DPI = 120
WIDTH = 5.0
CELL = 0.6  # inches at most: small matrices do not fill the page
FONT = 11.0
SMALLEST_LABEL = 6.5
SMALLEST_NUMBER = 9.0
MOST_NUMBERS = 150  # in a figure; more than a reader compares, and each takes almost a kilobyte of the picture
LETTER = 0.62  # width of a letter, in font sizes
STYLE = {
    "figure.dpi": DPI,
    "font.size": FONT,
    "axes.titlesize": FONT,
    "hatch.color": "0.7",
}
MASKED = {"facecolor": "0.93", "hatch": "////"}
STROKE = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
# Both are perceptually uniform and colour-blind safe.
UNSIGNED_MAP = "viridis"
SIGNED_MAP = "vlag"


class Figure(matplotlib.figure.Figure):
    """A figure that shows itself in a notebook, whichever backend is loaded, or none."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        # Ticks are made when they are drawn, so the style matters here again. White in dark mode too: black letters on
        # a page that shines through could not be read.
        with style_context(["default", STYLE]):
            self.savefig(buffer, format="png", dpi=self.dpi, bbox_inches="tight", facecolor="white")
        return buffer.getvalue()


class Panel(NamedTuple):
    """One matrix to draw: which cells are hidden, what its values are called, whether they have a sign, their range."""

    values: NDArray
    hidden: NDArray
    label: str
    signed: bool
    limits: tuple[float, float] | None = None


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a whole number of pixels: a notebook prints the size."""
    figure = Figure(figsize=(round(width * DPI) / DPI, round(height * DPI) / DPI), layout="constrained")
    FigureCanvasAgg(figure)  # seaborn measures labels, so there must be something to draw on
    return figure


def draw_panels(
    panels: Sequence[Panel],
    labels: Labels,
    names: tuple[str, str],
    titles: str | Sequence[str] | None,
    annotate: bool | None,
    decimals: int,
) -> Figure:
    """Draw the panels, two in a row, and one colour bar for each label.

    Raises ValueError for a number of labels or titles that does not fit.
    """
    shape = panels[0].values.shape
    ticks = [_ticks(*axis) for axis in zip(labels, shape, names, strict=True)]
    titles = [titles] if isinstance(titles, str) else list(titles or [""] * len(panels))
    if len(titles) != len(panels):
        raise ValueError(f"{len(panels)} matrices but {len(titles)} titles: give one title each")
    if annotate is None and sum(panel.values.size for panel in panels) > MOST_NUMBERS:
        annotate = False
    with style_context(["default", STYLE]):
        figure, grid, cell = _grid(len(panels), shape, _longest(ticks[0][1]), any(titles))
        for axes, panel, title in zip(grid, panels, titles, strict=True):
            limits = _limits([other for other in panels if other.label == panel.label])
            _draw_cells(axes, panel, limits, _numbers(panel, annotate, decimals, cell), cell)
            _name_axes(axes, ticks, names, cell)
            axes.set_title(title)
        for label in dict.fromkeys(panel.label for panel in panels):
            alike = [axes for axes, panel in zip(grid, panels, strict=True) if panel.label == label]
            figure.colorbar(alike[0].collections[0], ax=alike, label=label, aspect=30)
    return figure


def _grid(count: int, shape: tuple[int, ...], letters: int, titled: bool) -> tuple[Figure, list[Axes], float]:
    """Return a figure, its axes, and the width of a cell in points, with room for row labels of so many letters.

    Cells are square unless there are many rows.
    """
    rows, columns = shape
    across = min(2, count)
    down = -(-count // across)
    # Many tokens side by side keep labels of a legible size, though the figure then is wider than a phone shows well.
    room = 4.0 if across == 1 else 2.3 if columns <= 16 else 3.3
    cell_width = min(CELL, room / columns)
    cell_height = min(cell_width, 5.0 / rows)
    width = across * (cell_width * columns + 0.5 + letters * LETTER * FONT / 72) + 0.9
    figure = new_figure(width, down * (cell_height * rows + 0.7 + 0.3 * titled))
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count], cell_width * 72


def _limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """Return the range of colours of panels with one label; where values have a sign, its middle is 0."""
    shown = np.concatenate([panel.values[~panel.hidden] for panel in panels])
    low, high = panels[0].limits or (float(shown.min(initial=0)), float(shown.max(initial=0)))
    if panels[0].signed:
        largest = max(abs(low), abs(high)) or 1.0
        return -largest, largest
    return low, high


def _numbers(panel: Panel, annotate: bool | None, decimals: int, cell: float) -> NDArray | None:
    """Return the text of each cell, or None if there are to be no numbers, or if they would be too small to read."""
    texts = np.full(panel.values.shape, "", object)
    texts[~panel.hidden] = [format_number(value, decimals) for value in panel.values[~panel.hidden]]
    legible = _longest(texts.flat) * LETTER * SMALLEST_NUMBER < cell
    return texts if annotate or (annotate is None and legible) else None


def _draw_cells(axes: Axes, panel: Panel, limits: tuple[float, float], texts: NDArray | None, cell: float) -> None:
    """Draw the cells of one matrix; hidden ones stay empty, so that the hatched background shows."""
    font = FONT if texts is None else min(FONT, cell / (LETTER * _longest(texts.flat)))
    seaborn.heatmap(
        panel.values,
        vmin=limits[0],
        vmax=limits[1],
        cmap=SIGNED_MAP if panel.signed else UNSIGNED_MAP,
        mask=panel.hidden,
        annot=texts,
        fmt="",
        annot_kws={"fontsize": font},
        xticklabels=False,
        yticklabels=False,
        cbar=False,
        ax=axes,
    )
    if panel.hidden.any():
        axes.patch.set(**MASKED)


def _ticks(labels: Sequence[object] | None, size: int, name: str) -> tuple[NDArray, list[str]]:
    """Return where an axis has ticks, and their texts: every label, or up to ten round numbers if there are none."""
    if labels is None:
        step = next(
            step for power in range(9) for step in (10**power, 2 * 10**power, 5 * 10**power) if size <= 10 * step
        )
        numbers = np.arange(0, size, step)
        return numbers + 0.5, [str(number) for number in numbers]
    if len(labels) != size:
        raise ValueError(f"the {name} axis has {size} entries but {len(labels)} labels: give one label each")
    return np.arange(size) + 0.5, [visible(label) for label in labels]


def _name_axes(axes: Axes, ticks: Sequence[tuple[NDArray, list[str]]], names: Sequence[str], cell: float) -> None:
    """Write names and labels of rows and columns, literally: a dollar sign is a token, not the start of a formula."""
    for axis, (places, texts), name in zip((axes.yaxis, axes.xaxis), ticks, names, strict=True):
        space = cell * (places[1] - places[0] if len(places) > 1 else 1)
        font = min(FONT, max(SMALLEST_LABEL, 0.85 * space))
        upright = axis is axes.xaxis and (_longest(texts) + 0.5) * LETTER * font > space
        axis.set_label_text(name)
        axis.set_ticks(places, texts, fontsize=font, rotation=90 if upright else 0, parse_math=False)


def _longest(texts: Iterable[str]) -> int:
    return max(1, *(len(text) for text in texts))


def draw_references(axes: Axes, references: Mapping[str, float]) -> None:
    """Draw horizontal lines; their labels stand right of the frame, where no curve is, moved apart if they collide.

    A short stroke leads from each line to its label.
    """
    for height in references.values():
        axes.axhline(height, color="0.4", linestyle=(0, (1, 1)), linewidth=1.2, zorder=1)
    across = axes.get_yaxis_transform()  # x in frame widths, y as in the data
    low, high = axes.get_ylim()
    lowest = low
    for label, height in sorted(references.items(), key=lambda item: item[1]):
        lowest = max(lowest, height)
        axes.annotate(
            f" {label}",
            (1, height),
            (1.05, lowest),
            xycoords=across,
            textcoords=across,
            va="center",
            color="0.25",
            arrowprops=STROKE,
        )
        lowest += 0.07 * (high - low)
