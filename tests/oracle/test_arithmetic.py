"""Arithmetic against PyTorch: + - * / ** @ and the functions of single numbers, with every pattern of broadcasting."""

import operator

import numpy as np
import pytest
import torch

from tests.oracle.compare import SINGLE, Level, compare, normal, uniform

BROADCASTS = [
    ((), ()),
    ((3,), (3,)),
    ((2, 3), (2, 3)),
    ((), (5, 4)),
    ((5, 4), ()),
    ((3,), (2, 3)),
    ((2, 3), (3,)),
    ((1,), (2, 3)),
    ((4, 1), (1, 4)),
    ((4, 1), (4,)),
    ((2, 1, 3), (4, 1)),
    ((2, 1, 3, 4), (2, 1, 3, 1)),
    ((1, 1, 1), (2, 3)),
    ((1, 1), (1,)),
    ((0, 3), (3,)),
]
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.truediv]


def away_from_zero(*shape, seed):
    """Between 0.5 and 2 with random signs, so that a division is well-conditioned."""
    return uniform(0.5, 2.0, *shape, seed=seed) * np.sign(normal(*shape, seed=seed + 1))


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_two_tensors(operation, shapes):
    compare(operation, operation, normal(*shapes[0]), away_from_zero(*shapes[1], seed=1))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_tensor_with_itself(operation):
    compare(lambda x: operation(x, x), lambda x: operation(x, x), away_from_zero(2, 3, seed=0))


@pytest.mark.parametrize("number", [2, -0.3, np.float64(1.7), np.float32(0.7), np.int64(3)], ids=repr)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_numbers_on_both_sides(operation, number):
    x = away_from_zero(2, 3, seed=0)
    compare(lambda x: operation(x, number), lambda x: operation(x, float(number)), x)
    compare(lambda x: operation(number, x), lambda x: operation(float(number), x), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_arrays_on_both_sides(operation, dtype):
    array = np.array([[1, 3], [1, 2], [1, 1]]).astype(dtype)[:, None]  # (3, 1, 2)
    constant = torch.tensor(array.astype(np.float64))
    x = away_from_zero(4, 2, seed=0)
    compare(lambda x: operation(x, array), lambda x: operation(x, constant.to(x.dtype)), x)
    compare(lambda x: operation(array, x), lambda x: operation(constant.to(x.dtype), x), x)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_integer_tensors_are_constants(operation):
    x, ids = away_from_zero(2, 3, seed=0), np.array([1, 2, 3])
    compare(operation, operation, x, ids)
    compare(operation, operation, ids, x)


def test_negative():
    compare(operator.neg, operator.neg, normal(2, 3))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, -1, -2, 2.0, 3.0])
def test_whole_powers_of_positive_and_negative_numbers(exponent):
    compare(lambda x: x**exponent, lambda x: x**exponent, away_from_zero(3, 4, seed=0))


@pytest.mark.parametrize("exponent", [0.5, 1.5, -0.5, np.float64(2.5)])
def test_broken_powers_of_positive_numbers(exponent):
    compare(lambda x: x**exponent, lambda x: x ** float(exponent), uniform(0.5, 2, 3, 4))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 1.5])
def test_powers_of_zero(exponent):
    compare(lambda x: x**exponent, lambda x: x**exponent, np.zeros(3))


@pytest.mark.parametrize(
    "exponents", [np.array([0, 1, 2, 3]), np.array([[0.5], [-1.0], [3.0]])], ids=["ints", "column"]
)
def test_an_array_of_exponents(exponents):
    compare(lambda x: x**exponents, lambda x: x ** torch.tensor(exponents, dtype=x.dtype), uniform(0.5, 2, 4))


@pytest.mark.parametrize("base", [2, 0.5, 10.0])
def test_a_number_to_the_power_of_a_tensor(base):
    compare(lambda x: base**x, lambda x: base**x, uniform(-2, 1, 3, 4))


PRODUCTS = [
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((2, 4), (4,)),
    ((5, 2, 4), (4,)),
    ((4,), (5, 4, 3)),
    ((2, 4), (4, 3)),
    ((5, 2, 4), (4, 3)),
    ((6, 5, 2, 4), (4, 3)),
    ((2, 4), (5, 4, 3)),
    ((5, 2, 4), (5, 4, 3)),
    ((1, 2, 4), (5, 4, 3)),
    ((5, 2, 4), (1, 4, 3)),
    ((5, 1, 2, 4), (6, 4, 3)),
    ((6, 5, 2, 4), (6, 5, 4, 3)),
    ((6, 1, 2, 4), (1, 5, 4, 3)),
    ((1, 1), (1, 1)),
    ((1, 4), (4, 1)),
    ((3, 1), (1, 3)),
    ((0, 2, 4), (4, 3)),
]


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
def test_matrix_products(shapes):
    compare(operator.matmul, operator.matmul, normal(*shapes[0]), normal(*shapes[1], seed=1))


@pytest.mark.parametrize("shapes", [((4,), (4,)), ((2, 4), (4, 3)), ((5, 2, 4), (4, 3)), ((2, 4), (5, 4, 3))], ids=str)
def test_matrix_products_with_arrays(shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
    compare(lambda x: x @ b, lambda x: x @ torch.tensor(b, dtype=x.dtype), a)
    compare(lambda x: a @ x, lambda x: torch.tensor(a, dtype=x.dtype) @ x, b)


def test_a_matrix_product_of_transposed_views():
    compare(
        lambda a, b: a.transpose((0, 2, 1, 3)) @ b.transpose((0, 2, 3, 1)),
        lambda a, b: a.permute(0, 2, 1, 3) @ b.permute(0, 2, 3, 1),
        normal(2, 5, 3, 4),
        normal(2, 6, 3, 4, seed=1),
    )


def test_a_matrix_with_itself_transposed():
    compare(lambda x: x @ x.transpose((1, 0)), lambda x: x @ x.T, normal(3, 4))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)], ids=str)
@pytest.mark.parametrize(
    "name, low, high", [("exp", -5, 2), ("log", 0.1, 5), ("tanh", -4, 4)], ids=lambda value: str(value)
)
def test_functions_of_single_numbers(name, low, high, shape):
    compare(lambda x: getattr(x, name)(), lambda x: getattr(x, name)(), uniform(low, high, *shape))


def test_extreme_numbers():
    compare(lambda x: x.exp(), torch.exp, np.array([-200.0, -100.0, -1e-30, 0.0, 1e-30]))
    compare(lambda x: x.tanh(), torch.tanh, np.array([-1e4, -20.0, -1e-20, 0.0, 1e-20, 20.0, 1e4]))
    compare(lambda x: x.log(), torch.log, np.array([1e-30, 1e-3, 1.0, 1e30]))


def test_a_value_that_is_used_again_and_again():
    def shared(x, y):
        z = x + y
        p = x / z
        return p * z * z + p + z

    compare(shared, shared, uniform(1, 2, 3), uniform(1, 2, 3, seed=1))


def test_a_long_chain():
    def chain(x):
        for _ in range(200):
            x = x * 0.99 + 0.01 * x * x
        return x

    # 600 roundings in a row: allowed is 1e-5 of the value instead of 1.3e-6; float64 stays as strict as everywhere.
    loose = Level(SINGLE.dtype, value=(1e-5, 1e-5), gradient=SINGLE.gradient)
    compare(chain, chain, uniform(-0.5, 0.5, 10), levels=(loose,))
