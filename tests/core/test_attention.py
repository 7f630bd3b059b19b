"""Scaled dot-product attention: against a loop over queries, masks, shapes, gradients."""

import math

import numpy as np
import pytest

from src.core import Softmax, Tensor, check_gradients, scaled_dot_product_attention
from src.core.attention import attention_weights

pytestmark = pytest.mark.usefixtures("double")
SHAPES = [((), 3, 3, 2, 2), ((2,), 3, 5, 4, 1), ((2, 3), 1, 4, 2, 3), ((2,), 1, 1, 1, 1), ((1, 2), 4, 4, 3, 3)]


def by_hand(query, key, value, allowed):
    """One query after the other, with the exponentials written out."""
    output = np.zeros((*query.shape[:-1], value.shape[-1]))
    weights = np.zeros((*query.shape[:-1], key.shape[-2]))
    for place in np.ndindex(query.shape[:-1]):
        batch = place[:-1]
        scores = [
            math.exp(q_dot_k / math.sqrt(query.shape[-1])) * may
            for q_dot_k, may in zip(key[batch] @ query[place], allowed[place], strict=True)
        ]
        total = sum(scores) or 1.0
        weights[place] = [score / total for score in scores]
        output[place] = sum(weight * row for weight, row in zip(weights[place], value[batch], strict=True))
    return output, weights


def inputs(rng, leading, queries, keys, size, width):
    shapes = ((*leading, queries, size), (*leading, keys, size), (*leading, keys, width))
    return tuple(Tensor(rng.standard_normal(shape)) for shape in shapes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("masked", ["no", "table", "row", "full"])
def test_equals_a_loop_over_queries(shape, causal, masked, rng):
    leading, queries, keys = shape[:3]
    q, k, v = inputs(rng, *shape)
    sizes = {"no": None, "table": (queries, keys), "row": (1, keys), "full": (*leading, queries, keys)}[masked]
    mask = None if sizes is None else rng.random(sizes) < 0.7
    allowed = (
        np.ones((*leading, queries, keys), bool) if mask is None else np.broadcast_to(mask, (*leading, queries, keys))
    )
    if causal:
        allowed = allowed & np.array([[j <= i + keys - queries for j in range(keys)] for i in range(queries)])
    output, weights = scaled_dot_product_attention(q, k, v, mask=mask, causal=causal)
    expected_output, expected_weights = by_hand(q.data, k.data, v.data, allowed)
    np.testing.assert_allclose(weights.data, expected_weights, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(output.data, expected_output, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("causal", [True, False])
def test_gradients_of_output_and_of_weights(shape, causal, rng):
    q, k, v = inputs(rng, *shape)
    mask = rng.random((shape[1], shape[2])) < 0.8
    for part in (0, 1):
        assert (
            check_gradients(lambda *qkv, part=part: scaled_dot_product_attention(*qkv, mask, causal)[part], q, k, v)
            < 1e-7
        )


def test_gradients_when_one_tensor_plays_all_roles(rng):
    x = Tensor(rng.standard_normal((2, 3, 4)))
    assert check_gradients(lambda x: scaled_dot_product_attention(x, x, x, causal=True)[0], x) < 1e-7


def test_the_fused_operation_equals_the_composed_one(rng):
    q, k, v = inputs(rng, (2,), 3, 5, 4, 2)
    fused, _ = scaled_dot_product_attention(q, k, v)
    composed = Softmax()(q @ k.transpose((0, 2, 1)) / 2.0) @ v
    np.testing.assert_allclose(fused.data, composed.data, rtol=1e-12)


def test_inputs_stay_as_they_were(rng):
    q, k, v = inputs(rng, (2,), 3, 5, 4, 2)
    kept = [tensor.data.copy() for tensor in (q, k, v)]
    output, weights = scaled_dot_product_attention(q, k, v, causal=True)
    (output.sum() + weights.sum()).backward()
    for tensor, before in zip((q, k, v), kept, strict=True):
        np.testing.assert_array_equal(tensor.data, before)


@pytest.mark.parametrize("role", [0, 1, 2])
def test_a_constant_gets_no_gradient(role, rng):
    tensors = list(inputs(rng, (2,), 3, 3, 4, 2))
    with Tensor.no_grad():
        tensors[role] = tensors[role] * 1.0
    scaled_dot_product_attention(*tensors)[0].sum().backward()
    assert [tensor.has_grad for tensor in tensors] == [index != role for index in range(3)]


def test_large_scores_do_not_overflow():
    with Tensor.precision(np.float32):
        x = Tensor([[1e4, 0.0], [0.0, 1e4]])
        output, weights = scaled_dot_product_attention(x, x, Tensor([[1.0], [2.0]]))
        output.sum().backward()
        np.testing.assert_array_equal(weights.data, np.eye(2))
        assert np.isfinite(x.grad).all() and output.dtype == np.float32


def test_an_empty_batch_gives_an_empty_result():
    output, weights = scaled_dot_product_attention(Tensor(np.zeros((0, 3, 4))), *[Tensor(np.zeros((0, 5, 4)))] * 2)
    assert (output.shape, weights.shape) == ((0, 3, 4), (0, 3, 5))


def test_weights_alone_are_not_causal_unless_told(rng):
    q, k, v = inputs(rng, (2,), 3, 3, 4, 2)
    np.testing.assert_array_equal(attention_weights(q, k).data, scaled_dot_product_attention(q, k, v)[1].data)
    np.testing.assert_array_equal(
        attention_weights(q, k, causal=True).data * ~np.tri(3, dtype=bool), np.zeros((2, 3, 3))
    )
