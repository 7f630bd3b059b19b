"""The exercises of chapter 2: a language model from counts."""

import math

import numpy as np

from src.core import CrossEntropyLoss, Loss, Softmax, Tensor
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

# A loss by hand

GIVEN = np.array([1 / 2, 1 / 4, 1 / 8, 1 / 4])  # what the model gave to the characters that came


def loss_is_right(answer):
    known = {
        "this is the sum of the four surprises: the loss is their mean": -np.log(GIVEN).sum(),
        "you averaged the probabilities first: take the surprise of each character, then the mean": -np.log(
            GIVEN.mean()
        ),
        "this is the mean probability: the loss is the mean of -ln of them": GIVEN.mean(),
        "this is the perplexity, exp of the loss": math.exp(-np.log(GIVEN).mean()),
        "your logarithm has the base 2, so your unit is the bit: use the natural logarithm": -np.log2(GIVEN).mean(),
    }
    return compare(answer, -np.log(GIVEN).mean(), name="your loss", known=known)


loss = Exercise(
    id="ch02.loss",
    title="A loss by hand",
    kind="by hand",
    stub='loss = ...  # in nats; write math.log(2) for ln 2\n\ncheck("ch02.loss", loss)',
    properties=[Property("the loss", loss_is_right, points=2)],
    hints=[
        Hint("The surprise at a character is -ln of the probability that the model gave to it."),
        Hint("In multiples of ln 2 the four surprises are 1, 2, 3 and 2."),
        Hint("Their mean:", code="(1 + 2 + 3 + 2) / 4 * math.log(2)", answer=2 * math.log(2)),
    ],
    wrong=[
        WrongAnswer(8 * math.log(2), contains="the sum of the four surprises"),
        WrongAnswer(-math.log(9 / 32), contains="averaged the probabilities first"),
        WrongAnswer("9/32", contains="the mean probability"),
        WrongAnswer(2, contains="has the base 2"),
        WrongAnswer(-2 * math.log(2), contains="wrong sign"),
        WrongAnswer(2 * math.log10(2), contains="base 10"),
    ],
    explanation=(
        "The mean of the logarithms is the logarithm of the product, divided by 4: exp of the loss is 4, so the "
        "model is as unsure as between 4 equally likely characters."
    ),
)

# A gradient by hand

SHARES = np.array([1 / 7, 2 / 7, 4 / 7])  # softmax of 0, ln 2, 2 ln 2
CAME = np.array([1 / 2, 0.0, 1 / 2])  # once a, once c


def gradient_sums_to_zero(answer):
    total = to_array(answer, "your gradient").sum()
    if abs(total) < 2e-3:
        return None
    return f"your three numbers sum to {show(total)}: both p and the targets sum to 1, so a difference sums to 0"


def gradient_is_right(answer):
    known = {
        "this is the gradient if only c had come": SHARES - [0, 0, 1],
        "this is the gradient if only a had come": SHARES - [1, 0, 0],
        "this is the gradient of the sum: the loss is a mean of two": 2 * (SHARES - CAME),
        "your signs are those of targets minus p: it is p minus targets": CAME - SHARES,
    }
    return compare(answer, SHARES - CAME, name="your gradient", known=known)


gradient = Exercise(
    id="ch02.gradient",
    title="A gradient by hand",
    kind="by hand",
    stub='row_gradient = [..., ..., ...]  # fractions may be text: "1/2"\n\ncheck("ch02.gradient", row_gradient)',
    properties=[
        Property("the entries sum to 0", gradient_sums_to_zero),
        Property("the gradient", gradient_is_right, points=2),
    ],
    hints=[
        Hint("Each of the two predictions alone has the gradient p - onehot, with the same p."),
        Hint(
            "p is 1/7, 2/7, 4/7. The two onehots are [1, 0, 0] and [0, 0, 1]; the loss is a mean, so take half of each."
        ),
        Hint(
            "Their mean is p minus the shares of what came:",
            code='["-5/14", "2/7", "1/14"]',
            answer=["-5/14", "2/7", "1/14"],
        ),
    ],
    wrong=[
        WrongAnswer(["1/7", "2/7", "-3/7"], contains="only c had come"),
        WrongAnswer(["-6/7", "2/7", "4/7"], contains="only a had come"),
        WrongAnswer(["-5/7", "4/7", "1/7"], contains="gradient of the sum"),
        WrongAnswer(["5/14", "-2/7", "-1/14"], contains="targets minus p"),
        WrongAnswer(["1/7", "2/7", "4/7"], contains="sum to 1:"),
    ],
    explanation="It vanishes when p equals the shares of what came. That is why descent arrives at the counts.",
)

# Cut the windows


def _pair(answer, *arguments):
    """x and y as arrays (N, T)."""
    try:
        given = answer(*arguments)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise Wrong("your last window is shorter than T: it, or its targets, would run past the last token") from None
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise Wrong("return two arrays, as in `return x, y`")
    return to_array(given[0], "x"), to_array(given[1], "y")


def windows_have_shape(answer):
    x, y = _pair(answer, np.arange(10), 4, 1)
    if x.shape == y.shape == (6, 4):
        return None
    if x.shape[1:] == y.shape[1:] == (3,):
        return "for T = 4 your x and y have 3 columns: a window has T + 1 tokens, so that position T - 1 is trained too"
    if x.shape == y.shape == (5, 4):
        return "from the tokens 0 to 9 you cut 5 windows of T = 4: the last one still fits, its last target is token 9"
    return f"10 tokens, T = 4, stride 1: x has shape {x.shape}, y has {y.shape}; both must be (windows, 4)"


def targets_follow(answer):
    x, y = _pair(answer, np.arange(10), 4, 1)
    if (y == x + 1).all():
        return None
    after = {
        0: "y equals x: a model would only learn to repeat",
        -1: "y comes before x: it is the past, not the target",
    }
    step = y[0, 0] - x[0, 0]
    return after.get(step, f"after token {show(x[0, 0])} comes token {show(x[0, 0] + 1)}, your y has {show(y[0, 0])}")


def stride_is_kept(answer):
    x, _ = _pair(answer, np.arange(10), 4, 3)
    if x.shape == (2, 4) and (x[:, 0] == [0, 3]).all():
        return None
    return f"10 tokens, T = 4, stride 3: your windows start at {show(x[:, 0])}"


def windows_come_in_order(answer):
    tokens = np.array([7, 3, 3, 9, 1, 7])
    x, y = _pair(answer, tokens, 2, 2)
    if (x == [[7, 3], [3, 9]]).all() and (y == [[3, 3], [9, 1]]).all():
        return None
    return f"tokens {show(tokens)}, T = 2, stride 2: your x is {show(x)}, your y {show(y)}: cut the tokens, not places"


def cut_windows(tokens, context_size, stride):
    starts = range(0, len(tokens) - context_size, stride)
    x = np.array([tokens[start : start + context_size] for start in starts])
    y = np.array([tokens[start + 1 : start + context_size + 1] for start in starts])
    return x, y


def cut_unshifted(tokens, context_size, stride):
    x, _ = cut_windows(tokens, context_size, stride)
    return x, x


def cut_backwards(tokens, context_size, stride):
    x, y = cut_windows(tokens, context_size, stride)
    return y, x


def cut_without_last(tokens, context_size, stride):
    starts = range(0, len(tokens) - context_size - 1, stride)
    x = np.array([tokens[start : start + context_size] for start in starts])
    y = np.array([tokens[start + 1 : start + context_size + 1] for start in starts])
    return x, y


def cut_short(tokens, context_size, stride):
    windows = [tokens[start : start + context_size] for start in range(0, len(tokens) - context_size + 1, stride)]
    return np.array(windows)[:, :-1], np.array(windows)[:, 1:]


def cut_one_too_many(tokens, context_size, stride):
    starts = range(0, len(tokens) - context_size + 1, stride)
    x = [list(tokens[start : start + context_size]) for start in starts]
    y = [list(tokens[start + 1 : start + context_size + 1]) for start in starts]
    return x, y


def cut_one_too_many_arrays(tokens, context_size, stride):
    x, y = cut_one_too_many(tokens, context_size, stride)
    return np.array(x), np.array(y)


def cut_every_token(tokens, context_size, stride):
    return cut_windows(tokens, context_size, 1)


def cut_places(tokens, context_size, stride):
    return cut_windows(np.arange(len(tokens)), context_size, stride)


windows = Exercise(
    id="ch02.windows",
    title="Cut the windows",
    kind="build",
    stub=(
        'def cut_windows(tokens, context_size, stride):  # return x, y\n    ...\n\n\ncheck("ch02.windows", cut_windows)'
    ),
    properties=[
        Property("the shapes", windows_have_shape),
        Property("y is x one token later", targets_follow),
        Property("the stride", stride_is_kept),
        Property("the tokens", windows_come_in_order),
    ],
    hints=[
        Hint("A window that starts at s needs the tokens s to s + T: the last of them is a target only."),
        Hint("So the last start is len(tokens) - T - 1, and `range` ends before its second number."),
        Hint(
            "The starts are",
            code="range(0, len(tokens) - context_size, stride)",
            answer=cut_windows,
        ),
    ],
    wrong=[
        WrongAnswer(cut_unshifted, contains="only learn to repeat"),
        WrongAnswer(cut_backwards, contains="the past, not the target"),
        WrongAnswer(cut_without_last, contains="the last one still fits"),
        WrongAnswer(cut_short, contains="have 3 columns"),
        WrongAnswer(cut_one_too_many, contains="rows of equal length"),
        WrongAnswer(cut_one_too_many_arrays, contains="run past the last token"),
        WrongAnswer(cut_every_token, contains="start at [0, 1, 2, 3, 4, 5]"),
        WrongAnswer(cut_places, contains="not places"),
    ],
    explanation="CharDataset does the same without copying: its windows are views of one array.",
)

# Count a bigram table

IDS = np.array([0, 1, 0, 1, 0, 2])  # "ababac": ab twice, ba twice, ac once


def _table(answer, pseudo_count):
    table = to_array(answer(IDS.copy(), 3, pseudo_count), "your table")
    if table.shape != (3, 3):
        raise Wrong(f"3 characters need a table of shape (3, 3), yours is {table.shape}")
    return table


def rows_are_probabilities(answer):
    table = _table(answer, 1.0)
    if np.allclose(table.sum(axis=1), 1, atol=1e-4):
        return None
    if abs(table.sum() - 1) < 1e-4:
        return "the whole table sums to 1: each row must, what comes after a is a question of its own"
    if np.allclose(table.sum(axis=0), 1, atol=1e-4):
        return "your columns sum to 1: rows are the character before, and it is the rows that must"
    return f"the ids {show(IDS)}, pseudo-count 1: your rows sum to {show(table.sum(axis=1))}"


def counts_are_right(answer):
    table = _table(answer, 1.0)
    counts = np.array([[0.0, 2, 1], [2, 0, 0], [0, 0, 0]])
    once = np.minimum(counts, 1) + 1
    late = np.array([[0, 2 / 3, 1 / 3], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])  # an empty row made even
    known = {
        "a pair that occurs twice counts once: `table[i, j] += 1` with arrays drops repeats, np.add.at does not": once
        / once.sum(axis=1, keepdims=True),
        "your pseudo-count has no effect: what never occurred has probability 0": late,
        "your table tells what came before a character: the row is the earlier one of a pair": (counts.T + 1)
        / (counts.T + 1).sum(axis=1, keepdims=True),
        "your pairs do not overlap: in ababac there are ab, ba, ab, ba and ac": np.array(
            [[1, 3, 2], [2, 2, 2], [2, 2, 2]]
        )
        / 6,
    }
    return compare(table, (counts + 1) / (counts + 1).sum(axis=1, keepdims=True), 1e-5, "for ababac the table", known)


def pseudo_count_is_used(answer):
    row = _table(answer, 0.2)[2]
    other = _table(answer, 0.5)[0, 0]
    if np.allclose(row, 1 / 3, atol=1e-4) and abs(other - 1 / 9) < 1e-4:
        return None
    return f"after c nothing came, so its row is even for every pseudo-count; at 0.5, a after a has {show(other)}"


def bigram_table(ids, vocab_size, pseudo_count):
    table = np.full((vocab_size, vocab_size), float(pseudo_count))
    np.add.at(table, (ids[:-1], ids[1:]), 1.0)
    return table / table.sum(axis=1, keepdims=True)


def table_of_once(ids, vocab_size, pseudo_count):
    table = np.full((vocab_size, vocab_size), float(pseudo_count))
    table[ids[:-1], ids[1:]] += 1.0
    return table / table.sum(axis=1, keepdims=True)


def table_of_all(ids, vocab_size, pseudo_count):
    table = np.full((vocab_size, vocab_size), float(pseudo_count))
    np.add.at(table, (ids[:-1], ids[1:]), 1.0)
    return table / table.sum()


def table_by_column(ids, vocab_size, pseudo_count):
    table = np.full((vocab_size, vocab_size), float(pseudo_count))
    np.add.at(table, (ids[:-1], ids[1:]), 1.0)
    return table / table.sum(axis=0, keepdims=True)


def table_backwards(ids, vocab_size, pseudo_count):
    return bigram_table(ids[::-1], vocab_size, pseudo_count)


def table_unsmoothed(ids, vocab_size, pseudo_count):
    table = np.zeros((vocab_size, vocab_size))
    np.add.at(table, (ids[:-1], ids[1:]), 1.0)
    total = table.sum(axis=1, keepdims=True)
    return np.where(total > 0, table / np.maximum(total, 1), 1 / vocab_size)


def table_of_counts(ids, vocab_size, pseudo_count):
    table = np.full((vocab_size, vocab_size), float(pseudo_count))
    np.add.at(table, (ids[:-1], ids[1:]), 1.0)
    return table


def table_of_ones(ids, vocab_size, pseudo_count):
    return bigram_table(ids, vocab_size, 1.0)


def table_of_separate_pairs(ids, vocab_size, pseudo_count):
    table = np.full((vocab_size, vocab_size), float(pseudo_count))
    np.add.at(table, (ids[:-1:2], ids[1::2]), 1.0)
    return table / table.sum(axis=1, keepdims=True)


table = Exercise(
    id="ch02.table",
    title="Count pairs",
    kind="build",
    stub=(
        "def bigram_table(ids, vocab_size, pseudo_count):  # return (V, V)\n"
        "    ...\n"
        "\n"
        "\n"
        'check("ch02.table", bigram_table)'
    ),
    properties=[
        Property("rows sum to 1", rows_are_probabilities),
        Property("the table of ababac", counts_are_right, points=2),
        Property("the pseudo-count", pseudo_count_is_used),
    ],
    hints=[
        Hint("Start from a table (V, V) full of the pseudo-count. The pairs are ids[:-1] and ids[1:]."),
        Hint("Add 1 for each pair, also for one that occurs again, then divide each row by its own sum."),
        Hint(
            "A loop over the pairs works, and so does",
            code="np.add.at(table, (ids[:-1], ids[1:]), 1.0)",
            answer=bigram_table,
        ),
    ],
    wrong=[
        WrongAnswer(table_of_once, contains="np.add.at does not"),
        WrongAnswer(table_of_all, contains="the whole table sums to 1"),
        WrongAnswer(table_by_column, contains="your columns sum to 1"),
        WrongAnswer(table_backwards, contains="what came before a character"),
        WrongAnswer(table_unsmoothed, contains="has no effect"),
        WrongAnswer(table_of_counts, contains="your rows sum to [6, 5, 3]"),
        WrongAnswer(table_of_ones, contains="at 0.5"),
        WrongAnswer(table_of_separate_pairs, contains="do not overlap"),
    ],
    explanation="The same few lines with one more axis give the trigram.",
)

# A loss that trains, and is wrong


def _logits():
    """Logits (2, 3, 5) and targets (2, 3)."""
    generator = np.random.Generator(np.random.PCG64(2))
    return generator.standard_normal((2, 3, 5)), generator.integers(0, 5, (2, 3))


def even_choice(answer):
    value = to_array(answer()(Tensor(np.zeros((2, 3, 5))), Tensor(np.zeros((2, 3), dtype=int))), "the loss")
    if value.size != 1:
        return f"the loss is one number, yours has the shape {value.shape}"
    known = {
        "as if the choice were among all 30 numbers of the batch": math.log(30),
        "as if the choice were among the 3 places of a sequence": math.log(3),
        "as if the choice were among the 2 sequences": math.log(2),
        "which is that of all 6 predictions together: a loss is their mean": 6 * math.log(5),
        "which is below 0: no surprise is": -math.log(5),
    }
    problem = compare(value, math.log(5), 1e-4, "the loss", known)
    if problem is None:
        return None
    return f"logits (2, 3, 5), all equal: your loss is {show(value)}" + (f", {problem}" if problem in known else "")


def equals_the_engine(answer):
    logits, targets = _logits()
    with Tensor.precision(np.float64):
        value = answer()(Tensor(logits), Tensor(targets)).item()
        right = CrossEntropyLoss()(Tensor(logits), Tensor(targets)).item()
        given = (Softmax()(Tensor(logits)).data * np.eye(5)[targets]).sum(axis=-1)
    known = {"on six characters you average probabilities before the logarithm": -math.log(given.mean())}
    return compare(value, right, 1e-6, "on six characters, the loss", known)


def gradient_of_loss(answer):
    logits, targets = _logits()
    with Tensor.precision(np.float64):
        tensor = Tensor(logits)
        answer()(tensor, Tensor(targets)).backward()
        wanted = (Softmax()(Tensor(logits)).data - np.eye(5)[targets]) / targets.size
    return compare(tensor.grad, wanted, 1e-6, "the gradient of the logits")


class OverEverything(Loss):
    def loss(self, p, y):
        exps = p.exp()
        given = (exps / exps.sum() * np.eye(p.shape[-1])[y.data]).sum(axis=-1)
        return -given.log().mean()


class OverTime(Loss):
    def loss(self, p, y):
        exps = p.exp()
        given = (exps / exps.sum(axis=1, keepdims=True) * np.eye(p.shape[-1])[y.data]).sum(axis=-1)
        return -given.log().mean()


class OverBatch(Loss):
    def loss(self, p, y):
        exps = p.exp()
        given = (exps / exps.sum(axis=0, keepdims=True) * np.eye(p.shape[-1])[y.data]).sum(axis=-1)
        return -given.log().mean()


class MeanProbability(Loss):
    def loss(self, p, y):
        exps = p.exp()
        given = (exps / exps.sum(axis=-1, keepdims=True) * np.eye(p.shape[-1])[y.data]).sum(axis=-1)
        return -given.mean().log()


class SumOfSurprises(Loss):
    def loss(self, p, y):
        exps = p.exp()
        given = (exps / exps.sum(axis=-1, keepdims=True) * np.eye(p.shape[-1])[y.data]).sum(axis=-1)
        return -given.log().sum()


class WithoutMinus(Loss):
    def loss(self, p, y):
        exps = p.exp()
        given = (exps / exps.sum(axis=-1, keepdims=True) * np.eye(p.shape[-1])[y.data]).sum(axis=-1)
        return given.log().mean()


class Mended(Loss):
    def loss(self, p, y):
        exps = p.exp()
        probabilities = exps / exps.sum(axis=-1, keepdims=True)
        given = (probabilities * np.eye(p.shape[-1])[y.data]).sum(axis=-1)
        return -given.log().mean()


bug = Exercise(
    id="ch02.bug",
    title="It trains, and it is wrong",
    kind="find the bug",
    stub=(
        "class Mended(Broken):\n"
        "    def loss(self, p, y):  # logits (B, T, V), targets (B, T)\n"
        "        ...\n"
        "\n"
        "\n"
        'check("ch02.bug", Mended)'
    ),
    properties=[
        Property("equal logits lose ln V", even_choice),
        Property("the loss", equals_the_engine),
        Property("the gradient", gradient_of_loss),
    ],
    hints=[
        Hint("Give it equal logits for one character, then for two. What should an even choice among V lose?"),
        Hint("Each prediction is a distribution of its own: which numbers must sum to 1?"),
        Hint(
            "Divide by the sum over the last axis alone:",
            code="exps / exps.sum(axis=-1, keepdims=True)",
            answer=Mended,
        ),
    ],
    wrong=[
        WrongAnswer(OverEverything, contains="all 30 numbers"),
        WrongAnswer(OverTime, contains="the 3 places"),
        WrongAnswer(OverBatch, contains="the 2 sequences"),
        WrongAnswer(MeanProbability, contains="before the logarithm"),
        WrongAnswer(SumOfSurprises, contains="all 6 predictions"),
        WrongAnswer(WithoutMinus, contains="no surprise is"),
    ],
    explanation="ln V for an even choice is the first thing to look at in any training run.",
)

EXERCISES = [loss, gradient, windows, table, bug]
