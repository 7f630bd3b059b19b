"""Dropout: which numbers fall, what the others become, the same ones in the gradient."""

import numpy as np
import pytest

from src.core import Dropout, Tensor, seed


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.9])
def test_share_and_mean(rate):
    out = Dropout(rate)(Tensor(np.ones(100_000))).data
    assert abs((out == 0).mean() - rate) < 0.01
    assert abs(out.mean() - 1.0) < 0.02
    np.testing.assert_allclose(out[out != 0], 1.0 / (1.0 - rate), rtol=1e-6)


def test_the_gradient_takes_the_same_numbers(rng):
    x = Tensor(rng.standard_normal((20, 30)))
    out = Dropout(0.4)(x)
    grad = rng.standard_normal((20, 30))
    out.backward(grad)
    np.testing.assert_allclose(x.grad, np.where(out.data == 0, 0.0, grad / 0.6), rtol=1e-5)


def test_nothing_happens_in_evaluation_and_at_rate_zero():
    x = Tensor([1.0, 2.0])
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert Dropout(0)(x) is x


def test_rate_one_gives_zeros():
    x = Tensor([1.0, 2.0])
    out = Dropout(1.0)(x)
    out.sum().backward()
    np.testing.assert_array_equal(out.data, [0.0, 0.0])
    np.testing.assert_array_equal(x.grad, [0.0, 0.0])


def test_randomness_comes_from_the_generator_passed_or_from_the_default_one():
    x = Tensor(np.ones(50))
    own = [Dropout(0.5, np.random.default_rng(3))(x).data for _ in range(2)]
    np.testing.assert_array_equal(*own)
    layer = Dropout(0.5)
    first, second = layer(x).data, layer(x).data
    assert not np.array_equal(first, second)
    seed(0)
    np.testing.assert_array_equal(layer(x).data, first)


def test_both_precisions_drop_the_same_numbers():
    seed(0)
    single = Dropout(0.5)(Tensor(np.ones(50))).data
    seed(0)
    with Tensor.precision(np.float64):
        double = Dropout(0.5)(Tensor(np.ones(50))).data
    np.testing.assert_array_equal(single, double)
