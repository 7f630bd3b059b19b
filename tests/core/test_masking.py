"""Masks: the causal triangle, the check of a mask, Tril."""

import numpy as np
import pytest

from src.core import Tensor, Tril, check_gradients
from src.core.masking import causal_mask, check_mask


@pytest.mark.parametrize("queries, keys", [(1, 1), (3, 3), (2, 5), (1, 4), (4, 2)])
def test_the_last_query_sees_the_last_key(queries, keys):
    expected = [[key <= query + keys - queries for key in range(keys)] for query in range(queries)]
    np.testing.assert_array_equal(causal_mask(queries, keys), expected)
    assert causal_mask(queries, keys).dtype == np.bool_


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (2, 5, 3, 4), (1, 1, 3, 4), (2, 1, 1, 4), (1, 5, 3, 4)])
def test_masks_that_fit(shape):
    mask = np.ones(shape, bool)
    assert check_mask(mask, (2, 5, 3, 4)) is mask
    np.testing.assert_array_equal(check_mask(Tensor(mask), (2, 5, 3, 4)), mask)
    np.testing.assert_array_equal(check_mask(mask.tolist(), (2, 5, 3, 4)), mask)


@pytest.mark.parametrize(
    "shape",
    [
        (),
        (4,),
        (3, 1),
        (1, 1),
        (4, 3),
        (2, 4),
        (3, 5),
        (5, 3, 4),
        (1, 3, 4),
        (2, 3, 3, 4),
        (3, 5, 3, 4),
        (1, 2, 5, 3, 4),
    ],
)
def test_masks_that_would_only_fit_by_luck_are_refused(shape):
    with pytest.raises(ValueError, match="the mask has shape") as error:
        check_mask(np.ones(shape, bool), (2, 5, 3, 4))
    assert str(shape) in str(error.value) and "(3, 4) or (1, 4)" in str(error.value)


@pytest.mark.parametrize("value", [-np.inf, -1e9, 0])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2, 3, 3, 3), (1, 1)])
def test_tril_values_and_gradient(value, shape, rng):
    x = Tensor(rng.standard_normal(shape))
    out = Tril(value)(x)
    keep = causal_mask(*shape[-2:])
    np.testing.assert_array_equal(out.data, np.where(keep, x.data, np.float32(value)))
    assert out.dtype == np.float32
    out.backward(np.full(shape, 2.0))
    np.testing.assert_array_equal(x.grad, np.broadcast_to(np.where(keep, 2.0, 0.0), shape))


@pytest.mark.usefixtures("double")
def test_tril_gradient_by_differences(rng):
    assert check_gradients(Tril(0.0), Tensor(rng.standard_normal((2, 3, 3)))) < 1e-7


def test_tril_ignores_what_flows_back_to_forbidden_places():
    x = Tensor(np.ones((2, 2)))
    Tril()(x).backward([[1.0, np.nan], [1.0, 1.0]])
    np.testing.assert_array_equal(x.grad, [[1.0, 0.0], [1.0, 1.0]])
