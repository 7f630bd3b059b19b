"""The exercises of the page beside chapter 8: rotary positions."""

import numpy as np

from src.core import Tensor
from src.course.compare import compare, show, to_array
from src.course.conventions import halves_from_pairs, pairs_from_halves
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import RotaryAttention

# Quarter turns by hand

QUARTERS = np.array([6.0, 7.0, -6.0, -7.0])


def quarters_at_one_place(answer):
    """Both at place 3: turned alike, so the score is that of the vectors as they are."""
    scores = _scores(answer)
    if np.allclose(scores, QUARTERS[::-1]):
        return "the right numbers turned round: the key at place 3 comes first, the one at place 0 last"
    known = {
        "the first score is -7: that is the query turned and the key not": -7,
        "the first score is 7: that is the key turned and the query not": 7,
        "the first score is -6: the key is turned backwards, so that the two places are added": -6,
    }
    return compare(scores[0], 6, name="the first score", known=known)


def quarters_are_right(answer):
    known = {
        "all four alike: each key is turned by a place of its own": [6, 6, 6, 6],
        "the difference has the wrong sign: you turned clockwise, which takes [0, 1] to [1, 0], or the key by m - n "
        "and not the query": [6, -7, -6, 7],
        "each step is half a turn in yours: a place is a quarter here": [6, -6, 6, -6],
    }
    return compare(_scores(answer), QUARTERS, name="your list", known=known)


def _scores(answer):
    scores = to_array(answer, "your list")
    if scores.shape != (4,):
        raise Wrong(f"four scores are wanted, for the keys at the places 3, 2, 1 and 0; yours has shape {scores.shape}")
    return scores


quarters = Exercise(
    id="deeper8.quarters",
    title="Quarter turns by hand",
    kind="by hand",
    stub=('scores = [..., ..., ..., ...]  # the key at place 3, 2, 1, 0\n\ncheck("deeper8.quarters", scores)'),
    properties=[
        Property("query and key at one place", quarters_at_one_place),
        Property("all four scores", quarters_are_right, points=2),
    ],
    hints=[
        Hint(
            "You need not turn both by their places: only the difference counts. How far is the query ahead each time?"
        ),
        Hint("A quarter turn makes [-b, a] of [a, b]. Turn the query [2, 1] not at all, once, twice and three times."),
        Hint(
            "The query becomes [2, 1], [-1, 2], [-2, -1], [1, -2]; the key stays [1, 4]:",
            code="[2 + 4, -1 + 8, -2 - 4, 1 - 8]",
            answer=QUARTERS,
        ),
    ],
    wrong=[
        WrongAnswer([6, 6, 6, 6], contains="a place of its own"),
        WrongAnswer([-7, -7, -7, -7], contains="the key not"),
        WrongAnswer([7, -6, -7, 6], contains="the query not"),
        WrongAnswer([-6, 7, 6, -7], contains="the two places are added"),
        WrongAnswer([6, -7, -6, 7], contains="the key by m - n"),
        WrongAnswer([6, -6, 6, -6], contains="half a turn"),
        WrongAnswer([-7, -6, 7, 6], contains="turned round"),
        WrongAnswer([6, 7, -6], contains="four scores are wanted"),
    ],
    explanation="One turn of the query by the difference does what two turns by the places do.",
)

# The other layout

CHANNELS, HEADS = 12, 2  # six channels a head: with four, the way there and the way back are one order


def layout_shape(answer):
    weight = to_array(answer(_weight(CHANNELS), HEADS), "your weight")
    if weight.shape == (CHANNELS, CHANNELS):
        return None
    problem = f"a weight ({CHANNELS}, {CHANNELS}) keeps its shape, yours has the shape {weight.shape}"
    fixed = weight.shape == (CHANNELS, 4 * HEADS)
    return f"{problem}: a head has C / heads channels, not always 4" if fixed else problem


def layout_order(answer):
    """Which column of the given weight stands where, for two heads of six channels."""
    weight = _weight(CHANNELS)
    numbers = np.arange(CHANNELS)
    fours = numbers.reshape(-1, 4)[:, [0, 2, 1, 3]].ravel()
    in_each = np.arange(HEADS)[:, None] * (CHANNELS // HEADS) + [0, 2, 1, 3, 4, 5]
    each = numbers.reshape(HEADS, -1)
    known = {
        "nothing has changed": numbers,
        "all channels are taken for one head: reorder each head's channels among themselves": pairs_from_halves(
            numbers
        ),
        "the other way round: you make halves of pairs": halves_from_pairs(each).ravel(),
        "you swap columns 1 and 2 of each head: that is enough only if it has 4 channels": in_each.ravel(),
        "the order 0, 2, 1, 3 is that of a head of 4 channels, and here a head has 6": fours,
        "the halves are swapped: channel i is the first of its pair, i + D/2 the second": pairs_from_halves(
            np.roll(each, CHANNELS // HEADS // 2, axis=1)
        ).ravel(),
    }
    known = {message: weight[:, order] for message, order in known.items()}
    known["you reordered the rows, which are the inputs; the channels of a query are the columns"] = weight[
        _order(CHANNELS, HEADS)
    ]
    given = weight.copy()
    problem = compare(answer(given, HEADS), _reordered(weight, HEADS), 1e-6, "the reordered weight", known)
    if problem and problem not in known and not np.array_equal(given, weight):
        return "you write into `weight` itself, and a column may be gone before it is read: put them into a new array"
    return problem


def layout_in_the_engine(answer):
    """RotaryAttention with reordered weights has the attention weights of a program that turns halves."""
    size, heads, time = 12, 3, 5
    generator = np.random.default_rng(1)
    query, key = generator.standard_normal((2, size, size)).astype(np.float32)
    x = generator.standard_normal((1, time, size)).astype(np.float32)
    layer = RotaryAttention(size, heads, bias=False)
    for linear, weight in ((layer.query, query), (layer.key, key)):
        linear.weight.data = to_array(answer(weight.copy(), heads), "your weight").astype(linear.weight.dtype)
    layer.keep_weights = True
    with Tensor.no_grad():
        layer(Tensor(x))
    wanted = _weights_of_halves(x[0] @ query, x[0] @ key, heads)
    problem = compare(np.asarray(layer.weights)[0], wanted, 1e-4, "the attention weights")
    return f"with 3 heads of 4 channels in the engine {problem}" if problem else None


def _weight(size):
    return np.arange(float(size * size)).reshape(size, size)


def _order(size, heads):
    return pairs_from_halves(np.arange(size).reshape(heads, -1)).ravel()


def _reordered(weight, heads):
    return weight[:, _order(weight.shape[1], heads)]


def _weights_of_halves(query, key, heads):
    """Attention weights (H, T, T) where channels i and i + D/2 are turned together."""

    def turn(x):  # (T, H, D)
        half = x.shape[-1] // 2
        angles = np.arange(len(x))[:, None, None] * 10000.0 ** (-np.arange(half) / half)
        low, high, cosine, sine = x[..., :half], x[..., half:], np.cos(angles), np.sin(angles)
        return np.concatenate([low * cosine - high * sine, low * sine + high * cosine], axis=-1)

    query, key = (turn(each.reshape(len(each), heads, -1)).swapaxes(0, 1) for each in (query, key))  # (H, T, D)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[-1])
    weights = np.where(np.tri(len(scores[0])) == 1, np.exp(scores), 0.0)
    return weights / weights.sum(axis=-1, keepdims=True)


def reorder_by_halves(weight, heads):
    columns = np.arange(weight.shape[1]).reshape(heads, 2, -1)
    order = columns.swapaxes(1, 2).ravel()
    return weight[:, order]


def reorder_always_alike(weight, heads):
    return weight[:, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]]


def reorder_back(weight, heads):
    columns = np.arange(weight.shape[1]).reshape(heads, -1)
    return weight[:, np.concatenate([columns[:, 0::2], columns[:, 1::2]], axis=1).ravel()]


def reorder_heads_of_four(weight, heads):
    return weight[:, (np.arange(heads)[:, None] * 4 + [0, 2, 1, 3]).ravel()]


def reorder_groups_of_four(weight, heads):
    return weight.reshape(len(weight), -1, 4)[:, :, [0, 2, 1, 3]].reshape(weight.shape)


def reorder_by_one_swap(weight, heads):
    weight = weight.copy()
    for first in range(0, len(weight), len(weight) // heads):
        weight[:, [first + 1, first + 2]] = weight[:, [first + 2, first + 1]]
    return weight


def reorder_in_place(weight, heads):
    """Overwrites columns that it has yet to read."""
    half = len(weight) // heads // 2
    for first in range(0, len(weight), 2 * half):
        for pair in range(half):
            weight[:, first + 2 * pair] = weight[:, first + pair]
            weight[:, first + 2 * pair + 1] = weight[:, first + half + pair]
    return weight


layout = Exercise(
    id="deeper8.layout",
    title="Weights from elsewhere",
    kind="build",
    stub='def reorder(weight, heads):\n    # your code\n    ...\n\n\ncheck("deeper8.layout", reorder)',
    properties=[
        Property("the shape", layout_shape),
        Property("two heads of 6 channels", layout_order, points=2),
        Property("three heads in the engine", layout_in_the_engine),
    ],
    hints=[
        Hint("Column j of the weight makes channel j. With D = 6, the pairs of a head are 0 and 3, 1 and 4, 2 and 5."),
        Hint("So a head of 6 takes its columns in the order 0, 3, 1, 4, 2, 5, and the next head 6, 9, 7, 10, 8, 11."),
        Hint(
            "With `columns = np.arange(C).reshape(heads, 2, -1)`, return `weight[:, order]` for the order",
            code="columns.swapaxes(1, 2).ravel()",
            answer=reorder_by_halves,
        ),
    ],
    wrong=[
        WrongAnswer(lambda weight, heads: weight, contains="nothing has changed"),
        WrongAnswer(lambda weight, heads: pairs_from_halves(weight), contains="taken for one head"),
        WrongAnswer(lambda weight, heads: weight[_order(len(weight), heads)], contains="you reordered the rows"),
        WrongAnswer(
            lambda weight, heads: weight[:, np.arange(12).reshape(2, 2, 3)[:, ::-1].swapaxes(1, 2).ravel()],
            contains="the halves are swapped",
        ),
        WrongAnswer(lambda weight, heads: weight[:, : len(weight) // heads], contains="has the shape (12, 6)"),
        WrongAnswer(reorder_back, contains="you make halves of pairs"),
        WrongAnswer(reorder_heads_of_four, contains="not always 4"),
        WrongAnswer(reorder_groups_of_four, contains="that of a head of 4 channels"),
        WrongAnswer(reorder_by_one_swap, contains="you swap columns 1 and 2"),
        WrongAnswer(reorder_in_place, contains="gone before it is read"),
        WrongAnswer(reorder_always_alike, contains="with 3 heads"),
    ],
    explanation="The same for the bias. Values and the output projection stay as they are: they are never turned.",
)

# Find the bug

BUG_SIZE = 6


def bug_place_zero(answer):
    x = _rows(3)
    known = {"at place 0 nothing is turned: your angles begin with place 1": _right(x, 1)[0]}
    return compare(_turned(answer, x)[0], x[0], 1e-6, "the vector at place 0", known)


def bug_lengths(answer):
    """All pairs of all rows have the length 1, before and after."""
    turned = _turned(answer, np.tile([0.6, 0.8], (30, BUG_SIZE // 2)))
    lengths = np.linalg.norm(turned.reshape(30, -1, 2), axis=-1)
    if np.abs(lengths - 1).max() < 1e-5:
        return None
    return f"pairs of length 1 have lengths from {show(lengths.min())} to {show(lengths.max())}: turning keeps lengths"


def bug_input_is_kept(answer):
    x = _rows(4)
    given = x.copy()
    answer(given)
    return None if np.array_equal(given, x) else "the vectors that were handed in have changed: work on new arrays"


def bug_numbers(answer):
    x = _rows(8)
    known = {
        "turned the wrong way: after one place [1, 0] must be [cos 1, sin 1]": _right(x, 0, -1.0),
        "all pairs are turned by the same angle": _right(x, 0, 1.0, np.ones(BUG_SIZE // 2)),
    }
    problem = compare(_turned(answer, x), _right(x, 0), 1e-5, "the table of turned vectors", known)
    if problem:
        return problem
    late = _turned(answer, x, 7)
    return compare(late, _right(x, 7), 1e-5, "with start = 7 the table", {"start is not used": _right(x, 0)})


def _rows(length):
    return np.random.default_rng(2).standard_normal((length, BUG_SIZE))


def _right(x, start, sign=1.0, frequencies=None):
    if frequencies is None:
        frequencies = 10000.0 ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
    angles = sign * (start + np.arange(len(x)))[:, None] * frequencies
    pairs = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


def _turned(answer, x, start=None):
    turned = to_array(answer(x.copy()) if start is None else answer(x.copy(), start), "the result")
    if turned.shape != x.shape:
        raise Wrong(f"vectors {x.shape} keep their shape, yours have the shape {turned.shape}")
    return turned


def _sketch(x, start=0, sign=1.0, first=0, same=False):
    """Mended, but for one mistake."""
    frequencies = np.ones(x.shape[1] // 2) if same else 10000.0 ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
    angles = sign * (first + start + np.arange(len(x)))[:, None] * frequencies
    cosine, sine = np.cos(angles), np.sin(angles)
    even, odd = x[:, 0::2], x[:, 1::2]
    return np.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1).reshape(x.shape)


def bug_mended(x, start=0):
    places = start + np.arange(len(x))[:, None]
    angles = places / 10000 ** (np.arange(0, x.shape[1], 2) / x.shape[1])
    cosine, sine = np.cos(angles), np.sin(angles)
    even, odd = x[:, 0::2].copy(), x[:, 1::2].copy()
    turned = x.copy()
    turned[:, 0::2] = even * cosine - odd * sine
    turned[:, 1::2] = even * sine + odd * cosine
    return turned


def bug_as_given(x, start=0):
    turned = x.copy()
    places = start + np.arange(len(x))[:, None]
    angles = places / 10000 ** (np.arange(0, x.shape[1], 2) / x.shape[1])
    cosine, sine = np.cos(angles), np.sin(angles)
    even, odd = turned[:, 0::2], turned[:, 1::2]
    turned[:, 0::2] = even * cosine - odd * sine
    turned[:, 1::2] = even * sine + odd * cosine
    return turned


def bug_overwrites(x, start=0):
    x[:] = bug_mended(x, start)
    return x


bug = Exercise(
    id="deeper8.bug",
    title="Longer and shorter",
    kind="find the bug",
    stub='mended_turn = ...  # your function, mended from broken_turn\n\ncheck("deeper8.bug", mended_turn)',
    properties=[
        Property("place 0", bug_place_zero),
        Property("lengths are kept", bug_lengths),
        Property("the input is kept", bug_input_is_kept),
        Property("the turned vectors", bug_numbers, points=2),
    ],
    hints=[
        Hint(
            "Turn `np.array([[0.0, 0.0], [0.6, 0.8]])` and compute place 1 by hand. Which of its two numbers is wrong?"
        ),
        Hint(
            "A slice of an array is a view: it shows the same memory. What does `even` show after the first assignment?"
        ),
        Hint(
            "Keep the old numbers before anything is overwritten:",
            code="even, odd = x[:, 0::2].copy(), x[:, 1::2].copy()",
            answer=bug_mended,
        ),
    ],
    wrong=[
        WrongAnswer(bug_as_given, contains="turning keeps lengths"),
        WrongAnswer(lambda x, start=0: _sketch(x, start, sign=-1.0), contains="turned the wrong way"),
        WrongAnswer(lambda x, start=0: _sketch(x, start, first=1), contains="begin with place 1"),
        WrongAnswer(lambda x, start=0: _sketch(x, start, same=True), contains="by the same angle"),
        WrongAnswer(lambda x, start=0: _sketch(x), contains="start is not used"),
        WrongAnswer(bug_overwrites, contains="work on new arrays"),
        WrongAnswer(lambda x, start=0: x[:, ::2], contains="keep their shape"),
    ],
    explanation="With `even` overwritten, the sine met a number already turned: no rotation, and the distance is lost.",
)

EXERCISES = [quarters, layout, bug]
