"""The exercises of chapter 4: the causal mask."""

import numpy as np

from src.core import Composite, Layer, Linear, Softmax, Tensor, Tril
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

ROW_B = [1 / 6, 5 / 6, 0.0]


def row_sums_to_one(answer):
    total = to_array(answer, "your row").sum()
    return None if abs(total - 1) < 2e-3 else f"your row sums to {show(total)}: mask first, then divide by what is left"


def nothing_from_the_future(answer):
    row = to_array(answer, "your row")
    if row.shape != (3,):
        raise Wrong(f"give three weights, for a, b and c; yours have the shape {row.shape}")
    known = {
        "c takes part with 9 of 15: b may not see c at all": [1 / 15, 5 / 15, 9 / 15],
        "c takes part as if its score were 0: minus infinity is wanted, and exp(0) is 1": [1 / 7, 5 / 7, 1 / 7],
    }
    for message, value in known.items():
        if np.allclose(row, value, atol=2e-3):
            return message
    return None if abs(row[2]) < 1e-9 else f"b gives c the weight {show(row[2])}: c comes later"


def row_is_right(answer):
    known = {
        "these are shares of the scores: softmax takes exp of each first": [0.0, 1.0, 0.0],
        "a and b are swapped": [5 / 6, 1 / 6, 0.0],
        "b gives a nothing: a score of 0 is not minus infinity": [0.0, 1.0, 0.0],
    }
    return compare(answer, ROW_B, name="your row", known=known)


row = Exercise(
    id="ch04.row",
    title="A masked row by hand",
    kind="by hand",
    stub='row_b = [..., ..., ...]  # fractions may be text: "1/2"\n\ncheck("ch04.row", row_b)',
    properties=[
        Property("nothing from the future", nothing_from_the_future),
        Property("the row sums to 1", row_sums_to_one),
        Property("the weights", row_is_right),
    ],
    hints=[
        Hint("Which of the three may b see?"),
        Hint("exp(0) is 1 and exp(ln 5) is 5. Divide by the sum of these two, not of three."),
        Hint("The weights are", code='["1/6", "5/6", 0]', answer=ROW_B),
    ],
    wrong=[
        WrongAnswer(["1/15", "5/15", "9/15"], contains="9 of 15"),
        WrongAnswer(["1/7", "5/7", "1/7"], contains="exp(0) is 1"),
        WrongAnswer(["1/15", "5/15", 0], contains="mask first"),
        WrongAnswer([0, 1, 0], contains="shares of the scores"),
        WrongAnswer(["5/6", "1/6", 0], contains="swapped"),
    ],
    explanation="The score of c does not matter at all, however large it is.",
)

# Causal softmax, with fewer queries than keys


def _scores(time=4):
    return np.random.Generator(np.random.PCG64(4)).standard_normal((time, time))


def _softmax(scores):
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def _causal(scores, k=0):
    return _softmax(np.where(np.tri(scores.shape[-1], k=k, dtype=bool), scores, -np.inf))


def _masked(scores, k):
    """The weights where query i sees the keys up to i + k."""
    return _softmax(np.where(np.tri(scores.shape[-2], scores.shape[-1], k=k, dtype=bool), scores, -np.inf))


def first_row_is_itself(causal_weights):
    scores = np.zeros((4, 4))
    scores[0] = np.log([1.0, 2.0, 3.0, 2.0])
    told = "for the scores 0, ln 2, ln 3, ln 2 your first token"
    known = {
        f"{told} sees only its future: the mask is turned around": [0.0, 2 / 7, 3 / 7, 2 / 7],
        f"{told} sees nothing, not even itself: the diagonal is allowed": [0.0] * 4,
        f"{told} sees the second one too: the triangle is one place too wide": [1 / 3, 2 / 3, 0.0, 0.0],
        f"{told} gives itself 1/8: mask before softmax": [1 / 8, 0.0, 0.0, 0.0],
        f"{told} gives itself 1/4, its share of the first column: softmax runs over the queries": [0.25, 0.0, 0.0, 0.0],
        f"{told} sees all four": [1 / 8, 2 / 8, 3 / 8, 2 / 8],
    }
    first = to_array(causal_weights(scores), "your weights")[0]
    return compare(np.nan_to_num(first), [1.0, 0.0, 0.0, 0.0], 1e-5, "the first row", known)


def weights_are_right(causal_weights):
    scores = _scores()
    known = {
        "softmax runs over the queries: it is the rows that must sum to 1": _softmax(
            np.where(np.tri(4, dtype=bool), scores, -np.inf).T
        ).T,
        "future scores are 0 instead of minus infinity, and exp(0) is 1": _softmax(np.tril(scores)),
    }
    return compare(causal_weights(scores.copy()), _causal(scores), 1e-5, "for random scores, your table", known)


def newest_tokens_ask(causal_weights):
    scores = _scores()[:2]
    try:
        given = causal_weights(scores.copy())
    except (ValueError, IndexError):
        raise Wrong("2 queries and 4 keys stop it with an error: the mask must have the shape (2, 4) too") from None
    told = "of 2 queries and 4 keys the queries are the last two:"
    known = {
        f"{told} the first of them is token 2 and sees three keys, yours sees one": _masked(scores, k=0),
        f"{told} the first of them sees three keys, yours sees all four": _masked(scores, k=3),
        f"{told} the first of them sees itself too, so three keys, yours sees two": _masked(scores, k=1),
    }
    return compare(given, _masked(scores, k=2), 1e-5, "for 2 queries and 4 keys, your table", known)


def large_scores_survive(causal_weights):
    scores = np.array([[1000.0, 0.0], [1000.0, 1000.0]])
    weights = to_array(causal_weights(scores), "your weights")
    if np.isfinite(weights).all():
        return compare(weights, [[1.0, 0.0], [0.5, 0.5]], 1e-5, "for scores of 1000, your table")
    return "for scores of 1000 you get NaN: take the maximum of each row off before exp"


def batches_work(causal_weights):
    scores = np.stack([_scores(), -_scores()])[:, :3]
    return compare(causal_weights(scores), _masked(scores, k=1), 1e-5, "for scores (2, 3, 4), your table")


def by_moved_triangle(scores):
    queries, keys = scores.shape[-2:]
    mask = np.tri(queries, keys, k=keys - queries, dtype=bool)
    hidden = np.where(mask, scores, -np.inf)
    exps = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def _after(scores):
    return np.tril(_softmax(scores))


def _turned(scores):
    mask = ~np.tri(scores.shape[-1], dtype=bool)
    return _softmax(np.where(mask, scores, -1e9))


def _wide(scores):
    return _causal(scores, k=1)


def _columns(scores):
    hidden = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    exps = np.exp(hidden)
    return exps / exps.sum(axis=-2, keepdims=True)


def _aligned_at_the_start(scores):
    return _masked(scores, k=0)


def _sees_all(scores):
    queries, keys = scores.shape[-2:]
    return _causal(scores) if queries == keys else _softmax(scores)


def _not_itself(scores):
    queries, keys = scores.shape[-2:]
    return _masked(scores, k=max(0, keys - queries - 1))


def _naive(scores):
    queries, keys = scores.shape[-2:]
    exps = np.exp(scores) * np.tri(queries, keys, k=keys - queries)
    return exps / exps.sum(axis=-1, keepdims=True)


mask = Exercise(
    id="ch04.mask",
    title="The newest tokens ask",
    kind="build",
    stub=(
        'def causal_weights(scores):  # (..., Tq, Tk)\n    # your code\n    ...\n\n\ncheck("ch04.mask", causal_weights)'
    ),
    properties=[
        Property("the first token sees itself only", first_row_is_itself),
        Property("as many queries as keys", weights_are_right),
        Property("fewer queries than keys", newest_tokens_ask),
        Property("large scores", large_scores_survive),
        Property("axes before the last two", batches_work),
    ],
    hints=[
        Hint(
            "`causal_softmax` of this chapter is right for Tq = Tk. Else: which token is query 0, and what may it see?"
        ),
        Hint("Query 0 is token Tk - Tq and sees Tk - Tq + 1 keys: the triangle moves to the right by Tk - Tq."),
        Hint(
            "`np.tri` takes rows, columns and such a move k. With queries, keys = scores.shape[-2:] the mask is",
            code="np.tri(queries, keys, k=keys - queries, dtype=bool)",
            answer=by_moved_triangle,
        ),
    ],
    wrong=[
        WrongAnswer(_after, contains="mask before softmax"),
        WrongAnswer(_turned, contains="turned around"),
        WrongAnswer(_wide, contains="one place too wide"),
        WrongAnswer(_softmax, contains="first token sees all four"),
        WrongAnswer(_columns, contains="share of the first column"),
        WrongAnswer(_causal, contains="the mask must have the shape (2, 4) too"),
        WrongAnswer(_aligned_at_the_start, contains="yours sees one"),
        WrongAnswer(_sees_all, contains="yours sees all four"),
        WrongAnswer(_not_itself, contains="yours sees two"),
        WrongAnswer(_naive, contains="maximum of each row"),
    ],
    explanation="A single newest token may see everything, so its row needs no mask at all.",
)

# Nine sealed layers


LEAKS_OF_ONE_TOKEN = {  # output, token, and how much of the token is in the output
    "a little of the last token": (0, 5, 1e-3),
    "token 3 in output 2 alone": (2, 3, 1.0),
    "the last token in the output before it": (4, 5, 1.0),
}


class SealedLayer(Layer):
    """Mixes tokens with fixed weights that depend on what stands in the window."""

    def __init__(self, name):
        self.name = name

    def forward(self, x):
        time = x.shape[1]
        scores = x @ x.transpose((0, 2, 1)) / x.shape[-1] ** 0.5
        if self.name == "no mask":
            return Softmax()(scores) @ x
        if self.name == "mask after softmax":
            return (Softmax()(scores) * np.tri(time)) @ x
        if self.name == "one place ahead":
            return Softmax()(scores + np.where(np.tri(time, k=1), 0.0, -1e9)) @ x
        mixed = Softmax()(Tril()(scores)) @ x
        if self.name == "normalised over the window":
            return mixed - mixed.mean(axis=1, keepdims=True)
        if self.name == "about a millionth":  # of each output, so that no output near zero shows more of it
            later = Tensor(1.0 - np.tri(time)) @ x.sum(axis=-1, keepdims=True)  # (B, T, 1)
            return mixed * (1.0 + later * 5e-7)
        if self.name in LEAKS_OF_ONE_TOKEN:
            output, token, share = LEAKS_OF_ONE_TOKEN[self.name]
            leak = np.zeros((6, 6))
            leak[output, token] = share
            return mixed + Tensor(leak[:time, :time]) @ x
        return mixed  # sound


LEAKING = (
    "no mask",
    "mask after softmax",
    "one place ahead",
    "normalised over the window",
    "about a millionth",
    *LEAKS_OF_ONE_TOKEN,
)


def _verdict(leaks, name):
    verdict = leaks(SealedLayer(name))
    if not isinstance(verdict, bool | np.bool_):
        raise Wrong(f"leaks(layer) returns True or False, yours returns {show(verdict)}")
    return bool(verdict)


def sound_layer_passes(leaks):
    if _verdict(leaks, "sound"):
        return "it accuses a layer that is causal: do you compare outputs that are allowed to move?"
    return None


def obvious_leak_is_found(leaks):
    if _verdict(leaks, "no mask"):
        return None
    return "a layer without any mask passes: is the token that you change later than the outputs that you compare?"


def all_leaks_are_found(leaks):
    missed = [name for name in LEAKING if not _verdict(leaks, name)]
    if not missed:
        return None
    how = {
        (
            "about a millionth",
        ): "a layer passes that leaks about a millionth, which np.allclose takes for equal: use !=",
        ("about a millionth", "a little of the last token"): "two layers pass that leak only a little: compare exactly",
        ("token 3 in output 2 alone",): "a layer passes in which only token 3 leaks: change every token but the first",
        ("token 3 in output 2 alone", "the last token in the output before it"): (
            "two layers pass in which a token leaks only into the output before it: output 0 alone does not tell"
        ),
    }
    among = f"{len(missed)} of the eight leaking layers pass: change each token in turn, compare all outputs before it"
    return how.get(tuple(missed), among)


def each_token(layer):
    x = np.random.Generator(np.random.PCG64(0)).standard_normal((1, 6, 8))
    with Tensor.no_grad():
        before = layer(Tensor(x)).data
        for s in range(1, 6):
            changed = x.copy()
            changed[0, s] += 1.0
            if (layer(Tensor(changed)).data[0, :s] != before[0, :s]).any():
                return True
    return False


def _compare_after(change, first, last, tolerance=0.0):
    """A test that changes the tokens from `change` on (or that one) and compares outputs first to last."""

    def leaks(layer):
        x = np.random.Generator(np.random.PCG64(0)).standard_normal((1, 6, 8))
        changed = x.copy()
        changed[0, change] += 1.0
        before, after = layer(Tensor(x)).data, layer(Tensor(changed)).data
        return bool((abs(after - before)[0, first:last] > tolerance).any())

    return leaks


def _each_token_unless(alike):
    """A test that changes each token in turn and compares all outputs before it, but only by `alike(after, before)`."""

    def leaks(layer):
        x = np.random.Generator(np.random.PCG64(0)).standard_normal((1, 6, 8))
        before = layer(Tensor(x)).data
        for s in range(1, 6):
            changed = x.copy()
            changed[0, s] += 1.0
            if not alike(layer(Tensor(changed)).data[0, :s], before[0, :s]):
                return True
        return False

    return leaks


def _suspects_everybody(layer):
    return True


def _counts(layer):
    return 3


find_leaks = Exercise(
    id="ch04.leaks",
    title="Find the leak",
    kind="build",
    stub='def leaks(layer):\n    # your code\n    ...\n\n\ncheck("ch04.leaks", leaks)',
    properties=[
        Property("a causal layer passes", sound_layer_passes),
        Property("a layer without mask is found", obvious_leak_is_found),
        Property("all nine are judged rightly", all_leaks_are_found, points=2),
    ],
    hints=[
        Hint("Run the layer twice, with one token changed in between. Which outputs may differ?"),
        Hint("If token s changes, outputs s and later may move. Compare the outputs 0 to s - 1, for every s."),
        Hint("Compare exactly:", code="(layer(Tensor(changed)).data[0, :s] != before[0, :s]).any()", answer=each_token),
    ],
    wrong=[
        WrongAnswer(_suspects_everybody, contains="accuses a layer that is causal"),
        WrongAnswer(_compare_after(slice(5, 6), 5, 5), contains="without any mask passes"),
        WrongAnswer(_compare_after(slice(5, 6), 0, 5), contains="in which only token 3 leaks"),
        WrongAnswer(_compare_after(slice(1, 6), 0, 1), contains="output 0 alone does not tell"),
        WrongAnswer(_each_token_unless(np.allclose), contains="np.allclose takes for equal"),
        WrongAnswer(
            _each_token_unless(lambda one, other: (abs(one - other) < 0.01).all()),
            contains="two layers pass that leak only a little",
        ),
        WrongAnswer(_compare_after(slice(3, 4), 0, 2), contains="change each token in turn"),
        WrongAnswer(_counts, contains="returns True or False"),
    ],
    explanation="The test needs no knowledge of the layer: it works on a whole GPT as well.",
)

# Find the bug


def _tokens(time):
    return Tensor(np.random.Generator(np.random.PCG64(9)).standard_normal((1, time, 4)))


def _layer(answer):
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Mended), not an object made from it")
    return answer(4)


def early_outputs_stay(answer):
    layer = _layer(answer)
    x = _tokens(5)
    changed = Tensor(x.data.copy())
    changed.data[0, 4] += 1.0
    moved = np.abs(layer(x).data - layer(changed).data)[0].max(axis=-1)
    if (moved[:4] == 0).all():
        return None
    scores, value = _reference(layer, x)
    after = layer.output(Tensor(np.tri(5) * Softmax()(scores).data) @ value)
    if np.allclose(layer(x).data, after.data, atol=1e-5):
        return f"output 0 moves by {show(moved[0])} with token 4: you mask after softmax, and its sums hold the future"
    return f"token 4 changes and output 0 moves by {show(moved[0])}: the future still takes part"


def _reference(layer, x):
    scores = x @ x.transpose((0, 2, 1)) / x.shape[-1] ** 0.5
    return scores, layer.value(x)


def output_is_right(answer):
    layer = _layer(answer)
    if not isinstance(getattr(layer, "value", None), Linear) or not isinstance(getattr(layer, "output", None), Linear):
        raise Wrong("keep the two projections value and output of the broken layer")
    x = _tokens(5)
    scores, value = _reference(layer, x)
    known = {
        "your tokens do not see themselves": layer.output(
            Softmax()(Tensor(np.where(np.tri(5, k=-1, dtype=bool), scores.data, -np.inf))) @ value
        ),
        "your tokens see only themselves": layer.output(value),
    }
    return compare(layer(x), layer.output(Softmax()(Tril()(scores)) @ value), 1e-4, "the output", known)


def gradients_flow(answer):
    layer = _layer(answer)
    x, same = _tokens(5), _tokens(5)
    (layer(x) ** 2).sum().backward()
    scores, value = _reference(layer, same)
    (layer.output(Softmax()(Tril()(scores)) @ value) ** 2).sum().backward()
    if not x.has_grad:
        return "x receives no gradient: an array or a Tensor(x.data) in the middle cuts the way back"
    return compare(x.grad, same.grad, 1e-3, "the gradient of x, cut somewhere on its way,")


class _Sketch(Composite):
    def __init__(self, size):
        self.value, self.output = Linear(size, size), Linear(size, size)
        super().__init__([self.value, self.output])


class Mended(_Sketch):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / x.shape[-1] ** 0.5
        return self.output(Softmax()(Tril()(scores)) @ self.value(x))


class TimesZero(_Sketch):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / x.shape[-1] ** 0.5 * np.tri(x.shape[1])
        return self.output(Softmax()(scores) @ self.value(x))


class AfterSoftmax(_Sketch):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / x.shape[-1] ** 0.5
        return self.output((Softmax()(scores) * np.tri(x.shape[1])) @ self.value(x))


class CutsTheGradient(_Sketch):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / x.shape[-1] ** 0.5
        hidden = Tensor(np.where(np.tri(x.shape[1], dtype=bool), scores.data, -np.inf))
        return self.output(Softmax()(hidden) @ Tensor(self.value(x).data))


class NotItself(_Sketch):
    def forward(self, x):
        scores = x @ x.transpose((0, 2, 1)) / x.shape[-1] ** 0.5
        hidden = scores + np.where(np.tri(x.shape[1], k=-1), 0.0, -np.inf)
        return self.output(Softmax()(hidden) @ self.value(x))


class OnlyItself(_Sketch):
    def forward(self, x):
        return self.output(self.value(x))


bug = Exercise(
    id="ch04.bug",
    title="It trains, and it is wrong",
    kind="find the bug",
    stub='Mended = ...  # your class, mended from Broken\n\ncheck("ch04.bug", Mended)',
    properties=[
        Property("later tokens do not move earlier outputs", early_outputs_stay),
        Property("the output", output_is_right, points=2),
        Property("the gradient", gradients_flow),
    ],
    hints=[
        Hint("Print the weights of three tokens with equal vectors. Which should be zero, and which are?"),
        Hint("A score times 0 is 0. What is exp(0)?"),
        Hint("Put minus infinity there, before softmax:", code="Softmax()(Tril()(scores))", answer=Mended),
    ],
    wrong=[
        WrongAnswer(TimesZero, contains="the future still takes part"),
        WrongAnswer(AfterSoftmax, contains="you mask after softmax"),
        WrongAnswer(NotItself, contains="do not see themselves"),
        WrongAnswer(OnlyItself, contains="see only themselves"),
        WrongAnswer(CutsTheGradient, contains="receives no gradient"),
    ],
    explanation="To hide a key its score must be minus infinity: zero is a score like any other.",
)

EXERCISES = [row, mask, find_leaks, bug]
