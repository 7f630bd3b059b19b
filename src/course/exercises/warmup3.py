"""The questions of card 3 of the warm-up: broadcasting."""

import re

import numpy as np

from src.course.compare import compare, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

# Four pairs of shapes

PAIRS = ["(4, 3) and (3,)", "(4, 1) and (1, 5)", "(2, 1, 6) and (5, 1)", "(8, 3) and (8,)"]
SHAPES = [(4, 3), (4, 5), (2, 5, 6), "error"]


def pair_is(place, known):
    name = PAIRS[place]

    def test(answer):
        if not isinstance(answer, list | tuple) or len(answer) != len(PAIRS):
            raise Wrong('give four answers, each a shape such as (3, 4) or the word "error"')
        got = answer[place]
        if isinstance(got, str):
            got = got.strip().lower()
            if got != "error":
                got = tuple(int(length) for length in re.findall(r"\d+", got))  # "(4, 3)" is a shape, too
                if not got:
                    raise Wrong('an answer is a shape such as (3, 4), or the word "error"')
        else:
            got = tuple(int(length) for length in np.atleast_1d(to_array(got, "your shape")))
        if got == SHAPES[place]:
            return None
        return known.get(got, f"{name} do not give {got}: write one under the other, right ends aligned")

    return Property(name, test)


shape = Exercise(
    id="warmup3.shape",
    title="Do they fit?",
    kind="by hand",
    stub=(
        "one = ...  # (4, 3) + (3,)\n"
        "two = ...  # (4, 1) + (1, 5)\n"
        "three = ...  # (2, 1, 6) + (5, 1)\n"
        "four = ...  # (8, 3) + (8,)\n"
        "\n"
        'check("warmup3.shape", [one, two, three, four])'
    ),
    properties=[
        pair_is(0, {"error": "a missing axis on the left counts as 1, so (3,) fits to (4, 3)"}),
        pair_is(1, {"error": "4 against 1 and 1 against 5: a 1 fits to everything"}),
        pair_is(
            2,
            {
                "error": "6 against 1, 1 against 5, 2 against nothing: all three fit",
                (2, 6, 5): "you aligned on the left: shapes are aligned at their right ends",
            },
        ),
        pair_is(3, {(8, 3): "8 stands under 3, not under 8: NumPy never guesses which axis is meant"}),
    ],
    hints=[
        Hint("Write the two shapes one under the other, right ends aligned, and compare column by column."),
        Hint("Equal lengths fit; a 1 takes the other's length; a missing one counts as 1; anything else is an error."),
        Hint("The four results:", code='[(4, 3), (4, 5), (2, 5, 6), "error"]', answer=SHAPES),
    ],
    wrong=[
        WrongAnswer(["error", (4, 5), (2, 5, 6), "error"], contains="missing axis"),
        WrongAnswer([(4, 3), "error", (2, 5, 6), "error"], contains="fits to everything"),
        WrongAnswer([(4, 3), (4, 5), "error", "error"], contains="all three fit"),
        WrongAnswer([(4, 3), (4, 5), (2, 6, 5), "error"], contains="aligned on the left"),
        WrongAnswer([(4, 3), (4, 5), (2, 5, 6), (8, 3)], contains="never guesses"),
        WrongAnswer([(4, 3), (5, 4), (2, 5, 6), "error"], contains="one under the other"),
        WrongAnswer([(4, 3), (4, 5), (2, 5, 6), "no"], contains='or the word "error"'),
    ],
    explanation="Aligned at the right, lengths must be equal or one of them 1.",
)

# A column and a row


def is_table(answer):
    known = {
        "here the row runs downwards: rows and columns are swapped": [[2, 11], [3, 12], [4, 13]],
        "this multiplies; the two are to be added": [[1, 2, 3], [10, 20, 30]],
        "the column is (2, 1) and the row (3,): each of 2 numbers meets each of 3": [2, 12],
    }
    return compare(answer, [[2, 3, 4], [11, 12, 13]], name="your table", known=known)


table = Exercise(
    id="warmup3.table",
    title="A column plus a row",
    kind="by hand",
    stub='table = [[...]]\n\ncheck("warmup3.table", table)',
    properties=[Property("the table", is_table, points=2)],
    hints=[
        Hint("(2, 1) and (3,) give a shape with two axes: which?"),
        Hint("The column is repeated to the right three times, the row downwards twice; then add entry by entry."),
        Hint("The table:", code="[[1 + 1, 1 + 2, 1 + 3], [10 + 1, 10 + 2, 10 + 3]]", answer=[[2, 3, 4], [11, 12, 13]]),
    ],
    wrong=[
        WrongAnswer([[2, 11], [3, 12], [4, 13]], contains="runs downwards"),
        WrongAnswer([[1, 2, 3], [10, 20, 30]], contains="this multiplies"),
        WrongAnswer([2, 12], contains="each of 2 numbers"),
        WrongAnswer([[2, 3, 4], [11, 12, 14]], contains="5 of 6 entries"),
    ],
    explanation="A column meets a row in every pair: this is how scores of all pairs of tokens get their shape.",
)

# Shares


def shares_of_square(function):
    x = np.array([[1.0, 3.0], [1.0, 1.0]])
    known = {
        "for [[1, 3], [1, 1]] column j is divided by the sum of row j: keep the summed axis": x / x.sum(axis=-1),
        "for [[1, 3], [1, 1]] it is the columns that sum to 1": x / x.sum(axis=0),
        "for [[1, 3], [1, 1]] all numbers are divided by one sum": x / x.sum(),
        "this is softmax, which takes exp first: here only the division is wanted": np.exp(x)
        / np.exp(x).sum(axis=1, keepdims=True),
    }
    return compare(function(x), x / x.sum(axis=1, keepdims=True), 1e-5, "for [[1, 3], [1, 1]] your result", known)


def shares_of_batch(function):
    x = np.array([[[1.0, 3.0], [1.0, 1.0]], [[2.0, 2.0], [4.0, 1.0]]])
    known = {
        "for shape (2, 2, 2) axis 1 is not the last: name the last axis as -1": x / x.sum(axis=1, keepdims=True),
        "for shape (2, 2, 2) [:, None] puts a new axis in second place: the summed one was the last": x
        / x.sum(axis=-1)[:, None],
    }
    name = "for shape (2, 2, 2) your result"
    return compare(function(x), x / x.sum(axis=-1, keepdims=True), 1e-5, name, known)


def by_last_axis(x):
    return x / x.sum(axis=-1, keepdims=True)


def by_lost_axis(x):
    return x / x.sum(axis=-1)


def by_columns(x):
    return x / x.sum(axis=-2, keepdims=True)


def by_all(x):
    return x / x.sum()


def by_axis_one(x):
    return x / x.sum(axis=1, keepdims=True)


shares = Exercise(
    id="warmup3.shares",
    title="Every row its own sum",
    kind="build",
    stub='def shares(x):\n    return ...\n\n\ncheck("warmup3.shares", shares)',
    properties=[Property("a square matrix", shares_of_square, points=2), Property("a batch", shares_of_batch)],
    hints=[
        Hint("The sums of the rows of an (m, n) matrix must have a shape that stretches to (m, n) along its rows."),
        Hint("(m,) stands under n. (m, 1) is right, and keepdims makes it. With -1 it works for any number of axes."),
        Hint("One line:", code="x / x.sum(axis=-1, keepdims=True)", answer=by_last_axis),
    ],
    wrong=[
        WrongAnswer(by_lost_axis, contains="keep the summed axis"),
        WrongAnswer(by_columns, contains="it is the columns"),
        WrongAnswer(by_all, contains="one sum"),
        WrongAnswer(by_axis_one, contains="is not the last"),
        WrongAnswer(lambda x: x / x.sum(axis=-1)[:, None], contains="in second place"),
        WrongAnswer(lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True), contains="this is softmax"),
    ],
    explanation="This line is the second half of softmax.",
)

EXERCISES = [shape, table, shares]
