"""What the engine recorded, made visible: the graph behind a tensor, replayed one operation at a time (chapter 1).

Nothing is told twice: operations, order and gradients are read from the engine's own records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from src.core import Tensor
from src.core.graph import Record, reachable

SYMBOLS = {"__add__": "+", "__mul__": "×", "__truediv__": "/", "__matmul__": "@"}


class Operation(NamedTuple):
    """One record: the tensor called `output` was computed from those called `inputs`."""

    symbol: str
    inputs: tuple[str, ...]
    output: str

    def __str__(self) -> str:
        if self.symbol in SYMBOLS.values():
            return f"{self.output} = " + f" {self.symbol} ".join(self.inputs)
        return f"{self.output} = {self.symbol}({', '.join(self.inputs)})"


class Replay(NamedTuple):
    """A backward pass in frames: `gradients[k]` is what each tensor had received after k operations were replayed."""

    values: dict[str, float]
    operations: list[Operation]  # oldest first
    gradients: list[dict[str, float | None]]  # None: nothing received


def replay_in_frames(output: Tensor, tensors: Mapping[str, Tensor]) -> Replay:
    """Do what `output.backward()` does and note all gradients before it and after each operation.

    `tensors` names every tensor of the graph, `output` too; each holds one number. Raises ValueError for a tensor of
    several numbers or without a name, and for an output that nothing was recorded of.

    >>> a = Tensor(3.0)
    >>> b = a * a
    >>> frames = replay_in_frames(b, {"a": a, "b": b})
    >>> [str(operation) for operation in frames.operations], frames.gradients
    (['b = a × a'], [{'a': None, 'b': None}, {'a': 6.0, 'b': 1.0}])
    """
    if not isinstance(output._record, Record):
        raise ValueError("nothing was recorded of this tensor: pass the result of an operation on Tensor([1., 2.])")
    records = reachable(output._record)
    names = {id(tensor._storage): name for name, tensor in tensors.items()}
    operations = [_operation(record, names) for record in records]
    values = {name: float(tensor.item()) for name, tensor in tensors.items()}
    gradients = [_received(tensors)]
    output._storage.receive(np.ones(output.shape))
    while records:
        records.pop().replay()
        gradients.append(_received(tensors))
    return Replay(values, operations, gradients)


def print_replay(replay: Replay) -> None:
    """Print one row a tensor: its value, then its gradient after 0, 1, 2, ... operations were replayed.

    >>> a = Tensor(3.0)
    >>> b = a * a
    >>> print_replay(replay_in_frames(b, {"a": a, "b": b}))
       value  0  1
    a      3  -  6
    b      9  -  1
    """
    rows = [["", "value", *(str(count) for count in range(len(replay.gradients)))]]
    for name, value in replay.values.items():
        rows.append([name, f"{value:g}", *(format_gradient(frame[name]) for frame in replay.gradients)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        texts = [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(texts).rstrip())


def format_gradient(gradient: float | None) -> str:
    """A gradient as text; a dash if nothing was received."""
    return "-" if gradient is None else f"{gradient:g}"


def count_kept(output: Tensor) -> tuple[int, int]:
    """How many operations are kept for the backward pass of `output`, and how many bytes their results take.

    >>> count_kept(Tensor([1.0, 2.0]) * Tensor([3.0, 4.0]))
    (1, 8)
    """
    records = reachable(output._record) if isinstance(output._record, Record) else []
    return len(records), sum(record.read[-1][0].data.nbytes for record in records)  # the last one read is the result


def _operation(record: Record, names: Mapping[int, str]) -> Operation:
    """The record in words; its closure is named after the function that made it."""
    for storage, _, _ in record.read:
        if id(storage) not in names:
            raise ValueError(f"a tensor of the value {storage.data} has no name: name every tensor of the graph")
    function = getattr(record.gradient_fn, "__qualname__", "").rsplit(".<locals>", 1)[0].rpartition(".")[2]
    *inputs, output = (names[id(storage)] for storage, _, _ in record.read)
    return Operation(SYMBOLS.get(function, function), tuple(inputs), output)


def _received(tensors: Mapping[str, Tensor]) -> dict[str, float | None]:
    return {name: float(tensor.grad.item()) if tensor.has_grad else None for name, tensor in tensors.items()}
