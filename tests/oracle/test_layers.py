"""Layers against PyTorch: value, gradient of the input and gradient of every parameter."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from src.core import GELU, Dropout, Embedding, LayerNorm, Linear, ReLU, Softmax, Tensor, Tril
from tests.oracle.compare import DOUBLE, SINGLE, Level, compare, normal, uniform


def with_parameters(layer, **parameters):
    """The layer with its parameters replaced, so that they are inputs like any other."""
    for name, tensor in parameters.items():
        assert getattr(layer, name).shape == tensor.shape
        setattr(layer, name, tensor)
    return layer


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (2, 1, 4, 3), (0, 3), (1, 1, 3)], ids=str)
def test_linear(shape):
    """PyTorch holds the weight as (outputs, inputs), this engine as (inputs, outputs)."""
    x, weight, bias = normal(*shape), normal(3, 5, seed=1), normal(5, seed=2)
    compare(
        lambda x, w, b: with_parameters(Linear(3, 5), weight=w, bias=b)(x),
        lambda x, w, b: F.linear(x, w.T, b),
        x,
        weight,
        bias,
    )
    compare(
        lambda x, w: with_parameters(Linear(3, 5, bias=False), weight=w)(x), lambda x, w: F.linear(x, w.T), x, weight
    )


@pytest.mark.parametrize("ids", [2, [0, 0, 1], [[4, 1, 4], [4, 0, 2]], np.zeros((2, 0), dtype=int)], ids=str)
def test_embedding(ids):
    compare(
        lambda ids, w: with_parameters(Embedding(5, 3), weight=w)(ids),
        lambda ids, w: F.embedding(ids, w),
        np.asarray(ids, dtype=np.int64),
        normal(5, 3),
    )


@pytest.mark.parametrize("eps", [1e-5, 1e-3])
@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 6)], ids=str)
def test_layer_norm(shape, eps):
    compare(
        lambda x, w, b: with_parameters(LayerNorm(6, eps), weight=w, bias=b)(x),
        lambda x, w, b: F.layer_norm(x, (6,), w, b, eps),
        normal(*shape) * 3 + 1,
        normal(6, seed=1),
        normal(6, seed=2),
    )


def layer_norm(x):
    return LayerNorm(x.shape[-1])(x)


def torch_layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


@pytest.mark.parametrize("size", [1, 2, 64, 65, 768])
def test_layer_norm_of_other_sizes(size):
    compare(layer_norm, torch_layer_norm, normal(3, size))


@pytest.mark.parametrize("number", [0.0, 0.1, 3.3, 100.7, -10000.1])
@pytest.mark.parametrize("size", [4, 64, 128])
def test_layer_norm_of_equal_numbers_is_zero(size, number):
    """A mean off by one rounding would show here, divided by sqrt(eps): 2e-3 for 64 times 100.7 in float32."""
    with Tensor.precision(np.float32):
        np.testing.assert_array_equal(layer_norm(Tensor(np.full((2, size), number))).data, 0.0)
    with Tensor.precision(np.float64):
        np.testing.assert_allclose(layer_norm(Tensor(np.full((2, size), number))).data, 0.0, atol=1e-9)


@pytest.mark.parametrize("number", [0.0, 3.3])
def test_layer_norm_of_equal_numbers_has_the_gradient_of_torch(number):
    compare(layer_norm, torch_layer_norm, np.full((2, 4), number))


@pytest.mark.parametrize("offset", [10.0, 100.0, 1000.0])
def test_layer_norm_far_from_zero_is_as_close_to_the_truth_as_torch(offset):
    """In float32 both lose digits that the input no longer has, so both are measured against float64."""
    x = (normal(32, 64) + offset).astype(np.float32)
    truth = torch_layer_norm(torch.tensor(x.astype(np.float64))).numpy()
    own = np.abs(LayerNorm(64)(Tensor(x)).data - truth).max()
    theirs = np.abs(torch_layer_norm(torch.tensor(x)).numpy() - truth).max()
    assert own <= theirs < 1e-6 * offset


def test_dropout_in_evaluation_and_at_rate_zero_is_the_identity():
    compare(lambda x: Dropout(0.5).eval()(x), lambda x: F.dropout(x, 0.5, training=False), normal(4, 5))
    compare(lambda x: Dropout(0.0)(x), lambda x: F.dropout(x, 0.0), normal(4, 5))
    compare(lambda x: Dropout(1.0)(x), lambda x: F.dropout(x, 1.0), normal(4, 5))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.9])
def test_dropout_in_training(rate):
    """The two cannot draw the same places; but where a number is kept, value and gradient are torch's."""
    kept = {}

    def ours(x):
        out = Dropout(rate, np.random.default_rng(0))(x)
        kept["mask"] = torch.tensor(out.data != 0)
        return out

    def theirs(x):
        ones = F.dropout(torch.ones(10_000, dtype=x.dtype), rate)
        return torch.where(kept["mask"], x * ones.max(), 0.0)  # torch's own scale

    compare(ours, theirs, uniform(0.5, 1.5, 100, 100))
    assert abs(float(kept["mask"].double().mean()) - (1 - rate)) < 4 * np.sqrt(rate * (1 - rate) / 10_000)


def test_relu():
    x = np.concatenate([np.linspace(-10, 10, 201), [0.0, -0.0, 1e-30, -1e-30]])
    compare(lambda x: ReLU()(x), F.relu, x)
    compare(lambda x: ReLU()(x), F.relu, normal(2, 3, 4))


# The two forms of GELU differ by 4.7e-4 at most; with this tolerance of the value neither can pass for the other.
# Gradients near -5 are about -1e-6: torch rounds them to 0 there and is 9.8e-7 off, this engine up to 4e-7 to the other
# side. So the two may differ by 2e-6, and the next test holds this engine to 1e-6 of float64.
NARROW = Level(SINGLE.dtype, value=(1.3e-6, 1e-6), gradient=(1e-4, 2e-6))
LINE = np.linspace(-10, 10, 2001)


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_gelu(form):
    for x in (LINE, normal(2, 3, 4)):
        compare(lambda x: GELU(form)(x), lambda x: F.gelu(x, approximate=form), x, levels=(NARROW, DOUBLE))


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_the_gradient_of_gelu_in_float32_is_close_to_the_truth(form):
    single = LINE.astype(np.float32)
    own, truth = Tensor(single), torch.tensor(single.astype(np.float64), requires_grad=True)
    GELU(form)(own).backward(np.ones_like(single))
    F.gelu(truth, approximate=form).backward(torch.ones_like(truth))
    np.testing.assert_allclose(np.asarray(own.grad), truth.grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("form, other", [("none", "tanh"), ("tanh", "none")])
def test_the_forms_of_gelu_cannot_be_confused(form, other):
    with pytest.raises(AssertionError, match="output 0"):
        compare(lambda x: GELU(form)(x), lambda x: F.gelu(x, approximate=other), LINE, levels=(NARROW,))


@pytest.mark.parametrize("shape", [(1,), (5,), (4, 5), (2, 3, 4, 5)], ids=str)
def test_softmax(shape):
    compare(lambda x: Softmax()(x), lambda x: F.softmax(x, -1), normal(*shape) * 3)


def test_softmax_of_large_and_of_forbidden_scores():
    compare(lambda x: Softmax()(x), lambda x: F.softmax(x, -1), np.array([[1e4, -1e4], [-1e4, -1e4], [88.0, 89.0]]))
    forbidden = np.array([[1.0, -np.inf, 2.0], [-np.inf, -np.inf, 0.5], [0.0, 1.0, 2.0]])
    compare(lambda x: Softmax()(x), lambda x: F.softmax(x, -1), forbidden)


def test_softmax_of_a_row_of_forbidden_scores():
    """torch's softmax gives NaN, its attention zeros. Here both give zeros."""
    allowed = np.array([[True, False, True], [False, False, False], [True, True, True]])
    scores = normal(3, 3)

    def ours(x):
        return Softmax()(x + np.where(allowed, 0.0, -np.inf))

    def theirs(x):  # values = identity: the output is the weights; the keys are scaled to undo 1 / sqrt(3)
        identity = torch.eye(3, dtype=x.dtype)
        return F.scaled_dot_product_attention(x, identity, identity, attn_mask=torch.tensor(allowed), scale=1.0)

    compare(ours, theirs, scores)


@pytest.mark.parametrize("value", [0.0, -3.5, -1e9])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (5, 5), (2, 3, 2, 2)], ids=str)
def test_tril(shape, value):
    def theirs(x):
        return x.masked_fill(~torch.ones(shape[-2:], dtype=torch.bool).tril(), value)

    compare(lambda x: Tril(value)(x), theirs, normal(*shape))


def test_tril_with_fewer_queries_than_keys_counts_from_the_end():
    def theirs(x):
        return x.masked_fill(~torch.ones(2, 5, dtype=torch.bool).tril(diagonal=3), -1.0)

    compare(lambda x: Tril(-1.0)(x), theirs, normal(3, 2, 5))


def test_tril_and_softmax():
    def theirs(x):
        return F.softmax(x.masked_fill(~torch.ones(4, 4, dtype=torch.bool).tril(), -torch.inf), -1)

    compare(lambda x: Softmax()(Tril()(x)), theirs, normal(2, 4, 4))
