"""The questions of card 8 of the warm-up: the bell curve."""

import math

from src.course.compare import compare
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

# Areas

AREAS = [0.1587, 0.6826, 0.1359]


def area_is(place, name, known):
    def test(answer):
        if not isinstance(answer, list | tuple) or len(answer) != 3:
            raise Wrong("give three areas")
        return compare(answer[place], AREAS[place], name=f"the area {name}", known=known)

    return Property(f"the area {name}", test)


areas = Exercise(
    id="warmup8.areas",
    title="Areas from two numbers",
    kind="by hand",
    stub=(
        "left = ...  # left of -1\n"
        "middle = ...  # between -1 and 1\n"
        "right = ...  # between 1 and 2\n"
        "\n"
        'check("warmup8.areas", [left, middle, right])'
    ),
    properties=[
        area_is(
            0,
            "left of -1",
            {
                "an area is never negative: use the mirror image, and that the whole is 1": -0.8413,
                "this is the area left of 1: left of -1 there is much less": 0.8413,
            },
        ),
        area_is(
            1,
            "between -1 and 1",
            {
                "this is only the part between 0 and 1: the other side counts too": 0.3413,
                "this is left of 1: what lies left of -1 is to be taken away": 0.8413,
            },
        ),
        area_is(2, "between 1 and 2", {"this is right of 1: what lies beyond 2 is to be taken away": 0.1587}),
    ],
    hints=[
        Hint("The curve is its own mirror image: left of -1 lies as much as right of 1. And the whole area is 1."),
        Hint("Left of -1: 1 - 0.8413. An area between two places is the difference of two areas to the left."),
        Hint(
            "The three areas:",
            code="[1 - 0.8413, 0.8413 - (1 - 0.8413), 0.9772 - 0.8413]",
            answer=AREAS,
        ),
    ],
    wrong=[
        WrongAnswer([-0.8413, 0.6826, 0.1359], contains="never negative"),
        WrongAnswer([0.8413, 0.6826, 0.1359], contains="much less"),
        WrongAnswer([0.1587, 0.3413, 0.1359], contains="the other side"),
        WrongAnswer([0.1587, 0.8413, 0.1359], contains="left of -1 is to be taken away"),
        WrongAnswer([0.1587, 0.6826, 0.1587], contains="beyond 2"),
    ],
    explanation="About two thirds of all draws lie between -1 and 1.",
)

# Sums of draws


def pair(answer):
    if not isinstance(answer, list | tuple) or len(answer) != 2:
        raise Wrong("give two numbers: (of_sum, of_scaled)")
    return answer


def is_spread_of_sum(answer):
    known = {
        "this is the variance of the sum: the spread is its root": 16,
        "the sum spreads wider than one draw": 1,
        "this is the root of the root: sixteen variances of 1 add up to 16": 2,
    }
    return compare(pair(answer)[0], 4, name="the spread of the sum", known=known)


def is_spread_of_scaled(answer):
    known = {
        "the sum has this spread; a quarter of the sum has a quarter of it": 4,
        "a quarter of the numbers has a quarter of the spread, not half of it": 2,
        "this is a quarter of the spread of one draw: start from that of the sum": 0.25,
    }
    return compare(pair(answer)[1], 1, name="the spread of a quarter of the sum", known=known)


spread = Exercise(
    id="warmup8.spread",
    title="The spread of a sum",
    kind="by hand",
    stub='of_sum = ...\nof_scaled = ...  # of the sum divided by 4\n\ncheck("warmup8.spread", (of_sum, of_scaled))',
    properties=[
        Property("the spread of the sum", is_spread_of_sum),
        Property("the spread of a quarter of it", is_spread_of_scaled),
    ],
    hints=[
        Hint("Variances of independent draws add up; the spread is the root of the variance."),
        Hint("The variance of the sum is 16. Dividing numbers by 4 divides their spread by 4."),
        Hint("The two spreads:", code="(16**0.5, 16**0.5 / 4)", answer=(4, 1)),
    ],
    wrong=[
        WrongAnswer((16, 4), contains="the variance of the sum"),
        WrongAnswer((1, 0.25), contains="wider than one draw"),
        WrongAnswer((4, 4), contains="a quarter of the sum has"),
        WrongAnswer((4, 2), contains="not half of it"),
        WrongAnswer((4, 0.25), contains="start from that"),
    ],
    explanation="Dividing a sum of d such numbers by the root of d brings it back to spread 1, in attention too.",
)

# The area as a function


def in_the_middle(function):
    known = {
        "at 0 you return the height of the curve, 0.3989: the area to the left is wanted": 0.39894228,
        "at 0 you return 0: erf counts from the middle, the area from far left": 0.0,
    }
    return compare(function(0.0), 0.5, 1e-6, "at 0 your area", known)


def other_places(function):
    for x, wanted in ((1.0, 0.841344746), (-2.0, 0.022750132), (40.0, 1.0)):
        known = {
            f"at {x:g} you return the area to the right": 1 - wanted,
            f"at {x:g} your curve is too narrow: divide x by the root of 2 before erf": (1 + math.erf(x)) / 2,
        }
        message = compare(function(x), wanted, 1e-6, f"at {x:g} your area", known)
        if message:
            return message
    return None


def by_erf(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


def by_height(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def by_bare_erf(x):
    return math.erf(x / math.sqrt(2))


def by_narrow_erf(x):
    return (1 + math.erf(x)) / 2


def by_right_area(x):
    return (1 - math.erf(x / math.sqrt(2))) / 2


def by_logistic(x):
    return 0.5 * (1 + math.tanh(x / 2))


area = Exercise(
    id="warmup8.area",
    title="The area as a function",
    kind="build",
    stub='def area(x):\n    return ...\n\n\ncheck("warmup8.area", area)',
    properties=[Property("in the middle", in_the_middle), Property("elsewhere", other_places)],
    hints=[
        Hint("erf runs from -1 to 1 and the area from 0 to 1: shift, then halve."),
        Hint("erf belongs to a narrower curve: it wants x divided by the root of 2."),
        Hint("The area:", code="(1 + math.erf(x / math.sqrt(2))) / 2", answer=by_erf),
    ],
    wrong=[
        WrongAnswer(by_height, contains="the height of the curve"),
        WrongAnswer(by_bare_erf, contains="counts from the middle"),
        WrongAnswer(by_right_area, contains="the area to the right"),
        WrongAnswer(by_narrow_erf, contains="too narrow"),
        WrongAnswer(by_logistic, contains="your area is 0.7311"),
    ],
    explanation="x times this area is GELU, the gate of chapter 7.",
)

EXERCISES = [areas, spread, area]
