"""The linear layer and the embedding: values, gradients, first weights."""

import numpy as np
import pytest

from src.core import Embedding, Linear, Tensor, check_gradients


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (2, 1, 4, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_values_and_gradients(shape, bias, rng):
    layer, x = Linear(3, 2, bias=bias), Tensor(rng.standard_normal(shape))
    if bias:
        layer.bias.data = rng.standard_normal(2)
    expected = x.data @ layer.weight.data + (layer.bias.data if bias else 0.0)
    np.testing.assert_allclose(layer(x).data, expected, rtol=1e-13)
    assert check_gradients(lambda *_: layer(x), x, *layer.parameters) < 1e-7


def test_linear_without_bias_has_one_parameter():
    assert [name for name, _ in Linear(3, 2, bias=False).named_parameters()] == ["weight"]
    assert Linear(3, 2, bias=False).bias is None
    assert [tensor.shape for tensor in Linear(3, 2).parameters] == [(3, 2), (2,)]


def test_linear_starts_with_variance_two_over_inputs_and_no_bias():
    layer = Linear(400, 300)
    assert abs(layer.weight.data.var() * 400 / 2 - 1) < 0.02
    assert abs(layer.weight.data.mean()) < 1e-3
    assert not layer.bias.data.any()


def test_embedding_starts_with_deviation_one_tenth():
    assert abs(Embedding(400, 300).weight.data.std() * 10 - 1) < 0.02


@pytest.mark.parametrize("build", [lambda g: Linear(3, 2, generator=g), lambda g: Embedding(3, 2, generator=g)])
def test_a_generator_of_ones_own(build):
    first, second = build(np.random.default_rng(5)), build(np.random.default_rng(5))
    np.testing.assert_array_equal(first.weight.data, second.weight.data)
    assert not np.array_equal(build(None).weight.data, build(None).weight.data)


def test_linear_takes_integers_as_numbers():
    layer = Linear(2, 2)
    np.testing.assert_array_equal(layer(Tensor([[1, 2]])).data, layer(Tensor([[1.0, 2.0]])).data)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("ids", [2, [1], [0, 2, 2], [[0, 1, 1], [3, 3, 3]], [[]]])
def test_embedding_values_and_gradients(ids):
    layer, ids = Embedding(4, 3), Tensor(np.array(ids, dtype=int))
    np.testing.assert_array_equal(layer(ids).data, layer.weight.data[ids.data])
    assert layer(ids).shape == (*ids.shape, 3)
    assert check_gradients(lambda weight: layer(ids), layer.weight) < 1e-7
