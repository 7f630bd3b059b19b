"""The questions of card 2 of the warm-up: a matrix product as weighted sums of rows."""

import numpy as np

from src.course.compare import compare, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

# One row of a product


def is_weighted_sum(answer):
    known = {
        "the rows are added without their weights": [5, 7],
        "the second weight is -1: that row is taken away, not added": [6, 17],
        "the weight -1 belongs to both numbers of its row": [-2, 17],
        "these are the weighted rows: they are still to be added": [[2, 0], [-4, -2], [0, 15]],
        "this is one number: three rows of two numbers give a row of two": 11,
    }
    return compare(answer, [-2, 13], name="your row", known=known)


row = Exercise(
    id="warmup2.row",
    title="A weighted sum of three rows",
    kind="by hand",
    stub='row = [..., ...]\n\ncheck("warmup2.row", row)',
    properties=[Property("the weighted sum", is_weighted_sum, points=2)],
    hints=[
        Hint("Multiply each row by its weight first: the first one becomes [2, 0]."),
        Hint("[2, 0], [-4, -2] and [0, 15] are to be added, column by column."),
        Hint("The sum:", code="[2 - 4 + 0, 0 - 2 + 15]", answer=[-2, 13]),
    ],
    wrong=[
        WrongAnswer([5, 7], contains="without their weights"),
        WrongAnswer([6, 17], contains="taken away"),
        WrongAnswer([-2, 17], contains="both numbers of its row"),
        WrongAnswer([[2, 0], [-4, -2], [0, 15]], contains="still to be added"),
        WrongAnswer(11, contains="one number"),
        WrongAnswer([13, -2], contains="reverse order"),
    ],
    explanation="Each weight belongs to one row, and multiplies all of it.",
)

# Weights for a wish

WEIGHTS = [[0.5, 0, 0.5], [-1, 2, 0]]


def weights_of(answer):
    weights = to_array(answer, "your matrix")
    if weights.shape == (3, 2):
        raise Wrong("your matrix is (3, 2): it needs a row for each row of the result, a column for each row of X")
    if weights.shape != (2, 3):
        raise Wrong(f"your matrix has the shape {weights.shape}: 2 rows are wanted from 3, so it is (2, 3)")
    return weights


def first_is_average(answer):
    known = {
        "this adds row 0 and row 2: the average is half of that": [1, 0, 1],
        "this averages all three rows": [1 / 3, 1 / 3, 1 / 3],
    }
    return compare(weights_of(answer)[0], WEIGHTS[0], name="the first row of weights", known=known)


def second_is_difference(answer):
    known = {
        "this takes row 0 twice and takes row 1 away": [2, -1, 0],
        "this adds row 0 instead of taking it away": [1, 2, 0],
    }
    return compare(weights_of(answer)[1], WEIGHTS[1], name="the second row of weights", known=known)


weights = Exercise(
    id="warmup2.weights",
    title="Weights for a wish",
    kind="by hand",
    stub=(
        "W = [\n    [..., ..., ...],  # the average of row 0 and row 2\n"
        "    [..., ..., ...],  # twice row 1, minus row 0\n]\n\n"
        'check("warmup2.weights", W)'
    ),
    properties=[
        Property("the average of two rows", first_is_average),
        Property("twice row 1, minus row 0", second_is_difference),
    ],
    hints=[
        Hint("A row of W says how much of row 0, of row 1 and of row 2 goes into one row of the result."),
        Hint("A row that is not wanted has the weight 0. An average of two has the weights 1/2 and 1/2."),
        Hint("The weights:", code="[[1 / 2, 0, 1 / 2], [-1, 2, 0]]", answer=WEIGHTS),
    ],
    wrong=[
        WrongAnswer([["1/2", -1], [0, 2], ["1/2", 0]], contains="it needs a row for each"),
        WrongAnswer([[1, 0, 1], [-1, 2, 0]], contains="half of that"),
        WrongAnswer([["1/2", 0, "1/2"], [2, -1, 0]], contains="takes row 0 twice"),
        WrongAnswer([["1/2", 0, "1/2"], [1, 2, 0]], contains="instead of taking"),
    ],
    explanation="Row i of W is the recipe for row i of W @ X, whatever X holds.",
)

# Three loops


def small_product(function):
    a, b = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    known = {
        "for b = [[1, 1], [0, 1]] b is read along a row: this is a @ b.T": a @ b.T,
        "for a = [[1, 2], [0, 1]] a is read along a column: this is a.T @ b": a.T @ b,
        "only the last product of each sum is kept": a[:, 1:] @ b[1:],
        "this multiplies entry by entry, and sums nothing": a * b,
    }
    return compare(function(a, b), a @ b, 1e-5, "for two (2, 2) matrices your product", known)


def other_shapes(function):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    return compare(function(a, b), a @ b, 1e-5, "for (2, 3) and (3, 4) your product")


def by_three_loops(a, b):
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for s in range(a.shape[1]):
                out[i, j] += a[i, s] * b[s, j]
    return out


def by_rows_of_b(a, b):
    return a @ b.T


def by_columns_of_a(a, b):
    return a.T @ b


def by_last_term(a, b):
    return a[:, -1:] @ b[-1:]


def by_entries(a, b):
    return a * b


def by_two_terms(a, b):
    return a[:, :2] @ b[:2]


loops = Exercise(
    id="warmup2.loops",
    title="Three loops, one slip",
    kind="find the bug",
    stub='product = ...  # your function, mended from broken_product\n\ncheck("warmup2.loops", product)',
    properties=[Property("two square matrices", small_product), Property("other shapes", other_shapes)],
    hints=[
        Hint("b is (k, n). Which of i, j and s runs up to k, and which up to n?"),
        Hint("Entry (i, j) needs row i of a and column j of b, so in b the summed index stands first."),
        Hint("The last line of the loop:", code="out[i, j] += a[i, s] * b[s, j]", answer=by_three_loops),
    ],
    wrong=[
        WrongAnswer(by_rows_of_b, contains="read along a row"),
        WrongAnswer(by_columns_of_a, contains="read along a column"),
        WrongAnswer(by_last_term, contains="last product"),
        WrongAnswer(by_entries, contains="entry by entry"),
        WrongAnswer(by_two_terms, contains="for (2, 3) and (3, 4)"),
    ],
    explanation="The two inner axes meet in the sum: (m, k) @ (k, n).",
)

EXERCISES = [row, weights, loops]
