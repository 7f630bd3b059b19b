"""SGD, AdamW and clipping against PyTorch over a hundred steps, and the schedule against two other formulations."""

import math

import numpy as np
import pytest
import torch

from src.core import AdamWOptimizer, SGDOptimizer, Tensor, WarmupCosineScheduler
from tests.oracle.compare import DOUBLE, SINGLE, assert_close

SHAPES = [(4, 3), (3,), (), (2, 3, 2), (1, 5)]
LEVELS = pytest.mark.parametrize("level", [SINGLE, DOUBLE], ids=["float32", "float64"])


def parameters(level):
    """The same weights twice: as tensors of the engine and of PyTorch."""
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(shape), dtype=level.dtype) for shape in SHAPES]
    with Tensor.precision(level.dtype):
        return [Tensor(array.copy()) for array in arrays], [torch.tensor(array, requires_grad=True) for array in arrays]


def set_gradients(own, theirs, level, step, skipped=()):
    """New random gradients, of very different sizes, for all parameters but the skipped."""
    rng = np.random.default_rng([1, step])
    for index, (mine, other) in enumerate(zip(own, theirs, strict=True)):
        gradient = rng.standard_normal(mine.shape) * 10.0 ** rng.integers(-4, 2)
        gradient = np.asarray(gradient, dtype=level.dtype)
        mine.grad = None if index in skipped else gradient
        other.grad = None if index in skipped else torch.tensor(gradient)


def assert_equal_weights(own, theirs, level, step):
    for index, (mine, other) in enumerate(zip(own, theirs, strict=True)):
        assert_close(mine.data, other, level.value, f"parameter {index} after step {step}")


def run(level, optimizer, reference, own, theirs, skipped=lambda step: (), rate=None, steps=100):
    """Take the steps on both sides and compare all weights after each one."""
    for step in range(steps):
        set_gradients(own, theirs, level, step, skipped(step))
        if rate is not None:
            optimizer.lr = rate(step)
            for group in reference.param_groups:
                group["lr"] = rate(step)
        optimizer.step()
        reference.step()
        assert_equal_weights(own, theirs, level, step)


def torch_adamw(theirs, weight_decay, **settings):
    """As GPT-2's training code writes it: only tensors of two or more axes decay."""
    groups = [
        {"params": [p for p in theirs if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in theirs if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, **settings)


@LEVELS
@pytest.mark.parametrize("lr", [0.1, 1e-3])
def test_sgd(level, lr):
    own, theirs = parameters(level)
    run(level, SGDOptimizer(own, lr), torch.optim.SGD(theirs, lr), own, theirs)


@LEVELS
@pytest.mark.parametrize(
    "lr, betas, eps, weight_decay",
    [
        (1e-3, (0.9, 0.999), 1e-8, 0.01),
        (1e-2, (0.9, 0.95), 1e-8, 0.1),
        (1e-2, (0.8, 0.99), 1e-3, 0.0),
        (0.1, (0.0, 0.9), 1e-6, 1.0),
    ],
)
def test_adamw(level, lr, betas, eps, weight_decay):
    own, theirs = parameters(level)
    optimizer = AdamWOptimizer(own, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
    run(level, optimizer, torch_adamw(theirs, weight_decay, lr=lr, betas=betas, eps=eps), own, theirs)


def test_the_defaults_of_adamw_are_those_of_torch():
    own, theirs = parameters(DOUBLE)
    run(DOUBLE, AdamWOptimizer(own), torch_adamw(theirs, 0.01), own, theirs, steps=5)


@LEVELS
def test_adamw_leaves_out_parameters_without_a_gradient(level):
    """Their averages, their count of steps and their decay stand still, as in torch."""
    own, theirs = parameters(level)
    settings = {"lr": 1e-2, "betas": (0.9, 0.99)}

    def skipped(step):
        return {index for index in range(len(SHAPES)) if (7 * step + 3 * index) % 5 < 2}  # two others at each step

    run(
        level,
        AdamWOptimizer(own, weight_decay=0.1, **settings),
        torch_adamw(theirs, 0.1, **settings),
        own,
        theirs,
        skipped,
    )


@LEVELS
def test_adamw_with_a_changing_learning_rate(level):
    own, theirs = parameters(level)
    scheduler = WarmupCosineScheduler(lr=1e-2, total_steps=80, warmup_steps=10, min_lr=1e-3)
    run(
        level,
        AdamWOptimizer(own, weight_decay=0.1),
        torch_adamw(theirs, 0.1),
        own,
        theirs,
        rate=scheduler.step,
    )


@pytest.mark.parametrize("weight_decay, decays_all", [(0.11, False), (0.1, True)])
def test_the_comparison_sees_a_wrong_decay(weight_decay, decays_all):
    own, theirs = parameters(SINGLE)
    reference = torch_adamw(theirs, 0.1)
    if decays_all:
        reference = torch.optim.AdamW(theirs, weight_decay=0.1)
    with pytest.raises(AssertionError, match="parameter"):
        run(SINGLE, AdamWOptimizer(own, weight_decay=weight_decay), reference, own, theirs)


@LEVELS
@pytest.mark.parametrize("max_norm", [1e-2, 1.0, 5.0, 1e6])
def test_clipping(level, max_norm):
    """The norms are equal. torch scales by max_norm / (norm + 1e-6), this engine by max_norm / norm."""
    own, theirs = parameters(level)
    for step in range(20):
        set_gradients(own, theirs, level, step, skipped=(1,) if step % 3 == 0 else ())
        norm = SGDOptimizer(own, 0.1).clip_grad_norm(max_norm)
        expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
        assert norm == pytest.approx(expected.item(), rel=1e-12 if level is DOUBLE else 1.3e-6)
        for mine, other in zip(own, theirs, strict=True):
            assert mine.has_grad == (other.grad is not None)
            if other.grad is not None:
                undo = (norm + 1e-6) / norm if norm > max_norm else 1.0
                wanted = (other.grad.double() * undo).to(other.dtype)
                assert_close(np.asarray(mine.grad), wanted, level.gradient, f"gradient clipped at {max_norm}")
    assert norm > 1e-2  # clipped at the first limit ...
    assert norm < 1e6  # ... and left alone at the last


def other_formula(step, lr, total, warmup, least):
    """Written from the description: equal steps up, then the first half of a cosine wave, then flat."""
    if step < warmup:
        return np.linspace(0.0, lr, warmup + 1)[step + 1]
    if step >= total:
        return least
    return least + (lr - least) * math.cos(math.pi / 2 * (step - warmup) / (total - warmup)) ** 2


SCHEDULES = [(1e-3, 100, 10, 1e-4), (1.0, 50, 0, 0.0), (0.5, 20, 1, 0.5), (3e-4, 200, 199, 0.0), (0.0, 5, 2, 0.0)]


@pytest.mark.parametrize("lr, total, warmup, least", SCHEDULES)
def test_the_schedule_against_another_formula(lr, total, warmup, least):
    scheduler = WarmupCosineScheduler(lr, total, warmup, least)
    for step in range(total + 20):
        assert scheduler.step(step) == pytest.approx(
            other_formula(step, lr, total, warmup, least), rel=1e-12, abs=1e-15
        )


@pytest.mark.parametrize("lr, total, warmup, least", [schedule for schedule in SCHEDULES if schedule[2] > 1])
def test_the_schedule_against_the_schedulers_of_torch(lr, total, warmup, least):
    """LinearLR starts at 1 / warmup and reaches 1 after warmup - 1 steps; CosineAnnealingLR takes over one step later.

    After the end torch's cosine would rise again, so it is compared up to there.
    """
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    rise = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, total_iters=warmup - 1)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total - warmup, eta_min=least)
    reference = torch.optim.lr_scheduler.SequentialLR(optimizer, [rise, fall], [warmup])
    scheduler = WarmupCosineScheduler(lr, total, warmup, least)
    for step in range(total + 1):
        assert scheduler.step(step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9, abs=1e-15), step
        optimizer.step()
        reference.step()
