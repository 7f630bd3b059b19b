"""The questions of card 6 of the warm-up: slope and chain rule."""

import numpy as np

from src.course.compare import compare
from src.course.exercise import Exercise, Hint, Property, WrongAnswer

# A chain


def is_chain_slope(answer):
    known = {
        "the outer slope alone: multiply it by the slope of 5 - 2x": 27,
        "the inner function falls: its slope is -2, not 2": 54,
        "the outer slope belongs at u = 5 - 2x = 3, not at x = 1": -6,
        "the square is missing: the slope of u**3 is 3 u**2": -18,
    }
    return compare(answer, -54, name="your slope", known=known)


chain = Exercise(
    id="warmup6.chain",
    title="A chain by hand",
    kind="by hand",
    stub='slope_at_1 = ...\n\ncheck("warmup6.chain", slope_at_1)',
    properties=[Property("the slope", is_chain_slope, points=2)],
    hints=[
        Hint("Give the inside a name: u = 5 - 2x. At x = 1, what is u, and how fast does u change with x?"),
        Hint("u = 3. The slope of `u**3` there is 3 times 9, and the slope of u is -2."),
        Hint("Multiply:", code="3 * 3**2 * (-2)", answer=-54),
    ],
    wrong=[
        WrongAnswer(27, contains="the outer slope alone"),
        WrongAnswer(54, contains="inner function falls"),
        WrongAnswer(-6, contains="not at x = 1"),
        WrongAnswer(-18, contains="square is missing"),
    ],
    explanation="Slopes along a chain multiply, each taken at its own input.",
)

# Two ways

GRADIENT = [7, 2]


def is_gradient(answer):
    known = {
        "a reaches y twice, through a * b and through a * a: add the two slopes": [3, 2],
        "the slope along a lacks what goes through a * b": [4, 2],
        "a stands twice in a * a, so its slope there is 2a": [5, 2],
        "the two are exchanged: the slope along a comes first": [2, 7],
        "this is the value of y, not how it changes": [10, 10],
        "over two ways slopes add up; you multiplied them": [12, 2],
        "b does not stand in a * a: along b only a * b counts": [7, 6],
    }
    return compare(answer, GRADIENT, name="your pair of slopes", known=known)


paths = Exercise(
    id="warmup6.paths",
    title="Two ways from a to y",
    kind="by hand",
    stub='along_a = ...\nalong_b = ...\n\ncheck("warmup6.paths", [along_a, along_b])',
    properties=[Property("both slopes", is_gradient, points=2)],
    hints=[
        Hint("For the slope along a, hold b = 3 fixed; for that along b, hold a = 2 fixed."),
        Hint("With b = 3, y is `3 * a + a**2`. With a = 2, it is `2 * b + 4`."),
        Hint("The two slopes:", code="[3 + 2 * 2, 2]", answer=GRADIENT),
    ],
    wrong=[
        WrongAnswer([3, 2], contains="add the two slopes"),
        WrongAnswer([4, 2], contains="lacks what goes"),
        WrongAnswer([5, 2], contains="slope there is 2a"),
        WrongAnswer([2, 7], contains="exchanged"),
        WrongAnswer([10, 10], contains="the value of y"),
        WrongAnswer([12, 2], contains="you multiplied them"),
        WrongAnswer([7, 6], contains="does not stand in"),
        WrongAnswer([7, 3], contains="1 of 2 entries"),
    ],
    explanation="What is used twice receives two slopes, and they add up. The engine does the same with `+=`.",
)

# A gradient by measuring

STEP = 0.25


def line(w):
    return 5 * w[0] - 2 * w[1] + 1


def curve(w):
    return w[0] * w[0] * w[1]


def of_line(function):
    known = {
        "for 5 w[0] - 2 w[1] + 1 you return differences: divide by how far w moved": [2.5, -1.0],
        "for 5 w[0] - 2 w[1] + 1 the slopes come out twice too large: w moves by 2h": [10.0, -4.0],
        "for 5 w[0] - 2 w[1] + 1 the slopes have the wrong sign": [-5.0, 2.0],
        "for 5 w[0] - 2 w[1] + 1 both numbers move at once: each slope is taken while the other stays": [3.0, 3.0],
        "`/ 2 * h` divides by 2 and multiplies by h: put 2 * h in brackets": [0.3125, -0.125],
        "right and left are the same: is it one array under two names? `a = w` copies nothing": [0.0, 0.0],
        "there is one slope only: does the `return` stand inside the loop?": [5.0],
    }
    return compare(
        function(line, np.array([2.0, 1.0]), STEP), [5, -2], 1e-9, "for 5 w[0] - 2 w[1] + 1 your list", known
    )


def of_curve(function):
    known = {
        "for w[0] w[0] w[1] you look to the right only: the left side would give as much less": [12.5, 9.0],
        "for w[0] w[0] w[1] you look to the left only: the right side would give as much more": [11.5, 9.0],
        "w[0] must be back at its place before w[1] moves": [12.0, 7.5625],
    }
    return compare(function(curve, np.array([3.0, 2.0]), STEP), [12, 9], 1e-9, "for w[0] w[0] w[1] your list", known)


def by_both_sides(f, w, h):
    return [(f(w + step) - f(w - step)) / (2 * h) for step in h * np.eye(len(w))]


def by_right_side(f, w, h):
    return [(f(w + step) - f(w)) / h for step in h * np.eye(len(w))]


def by_left_side(f, w, h):
    return [(f(w) - f(w - step)) / h for step in h * np.eye(len(w))]


def by_half_width(f, w, h):
    return [2 * slope for slope in by_both_sides(f, w, h)]


def by_wrong_order(f, w, h):
    return [-slope for slope in by_both_sides(f, w, h)]


def by_difference(f, w, h):
    return [2 * h * slope for slope in by_both_sides(f, w, h)]


def by_all_at_once(f, w, h):
    return [(f(w + h) - f(w - h)) / (2 * h)] * len(w)


def by_moving_on(f, w, h):
    slopes = []
    for i in range(len(w)):
        w[i] += h
        right = f(w)
        w[i] -= 2 * h
        slopes.append((right - f(w)) / (2 * h))
    return slopes


def by_two_names(f, w, h):
    slopes = []
    for i in range(len(w)):
        right, left = w, w
        right[i] += h
        left[i] -= h
        slopes.append((f(right) - f(left)) / (2 * h))
    return slopes


measure = Exercise(
    id="warmup6.measure",
    title="Measure a gradient",
    kind="build",
    stub='def measured_gradient(f, w, h):\n    # your code\n    ...\n\n\ncheck("warmup6.measure", measured_gradient)',
    properties=[Property("a line", of_line), Property("a curve", of_curve)],
    hints=[
        Hint("One slope after the other: number i of w moves h to the right and h to the left, the others stay."),
        Hint("A row of `h * np.eye(len(w))` is h in one place and 0 elsewhere. From left to right w[i] moves by 2h."),
        Hint(
            "With such a row as `step`, a slope is (f(w + step) - f(w - step)) / (2 * h). In one line:",
            code="[(f(w + step) - f(w - step)) / (2 * h) for step in h * np.eye(len(w))]",
            answer=by_both_sides,
        ),
    ],
    wrong=[
        WrongAnswer(by_right_side, contains="to the right only"),
        WrongAnswer(by_left_side, contains="to the left only"),
        WrongAnswer(by_half_width, contains="w moves by 2h"),
        WrongAnswer(by_wrong_order, contains="wrong sign"),
        WrongAnswer(by_difference, contains="divide by how far w moved"),
        WrongAnswer(by_all_at_once, contains="both numbers move at once"),
        WrongAnswer(by_moving_on, contains="back at its place"),
        WrongAnswer(lambda f, w, h: [slope * h * h for slope in by_both_sides(f, w, h)], contains="in brackets"),
        WrongAnswer(by_two_names, contains="under two names"),
        WrongAnswer(lambda f, w, h: by_both_sides(f, w, h)[:1], contains="inside the loop"),
    ],
    explanation="The engine's gradients are tested in this way, with a small h.",
)

EXERCISES = [chain, paths, measure]
