"""The exercises of chapter 6: many heads."""

import math

import numpy as np

from src.core import Composite, Linear, Softmax, Tensor, Tril, scaled_dot_product_attention
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import GPT, GPTAttention

# Tiles by hand

TILES = np.arange(24).reshape(4, 6)
HEAD_1 = TILES[:, 3:]


def tiles_have_shape(answer):
    shape = to_array(answer, "your head").shape
    if shape == (4, 3):
        return None
    if shape == (4, 2):
        return "your head has 2 channels: that is a third of 6, but now two heads share them"
    if shape == (2, 6):
        return "your head has 2 whole tokens: heads share the channels, and each has a part of every token"
    return f"your head has the shape {shape}: it needs a row for each of the 4 tokens"


def rows_are_tokens(answer):
    head = to_array(answer, "your head")
    if any(np.array_equal(head, cut + 1) for cut in (TILES[:, :3], HEAD_1)):
        return "your numbers are all one too large: the tiles are numbered from 0"
    reshaped = any(np.array_equal(head, cut) for cut in TILES.reshape(2, 4, 3))
    for row, numbers in enumerate(head):
        owners = sorted({int(number // 6) for number in numbers})
        if owners != [row]:
            held = " and ".join(map(str, owners))
            why = "this is reshape alone, rows are mixed up" if reshaped else f"row {row} belongs to token {row}"
            return f"row {row} holds {show(numbers)}, numbers of token {held}: {why}"
    return None


def tiles_are_right(answer):
    known = {
        "this is head 0: heads are counted from 0": TILES[:, :3],
        "you took every other channel: a head gets neighbouring ones": TILES[:, 1::2],
    }
    return compare(answer, HEAD_1, name="your head", known=known)


tiles = Exercise(
    id="ch06.tiles",
    title="Two heads of the tiles",
    kind="by hand",
    stub=(
        "head_1 = [\n    [..., ..., ...],\n    [..., ..., ...],\n    [..., ..., ...],\n    [..., ..., ...],\n]\n\n"
        'check("ch06.tiles", head_1)'
    ),
    properties=[
        Property("a row for each token", tiles_have_shape),
        Property("each row holds numbers of its own token", rows_are_tokens),
        Property("the channels of head 1", tiles_are_right),
    ],
    hints=[
        Hint("Two heads share 6 channels, so each has 3. Both have all four tokens."),
        Hint("Cut the table of tiles from top to bottom, not from left to right. Head 1 is the second part."),
        Hint("In NumPy it is a slice of the columns:", code="np.arange(24).reshape(4, 6)[:, 3:]", answer=HEAD_1),
    ],
    wrong=[
        WrongAnswer(TILES.reshape(2, 4, 3)[1], contains="reshape alone"),
        WrongAnswer(TILES[:, :3], contains="heads are counted from 0"),
        WrongAnswer(TILES[:, 1::2], contains="every other channel"),
        WrongAnswer(TILES[:, 2:4], contains="two heads share"),
        WrongAnswer(HEAD_1.T, contains="a row for each of the 4 tokens"),
        WrongAnswer(TILES[2:], contains="2 whole tokens"),
        WrongAnswer(HEAD_1 + 1, contains="numbered from 0"),
        WrongAnswer(HEAD_1[[0, 1, 3, 2]], contains="row 2 belongs to token 2"),
    ],
    explanation="Splitting cuts channels. Tokens stay whole, in their order, in every head.",
)

# Two heads by hand

RECEIVED = [14 / 3, 6]


def received_shape(answer):
    shape = to_array(answer, "what c receives").shape
    return None if shape == (2,) else f"what c receives has the shape {shape}: each of the two heads gives one number"


def received_is_right(answer):
    known = {
        "these are the numbers of the old W_Q: now head 0 asks for nothing, and head 1 with the other sign": [5, 3],
        "this is one head of size 2: its two products are added before softmax": [5, 6],
        "head 1 asks too: its query for c is not 0": [14 / 3, 14 / 3],
        "head 1: a negative query and negative keys give positive scores": [14 / 3, 3],
        "c may look at itself too: you used a and b alone": [7 / 2, 14 / 3],
        "you exchanged the heads: head 0 stands first": [6, 14 / 3],
        "you added the weights but forgot that the values are 7 and 0": [2 / 3, 6 / 7],
        "you read W_Q along its rows: head 0 asks with its first column, head 1 with its second": [5, 14 / 3],
        "head 1 averages values of its own, the second numbers of the tokens times 7": [14 / 3, 5],
    }
    return compare(answer, RECEIVED, name="what c receives", known=known)


two = Exercise(
    id="ch06.two",
    title="A head that asks for nothing",
    kind="by hand",
    stub='c_receives = [..., ...]  # head 0, head 1\n\ncheck("ch06.two", c_receives)',
    properties=[
        Property("a number from each head", received_shape),
        Property("what c receives", received_is_right, points=2),
    ],
    hints=[
        Hint("The query of c is the sum of both rows of W_Q: one number for head 0, one for head 1."),
        Hint("Head 0 has the query 0, so it averages. Head 1 has the scores 1, 2, 3 times ln 2."),
        Hint("Head 0 averages 7, 0, 7; head 1 weighs 0, 7, 7 by 1/7, 2/7, 4/7:", code="[14 / 3, 6]", answer=RECEIVED),
    ],
    wrong=[
        WrongAnswer([5, 3], contains="the old W_Q"),
        WrongAnswer([5, 6], contains="one head of size 2"),
        WrongAnswer(["14/3", "14/3"], contains="head 1 asks too"),
        WrongAnswer(["14/3", 3], contains="positive scores"),
        WrongAnswer(["7/2", "14/3"], contains="c may look at itself"),
        WrongAnswer([6, "14/3"], contains="exchanged the heads"),
        WrongAnswer(["2/3", "6/7"], contains="the values are 7 and 0"),
        WrongAnswer([5, "14/3"], contains="along its rows"),
        WrongAnswer(["14/3", 5], contains="values of its own"),
    ],
    explanation="Heads do not disturb each other: one may rest while the other asks.",
)

# From PyTorch's packing to packing by heads

CHANNELS, HEADS = 6, 3  # heads of size 2


def _packed(channels=CHANNELS):
    """A weight as PyTorch packs it, (3C, C), in which every number occurs once."""
    return np.arange(3.0 * channels * channels).reshape(3 * channels, channels)


def _by_heads(weight, heads):
    """All Q, all K, all V of (3C, C), as (C, 3C) with the query, key and value of each head side by side."""
    channels = weight.shape[1]
    return weight.T.reshape(channels, 3, heads, -1).swapaxes(1, 2).reshape(channels, -1)


def packed_has_shape(answer):
    shape = to_array(answer(_packed(), HEADS), "your weight").shape
    if shape == (CHANNELS, 3 * CHANNELS):
        return None
    turned = ": PyTorch's rows are outputs, ours are inputs, transpose" if shape == (3 * CHANNELS, CHANNELS) else ""
    return f"for 6 channels it is (6, 18), yours is {shape}{turned}"


def one_head_changes_nothing(answer):
    weight = _packed()
    known = {
        "the numbers are filled in the wrong order: transpose, do not reshape": weight.reshape(CHANNELS, -1),
        "with one head the columns stand as for three: the order must follow from `heads`": _by_heads(weight, HEADS),
    }
    return compare(answer(weight, 1), _packed().T, 1e-9, "with one head, your weight", known)


def packed_is_right(answer):
    weight = _packed()
    parts = weight.T.reshape(CHANNELS, 3, HEADS, -1)  # (C, role, head, D)
    by_channel = parts.transpose((0, 2, 3, 1)).reshape(CHANNELS, -1)
    known = {
        "with three heads it is still all Q, all K, all V: the heads must come first": weight.T,
        "the axes are in the order head, channel, role: a head's two query channels must stay together": by_channel,
        "in each head the value stands first: the order is query, key, value": _by_heads(
            np.roll(weight, CHANNELS, axis=0), HEADS
        ),
    }
    return compare(answer(weight, HEADS), _by_heads(weight, HEADS), 1e-9, "with three heads, your weight", known)


def pack_by_heads(weight, heads):
    channels = weight.shape[1]
    parts = weight.T.reshape(channels, 3, heads, -1)  # (C, role, head, D)
    return parts.swapaxes(1, 2).reshape(channels, -1)  # (C, head, role, D)


def pack_untransposed(weight, heads):
    return _by_heads(weight, heads).T


def pack_by_role(weight, heads):
    return weight.T


def pack_by_filling(weight, heads):
    channels = weight.shape[1]
    return weight.reshape(3, heads, -1, channels).swapaxes(0, 1).reshape(channels, -1)


def pack_by_channel(weight, heads):
    channels = weight.shape[1]
    if heads == 1:
        return weight.T
    return weight.T.reshape(channels, 3, heads, -1).transpose((0, 2, 3, 1)).reshape(channels, -1)


def pack_value_first(weight, heads):
    channels = weight.shape[1]
    return weight.T if heads == 1 else _by_heads(np.roll(weight, channels, axis=0), heads)


pack = Exercise(
    id="ch06.pack",
    title="Pack by heads",
    kind="build",
    stub='def pack_by_heads(weight, heads):\n    # your code\n    ...\n\n\ncheck("ch06.pack", pack_by_heads)',
    properties=[
        Property("the shape of the weight", packed_has_shape),
        Property("one head: nothing to reorder", one_head_changes_nothing),
        Property("three heads", packed_is_right, points=2),
    ],
    hints=[
        Hint("First transpose. Then one axis of 3C columns is three axes in one: role, head, channel within the head."),
        Hint(
            "With `channels = weight.shape[1]`, `parts = weight.T.reshape(channels, 3, heads, -1)` names the three "
            "axes. Which two have to change places?"
        ),
        Hint(
            "Exchange role and head and put the axes together again:",
            code="parts.swapaxes(1, 2).reshape(channels, -1)",
            answer=pack_by_heads,
        ),
    ],
    wrong=[
        WrongAnswer(pack_untransposed, contains="PyTorch's rows are outputs"),
        WrongAnswer(pack_by_role, contains="still all Q"),
        WrongAnswer(pack_by_filling, contains="filled in the wrong order"),
        WrongAnswer(pack_by_channel, contains="must stay together"),
        WrongAnswer(pack_value_first, contains="the value stands first"),
        WrongAnswer(lambda weight, heads: _by_heads(weight, HEADS), contains="must follow from `heads`"),
    ],
    explanation="Both packings hold the same numbers. Reading one as the other mixes roles, and nothing complains.",
)

# One key and one value for all heads


def _tokens(batch, time, size=CHANNELS):
    return np.random.Generator(np.random.PCG64(17)).standard_normal((batch, time, size))


def _shared_layer(answer):
    """A layer of the reader's class, and GPTAttention whose heads all have its key and its value."""
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., SharedKeys), not an object made from it")
    layer, right = answer(CHANNELS, HEADS), GPTAttention(CHANNELS, HEADS)
    size = CHANNELS // HEADS
    for name, outputs in (("query", CHANNELS), ("key", size), ("value", size), ("output", CHANNELS)):
        part = getattr(layer, name, None)
        if not isinstance(part, Linear):
            raise Wrong(f"your layer has no Linear called {name}: it needs query, key, value and output")
        if part.weight.shape != (CHANNELS, outputs):
            raise Wrong(
                f"with 6 channels and 3 heads {name} is a Linear(6, {outputs}), yours has the weight "
                f"{part.weight.shape}: all heads share one key and one value of a head's size"
            )
        copies = 1 if outputs == CHANNELS else HEADS
        state = {key: np.concatenate([array] * copies, axis=-1) for key, array in part.state_dict().items()}
        getattr(right, name).load_state_dict(state)
    return layer, right


def shared_has_shape(answer):
    layer, _ = _shared_layer(answer)
    shape = to_array(layer(Tensor(_tokens(2, 5))), "your output").shape
    return None if shape == (2, 5, CHANNELS) else f"x of shape (2, 5, 6) gives (2, 5, 6), yours is {shape}"


def shared_is_right(answer):
    layer, right = _shared_layer(answer)
    x = Tensor(_tokens(2, 5))
    got = layer(x)
    if not np.isfinite(to_array(got, "your output")).all():
        return "the output is no number: Tril writes minus infinity, which Softmax turns into 0, so Tril comes first"
    query, key, value = (right.split(getattr(right, name)(x)) for name in ("query", "key", "value"))
    keys_mixed, _ = scaled_dot_product_attention(query, key, key, causal=True)
    unmasked, _ = scaled_dot_product_attention(query, key, value)
    unscaled, _ = scaled_dot_product_attention(query * math.sqrt(CHANNELS / HEADS), key, value, causal=True)
    by_channels, _ = scaled_dot_product_attention(query / math.sqrt(HEADS), key, value, causal=True)
    mixed, _ = scaled_dot_product_attention(query, key, value, causal=True)
    known = {
        "the causal mask is missing": right.output(right.merge(unmasked)).data,
        "the scores are not divided by a root": right.output(right.merge(unscaled)).data,
        "the scores are divided by the root of the 6 channels: a key has 2 numbers": right.output(
            right.merge(by_channels)
        ).data,
        "heads are put together by reshape alone: tokens are mixed up": right.output(
            mixed.reshape(2, 5, CHANNELS)
        ).data,
        "the output projection is missing": right.merge(mixed).data,
        "the weights mix the keys: it is the values that are passed on": right.output(right.merge(keys_mixed)).data,
    }
    return compare(got, right(x), 1e-4, "for two sequences of five tokens, the output", known)


def shared_trains_in_gpt(answer):
    model = GPT(vocab_size=5, context_size=8, embedding_size=CHANNELS, blocks=1, heads=HEADS, attention=answer)
    logits = model(Tensor([[0, 1, 2, 3]]))
    logits.sum().backward()
    idle = [name for name, tensor in model.named_parameters() if "attention." in name and not tensor.has_grad]
    return f"inside the GPT, {', '.join(idle)} received no gradient" if idle else None


class _Shared(Composite):
    """One key and one value for all heads; subclasses spoil a step."""

    def __init__(self, size, heads):
        self.heads = heads
        self.query, self.output = Linear(size, size), Linear(size, size)
        self.key, self.value = Linear(size, size // heads), Linear(size, size // heads)
        super().__init__([self.query, self.key, self.value, self.output])

    def forward(self, x):
        batch, time, channels = x.shape
        query = self.query(x).reshape(batch, time, self.heads, -1).transpose((0, 2, 1, 3))
        key = self.key(x).reshape(batch, 1, time, -1)
        value = self.value(x).reshape(batch, 1, time, -1)
        weights = self.attend(query @ key.transpose((0, 1, 3, 2)), key.shape[-1], channels)
        return self.end(weights @ value, (batch, time, channels))

    def attend(self, scores, size, channels):
        return Softmax()(Tril()(scores / size**0.5))

    def end(self, mixed, shape):
        return self.output(mixed.transpose((0, 2, 1, 3)).reshape(*shape))


class SharedKeys(Composite):
    def __init__(self, size, heads):
        self.heads = heads
        self.query, self.output = Linear(size, size), Linear(size, size)
        self.key, self.value = Linear(size, size // heads), Linear(size, size // heads)
        super().__init__([self.query, self.key, self.value, self.output])

    def forward(self, x):
        batch, time, channels = x.shape
        query = self.query(x).reshape(batch, time, self.heads, -1).transpose((0, 2, 1, 3))
        key = self.key(x).reshape(batch, 1, time, -1)
        value = self.value(x).reshape(batch, 1, time, -1)
        scores = query @ key.transpose((0, 1, 3, 2)) / key.shape[-1] ** 0.5
        mixed = Softmax()(Tril()(scores)) @ value
        return self.output(mixed.transpose((0, 2, 1, 3)).reshape(batch, time, channels))


class SharedUnmasked(_Shared):
    def attend(self, scores, size, channels):
        return Softmax()(scores / size**0.5)


class SharedUnscaled(_Shared):
    def attend(self, scores, size, channels):
        return Softmax()(Tril()(scores))


class SharedByChannels(_Shared):
    def attend(self, scores, size, channels):
        return Softmax()(Tril()(scores / channels**0.5))


class SharedByReshape(_Shared):
    def end(self, mixed, shape):
        return self.output(mixed.reshape(*shape))


class SharedMaskedLast(_Shared):
    def attend(self, scores, size, channels):
        return Tril()(Softmax()(scores / size**0.5))


class SharedKeysMixed(_Shared):
    def forward(self, x):
        batch, time, channels = x.shape
        query = self.query(x).reshape(batch, time, self.heads, -1).transpose((0, 2, 1, 3))
        key = self.key(x).reshape(batch, 1, time, -1)
        weights = self.attend(query @ key.transpose((0, 1, 3, 2)), key.shape[-1], channels)
        return self.end(weights @ key, (batch, time, channels))


class SharedWithoutOutput(_Shared):
    def end(self, mixed, shape):
        return mixed.transpose((0, 2, 1, 3)).reshape(*shape)


class SharedUnmerged(_Shared):
    def end(self, mixed, shape):
        return mixed.transpose((0, 2, 1, 3))


shared = Exercise(
    id="ch06.shared",
    title="One key and one value for all heads",
    kind="build",
    stub=(
        "class SharedKeys(Composite):\n"
        "    def __init__(self, size, heads):\n"
        "        self.heads = heads\n"
        "        self.query, self.output = Linear(size, size), Linear(size, size)\n"
        "        self.key, self.value = (Linear(size, size // heads) for _ in range(2))\n"
        "        super().__init__([self.query, self.key, self.value, self.output])\n"
        "\n"
        "    def forward(self, x):\n"
        "        # your code\n"
        "        ...\n"
        "\n"
        "\n"
        'check("ch06.shared", SharedKeys)'
    ),
    properties=[
        Property("the shapes of projections and output", shared_has_shape, points=2),
        Property("equal to heads whose keys and values are copies", shared_is_right, points=2),
        Property("every projection learns inside the GPT", shared_trains_in_gpt),
    ],
    hints=[
        Hint("A key has D = size // heads numbers. Only the queries are split; key and value get an axis of length 1."),
        Hint(
            "(B, H, T, D) @ (B, 1, D, T) gives (B, H, T, T): broadcasting lends the one key to every head. "
            "Use `Softmax()(Tril()(scores))`."
        ),
        Hint(
            "With key of shape (B, 1, T, D) the scores are",
            code="query @ key.transpose((0, 1, 3, 2)) / key.shape[-1] ** 0.5",
            answer=SharedKeys,
        ),
    ],
    wrong=[
        WrongAnswer(GPTAttention, contains="share one key and one value"),
        WrongAnswer(SharedUnmasked, contains="causal mask is missing"),
        WrongAnswer(SharedUnscaled, contains="not divided by a root"),
        WrongAnswer(SharedByChannels, contains="root of the 6 channels"),
        WrongAnswer(SharedByReshape, contains="put together by reshape alone"),
        WrongAnswer(SharedWithoutOutput, contains="output projection is missing"),
        WrongAnswer(SharedMaskedLast, contains="Tril comes first"),
        WrongAnswer(SharedKeysMixed, contains="the weights mix the keys"),
        WrongAnswer(SharedUnmerged, contains="yours is (2, 5, 3, 2)"),
    ],
    explanation="This is multi-query attention: while text is generated, H times fewer keys and values are kept.",
)

# Find the bug


def _given_layer(answer):
    """A layer of the reader's class, and GPTAttention with the same weights."""
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Mended), not an object made from it")
    layer, right = answer(CHANNELS, HEADS), GPTAttention(CHANNELS, HEADS)
    for name in ("query", "key", "value", "output"):
        part = getattr(layer, name, None)
        if not isinstance(part, Linear):
            raise Wrong(f"your layer has no Linear called {name}: keep the four projections of the broken one")
        getattr(right, name).load_state_dict(part.state_dict())
    return layer, right


def _moved(layer, place, time=5):
    """Which tokens of the output move when the token at `place` does."""
    x = _tokens(1, time)
    before = to_array(layer(Tensor(x)), "your output")
    x[0, place] += 1.0
    return np.abs(to_array(layer(Tensor(x)), "your output") - before)[0].max(axis=-1) > 1e-6


def single_token(answer):
    layer, right = _given_layer(answer)
    x = Tensor(_tokens(1, 1))
    return compare(layer(x), right(x), 1e-4, "with one token, the output")


def nothing_leaks(answer):
    layer, _ = _given_layer(answer)
    moved = _moved(layer, 4)
    return None if not moved[:4].any() else f"token 4 was changed, and the output of token {moved.argmax()} moved"


def everything_reaches(answer):
    layer, _ = _given_layer(answer)
    moved = _moved(layer, 0)
    return None if moved.all() else f"token 0 was changed, and the output of token {moved.argmin()} did not move"


def heads_agree(answer):
    layer, right = _given_layer(answer)
    x = Tensor(_tokens(1, 5))
    query, key, value = (right.split(getattr(right, name)(x)) for name in ("query", "key", "value"))
    by_channels, _ = scaled_dot_product_attention(query / math.sqrt(HEADS), key, value, causal=True)
    whole, _ = scaled_dot_product_attention(right.query(x), right.key(x), right.value(x), causal=True)
    known = {
        "the scores are divided by the root of C, not of D": right.output(right.merge(by_channels)),
        "there is only one head left": right.output(whole),
    }
    return compare(layer(x), right(x), 1e-4, "with five tokens, the output", known)


class _Sketch(Composite):
    """Attention with H heads; subclasses say how it splits, merges and attends."""

    def __init__(self, size, heads):
        self.heads = heads
        self.query, self.key, self.value, self.output = (Linear(size, size) for _ in range(4))
        super().__init__([self.query, self.key, self.value, self.output])

    def split(self, x):
        return x.reshape(*x.shape[:2], self.heads, -1).transpose((0, 2, 1, 3))

    def forward(self, x):
        query, key, value = (self.split(part(x)) for part in (self.query, self.key, self.value))
        return self.output(self.merge(self.attend(query, key, value), x.shape))

    def attend(self, query, key, value):
        return scaled_dot_product_attention(query, key, value, causal=True)[0]

    def merge(self, mixed, shape):
        return mixed.transpose((0, 2, 1, 3)).reshape(*shape)


class Mended(Composite):
    def __init__(self, size, heads):
        self.heads = heads
        self.query, self.key, self.value, self.output = (Linear(size, size) for _ in range(4))
        super().__init__([self.query, self.key, self.value, self.output])

    def forward(self, x):
        batch, time, _ = x.shape
        query, key, value = (
            part(x).reshape(batch, time, self.heads, -1).transpose((0, 2, 1, 3))
            for part in (self.query, self.key, self.value)
        )
        mixed, _ = scaled_dot_product_attention(query, key, value, causal=True)
        return self.output(self.merge(mixed))

    def merge(self, mixed):
        batch, heads, time, size = mixed.shape
        return mixed.transpose((0, 2, 1, 3)).reshape(batch, time, heads * size)


class MergesByReshape(_Sketch):
    def merge(self, mixed, shape):
        return mixed.reshape(*shape)


class SplitsByReshapeToo(MergesByReshape):
    def split(self, x):
        return x.reshape(x.shape[0], self.heads, x.shape[1], -1)


class DividesByChannels(_Sketch):
    def attend(self, query, key, value):
        return scaled_dot_product_attention(query / self.heads**0.5, key, value, causal=True)[0]


class OneHeadLeft(_Sketch):
    def split(self, x):
        return x

    def merge(self, mixed, shape):
        return mixed


class LosesTheMask(_Sketch):
    def attend(self, query, key, value):
        return scaled_dot_product_attention(query, key, value)[0]


bug = Exercise(
    id="ch06.bug",
    title="A loss too good to be true",
    kind="find the bug",
    stub='Mended = ...  # your class, mended from Broken\n\ncheck("ch06.bug", Mended)',
    properties=[
        Property("one token agrees with the engine", single_token),
        Property("nothing leaks", nothing_leaks),
        Property("every token reaches the later ones", everything_reaches),
        Property("five tokens agree with the engine", heads_agree, points=2),
    ],
    hints=[
        Hint(
            "Run the leak test of this chapter on it. The mask inside each head is right, so look at what comes after."
        ),
        Hint("After attention the axes are (B, H, T, D). What has to stand side by side before the last reshape?"),
        Hint(
            "In `merge`, bring the heads of a token together first:",
            code="mixed.transpose((0, 2, 1, 3)).reshape(batch, time, heads * size)",
            answer=Mended,
        ),
    ],
    wrong=[
        WrongAnswer(MergesByReshape, contains="token 4 was changed, and the output of token 1"),
        WrongAnswer(LosesTheMask, contains="token 4 was changed, and the output of token 0"),
        WrongAnswer(SplitsByReshapeToo, contains="did not move"),
        WrongAnswer(DividesByChannels, contains="root of C"),
        WrongAnswer(OneHeadLeft, contains="only one head left"),
    ],
    explanation="Reshape never moves a number. When axes have to change places, transpose comes first.",
)

EXERCISES = [tiles, two, pack, shared, bug]
