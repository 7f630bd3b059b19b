"""The exercises of chapter 5: query, key, value."""

import math

import numpy as np

from src.core import Composite, Linear, Softmax, Tensor, scaled_dot_product_attention
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer
from src.gpt import GPTAttention

# Weights by hand

ROW_C = [4 / 7, 2 / 7, 1 / 7]


def row_sums_to_one(answer):
    total = to_array(answer, "your row").sum()
    return (
        None if abs(total - 1) < 2e-3 else f"your row sums to {show(total)}: divide each weight by the sum of all three"
    )


def row_is_right(answer):
    known = {
        "this row looks at a and b only: c may look at itself too": [2 / 3, 1 / 3, 0],
        "this is the row of the old W_Q: the new one turns the sign of every score of c": ROW_C[::-1],
        "you divided the scores by their sum: softmax takes exp of each score first": [1 / 6, 1 / 3, 1 / 2],
        "exp(-1), exp(-2), exp(-3): the ln 2 of the query got lost": np.exp([-1.0, -2, -3])
        / np.exp([-1.0, -2, -3]).sum(),
    }
    return compare(answer, ROW_C, name="your row", known=known)


weights = Exercise(
    id="ch05.weights",
    title="A row of weights by hand",
    kind="by hand",
    stub='row_c = [..., ..., ...]  # fractions may be text: "1/2"\n\ncheck("ch05.weights", row_c)',
    properties=[Property("the row sums to 1", row_sums_to_one), Property("the three weights", row_is_right, points=2)],
    hints=[
        Hint("The query of c is the sum of both entries of the new W_Q. The keys stay as they were."),
        Hint("The scores of c are -1, -2 and -3 times ln 2, and exp(-n ln 2) is 1 divided by 2 to the power n."),
        Hint("The weights are as 4 to 2 to 1; divide by their sum:", code='["4/7", "2/7", "1/7"]', answer=ROW_C),
    ],
    wrong=[
        WrongAnswer(["1/7", "2/7", "4/7"], contains="old W_Q"),
        WrongAnswer([4, 2, 1], contains="sums to 7"),
        WrongAnswer(["2/3", "1/3", 0], contains="c may look at itself"),
        WrongAnswer(["1/6", "1/3", "1/2"], contains="by their sum"),
        WrongAnswer([0.6652, 0.2447, 0.09], contains="ln 2 of the query"),
        WrongAnswer([0.6, 0.3, 0.1], contains="rounded too early"),
    ],
    explanation="A negative query turns a preference around; the keys need not change for that.",
)

# A noun asks for its adjective

WORDS = ["the", "red", "apple"]
# article, adjective, noun, redness
FEATURES = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]])
REDNESS = FEATURES[1, 3]


def three_matrices(answer):
    """The three matrices (4, D), (4, D) and (4, 1); a matrix with one column may be given as a list of four."""
    if not isinstance(answer, list | tuple) or len(answer) != 3:
        raise Wrong("give three matrices, as in (W_Q, W_K, W_V)")
    matrices = []
    for name, given in zip(("W_Q", "W_K", "W_V"), answer, strict=True):
        matrix = to_array(given, name)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or len(matrix) != 4:
            raise Wrong(f"{name} has shape {to_array(given).shape}: it needs 4 rows, one for each feature of a word")
        if name == "W_V" and matrix.shape[1] != 1:
            raise Wrong(f"W_V has {matrix.shape[1]} columns: one is wanted, so that a word tells one number")
        matrices.append(matrix)
    if matrices[0].shape != matrices[1].shape:
        raise Wrong(f"W_Q makes queries of {matrices[0].shape[1]} numbers, W_K keys of {matrices[1].shape[1]}")
    return matrices


def noun_weights(answer):
    query, key, _ = three_matrices(answer)
    scores = (FEATURES @ query) @ (FEATURES @ key).T / math.sqrt(query.shape[1])
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores, exps / exps.sum(axis=1, keepdims=True)


def entries_are_integers(answer):
    for name, matrix in zip(("W_Q", "W_K", "W_V"), three_matrices(answer), strict=True):
        broken = matrix[matrix != np.round(matrix)]
        if broken.size:
            return f"{name} has the entry {show(broken[0])}: use whole numbers"
    return None


def noun_asks_adjective(answer):
    scores, table = noun_weights(answer)
    if table[2, 1] >= 0.99:
        return None
    if table[1, 2] >= 0.99:
        return f"red takes {show(table[1, 2])} from apple: the roles are swapped, it is the noun that asks"
    if scores[2].argmax() == 1 and scores[2, 1] > max(scores[2, 0], scores[2, 2]):
        return f"apple takes only {show(table[2, 1])} from red, its score there is {show(scores[2, 1])}: make it larger"
    return f"apple takes {show(table[2, 1])} from red, {show(table[2, 0])} from the and {show(table[2, 2])} from itself"


def others_ask_nothing(answer):
    scores, table = noun_weights(answer)
    if np.allclose(scores, scores.T) and not np.allclose(table[:2], 1 / 3):
        return (
            f"score(red, apple) = score(apple, red) = {show(scores[1, 2])}: your scores are symmetric, so red asks "
            "whatever apple asks; the two matrices must differ"
        )
    for row in (0, 1):
        if not np.allclose(table[row], 1 / 3, atol=1e-6):
            return f"{WORDS[row]} should ask for nothing and spread evenly, its weights are {show(table[row])}"
    return None


def noun_learns_redness(answer):
    tells = three_matrices(answer)[2]
    value = FEATURES @ tells
    if not value.any():
        return "the values are all zero: apple asks the right word and is told nothing"
    if not value[1].any():
        return "the value of red is zero: W_V passes on other features, but not what red has to tell"
    told, received = value[1, 0], (noun_weights(answer)[1] @ value)[2, 0]
    if tells[3] == 0:
        return f"red tells {show(told)} however red it is: which feature has to be told?"
    if abs(told - REDNESS) > 1e-6:
        return (
            f"red tells {show(told)}, apple receives {show(received)}: that is not its redness, as it stands in its row"
        )
    if tells[3] != 1:
        half = told - tells[3, 0] / 2
        return f"red tells {show(told)}, but were it half as red it would tell {show(half)}: other features mix in"
    if abs(received - REDNESS) > 0.01:
        return f"red tells {show(told)}, apple receives {show(received)}: the others tell something too"
    return None


ONE_COLUMN = ([0, 0, 6, 0], [0, 1, 0, 0], [0, 0, 0, 1])

noun = Exercise(
    id="ch05.noun",
    title="A noun looks for its adjective",
    kind="by hand",
    stub=(
        "#       article, adjective, noun, redness\n"
        "W_Q = [..., ..., ..., ...]  # one column: what a word with this feature asks\n"
        "W_K = [..., ..., ..., ...]  # what it can be found by\n"
        "W_V = [..., ..., ..., ...]  # what it tells\n"
        "\n"
        'check("ch05.noun", (W_Q, W_K, W_V))'
    ),
    properties=[
        Property("whole numbers", entries_are_integers),
        Property("apple takes at least 0.99 from red", noun_asks_adjective, points=2),
        Property("the and red ask for nothing", others_ask_nothing),
        Property("apple receives the redness of red", noun_learns_redness),
    ],
    hints=[
        Hint("Only nouns ask: which entry of W_Q must not be zero? Only adjectives are to be found: which of W_K?"),
        Hint(
            "The score of apple and red is the product of those two entries. A score s against two of 0 takes "
            "exp(s) / (exp(s) + 2), which passes 0.99 a little above 5."
        ),
        Hint("For example", code="([0, 0, 6, 0], [0, 1, 0, 0], [0, 0, 0, 1])", answer=ONE_COLUMN),
    ],
    wrong=[
        WrongAnswer(([0, 1, 7, 0], [0, 7, 1, 0], [0, 0, 0, 1]), contains="should ask for nothing"),
        WrongAnswer(([0, 7, 1, 0], [0, 7, 1, 0], [0, 0, 0, 1]), contains="scores are symmetric"),
        WrongAnswer(([0, 1, 0, 0], [0, 0, 6, 0], [0, 0, 0, 1]), contains="roles are swapped"),
        WrongAnswer(([0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]), contains="make it larger"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], [0, 0, 0, 0]), contains="told nothing"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], [0, 0, 1, 0]), contains="the value of red is zero"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], [0, 1, 0, 0]), contains="however red it is"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], [0, 5, 0, 1]), contains="apple receives 5.97"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], [0, 0, 0, 7]), contains="apple receives 6.965"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], [0, -1, 0, 2]), contains="half as red"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], [9, 0, 0, 1]), contains="the others tell something"),
        WrongAnswer(([0, 0, 6, 0], [0, 1, 0, 0], np.eye(4).tolist()), contains="W_V has 4 columns"),
        WrongAnswer(([0, 0, 5.5, 0], [0, 1, 0, 0], [0, 0, 0, 1]), contains="use whole numbers"),
    ],
    explanation="Asking (W_Q), being found (W_K) and telling (W_V) read different features of the same word.",
)

# Cross-attention


def _cross_input():
    """Three tokens of 5 channels ask, five of 6 channels answer; keys have 2 numbers, values 3."""
    draw = np.random.Generator(np.random.PCG64(5)).standard_normal
    sizes = ((3, 5), (5, 6), (5, 2), (6, 2), (6, 3))
    return [draw(size) for size in sizes]


def _cross_table(x, y, w_q, w_k, root=True):
    scores = (x @ w_q) @ (y @ w_k).T / (math.sqrt(w_q.shape[1]) if root else 1.0)
    return np.exp(scores)


def cross_has_shape(answer):
    output = answer(*[Tensor(array) for array in _cross_input()])
    if isinstance(output, tuple):
        return f"your function returns {len(output)} things: return the output alone"
    output = to_array(output, "your output")
    if output.shape == (3, 3):
        return None
    return f"3 tokens ask and values have 3 numbers, so the output is (3, 3); yours is {output.shape}"


def cross_equal_keys(answer):
    """With equal keys every query averages the values."""
    x, y, w_q, w_k, w_v = _cross_input()
    output = to_array(answer(*[Tensor(array) for array in (x, np.ones_like(y), w_q, w_k, w_v)]), "your output")
    wanted = np.ones((3, 6)) @ w_v
    if np.allclose(output, wanted, atol=1e-4):
        return None
    return (
        "with five equal keys every weight is 1/5 and each output is the common value; "
        f"yours is {show(output[0] / wanted[0])} times that: does softmax run over the keys?"
    )


def cross_is_right(answer):
    x, y, w_q, w_k, w_v = _cross_input()
    output = answer(*[Tensor(array) for array in (x, y, w_q, w_k, w_v)])
    right = _cross_table(x, y, w_q, w_k)
    raw = _cross_table(x, y, w_q, w_k, root=False)
    wide = np.exp((x @ w_q) @ (y @ w_k).T / math.sqrt(x.shape[1]))
    tables = {
        "the scores are not divided by a root": raw,
        "the scores are divided by the root of the 5 channels of x: what matters is how many numbers a key has": wide,
        "the scores are divided by 2, the size of a key: the root of it is wanted": np.sqrt(raw),
    }
    for shift in (0, 2):  # aligned at the start or at the end of the keys
        tables[f"a causal mask is at work (aligned at {shift}): nothing in y is later than x"] = (
            np.tri(3, 5, shift) * right
        )
    known = {text: table / table.sum(axis=1, keepdims=True) @ (y @ w_v) for text, table in tables.items()}
    return compare(output, right / right.sum(axis=1, keepdims=True) @ (y @ w_v), 1e-4, "your output", known)


def cross_by_formula(x, y, W_Q, W_K, W_V):
    query, key, value = x @ W_Q, y @ W_K, y @ W_V
    scores = query @ key.transpose((1, 0)) / key.shape[-1] ** 0.5
    return Softmax()(scores) @ value


def cross_unscaled(x, y, W_Q, W_K, W_V):
    return Softmax()((x @ W_Q) @ (y @ W_K).transpose((1, 0))) @ (y @ W_V)


def cross_by_channels(x, y, W_Q, W_K, W_V):
    return Softmax()((x @ W_Q) @ (y @ W_K).transpose((1, 0)) / x.shape[-1] ** 0.5) @ (y @ W_V)


def cross_by_size(x, y, W_Q, W_K, W_V):
    return Softmax()((x @ W_Q) @ (y @ W_K).transpose((1, 0)) / W_K.shape[-1]) @ (y @ W_V)


def cross_over_queries(x, y, W_Q, W_K, W_V):
    scores = (y @ W_K) @ (x @ W_Q).transpose((1, 0)) / W_K.shape[-1] ** 0.5
    return Softmax()(scores).transpose((1, 0)) @ (y @ W_V)


def cross_causal(x, y, W_Q, W_K, W_V):
    scores = (x @ W_Q) @ (y @ W_K).transpose((1, 0)) / W_K.shape[-1] ** 0.5
    return Softmax()(scores + np.where(np.tri(3, 5), 0.0, -np.inf)) @ (y @ W_V)


def cross_with_weights(x, y, W_Q, W_K, W_V):
    return scaled_dot_product_attention(x @ W_Q, y @ W_K, y @ W_V)


def cross_other_way(x, y, W_Q, W_K, W_V):
    scores = (y @ W_K) @ (x @ W_Q).transpose((1, 0)) / W_K.shape[-1] ** 0.5
    return Softmax()(scores)


cross = Exercise(
    id="ch05.cross",
    title="Ask another text",
    kind="build",
    stub=(
        'def cross_attention(x, y, W_Q, W_K, W_V):\n    # your code\n    ...\n\n\ncheck("ch05.cross", cross_attention)'
    ),
    properties=[
        Property("the shape of the output", cross_has_shape),
        Property("equal keys give the average", cross_equal_keys),
        Property("the output", cross_is_right, points=2),
    ],
    hints=[
        Hint("x asks, so queries come from x. y answers, so keys and values come from y."),
        Hint("Scores are (m, D) @ (D, n): transpose the keys. `Softmax()` of the engine runs over the last axis."),
        Hint(
            "The scores are",
            code="query @ key.transpose((1, 0)) / key.shape[-1] ** 0.5",
            answer=cross_by_formula,
        ),
    ],
    wrong=[
        WrongAnswer(cross_unscaled, contains="not divided by a root"),
        WrongAnswer(cross_by_channels, contains="root of the 5 channels"),
        WrongAnswer(cross_by_size, contains="the size of a key"),
        WrongAnswer(cross_over_queries, contains="softmax run over the keys"),
        WrongAnswer(cross_other_way, contains="yours is (5, 3)"),
        WrongAnswer(cross_causal, contains="a causal mask is at work"),
        WrongAnswer(cross_with_weights, contains="returns 2 things"),
    ],
    explanation="Self-attention is the case y = x. In translation, x is the text being written, y the one being read.",
)

# One matrix too many

SIZE = 4  # channels; one head as wide as the input


def _weights_of_one_head():
    draw = np.random.Generator(np.random.PCG64(7)).standard_normal
    return [draw(shape) for shape in ((5, SIZE), *([(SIZE, SIZE), (SIZE,)] * 4))]


def _attend(query, key, value):
    with Tensor.precision(np.float64):
        output, _ = scaled_dot_product_attention(Tensor(query), Tensor(key), Tensor(value), causal=True)
    return output.data


def _pair(answer, *arguments):
    """The pair that the reader's function returns, as arrays of the right shapes."""
    with Tensor.precision(np.float64):
        given = answer(*[array.copy() for array in arguments])
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise Wrong("return two arrays, as in `return W, b`")
    matrix, bias = to_array(given[0], "the matrix"), to_array(given[1], "the bias")
    if matrix.shape != (SIZE, SIZE) or bias.shape != (SIZE,):
        raise Wrong(f"for 4 channels the matrix is (4, 4) and the bias (4,), yours are {matrix.shape} and {bias.shape}")
    return matrix, bias


def key_without_bias(answer):
    x, w_q, _, w_k, _, w_v, b_v, _, _ = _weights_of_one_head()
    zero = np.zeros(SIZE)
    matrix, bias = _pair(answer, w_q, zero, w_k, zero)
    value = x @ w_v + b_v
    right = _attend(x @ w_q, x @ w_k, value)
    known = {
        "you multiply W_K W_Q^T: that turns the scores around, the keys ask": _attend(x @ (w_k @ w_q.T), x, value),
        "you multiply W_Q W_K: one of them must be transposed": _attend(x @ (w_q @ w_k), x, value),
        "the scores are divided by the root twice: attention does it, your matrix must not": _attend(
            x @ (w_q @ w_k.T) / math.sqrt(SIZE), x, value
        ),
        "your matrix is W_Q alone: W_K has to go into it": _attend(x @ w_q, x, value),
        "you use the inverse of W_K: a score multiplies by W_K, it does not undo it": _attend(
            x @ (w_q @ np.linalg.inv(w_k)), x, value
        ),
    }
    return compare(_attend(x @ matrix + bias, x, value), right, 1e-6, "without biases, the output", known)


def key_with_bias(answer):
    x, w_q, b_q, w_k, b_k, w_v, b_v, _, _ = _weights_of_one_head()
    matrix, bias = _pair(answer, w_q, b_q, w_k, b_k)
    value = x @ w_v + b_v
    right = _attend(x @ w_q + b_q, x @ w_k + b_k, value)
    product = x @ (w_q @ w_k.T)
    known = {
        "with biases it fails: your new bias is zero, but b_Q asks for something too": _attend(product, x, value),
        "with biases it fails: b_Q must go through W_K as W_Q does": _attend(product + b_q, x, value),
        "with biases it fails: you add b_K to a query, where it asks for something": _attend(
            product + b_q @ w_k.T + b_k, x, value
        ),
        "with biases it fails: your new bias goes through W_K^T with b_K added, and b_K changes nothing": _attend(
            product + (b_q + b_k) @ w_k.T, x, value
        ),
    }
    return compare(_attend(x @ matrix + bias, x, value), right, 1e-6, "with biases, the output", known)


def remove_key(W_Q, b_Q, W_K, b_K):
    return W_Q @ W_K.T, b_Q @ W_K.T


key_removed = Exercise(
    id="ch05.key",
    title="Remove W_K",
    kind="build",
    stub=(
        "def remove_key(W_Q, b_Q, W_K, b_K):\n    W = ...\n    b = ...\n    return W, b\n\n\n"
        'check("ch05.key", remove_key)'
    ),
    properties=[
        Property("same outputs without biases", key_without_bias, points=2),
        Property("same outputs with biases", key_with_bias),
    ],
    hints=[
        Hint("Write a score as one product: (x_i W_Q) (x_j W_K)^T. Which matrices stand side by side in the middle?"),
        Hint(
            "With biases, (x_i W_Q + b_Q) (x_j W_K + b_K)^T has a part that holds b_K and not x_j. It is the same for "
            "every key of a query: what does softmax do with that?"
        ),
        Hint("The new matrix and bias are", code="W_Q @ W_K.T, b_Q @ W_K.T", answer=remove_key),
    ],
    wrong=[
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_K @ W_Q.T, b_Q @ W_K.T), contains="the keys ask"),
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_Q @ W_K, b_Q @ W_K), contains="must be transposed"),
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_Q @ W_K.T, 0 * b_Q), contains="new bias is zero"),
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_Q @ W_K.T, b_Q), contains="go through W_K"),
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_Q @ W_K.T / 2, b_Q @ W_K.T / 2), contains="root twice"),
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_Q, b_Q), contains="W_Q alone"),
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_Q @ W_K.T, b_Q @ W_K.T + b_K), contains="add b_K to a query"),
        WrongAnswer(lambda W_Q, b_Q, W_K, b_K: (W_Q @ np.linalg.inv(W_K), b_Q), contains="use the inverse"),
    ],
    explanation="b_K is not needed at all: it adds the same number to all scores of a query, and softmax ignores that.",
)


def value_without_bias(answer):
    x, w_q, b_q, w_k, b_k, w_v, _, w_o, _ = _weights_of_one_head()
    zero = np.zeros(SIZE)
    matrix, bias = _pair(answer, w_v, zero, w_o, zero)
    query, key = x @ w_q + b_q, x @ w_k + b_k
    right = _attend(query, key, x @ w_v) @ w_o
    known = {
        "you multiply W_O W_V: x meets W_V first": _attend(query, key, x) @ (w_o @ w_v),
        "you transpose one of the two: with rows as tokens, x W_V W_O needs no transpose": _attend(query, key, x)
        @ (w_v @ w_o.T),
        "your matrix is W_O alone: W_V has to go into it": _attend(query, key, x) @ w_o,
    }
    return compare(_attend(query, key, x) @ matrix + bias, right, 1e-6, "without biases, the output", known)


def value_with_bias(answer):
    x, w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = _weights_of_one_head()
    matrix, bias = _pair(answer, w_v, b_v, w_o, b_o)
    query, key = x @ w_q + b_q, x @ w_k + b_k
    right = _attend(query, key, x @ w_v + b_v) @ w_o + b_o
    mixed = _attend(query, key, x) @ (w_v @ w_o)
    known = {
        "with biases it fails: b_V is forgotten, and each output holds it once": mixed + b_o,
        "with biases it fails: b_V must go through W_O": mixed + b_v + b_o,
        "with biases it fails: b_O is forgotten": mixed + b_v @ w_o,
    }
    return compare(_attend(query, key, x) @ matrix + bias, right, 1e-6, "with biases, the output", known)


def remove_value(W_V, b_V, W_O, b_O):
    return W_V @ W_O, b_V @ W_O + b_O


value_removed = Exercise(
    id="ch05.value",
    title="Remove W_V",
    kind="build",
    stub=(
        "def remove_value(W_V, b_V, W_O, b_O):\n    W = ...\n    b = ...\n    return W, b\n\n\n"
        'check("ch05.value", remove_value)'
    ),
    properties=[
        Property("same outputs without biases", value_without_bias, points=2),
        Property("same outputs with biases", value_with_bias),
    ],
    hints=[
        Hint("With A for the table of weights, the output is (A (x W_V)) W_O. Where may the brackets stand?"),
        Hint("With biases, A (x W_V + b_V) = A x W_V + A b_V. Each row of A sums to 1: what is A b_V?"),
        Hint("The new matrix and bias are", code="W_V @ W_O, b_V @ W_O + b_O", answer=remove_value),
    ],
    wrong=[
        WrongAnswer(lambda W_V, b_V, W_O, b_O: (W_O @ W_V, b_V @ W_O + b_O), contains="x meets W_V first"),
        WrongAnswer(lambda W_V, b_V, W_O, b_O: (W_V @ W_O.T, b_V @ W_O + b_O), contains="needs no transpose"),
        WrongAnswer(lambda W_V, b_V, W_O, b_O: (W_V @ W_O, b_O), contains="b_V is forgotten"),
        WrongAnswer(lambda W_V, b_V, W_O, b_O: (W_V @ W_O, b_V + b_O), contains="b_V must go through W_O"),
        WrongAnswer(lambda W_V, b_V, W_O, b_O: (W_V @ W_O, b_V @ W_O), contains="b_O is forgotten"),
        WrongAnswer(lambda W_V, b_V, W_O, b_O: (W_O, b_O), contains="W_O alone"),
    ],
    explanation="The bias passes unchanged because the weights of a row sum to 1.",
)

# Find the bug


def _tokens(batch, time):
    return Tensor(np.random.Generator(np.random.PCG64(11)).standard_normal((batch, time, SIZE)))


def _given_layer(answer):
    """A layer of the reader's class, and GPTAttention with the same weights."""
    if not isinstance(answer, type):
        raise Wrong("pass the class itself, as in check(..., Mended), not an object made from it")
    layer, right = answer(SIZE), GPTAttention(SIZE)
    for name in ("query", "key", "value", "output"):
        part = getattr(layer, name, None)
        if not isinstance(part, Linear):
            raise Wrong(f"your layer has no Linear called {name}: keep the four projections of the broken one")
        getattr(right, name).load_state_dict(part.state_dict())
    return layer, right


def every_projection_learns(answer):
    layer, _ = _given_layer(answer)
    (layer(_tokens(2, 5)) ** 2).sum().backward()
    idle = [name for name, tensor in layer.named_parameters() if not tensor.has_grad]
    return f"{', '.join(idle)} received no gradient in a backward pass: who does not use it?" if idle else None


def one_token_gives_its_value(answer):
    layer, right = _given_layer(answer)
    x = Tensor(np.ones((1, 1, SIZE)))
    known = {
        "a single token returns what its key says, not its value": layer.output(layer.key(x)).data,
        "a single token returns itself, without its value projection": layer.output(x).data,
    }
    return compare(layer(x).data, right(x).data, 1e-4, "with one token, the output", known)


def gradients_agree(answer):
    layer, right = _given_layer(answer)
    x, same = _tokens(1, 5), _tokens(1, 5)
    (layer(x) ** 2).sum().backward()
    (right(same) ** 2).sum().backward()
    if not x.has_grad:
        return "x receives no gradient: an array or a Tensor(x.data) in the middle cuts the way back"
    return compare(x.grad, same.grad, 1e-3, "the gradient of x, cut somewhere on its way,")


def five_tokens_agree(answer):
    layer, right = _given_layer(answer)
    x = _tokens(1, 5)
    query, key, value = layer.query(x), layer.key(x), layer.value(x)
    unmasked, _ = scaled_dot_product_attention(query, key, value)
    swapped, _ = scaled_dot_product_attention(key, query, value, causal=True)
    known = {
        "the causal mask got lost": layer.output(unmasked),
        "queries and keys are swapped": layer.output(swapped),
    }
    return compare(layer(x), right(x), 1e-4, "with five tokens, the output", known)


class _Sketch(Composite):
    """Causal attention with the four projections; subclasses say what attends to what."""

    def __init__(self, size):
        self.query, self.key, self.value, self.output = (Linear(size, size) for _ in range(4))
        super().__init__([self.query, self.key, self.value, self.output])


class Mended(_Sketch):
    def forward(self, x):
        mixed, _ = scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), causal=True)
        return self.output(mixed)


class MixesKeys(_Sketch):
    def forward(self, x):
        key = self.key(x)
        mixed, _ = scaled_dot_product_attention(self.query(x), key, key, causal=True)
        return self.output(mixed)


class MixesKeysAndTouchesValues(_Sketch):
    def forward(self, x):
        key = self.key(x)
        mixed, _ = scaled_dot_product_attention(self.query(x), key, key + self.value(x) * 0.0, causal=True)
        return self.output(mixed)


class MixesTokens(_Sketch):
    def forward(self, x):
        mixed, _ = scaled_dot_product_attention(self.query(x), self.key(x), x + self.value(x) * 0.0, causal=True)
        return self.output(mixed)


class CutsTheGradient(_Sketch):
    def forward(self, x):
        x = Tensor(x.data)
        mixed, _ = scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), causal=True)
        return self.output(mixed)


class LosesTheMask(_Sketch):
    def forward(self, x):
        mixed, _ = scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))
        return self.output(mixed)


class SwapsAskingAndAnswering(_Sketch):
    def forward(self, x):
        mixed, _ = scaled_dot_product_attention(self.key(x), self.query(x), self.value(x), causal=True)
        return self.output(mixed)


bug = Exercise(
    id="ch05.bug",
    title="It trains, and it is wrong",
    kind="find the bug",
    stub='Mended = ...  # your class, mended from Broken\n\ncheck("ch05.bug", Mended)',
    properties=[
        Property("every projection learns", every_projection_learns),
        Property("one token gives its own value", one_token_gives_its_value),
        Property("five tokens agree with the engine", five_tokens_agree, points=2),
        Property("the gradient agrees, too", gradients_agree),
    ],
    hints=[
        Hint("Run one backward pass and list the parameters that received no gradient (`tensor.has_grad`)."),
        Hint("A single token can only attend to itself, so its output is output(value(x)). Is it?"),
        Hint(
            "What is mixed are values. Before `causal=True`, `scaled_dot_product_attention` gets",
            code="self.query(x), self.key(x), self.value(x)",
            answer=Mended,
        ),
    ],
    wrong=[
        WrongAnswer(MixesKeys, contains="received no gradient"),
        WrongAnswer(MixesKeysAndTouchesValues, contains="what its key says"),
        WrongAnswer(MixesTokens, contains="returns itself"),
        WrongAnswer(LosesTheMask, contains="mask got lost"),
        WrongAnswer(CutsTheGradient, contains="x receives no gradient"),
        WrongAnswer(SwapsAskingAndAnswering, contains="queries and keys are swapped"),
    ],
    explanation="A parameter without a gradient is a projection nobody uses: a line in the training loop finds it.",
)

EXERCISES = [weights, noun, cross, key_removed, value_removed, bug]
