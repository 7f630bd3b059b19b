"""Pictures for the chapters: heatmaps, attention heatmaps and curves (all chapters).

In a chapter the call is the last line of its cell, and the numbers behind the picture are printed before it:

    print_matrix(weights, rows=tokens, columns=tokens)
    attention_heatmap(weights, tokens)

Each function returns a `Figure` that pyplot does not know. So the notebook shows it once, because it is the value of
the cell; with a closing semicolon, or stored in a variable, it is not shown; nothing has to be closed. A figure made
with `plt.subplots` and returned would show twice. For two figures in one cell, call `display` for the first.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn
from matplotlib.style import context as style_context
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from src.course.drawing import STYLE, WIDTH, Figure, Panel, draw_panels, draw_references, new_figure
from src.course.printing import plain_array

# Seaborn's colour-blind safe palette without its two palest colours, which vanish on white.
COLOURS = [colour for i, colour in enumerate(seaborn.color_palette("colorblind")) if i not in (6, 8)]
LINES = ["-", "--", "-.", ":"]
MARKERS = "os^DvPX*"
SUM_TOLERANCE = 1e-3  # weights typed with four decimals pass, dropout of one percent does not


def heatmap(
    values: object,
    row_labels: Sequence[object] | None = None,
    column_labels: Sequence[object] | None = None,
    *,
    row_name: str = "row",
    column_name: str = "column",
    value_name: str = "value",
    titles: str | Sequence[str] | None = None,
    annotate: bool | None = None,
    decimals: int = 2,
    signed: bool | None = None,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draw a matrix (rows, columns), or several of one shape side by side, as coloured cells.

    Values with a sign get a diverging map centred at 0, others viridis from 0 up; `signed` and `limits` overrule that.
    Numbers are written into the cells of small matrices, or as `annotate` says. All matrices share one colour scale.
    Raises ValueError for other shapes, for values that are not finite and for labels that do not fit.

    >>> heatmap([[1, 2], [3, 4]], row_name="token", column_name="channel").axes[0].get_xlabel()
    'channel'
    """
    matrices = _matrices(values, "values")
    for matrix in matrices:
        _check_finite(matrix, "values")
    if signed is None:
        signed = any((matrix < 0).any() for matrix in matrices)
    panels = [Panel(matrix, np.zeros(matrix.shape, bool), value_name, signed, limits) for matrix in matrices]
    return draw_panels(panels, (row_labels, column_labels), (row_name, column_name), titles, annotate, decimals)


def attention_heatmap(
    weights: object,
    tokens: Sequence[object],
    queries: Sequence[object] | None = None,
    *,
    kind: str | Sequence[str] = "weights",
    mask: object = None,
    titles: str | Sequence[str] | None = None,
    annotate: bool | None = None,
    decimals: int = 2,
    limits: tuple[float, float] = (0.0, 1.0),
) -> Figure:
    """Draw attention (Tq, Tk), heads (H, Tq, Tk) or a list of such matrices: rows are queries, columns are keys.

    `tokens` name the keys, and the queries too unless `queries` does; a string is one token a character. `kind` is
    "weights" or "scores" (raw, with a sign, coloured around 0), one for all or one a matrix. Entries that are -inf in
    scores, or False in `mask` (bool, True = may attend, (Tq, Tk) or (1, Tk)), are hatched. `limits` are the weights
    with the darkest and the brightest colour.

    Raises ValueError for weights that are no weights (a row that does not sum to 1, or to 0 where all is masked; a
    value below 0; a weight on a masked key) and for shapes, labels and masks that do not fit. To draw weights that
    are wrong on purpose, use `heatmap` with row_name="query", column_name="key".

    >>> axes = attention_heatmap([[1, 0], [1 / 3, 2 / 3]], "ab").axes[0]
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('key', 'query')
    """
    matrices = _matrices(weights, "weights")
    kinds = [kind] * len(matrices) if isinstance(kind, str) else list(kind)
    if len(kinds) != len(matrices) or not set(kinds) <= {"weights", "scores"}:
        raise ValueError(f'{len(matrices)} matrices, kind {kinds}: give "weights" or "scores", one for all or one each')
    allowed = _allowed(mask, matrices[0].shape)
    panels = []
    for matrix, name in zip(matrices, kinds, strict=True):
        if name == "weights":
            _check_weights(matrix, allowed)
            panels.append(Panel(matrix, ~allowed, "weight", False, limits))
        else:
            hidden = ~allowed | np.isneginf(matrix)
            _check_finite(matrix[~hidden], "scores")
            panels.append(Panel(matrix, hidden, "score", True))
    labels = (tokens if queries is None else queries, tokens)
    return draw_panels(panels, labels, ("query", "key"), titles, annotate, decimals)


def curves(
    series: Mapping[str, object],
    *,
    xlabel: str = "step",
    ylabel: str = "loss",
    bands: Mapping[str, tuple[object, object]] | None = None,
    references: Mapping[str, float] | None = None,
    title: str = "",
) -> Figure:
    """Draw curves, each with its own colour, line and marker, so that they differ without colour too.

    `series` maps a name to y, or to a tuple (x, y); without x the first point is at 0. `bands` maps such a name to
    (low, high), for example the range over seeds. `references` maps a label such as "ln V" to the height of a line.
    Raises ValueError for more than eight curves, lengths that differ, values that are not finite, a band without curve.

    >>> figure = curves({"train": [4.2, 2.5]}, references={"ln V": 4.174})
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('step', 'loss')
    """
    if not 1 <= len(series) <= len(COLOURS):
        raise ValueError(f"1 to {len(COLOURS)} curves can be told apart, got {len(series)}: draw several figures")
    bands = bands or {}
    if not set(bands) <= set(series):
        raise ValueError(f"bands {sorted(set(bands) - set(series))} have no curve: the curves are {list(series)}")
    points = {name: _points(name, given) for name, given in series.items()}
    with style_context(["default", STYLE]):
        figure = new_figure(WIDTH, 3.4)
        axes = figure.subplots()
        for i, (name, (x, y)) in enumerate(points.items()):
            # About eight markers on a curve, staggered so that those of curves that meet do not hide each other.
            every = max(1, len(x) // 8)
            look = {"color": COLOURS[i], "linestyle": LINES[i % len(LINES)], "marker": MARKERS[i], "markersize": 5}
            axes.plot(x, y, label=name, markevery=(i * every // len(series), every), **look)
            if name in bands:
                low, high = (_curve(f"band of {name}", edge, len(x)) for edge in bands[name])
                axes.fill_between(x, low, high, color=COLOURS[i], alpha=0.2, linewidth=0)
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        whole = all((x % 1 == 0).all() for x, _ in points.values())
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=whole))
        draw_references(axes, references or {})
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def _matrices(values: object, name: str) -> list[NDArray]:
    """Return one matrix or several of one shape as a list of arrays."""
    matrices = [plain_array(part) for part in values] if isinstance(values, (list, tuple)) else [plain_array(values)]
    if all(matrix.ndim < 2 for matrix in matrices):  # the rows of one matrix, as a nested list
        matrices = [plain_array(values)]
    elif len(matrices) == 1 and matrices[0].ndim == 3:
        matrices = list(matrices[0])
    matrices = [matrix.astype(int) if matrix.dtype == bool else matrix for matrix in matrices]
    shapes = [matrix.shape for matrix in matrices]
    if any(matrix.ndim != 2 or matrix.size == 0 for matrix in matrices) or not matrices:
        raise ValueError(
            f"{name} must be (rows, columns) or several of these, got shapes {shapes}: choose by indexing, {name}[0]"
        )
    if len(set(shapes)) > 1:
        raise ValueError(f"{name} side by side must have one shape, got {shapes}: draw them in figures of their own")
    return matrices


def _allowed(mask: object, shape: tuple[int, ...]) -> NDArray:
    """Return the mask as (Tq, Tk), True = may attend."""
    if mask is None:
        return np.ones(shape, bool)
    array = plain_array(mask)
    if array.dtype != bool or array.shape not in (shape, (1, shape[1])):
        wanted = f"bool (True = may attend), {shape} or {(1, shape[1])}"
        raise ValueError(f"mask must be {wanted}, got {array.dtype} {array.shape}: compare, as in mask == 1")
    return np.broadcast_to(array, shape)


def _check_finite(values: NDArray, name: str) -> None:
    """Refuse NaN and infinity: they would leave a hole that looks like a masked entry."""
    wrong = int((~np.isfinite(values)).sum())
    if wrong:
        raise ValueError(f"{name}: {wrong} of {values.size} numbers are NaN or infinite: draw only finite ones")


def _check_weights(weights: NDArray, allowed: NDArray) -> None:
    """Refuse what is not a softmax over the keys."""
    _check_finite(weights, "weights")
    if weights.min() < 0:
        raise ValueError(f'weights lie in [0, 1], got {weights.min():.3f}: draw raw scores with kind="scores"')
    hidden = weights[~allowed].max(initial=0)
    if hidden > 0:
        raise ValueError(f"a masked key has the weight {hidden:.3f}, not 0: mask the scores before softmax")
    wanted = allowed.any(axis=-1).astype(float)
    sums = weights.sum(axis=-1)
    row = int(np.abs(sums - wanted).argmax())
    if abs(sums[row] - wanted[row]) > SUM_TOLERANCE:
        fix = "pass the weights before dropout"
        if np.allclose(weights.sum(axis=0), 1, atol=SUM_TOLERANCE):
            fix = "the columns sum to 1, so softmax ran over the queries: use the last axis"
        raise ValueError(f"rows sum to {sums[row]:.3f}: {fix} (row {row} should sum to {wanted[row]:.0f})")


def _points(name: str, points: object) -> tuple[NDArray, NDArray]:
    """Return x and y of a curve that is given as (x, y) or as y alone."""
    if isinstance(points, tuple):
        if len(points) != 2:
            raise ValueError(f"curve {name}: a tuple is (x, y), got {len(points)} entries: give y alone as a list")
        x = _curve(f"x of {name}", points[0])
        return x, _curve(f"curve {name}", points[1], len(x))
    y = _curve(f"curve {name}", points)
    return np.arange(len(y)), y


def _curve(name: str, values: object, length: int | None = None) -> NDArray:
    """Return one axis of a curve as a vector."""
    array = plain_array(values)
    if array.ndim != 1 or array.size == 0 or (length is not None and len(array) != length):
        raise ValueError(f"{name}: wanted a list of {length or 'some'} numbers, got shape {array.shape}")
    _check_finite(array, name)
    return array
