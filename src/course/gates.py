"""Find exercises and solutions in a notebook by their gates (the source of every exercise and of the class edition).

A gate is a sphinx-exercise directive that opens or closes at a cell's edge, so that executed cells can lie between:

    ```{exercise-start} Weights by hand       ```{solution-start} ch03-weights
    :label: ch03-weights                      :class: dropdown
    ```                                       ```
    (statement, given code, stub)             (explanation, code)
    ```{exercise-end}                         ```{solution-end}
    ```                                       ```
"""

import re
from dataclasses import dataclass

from nbformat import NotebookNode

GATE = re.compile(r"^(?:`{3,}|:{3,})\{(exercise|solution)-(start|end)\}[ \t]*(.*)$", re.MULTILINE)
LABEL = re.compile(r"^:label:[ \t]*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Span:
    """The cells from `first` to `last`, both included, of the exercise, or of the solution to the exercise, `label`."""

    kind: str
    label: str
    first: int
    last: int


def find_spans(notebook: NotebookNode) -> list[Span]:
    """All exercises and solutions of a notebook, in order.

    Raises:
        ValueError: if a gate is not closed, is not opened, or does not stand at the edge of its cell.
    """
    spans: list[Span] = []
    opened: tuple[str, str, int] | None = None
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            continue
        for gate in GATE.finditer(cell.source):
            kind, side, argument = gate.groups()
            if side == "start" and opened is None and not cell.source[: gate.start()].strip():
                opened = kind, _label(kind, argument, cell.source[gate.end() :], number), number
            elif side == "end" and opened and opened[0] == kind and _closes(cell.source[gate.end() :]):
                spans.append(Span(kind, opened[1], opened[2], number))
                opened = None
            else:
                raise ValueError(
                    f"cell {number + 1}: {kind}-{side} is out of place: a start comes first in its cell, "
                    "an end last, and each start is closed before the next"
                )
    if opened:
        raise ValueError(f"cell {opened[2] + 1}: {opened[0]}-start of {opened[1]} is never closed")
    return spans


def code_of(notebook: NotebookNode, span: Span) -> list[str]:
    """The sources of the code cells inside a span."""
    cells = notebook.cells[span.first : span.last + 1]
    return [cell.source for cell in cells if cell.cell_type == "code"]


def text_of(notebook: NotebookNode, span: Span) -> str:
    """The markdown inside a span, without its gates and their options."""
    cells = notebook.cells[span.first : span.last + 1]
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return "\n".join(line for line in text.splitlines() if not re.match(r"[`:]{3,}|:\w+:", line)).strip()


def _label(kind: str, argument: str, options: str, number: int) -> str:
    """A solution is opened with its exercise's label as argument, an exercise with its own label as an option."""
    if kind == "solution":
        return argument.strip()
    label = LABEL.search(options)
    if not label:
        raise ValueError(f"cell {number + 1}: exercise-start has no :label:")
    return label[1]


def _closes(rest: str) -> bool:
    """True if only the closing fence follows."""
    return not rest.strip().strip("`:")
