"""Losses against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from src.core import CrossEntropyLoss, MSELoss, Tensor
from tests.oracle.compare import compare, normal


def torch_cross_entropy(ignore_index=-100):
    """F.cross_entropy wants the classes second; flat rows mean the same for every number of axes."""
    return lambda p, y: F.cross_entropy(p.reshape(-1, p.shape[-1]), y.reshape(-1), ignore_index=ignore_index)


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 5), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("classes", [1, 2, 7])
def test_cross_entropy(shape, classes):
    targets = np.random.default_rng(1).integers(0, classes, shape)
    compare(CrossEntropyLoss(), torch_cross_entropy(), normal(*shape, classes) * 3, np.asarray(targets))


@pytest.mark.parametrize("ignored", [-100, -1, 0, 3])
def test_cross_entropy_leaves_out_the_ignored(ignored):
    targets = np.random.default_rng(1).integers(0, 5, (3, 8))
    targets[:, ::3] = ignored
    compare(CrossEntropyLoss(ignored), torch_cross_entropy(ignored), normal(3, 8, 5), targets)


def test_all_ignored_is_zero_here_and_nan_in_torch():
    targets = np.full(4, -1)
    assert torch.isnan(torch_cross_entropy(-1)(torch.tensor(normal(4, 5)), torch.tensor(targets)))
    compare(CrossEntropyLoss(-1), lambda p, y: (p * 0.0).sum(), normal(4, 5), targets)


def test_cross_entropy_of_large_logits():
    logits = np.array([[1000.0, 0.0], [0.0, 1000.0], [0.0, 50.0], [-1e4, 1e4]])
    compare(CrossEntropyLoss(), torch_cross_entropy(), logits, np.array([1, 1, 0, 0]))


def test_cross_entropy_of_impossible_classes():
    logits = np.array([[1.0, -np.inf, 2.0], [0.0, 1.0, -np.inf]])
    compare(CrossEntropyLoss(), torch_cross_entropy(), logits, np.array([0, 1]))


def test_cross_entropy_of_many_tokens():
    compare(CrossEntropyLoss(), torch_cross_entropy(), normal(512, 65), np.random.default_rng(1).integers(0, 65, 512))


@pytest.mark.parametrize("weight", [0.25, -2.0])
def test_a_loss_that_goes_into_a_larger_expression(weight):
    targets = np.array([1, 0, 2])
    ours, theirs = CrossEntropyLoss(), torch_cross_entropy()
    compare(
        lambda p, q, y: ours(p * q, y) * weight + ours(q, y),
        lambda p, q, y: theirs(p * q, y) * weight + theirs(q, y),
        normal(3, 4),
        normal(3, 4, seed=1),
        targets,
    )


def test_reductions():
    """PyTorch's sum is mean times count, which is how losses of unequal batches are added up."""
    targets = np.array([[0, -1, 2], [1, 1, -1]])
    loss = CrossEntropyLoss(ignore_index=-1)
    compare(
        lambda p, y: loss(p, y) * loss.count(y),
        lambda p, y: F.cross_entropy(p.reshape(-1, 4), y.reshape(-1), ignore_index=-1, reduction="sum"),
        normal(2, 3, 4),
        targets,
    )
    assert loss.count(Tensor(targets)) == 4


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)], ids=str)
def test_mean_squared_error(shape):
    compare(MSELoss(), F.mse_loss, normal(*shape), normal(*shape, seed=1))


def test_mean_squared_error_against_a_constant():
    target = normal(3, 4, seed=1)
    compare(lambda p: MSELoss()(p, target), lambda p: F.mse_loss(p, torch.tensor(target, dtype=p.dtype)), normal(3, 4))
