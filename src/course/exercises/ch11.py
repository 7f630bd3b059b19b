"""The exercises of chapter 11: generating text."""

from typing import Any

import numpy as np

from src.core import Tensor, scaled_dot_product_attention
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import GPT, GPTAttention
from src.gpt.cache import LayerCache

# Three rows by hand: the tokens have the logits ln 9, ln 4, ln 9, ln 36

ROOTS = np.array([3.0, 2, 3, 6])
WARM = ROOTS / 14
TOP_K = np.array([1 / 3, 0, 0, 2 / 3])
TOP_P = np.array([1 / 4, 0, 1 / 4, 1 / 2])


def _three_rows(answer):
    rows = to_array(answer, "your answer")
    if rows.shape != (3, 4):
        raise Wrong(f"give three rows of four probabilities, yours have the shape {rows.shape}")
    return rows


def row_at_temperature_two(answer):
    plain = ROOTS**2
    known = {
        "the first row has temperature 1: divide the logits by 2 first": plain / plain.sum(),
        "the first row has temperature 1/2: you multiplied the logits by 2": plain**2 / (plain**2).sum(),
        "the first row does not sum to 1: divide it by its sum": ROOTS,
        "the first row is a softmax of 9, 4, 9, 36: the logits are the logarithms of these": _softmax(plain),
        "the first row holds logits: probabilities are their exponentials, divided by the sum": np.log(ROOTS),
        "the first row holds shares of the logits: take the exponentials first": np.log(ROOTS) / np.log(ROOTS).sum(),
        "the first row halves all probabilities: it is the logits that are divided": plain / plain.sum() / 2,
    }
    return compare(_three_rows(answer)[0], WARM, name="the first row", known=known)


def row_with_top_k(answer):
    known = {
        "top-k keeps both tokens of the tie: k = 2 tokens stay, of equals the lowest id": [3 / 12, 0, 3 / 12, 6 / 12],
        "top-k keeps the later of two equals: the lowest id stays": [0, 0, 1 / 3, 2 / 3],
        "the second row does not sum to 1: divide what is left by its sum": [3 / 14, 0, 0, 6 / 14],
        "the second row keeps the right tokens at temperature 1: start from your first row": [1 / 5, 0, 0, 4 / 5],
    }
    return compare(_three_rows(answer)[1], TOP_K, name="the second row", known=known)


def row_with_top_p(answer):
    known = {
        "top-p stops one token too early: what is kept must reach 0.7": [1 / 3, 0, 0, 2 / 3],
        "top-p keeps all four: stop as soon as 0.7 is reached": WARM,
        "the third row does not sum to 1: divide what is left by its sum": [3 / 14, 0, 3 / 14, 6 / 14],
        "top-p starts with the least likely token: start with the best": [3 / 8, 2 / 8, 3 / 8, 0],
    }
    return compare(_three_rows(answer)[2], TOP_P, name="the third row", known=known)


def _softmax(row):
    exps = np.exp(row - np.max(row))
    return exps / exps.sum()


ROWS = [["3/14", "2/14", "3/14", "6/14"], ["1/3", 0, 0, "2/3"], ["1/4", 0, "1/4", "1/2"]]

rows = Exercise(
    id="ch11.rows",
    title="Three rows by hand",
    kind="by hand",
    stub=(
        "warmer = [..., ..., ..., ...]  # temperature 2\n"
        "top_two = [..., ..., ..., ...]  # then top-k, k = 2\n"
        "nucleus = [..., ..., ..., ...]  # instead top-p, p = 0.7\n\n"
        'check("ch11.rows", [warmer, top_two, nucleus])'
    ),
    properties=[
        Property("temperature 2", row_at_temperature_two, points=2),
        Property("top-k", row_with_top_k),
        Property("top-p", row_with_top_p),
    ],
    hints=[
        Hint("Half of ln 9 is ln 3: at temperature 2 each number under the logarithm is replaced by its root."),
        Hint(
            "The first row is as 3 to 2 to 3 to 6. For the others write 0 for what is cut, and divide by the new sum."
        ),
        Hint(
            "The three rows:",
            code='[["3/14", "2/14", "3/14", "6/14"], ["3/9", 0, 0, "6/9"], ["3/12", 0, "3/12", "6/12"]]',
            answer=ROWS,
        ),
    ],
    wrong=[
        WrongAnswer([[9 / 58, 4 / 58, 9 / 58, 36 / 58], *ROWS[1:]], contains="has temperature 1: divide"),
        WrongAnswer([[81 / 1474, 16 / 1474, 81 / 1474, 1296 / 1474], *ROWS[1:]], contains="multiplied the logits by 2"),
        WrongAnswer([np.log(ROOTS).tolist(), *ROWS[1:]], contains="holds logits"),
        WrongAnswer([(np.log(ROOTS) / np.log(108)).tolist(), *ROWS[1:]], contains="shares of the logits"),
        WrongAnswer([[3, 2, 3, 6], *ROWS[1:]], contains="first row does not sum to 1"),
        WrongAnswer([ROWS[0], [3 / 12, 0, 3 / 12, 6 / 12], ROWS[2]], contains="both tokens of the tie"),
        WrongAnswer([ROWS[0], [0, 0, 1 / 3, 2 / 3], ROWS[2]], contains="the later of two equals"),
        WrongAnswer([*ROWS[:2], [1 / 3, 0, 0, 2 / 3]], contains="one token too early"),
        WrongAnswer([*ROWS[:2], WARM.tolist()], contains="keeps all four"),
        WrongAnswer([*ROWS[:2], [3 / 14, 0, 3 / 14, 6 / 14]], contains="third row does not sum to 1"),
    ],
    explanation="Temperature first, then the cut, then the division by the sum of what is left.",
)

# What a token costs: one block, C = 4, V = 5, three tokens in the window

BLOCK, OUTPUT, ATTENDING = 12 * 4 * 4, 4 * 5, 2 * 4 * 3
COSTS = [BLOCK + OUTPUT + ATTENDING, 3 * (BLOCK + OUTPUT + ATTENDING), 2 * 4 * 3]


def _three_counts(answer):
    numbers = to_array(answer, "your answer")
    if numbers.shape != (3,):
        raise Wrong(f"give three numbers, yours have the shape {numbers.shape}")
    return numbers


def cost_with_cache(answer):
    known = {
        "the output layer is missing: C V multiplications give the V scores": BLOCK + ATTENDING,
        "the feed-forward network is missing: it has two matrices of 4 C times C": 4 * 16 + OUTPUT + ATTENDING,
        "the four matrices of attention are missing": 8 * 16 + OUTPUT + ATTENDING,
        "the new query does not look at any key: scores and mixture are missing": BLOCK + OUTPUT,
        "scores or mixture are missing: both take C multiplications a key": BLOCK + OUTPUT + 12,
        "the third token looks at two keys in yours: its own is one more": BLOCK + OUTPUT + 16,
        "only the block is counted: the look at the keys and the output layer are missing": BLOCK,
        "with a cache only the new token goes through the layers": COSTS[1],
        "heads share the channels: two heads cost no more than one": BLOCK + OUTPUT + 2 * ATTENDING,
        "both heads together have the 12 C C numbers of a block, not each of them": 2 * BLOCK + OUTPUT + ATTENDING,
    }
    return compare(_three_counts(answer)[0], COSTS[0], 1e-9, "the cost with a cache", known)


def cost_without(answer):
    known = {
        "without a cache all three tokens go through the layers": COSTS[0],
        "without a cache the window has three queries, each with three keys": 3 * (BLOCK + OUTPUT) + ATTENDING,
        "the output layer, too, gets three tokens": 3 * (BLOCK + ATTENDING) + OUTPUT,
        "NumPy multiplies the masked scores, too: three keys for each query": 3 * (BLOCK + OUTPUT) + 2 * 4 * 6,
    }
    return compare(_three_counts(answer)[1], COSTS[1], 1e-9, "the cost without a cache", known)


def numbers_in_the_cache(answer):
    known = {
        "keys and values are kept, both": 12,
        "the key and the value of the third token are kept, too": 16,
        "queries are not kept: an earlier token asks nothing any more": 36,
        "heads share the channels: a key has C numbers in all, not C for each head": 48,
        "the cache has one key and one value for each token, and there are three tokens": 8,
    }
    return compare(_three_counts(answer)[2], COSTS[2], 1e-9, "the size of the cache", known)


cost = Exercise(
    id="ch11.cost",
    title="What a token costs",
    kind="by hand",
    stub=(
        "with_cache = ...  # multiplications for the third token\n"
        "without = ...  # the same without a cache\n"
        "kept = ...  # numbers in the cache after it\n\n"
        'check("ch11.cost", [with_cache, without, kept])'
    ),
    properties=[
        Property("with a cache", cost_with_cache, points=2),
        Property("without", cost_without),
        Property("what is kept", numbers_in_the_cache),
    ],
    hints=[
        Hint(
            "One token costs 12 C C in the matrices of a block and C V in the output layer. What does it cost to look?"
        ),
        Hint("The query looks at three keys: C multiplications for each score, C for each value that is mixed in."),
        Hint(
            "The three numbers:",
            code="[12 * 16 + 4 * 5 + 2 * 4 * 3, 3 * (12 * 16 + 4 * 5 + 2 * 4 * 3), 2 * 4 * 3]",
            answer=COSTS,
        ),
    ],
    wrong=[
        WrongAnswer([216, 648, 24], contains="output layer is missing"),
        WrongAnswer([192, 576, 24], contains="only the block is counted"),
        WrongAnswer([108, 324, 24], contains="feed-forward network is missing"),
        WrongAnswer([212, 636, 24], contains="does not look at any key"),
        WrongAnswer([224, 672, 24], contains="C multiplications a key"),
        WrongAnswer([228, 684, 24], contains="looks at two keys"),
        WrongAnswer([260, 780, 24], contains="two heads cost no more"),
        WrongAnswer([428, 1284, 24], contains="not each of them"),
        WrongAnswer([236, 236, 24], contains="all three tokens go through"),
        WrongAnswer([236, 660, 24], contains="three queries, each with three keys"),
        WrongAnswer([236, 708, 12], contains="are kept, both"),
        WrongAnswer([236, 708, 16], contains="of the third token are kept"),
        WrongAnswer([236, 708, 36], contains="asks nothing any more"),
    ],
    explanation="Without a cache the third token costs three times as much, the hundredth a hundred times.",
)

# min-p

SHARE = 0.25  # below the largest probability, so that the share itself, taken as the limit, leaves a token


def _distribution():
    return np.array([0.04, 0.4, 0.28, 0.08, 0.2])


def min_p_keeps(answer):
    row = _distribution()
    kept = np.array([0, 0.4, 0.28, 0, 0.2])
    known = {
        "it keeps what is above the share itself: compare with the share of the best probability": _cut(
            row, row >= SHARE
        ),
        "it keeps what should go and cuts the best tokens": _cut(row, row < SHARE * 0.4),
        "what is left does not sum to 1: divide it by its sum": kept,
        "nothing gets 0: tokens below the limit are to be cut": row,
        "it compares with the mean, not with the best": _cut(row, row >= SHARE * row.mean()),
    }
    return compare(answer(row, SHARE), kept / 0.88, 1e-6, f"for {show(row)} and share {SHARE} your row", known)


def _cut(row, keep):
    return np.where(keep, row, 0) / max(row[keep].sum(), 1e-12)


def min_p_at_the_limits(answer):
    row = np.array([0.25, 0.5, 0.25])
    known = {"a token exactly at the limit is kept: at least the share, not more than it": [0, 1, 0]}
    problem = compare(answer(row, 0.5), row, 1e-6, f"for {show(row)} and share 0.5 your row", known)
    if problem:
        return problem
    return compare(answer(row, 1.0), [0, 1, 0], 1e-6, f"for {show(row)} and share 1 your row")


def min_p_leaves_its_input(answer):
    row = _distribution()
    answer(row, SHARE)
    return None if np.array_equal(row, _distribution()) else "it overwrites the row that it was given: make a new one"


def min_p_of_a_model(answer):
    model = GPT(vocab_size=9, context_size=4, embedding_size=8, blocks=1, std=0.5, generator=np.random.default_rng(0))
    with Tensor.no_grad():
        logits = model(Tensor([[1, 2, 3]])).data[0, -1]
    row = _softmax(logits.astype(np.float64))
    return compare(answer(row, 0.3), _cut(row, row >= 0.3 * row.max()), 1e-6, "for the scores of a GPT your row")


def min_p(row, share):
    kept = np.where(row >= share * row.max(), row, 0.0)
    return kept / kept.sum()


def min_p_absolute(row, share):
    kept = np.where(row >= share, row, 0.0)
    return kept / kept.sum()


def min_p_reversed(row, share):
    kept = np.where(row < share * row.max(), row, 0.0)
    return kept / max(kept.sum(), 1e-12)


def min_p_unscaled(row, share):
    return np.where(row >= share * row.max(), row, 0.0)


def min_p_of_the_mean(row, share):
    kept = np.where(row >= share * row.mean(), row, 0.0)
    return kept / kept.sum()


def min_p_strict(row, share):
    kept = np.where(row > share * row.max(), row, 0.0)
    return kept / max(kept.sum(), 1e-12)


def min_p_in_place(row, share):
    row[row < share * row.max()] = 0.0
    return row / row.sum()


build_min_p = Exercise(
    id="ch11.min_p",
    title="Cut by the best",
    kind="build",
    stub='def min_p(row, share):\n    return ...\n\n\ncheck("ch11.min_p", min_p)',
    properties=[
        Property("what stays and what goes", min_p_keeps, points=2),
        Property("the limits", min_p_at_the_limits),
        Property("the given row is left as it was", min_p_leaves_its_input),
        Property("on a GPT", min_p_of_a_model),
    ],
    hints=[
        Hint("The limit is the share times the largest probability of the row. What is at least as large stays."),
        Hint("`np.where(condition, row, 0.0)` makes a new row. Then it has to sum to 1 again."),
        Hint(
            "Divide this by its own sum:",
            code="np.where(row >= share * row.max(), row, 0.0)",
            answer=min_p,
        ),
    ],
    wrong=[
        WrongAnswer(min_p_absolute, contains="above the share itself"),
        WrongAnswer(min_p_reversed, contains="cuts the best tokens"),
        WrongAnswer(min_p_unscaled, contains="does not sum to 1"),
        WrongAnswer(min_p_of_the_mean, contains="compares with the mean"),
        WrongAnswer(min_p_strict, contains="exactly at the limit"),
        WrongAnswer(min_p_in_place, contains="overwrites the row"),
    ],
    explanation="The surer the model, the higher the limit: like top-p it keeps few tokens in sure places.",
)

# Find the bug


def _pair(answer):
    """The reader's attention and the course's with the same weights, and five tokens (1, 5, 8)."""
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Mended), not an object made from it")
    draw = np.random.default_rng(1)
    right = GPTAttention(8, heads=2, generator=draw)
    layer = answer(8, heads=2)
    if not isinstance(layer, GPTAttention):
        raise Wrong("your class must be derived from GPTAttention, as Broken is")
    layer.load_state_dict(right.state_dict())
    return layer, right, Tensor(draw.standard_normal((1, 5, 8)))


def _in_pieces(layer, x, pieces):
    """The outputs (5, 8) of one pass for each piece, the keys and values kept in between."""
    cache, outputs, start = LayerCache(5), [], 0
    for length in pieces:
        outputs.append(layer(Tensor(x.data[:, start : start + length]), cache).data[0])
        start += length
    if cache.length != 5:
        raise Wrong(f"the cache holds {cache.length} of 5 tokens: call cache.extend(key, value) once in each pass")
    return np.concatenate(outputs)


def mended_without_cache(answer):
    layer, right, x = _pair(answer)
    with Tensor.no_grad():
        out, wanted = layer(x).data, right(x).data
        changed = Tensor(np.where(np.arange(5)[:, None] < 3, x.data, 1.0))
        if abs(layer(changed).data[0, :3] - out[0, :3]).max() > 1e-5:
            return "without a cache, earlier outputs move when later tokens change: the mask is gone"
    if np.allclose(out, wanted, atol=1e-5):
        return None
    return "without a cache the output is not that of GPTAttention any more: it was right before"


def mended_one_by_one(answer):
    layer, right, x = _pair(answer)
    with Tensor.no_grad():
        out, wanted = _in_pieces(layer, x, [1] * 5), right(x).data[0]
    return _first_wrong(out, wanted, "one token at a time")


def mended_in_pieces(answer):
    layer, right, x = _pair(answer)
    with Tensor.no_grad():
        out, wanted = _in_pieces(layer, x, [3, 2]), right(x).data[0]
        leaks = abs(_in_pieces(layer, Tensor(np.where(np.arange(5)[:, None] < 4, x.data, 1.0)), [3, 2]) - out)
    if leaks[3].max() > 1e-5:
        return "three tokens, then two: the output at place 3 moves when the token at place 4 changes"
    return _first_wrong(out, wanted, "three tokens, then two")


def _first_wrong(out, wanted, how):
    wrong = np.flatnonzero(abs(out - wanted).max(axis=-1) > 1e-5)
    return f"{how}: the output at place {wrong[0]} is not that of a pass without a cache" if len(wrong) else None


class Broken(GPTAttention):
    """Its mask counts from the top left corner; subclasses choose another one."""

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        query = self.split(self.query(x))
        key, value = self.split(self.key(x)), self.split(self.value(x))
        if cache is not None:
            key, value = cache.extend(key, value)
        seen = self.mask(query.shape[-2], key.shape[-2])
        mixed, _ = scaled_dot_product_attention(query, key, value, seen)
        return self.output(self.merge(mixed))

    def mask(self, queries: int, keys: int) -> Any:
        return np.tri(queries, keys, dtype=bool)


class Mended(Broken):
    def mask(self, queries, keys):
        return np.tri(queries, keys, keys - queries, dtype=bool)


class NoMask(Broken):
    def mask(self, queries, keys):
        return np.ones((queries, keys), dtype=bool)


class NoMaskWithCache(Broken):
    def mask(self, queries, keys):
        return np.tri(queries, keys, dtype=bool) if queries == keys else np.ones((queries, keys), dtype=bool)


class OnlyTheNew(Broken):
    def mask(self, queries, keys):
        return np.tri(queries, keys, keys - queries, dtype=bool) & (np.arange(keys) >= keys - queries)


class OffByOne(Broken):
    def mask(self, queries, keys):
        return np.tri(queries, keys, max(keys - queries - 1, 0), dtype=bool)


class ForgetsTheCache(Broken):
    def forward(self, x, cache=None):
        return super().forward(x)


class Direct(GPTAttention):
    """As the reader would write it."""

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        query = self.split(self.query(x))
        key, value = self.split(self.key(x)), self.split(self.value(x))
        if cache is not None:
            key, value = cache.extend(key, value)
        queries, keys = query.shape[-2], key.shape[-2]
        seen = np.tri(queries, keys, keys - queries, dtype=bool)
        mixed, _ = scaled_dot_product_attention(query, key, value, seen)
        return self.output(self.merge(mixed))


bug = Exercise(
    id="ch11.bug",
    title="It trains, and it writes nonsense",
    kind="find the bug",
    stub='Mended = ...  # your class, mended from Broken\n\ncheck("ch11.bug", Mended)',
    properties=[
        Property("without a cache", mended_without_cache),
        Property("one token at a time", mended_one_by_one, points=2),
        Property("several at a time", mended_in_pieces),
    ],
    hints=[
        Hint("Without a cache there are as many queries as keys. Print the mask for one query and three keys."),
        Hint("The last query is the last token: its row of the mask must reach the last key, whatever came before."),
        Hint(
            "np.tri takes the number of the diagonal as its third argument:",
            code="np.tri(queries, keys, keys - queries, dtype=bool)",
            answer=Direct,
        ),
    ],
    wrong=[
        WrongAnswer(Broken, contains="one token at a time: the output at place 1"),
        WrongAnswer(NoMask, contains="the mask is gone"),
        WrongAnswer(NoMaskWithCache, contains="moves when the token at place 4 changes"),
        WrongAnswer(ForgetsTheCache, contains="holds 0 of 5 tokens"),
    ],
    explanation="In training queries and keys are equally many, so the mistake shows only when the model writes.",
)

EXERCISES = [rows, cost, build_min_p, bug]
