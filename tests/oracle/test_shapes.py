"""Reshape, transpose, sums, averages and indexing against PyTorch."""

import itertools

import numpy as np
import pytest
import torch

from src.core import Tensor
from tests.oracle.compare import compare, normal


@pytest.mark.parametrize(
    "before, after",
    [((2, 6), (3, 4)), ((2, 6), (-1,)), ((2, 3, 4), (6, -1)), ((), (1, 1)), ((1,), ()), ((12,), (2, 3, 2))],
    ids=str,
)
def test_reshape(before, after):
    compare(lambda x: x.reshape(after), lambda x: x.reshape(after), normal(*before))
    compare(lambda x: x.reshape(*after) if after else x.reshape(()), lambda x: x.reshape(after), normal(*before))


def test_reshape_of_a_transposed_view():
    compare(
        lambda x: x.transpose((0, 2, 1, 3)).reshape(2, 3, 20),
        lambda x: x.permute(0, 2, 1, 3).reshape(2, 3, 20),
        normal(2, 4, 3, 5),
    )


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
def test_every_transpose_of_three_axes_counted_from_both_ends(axes):
    x = normal(2, 3, 4)
    compare(lambda x: x.transpose(axes), lambda x: x.permute(axes), x)
    for signs in itertools.product((0, 3), repeat=3):  # 3 less is the same axis, counted from the end
        mixed = tuple(axis - sign for axis, sign in zip(axes, signs, strict=True))
        compare(lambda x, mixed=mixed: x.transpose(mixed), lambda x: x.permute(axes), x)


@pytest.mark.parametrize("axes", [(0, 2, 1, 3), (1, 2, 3, 0), (3, 0, 1, 2), (2, 0, 3, 1), (0, 1, -1, -2)], ids=str)
def test_transpose_of_four_axes(axes):
    compare(lambda x: x.transpose(axes), lambda x: x.permute(axes), normal(2, 3, 4, 5))


def test_transpose_of_few_axes():
    compare(lambda x: x.transpose((1, 0)), lambda x: x.T, normal(2, 3))
    compare(lambda x: x.transpose((0,)), lambda x: x.permute(0), normal(3))
    compare(lambda x: x.transpose(()), lambda x: x.permute(()), normal())


AXES = [None, 0, 1, 2, -1, -2, -3, (0,), (1,), (0, 1), (1, 2), (2, 0), (-1, 0), (-1, -2), (0, 1, 2)]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_and_averages(name, axis, keepdims):
    def theirs(x):
        if axis is None:  # torch takes keepdim only together with dim
            return getattr(x, name)(tuple(range(x.ndim)), keepdim=True) if keepdims else getattr(x, name)()
        return getattr(x, name)(axis, keepdim=keepdims)

    compare(lambda x: getattr(x, name)(axis=axis, keepdims=keepdims), theirs, normal(2, 3, 4))
    compare(lambda x: getattr(x, name)(axis, keepdims), theirs, normal(2, 1, 4))


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_of_a_single_number_and_of_one_axis(name):
    compare(lambda x: getattr(x, name)(), lambda x: getattr(x, name)(), normal())
    compare(lambda x: getattr(x, name)(axis=0), lambda x: getattr(x, name)(0), normal(5))


def test_sum_of_no_numbers():
    compare(lambda x: x.sum(), torch.sum, normal(0, 3))
    compare(lambda x: x.sum(axis=0), lambda x: x.sum(0), normal(0, 3))


def test_centring_by_the_mean():
    compare(lambda x: x - x.mean(-1, keepdims=True), lambda x: x - x.mean(-1, keepdim=True), normal(3, 5))


INDICES = {
    "row": 1,
    "row from the end": -1,
    "element": (1, 2, -3),
    "NumPy integer": np.int64(2),
    "slice": slice(1, 3),
    "slice with a step": slice(None, None, 2),
    "slice of the last axis": (..., slice(1, 4)),
    "no rows": slice(2, 2),
    "everything": ...,
    "column": (slice(None), 1),
    "last time step": (slice(None), -1, slice(None)),
    "new axis": (None, slice(None), None),
    "list": [2, 0],
    "repeated": [0, 0, 2],
    "repeated from both ends": np.array([0, -4, 3, -1]),
    "table of ids": np.array([[0, 1, 1], [3, 3, 3]]),
    "two lists": (np.arange(4), np.array([0, 4, 0, 2])),
    "two lists, repeated pairs": (np.array([1, 1, 1]), np.array([2, 2, 0])),
    "lists that broadcast": (np.array([[0], [3]]), np.array([1, 1, 4])),
    "lists on both sides of a slice": (np.array([0, 1, 1]), slice(None), np.array([2, 2, 2])),
    "list in the middle": (slice(None), np.array([3, 3, 0])),
    "number and list": (1, np.array([3, 3, 0])),
    "list and slice": (np.array([1, 1]), slice(0, 2)),
    "booleans of a row": np.array([True, False, True, True]),
    "booleans of all": normal(4, 5, 6, seed=7) > 0.5,
    "booleans of none": np.zeros((4, 5, 6), dtype=bool),
    "empty list": np.array([], dtype=np.int64),
}


def as_torch(index):
    """PyTorch takes the same indices, with its own arrays in place of NumPy's."""
    if isinstance(index, tuple):
        return tuple(as_torch(part) for part in index)
    if isinstance(index, np.int64):
        return int(index)
    return torch.tensor(index) if isinstance(index, np.ndarray | list) else index


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_indexing(index):
    compare(lambda x: x[index], lambda x: x[as_torch(index)], normal(4, 5, 6))


def test_indexing_backwards():  # torch has no negative steps
    compare(lambda x: x[::-1], lambda x: x.flip(0), normal(4, 5))
    compare(lambda x: x[:, ::-2], lambda x: x[:, [4, 2, 0]], normal(4, 5))


def test_indexing_by_a_tensor():
    ids = np.array([[1, 1], [0, 3]])
    compare(lambda x, i: x[i], lambda x, i: x[i], normal(4, 5), ids)
    compare(lambda x: x[np.arange(4), Tensor(ids).data[0, 0]], lambda x: x[torch.arange(4), 1], normal(4, 5))


def test_indexing_twice():
    compare(lambda x: x[1:][[0, 0]] * x[0], lambda x: x[1:][[0, 0]] * x[0], normal(4, 5))
