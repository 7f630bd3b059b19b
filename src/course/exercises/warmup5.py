"""The questions of card 5 of the warm-up: probability and average surprise."""

import math

import numpy as np

from src.course.compare import compare
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

# Three letters

MEAN = 5 / 3 * math.log(2)


def is_mean_surprise(answer):
    known = {
        "this is the sum over the three letters: divide by their number": 5 * math.log(2),
        "this is the surprise at the average probability: take the logarithms first, then average": -math.log(3 / 8),
        "this is the probability of the text: its logarithm is wanted, with a minus, divided by 3": 1 / 32,
        "you averaged over the letters that the model knows; average over those that the text has": 0.9743,
        "you took a, b and c once each: the text has a twice, and no c": math.log(2 * 8 * 8 / 3) / 3,
        "you took a and b once each: a comes twice": 2 * math.log(2),
        "1/8 is a half of a half of a half: how often does that add ln 2?": 4 / 3 * math.log(2),
    }
    return compare(answer, MEAN, name="your average", known=known)


mean = Exercise(
    id="warmup5.mean",
    title="Average surprise by hand",
    kind="by hand",
    stub='average = ...  # in nats; ln 2 = 0.6931\n\ncheck("warmup5.mean", average)',
    properties=[Property("the average surprise", is_mean_surprise, points=2)],
    hints=[
        Hint("The text has three letters, so there are three surprises; c does not occur."),
        Hint("The surprise at a is -ln(1/2) = ln 2, twice. That at b is -ln(1/8) = 3 ln 2."),
        Hint("The average:", code="(1 + 1 + 3) / 3 * 0.6931", answer=1.155),
    ],
    wrong=[
        WrongAnswer(3.466, contains="divide by their number"),
        WrongAnswer(0.981, contains="take the logarithms first"),
        WrongAnswer("1/32", contains="probability of the text"),
        WrongAnswer(0.974, contains="those that the text has"),
        WrongAnswer(1.2508, contains="and no c"),
        WrongAnswer(1.3863, contains="a comes twice"),
        WrongAnswer(0.9242, contains="half of a half"),
        WrongAnswer("5/3", contains="in bits"),
        WrongAnswer(-1.155, contains="wrong sign"),
    ],
    explanation="The text has the probability 1/32 = exp(-3 * 1.155): the same number, seen from the product.",
)

# A model that knows nothing


def part(answer, place):
    if not isinstance(answer, list | tuple) or len(answer) != 2:
        raise Wrong("give two numbers: (surprise, perplexity)")
    return answer[place]


def is_uniform_surprise(answer):
    known = {
        "this is the probability of each character: take -ln of it": 1 / 16,
        "the two are exchanged: the surprise comes first": 16,
        "ln 16 is not 16 times ln 2: 16 is a product of twos": 16 * math.log(2),
    }
    return compare(part(answer, 0), math.log(16), name="the surprise", known=known)


def is_uniform_perplexity(answer):
    known = {
        "the perplexity is exp of the surprise, not the surprise again": math.log(16),
        "this is 2 to the power of the surprise in nats: with nats the base is e": 2 ** math.log(16),
    }
    return compare(part(answer, 1), 16, name="the perplexity", known=known)


uniform = Exercise(
    id="warmup5.uniform",
    title="A model that knows nothing",
    kind="by hand",
    stub=(
        'surprise = ...  # in nats; ln 2 = 0.6931\nperplexity = ...\n\ncheck("warmup5.uniform", (surprise, perplexity))'
    ),
    properties=[
        Property("the average surprise", is_uniform_surprise),
        Property("the perplexity", is_uniform_perplexity),
    ],
    hints=[
        Hint("Each of the 16 characters gets the same probability, whichever comes: every surprise is the same."),
        Hint("It is -ln(1/16) = ln 16, and 16 = 2 * 2 * 2 * 2. The perplexity undoes the logarithm."),
        Hint("Both:", code="(4 * 0.6931, 16)", answer=(4 * math.log(2), 16)),
    ],
    wrong=[
        WrongAnswer(("1/16", 16), contains="take -ln of it"),
        WrongAnswer((4, 16), contains="in bits"),
        WrongAnswer((16, 2.7726), contains="exchanged"),
        WrongAnswer((11.0904, 16), contains="a product of twos"),
        WrongAnswer((2.7726, 2.7726), contains="the surprise again"),
        WrongAnswer((2.7726, 6.833), contains="the base is e"),
    ],
    explanation="ln V is what an untrained model should score; a first loss far from it shows a mistake.",
)

# Average surprise as a function


def _case():
    return np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]]), np.array([0, 2, 1])


def is_average(function):
    table, targets = _case()
    right = table[np.arange(3), targets]  # 1/2, 1/4, 1/8
    known = {
        "for probabilities 1/2, 1/4, 1/8 of what came you return the sum: the mean is wanted": -np.log(right).sum(),
        "for probabilities 1/2, 1/4, 1/8 of what came you return minus ln of their mean": -np.log(right.mean()),
        "for probabilities 1/2, 1/4, 1/8 of what came you return bits: use np.log": -np.log2(right).mean(),
        "you return the surprise at the likeliest character of each row, not at the target": -np.log(
            table.max(axis=1)
        ).mean(),
        "you average over the whole table: only the target of each row counts": -np.log(table).mean(),
    }
    name = "for probabilities 1/2, 1/4, 1/8 of what came your result"
    message = compare(function(table, targets), -np.log(right).mean(), 1e-5, name, known)
    name = "with the first two of the three rows your result"
    return message or compare(function(table[:2], targets[:2]), 1.5 * np.log(2), 1e-5, name)


def by_picking(probabilities, targets):
    picked = probabilities[np.arange(len(targets)), targets]
    return -np.log(picked).mean()


def by_sum(probabilities, targets):
    return -np.log(probabilities[np.arange(len(targets)), targets]).sum()


def by_mean_first(probabilities, targets):
    return -np.log(probabilities[np.arange(len(targets)), targets].mean())


def by_bits(probabilities, targets):
    return -np.log2(probabilities[np.arange(len(targets)), targets]).mean()


def by_likeliest(probabilities, targets):
    return -np.log(probabilities.max(axis=1)).mean()


def by_columns(probabilities, targets):
    return -np.log(probabilities[range(probabilities.shape[1]), targets]).mean()


def by_rows_of_three(probabilities, targets):
    return -np.log(probabilities[range(len(targets)), targets]).sum() / 3


def by_table(probabilities, targets):
    return -np.log(probabilities[:, targets]).mean()


loss = Exercise(
    id="warmup5.loss",
    title="Average surprise in code",
    kind="build",
    stub='def average_surprise(probabilities, targets):\n    return ...\n\n\ncheck("warmup5.loss", average_surprise)',
    properties=[Property("the average surprise", is_average, points=2)],
    hints=[
        Hint("From each row, pick the probability of the one character that came."),
        Hint("Two lists as index pick pairs: table[[0, 1], [2, 0]] is entry 2 of row 0 and entry 0 of row 1."),
        Hint(
            "Pick from `probabilities`, then take `-np.log` and the mean. The index, in square brackets, is",
            code="np.arange(len(targets)), targets",
            answer=by_picking,
        ),
    ],
    wrong=[
        WrongAnswer(by_sum, contains="the mean is wanted"),
        WrongAnswer(by_mean_first, contains="ln of their mean"),
        WrongAnswer(by_bits, contains="use np.log"),
        WrongAnswer(by_likeliest, contains="not at the target"),
        WrongAnswer(by_table, contains="whole table"),
        WrongAnswer(by_columns, contains="IndexError"),
        WrongAnswer(by_rows_of_three, contains="with the first two"),
    ],
    explanation="This number is the loss of every language model of this course, under the name cross-entropy.",
)

EXERCISES = [mean, uniform, loss]
