"""The questions of card 6 of the warm-up: slope and chain rule."""

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
        Hint("u = 3. The slope of u**3 there is 3 times 9, and the slope of u is -2."),
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

GRADIENT = [4, 2]


def is_gradient(answer):
    known = {
        "a reaches y twice, through a * b and directly: add the two slopes": [3, 2],
        "the two are exchanged: the slope along a comes first": [2, 4],
        "this is the value of y, not how it changes": [8, 8],
    }
    return compare(answer, GRADIENT, name="your pair of slopes", known=known)


paths = Exercise(
    id="warmup6.paths",
    title="Two ways from a to y",
    kind="by hand",
    stub='along_a = ...\nalong_b = ...\n\ncheck("warmup6.paths", [along_a, along_b])',
    properties=[Property("both slopes", is_gradient, points=2)],
    hints=[
        Hint("For the slope along a, hold b = 3 fixed and write y as a number times a."),
        Hint("With b = 3, y = 3a + a. With a = 2, y = 2b + 2."),
        Hint("The two slopes:", code="[3 + 1, 2]", answer=GRADIENT),
    ],
    wrong=[
        WrongAnswer([3, 2], contains="add the two slopes"),
        WrongAnswer([2, 4], contains="exchanged"),
        WrongAnswer([8, 8], contains="the value of y"),
        WrongAnswer([4, 3], contains="1 of 2 entries"),
    ],
    explanation="What is used twice receives two slopes, and they add up. The engine does the same with `+=`.",
)

# A slope by measuring


def of_line(function):
    right = compare(function(lambda x: 5 * x + 1, 2.0, 0.5), 5, 1e-9)
    if right is None:
        return None
    value = function(lambda x: 5 * x + 1, 2.0, 0.5)
    known = {
        "for the line 5x + 1 you return the difference: divide by how far x moved": 5.0,
        "for the line 5x + 1 with h = 0.5 the slope comes out twice too large: x moves by 2h": 10.0,
        "for the line 5x + 1 with h = 0.5 the slope has the wrong sign": -5.0,
    }
    if abs(value - 2.5) < 1e-9:
        return "for the line 5x + 1 with h = 0.5 the slope comes out half as large: how far does x move?"
    return compare(value, 5, 1e-9, "for the line 5x + 1 your slope", known)


def of_square(function):
    known = {
        "for x * x at 3 with h = 0.5 you look to the right only: the left side would give as much less": 6.5,
        "for x * x at 3 with h = 0.5 you look to the left only: the right side would give as much more": 5.5,
    }
    return compare(function(lambda x: x * x, 3.0, 0.5), 6, 1e-9, "for x * x at 3 with h = 0.5 your slope", known)


def by_both_sides(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


def by_right_side(f, x, h):
    return (f(x + h) - f(x)) / h


def by_left_side(f, x, h):
    return (f(x) - f(x - h)) / h


def by_half_width(f, x, h):
    return (f(x + h) - f(x - h)) / h


def by_wrong_order(f, x, h):
    return (f(x - h) - f(x + h)) / (2 * h)


measure = Exercise(
    id="warmup6.measure",
    title="Measure a slope",
    kind="build",
    stub='def measured_slope(f, x, h):\n    return ...\n\n\ncheck("warmup6.measure", measured_slope)',
    properties=[Property("a line", of_line), Property("a parabola", of_square)],
    hints=[
        Hint("Look h to the right and h to the left, and compare the two values of f."),
        Hint("From left to right x moves by 2h, not by h."),
        Hint("The measured slope:", code="(f(x + h) - f(x - h)) / (2 * h)", answer=by_both_sides),
    ],
    wrong=[
        WrongAnswer(by_right_side, contains="to the right only"),
        WrongAnswer(by_left_side, contains="to the left only"),
        WrongAnswer(by_half_width, contains="x moves by 2h"),
        WrongAnswer(by_wrong_order, contains="wrong sign"),
    ],
    explanation="The engine's gradients are tested in this way, with a small h.",
)

EXERCISES = [chain, paths, measure]
