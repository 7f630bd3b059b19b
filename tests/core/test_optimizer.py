"""Optimizers: exact values, clipping, what is skipped, states."""

import copy
import math
import pickle

import numpy as np
import pytest

from src.core import AdamWOptimizer, Linear, Optimizer, SGDOptimizer, Tensor
from src.core.fast import plain


def with_gradient(data, gradient):
    tensor = Tensor(data)
    if gradient is not None:
        tensor.grad = np.asarray(gradient, dtype=float)
    return tensor


def adamw_by_hand(theta, gradients, lr, betas, eps, decay):
    """Algorithm 2 of Loshchilov and Hutter for one number, in Python floats."""
    mean = square = 0.0
    for step, gradient in enumerate(gradients, 1):
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient**2
        theta -= lr * decay * theta
        theta -= lr * (mean / (1 - betas[0] ** step)) / (math.sqrt(square / (1 - betas[1] ** step)) + eps)
    return theta


def test_sgd_moves_against_the_gradient():
    x = with_gradient([1.0, 2.0], [0.5, -1.0])
    SGDOptimizer([x], lr=0.1).step()
    np.testing.assert_allclose(x.data, [0.95, 2.1], rtol=1e-6)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("decay", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("eps", [1e-8, 0.1])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9), (0.0, 0.0)])
def test_adamw_equals_the_paper(decay, eps, betas):
    gradients = [0.1, -0.3, 0.2, 0.0, 5.0]
    matrix, vector = Tensor([[1.0]]), Tensor([1.0])
    optimizer = AdamWOptimizer([matrix, vector], 0.02, betas, eps, decay)
    for gradient in gradients:
        optimizer.zero_grad()
        matrix.grad += np.full((1, 1), gradient)
        vector.grad += np.full(1, gradient)
        optimizer.step()
    assert matrix.item() == pytest.approx(adamw_by_hand(1.0, gradients, 0.02, betas, eps, decay), rel=1e-12)
    assert vector.item() == pytest.approx(adamw_by_hand(1.0, gradients, 0.02, betas, eps, 0.0), rel=1e-12)


def test_the_usual_settings_of_adamw():
    optimizer = AdamWOptimizer([Tensor([1.0])])
    assert (optimizer.lr, optimizer.betas, optimizer.eps, optimizer.weight_decay) == (1e-3, (0.9, 0.999), 1e-8, 0.01)


@pytest.mark.parametrize("shape, decays", [((), False), ((2,), False), ((2, 2), True), ((2, 1, 2), True)])
def test_only_tensors_with_two_or_more_axes_decay(shape, decays):
    x = with_gradient(np.ones(shape), np.zeros(shape))
    AdamWOptimizer([x], lr=0.5, weight_decay=0.5).step()
    np.testing.assert_array_equal(x.data, np.full(shape, 0.75 if decays else 1.0))


def test_what_received_no_gradient_is_left_alone():
    still, moving = Tensor([[1.0]]), with_gradient([[1.0]], [[0.1]])
    optimizer = AdamWOptimizer([still, moving], lr=0.1, weight_decay=0.5)
    optimizer.step()
    assert still.item() == 1.0 and moving.item() < 1.0
    assert optimizer.steps.tolist() == [0, 1]
    still.grad += np.array([[0.1]])
    optimizer.step()
    assert optimizer.steps.tolist() == [1, 2]
    assert still.item() == pytest.approx(0.85, rel=1e-6)  # 1 - 0.05, then its own first Adam step of 0.1


def test_zero_grad_forgets():
    x = with_gradient([1.0], [1.0])
    SGDOptimizer([x], lr=0.1).zero_grad()
    assert not x.has_grad


@pytest.mark.parametrize("max_norm, factor", [(1.0, 0.2), (2.5, 0.5), (5.0, 1.0), (6.0, 1.0), (math.inf, 1.0)])
def test_clipping_scales_all_gradients_together(max_norm, factor):
    first, second, none = with_gradient([0.0], [3.0]), with_gradient([[0.0]], [[-4.0]]), Tensor([1.0])
    norm = SGDOptimizer([first, second, none], lr=0.1).clip_grad_norm(max_norm)
    assert norm == 5.0
    np.testing.assert_allclose([first.grad[0], second.grad[0, 0]], [3.0 * factor, -4.0 * factor], rtol=1e-6)
    assert not none.has_grad


def test_clipping_at_one_unless_told_otherwise():
    x = with_gradient([0.0, 0.0], [3.0, 4.0])
    assert SGDOptimizer([x], lr=0.1).clip_grad_norm() == 5.0
    np.testing.assert_allclose(x.grad, [0.6, 0.8], rtol=1e-6)


def test_clipping_leaves_small_gradients_byte_for_byte():
    x = with_gradient([0.0, 0.0], [0.1, 0.3])
    before = x.grad.tobytes()
    SGDOptimizer([x], lr=0.1).clip_grad_norm(1.0)
    assert x.grad.tobytes() == before


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_a_gradient_that_is_not_finite_is_named(value):
    layer = Linear(2, 2)
    optimizer = SGDOptimizer(layer.parameters, lr=0.1)
    layer.weight.grad += np.ones((2, 2))
    layer.bias.grad += np.array([0.0, value])
    before = layer.weight.grad.copy()
    with pytest.raises(RuntimeError, match="the gradient of bias is not finite"):
        optimizer.clip_grad_norm()
    np.testing.assert_array_equal(layer.weight.grad, before)


def test_the_learning_rate_can_be_changed_between_steps():
    x = with_gradient([1.0], [1.0])
    optimizer = SGDOptimizer([x], lr=0.1)
    optimizer.lr = 0
    optimizer.step()
    assert x.item() == 1.0
    optimizer.lr = np.float64(0.5)
    optimizer.step()
    assert x.item() == 0.5 and type(optimizer.lr) is float


def test_weights_are_changed_in_place_and_stay_float32():
    x = with_gradient([[1.0]], [[1.0]])
    array = x.data
    AdamWOptimizer([x], lr=0.1).step()
    assert x.data is array and array.dtype == np.float32 and array[0, 0] < 1.0


def test_states_are_copies_and_carry_everything():
    def run(optimizer, x, gradients):
        for gradient in gradients:
            x.grad = gradient
            optimizer.step()

    x, y = Tensor([[1.0]]), Tensor([[1.0]])
    first = AdamWOptimizer([x], lr=0.1)
    run(first, x, [[[1.0]], [[-2.0]]])
    state = first.state_dict()
    assert sorted(state) == ["betas", "eps", "lr", "mean.0", "square.0", "steps", "weight_decay"]
    second = AdamWOptimizer([y], 0.7, betas=(0.1, 0.2), eps=0.3, weight_decay=0.4)
    second.load_state_dict(state)
    y.data = x.data
    run(first, x, [[[0.5]], [[0.1]]])
    assert state["steps"] == 2 and state["mean.0"] != first.means[0]
    run(second, y, [[[0.5]], [[0.1]]])
    assert x.data.tobytes() == y.data.tobytes() and second.lr == 0.1
    assert SGDOptimizer([x], lr=0.25).state_dict() == {"lr": 0.25}


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s: s.pop("steps"), r"6 entries.*AdamWOptimizer has 7"),
        (lambda s: s.update({"mean.1": np.ones(1)}), r"8 entries.*AdamWOptimizer has 7"),
        (lambda s: s.update({"mean.0": np.ones(2)}), r"mean\.0 is float64 of shape \(2,\).*float32 of \(1, 1\)"),
        (lambda s: s.update({"mean.0": np.ones(1)}), r"mean\.0 is float64 of shape \(1,\)"),
        (lambda s: s.update({"mean.0": np.ones((1, 1), int)}), r"mean\.0 is int64"),
        (lambda s: s.update(steps=np.ones(1)), r"steps is float64"),
        (lambda s: s.update(lr=np.array(-1.0)), r"learning rate.*-1"),
        (lambda s: s.update(lr=np.array(np.nan)), r"learning rate.*nan"),
        (lambda s: s.update(steps=np.array([-1])), r"counted from 0, the state has -1"),
        (lambda s: s.update({"square.0": -s["square.0"]}), r"square\.0 .*negative"),
        (lambda s: s.update({"square.0": np.full((1, 1), np.nan)}), r"square\.0 .*negative"),
        (lambda s: s.update(betas=np.array([0.9, 1.0])), r"betas are two numbers"),
        (lambda s: s.update(eps=np.array(-1.0)), r"eps must be zero or a positive"),
        (lambda s: s.update(weight_decay=np.array(np.inf)), r"weight_decay must be"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, message):
    x = with_gradient([[1.0]], [[1.0]])
    optimizer = AdamWOptimizer([x], lr=0.1)
    optimizer.step()
    before = optimizer.state_dict()
    state = before | {name: before[name] + 1 for name in ("lr", "steps", "mean.0", "square.0")}
    change(state)
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(state)
    assert all(np.array_equal(array, before[name]) for name, array in optimizer.state_dict().items())


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[1:], lambda a: a.reshape(2, 2), lambda a: a[::2]])
def test_two_parameters_that_share_their_numbers_are_refused(view):
    numbers = np.ones(4, np.float32)
    bag = [Tensor(numbers), Tensor([1.0]), Tensor(view(numbers))]
    bag[2].name = "last"
    with pytest.raises(ValueError, match=r"parameter 0 and last share their numbers"):
        SGDOptimizer(bag, lr=0.1)
    SGDOptimizer([Tensor(numbers[::2]), Tensor(numbers[1::2])], lr=0.1)  # every second one each: nothing is shared


def test_numpys_betas_do_not_turn_the_averages_into_float64():
    x = with_gradient([[1.0]], [[0.1]])
    optimizer = AdamWOptimizer([x], 0.1, betas=tuple(np.array([0.9, 0.99])), eps=np.float64(1e-8))
    assert all(type(value) is float for value in (*optimizer.betas, optimizer.eps, optimizer.weight_decay))


def test_an_optimizer_of_ones_own():
    class Sign(Optimizer):
        def update(self, index, parameter):
            parameter.data -= self.lr * np.sign(parameter.grad)

    x = with_gradient([1.0, 1.0], [5.0, -0.1])
    Sign([x], lr=0.5).step()
    np.testing.assert_array_equal(x.data, [0.5, 1.5])


def test_the_name_is_that_of_the_gradient_that_is_not_finite_or_else_of_the_largest():
    one, skipped, other = Tensor([1.0]), Tensor([1.0]), Tensor([1.0])
    one.name, skipped.name, other.name = "one", "skipped", "other"
    optimizer = SGDOptimizer([one, skipped, other], 0.1)
    one.grad, other.grad = np.array([2.0]), np.array([np.nan])
    with pytest.raises(RuntimeError, match="the gradient of other is not finite"):
        optimizer.clip_grad_norm()
    assert one.grad.item() == 2.0


@pytest.mark.parametrize("turned", [False, True])
def test_squares_that_only_together_are_too_large_are_refused_too(turned):
    with Tensor.precision(np.float64):
        large, small = Tensor([1.0]), Tensor([1.0])
        large.name, small.name = "large", "small"
        large.grad, small.grad = np.array([1.3e154]), np.array([8e153])
        with pytest.raises(RuntimeError, match="the gradient of large is not finite, or too large to square"):
            SGDOptimizer([small, large] if turned else [large, small], 0.1).clip_grad_norm()
        assert (large.grad.item(), small.grad.item()) == (1.3e154, 8e153)


def test_adamw_goes_on_after_a_step_in_which_one_parameter_was_left_out():
    def weights():
        one, other = Tensor([[1.0, 2.0]]), Tensor([[3.0]])
        optimizer = AdamWOptimizer([one, other], lr=0.1)
        for step in range(5):
            one.grad = np.array([[1.0, -2.0]]) * (step + 1)
            other.grad = None if step == 1 else np.array([[0.5]])
            optimizer.step()
        return np.concatenate([one.data, other.data], axis=None), optimizer.steps.tolist()

    with plain():
        expected, steps = weights()
    found, own_steps = weights()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert steps == own_steps == [5, 4]


def test_a_copy_and_a_pickle_of_a_new_and_an_old_optimizer_step_on():
    def stepped(change):
        weight = Tensor([[1.0, 2.0]])
        optimizer = AdamWOptimizer([weight], lr=0.1)
        for turn in range(4):
            optimizer.parameters[0].grad = np.array([[1.0, 3.0]])
            optimizer.step()
            if turn == 1:
                optimizer = change(optimizer)
        return optimizer.parameters[0].data

    def older(optimizer):  # as pickled by version 0.3.1, which kept no room for changes
        assert "_changes" not in optimizer.__getstate__()
        return pickle.loads(pickle.dumps(optimizer))

    expected = stepped(lambda optimizer: optimizer)
    for change in (copy.deepcopy, copy.copy, older):
        np.testing.assert_array_equal(stepped(change), expected)


def test_clipping_scales_each_float_type_by_the_number_itself():
    """By one rounded to float32 float64 gradients would be scaled too roughly, and the other way round too finely."""
    draws = np.random.default_rng(0).standard_normal((2, 50))
    one = with_gradient(np.zeros(50), draws[0])
    with Tensor.precision(np.float64):
        other = with_gradient(np.zeros(50), draws[1])
    expected = [tensor.grad.copy() for tensor in (one, other)]
    norm = SGDOptimizer([one, other], 0.1).clip_grad_norm(0.3)
    for tensor, grad in zip((one, other), expected, strict=True):
        np.testing.assert_array_equal(tensor.grad, grad * (0.3 / norm))


def test_the_rows_of_adamw_begin_with_a_line_of_the_cache():
    optimizer = AdamWOptimizer([with_gradient(np.ones(5), np.ones(5)), with_gradient(np.ones((2, 3)), np.ones((2, 3)))])
    optimizer.step()
    for flat in (optimizer._means, optimizer._squares, optimizer._changes):
        assert flat.row.size == 11 and flat.row.ctypes.data % 64 == 0


def test_a_step_that_fails_is_not_counted(monkeypatch):
    def fail(*_):
        raise MemoryError

    weight = Tensor([[1.0]])
    optimizer = AdamWOptimizer([weight])
    weight.grad = np.ones((1, 1))
    monkeypatch.setattr("src.core.optimizer.adamw_step", fail)
    with pytest.raises(MemoryError):
        optimizer.step()
    assert optimizer.steps.tolist() == [0]
