"""The questions of card 1 of the warm-up: shapes and axes."""

import numpy as np

from src.course.compare import compare, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer


def read_shape(answer, place, count):
    """One of `count` shapes as a tuple of integers; a bare number n stands for (n,)."""
    if not isinstance(answer, list | tuple) or len(answer) != count:
        raise Wrong(f"give {count} shapes, each a tuple such as (3, 4)")
    return tuple(int(length) for length in np.atleast_1d(to_array(answer[place], "your shape")))


# Four shapes

SHAPES = [(4, 6), (3, 6), (3, 4), (3, 4, 1)]


def shape_is(place, name, known):
    def test(answer):
        got = read_shape(answer, place, 4)
        if got == SHAPES[place]:
            return None
        return known.get(got, f"{name} does not have the shape {got}: which axes of (3, 4, 6) are left?")

    return Property(name, test)


shape = Exercise(
    id="warmup1.shape",
    title="Four shapes",
    kind="by hand",
    stub=(
        "first = (..., ...)  # x[0]\n"
        "last = (..., ...)  # x[:, -1]\n"
        "total = (..., ...)  # x.sum(axis=-1)\n"
        "mean = (..., ..., ...)  # x.mean(axis=-1, keepdims=True)\n"
        "\n"
        'check("warmup1.shape", [first, last, total, mean])'
    ),
    properties=[
        shape_is(0, "x[0]", {(3, 4): "x[0] takes one entry along axis 0, the first axis: that axis is gone"}),
        shape_is(1, "x[:, -1]", {(3, 4): "in x[:, -1] the -1 stands in second place: it indexes axis 1, not the last"}),
        shape_is(2, "x.sum(axis=-1)", {(6,): "axis=-1 names the last axis alone; you removed the two others"}),
        shape_is(
            3,
            "x.mean(axis=-1, keepdims=True)",
            {
                (3, 4): "this is the shape of x.mean(axis=-1): keepdims leaves something in its place",
                (3, 1, 6): "here the last axis is averaged; you shortened axis 1, the second one",
            },
        ),
    ],
    hints=[
        Hint("The axes of x are called 0, 1 and 2 and have the lengths 3, 4 and 6; -1 is another name for 2."),
        Hint(
            "An index that is a number removes its axis; so does a sum, unless keepdims is set: then length 1 is left."
        ),
        Hint("The four shapes:", code="[(4, 6), (3, 6), (3, 4), (3, 4, 1)]", answer=SHAPES),
    ],
    wrong=[
        WrongAnswer([(3, 4), (3, 6), (3, 4), (3, 4, 1)], contains="the first axis"),
        WrongAnswer([(4, 6), (3, 4), (3, 4), (3, 4, 1)], contains="second place"),
        WrongAnswer([(4, 6), (3, 6), 6, (3, 4, 1)], contains="the two others"),
        WrongAnswer([(4, 6), (3, 6), (3, 4), (3, 4)], contains="in its place"),
        WrongAnswer([(4, 6), (3, 6), (3, 4), (3, 1, 6)], contains="shortened axis 1"),
        WrongAnswer([(4, 6), (3, 6), (3, 4, 6), (3, 4, 1)], contains="which axes"),
    ],
    explanation="An index or a sum removes the axis that it names; keepdims leaves it with length 1.",
)

# Sums along both axes

TABLE = np.array([[2, 0, 1], [3, 6, 4]])


def sum_along(axis):
    name = f"along_{axis}"

    def test(answer):
        if not isinstance(answer, list | tuple) or len(answer) != 2:
            raise Wrong("give two answers, as in (along_0, along_1)")
        known = {
            f"{name} is the sum along the other axis: the axis that you name is the one that disappears": TABLE.sum(
                axis=1 - axis
            ),
            f"{name} is the sum of all numbers: only one axis is summed": TABLE.sum(),
            f"{name} holds means, not sums": TABLE.mean(axis=axis),
            f"{name} still has two axes: without keepdims the summed one is gone": TABLE.sum(axis, keepdims=True),
        }
        return compare(answer[axis], TABLE.sum(axis=axis), name=name, known=known)

    return Property(f"the sum along axis {axis}", test)


sums = Exercise(
    id="warmup1.sums",
    title="Sums along two axes",
    kind="by hand",
    stub='along_0 = [...]\nalong_1 = [...]\n\ncheck("warmup1.sums", (along_0, along_1))',
    properties=[sum_along(0), sum_along(1)],
    hints=[
        Hint("The shape is (2, 3). Along axis 0 the 2 disappears: how many sums are left?"),
        Hint("Axis 0 runs from top to bottom: 2 + 3 is the first sum. Axis 1 runs from left to right: 2 + 0 + 1."),
        Hint("The sums:", code="([5, 6, 5], [3, 13])", answer=([5, 6, 5], [3, 13])),
    ],
    wrong=[
        WrongAnswer(([3, 13], [5, 6, 5]), contains="the other axis"),
        WrongAnswer((16, 16), contains="of all numbers"),
        WrongAnswer(([2.5, 3, 2.5], [1, "13/3"]), contains="holds means"),
        WrongAnswer(([5, 6, 5], [[3], [13]]), contains="still has two axes"),
    ],
    explanation="Along axis 0 there is one sum for each column, along axis 1 one for each row.",
)

# The last token


def is_last(function):
    x = np.arange(24).reshape(2, 3, 4)
    known = {
        "you took the last sequence of the batch: its axis must stay": x[-1],
        "you took the last number of every token: its axis must stay": x[:, :, -1],
        "you took the first token of each sequence": x[:, 0],
        "an axis of length 1 is left, from a slice such as -1: in the index": x[:, -1:],
    }
    message = compare(function(x), x[:, -1], 1e-5, "for x = arange(24) of shape (2, 3, 4) your result", known)
    longer = np.arange(30).reshape(3, 5, 2)
    return message or compare(function(longer), longer[:, -1], 1e-5, "for sequences of five tokens your result")


def by_index(x):
    return x[:, -1]


def last_sequence(x):
    return x[-1]


def last_channel(x):
    return x[:, :, -1]


def first_token(x):
    return x[:, 0]


def last_slice(x):
    return x[:, -1:]


last = Exercise(
    id="warmup1.last",
    title="The last token of each sequence",
    kind="build",
    stub='def last_token(x):\n    return ...\n\n\ncheck("warmup1.last", last_token)',
    properties=[Property("the last token of each sequence", is_last, points=2)],
    hints=[
        Hint("All B sequences stay, one token of T, all C numbers stay: one index, between two whole axes."),
        Hint("A colon keeps an axis whole, -1 is the last entry of an axis, and axes at the end may be left out."),
        Hint("One line:", code="return x[:, -1]", answer=by_index),
    ],
    wrong=[
        WrongAnswer(last_sequence, contains="last sequence of the batch"),
        WrongAnswer(last_channel, contains="last number of every token"),
        WrongAnswer(first_token, contains="the first token"),
        WrongAnswer(last_slice, contains="from a slice"),
        WrongAnswer(lambda x: x[:, 2], contains="for sequences of five tokens"),
    ],
    explanation="A model that writes needs just this: its prediction at the last token of each sequence.",
)

EXERCISES = [shape, sums, last]
