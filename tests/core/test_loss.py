"""Losses: values, gradients, ignored targets, extremes."""

import math

import numpy as np
import pytest

from src.core import CrossEntropyLoss, Loss, MSELoss, Tensor, check_gradients


def cross_entropy_by_hand(logits, targets, ignore=None):
    rows = zip(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), strict=True)
    losses = [math.log(sum(map(math.exp, row))) - row[target] for row, target in rows if target != ignore]
    return sum(losses) / len(losses)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 2, 2)])
def test_cross_entropy_values_and_gradients(shape, rng):
    logits, targets = Tensor(rng.standard_normal((*shape, 5))), rng.integers(0, 5, shape)
    loss = CrossEntropyLoss()
    np.testing.assert_allclose(loss(logits, targets).item(), cross_entropy_by_hand(logits.data, targets), rtol=1e-12)
    assert loss(logits, targets).shape == ()
    assert check_gradients(lambda p: loss(p, targets) * 3.0, logits) < 1e-7


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("ignore", [-100, -1, 2])
def test_ignored_targets_do_not_count(ignore, rng):
    logits, targets = Tensor(rng.standard_normal((2, 3, 5))), np.array([[0, ignore, 4], [ignore, 3, 3]])
    loss = CrossEntropyLoss(ignore_index=ignore)
    expected = cross_entropy_by_hand(logits.data, targets, ignore)
    np.testing.assert_allclose(loss(logits, targets).item(), expected, rtol=1e-12)
    assert loss.count(Tensor(targets)) == 4
    assert check_gradients(lambda p: loss(p, targets), logits) < 1e-7
    np.testing.assert_array_equal(logits.grad[[0, 1], [1, 0]], np.zeros((2, 5)))


def test_all_ignored_gives_zero_and_no_gradient():
    logits = Tensor([[1.0, 2.0], [3.0, 4.0]])
    loss = CrossEntropyLoss(ignore_index=-1)(logits, [-1, -1])
    loss.backward()
    assert loss.item() == 0.0
    np.testing.assert_array_equal(logits.grad, np.zeros((2, 2)))
    assert CrossEntropyLoss(ignore_index=-1).count(Tensor([-1, -1])) == 0


def test_an_ignored_row_may_hold_anything():
    logits = Tensor([[1.0, np.nan], [0.0, 0.0]])
    loss = CrossEntropyLoss(ignore_index=-1)(logits, [-1, 1])
    loss.backward()
    np.testing.assert_allclose(loss.item(), math.log(2.0), rtol=1e-6)
    np.testing.assert_array_equal(logits.grad, [[0.0, 0.0], [0.5, -0.5]])


@pytest.mark.parametrize("shift", [1000.0, -1000.0])
def test_large_logits_neither_overflow_nor_lose_the_loss(shift):
    logits = Tensor(np.array([[0.0, 3.0], [2.0, 0.0]]) + shift)
    loss = CrossEntropyLoss()(logits, [0, 0])
    loss.backward()
    np.testing.assert_allclose(loss.item(), (math.log(1 + math.exp(3)) + math.log(1 + math.exp(-2))) / 2, rtol=1e-5)
    assert np.isfinite(logits.grad).all() and logits.grad.any()


def test_the_loss_of_equal_logits_is_ln_v():
    for size in (2, 65, 1000):
        loss = CrossEntropyLoss()(Tensor(np.zeros((3, size))), [0, 1, size - 1])
        np.testing.assert_allclose(loss.item(), math.log(size), rtol=1e-6)


def test_an_impossible_target_has_an_infinite_loss_and_a_finite_gradient():
    logits = Tensor([[0.0, -np.inf]])
    loss = CrossEntropyLoss()(logits, [1])
    loss.backward()
    assert loss.item() == np.inf
    np.testing.assert_array_equal(logits.grad, [[1.0, -1.0]])


def test_logits_and_targets_stay_as_they_were(rng):
    logits, targets = Tensor(rng.standard_normal((3, 4))), Tensor([0, 1, 2])
    kept = logits.data.copy()
    CrossEntropyLoss()(logits, targets).backward()
    np.testing.assert_array_equal(logits.data, kept)
    np.testing.assert_array_equal(targets.data, [0, 1, 2])


def test_count_without_an_ignored_index_is_the_number_of_targets():
    targets = Tensor(np.zeros((2, 3), int))
    assert CrossEntropyLoss().count(targets) == 6
    assert MSELoss().count(targets) == 6


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_mean_squared_error(shape, rng):
    p, y = Tensor(rng.standard_normal(shape)), Tensor(rng.standard_normal(shape))
    np.testing.assert_allclose(MSELoss()(p, y).item(), np.mean((p.data - y.data) ** 2), rtol=1e-12)
    assert check_gradients(MSELoss(), p, y) < 1e-7


def test_a_loss_of_ones_own():
    class Distance(Loss):
        def loss(self, p, y):
            return ((p - y) ** 2).sum() ** 0.5

    assert Distance()(Tensor([3.0, 4.0]), [0, 0]).item() == 5.0
