"""Muon against a second formulation by singular vectors, and what it does at its edges."""

import math

import numpy as np
import pytest

from src.core import AdamWOptimizer, MuonOptimizer, Tensor
from src.core.muon import orthogonalized
from src.gpt import GPT, GPTLoss, GPTTrainer


def by_singular_values(matrix):
    """The same iteration on the singular values alone: what it does to the matrix follows from them."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / (np.linalg.norm(values) + 1e-7)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left @ np.diag(values) @ right


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (1, 5), (64, 256)])
def test_orthogonalized_is_the_polynomial_of_the_singular_values(shape, rng):
    matrix = rng.standard_normal(shape)
    np.testing.assert_allclose(orthogonalized(matrix), by_singular_values(matrix), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e6])
def test_singular_values_come_near_one_whatever_the_size_of_the_gradient(scale, rng):
    matrix = (scale * rng.standard_normal((32, 48))).astype(np.float32)
    values = np.linalg.svd(orthogonalized(matrix))[1]
    assert orthogonalized(matrix).dtype == np.float32
    assert (values > 0.0).all() and (values < 1.3).all()
    assert (values > 0.6).all() or scale == 1e-12  # there the 1e-7 in the norm begins to count


def test_zeros_stay_zeros():
    assert not orthogonalized(np.zeros((3, 5))).any()


def reference(theta, grads, lr, momentum, decay):
    """Three lines a step, in the order of the formula: average, look ahead, decay, subtract."""
    total = np.zeros_like(theta)
    for grad in grads:
        total = momentum * total + grad
        change = by_singular_values(grad + momentum * total)
        theta = theta * (1.0 - lr * decay) - lr * 0.2 * math.sqrt(max(theta.shape)) * change
    return theta


def test_three_steps_exactly(rng):
    theta, grads = rng.standard_normal((3, 5)), rng.standard_normal((3, 3, 5))
    with Tensor.precision(np.float64):
        weight, bias, plain = Tensor(theta.copy()), Tensor(np.ones(5)), Tensor(np.ones(5))
        optimizer = MuonOptimizer([bias, weight], [weight], lr=0.05, momentum=0.9, weight_decay=0.1)
        other = AdamWOptimizer([plain], lr=0.05, betas=(0.9, 0.99), weight_decay=0.1)
        for grad in grads:
            optimizer.zero_grad()
            weight.grad += grad
            bias.grad += grad[0]
            optimizer.step()
            plain.grad = grad[0]
            other.step()
    np.testing.assert_allclose(weight.data, reference(theta, grads, 0.05, 0.9, 0.1), rtol=1e-9)
    np.testing.assert_array_equal(bias.data, plain.data)


def small():
    model = GPT(vocab_size=11, context_size=8, embedding_size=16, blocks=2, heads=2, tied=True,
                generator=np.random.default_rng(1))  # fmt: skip
    return model, MuonOptimizer(model.parameters, model.block_matrices(), lr=1e-2)


def train(model, optimizer, steps, first=0):
    trainer = GPTTrainer(model, GPTLoss(), optimizer)
    ids = np.random.default_rng(2).integers(0, 11, (20, 4, 9))[first : first + steps]
    return [trainer.train_step(Tensor(row[:, :-1]), Tensor(row[:, 1:])) for row in ids]


def test_block_matrices_are_the_weights_of_the_linear_layers():
    model, optimizer = small()
    model.named_parameters()
    names = {name for name, tensor in model.named_parameters() if any(tensor is each for each in optimizer.matrices)}
    assert len(names) == 2 * 6
    assert all(name.startswith("blocks.") and name.endswith(".weight") and "norm" not in name for name in names)
    assert len(optimizer.rest.parameters) + len(names) == len(model.parameters)


def test_it_learns_what_can_be_learned():
    model, optimizer = small()
    trainer, ids = GPTTrainer(model, GPTLoss(), optimizer), np.random.default_rng(2).integers(0, 11, (60, 4, 8))
    losses = [trainer.train_step(Tensor(row), Tensor((row + 1) % 11)) for row in ids]
    assert losses[0] > 2.3 and losses[-1] < 0.5


def test_going_on_from_a_state_gives_the_same_bytes():
    whole, optimizer = small()
    train(whole, optimizer, 12)
    model, first = small()
    train(model, first, 5)
    _, second = small()
    second = MuonOptimizer(model.parameters, model.block_matrices(), lr=0.5, momentum=0.1, weight_decay=0.5)
    second.load_state_dict(first.state_dict())
    train(model, second, 7, first=5)
    for name, array in whole.state_dict().items():
        assert array.tobytes() == model.state_dict()[name].tobytes(), name


def test_the_schedule_reaches_both_parts():
    weight, bias = Tensor(np.eye(3)), Tensor(np.ones(3))
    optimizer = MuonOptimizer([weight, bias], [weight], lr=0.1)
    optimizer.lr = 0.0
    weight.grad += np.eye(3)
    bias.grad += np.ones(3)
    optimizer.step()
    assert (weight.data == np.eye(3)).all() and (bias.data == 1.0).all()


def test_what_received_no_gradient_is_left_alone():
    weight, second, bias = Tensor(np.eye(3)), Tensor(np.eye(3)), Tensor(np.ones(3))
    optimizer = MuonOptimizer([weight, second, bias], [weight, second], lr=0.1, weight_decay=0.1)
    with pytest.raises(RuntimeError, match="no parameter has received a gradient"):
        optimizer.step()
    weight.grad += np.eye(3)
    optimizer.step()
    assert (second.data == np.eye(3)).all() and (bias.data == 1.0).all() and (weight.data != np.eye(3)).any()


def test_wrong_settings_are_refused():
    weight, bias = Tensor(np.eye(3)), Tensor(np.ones(3))
    for matrices, message in (([], "at least one"), ([weight, weight], "each once"), ([bias], "changes matrices"),
                              ([Tensor(np.eye(3))], "not among the parameters")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            MuonOptimizer([weight, bias], matrices)
    with pytest.raises(ValueError, match="momentum"):
        MuonOptimizer([weight], [weight], momentum=1.0)
    for wrong in ({"betas": (1.0, 0.9)}, {"eps": -1.0}, {"weight_decay": -0.1}, {"lr": -1.0}):
        with pytest.raises(ValueError):
            MuonOptimizer([weight], [weight], **wrong)


def test_a_state_of_another_optimizer_is_refused_and_changes_nothing():
    model, optimizer = small()
    before = {name: array.copy() for name, array in optimizer.state_dict().items()}
    with pytest.raises(ValueError, match="entries"):
        optimizer.load_state_dict(AdamWOptimizer(model.parameters).state_dict())
    damaged = optimizer.state_dict() | {"rest.steps": -1 - optimizer.state_dict()["rest.steps"]}
    with pytest.raises(ValueError, match="damaged"):
        optimizer.load_state_dict(damaged)
    assert all((array == before[name]).all() for name, array in optimizer.state_dict().items())
