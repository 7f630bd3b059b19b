"""The tester is tested: `compare` must catch a wrong value, a wrong gradient, a wrong shape and a wrong dtype."""

import numpy as np
import pytest
import torch

from src.core import Tensor
from tests.oracle.compare import DOUBLE, SINGLE, compare, normal


def product(a, b, value=1.0, left=1.0, right=1.0):
    """a * b written by hand, with its value or either gradient off by a factor."""
    out = Tensor(a.data * b.data * value)

    def gradient_fn():
        a.grad += out.grad * b.data * left
        b.grad += out.grad * a.data * right

    return out.attach(gradient_fn, (a, b))


def check(ours, levels=(SINGLE, DOUBLE)):
    compare(ours, torch.mul, normal(3, 4), normal(4, seed=1), levels=levels)


def test_a_right_function_passes():
    check(product)


@pytest.mark.parametrize("level", [SINGLE, DOUBLE])
@pytest.mark.parametrize("factor", [-1.0, 0.0, 2.0, 1.001])
@pytest.mark.parametrize("part, complaint", [("value", "output 0"), ("left", "input 0"), ("right", "input 1")])
def test_a_wrong_factor_is_caught(part, complaint, factor, level):
    with pytest.raises(AssertionError, match=f"{complaint}, {level.dtype.__name__}"):
        check(lambda a, b: product(a, b, **{part: factor}), levels=(level,))


def test_an_error_of_one_part_in_a_billion_is_caught_in_float64():
    with pytest.raises(AssertionError, match="input 1, float64"):
        check(lambda a, b: product(a, b, right=1 + 1e-9))


def test_a_forgotten_gradient_is_caught():
    with pytest.raises(AssertionError, match="input 1"):
        check(lambda a, b: a * b.data)


def test_a_wrong_element_is_caught():
    def off(a, b):
        wrong = np.zeros(a.shape)
        wrong[2, 3] = 1e-3
        return a * b + wrong

    with pytest.raises(AssertionError, match="output 0"):
        check(off)


def test_a_shape_that_would_broadcast_is_caught():
    with pytest.raises(AssertionError, match="shape"):
        check(lambda a, b: (a * b).reshape(1, 3, 4))


def test_a_wrong_dtype_is_caught():
    def always_single(a, b):
        return Tensor(a.data * b.data, dtype=np.float32)

    with pytest.raises(AssertionError, match="dtype float32, expected float64"):
        check(always_single, levels=(DOUBLE,))


def test_nan_is_caught_even_where_torch_has_it_too():
    with pytest.raises(AssertionError, match="NaN"):
        compare(lambda a: a * np.nan, lambda a: a * np.nan, normal(2))


def test_of_two_outputs_each_one_counts():
    def theirs(a, b):
        return a * b, a + b

    compare(lambda a, b: (a * b, a + b), theirs, normal(3, 4), normal(4, seed=1))
    with pytest.raises(AssertionError, match="output 1"):
        compare(lambda a, b: (a * b, a - b), theirs, normal(3, 4), normal(4, seed=1))
    with pytest.raises(AssertionError, match="gradient of input 0"):
        compare(lambda a, b: (a * b, a.data + b), theirs, normal(3, 4), normal(4, seed=1))
