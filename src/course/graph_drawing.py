"""Draw a backward pass in frames: boxes are tensors, values black, gradients red, arrows what was computed from what.

One frame for the recorded graph and one for each operation replayed; the numbers come from `tracing.py`.
"""

from __future__ import annotations

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch
from matplotlib.style import context as style_context

from src.course.drawing import STYLE, WIDTH, Figure, new_figure
from src.course.tracing import Operation, Replay, format_gradient

RED = "#c00000"
GREY = "0.55"
BOX = (0.82, 0.86)  # width and height, where columns and rows are 1 apart
ROW = 0.56  # inches
Places = dict[str, tuple[float, float]]


def draw_replay(replay: Replay) -> Figure:
    """Draw one frame under the other. In each, the arrows of the operation that was just replayed are red and turned.

    >>> from src.core import Tensor
    >>> from src.course.tracing import replay_in_frames
    >>> a = Tensor(3.0)
    >>> b = a * a
    >>> len(draw_replay(replay_in_frames(b, {"a": a, "b": b})).axes)
    2
    """
    places = place_tensors(replay)
    height = max(row for _, row in places.values()) + 1
    count = len(replay.gradients)
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, count * (ROW * height + 0.38))
        for number, axes in enumerate(figure.subplots(count, 1, squeeze=False).flat):
            _draw_frame(axes, replay, number, places)
            axes.set(xlim=(-0.5, max(column for column, _ in places.values()) + 0.5), ylim=(height - 0.5, -0.5))
            axes.axis("off")
    return figure


def place_tensors(replay: Replay) -> Places:
    """A place (column, row) for each tensor: inputs left of what is computed from them, no two in one place."""
    made = {operation.output: operation for operation in replay.operations}
    columns: dict[str, int] = {}
    for operation in replay.operations:  # oldest first, so inputs that were computed have their column
        known = [columns[name] for name in operation.inputs if name in columns]
        columns[operation.output] = 1 + max(known, default=0)
        for name in operation.inputs:
            columns.setdefault(name, columns[operation.output] - 1)
    rows: dict[str, float] = {}
    leaves = [name for name in replay.values if name in columns and name not in made]
    for row, name in enumerate(leaves):
        rows[name] = float(row)
    for operation in replay.operations:  # halfway between the inputs
        rows[operation.output] = sum(rows[name] for name in operation.inputs) / len(operation.inputs)
    return {name: (float(columns[name]), rows[name]) for name in columns}


def _draw_frame(axes: Axes, replay: Replay, number: int, places: Places) -> None:
    """Frame 0 shows the recorded graph, frame k the k-th operation from the end."""
    last = len(replay.operations) - number if number else None
    title = "recorded" if last is None else f"replayed: {replay.operations[last]}"
    axes.set_title(f"{number}. {title}", loc="left", parse_math=False)
    for index, operation in enumerate(replay.operations):
        _draw_arrows(axes, operation, places, replayed=index == last)
    made = {operation.output for operation in replay.operations}
    for name, (column, row) in places.items():
        width, height = BOX
        corner = (column - width / 2, row - height / 2)
        face = "white" if name in made else "0.94"  # what was given has a grey box
        axes.add_patch(_box(corner, face))
        gradient = replay.gradients[number][name]
        axes.text(column, row - 0.2, f"{name} = {replay.values[name]:g}", ha="center", va="center", parse_math=False)
        if gradient is not None:
            text = f"grad {format_gradient(gradient)}"
            axes.text(column, row + 0.21, text, ha="center", va="center", color=RED, weight="bold")


def _box(corner: tuple[float, float], face: str) -> FancyBboxPatch:
    style = "round,pad=0,rounding_size=0.08"
    return FancyBboxPatch(corner, *BOX, boxstyle=style, facecolor=face, edgecolor="0.2", zorder=2)


def _draw_arrows(axes: Axes, operation: Operation, places: Places, replayed: bool) -> None:
    """An arrow from each input to the output, or back if the operation was just replayed; two if it is used twice."""
    half = BOX[0] / 2
    end_column, end_row = places[operation.output]
    for name, times in Counter(operation.inputs).items():
        column, row = places[name]
        for use in range(times):
            shift = 0.3 * (use - (times - 1) / 2)
            ends = [(column + half, row + shift), (end_column - half, end_row + shift)]
            colour, width = (RED, 2.0) if replayed else (GREY, 1.2)
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
            start, end = reversed(ends) if replayed else ends
            axes.annotate("", end, start, arrowprops=arrow, zorder=3)
