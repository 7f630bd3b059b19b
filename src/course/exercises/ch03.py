"""The exercises of chapter 3: self-attention."""

import math
from functools import partial

import numpy as np

from src.core import Composite, Linear, Softmax, Tensor, scaled_dot_product_attention
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import GPT, GPTLoss

ABC = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # the tokens a, b and c

# A row by hand

ROW = [2 / 7, 1 / 7, 4 / 7]
ROW_OUTPUT = [6 / 7, 5 / 7]


def two_parts(answer):
    """The weights and the output."""
    if not isinstance(answer, list | tuple) or len(answer) != 2:
        raise Wrong("give two things, as in (weights, output)")
    return answer


def row_sums_to_one(answer):
    total = to_array(two_parts(answer)[0], "your row of weights").sum()
    return None if abs(total - 1) < 2e-3 else f"your weights sum to {show(total)}: divide each by the sum of all three"


def row_is_right(answer):
    exps = np.exp([2.0, 1.0, 3.0])
    known = {
        "you divided the scores by their sum: softmax takes exp of each score first": [1 / 3, 1 / 6, 1 / 2],
        "exp(2), exp(1), exp(3): the factor ln 2 of the scores got lost": exps / exps.sum(),
        "the weights of a and b are swapped: whom does [2, 1] resemble more?": [1 / 7, 2 / 7, 4 / 7],
    }
    return compare(two_parts(answer)[0], ROW, name="your row of weights", known=known)


def row_output_is_right(answer):
    known = {
        "this is c: the output mixes all three, it does not pick the largest": [1, 1],
        "this is the plain average of a, b and c: use your weights": [2 / 3, 2 / 3],
        "the two numbers of the output are swapped": ROW_OUTPUT[::-1],
        "this is the sum of a, b and c: use your weights": [2, 2],
    }
    return compare(two_parts(answer)[1], ROW_OUTPUT, name="your output", known=known)


row = Exercise(
    id="ch03.row",
    title="A row of attention by hand",
    kind="by hand",
    stub=(
        'weights = [..., ..., ...]  # of a, b, c; fractions may be text: "1/2"\n'
        "output = [..., ...]\n"
        "\n"
        'check("ch03.row", (weights, output))'
    ),
    properties=[
        Property("the weights sum to 1", row_sums_to_one),
        Property("the three weights", row_is_right, points=2),
        Property("the output", row_output_is_right),
    ],
    hints=[
        Hint("The dot products of [2, 1] with a, b and c are three small whole numbers."),
        Hint("exp(n ln 2) is 2 to the power n: turn each score into a power of 2, then divide by the sum."),
        Hint(
            "The weights are as 4 to 2 to 8. The first number of the output is what a and c bring, the second what b "
            "and c bring:",
            code='(["2/7", "1/7", "4/7"], ["6/7", "5/7"])',
            answer=(ROW, ROW_OUTPUT),
        ),
    ],
    wrong=[
        WrongAnswer(([4, 2, 8], [12, 10]), contains="sum to 14"),
        WrongAnswer((["1/3", "1/6", "1/2"], ["5/6", "2/3"]), contains="by their sum"),
        WrongAnswer(([0.2447, 0.09, 0.6652], [0.91, 0.755]), contains="factor ln 2"),
        WrongAnswer((["1/7", "2/7", "4/7"], ["5/7", "6/7"]), contains="resemble more"),
        WrongAnswer((["2/7", "1/7", "4/7"], [1, 1]), contains="pick the largest"),
        WrongAnswer((["2/7", "1/7", "4/7"], ["2/3", "2/3"]), contains="plain average"),
        WrongAnswer((["2/7", "1/7", "4/7"], ["5/7", "6/7"]), contains="output are swapped"),
    ],
    explanation="[2, 1] is none of the three values, and its output still lies inside their triangle.",
)

# A point to be reached

TARGET = np.array([0.7, 0.8])
SHARES = np.array([0.2, 0.3, 0.5])  # of a, b and c: what lands at the target


def three_scores(answer):
    scores = to_array(answer, "your scores")
    if scores.shape != (3,):
        raise Wrong(f"give three scores, one each for a, b and c; yours have the shape {scores.shape}")
    if not np.isfinite(scores).all():
        raise Wrong(f"your scores are {show(scores)}: finite numbers will do")
    return scores


def scores_are_three(answer):
    three_scores(answer)


def scores_reach_the_target(answer):
    scores = three_scores(answer)
    slips = {
        "these are weights: which scores does softmax turn into them?": SHARES,
        "these are as large as the weights should be to each other: softmax takes exp of them first": 10 * SHARES,
        "these are logarithms to base 2: exp undoes the natural one": np.log2(10 * SHARES),
        "these are logarithms to base 10: exp undoes the natural one": np.log10(10 * SHARES),
        "the scores of a and b are swapped: who brings the first number of the output?": np.log(SHARES[[1, 0, 2]]),
        "all signs are wrong: a larger score makes a larger weight": -np.log(SHARES),
    }
    for message, slip in slips.items():
        # softmax does not see what is added to all scores
        if np.allclose(scores - scores[0], slip - slip[0], atol=2e-3):
            return message
    exps = np.exp(scores - scores.max())
    weights = exps / exps.sum()
    if np.allclose(weights @ ABC, TARGET, atol=1e-3):
        return None
    return f"your scores give the weights {show(weights)}, which land at {show(weights @ ABC)}"


reach = Exercise(
    id="ch03.reach",
    title="Scores for a point",
    kind="by hand",
    stub='scores = [..., ..., ...]  # of a, b, c; math.log is ln\n\ncheck("ch03.reach", scores)',
    properties=[
        Property("three numbers", scores_are_three),
        Property("the output is the wanted point", scores_reach_the_target, points=2),
    ],
    hints=[
        Hint(
            "Weights first. The first number of the output is what a and c bring together: so how much is left for b?"
        ),
        Hint("The weights are as 2 to 3 to 5. Softmax takes exp of each score: which function undoes exp?"),
        Hint(
            "For example",
            code="[math.log(2), math.log(3), math.log(5)]",
            answer=[math.log(2), math.log(3), math.log(5)],
        ),
    ],
    wrong=[
        WrongAnswer([0.2, 0.3, 0.5], contains="these are weights"),
        WrongAnswer([2, 3, 5], contains="takes exp of them first"),
        WrongAnswer([1.0, 1.585, 2.3219], contains="base 2"),
        WrongAnswer([math.log10(2), math.log10(3), math.log10(5)], contains="base 10"),
        WrongAnswer([math.log(3), math.log(2), math.log(5)], contains="swapped"),
        WrongAnswer([0, 0, 1], contains="which land at"),
        WrongAnswer([-math.log(2), -math.log(3), -math.log(5)], contains="signs are wrong"),
    ],
    explanation="The same number added to all three scores changes nothing, so there are endlessly many answers.",
)

# Weights by distance

LONGEST = 4  # tokens in the longest window of the small tests


def by_distance(numbers, time):
    """The right scores, as a Tensor (time, time)."""
    places = np.arange(time)
    distance = places[None, :] - places[:, None]
    return numbers[distance + len(numbers) // 2]


def _numbers():
    return Tensor([10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0])  # of the distances -3 to 3


def _scores_of(answer, numbers, time):
    scores = answer(numbers, time)
    if to_array(scores, "your scores").shape != (time, time):
        shape = to_array(scores).shape
        raise Wrong(f"for a window of {time} tokens the scores are ({time}, {time}), yours are {shape}")
    return scores


def distance_has_shape(answer):
    _scores_of(answer, _numbers(), LONGEST)


def distance_is_right(answer):
    places = np.arange(LONGEST)
    distance = places[None, :] - places[:, None]
    table = _numbers().data
    known = {
        "rows ask, columns answer: the distance is j - i, yours is i - j": table[3 - distance],
        "tokens before and after are alike to you: the distance has a sign": table[3 + abs(distance)],
        "the number of distance 0 stands in the middle of the list, not at its start": table[distance],
    }
    return compare(_scores_of(answer, _numbers(), LONGEST), table[3 + distance], 1e-5, "your table of scores", known)


def distance_fits_short_windows(answer):
    right = by_distance(_numbers(), 2).data
    known = {
        "with 2 tokens the distance 0 has another number than with 4: its place in the list does not depend on time": (
            _numbers().data[np.array([[1, 2], [0, 1]])]
        ),
    }
    return compare(_scores_of(answer, _numbers(), 2), right, 1e-5, "with 2 tokens, your table", known)


def distance_numbers_learn(answer):
    numbers = _numbers()
    scores = _scores_of(answer, numbers, LONGEST)
    if not isinstance(scores, Tensor):
        return f"you return a {type(scores).__name__}: index the Tensor itself, or its numbers cannot learn"
    scores.sum().backward()
    if not numbers.has_grad:
        return "the numbers received no gradient: index the Tensor itself, not its .data"
    wanted = LONGEST - abs(np.arange(-3, 4))
    return compare(numbers.grad, wanted, 1e-5, "the gradient of the sum of all scores")


class DistanceAverage(Composite):
    """Mixes tokens by `distance_scores(numbers, time)` of a reader: (B, T, C) to (B, T, C)."""

    def __init__(self, channels, distance_scores, time):
        self.distance_scores = distance_scores
        self.numbers = Tensor(np.zeros(2 * time - 1))
        self.value = Linear(channels, channels)
        self.output = Linear(channels, channels)
        super().__init__([self.value, self.output])

    def forward(self, x):
        weights = Softmax()(self.distance_scores(self.numbers, x.shape[1]))
        return self.output(weights @ self.value(x))


def distance_works_in_a_gpt(answer):
    """A small GPT with the reader's scores in it, one backward pass."""
    model = GPT(7, 8, 16, 1, attention=partial(DistanceAverage, distance_scores=answer, time=8))
    ids = np.arange(16).reshape(2, 8) % 7
    loss = GPTLoss()(model(Tensor(ids)), Tensor((ids + 1) % 7))
    loss.backward()
    idle = [name for name, tensor in model.named_parameters() if "numbers" in name and not tensor.has_grad]
    if idle:
        return "inside a GPT the numbers received no gradient"
    return None if abs(loss.item() - math.log(7)) < 0.1 else f"inside a GPT the first loss is {show(loss.item())}"


def _table_by(index):
    def distance_scores(numbers, time):
        places = np.arange(time)
        return numbers[index(places[None, :] - places[:, None], time, len(numbers))]

    return distance_scores


distance = Exercise(
    id="ch03.distance",
    title="Weights by distance",
    kind="build",
    stub='def distance_scores(numbers, time):\n    # your code\n    ...\n\n\ncheck("ch03.distance", distance_scores)',
    properties=[
        Property("the shape of the scores", distance_has_shape),
        Property("each distance has its number", distance_is_right, points=2),
        Property("shorter windows", distance_fits_short_windows),
        Property("the numbers learn", distance_numbers_learn),
        Property("it works in a GPT", distance_works_in_a_gpt),
    ],
    hints=[
        Hint("Make a table of the distances j - i first: np.arange once as a row, once as a column (card 3)."),
        Hint("Distance 0 stands at len(numbers) // 2, so the distance plus that is the place in the list."),
        Hint(
            "A Tensor can be indexed with a table of whole numbers:",
            code="numbers[distance + len(numbers) // 2]",
            answer=by_distance,
        ),
    ],
    wrong=[
        WrongAnswer(lambda numbers, time: numbers[np.arange(time)], contains="yours are (4,)"),
        WrongAnswer(_table_by(lambda distance, time, size: size // 2 - distance), contains="yours is i - j"),
        WrongAnswer(_table_by(lambda distance, time, size: size // 2 + abs(distance)), contains="has a sign"),
        WrongAnswer(_table_by(lambda distance, time, size: distance), contains="not at its start"),
        WrongAnswer(_table_by(lambda distance, time, size: distance + time - 1), contains="does not depend on time"),
        WrongAnswer(lambda numbers, time: by_distance(numbers, time).data, contains="you return a ndarray"),
        WrongAnswer(lambda numbers, time: Tensor(by_distance(numbers, time).data), contains="not its .data"),
    ],
    explanation="2T - 1 numbers do the work of T times T: what is learned about one place serves all places.",
)

# Find the bug

SIZE = 8  # channels


class Averaging(Composite):
    """The parts of the broken layer; subclasses say how it mixes."""

    def __init__(self, channels):
        self.value = Linear(channels, channels)
        self.output = Linear(channels, channels)
        super().__init__([self.value, self.output])

    def mix(self, x, divisor):
        weights = Softmax()(x @ x.transpose((0, 2, 1)) / divisor)
        return self.output(weights @ self.value(x))


class Mended(Averaging):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / math.sqrt(x.shape[-1])
        return self.output(Softmax()(scores) @ self.value(x))


class KeepsTheBug(Averaging):
    def forward(self, x):
        return self.mix(x, math.sqrt(x.shape[1]))


class RootOfTheBatch(Averaging):
    def forward(self, x):
        return self.mix(x, math.sqrt(x.shape[0]))


class NoRoot(Averaging):
    def forward(self, x):
        return self.mix(x, 1.0)


class Channels(Averaging):
    def forward(self, x):
        return self.mix(x, float(x.shape[-1]))


class ForgetsValue(Averaging):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / math.sqrt(x.shape[-1])
        return self.output(Softmax()(scores) @ x)


class ForgetsOutput(Averaging):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / math.sqrt(x.shape[-1])
        return Softmax()(scores) @ self.value(x)


def _tokens(batch, time):
    return Tensor(np.random.Generator(np.random.PCG64(13)).standard_normal((batch, time, SIZE)))


def _layer(answer):
    """A layer of the reader's class; its parts must be those of the broken one."""
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Mended), not an object made from it")
    layer = answer(SIZE)
    for name in ("value", "output"):
        if not isinstance(getattr(layer, name, None), Linear):
            raise Wrong(f"your layer has no Linear called {name}: keep the two of the broken one")
    return layer


def equal_tokens_give_their_value(answer):
    """Tokens that are all alike: whatever the weights are, each receives the common value."""
    layer = _layer(answer)
    token = Tensor(np.ones((1, 3, SIZE)))
    known = {
        "three equal tokens return output(x): where did the value projection go?": layer.output(token).data,
        "three equal tokens return value(x): where did the output projection go?": layer.value(token).data,
    }
    return compare(layer(token), layer.output(layer.value(token)), 1e-4, "with three equal tokens, the output", known)


def repeated_windows_change_nothing(answer):
    """A window that says everything twice has the same averages, and so has a batch that holds a window twice."""
    layer, window = _layer(answer), _tokens(1, 3).data
    alone = layer(Tensor(window)).data
    twice = layer(Tensor(np.concatenate([window, window]))).data[:1]
    if not np.allclose(alone, twice, atol=1e-4):
        return "a window gives one output alone, and another in a batch of two: what has the batch to do with it?"
    longer = layer(Tensor(np.concatenate([window, window], axis=1))).data[:, :3]
    if not np.allclose(alone, longer, atol=1e-4):
        return "a window with every token twice gives other averages: do the scores of two tokens depend on the others?"
    return None


def six_tokens_agree(answer):
    layer, x = _layer(answer), _tokens(2, 6)
    right, _ = scaled_dot_product_attention(x, x, layer.value(x))
    scores = x @ x.transpose((0, 2, 1))
    raw, flat = (Softmax()(scores / divisor) @ layer.value(x) for divisor in (1.0, float(SIZE)))
    known = {
        "the scores are not divided by any root": layer.output(raw),
        "the scores are divided by the 8 channels themselves, not by their root": layer.output(flat),
    }
    return compare(layer(x), layer.output(right), 1e-4, "with six tokens, the output", known)


bug = Exercise(
    id="ch03.bug",
    title="It trains, and it is wrong",
    kind="find the bug",
    stub='Mended = ...  # your class, mended from Broken\n\ncheck("ch03.bug", Mended)',
    properties=[
        Property("equal tokens receive their common value", equal_tokens_give_their_value),
        Property("the score of two tokens is their own affair", repeated_windows_change_nothing),
        Property("six tokens agree with the engine", six_tokens_agree, points=2),
    ],
    hints=[
        Hint("Write the shape of each line behind it. Which number does each `shape[...]` pick?"),
        Hint("The root keeps the spread of a dot product at 1. How many products does one dot product add up?"),
        Hint("The channels are the last axis:", code="math.sqrt(x.shape[-1])", answer=Mended),
    ],
    wrong=[
        WrongAnswer(KeepsTheBug, contains="depend on the others"),
        WrongAnswer(RootOfTheBatch, contains="what has the batch to do"),
        WrongAnswer(NoRoot, contains="not divided by any root"),
        WrongAnswer(Channels, contains="channels themselves"),
        WrongAnswer(ForgetsValue, contains="value projection go"),
        WrongAnswer(ForgetsOutput, contains="output projection go"),
    ],
    explanation="With 64 channels and windows of 64 tokens nobody would notice, until a window is shorter.",
)

EXERCISES = [row, reach, distance, bug]
