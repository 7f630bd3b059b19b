"""The exercises of chapter 1: tensors and gradients."""

import math

import numpy as np

from src.core import Tensor
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, Wrong, WrongAnswer

# Gradients of a small graph

GRAPH = [-4.0, 5.0, -8.0]  # of s, a and b


def three_gradients(answer):
    """The three numbers; anything else is refused with the wanted form."""
    numbers = to_array(answer, "your list")
    if numbers.shape != (3,):
        raise Wrong(f"give three numbers, for s, a and b; yours have the shape {numbers.shape}")
    return numbers


def gradient_of_s(answer):
    known = {"s is a factor of s × s twice, and you counted one of them": -2.0}
    return compare(three_gradients(answer)[0], GRAPH[0], name="the gradient of s", known=known)


def gradient_of_a(answer):
    known = {
        "a is used twice: you have the way through s, but not the direct one": 4.0,
        "a is used twice: you have the direct way, but not the one through s": 1.0,
        "a receives -7 if a product hands each factor itself: it hands over the other factor": -7.0,
        "you subtracted the two ways: what comes from several uses is added": 3.0,
    }
    return compare(three_gradients(answer)[1], GRAPH[1], name="the gradient of a", known=known)


def gradient_of_b(answer):
    known = {
        "b receives the slope of s for b alone: multiply it by what s received": 2.0,
        "b receives 4 if a product hands each factor itself: it hands over the other factor": 4.0,
    }
    return compare(three_gradients(answer)[2], GRAPH[2], name="the gradient of b", known=known)


graph = Exercise(
    id="ch01.graph",
    title="Backwards with a pencil",
    kind="by hand",
    stub='gradients = [..., ..., ...]  # of s, a, b\n\ncheck("ch01.graph", gradients)',
    properties=[
        Property("the gradient of s", gradient_of_s),
        Property("the gradient of a", gradient_of_a),
        Property("the gradient of b", gradient_of_b),
    ],
    hints=[
        Hint("First the values: s, then L. Then start with 1 at L and go back, newest operation first."),
        Hint("s is used twice in one product, so it receives s + s. a is used in two operations: add what comes."),
        Hint(
            "s receives 2s, a receives 1 + 2s · b, b receives 2s · a:", code="[-4, 1 + -4 * -1, -4 * 2]", answer=GRAPH
        ),
    ],
    wrong=[
        WrongAnswer([-2, 3, -4], contains="counted one of them"),
        WrongAnswer([-4, 4, -8], contains="but not the direct one"),
        WrongAnswer([-4, 1, -8], contains="but not the one through s"),
        WrongAnswer([-4, -7, 4], contains="a receives -7"),
        WrongAnswer([-4, 3, -8], contains="you subtracted"),
        WrongAnswer([-4, 5, 2], contains="slope of s for b alone"),
    ],
    explanation="Multiply along a way, add over the ways: that is all a backward pass does.",
)

# Gradients of a linear layer

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # the tokens a, b, c
G = np.array([[2.0, 1.0], [0.0, 1.0], [-1.0, 3.0]])  # what arrives at the three outputs


def weight_and_bias(answer):
    if not isinstance(answer, list | tuple) or len(answer) != 2:
        raise Wrong("give two gradients, as in (weight, bias)")
    return answer


def weight_gradient(answer):
    known = {
        "this is PyTorch's layout, (outputs, inputs): here rows of the weight are inputs": (X.T @ G).T,
        "you took the mean over the three tokens: what comes from several uses is added": X.T @ G / 3,
        "you used a and b only: c uses the same weight": X[:2].T @ G[:2],
        "you used c only: a and b use the same weight": X[2:].T @ G[2:],
    }
    return compare(weight_and_bias(answer)[0], X.T @ G, name="the weight's gradient", known=known)


def bias_gradient(answer):
    bias = to_array(weight_and_bias(answer)[1], "the bias's gradient")
    known = {
        "this is G itself: one bias serves all three tokens, so its gradient has the shape (2,)": G,
        "the bias's gradient is summed over the outputs: it is the tokens that share the bias": G.sum(axis=1),
        "the bias's gradient is a mean: what comes from several uses is added": G.mean(axis=0),
    }
    return compare(bias, G.sum(axis=0), name="the bias's gradient", known=known)


BOTH = (X.T @ G, G.sum(axis=0))

linear = Exercise(
    id="ch01.linear",
    title="What a linear layer learns from three tokens",
    kind="by hand",
    stub='weight = [[..., ...], [..., ...]]\nbias = [..., ...]\n\ncheck("ch01.linear", (weight, bias))',
    properties=[
        Property("the gradient of the weight", weight_gradient, points=2),
        Property("the gradient of the bias", bias_gradient),
    ],
    hints=[
        Hint("The gradient of the weight is the transpose of X times G; it has the shape of the weight, (2, 2)."),
        Hint(
            "Row 0 of it belongs to the first input. Only tokens a and c have a 1 there: add their rows of G. "
            "Row 1: the same with b and c."
        ),
        Hint(
            "The bias sums all rows of G. Both, with the sums written out:",
            code="([[2 - 1, 1 + 3], [0 - 1, 1 + 3]], [2 + 0 - 1, 1 + 1 + 3])",
            answer=BOTH,
        ),
    ],
    wrong=[
        WrongAnswer(((X.T @ G).T, G.sum(axis=0)), contains="PyTorch's layout"),
        WrongAnswer((X.T @ G / 3, G.mean(axis=0)), contains="mean over the three tokens"),
        WrongAnswer((X[:2].T @ G[:2], G.sum(axis=0)), contains="a and b only"),
        WrongAnswer((X.T @ G, G), contains="this is G itself"),
        WrongAnswer((X.T @ G, G.sum(axis=1)), contains="summed over the outputs"),
        WrongAnswer((X.T @ G, G.mean(axis=0)), contains="bias's gradient is a mean"),
    ],
    explanation="All tokens share one weight, so the weight adds up what each of them sends back.",
)

# An operation of your own

LN3 = math.log(3.0)  # sigmoid(ln 3) = 3/4


def recorded_output(answer, x):
    """The reader's output for x, which must be a recorded tensor."""
    out = answer(x)
    if not isinstance(out, Tensor):
        raise Wrong(f"your function returns a {type(out).__name__}: make a Tensor of the numbers and attach to it")
    if not out.computed:
        raise Wrong("your output has no record: without attach, the gradient ends here")
    if not out.differentiable:
        raise Wrong("you return the tensor that attach was called on: return what attach returns")
    return out


def sigmoid_values(answer):
    return compare(answer(Tensor([0.0, LN3])), [0.5, 0.75], 1e-5, "for the input [0, ln 3] the output")


def sigmoid_gradient(answer):
    x = Tensor([0.0, LN3])
    recorded_output(answer, x).sum().backward()
    slope = np.array([0.25, 0.1875])
    known = {
        "the gradient is s itself: the second factor is missing": [0.5, 0.75],
        "the gradient is 1 - s: the first factor is missing": [0.5, 0.25],
        "the gradient is x (1 - x): it is the output s that belongs there": [0.0, LN3 * (1 - LN3)],
        "the gradient is 1 everywhere: it passes through unchanged": [1.0, 1.0],
        "no gradient arrives at x: is it in your closure?": [0.0, 0.0],
        "the gradient has the wrong sign": -slope,
    }
    return compare(x.grad, slope, 1e-4, "for the input [0, ln 3] the gradient", known)


def sigmoid_takes_what_arrives(answer):
    x = Tensor([0.0])
    (recorded_output(answer, x) * 8.0).sum().backward()
    known = {"the 8 of 8 · sigmoid(x) does not reach x: multiply by out.grad": [0.25]}
    return compare(x.grad, [2.0], 1e-4, "the gradient of 8 · sigmoid(x) at 0", known)


def sigmoid_adds(answer):
    x = Tensor([0.0])
    (recorded_output(answer, x) + x * 3.0).sum().backward()
    known = {"in sigmoid(x) + 3x the gradient from 3x is lost: add with +=, do not overwrite": [0.25]}
    return compare(x.grad, [3.25], 1e-4, "the gradient of sigmoid(x) + 3x at 0", known)


def sigmoid_by_closure(x):
    out = Tensor(1 / (1 + np.exp(-x.data)))

    def gradient_fn():
        x.grad += out.grad * out.data * (1 - out.data)

    return out.attach(gradient_fn, (x,))


def _sigmoid_variant(gradient_fn_of, forget_attach=False, return_out=False):
    """A sigmoid with another closure: `gradient_fn_of(x, out)` is what it does."""

    def sigmoid(x):
        out = Tensor(1 / (1 + np.exp(-x.data)))
        if forget_attach:
            return out
        handle = out.attach(lambda: gradient_fn_of(x, out), (x,))
        return out if return_out else handle

    return sigmoid


def _add(x, gradient):
    x.grad += gradient


def _overwrite(x, gradient):
    x.grad = gradient


def _right(x, out):
    _add(x, out.grad * out.data * (1 - out.data))


sigmoid = Exercise(
    id="ch01.sigmoid",
    title="An operation of your own",
    kind="build",
    stub='def sigmoid(x):\n    # your code\n    ...\n\n\ncheck("ch01.sigmoid", sigmoid)',
    properties=[
        Property("the values", sigmoid_values),
        Property("the gradient", sigmoid_gradient, points=2),
        Property("it multiplies by what arrives", sigmoid_takes_what_arrives),
        Property("it adds to what is there", sigmoid_adds),
    ],
    hints=[
        Hint("Follow `square` of this chapter: `out = Tensor(...)`, a closure, `return out.attach(closure, (x,))`."),
        Hint("x.data is a NumPy array, so forward is 1 / (1 + np.exp(-x.data)). The slope is s (1 - s), s = out.data."),
        Hint("The closure does", code="x.grad += out.grad * out.data * (1 - out.data)", answer=sigmoid_by_closure),
    ],
    wrong=[
        WrongAnswer(_sigmoid_variant(_right, forget_attach=True), contains="no record"),
        WrongAnswer(_sigmoid_variant(_right, return_out=True), contains="return what attach returns"),
        WrongAnswer(_sigmoid_variant(lambda x, out: _add(x, out.data * (1 - out.data))), contains="does not reach x"),
        WrongAnswer(
            _sigmoid_variant(lambda x, out: _overwrite(x, out.grad * out.data * (1 - out.data))),
            contains="do not overwrite",
        ),
        WrongAnswer(_sigmoid_variant(lambda x, out: _add(x, out.grad * x.data * (1 - x.data))), contains="x (1 - x)"),
        WrongAnswer(_sigmoid_variant(lambda x, out: _add(x, out.grad * out.data)), contains="second factor"),
        WrongAnswer(_sigmoid_variant(lambda x, out: _add(x, out.grad)), contains="passes through unchanged"),
        WrongAnswer(_sigmoid_variant(lambda x, out: None), contains="no gradient arrives"),
    ],
    explanation="Composing operations of the engine, 1 / (1 + (-x).exp()), is right too: it leaves several records.",
)

# Undo broadcasting

COPIED = ((3,), (4, 1), (1, 3), (4, 3), ())  # shapes that broadcast to (4, 3)


def _summed(gradient, shape):
    extra = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(extra)))
    return gradient.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)


def _case(answer, shape, large=(4, 3)):
    """None, or what is wrong with the reader's gradient of a tensor of this shape that was copied to `large`."""
    gradient = np.arange(1.0, 1.0 + math.prod(large)).reshape(large)
    got = to_array(answer(gradient.copy(), shape), "your gradient")
    case = f"from {large} to {shape}"
    if got.shape != shape:
        return f"{case}, your gradient has the shape {got.shape}: it must have the shape of the tensor"
    wanted = _summed(gradient, shape)
    known = {
        f"{case}, you took the mean: each copy moves the loss, so their gradients are added": wanted
        * (wanted.size / gradient.size),
        f"{case}, you kept one copy and dropped the others": gradient[tuple(slice(0, size) for size in shape)]
        if len(shape) == len(large)
        else gradient[(0,) * (len(large) - len(shape))],
    }
    return compare(got, wanted, 1e-6, f"{case}, your gradient", known)


def unbroadcast_leading(answer):
    return _case(answer, (3,)) or _case(answer, ())


def unbroadcast_kept(answer):
    return _case(answer, (4, 1)) or _case(answer, (1, 3))


def unbroadcast_nothing(answer):
    return _case(answer, (4, 3))


def unbroadcast_both(answer):
    return _case(answer, (4, 1), (2, 4, 3))


def unbroadcast_by_sums(gradient, shape):
    extra = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(extra)))
    copied = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return gradient.sum(axis=copied, keepdims=True)


def _averages(gradient, shape):
    extra = gradient.ndim - len(shape)
    gradient = gradient.mean(axis=tuple(range(extra)))
    return gradient.mean(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)


def _only_leading(gradient, shape):
    return gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))


def _loses_axes(gradient, shape):
    gradient = _only_leading(gradient, shape)
    return gradient.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1))


def _takes_first(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient[0]
    return gradient[tuple(slice(0, size) for size in shape)]


def _only_sizes_of_one(gradient, shape):
    return gradient.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)


def _counts_from_the_left(gradient, shape):
    """Right for (4, 3), but with a leading axis the axes of size 1 are looked for before the leading one is gone."""
    ones = tuple(axis for axis, size in enumerate(shape) if size == 1)
    gradient = gradient.sum(axis=ones, keepdims=True)
    return gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))


undo = Exercise(
    id="ch01.unbroadcast",
    title="Undo broadcasting",
    kind="build",
    stub='def unbroadcast(gradient, shape):\n    # your code\n    ...\n\n\ncheck("ch01.unbroadcast", unbroadcast)',
    properties=[
        Property("axes that were added in front", unbroadcast_leading),
        Property("axes of size 1", unbroadcast_kept),
        Property("nothing was broadcast", unbroadcast_nothing),
        Property("both at once", unbroadcast_both),
    ],
    hints=[
        Hint("Two things may have happened: axes were added in front, and axes of size 1 were stretched. Undo each."),
        Hint("There were gradient.ndim - len(shape) axes added in front: sum over them first. Then keepdims=True."),
        Hint(
            "After the sum over the axes in front:",
            code="copied = tuple(axis for axis, size in enumerate(shape) if size == 1)",
            answer=unbroadcast_by_sums,
        ),
    ],
    wrong=[
        WrongAnswer(_averages, contains="you took the mean"),
        WrongAnswer(_takes_first, contains="kept one copy"),
        WrongAnswer(_only_leading, contains="to (4, 1), your gradient has the shape (4, 3)"),
        WrongAnswer(_loses_axes, contains="to (4, 1), your gradient has the shape (4,)"),
        WrongAnswer(_only_sizes_of_one, contains="to (3,), your gradient has the shape (4, 3)"),
        WrongAnswer(_counts_from_the_left, contains="from (2, 4, 3)"),
    ],
    explanation="Copied on the way forward, summed on the way back: engines call it whenever a gradient comes in.",
)

# Find the bug

SQUARE = np.array([[1.0, 2.0], [3.0, 4.0]])
WIDE = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, -1.0]])


def _backward(answer, weight, x=X):
    """Output and gradients (x, weight, bias) when the gradient 1, 4, 9, ... arrives at the outputs."""
    tensors = [Tensor(x), Tensor(weight), Tensor(np.ones(weight.shape[1]))]
    out = answer(*tensors)
    if not isinstance(out, Tensor) or not out.differentiable or not out.computed:
        raise Wrong("your function must return what attach returns, a recorded tensor")
    arriving = np.arange(1.0, 1.0 + out.data.size).reshape(out.shape) ** 2
    out.backward(arriving)
    return out, tensors, arriving


def bug_output(answer):
    out, (x, weight, bias), _ = _backward(answer, SQUARE)
    return compare(out, x.data @ weight.data + bias.data, 1e-5, "the output")


def bug_weight(answer):
    _, (x, weight, _), arriving = _backward(answer, SQUARE)
    known = {"the gradient of the weight is transposed: it was right before": arriving.T @ x.data}
    return compare(weight.grad, x.data.T @ arriving, 1e-5, "the gradient of the weight", known)


def bug_bias(answer):
    _, (_, _, bias), arriving = _backward(answer, SQUARE)
    return compare(bias.grad, arriving.sum(axis=0), 1e-5, "the gradient of the bias")


def bug_input(answer):
    _, (x, weight, _), arriving = _backward(answer, SQUARE)
    if not x.has_grad:
        return "x received nothing: with two layers, the first one would never learn"
    text = (
        "[1, 4] arrives at the outputs of the first token, and its first number moves these by [1, 2], row 0 of the "
        f"weight; your x receives {show(x.grad[0, 0])} there"
    )
    known = {text: arriving @ weight.data}
    return compare(x.grad, arriving @ weight.data.T, 1e-5, "the gradient of x", known)


def bug_wide(answer):
    _, (x, weight, _), arriving = _backward(answer, WIDE)
    return compare(x.grad, arriving @ weight.data.T, 1e-5, "with 2 inputs and 3 outputs, the gradient of x")


def mended_linear(x, weight, bias):
    out = Tensor(x.data @ weight.data + bias.data)

    def gradient_fn():
        x.grad += out.grad @ weight.data.T
        weight.grad += x.data.T @ out.grad
        bias.grad += out.grad

    return out.attach(gradient_fn, (x, weight, bias))


def broken_linear(x, weight, bias):
    out = Tensor(x.data @ weight.data + bias.data)

    def gradient_fn():
        x.grad += out.grad @ weight.data
        weight.grad += x.data.T @ out.grad
        bias.grad += out.grad

    return out.attach(gradient_fn, (x, weight, bias))


def _without_input(x, weight, bias):
    out = Tensor(x.data @ weight.data + bias.data)

    def gradient_fn():
        weight.grad += x.data.T @ out.grad
        bias.grad += out.grad

    return out.attach(gradient_fn, (x, weight, bias))


def _transposed_weight(x, weight, bias):
    out = Tensor(x.data @ weight.data + bias.data)

    def gradient_fn():
        x.grad += out.grad @ weight.data.T
        weight.grad += out.grad.T @ x.data
        bias.grad += out.grad

    return out.attach(gradient_fn, (x, weight, bias))


def _transposed_forward(x, weight, bias):
    out = Tensor(x.data @ weight.data.T + bias.data)

    def gradient_fn():
        x.grad += out.grad @ weight.data
        weight.grad += out.grad.T @ x.data
        bias.grad += out.grad

    return out.attach(gradient_fn, (x, weight, bias))


def _averaged_bias(x, weight, bias):
    out = Tensor(x.data @ weight.data + bias.data)

    def gradient_fn():
        x.grad += out.grad @ weight.data.T
        weight.grad += x.data.T @ out.grad
        bias.grad += out.grad.mean(axis=0)

    return out.attach(gradient_fn, (x, weight, bias))


bug = Exercise(
    id="ch01.bug",
    title="It fits the line, and it is wrong",
    kind="find the bug",
    stub='mended = ...  # your function, mended from broken_linear\n\ncheck("ch01.bug", mended)',
    properties=[
        Property("the output", bug_output),
        Property("the gradient of the weight", bug_weight),
        Property("the gradient of the bias", bug_bias),
        Property("the gradient of the input", bug_input, points=2),
        Property("other numbers of inputs and outputs", bug_wide),
    ],
    hints=[
        Hint("Its inputs were points, and nobody looks at the gradient of data. Which of the three lines is about it?"),
        Hint("Write the shapes: with 2 inputs and 3 outputs, out.grad is (N, 3) and the weight (2, 3). What fits?"),
        Hint("The line about x is", code="x.grad += out.grad @ weight.data.T", answer=mended_linear),
    ],
    wrong=[
        WrongAnswer(broken_linear, contains="row 0 of the weight"),
        WrongAnswer(_without_input, contains="the first one would never learn"),
        WrongAnswer(_transposed_weight, contains="it was right before"),
        WrongAnswer(_transposed_forward, contains="the output: yours is"),
        WrongAnswer(_averaged_bias, contains="the gradient of the bias: yours is"),
    ],
    explanation="A square weight hides a missing transpose: test layers with different numbers of inputs and outputs.",
)

EXERCISES = [graph, linear, sigmoid, undo, bug]
