"""The exercises of chapter 9: the Transformer block."""

import math

import numpy as np

from src.core import Composite, Layer, LayerNorm, Tensor
from src.course.compare import compare, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import GPT, GPTAttention, GPTFeedForward, GPTLoss

# LayerNorm by hand

CENTRED, WEIGHT, BIAS = np.array([3.0, -1, -1, -1]), np.array([2.0, 1, 1, 3]), np.array([0.0, 0, 0, 1])
NORMAL = CENTRED / math.sqrt(3)  # the mean of the squares is 3
ROW = NORMAL * WEIGHT + BIAS


def row_is_right(answer):
    known = {
        "you divided by the variance: it is its root that a row is divided by": CENTRED / 3 * WEIGHT + BIAS,
        "you averaged the squares over 3 numbers: there are 4": CENTRED / 2 * WEIGHT + BIAS,
        "the mean is still in it: subtract it before you divide": (CENTRED + 2) / math.sqrt(3) * WEIGHT + BIAS,
        "the row is normalised, but weight and bias are missing": NORMAL,
        "the bias is missing": NORMAL * WEIGHT,
        "the bias is added before the weight multiplies: it comes last": (NORMAL + BIAS) * WEIGHT,
        "you centred the row and did not divide it": CENTRED * WEIGHT + BIAS,
        "no mean is subtracted, neither from the row nor in the variance": (CENTRED + 2) / math.sqrt(7) * WEIGHT + BIAS,
        "you summed the squares: the variance is their average": CENTRED / math.sqrt(12) * WEIGHT + BIAS,
        "what lies below the mean becomes negative: you lost its sign": np.abs(NORMAL) * WEIGHT + BIAS,
    }
    return compare(answer, ROW, name="your row", known=known)


row = Exercise(
    id="ch09.row",
    title="A row by hand",
    kind="by hand",
    stub='row = [..., ..., ..., ...]  # three decimals\n\ncheck("ch09.row", row)',
    properties=[Property("the four numbers", row_is_right, points=3)],
    hints=[
        Hint("The mean of [5, 1, 1, 1] is 2. Subtract it, then average the four squares: that is the variance."),
        Hint("The variance is (9 + 1 + 1 + 1) / 4 = 3, its root 1.732. Divide, then multiply by the weight."),
        Hint(
            "Divide [3, -1, -1, -1] by the root of 3, multiply by the weight, add the bias:",
            code="[6 / 3**0.5, -1 / 3**0.5, -1 / 3**0.5, 1 - 3**0.5]",
            answer=ROW.tolist(),
        ),
    ],
    wrong=[
        WrongAnswer([2, "-1/3", "-1/3", 0], contains="divided by the variance"),
        WrongAnswer([3, -0.5, -0.5, -0.5], contains="over 3 numbers"),
        WrongAnswer([5.7735, 0.57735, 0.57735, 2.73205], contains="still in it"),
        WrongAnswer([1.732, -0.577, -0.577, -0.577], contains="weight and bias are missing"),
        WrongAnswer([3.4641, -0.57735, -0.57735, -1.73205], contains="the bias is missing"),
        WrongAnswer([3.4641, -0.57735, -0.57735, 1.26795], contains="it comes last"),
        WrongAnswer([6, -1, -1, -2], contains="did not divide"),
        WrongAnswer([3.7796, 0.37796, 0.37796, 2.13389], contains="no mean is subtracted"),
        WrongAnswer([1.73205, -0.288675, -0.288675, 0.133975], contains="you summed the squares"),
        WrongAnswer([3.4641, 0.57735, 0.57735, 2.73205], contains="lost its sign"),
    ],
    explanation="With C - 1 in place of C the row would be [1.5, -0.5, -0.5, -0.5].",
)

# Slopes through three layers

SLOPES = (0.5, -0.5, 0.2)


def _two_numbers(answer):
    numbers = to_array(answer, "your answer")
    if numbers.shape != (2,):
        raise Wrong(f"give two numbers, without and with residuals; yours have the shape {numbers.shape}")
    return numbers


def without_residuals(answer):
    known = {
        "without residuals you added the slopes: one layer after the other multiplies them": sum(SLOPES),
        "without residuals you lost the minus sign": 0.05,
        "the two cases are swapped": 0.9,
    }
    return compare(_two_numbers(answer)[0], -0.05, name="the slope without residuals", known=known)


def with_residuals(answer):
    known = {
        "with residuals you added all up: each layer has its own 1, and the layers multiply": 1 + sum(SLOPES),
        "with residuals you put one residual around all three layers: each has its own": 0.95,
        "with residuals you left out the 1 of x itself": -0.05,
        "with residuals you added 1 to the size of each slope: one of them is negative": 1.5 * 1.5 * 1.2,
    }
    return compare(_two_numbers(answer)[1], 0.9, name="the slope with residuals", known=known)


slopes = Exercise(
    id="ch09.slopes",
    title="Three layers in a row",
    kind="by hand",
    stub='without = ...\nwith_residuals = ...\n\ncheck("ch09.slopes", (without, with_residuals))',
    properties=[
        Property("the slope without residuals", without_residuals),
        Property("the slope with residuals", with_residuals, points=2),
    ],
    hints=[
        Hint("Chain rule: the slope of layers in a row is the product of their slopes."),
        Hint("The slope of x + f(x) is 1 plus the slope of f, also where that is negative."),
        Hint(
            "Multiply three factors each time:",
            code="(0.5 * -0.5 * 0.2, (1 + 0.5) * (1 - 0.5) * (1 + 0.2))",
            answer=(-0.05, 0.9),
        ),
    ],
    wrong=[
        WrongAnswer((0.2, 0.9), contains="multiplies them"),
        WrongAnswer((0.05, 0.9), contains="minus sign"),
        WrongAnswer((0.9, -0.05), contains="swapped"),
        WrongAnswer((-0.05, 1.2), contains="the layers multiply"),
        WrongAnswer((-0.05, 0.95), contains="one residual around all three"),
        WrongAnswer((-0.05, -0.05), contains="left out the 1"),
        WrongAnswer((-0.05, 2.7), contains="size of each slope"),
    ],
    explanation="Multiplied out, the second is 1 + 0.2 - 0.25 - 0.05: one term for each number of layers passed.",
)

# A parallel block

SIZE = 8


def _draws():
    return np.random.Generator(np.random.PCG64(9)).standard_normal


def _given_block(answer):
    """A block of the reader's class whose normalisation has weights of its own, and tokens to send through it."""
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Parallel), not an object made from it")
    block, draw = answer(SIZE), _draws()
    for name, kind in (("norm", LayerNorm), ("attention", GPTAttention), ("feed_forward", GPTFeedForward)):
        if not isinstance(getattr(block, name, None), kind):
            raise Wrong(f"your block has no {kind.__name__} called {name}: keep the three parts of the stub")
    block.norm.weight.data[...] = 1 + 0.3 * draw(SIZE)
    return block, Tensor(2.0 + draw((2, 5, SIZE)))


def identity_holds(answer):
    block, x = _given_block(answer)
    for part in (block.attention, block.feed_forward):
        part.output.weight.data[...] = 0.0
        part.output.bias.data[...] = 0.0
    output = to_array(block(x))
    known = {
        "with both output projections at zero, x comes out twice as large: it is added once, not with each part": 2 * x,
        "with both output projections at zero, nothing comes out: the block must add to x": 0 * x,
        "with both output projections at zero, x comes out normalised: add to x itself": block.norm(x),
    }
    if np.array_equal(output, x.data):
        return None
    return compare(output, x, 1e-6, "with both output projections at zero, the output", known) or (
        "with both output projections at zero, x comes out changed in its last digits: add to x and do nothing else"
    )


def both_parts_add(answer):
    block, x = _given_block(answer)
    normal = block.norm(x)
    heard, thought = block.attention(normal), block.feed_forward(normal)
    after = x + heard
    known = {
        "the network works on what attention has added: here both read the same": after
        + block.feed_forward(block.norm(after)),
        "the network works on the result of attention alone": after + block.feed_forward(block.norm(heard)),
        "the parts read x as it is: they must read the normalised x": x + block.attention(x) + block.feed_forward(x),
        "only attention reads the normalised x: the network must, too": after + block.feed_forward(x),
        "only the network reads the normalised x: attention must, too": x + block.attention(x) + thought,
        "the network reads what attention says: it must read the normalised x": after + block.feed_forward(heard),
        "attention is not added, only handed to the network": x + block.feed_forward(heard),
        "the network reads the normalised x and attention's result together: the first alone is wanted": after
        + block.feed_forward(normal + heard),
        "the network is missing": after,
        "the attention is missing": x + thought,
    }
    return compare(block(x), x + heard + thought, 1e-4, "the output", known)


def it_trains_in_the_gpt(answer):
    model = GPT(vocab_size=11, context_size=6, embedding_size=SIZE, blocks=2, block=answer)
    ids = Tensor(np.arange(12).reshape(2, 6) % 11)
    GPTLoss()(model(ids), ids).backward()
    idle = [name for name, tensor in model.named_parameters() if not tensor.has_grad]
    return f"inside a GPT, {', '.join(idle[:3])} received no gradient" if idle else None


class _Parts(Composite):
    def __init__(self, embedding_size):
        self.norm = LayerNorm(embedding_size)
        self.attention = GPTAttention(embedding_size)
        self.feed_forward = GPTFeedForward(embedding_size)
        super().__init__([self.norm, self.attention, self.feed_forward])


class Parallel(_Parts):
    def forward(self, x):
        normal = self.norm(x)
        return x + self.attention(normal) + self.feed_forward(normal)


class AddsTwice(_Parts):
    def forward(self, x):
        normal = self.norm(x)
        return (x + self.attention(normal)) + (x + self.feed_forward(normal))


class AddsNothing(_Parts):
    def forward(self, x):
        normal = self.norm(x)
        return self.attention(normal) + self.feed_forward(normal)


class AddsToNormal(_Parts):
    def forward(self, x):
        normal = self.norm(x)
        return normal + self.attention(normal) + self.feed_forward(normal)


class OneAfterTheOther(_Parts):
    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.feed_forward(self.norm(x))


class WithoutNorm(_Parts):
    def forward(self, x):
        return x + self.attention(x) + self.feed_forward(x)


class HalfNormal(_Parts):
    def forward(self, x):
        return x + self.attention(self.norm(x)) + self.feed_forward(x)


class Chained(_Parts):
    def forward(self, x):
        return x + self.feed_forward(self.attention(self.norm(x)))


class ReadsWhatWasHeard(_Parts):
    def forward(self, x):
        heard = self.attention(self.norm(x))
        return x + heard + self.feed_forward(heard)


class ReadsBoth(_Parts):
    def forward(self, x):
        normal = self.norm(x)
        heard = self.attention(normal)
        return x + heard + self.feed_forward(normal + heard)


class AttentionAlone(_Parts):
    def forward(self, x):
        return x + self.attention(self.norm(x))


parallel = Exercise(
    id="ch09.parallel",
    title="Side by side",
    kind="build",
    stub=(
        "class Parallel(Composite):\n"
        "    def __init__(self, embedding_size):\n"
        "        self.norm = LayerNorm(embedding_size)\n"
        "        self.attention = GPTAttention(embedding_size)\n"
        "        self.feed_forward = GPTFeedForward(embedding_size)\n"
        "        super().__init__([self.norm, self.attention, self.feed_forward])\n"
        "\n"
        "    def forward(self, x):  # (B, T, C) -> (B, T, C)\n"
        "        ...\n"
        "\n\n"
        'check("ch09.parallel", Parallel)'
    ),
    properties=[
        Property("the identity test", identity_holds),
        Property("both parts read the same and add", both_parts_add, points=2),
        Property("it trains inside a GPT", it_trains_in_the_gpt),
    ],
    hints=[
        Hint("Normalise once and keep the result in a variable: both parts read it."),
        Hint("Three terms are added: x as it came in, what attention says, what the network says."),
        Hint(
            "With normal = self.norm(x), return",
            code="x + self.attention(normal) + self.feed_forward(normal)",
            answer=Parallel,
        ),
    ],
    wrong=[
        WrongAnswer(AddsTwice, contains="twice as large"),
        WrongAnswer(AddsNothing, contains="nothing comes out"),
        WrongAnswer(AddsToNormal, contains="comes out normalised"),
        WrongAnswer(OneAfterTheOther, contains="on what attention has added"),
        WrongAnswer(WithoutNorm, contains="read x as it is"),
        WrongAnswer(HalfNormal, contains="only attention reads"),
        WrongAnswer(AttentionAlone, contains="network is missing"),
        WrongAnswer(Chained, contains="only handed to the network"),
        WrongAnswer(ReadsWhatWasHeard, contains="reads what attention says"),
        WrongAnswer(ReadsBoth, contains="the first alone is wanted"),
    ],
    explanation="The network no longer waits for attention: two large products can be computed at the same time.",
)

# Find the bug


def _given_norm(answer):
    """A layer of the reader's class and LayerNorm, with the same weight and bias, for 4 channels."""
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Mended), not an object made from it")
    layer, right, draw = answer(4), LayerNorm(4), _draws()
    for name in ("weight", "bias"):
        part = getattr(layer, name, None)
        if not isinstance(part, Tensor) or part.shape != (4,):
            raise Wrong(f"your layer has no {name} of shape (4,): keep the two parameters of the broken one")
        part.data[...] = draw(4)
        getattr(right, name).data[...] = part.data
    return layer, right


def tokens_stay_apart(answer):
    layer, _ = _given_norm(answer)
    x = _draws()((2, 5, 4))
    changed = x.copy()
    changed[:, 3:] += 1.5
    changed[:, 4:, 0] -= 4.0
    before, after = layer(Tensor(x)).data, layer(Tensor(changed)).data
    if np.array_equal(before[:, :3], after[:, :3]):
        return None
    for first, second, words in ((-1, 1, "the variance"), (1, -1, "the mean")):
        centred = x - x.mean(axis=first, keepdims=True)
        half = centred / np.sqrt((centred**2).mean(axis=second, keepdims=True) + 1e-5)
        if np.allclose(before, half * layer.weight.data + layer.bias.data, atol=1e-4):
            return f"one of the two is mended, but {words} still averages over the tokens"
    x = x - x.mean(axis=(1, 2), keepdims=True)
    both = x / np.sqrt((x**2).mean(axis=(1, 2), keepdims=True) + 1e-5) * layer.weight.data + layer.bias.data
    if np.allclose(before, both, atol=1e-4):
        return "it averages over all tokens of a window and their channels: each token has a mean of its own"
    return "tokens 3 and 4 were changed, and the output of token 0 moved: it looks at later tokens"


def one_row(answer):
    layer, right = _given_norm(answer)
    x = np.array([[[1.0, 0, 0, 0]]])
    centred = x - x.mean(axis=-1, keepdims=True)
    wrong = {
        "for [1, 0, 0, 0] you divide by C - 1 = 3 in the variance": centred / np.sqrt((centred**2).sum() / 3),
        "for [1, 0, 0, 0] the mean is not taken off": x / np.sqrt((x**2).mean()),
        "for [1, 0, 0, 0] you divide by the variance, not by its root": centred / (centred**2).mean(),
    }
    known = {message: value * right.weight.data + right.bias.data for message, value in wrong.items()}
    return compare(layer(Tensor(x)), right(Tensor(x)), 1e-3, "for [1, 0, 0, 0], the output", known)


def a_small_row(answer):
    layer, right = _given_norm(answer)
    x = np.array([[[0.001, -0.001, 0.001, -0.001]]])
    known = {
        "for a row of numbers near 0.001 eps stands outside the root": x / (0.001 + 1e-5) * right.weight.data
        + right.bias.data,
        "for a row of numbers near 0.001 eps is missing": x / 0.001 * right.weight.data + right.bias.data,
    }
    return compare(layer(Tensor(x)), right(Tensor(x)), 1e-3, "for a row of numbers near 0.001, the output", known)


def gradients_agree(answer):
    gradients = []
    for layer in _given_norm(answer):
        x = Tensor(np.array([[[1.0, 2, 4, 7]]]))
        (layer(x) * Tensor(np.array([1.0, -2, 0.5, 3]))).sum().backward()
        gradients.append(np.array(x.grad))
    known = {"no gradient reaches x: somewhere you compute with x.data": 0 * gradients[1]}
    return compare(gradients[0], gradients[1], 1e-3, "the gradient of x", known)


class _Parameters(Layer):
    def __init__(self, size):
        self.weight, self.bias = Tensor(np.ones(size)), Tensor(np.zeros(size))


class Mended(_Parameters):
    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias


class OverTokens(_Parameters):
    def forward(self, x):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred**2).mean(axis=1, keepdims=True)
        return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias


class OverAll(_Parameters):
    def forward(self, x):
        centred = x - x.mean(axis=(1, 2), keepdims=True)
        variance = (centred**2).mean(axis=(1, 2), keepdims=True)
        return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias


class VarianceOverTokens(_Parameters):
    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=1, keepdims=True)
        return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias


class MeanOverTokens(_Parameters):
    def forward(self, x):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias


class OneFewer(_Parameters):
    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)
        return centred / (variance + 1e-5) ** 0.5 * self.weight + self.bias


class OutsideTheRoot(_Parameters):
    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return centred / (variance**0.5 + 1e-5) * self.weight + self.bias


class NotCentred(_Parameters):
    def forward(self, x):
        return x / ((x**2).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5 * self.weight + self.bias


class Cut(_Parameters):
    def forward(self, x):
        centred = x.data - x.data.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return Tensor(centred / np.sqrt(variance + 1e-5)) * self.weight + self.bias


bug = Exercise(
    id="ch09.bug",
    title="It normalises, and it is wrong",
    kind="find the bug",
    stub='Mended = ...  # your class, mended from Broken\n\ncheck("ch09.bug", Mended)',
    properties=[
        Property("tokens stay apart", tokens_stay_apart),
        Property("one row", one_row),
        Property("a small row", a_small_row),
        Property("the gradient", gradients_agree),
    ],
    hints=[
        Hint("Put it through the leak test: change the last token and look at the first."),
        Hint("x has the axes (B, T, C). Which numbers does one mean average here, and whose mean should it be?"),
        Hint(
            "Mean and variance run over the channels, the last axis:",
            code="x.mean(axis=-1, keepdims=True)",
            answer=Mended,
        ),
    ],
    wrong=[
        WrongAnswer(OverTokens, contains="looks at later tokens"),
        WrongAnswer(OverAll, contains="a mean of its own"),
        WrongAnswer(VarianceOverTokens, contains="the variance still averages"),
        WrongAnswer(MeanOverTokens, contains="the mean still averages"),
        WrongAnswer(OneFewer, contains="C - 1 = 3"),
        WrongAnswer(NotCentred, contains="not taken off"),
        WrongAnswer(OutsideTheRoot, contains="outside the root"),
        WrongAnswer(Cut, contains="no gradient reaches x"),
    ],
    explanation="A mean over tokens is a peek at the future: the causal mask guards attention only.",
)

EXERCISES = [row, slopes, parallel, bug]
