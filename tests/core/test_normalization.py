"""Layer normalisation: the formula, its gradient, constant rows."""

import numpy as np
import pytest

from src.core import LayerNorm, Tensor, check_gradients


def filled(size, rng, eps=1e-5):
    layer = LayerNorm(size, eps=eps)
    layer.weight.data, layer.bias.data = rng.uniform(0.5, 2.0, size), rng.standard_normal(size)
    return layer


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_values_and_gradients(shape, eps, rng):
    layer, x = filled(4, rng, eps), Tensor(rng.standard_normal(shape))
    mean, variance = x.data.mean(-1, keepdims=True), x.data.var(-1, keepdims=True)
    expected = (x.data - mean) / (variance + eps) ** 0.5 * layer.weight.data + layer.bias.data
    np.testing.assert_allclose(layer(x).data, expected, rtol=1e-12)
    assert check_gradients(lambda *_: layer(x), x, layer.weight, layer.bias) < 1e-7


def test_it_starts_as_plain_normalisation_with_the_usual_eps():
    layer = LayerNorm(3)
    assert layer.eps == 1e-5
    np.testing.assert_array_equal(layer.weight.data, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(layer.bias.data, [0.0, 0.0, 0.0])


@pytest.mark.usefixtures("double")
def test_a_shift_and_a_scale_of_the_input_change_nothing(rng):
    x, layer = rng.standard_normal((5, 8)), LayerNorm(8, eps=0.0)
    np.testing.assert_allclose(layer(Tensor(7.0 + 3.0 * x)).data, layer(Tensor(x)).data, rtol=1e-11)


def test_a_constant_input_still_trains_weight_and_bias():
    layer = LayerNorm(3)
    x = Tensor([[1, 2, 3]]) * 1.0
    layer(x).sum().backward()
    assert layer.weight.has_grad and layer.bias.has_grad and not x.has_grad
    np.testing.assert_array_equal(layer.bias.grad, [1.0, 1.0, 1.0])


def test_one_channel_gives_the_bias(rng):
    layer = filled(1, rng)
    x = Tensor([[3.0], [-2.0]])
    out = layer(x)
    out.sum().backward()
    np.testing.assert_array_equal(out.data, np.broadcast_to(layer.bias.data, (2, 1)))
    np.testing.assert_array_equal(x.grad, [[0.0], [0.0]])
