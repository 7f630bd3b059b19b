"""Scaled dot-product attention against PyTorch's, in every shape, with every mask."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from src.core import Tensor, scaled_dot_product_attention
from tests.oracle.compare import DOUBLE, compare, normal

LEADING = [(), (3,), (2, 3)]


def inputs(leading, queries, keys, size=4, value_size=4):
    return (
        normal(*leading, queries, size),
        normal(*leading, keys, size, seed=1),
        normal(*leading, keys, value_size, seed=2),
    )


def aligned_at_the_end(queries, keys):
    """The causal mask with fewer queries than keys; torch's is_causal starts at the beginning instead."""
    return np.arange(keys)[None, :] <= np.arange(queries)[:, None] + keys - queries


def torch_weights(query, key, allowed):
    """The weights, which torch's function does not give back; a row without a key is zero as in its output."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if allowed is None:
        return F.softmax(scores, -1)
    mask = torch.tensor(allowed)
    dead = ~mask.any(-1, keepdim=True)
    return F.softmax(scores.masked_fill(~mask & ~dead, -torch.inf), -1).masked_fill(dead, 0.0)


def compare_attention(arrays, mask=None, causal=False, allowed=None):
    """Output, weights, and both differentiated together. `allowed` is what mask and causal mean, as one mask."""

    def ours(query, key, value):
        return scaled_dot_product_attention(query, key, value, mask=mask, causal=causal)

    def theirs(query, key, value):
        attn_mask = None if allowed is None else torch.tensor(allowed)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)

    compare(lambda q, k, v: ours(q, k, v)[0], theirs, *arrays)
    compare(lambda q, k, v: ours(q, k, v)[1], lambda q, k, v: torch_weights(q, k, allowed), *arrays)
    compare(ours, lambda q, k, v: (theirs(q, k, v), torch_weights(q, k, allowed)), *arrays)


@pytest.mark.parametrize("leading", LEADING, ids=str)
@pytest.mark.parametrize("queries, keys, size, value_size", [(5, 5, 4, 4), (2, 5, 4, 4), (5, 2, 4, 7), (1, 1, 1, 1)])
def test_without_a_mask(leading, queries, keys, size, value_size):
    compare_attention(inputs(leading, queries, keys, size, value_size))


@pytest.mark.parametrize("leading", LEADING, ids=str)
@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_is_the_causal_of_torch_when_queries_are_keys(leading, length):
    arrays = inputs(leading, length, length, value_size=3)
    compare(
        lambda q, k, v: scaled_dot_product_attention(q, k, v, causal=True)[0],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        *arrays,
    )
    compare_attention(arrays, causal=True, allowed=aligned_at_the_end(length, length))


@pytest.mark.parametrize("leading", LEADING, ids=str)
@pytest.mark.parametrize("queries, keys", [(1, 5), (2, 5), (4, 5)])
def test_causal_with_fewer_queries_than_keys_is_aligned_at_the_end(leading, queries, keys):
    compare_attention(inputs(leading, queries, keys), causal=True, allowed=aligned_at_the_end(queries, keys))


def test_causal_with_fewer_queries_is_not_the_causal_of_torch():
    with pytest.raises(AssertionError, match="output 0"):
        compare(
            lambda q, k, v: scaled_dot_product_attention(q, k, v, causal=True)[0],
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            *inputs((), 2, 5),
        )


MASK_SHAPES = [
    ((), (4, 5)),
    ((), (1, 5)),
    ((3,), (4, 5)),
    ((3,), (1, 5)),
    ((3,), (3, 4, 5)),
    ((3,), (1, 4, 5)),
    ((3,), (3, 1, 5)),
    ((2, 3), (4, 5)),
    ((2, 3), (1, 5)),
    ((2, 3), (2, 3, 4, 5)),
    ((2, 3), (2, 1, 4, 5)),
    ((2, 3), (1, 3, 4, 5)),
    ((2, 3), (2, 1, 1, 5)),
    ((2, 3), (1, 1, 1, 5)),
]


def some_mask(shape):
    """Random booleans; the first key is always allowed, so that no row is empty."""
    mask = normal(*shape, seed=5) > 0
    mask[..., 0] = True
    return mask


@pytest.mark.parametrize("leading, shape", MASK_SHAPES, ids=str)
def test_masks_of_every_shape(leading, shape):
    mask = some_mask(shape)
    compare_attention(inputs(leading, 4, 5, value_size=3), mask=mask, allowed=mask)


@pytest.mark.parametrize("leading, shape", MASK_SHAPES, ids=str)
def test_masks_of_every_shape_with_causal(leading, shape):
    mask = some_mask(shape)
    allowed = mask & aligned_at_the_end(4, 5)
    compare_attention(inputs(leading, 4, 5, value_size=3), mask=mask, causal=True, allowed=allowed)


@pytest.mark.parametrize("leading", LEADING, ids=str)
def test_a_query_without_any_key(leading):
    mask = some_mask((4, 5))
    mask[1] = False
    compare_attention(inputs(leading, 4, 5), mask=mask, allowed=mask)
    nothing = np.zeros((4, 5), dtype=bool)
    compare_attention(inputs(leading, 4, 5), mask=nothing, allowed=nothing)


def test_padding_and_causal_leave_the_first_queries_without_a_key():
    padding = np.array([[True, True, True, True], [False, False, True, True]])[:, None, None, :]  # (B, 1, 1, Tk)
    allowed = padding & aligned_at_the_end(4, 4)
    compare_attention(inputs((2, 3), 4, 4), mask=padding, causal=True, allowed=allowed)


def test_a_mask_given_as_a_tensor():
    mask = some_mask((4, 5))
    compare(
        lambda q, k, v: scaled_dot_product_attention(q, k, v, mask=Tensor(mask))[0],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(mask)),
        *inputs((2,), 4, 5),
    )


def test_self_attention_on_one_tensor():
    compare(
        lambda x: scaled_dot_product_attention(x, x, x, causal=True)[0],
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        normal(2, 6, 4),
    )


def test_large_scores():
    """Scores of some hundreds: nearly one-hot weights. In float32 the rounding of the scores alone exceeds 1e-5."""
    query, key, value = inputs((2,), 4, 5)
    compare(
        lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
        F.scaled_dot_product_attention,
        query * 30,
        key * 30,
        value,
        levels=(DOUBLE,),
    )
