"""ReLU, both GELUs, erf and softmax: published values, extremes, gradients."""

import math

import numpy as np
import pytest

from src.core import GELU, ReLU, Softmax, Tensor, check_gradients
from src.core.erf import erf

LINE = np.linspace(-8.0, 8.0, 3201)


def test_relu_and_its_slope_at_zero():
    x = Tensor([-2.0, 0.0, 3.0])
    out = ReLU()(x)
    out.backward([1.0, 1.0, 1.0])
    np.testing.assert_array_equal(out.data, [0.0, 0.0, 3.0])
    np.testing.assert_array_equal(x.grad, [0.0, 0.0, 1.0])


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "layer", [ReLU(), GELU(), GELU("tanh"), Softmax()], ids=["relu", "gelu", "gelu tanh", "softmax"]
)
def test_gradients(layer, rng):
    x = rng.standard_normal((2, 3, 4))
    x[np.abs(x) < 0.01] = 1.0  # ReLU has no slope at 0
    assert check_gradients(layer, Tensor(x)) < 1e-7


@pytest.mark.usefixtures("double")
def test_erf_is_the_standard_librarys():
    expected = [math.erf(x) for x in LINE]
    np.testing.assert_allclose(erf(LINE), expected, rtol=0, atol=2e-15)
    single = erf(LINE.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=0, atol=3e-7)
    np.testing.assert_array_equal(erf(np.array([np.inf, -np.inf, 100.0])), [1.0, -1.0, 1.0])
    assert np.signbit(erf(np.array([-0.0])))[0] and np.isnan(erf(np.array([np.nan])))[0]


@pytest.mark.usefixtures("double")
def test_exact_gelu_is_x_times_the_normal_area():
    expected = [x * 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in LINE]
    np.testing.assert_allclose(GELU()(Tensor(LINE)).data, expected, rtol=0, atol=1e-14)


@pytest.mark.usefixtures("double")
def test_tanh_gelu_is_its_published_formula():
    expected = [0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))) for x in LINE]
    np.testing.assert_allclose(GELU(approximate="tanh")(Tensor(LINE)).data, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("form", ["none", "tanh"])
@pytest.mark.parametrize("size", [1e3, 1e10, 1e18])
def test_gelu_of_large_numbers_is_finite_forward_and_backward(form, size):
    x = Tensor([-size, size])
    out = GELU(form)(x)
    out.backward([1.0, 1.0])
    np.testing.assert_array_equal(out.data, np.float32([0.0, size]))
    np.testing.assert_array_equal(x.grad, [0.0, 1.0])


def test_softmax_rows_add_up_and_do_not_depend_on_a_shift(rng):
    x = rng.standard_normal((3, 2, 5))
    weights = Softmax()(Tensor(x)).data
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(Softmax()(Tensor(x + 50.0)).data, weights, rtol=1e-5)
    assert (weights.argmax(-1) == x.argmax(-1)).all()


def test_softmax_of_one_row():
    np.testing.assert_allclose(Softmax()(Tensor(np.log([1.0, 2.0, 4.0]))).data, [1 / 7, 2 / 7, 4 / 7], rtol=1e-6)


def test_softmax_leaves_its_input_alone():
    x = Tensor([[1.0, -np.inf], [-np.inf, -np.inf]])
    kept = x.data.copy()
    Softmax()(x)
    np.testing.assert_array_equal(x.data, kept)


def test_softmax_of_forbidden_rows_is_zero_with_zero_gradient():
    x = Tensor([[0.0, -np.inf, 0.0], [-np.inf, -np.inf, -np.inf]])
    out = Softmax()(x)
    np.testing.assert_array_equal(out.data, [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])
    out.backward([[1.0, 5.0, -1.0], [1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(x.grad, [[0.5, 0.0, -0.5], [0.0, 0.0, 0.0]])


def test_one_score_has_all_the_weight():
    x = Tensor([[3.0], [-1e30]])
    out = Softmax()(x)
    out.backward([[2.0], [2.0]])
    np.testing.assert_array_equal(out.data, [[1.0], [1.0]])
    np.testing.assert_array_equal(x.grad, [[0.0], [0.0]])
