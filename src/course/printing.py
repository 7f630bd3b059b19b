"""Numbers as text (all chapters): those behind a picture are printed next to it, because tests do not compare pictures.

Printed text is compared on every machine. Therefore decimals are fixed, a rounded zero has no sign, and neither
`np.float64(...)` nor `array(...)` ever shows.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def visible(token: object) -> str:
    """Return the token as text in which newlines, tabs and the spaces at its ends can be seen.

    >>> visible(" "), visible("\\n"), visible(" to be"), visible(7)
    ('␣', '⏎', '␣to be', '7')
    """
    text = str(token).replace("\n", "⏎").replace("\t", "⇥")
    return re.sub(r"^ +| +$", lambda spaces: "␣" * len(spaces[0]), text)


def plain_array(values: object) -> NDArray:
    """Return the numbers of an array, a nested list or a tensor (anything with `.data`) as a NumPy array.

    Raises TypeError for what is neither a number nor a truth value.
    """
    array = np.asarray(getattr(values, "data", values))  # an array's own .data is the same numbers
    if array.dtype.kind not in "biuf":
        raise TypeError(f"numbers wanted, got {array.dtype} from {type(values).__name__}: pass an array or a tensor")
    return array


def format_number(value: object, decimals: int = 3) -> str:
    """Return one number as text: integers and truth values as they are, all else with fixed decimals.

    Raises ValueError for more than one value.

    >>> format_number(np.float64(2 / 7)), format_number(-0.0001), format_number(np.int64(65))
    ('0.286', '0.000', '65')
    >>> format_number(-np.inf), format_number(np.bool_(True))
    ('-inf', 'True')
    """
    array = plain_array(value)
    if array.size != 1:
        raise ValueError(f"one number wanted, got shape {array.shape}: use print_matrix")
    number = array.item()
    if not isinstance(number, float):
        return str(number)
    text = f"{number:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def print_matrix(
    values: object,
    decimals: int = 3,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
) -> None:
    """Print a matrix (rows, columns), or a vector as one row, in aligned columns, with labels if they are given.

    Labels may be a string, one character a label; white space is made visible.
    Raises ValueError for other shapes and for a number of labels that does not fit.

    >>> print_matrix([[1, 0], [1 / 7, -0.0001]], rows="a ", columns=["key a", "key b"])
       key a  key b
    a  1.000  0.000
    ␣  0.143  0.000
    >>> print_matrix([0.5, float("-inf")])
    0.500   -inf
    """
    matrix = plain_array(values)
    if matrix.ndim not in (1, 2):
        raise ValueError(f"a matrix has 2 axes, got shape {matrix.shape}: choose one by indexing, as in values[0]")
    matrix = np.atleast_2d(matrix)
    for name, labels, size in (("row", rows, matrix.shape[0]), ("column", columns, matrix.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{size} {name}s but {len(labels)} {name} labels: give one label a {name}")

    table = [[format_number(value, decimals) for value in row] for row in matrix]
    if columns is not None:
        table.insert(0, [visible(label) for label in columns])
    width = max((len(text) for row in table for text in row), default=0)
    lines = ["  ".join(text.rjust(width) for text in row) for row in table]
    if rows is not None:
        labels = [""] * (columns is not None) + [visible(label) for label in rows]
        label_width = max((len(label) for label in labels), default=0)
        lines = [f"{label.ljust(label_width)}  {line}" for label, line in zip(labels, lines, strict=True)]
    print("\n".join(line.rstrip() for line in lines))
