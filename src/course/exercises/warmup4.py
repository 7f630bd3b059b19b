"""The questions of card 4 of the warm-up: exp, ln and softmax."""

import math

import numpy as np

from src.course.compare import compare, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

# Three numbers

NUMBERS = [8, 5, 2.485]


def number_is(place, name, known):
    def test(answer):
        if not isinstance(answer, list | tuple) or len(answer) != 3:
            raise Wrong("give three numbers")
        return compare(answer[place], NUMBERS[place], tolerance=5e-4, name=name, known=known)

    return Property(name, test)


rules = Exercise(
    id="warmup4.rules",
    title="Three numbers without a calculator",
    kind="by hand",
    stub=(
        "one = ...  # exp(3 ln 2)\n"
        "two = ...  # ln(exp(7) / exp(2))\n"
        "three = ...  # ln 12, from ln 2 = 0.693 and ln 3 = 1.099\n"
        "\n"
        'check("warmup4.rules", [one, two, three])'
    ),
    properties=[
        number_is(
            0,
            "exp(3 ln 2)",
            {
                "exp(3 ln 2) is not 3 times 2: three factors of exp(ln 2) are multiplied": 6,
                "this is 3 ln 2 itself: take exp of it": 3 * math.log(2),
                "this is 3 times 3: what is multiplied with itself is exp(ln 2)": 9,
            },
        ),
        number_is(
            1,
            "ln(exp(7) / exp(2))",
            {
                "a quotient of exp subtracts the exponents; you divided them": 3.5,
                "a quotient of exp subtracts the exponents; you added them": 9,
                "you found the quotient, exp of something: ln undoes that exp": math.exp(5),
            },
        ),
        number_is(
            2,
            "ln 12",
            {
                "the logarithm of a product is a sum; you multiplied": 2 * 0.693 * 1.099,
                "this is the logarithm of 2 times 3: 12 has one more factor": 1.792,
                "this is the logarithm of 2 * 3 * 3": 0.693 + 2 * 1.099,
                "ln 4 is not 4 times ln 2: 4 is a product": 4 * 0.693 + 1.099,
            },
        ),
    ],
    hints=[
        Hint("exp turns sums into products, ln turns products into sums, and each undoes the other."),
        Hint("exp(3 ln 2) = 2 * 2 * 2; exp(7) / exp(2) = exp(7 - 2); 12 = 2 * 2 * 3."),
        Hint("The three numbers:", code="[2 * 2 * 2, 7 - 2, 0.693 + 0.693 + 1.099]", answer=NUMBERS),
    ],
    wrong=[
        WrongAnswer([6, 5, 2.485], contains="three factors"),
        WrongAnswer([2.079, 5, 2.485], contains="3 ln 2 itself"),
        WrongAnswer([9, 5, 2.485], contains="3 times 3"),
        WrongAnswer([8, 9, 2.485], contains="you added them"),
        WrongAnswer([8, 5, 2.891], contains="2 * 3 * 3"),
        WrongAnswer([8, 5, 3.871], contains="4 is a product"),
        WrongAnswer([8, 3.5, 2.485], contains="you divided them"),
        WrongAnswer([8, 148.413, 2.485], contains="undoes that exp"),
        WrongAnswer([8, 5, 1.523], contains="you multiplied"),
        WrongAnswer([8, 5, 1.792], contains="one more factor"),
    ],
    explanation="Scores such as n ln 2 are used in many chapters, because their exp can be found by hand.",
)

# A row by hand

ROW = [0.3, 0.1, 0.1, 0.5]


def row_is(answer):
    known = {
        "exp(0) is 1, not 0: no score gives the weight 0, except minus infinity": [3 / 8, 0, 0, 5 / 8],
        "these are the shares of the scores themselves: take exp of each first": [0.4057, 0, 0, 0.5943],
        "softmax does not pick the largest score: all get a share": [0, 0, 0, 1],
    }
    return compare(answer, ROW, name="your row", known=known)


row = Exercise(
    id="warmup4.row",
    title="A softmax by hand",
    kind="by hand",
    stub='row = [..., ..., ..., ...]\n\ncheck("warmup4.row", row)',
    properties=[Property("the four weights", row_is, points=2)],
    hints=[
        Hint("First take exp of each score: exp(ln 3) is 3, and exp(0) is not 0."),
        Hint("The weights are as 3 to 1 to 1 to 5."),
        Hint("Divide by the sum:", code='["3/10", "1/10", "1/10", "5/10"]', answer=ROW),
    ],
    wrong=[
        WrongAnswer([3, 1, 1, 5], contains="not yet divided"),
        WrongAnswer(["3/8", 0, 0, "5/8"], contains="exp(0) is 1"),
        WrongAnswer([0.4057, 0, 0, 0.5943], contains="shares of the scores"),
        WrongAnswer([0, 0, 0, 1], contains="all get a share"),
    ],
    explanation="Only differences count: with 7 added to every score the row would be the same.",
)

# A softmax that survives


def softmax_of(function, scores):
    result = to_array(function(np.array(scores)), f"for {scores} your result")
    if not np.isfinite(result).all():
        raise Wrong(f"for {scores} there is a weight that is no number (nan)")
    return result


def small_row(function):
    scores = [[0.0, math.log(3)], [0.0, 0.0]]
    known = {
        "for [[0, ln 3], [0, 0]] it is the columns that sum to 1": [[1 / 2, 3 / 4], [1 / 2, 1 / 4]],
        "for [[0, ln 3], [0, 0]] both rows together sum to 1: each must by itself": [[1 / 6, 1 / 2], [1 / 6, 1 / 6]],
        "for [[0, ln 3], [0, 0]] the scores are divided by the largest: only subtracting keeps the shares": [
            [1 / (1 + math.e), math.e / (1 + math.e)],
            [1 / 2, 1 / 2],
        ],
    }
    right = [[1 / 4, 3 / 4], [1 / 2, 1 / 2]]
    return compare(softmax_of(function, scores), right, 1e-5, "for [[0, ln 3], [0, 0]] your result", known)


def large_scores(function):
    right = [0.268941, 0.731059]
    try:
        return compare(softmax_of(function, [1000.0, 1001.0]), right, 1e-5, "for [1000, 1001] your result")
    except Wrong as error:
        raise Wrong(f"{error}: exp(1000) is too large for the machine, but exp(0) and exp(1) are not") from None


def distant_rows(function):
    try:
        return compare(softmax_of(function, [[0.0, 0.0], [-2000.0, -2000.0]]), [[0.5, 0.5]] * 2, 1e-5)
    except Wrong as error:
        raise Wrong(f"{error}: each row needs a largest score of its own to subtract") from None


def by_row_maximum(scores):
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def by_formula(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def by_one_maximum(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum(axis=-1, keepdims=True)


def over_columns(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=0, keepdims=True)


def over_all(scores):
    return np.exp(scores) / np.exp(scores).sum()


stable = Exercise(
    id="warmup4.stable",
    title="A softmax for large scores",
    kind="build",
    stub='def softmax(scores):\n    return ...\n\n\ncheck("warmup4.stable", softmax)',
    properties=[
        Property("rows of small scores", small_row),
        Property("large scores", large_scores),
        Property("rows far apart", distant_rows),
    ],
    hints=[
        Hint("Subtracting one number from all scores of a row does not change the row's weights."),
        Hint("Subtract the largest score of each row, with keepdims: then the largest exponent is 0."),
        Hint(
            "The exponentials, to be divided by their sum along the last axis:",
            code="np.exp(scores - scores.max(axis=-1, keepdims=True))",
            answer=by_row_maximum,
        ),
    ],
    wrong=[
        WrongAnswer(over_columns, contains="the columns that sum"),
        WrongAnswer(over_all, contains="both rows together"),
        WrongAnswer(by_formula, contains="too large for the machine"),
        WrongAnswer(by_one_maximum, contains="of its own"),
        WrongAnswer(lambda scores: by_row_maximum(scores / scores.max()), contains="divided by the largest"),
    ],
    explanation="After the subtraction no exponent is above 0, and the largest is exp(0) = 1, so the sum is never 0.",
)

EXERCISES = [rules, row, stable]
