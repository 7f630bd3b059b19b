"""The exercises of chapter 7: the feed-forward network and GELU."""

import math
from functools import partial

import numpy as np

from src.core import Layer, Tensor
from src.core.erf import erf
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import GPT, GPTFeedForward

# GELU from an area

AREA = 0.9332  # left of 1.5
VALUES = [1.5 * AREA, -1.5 * (1 - AREA), 1.5]


def _three_numbers(answer):
    numbers = to_array(answer, "your answer")
    if numbers.shape != (3,):
        raise Wrong(f"give three numbers, yours have the shape {numbers.shape}")
    return numbers


def value_at_plus(answer):
    known = {
        "at 1.5 you give x itself: that is ReLU, whose gate is either open or shut": 1.5,
        "at 1.5 you give the area alone: it is the share of x that passes": AREA,
        "at 1.5 you multiply with the area on the right of it: how much of the curve lies left?": 1.5 * (1 - AREA),
        "at 1.5 you divide by x: a share of x is x times that share": AREA / 1.5,
    }
    return compare(_three_numbers(answer)[0], VALUES[0], name="GELU(1.5)", known=known)


def value_at_minus(answer):
    known = {
        "at -1.5 you give 0: the gate is almost shut there, not quite": 0.0,
        "at -1.5 you turn the sign of GELU(1.5): the area left of -1.5 is another one": -VALUES[0],
        "at -1.5 you give a positive number: x is negative, and an area is never": -VALUES[1],
        "at -1.5 you give the area alone, without x": 1 - AREA,
    }
    return compare(_three_numbers(answer)[1], VALUES[1], name="GELU(-1.5)", known=known)


def their_difference(answer):
    known = {
        "you added the two: subtracting a negative number makes the result larger": VALUES[0] + VALUES[1],
        "you took GELU(-1.5) minus GELU(1.5)": -1.5,
    }
    return compare(_three_numbers(answer)[2], VALUES[2], name="the difference", known=known)


values = Exercise(
    id="ch07.values",
    title="GELU from an area",
    kind="by hand",
    stub=(
        "plus = ...  # GELU(1.5)\nminus = ...  # GELU(-1.5)\ndifference = ...  # GELU(1.5) - GELU(-1.5)\n\n"
        'check("ch07.values", [plus, minus, difference])'
    ),
    properties=[
        Property("GELU(1.5)", value_at_plus),
        Property("GELU(-1.5)", value_at_minus, points=2),
        Property("the difference", their_difference),
    ],
    hints=[
        Hint("GELU is x times the area left of x. The area left of 1.5 is given."),
        Hint("The bell curve is its own mirror image: left of -1.5 lies as much as right of 1.5, which is 1 - 0.9332."),
        Hint("The three numbers:", code="[1.5 * 0.9332, -1.5 * (1 - 0.9332), 1.5]", answer=VALUES),
    ],
    wrong=[
        WrongAnswer([1.5, 0, 1.5], contains="that is ReLU"),
        WrongAnswer([0.9332, 0.0668, 0.8664], contains="the share of x that passes"),
        WrongAnswer([0.1002, -1.3998, 1.5], contains="on the right of it"),
        WrongAnswer([0.6221, -0.0445, 0.6667], contains="you divide by x"),
        WrongAnswer([1.3998, 0, 1.3998], contains="almost shut"),
        WrongAnswer([1.3998, -1.3998, 2.7996], contains="turn the sign"),
        WrongAnswer([1.3998, 0.1002, 1.2996], contains="an area is never"),
        WrongAnswer([1.3998, -0.1002, 1.2996], contains="you added the two"),
    ],
    explanation="GELU(x) - GELU(-x) = x (area left of x + area left of -x) = x, for every x.",
)

# The larger of two

PAIRS = np.array([[5.0, 2], [2, 5], [3, 3], [-1, -3], [-3, -1], [4, -2], [-2, 4], [0, -1]])


def _two_layers(answer):
    """W1 (2, 3) and W2 (3,) of a network without biases."""
    if not isinstance(answer, list | tuple) or len(answer) != 2:
        raise Wrong("give two matrices, as in (W1, W2)")
    first, second = to_array(answer[0], "W1"), to_array(answer[1], "W2")
    second = second.reshape(-1) if second.shape == (3, 1) else second
    if first.shape != (2, 3):
        raise Wrong(f"W1 has shape {first.shape}: 2 inputs and 3 channels inside make it (2, 3), a row an input")
    if second.shape != (3,):
        raise Wrong(f"W2 has shape {second.shape}: it takes the 3 channels inside to one number")
    return first, second


def _outputs(answer):
    first, second = _two_layers(answer)
    return np.maximum(PAIRS @ first, 0) @ second


def network_has_whole_numbers(answer):
    for name, matrix in zip(("W1", "W2"), _two_layers(answer), strict=True):
        broken = matrix[matrix != np.round(matrix)]
        if broken.size:
            return f"{name} has the entry {show(broken[0])}: use whole numbers"
    return None


def larger_of_positive(answer):
    one, two = PAIRS.T
    results = _outputs(answer)
    slips = {
        "it gives the smaller of the two": np.minimum(one, two),
        "it gives the sum of the two": one + two,
        "it gives how far the two are apart": np.abs(one - two),
        "it gives x1 whatever x2 is": one,
        "it gives x2 whatever x1 is": two,
    }
    for text, wanted in slips.items():
        if np.allclose(results, wanted):
            return text
    return _first_failure(results, range(3))


def larger_of_any(answer):
    one, two = PAIRS.T
    results, above = _outputs(answer), np.maximum(one - two, 0)
    slips = {
        "a negative x2 gets lost: ReLU lets only positive numbers pass": above + np.maximum(two, 0),
        "x2 arrives without its sign, as |x2|": above + np.abs(two),
        "it gives 0 where both are negative: a negative number needs a channel that is positive for it": np.maximum(
            np.maximum(one, two), 0
        ),
    }
    for text, wanted in slips.items():
        if np.allclose(results, wanted):
            return text
    return _first_failure(results, range(len(PAIRS)))


def _first_failure(results, places):
    for k in places:
        if not math.isclose(results[k], PAIRS[k].max(), abs_tol=1e-6):
            return f"for {show(PAIRS[k])} it gives {show(results[k])}"
    return None


LARGER = ([[1, 0, 0], [-1, 1, -1]], [1, 1, -1])

larger = Exercise(
    id="ch07.larger",
    title="The larger of two",
    kind="by hand",
    stub=(
        "W1 = [\n    [..., ..., ...],  # from x1 to the three channels inside\n    [..., ..., ...],  # from x2\n]\n"
        'W2 = [..., ..., ...]  # from the three channels to the answer\n\ncheck("ch07.larger", (W1, W2))'
    ),
    properties=[
        Property("whole numbers", network_has_whole_numbers),
        Property("the larger of two positive numbers", larger_of_positive),
        Property("the larger of any two numbers", larger_of_any, points=2),
    ],
    hints=[
        Hint("The larger of the two is x2, plus what x1 has more, if it has more. Which part of this needs ReLU?"),
        Hint("x2 itself must pass with its sign, and ReLU lets only positive numbers pass: x2 = ReLU(x2) - ReLU(-x2)."),
        Hint(
            "The channels are ReLU(x1 - x2), ReLU(x2) and ReLU(-x2):",
            code="([[1, 0, 0], [-1, 1, -1]], [1, 1, -1])",
            answer=LARGER,
        ),
    ],
    wrong=[
        WrongAnswer(([[1, 0, 0], [-1, 1, -1]], [1, 1, 0]), contains="negative x2 gets lost"),
        WrongAnswer(([[1, 0, 0], [-1, 1, -1]], [1, 1, 1]), contains="|x2|"),
        WrongAnswer(([[1, -1, 0], [-1, 1, 0]], [1, 1, 0]), contains="how far the two are apart"),
        WrongAnswer(([[-1, 0, 0], [1, 1, -1]], [-1, 1, -1]), contains="the smaller of the two"),
        WrongAnswer(([[1, -1, 0], [1, -1, 0]], [1, -1, 0]), contains="the sum of the two"),
        WrongAnswer(([[1, -1, 0], [0, 0, 1]], [1, -1, 0]), contains="x1 whatever x2 is"),
        WrongAnswer(([[1, -1], [0, 1], [0, -1]], [1, 1, -1]), contains="a row an input"),
        WrongAnswer(([[0.5, 0, 0], [-0.5, 1, -1]], [2, 1, -1]), contains="use whole numbers"),
    ],
    explanation="No linear map gives the larger of two numbers; three channels with a bend do it exactly.",
)

# A gate that learns

START = 1.702


def _gate(answer):
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., LearnedGate), not an object made from it")
    layer = answer()
    if not isinstance(layer, Layer):
        raise Wrong(f"your class makes a {type(layer).__name__}: derive it from Layer")
    return layer


def gate_starts_right(answer):
    x = np.array([-3.0, -1.0, 0.0, 0.5, 2.0])
    share = 1 / (1 + np.exp(-START * x))
    known = {
        "it gives the gate alone: x has to pass through it": share,
        "the gate closes where it should open: look at the sign inside exp": x * (1 - share),
        "the slope does not start at 1.702: yours starts at 1": x / (1 + np.exp(-x)),
        "the slope multiplies the output: it belongs inside exp": START * x / (1 + np.exp(-x)),
    }
    return compare(_gate(answer)(Tensor(x)), x * share, 1e-5, f"for {show(x)} your layer", known)


def gate_has_a_parameter(answer):
    found = [name for name, _ in _gate(answer).named_parameters()]
    if found:
        return None
    return "your layer has no parameter: a plain number is a constant, a Tensor that is an attribute learns"


def gate_gets_its_gradient(answer):
    with Tensor.precision(np.float64):
        layer = _gate(answer)
        parameter = layer.parameters[0]
        parameter.grad = None
        x = np.array([-1.0, 2.0])
        given = Tensor(x)
        layer(given).sum().backward()
    if not parameter.has_grad:
        return "the slope received no gradient: compute with the Tensor itself, not with its `.data`"
    share = 1 / (1 + np.exp(-START * x))
    known = {
        "the gradient of the slope lacks a factor x: it goes through the gate and through x": (
            x * share * (1 - share)
        ).sum(),
        "the gradient of the slope is that of x": (share + START * x * share * (1 - share)).sum(),
    }
    wanted = (x * x * share * (1 - share)).sum()
    problem = compare(parameter.grad.reshape(-1)[0], wanted, 1e-5, "for [-1, 2] the gradient of the slope", known)
    return problem or _problem_of_input(given, share)


def _problem_of_input(given, share):
    """What is wrong with the gradient of x, which reaches the output in two ways; None if nothing is."""
    if not given.has_grad:
        return "x received no gradient: compute with x itself, not with its `.data`"
    through_the_gate = START * given.data * share * (1 - share)
    known = {
        "the gradient of x lacks the part through the gate: x moves the gate too, so x itself stands in exp": share,
        "the gradient of x lacks the part that passes the gate: x itself stands in front of it": through_the_gate,
    }
    return compare(given.grad, share + through_the_gate, 1e-5, "for [-1, 2] the gradient of x", known)


def gates_learn_in_the_gpt(answer):
    _gate(answer)
    model = GPT(5, 4, 6, 2, feed_forward=partial(GPTFeedForward, activation=answer))
    activations = [layer for layer in model.layers_within() if isinstance(layer, answer)]
    slopes = [activation.parameters[0] for activation in activations]
    if slopes[0] is slopes[1]:
        return "both blocks of a GPT share one slope: make the Tensor inside __init__"
    model(Tensor([[0, 1, 2, 3]])).exp().sum().backward()
    idle = [number for number, slope in enumerate(slopes, start=1) if not slope.grad.any()]
    return f"in a GPT the slope of block {idle[0]} received no gradient" if idle else None


class LearnedGate(Layer):
    def __init__(self):
        self.slope = Tensor(1.702)

    def forward(self, x):
        return x / (1.0 + (-self.slope * x).exp())


class GateAlone(LearnedGate):
    def forward(self, x):
        return 1.0 / (1.0 + (-self.slope * x).exp())


class GateReversed(LearnedGate):
    def forward(self, x):
        return x / (1.0 + (self.slope * x).exp())


class GateFromOne(LearnedGate):
    def __init__(self):
        self.slope = Tensor(1.0)


class GateOutside(LearnedGate):
    def forward(self, x):
        return self.slope * x / (1.0 + (-x).exp())


class GateConstant(LearnedGate):
    def __init__(self):
        self.slope = 1.702  # type: ignore[assignment]


class GateDetached(LearnedGate):
    def forward(self, x):
        return x / (1.0 + (-float(self.slope.data) * x).exp())


class GateOfNumbers(LearnedGate):
    def forward(self, x):
        return x / (1.0 + (-self.slope * Tensor(x.data)).exp())


class GateForNumbers(LearnedGate):
    def forward(self, x):
        return Tensor(x.data) / (1.0 + (-self.slope * x).exp())


class GateWithoutInput(LearnedGate):
    def forward(self, x):
        x = Tensor(x.data)
        return x / (1.0 + (-self.slope * x).exp())


_shared: dict = {}  # one slope for each precision


class GateShared(LearnedGate):
    def __init__(self):
        fresh = Tensor(START)
        self.slope = _shared.setdefault(fresh.dtype, fresh)


gate = Exercise(
    id="ch07.gate",
    title="A gate that learns",
    kind="build",
    stub=(
        "class LearnedGate(Layer):\n"
        "    def __init__(self):\n"
        "        self.slope = ...\n"
        "\n"
        "    def forward(self, x):\n"
        "        return ...\n"
        "\n"
        "\n"
        'check("ch07.gate", LearnedGate)'
    ),
    properties=[
        Property("the values at the start", gate_starts_right),
        Property("the slope is a parameter", gate_has_a_parameter),
        Property("the gradients of slope and x", gate_gets_its_gradient, points=2),
        Property("it learns in every block of a GPT", gates_learn_in_the_gpt),
    ],
    hints=[
        Hint(
            "A Tensor that is an attribute of a layer is a parameter. Each layer needs its own: make it in `__init__`."
        ),
        Hint("Tensors have `exp`, and arithmetic with numbers: no closure is needed, the operations record their own."),
        Hint(
            "With `self.slope = Tensor(1.702)` return",
            code="x / (1.0 + (-self.slope * x).exp())",
            answer=LearnedGate,
        ),
    ],
    wrong=[
        WrongAnswer(GateAlone, contains="the gate alone"),
        WrongAnswer(GateReversed, contains="sign inside exp"),
        WrongAnswer(GateFromOne, contains="yours starts at 1"),
        WrongAnswer(GateOutside, contains="belongs inside exp"),
        WrongAnswer(GateConstant, contains="no parameter"),
        WrongAnswer(GateDetached, contains="the slope received no gradient"),
        WrongAnswer(GateOfNumbers, contains="lacks the part through the gate"),
        WrongAnswer(GateForNumbers, contains="lacks the part that passes the gate"),
        WrongAnswer(GateWithoutInput, contains="compute with x itself"),
        WrongAnswer(GateShared, contains="share one slope"),
    ],
    explanation="Slope 1 is SiLU, 1.702 the sigmoid form of GELU, a very large slope is ReLU.",
)

# Find the bug


def _bug_points():
    return np.array([-1.0, 0.5, 1.0, 2.0])


def _area(x):
    return 0.5 * (1 + erf(x * math.sqrt(0.5)))


def mended_outputs(answer):
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Mended), not an object made from it")
    x = _bug_points()
    known = {"the output is the area alone: it was right before, leave it": _area(x)}
    return compare(answer()(Tensor(x)), x * _area(x), 1e-5, f"for {show(x)} the output", known)


def _gradient(answer, arriving):
    with Tensor.precision(np.float64):
        x = Tensor(_bug_points())
        out = answer()(x)
        out.backward(np.full(4, arriving))
    return x.grad.copy()


def mended_gradient(answer):
    x = _bug_points()
    area, bell = _area(x), np.exp(-x * x / 2)
    density = bell / math.sqrt(2 * math.pi)
    known = {
        "the gradient is the gate alone: moving x moves the gate too": area,
        "the second part lacks its factor x": area + density,
        "the second part is x alone: the slope of the area is missing, the height of the bell curve": area + x,
        "the whole area under your bell curve is not 1: a factor is missing in front of exp": area + x * bell,
        "your bell curve has exp(-x * x): the exponent is half of that": area
        + x * np.exp(-x * x) / math.sqrt(2 * math.pi),
        "the first part is missing: x passes through the gate as well as moving it": x * density,
    }
    return compare(_gradient(answer, 1.0), area + x * density, 1e-6, f"for {show(x)} the gradient", known)


def mended_passes_on(answer):
    once, twice = _gradient(answer, 1.0), _gradient(answer, 2.0)
    if np.allclose(twice, 2 * once):
        with Tensor.precision(np.float64):
            x, layer = Tensor(_bug_points()), answer()
            (layer(x) + layer(x)).backward(np.ones(4))
        if np.allclose(x.grad, 2 * once):
            return None
        return "where x is used twice, one of the two gradients is lost: add to `x.grad`, do not overwrite it"
    if np.allclose(twice, once):
        return "what arrives from later layers is ignored: multiply with `out.grad`"
    return "only one of the two parts is multiplied with `out.grad`: put the sum in brackets"


class _ExactGate(Layer):
    """The exact GELU; subclasses say what its gradient is made of."""

    def forward(self, x):
        area = 0.5 * (1.0 + erf(x.data * math.sqrt(0.5)))
        out = Tensor(x.data * area)

        def gradient_fn():
            density = np.exp(-x.data * x.data / 2) / math.sqrt(2 * math.pi)
            x.grad += self.slope(x.data, area, density, out.grad)  # type: ignore[attr-defined]

        return out.attach(gradient_fn, (x,))


class Mended(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * (area + x * density)


class GateOnly(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * area


class LacksX(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * (area + density)


class LacksFactor(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * (area + x * np.exp(-x * x / 2))


class LacksHalf(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * (area + x * np.exp(-x * x) / math.sqrt(2 * math.pi))


class LacksGate(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * x * density


class IgnoresWhatArrives(_ExactGate):
    def slope(self, x, area, density, arriving):
        return area + x * density


class LacksBrackets(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * area + x * density


class ChangesTheOutput(Layer):
    def forward(self, x):
        return Tensor(0.5 * (1.0 + erf(x.data * math.sqrt(0.5))))


class Direct(Layer):
    """As the reader would write it."""

    def forward(self, x):
        area = 0.5 * (1.0 + erf(x.data * math.sqrt(0.5)))
        out = Tensor(x.data * area)

        def gradient_fn():
            density = np.exp(-x.data * x.data / 2) / math.sqrt(2 * math.pi)
            x.grad += out.grad * (area + x.data * density)

        return out.attach(gradient_fn, (x,))


class AddsX(_ExactGate):
    def slope(self, x, area, density, arriving):
        return arriving * (area + x)


class Overwrites(Layer):
    def forward(self, x):
        area = 0.5 * (1.0 + erf(x.data * math.sqrt(0.5)))
        out = Tensor(x.data * area)

        def gradient_fn():
            density = np.exp(-x.data * x.data / 2) / math.sqrt(2 * math.pi)
            x.grad = out.grad * (area + x.data * density)

        return out.attach(gradient_fn, (x,))


bug = Exercise(
    id="ch07.bug",
    title="It trains, and it is wrong",
    kind="find the bug",
    stub='Mended = ...  # your class, mended from Broken\n\ncheck("ch07.bug", Mended)',
    properties=[
        Property("the outputs", mended_outputs),
        Property("the gradient", mended_gradient, points=2),
        Property("it passes on what arrives", mended_passes_on),
    ],
    hints=[
        Hint("The outputs are right, so look at the backward pass: what does `check_gradients` say?"),
        Hint("The output is a product of two things that depend on x. A product has a derivative with two parts."),
        Hint(
            "With `density` for the height of the bell curve at x, the gradient is",
            code="out.grad * (area + x.data * density)",
            answer=Direct,
        ),
    ],
    wrong=[
        WrongAnswer(GateOnly, contains="the gate alone: moving"),
        WrongAnswer(LacksX, contains="lacks its factor x"),
        WrongAnswer(LacksFactor, contains="in front of exp"),
        WrongAnswer(LacksHalf, contains="half of that"),
        WrongAnswer(LacksGate, contains="first part is missing"),
        WrongAnswer(IgnoresWhatArrives, contains="is ignored"),
        WrongAnswer(LacksBrackets, contains="only one of the two parts"),
        WrongAnswer(AddsX, contains="the second part is x alone"),
        WrongAnswer(Overwrites, contains="do not overwrite"),
        WrongAnswer(ChangesTheOutput, contains="it was right before"),
    ],
    explanation="Outputs that are right prove nothing about a gradient: compare it with a measured slope.",
)

EXERCISES = [values, larger, gate, bug]
