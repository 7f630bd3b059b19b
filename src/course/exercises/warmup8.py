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
                "this is the whole area under the curve: you added where you should take away": 1,
            },
        ),
        area_is(
            2,
            "between 1 and 2",
            {
                "this is right of 1: what lies beyond 2 is to be taken away": 0.1587,
                "this is right of 2": 0.0228,
                "this is all that lies left of 2, also left of 1": 0.9772,
                "no area is larger than 1: one of the two is taken away from the other": 1.8185,
            },
        ),
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
        WrongAnswer([0.1587, 1, 0.1359], contains="whole area under the curve"),
        WrongAnswer([0.1587, 0.6826, 0.0228], contains="this is right of 2"),
        WrongAnswer([0.1587, 0.6826, 0.9772], contains="also left of 1"),
        WrongAnswer([0.1587, 0.6826, 1.8185], contains="larger than 1"),
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
        "this is the variance of the sum: the spread is its root": 100,
        "the sum spreads wider than one draw": 2,
        "variances add up, spreads do not": 50,
        "each draw has the variance 4, not 1: its spread is 2": 5,
        "under the root you added spreads: square each one first": math.sqrt(50),
    }
    return compare(pair(answer)[0], 10, name="the spread of the sum", known=known)


def is_spread_of_scaled(answer):
    known = {
        "the sum has this spread; a fifth of the sum has a fifth of it": 10,
        "this is a fifth of the spread of one draw: start from that of the sum": 0.4,
        "this is a fifth of the variance of the sum: divide the spread": 20,
    }
    return compare(pair(answer)[1], 2, name="the spread of a fifth of the sum", known=known)


spread = Exercise(
    id="warmup8.spread",
    title="The spread of a sum",
    kind="by hand",
    stub='of_sum = ...\nof_scaled = ...  # of the sum divided by 5\n\ncheck("warmup8.spread", (of_sum, of_scaled))',
    properties=[
        Property("the spread of the sum", is_spread_of_sum),
        Property("the spread of a fifth of it", is_spread_of_scaled),
    ],
    hints=[
        Hint("Variances of independent draws add up; the spread is the root of the variance."),
        Hint("One draw has the variance 4, so the sum has 25 * 4. Dividing numbers by 5 divides their spread by 5."),
        Hint("The two spreads:", code="(100**0.5, 100**0.5 / 5)", answer=(10, 2)),
    ],
    wrong=[
        WrongAnswer((100, 20), contains="the variance of the sum: the spread"),
        WrongAnswer((2, 0.4), contains="wider than one draw"),
        WrongAnswer((50, 10), contains="spreads do not"),
        WrongAnswer((5, 1), contains="the variance 4"),
        WrongAnswer((7.0711, 1.4142), contains="square each one first"),
        WrongAnswer((10, 10), contains="a fifth of the sum has"),
        WrongAnswer((10, 0.4), contains="start from that"),
        WrongAnswer((10, 20), contains="divide the spread"),
    ],
    explanation="A sum of d such numbers, divided by the root of d, spreads like one of them. Attention does this.",
)

# An area between two places


def from_the_middle(function):
    known = {
        "from 0 to 1 the curve falls by this much: an area is wanted": by_heights(0.0, 1.0),
        "from 0 to 1 you return the whole area left of 1": by_left_area(0.0, 1.0),
        "from 0 to 1 your curve is too narrow: divide both places by the root of 2 before erf": by_narrow_erf(0.0, 1.0),
        "from 0 to 1 your area is negative: right minus left": -by_erf(0.0, 1.0),
        "from 0 to 1 this is a difference of heights: an area is asked for": -by_heights(0.0, 1.0),
        "from 0 to 1 this is a difference of erf alone: an area is (1 + erf(x / root of 2)) / 2": math.erf(1.0),
        "from 0 to 1 you added the area left of 0: it is to be taken away": by_left_area(0.0, 1.0) + 0.5,
    }
    return compare(function(0.0, 1.0), by_erf(0.0, 1.0), 1e-6, "from 0 to 1 your area", known)


def elsewhere(function):
    for a, b in ((-1.0, 1.0), (1.0, 2.0), (-40.0, 40.0)):
        known = {f"from {a:g} to {b:g} your area is that from the middle to {b:g}": by_erf(0.0, b)}
        message = compare(function(a, b), by_erf(a, b), 1e-6, f"from {a:g} to {b:g} your area", known)
        if message:
            return message
    return None


def by_erf(a, b):
    return (math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2))) / 2


def by_doubled_erf(a, b):
    return math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2))


def by_heights(a, b):
    return (math.exp(-a * a / 2) - math.exp(-b * b / 2)) / math.sqrt(2 * math.pi)


def by_left_area(a, b):
    return (1 + math.erf(b / math.sqrt(2))) / 2


def by_narrow_erf(a, b):
    return (math.erf(b) - math.erf(a)) / 2


def by_wrong_order(a, b):
    return by_erf(b, a)


def by_right_half(a, b):
    return by_erf(0.0, b)


area = Exercise(
    id="warmup8.area",
    title="The area between two places",
    kind="build",
    stub='def area_between(a, b):\n    return ...\n\n\ncheck("warmup8.area", area_between)',
    properties=[Property("from the middle", from_the_middle), Property("elsewhere", elsewhere)],
    hints=[
        Hint("You know the area left of b and the area left of a. What lies between?"),
        Hint("The area left of x is (1 + erf(x / root of 2)) / 2. In the difference of two such areas the 1 is gone."),
        Hint("The area:", code="(math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2))) / 2", answer=by_erf),
    ],
    wrong=[
        WrongAnswer(by_heights, contains="the curve falls"),
        WrongAnswer(by_left_area, contains="the whole area left of 1"),
        WrongAnswer(by_doubled_erf, contains="twice too large"),
        WrongAnswer(by_narrow_erf, contains="too narrow"),
        WrongAnswer(by_wrong_order, contains="right minus left"),
        WrongAnswer(by_right_half, contains="from the middle to 1"),
        WrongAnswer(lambda a, b: -by_heights(a, b), contains="difference of heights"),
        WrongAnswer(lambda a, b: math.erf(b) - math.erf(a), contains="erf alone"),
        WrongAnswer(lambda a, b: by_left_area(a, b) + by_left_area(b, a), contains="added the area left of 0"),
    ],
    explanation="With a far to the left it is the area left of b, which is all that GELU needs (chapter 7).",
)

EXERCISES = [areas, spread, area]
