"""How the time of a step grows with the context and with the batch, all else as in nanoGPT's CPU configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tabulate import tabulate

from .options import Options, say
from .ours import VOCABULARY
from .report import Row
from .side import Contender, take_turns
from .step import NANOGPT

CONTEXTS, BATCHES = (32, 64, 128, 256, 512), (1, 2, 4, 8, 16, 32, 64)
FIGURE = "growth.png"
HEAD = ["", "million products a token", "ours, ms", "µs a token", "PyTorch, ms", "µs a token", "ratio"]
Points = list[tuple[int, float, float]]  # the varied size, our seconds, theirs


def step_time(options: Options) -> list[Row | str]:
    """A table, and a figure where there is a folder for it."""
    options = replace(options, rounds=max(1, options.rounds // 3))
    measured = {"context": _vary("context", CONTEXTS, options), "batch": _vary("batch", BATCHES, options)}
    if options.folder is not None:
        draw(measured, options.folder / FIGURE)
    rows = [_line(name, *point) for name, points in measured.items() for point in points]
    lines = tabulate(rows, HEAD, "pipe", colalign=("left", *["right"] * 6), disable_numparse=True)
    title = "Step time against context T (at B = 12) and batch B (at T = 64); C, heads, blocks = 128, 4, 4:"
    return [f"{title}\n\n{lines}"]


def _vary(name: str, values: tuple[int, ...], options: Options) -> Points:
    points = []
    for value in values:
        say(f"    {name} {value}")
        sizes = NANOGPT | {name: value}
        sides = [Contender("benchmarks.ours:Step", sizes), Contender("benchmarks.theirs:Step", sizes)]
        ours, theirs = take_turns(sides, options)
        points.append((value, ours.median, theirs.median))
    return points


def products(context: int, size: int, blocks: int, vocabulary: int) -> float:
    """Multiplications of a step for each token: 3 times those of the forward pass, which backward has twice.

    A block has 4 C^2 in the projections, 8 C^2 in the feed-forward network and 2 T C in the attention, for scores and
    for mixing, half of which the causal mask throws away.

    >>> products(context=64, size=128, blocks=4, vocabulary=65)
    2580864.0
    """
    return 3.0 * (blocks * (12 * size**2 + 2 * context * size) + size * vocabulary)


def _line(name: str, value: int, ours: float, theirs: float) -> list[str]:
    sizes = NANOGPT | {name: value}
    tokens = sizes["batch"] * sizes["context"]
    count = products(sizes["context"], sizes["size"], sizes["blocks"], VOCABULARY) / 1e6
    times = [cell for seconds in (ours, theirs) for cell in (f"{1e3 * seconds:.3g}", f"{1e6 * seconds / tokens:.1f}")]
    return [f"{'T' if name == 'context' else 'B'} = {value}", f"{count:.2f}", *times, f"{ours / theirs:.2f}"]


def draw(measured: dict[str, Points], path: Path) -> None:
    """Both growths, on logarithmic axes, with the slope of a proportional growth for comparison."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    titles = {"context": "context T, at B = 12", "batch": "batch B, at T = 64"}
    for axes, (name, points) in zip(figure.subplots(1, 2), measured.items(), strict=True):
        values = [value for value, _, _ in points]
        for column, label, style in ((1, "ours", "o-"), (2, "PyTorch", "s--")):
            axes.plot(values, [1e3 * point[column] for point in points], style, label=label)
        last, time = values[-1], 1e3 * points[-1][1]
        axes.plot(values, [time * value / last for value in values], ":", color="0.5", label="proportional")
        axes.set(xscale="log", yscale="log", xlabel=titles[name], ylabel="milliseconds a step")
        axes.set_xticks(values, map(str, values), minor=False)
        axes.minorticks_off()
        axes.legend()
    figure.savefig(path, dpi=100)
