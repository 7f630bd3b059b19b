"""Which check catches which mistake. All of them keep every shape, and all of them train."""

import math

import numpy as np
import pytest
import torch

from src.core import AdamWOptimizer, Tensor
from src.gpt import GPT, CharDataset, GPTAttention, GPTLoss, GPTTrainer
from tests.oracle.bugs import BUGS, TargetsNotShifted
from tests.oracle.torch_gpt import randomize, torch_twin

CONTEXT, SIZE, HEADS, BLOCKS = 32, 32, 4, 2
TEXT = "Shall I compare thee to a summer's day? Thou art more lovely and more temperate. " * 8

# The checks that must fail, as in the table of acceptance cases; those not named must pass.
CAUGHT_BY = {
    "none": set(),
    "no root of D": {"parity"},
    "root of C instead of D": {"parity"},
    "exact GELU for tanh": {"parity"},
    "LayerNorm with n - 1": {"parity"},
    "residual from normalised x": {"parity"},
    "-1e9 on allowed keys": {"parity"},
    "split without transpose": {"parity", "leak"},
    "merge without transpose": {"parity", "leak"},
    "softmax over queries": {"parity", "leak", "row sums"},
    "mask after softmax": {"parity", "leak", "row sums"},
    "mask inverted": {"parity", "leak"},
    "mask off by one": {"parity", "leak"},
    "positions not added": {"parity"},
    "targets not shifted": {"data"},
}


@pytest.fixture(scope="module")
def text_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "sonnet.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def build_dataset(bug, path):
    kind = TargetsNotShifted if bug == "targets not shifted" else CharDataset
    return kind(path, batch_size=4, context_size=CONTEXT, stride=1, generator=np.random.default_rng(0))


def build_model(bug, vocab_size):
    return GPT(vocab_size, CONTEXT, SIZE, BLOCKS, HEADS, generator=np.random.default_rng(0), **BUGS[bug])


def ids(model, seed):
    return np.random.default_rng(seed).integers(0, model.vocab_size, (2, CONTEXT))


def logits(model, x):
    with Tensor.no_grad():
        return model(Tensor(x)).data


def parity(model, dataset):
    """The same logits as the model written in PyTorch, given the same weights."""
    x = ids(model, 1)
    expected = torch_twin(model, HEADS)(torch.tensor(x)).detach().numpy()
    return np.abs(logits(model, x) - expected).max() < 1e-4


def leak(model, dataset):
    """No later token may change an earlier logit, not by a bit."""
    x = ids(model, 1)
    before = logits(model, x)
    for start in (1, CONTEXT // 2, CONTEXT - 1):
        changed = x.copy()
        changed[:, start:] = (changed[:, start:] + 1) % model.vocab_size
        if not np.array_equal(logits(model, changed)[:, :start], before[:, :start]):
            return False
    return True


def row_sums(model, dataset):
    """Each query spends exactly 1 on all keys together."""
    weights = model.attention_weights(Tensor(ids(model, 1)))
    assert [array.shape for array in weights] == [(2, HEADS, CONTEXT, CONTEXT)] * BLOCKS
    return all(np.abs(array.sum(axis=-1) - 1).max() < 1e-5 for array in weights)


def data(model, dataset):
    """The target at each place is the input at the next place; with stride 1, also the next window's input."""
    x, y = (tensor.data for tensor in dataset[0])
    return np.array_equal(y[:, :-1], x[:, 1:]) and np.array_equal(y[:-1], x[1:])


CHECKS = {"parity": parity, "leak": leak, "row sums": row_sums, "data": data}


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_is_caught_by_the_checks_named(bug, text_file):
    dataset = build_dataset(bug, text_file)
    model = build_model(bug, dataset.vocab_size)
    randomize(model, 0.3)  # sharp attention, as after training: an untrained one averages, and hides mistakes
    caught = {name for name, check in CHECKS.items() if not check(model, dataset)}
    assert caught == CAUGHT_BY[bug]


@pytest.mark.parametrize("bug", BUGS)
def test_shapes_and_a_falling_loss_catch_nothing(bug, text_file):
    dataset = build_dataset(bug, text_file)
    model = build_model(bug, dataset.vocab_size)
    trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters, lr=3e-3))
    losses = trainer.train(dataset, epochs=1, max_steps=40)
    assert logits(model, ids(model, 1)).shape == (2, CONTEXT, dataset.vocab_size)
    assert losses[0] == pytest.approx(math.log(dataset.vocab_size), rel=0.05)
    assert losses[-1] < 0.85 * losses[0]


def test_the_model_of_the_course_passes_every_check(text_file):
    dataset = build_dataset("none", text_file)
    model = GPT(dataset.vocab_size, CONTEXT, SIZE, BLOCKS, HEADS)
    assert isinstance(model.blocks[0].attention, GPTAttention)
    randomize(model, 0.3)
    assert all(check(model, dataset) for check in CHECKS.values())
