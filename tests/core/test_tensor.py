"""Arithmetic: values by NumPy, gradients by central differences, every broadcast pattern."""

import math

import numpy as np
import pytest

from src.core import Tensor, check_gradients

pytestmark = pytest.mark.usefixtures("double")

PATTERNS = [
    ((), ()),
    ((3,), ()),
    ((), (5, 4)),
    ((3,), (2, 3)),
    ((2, 3), (3,)),
    ((2, 3), (2, 3)),
    ((2, 1), (1, 3)),
    ((4, 1), (1, 4)),
    ((1,), (3,)),
    ((1, 1), (3,)),
    ((2, 1, 3), (4, 1)),
    ((2, 1, 3, 2), (2, 1, 3, 1)),
    ((1, 3, 1), (2, 3, 4)),
]
BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}
UNARY = {
    "negative": lambda x: -x,
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "tanh": lambda x: x.tanh(),
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "fourth": lambda x: x**4,
    "root": lambda x: x**0.5,
    "inverse": lambda x: x**-1,
    "first": lambda x: x**1,
    "zeroth plus itself": lambda x: x**0 + x,
    "array of powers": lambda x: x ** np.array([[0.0, 1.0, 2.5], [3.0, -1.0, 0.5]]),
    "power of two": lambda x: 2**x,
    "number over": lambda x: 3 / x,
    "number minus": lambda x: 3 - x,
    "array plus": lambda x: np.array([1.0, 2.0, 3.0]) + x,
    "array times": lambda x: np.array([[1.0], [2.0]]) * x,
    "array minus": lambda x: np.array([1.0, 2.0, 3.0]) - x,
    "minus array": lambda x: x - np.array([1.0, 2.0, 3.0]),
    "array over": lambda x: np.array([1.0, 2.0, 3.0]) / x,
    "array product": lambda x: np.array([[1.0, 2.0], [3.0, 5.0]]) @ x,
    "product with array": lambda x: x @ np.array([[1.0], [2.0], [4.0]]),
    "used twice": lambda x: x * x + x / (x + 1),
    "reshape": lambda x: x.reshape(3, 2) * np.arange(6.0).reshape(3, 2),
    "reshape to a tuple": lambda x: x.reshape((3, -1)).exp(),
    "transpose": lambda x: x.transpose((1, 0)) * np.arange(6.0).reshape(3, 2),
    "row": lambda x: x[1],
    "column": lambda x: x[:, 2],
    "reversed": lambda x: x[::-1, ::2],
    "repeated": lambda x: x[[0, 1, 0, 0]],
    "pairs": lambda x: x[[0, 1, 0], [2, 2, 2]],
    "new axis": lambda x: x[:, None] * np.ones((2, 4, 3)),
    "boolean": lambda x: x[np.array([[True, False, True], [False, False, True]])],
    "by an integer tensor": lambda x: x[Tensor([1, 1, 0])],
}
MATRICES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (2, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
]
REDUCTIONS = [
    (axis, keepdims) for axis in (None, 0, 1, -1, (0,), (1, 2), (-1, 0), (0, 1, 2)) for keepdims in (False, True)
]


def positive(rng, shape):
    return Tensor(rng.uniform(0.5, 2.0, shape))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("left, right", PATTERNS)
def test_binary_operations_and_their_broadcasts(name, left, right, rng):
    a, b = positive(rng, left), positive(rng, right)
    out = BINARY[name](a, b)
    np.testing.assert_array_equal(out.data, BINARY[name](a.data, b.data))
    assert check_gradients(BINARY[name], a, b) < 1e-7
    assert a.grad.shape == a.shape and b.grad.shape == b.shape


@pytest.mark.parametrize("name", UNARY)
def test_operations_on_one_tensor(name, rng):
    assert check_gradients(UNARY[name], positive(rng, (2, 3))) < 1e-7


@pytest.mark.parametrize("name, function", [("exp", np.exp), ("log", np.log), ("tanh", np.tanh)])
def test_values_of_functions(name, function, rng):
    x = positive(rng, (2, 3))
    np.testing.assert_array_equal(getattr(x, name)().data, function(x.data))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, -1, 0.5, np.array([1.0, 2.0, 3.0])])
def test_powers_equal_numpys(exponent, rng):
    x = positive(rng, (2, 3))
    np.testing.assert_allclose((x**exponent).data, x.data**exponent, rtol=1e-15)


def test_a_power_of_zero_has_finite_gradients():
    x = Tensor([0.0, -2.0])
    for exponent, expected in ((0, [0.0, 0.0]), (1, [1.0, 1.0]), (2, [0.0, -4.0]), (3, [0.0, 12.0])):
        x.grad = None
        (x**exponent).sum().backward()
        np.testing.assert_array_equal(x.grad, expected)


@pytest.mark.parametrize("left, right", MATRICES)
def test_matrix_products(left, right, rng):
    a, b = positive(rng, left), positive(rng, right)
    np.testing.assert_allclose((a @ b).data, a.data @ b.data, rtol=1e-14)
    assert (a @ b).shape == np.shape(a.data @ b.data)
    assert check_gradients(lambda a, b: a @ b, a, b) < 1e-7


@pytest.mark.parametrize("axis, keepdims", REDUCTIONS)
def test_sum_and_mean(axis, keepdims, rng):
    x = positive(rng, (2, 3, 4))
    np.testing.assert_allclose(x.sum(axis, keepdims).data, x.data.sum(axis=axis, keepdims=keepdims), rtol=1e-14)
    np.testing.assert_allclose(x.mean(axis, keepdims).data, x.data.mean(axis=axis, keepdims=keepdims), rtol=1e-14)
    assert check_gradients(lambda x: x.sum(axis=axis, keepdims=keepdims), x) < 1e-7
    assert check_gradients(lambda x: x.mean(axis=axis, keepdims=keepdims), x) < 1e-7


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (-1, 0, 1), (0, -1, -2)])
def test_transposes(axes, rng):
    x = positive(rng, (2, 3, 4))
    np.testing.assert_array_equal(x.transpose(axes).data, x.data.transpose(axes))
    scale = rng.standard_normal(x.data.transpose(axes).shape)
    assert check_gradients(lambda x: x.transpose(axes) * scale, x) < 1e-7


def test_constants_receive_no_gradient():
    weight, ids, mask = Tensor([2.0, 3.0]), Tensor([4, 5]), Tensor([True, False])
    (weight * ids + weight * mask - ids).sum().backward()
    np.testing.assert_array_equal(weight.grad, [5.0, 5.0])
    assert not ids.has_grad and not mask.has_grad


def test_a_constant_operand_receives_none_whichever_side_it_is_on():
    with Tensor.no_grad():
        constant = Tensor([[1.0, 2.0], [3.0, 4.0]]) * 1.0
    for function in (*BINARY.values(), lambda a, b: a @ b):
        for pair in ((0, 1), (1, 0)):
            weight = Tensor([[1.0, 2.0], [3.0, 5.0]])
            operands = (weight, constant)
            function(operands[pair[0]], operands[pair[1]]).sum().backward()
            assert weight.has_grad and not constant.has_grad


def test_division_of_a_tensor_by_itself_has_no_slope():
    x = Tensor([2.0, 3.0])
    (x / x).sum().backward()
    np.testing.assert_allclose(x.grad, [0.0, 0.0], atol=1e-15)


def test_length_and_iteration_go_over_the_first_axis():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2
    rows = list(x)
    (rows[0] * rows[1]).sum().backward()
    np.testing.assert_array_equal(x.grad, [[3.0, 4.0], [1.0, 2.0]])


def test_a_number_has_no_length_and_cannot_be_iterated():
    with pytest.raises(TypeError, match="no axes"):
        len(Tensor(1.0))
    with pytest.raises(TypeError, match="no axes"):
        list(Tensor(1.0))


def test_truth_of_one_number():
    assert Tensor(2.0) and not Tensor(0.0)
    with pytest.raises(ValueError, match=r"shape \(2,\) is neither true nor false"):
        bool(Tensor([1.0, 2.0]))


def test_rpow_uses_the_logarithm_of_the_base():
    np.testing.assert_allclose((math.e ** Tensor([0.0, 1.0, 2.0])).data, np.exp([0.0, 1.0, 2.0]), rtol=1e-15)
    np.testing.assert_allclose((np.float32(2) ** Tensor([3.0])).data, [8.0], rtol=1e-15)


def test_arithmetic_keeps_float32(rng):
    with Tensor.precision(np.float32):
        x = positive(rng, (2, 3))
        for function in UNARY.values():
            out = function(x)
            out.backward(np.ones(out.shape))
            assert out.dtype == np.float32 and x.grad.dtype == np.float32
            x.grad = None


def test_equality_is_elementwise_and_constant():
    x = Tensor([[1.0, 2.0], [3.0, 1.0]])
    for same in (x == 1, x == Tensor(1.0), 1.0 == x, x == np.array([1.0, 1.0]), x == [1, 1]):  # noqa: SIM300
        assert same.dtype == np.bool_ and not same.differentiable
        np.testing.assert_array_equal(same.data, [[True, False], [False, True]])
    np.testing.assert_array_equal((x != 1).data, [[False, True], [True, False]])
    np.testing.assert_array_equal((x == [[1], [3]]).data, [[True, False], [True, False]])
    assert (Tensor([1, 2]) == Tensor([1, 3])).data.tolist() == [True, False]
    assert (x == None) is False and (x != None) is True and x != "text"  # noqa: E711


def test_a_tensor_in_a_set_or_dictionary_is_itself():
    a, b = Tensor([1.0, 2.0]), Tensor([1.0, 2.0])
    assert len({a, b, a}) == 2 and {a: 1, b: 2}[b] == 2 and a in {a} and b not in {a}


def test_axes_are_given_as_numbers_or_as_one_tuple():
    x = Tensor(np.arange(24.0).reshape(2, 3, 4))
    for axes in ((2, 0, 1), (-1, 0, 1), tuple(np.array([2, 0, 1]))):
        np.testing.assert_array_equal(x.transpose(*axes).data, x.data.transpose(2, 0, 1))
        np.testing.assert_array_equal(x.transpose(axes).data, x.data.transpose(2, 0, 1))
    for axes in ((0,), ((0,),), (np.int64(0),)):
        assert Tensor([1.0, 2.0]).transpose(*axes).shape == (2,)
