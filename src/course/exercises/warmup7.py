"""The questions of card 7 of the warm-up: descent on one parameter."""

import numpy as np

from src.course.compare import compare
from src.course.exercise import Exercise, Hint, Property, WrongAnswer

# Two steps

STEPS = [2.2, 1.72]


def are_two_steps(answer):
    known = {
        "you went uphill: the step goes against the slope": [3.8, 4.92],
        "the second step uses the slope of the first place: find it anew at the new w": [2.2, 1.4],
        "the slope of 2(w - 1)**2 is 4(w - 1): a factor 2 is missing": [2.6, 2.28],
        "the first step is as long as the slope: it is to be multiplied by 0.1": [-5, 19],
        "you took 4w for the slope: it is w - 1 that is squared": [1.8, 1.08],
        "you started at 0; w is 3": [0.4, 0.64],
    }
    return compare(answer, STEPS, name="your pair", known=known)


steps = Exercise(
    id="warmup7.steps",
    title="Two steps by hand",
    kind="by hand",
    stub='after_one = ...\nafter_two = ...\n\ncheck("warmup7.steps", [after_one, after_two])',
    properties=[Property("w after one and after two steps", are_two_steps, points=2)],
    hints=[
        Hint("The slope of `2 * (w - 1)**2` is `4 * (w - 1)`. At w = 3 that is 8."),
        Hint("The first step is -0.1 times 8. Then the slope is 4 times 1.2."),
        Hint("Both places:", code="[3 - 0.1 * 8, 2.2 - 0.1 * 4.8]", answer=STEPS),
    ],
    wrong=[
        WrongAnswer([3.8, 4.92], contains="uphill"),
        WrongAnswer([2.2, 1.4], contains="find it anew"),
        WrongAnswer([2.6, 2.28], contains="a factor 2"),
        WrongAnswer([-5, 19], contains="to be multiplied by 0.1"),
        WrongAnswer([1.8, 1.08], contains="you took 4w"),
        WrongAnswer([0.4, 0.64], contains="started at 0"),
    ],
    explanation="The second step is shorter than the first although the learning rate is the same.",
)

# How large is too large


def is_direct(answer):
    known = {
        "that rate suits the slope 2(w - 3) of the card; here the slope is 10w": 0.5,
        "with this rate w jumps to -w": 0.2,
        "10 belongs to the slope, 10w: rate times slope must be w": 10,
    }
    return compare(answer[0], 0.1, name="the rate that arrives in one step", known=known)


def is_limit(answer):
    known = {
        "the rate above which the loss grows is that of the card's parabola: here the slope is 10w": 1,
        "with this rate w arrives in one step: larger ones still come closer, from both sides in turn": 0.1,
    }
    return compare(answer[1], 0.2, name="the limit", known=known)


rates = Exercise(
    id="warmup7.rates",
    title="How large is too large",
    kind="by hand",
    stub=(
        "arrives = ...  # in one step\n"
        "limit = ...  # above it the loss grows\n"
        "\n"
        'check("warmup7.rates", (arrives, limit))'
    ),
    properties=[Property("the rate that arrives at once", is_direct), Property("the limit", is_limit)],
    hints=[
        Hint("A step turns w into w - rate * 10w. Write that as one factor times w."),
        Hint(
            "The factor is 1 - 10 * rate. To arrive at once it must be 0; to come closer it must lie between -1 and 1."
        ),
        Hint("The two rates:", code="(1 / 10, 2 / 10)", answer=(0.1, 0.2)),
    ],
    wrong=[
        WrongAnswer((0.5, 0.2), contains="that rate suits"),
        WrongAnswer((0.2, 0.2), contains="jumps to -w"),
        WrongAnswer((10, 20), contains="belongs to the slope"),
        WrongAnswer((0.1, 1), contains="card's parabola"),
        WrongAnswer((0.1, 0.1), contains="from both sides"),
    ],
    explanation="The steeper the valley, the smaller the largest learning rate that works.",
)

# A descent that gets nowhere


def _data():
    return np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])


def one_step(function):
    x, y = _data()
    slope = (2 * x * (0.0 * x - y)).mean()
    known = {
        "after one step from 0 w is negative: the step goes uphill": 0.1 * slope,
        "after one step w is still 0": 0.0,
        "the loss is the mean of the squared errors, and so is its slope a mean; you summed": -0.3 * slope,
    }
    return compare(function(x, y, 0.1, 1), -0.1 * slope, 1e-9, "after one step of rate 0.1 your w", known)


def two_steps(function):
    two = function(*_data(), 0.01, 2)
    wanted = 2 * (1 - (1 - 0.01 * 28 / 3) ** 2)  # each step leaves 1 - rate * 28/3 of the distance to 2
    known = {
        "after two steps of rate 0.01 w is where one step brings it": 0.01 * 56 / 3,
        "the second step is as long as the first: w has changed, and with it the slope": 0.02 * 56 / 3,
    }
    return compare(two, wanted, 1e-9, "after two steps of rate 0.01 your w", known)


def by_loop(x, y, rate, steps):
    w = 0.0
    for _ in range(steps):
        slope = (2 * x * (w * x - y)).mean()
        w = w - rate * slope
    return w


def by_old_slope(x, y, rate, steps):
    w = 0.0
    slope = (2 * x * (w * x - y)).mean()
    for _ in range(steps):
        w = w - rate * slope
    return w


def by_climbing(x, y, rate, steps):
    w = 0.0
    for _ in range(steps):
        w = w + rate * (2 * x * (w * x - y)).mean()
    return w


def by_first_step(x, y, rate, steps):
    return 0.0 - rate * (2 * x * (0.0 * x - y)).mean()


def by_restarting(x, y, rate, steps):
    w = 0.0
    for _ in range(steps):
        w = 0.0 * rate
    return w


bug = Exercise(
    id="warmup7.bug",
    title="A descent that runs past",
    kind="find the bug",
    stub='fit = ...  # your function, mended from broken_fit\n\ncheck("warmup7.bug", fit)',
    properties=[
        Property("one step", one_step),
        Property("two steps", two_steps),
    ],
    hints=[
        Hint("Print w after 1, 2 and 3 steps. By how much does it change each time, and should it?"),
        Hint("The slope depends on w, and w changes."),
        Hint("First line inside the loop:", code="slope = (2 * x * (w * x - y)).mean()", answer=by_loop),
    ],
    wrong=[
        WrongAnswer(by_old_slope, contains="as long as the first"),
        WrongAnswer(by_climbing, contains="uphill"),
        WrongAnswer(by_first_step, contains="where one step brings it"),
        WrongAnswer(by_restarting, contains="still 0"),
        WrongAnswer(lambda x, y, rate, steps: by_loop(x, y, 3 * rate, steps), contains="you summed"),
    ],
    explanation="Training is this loop: slope at the present place, small step, again.",
)

EXERCISES = [steps, rates, bug]
