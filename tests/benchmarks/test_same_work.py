"""The sides of each benchmark compute the same thing, so that comparing their times is fair. Nothing is timed here."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import baseline, floor, ours, theirs
from benchmarks.__main__ import BASELINE
from src.core import seed
from tests.oracle.torch_gpt import randomize, torch_twin

STEP = {"batch": 3, "context": 8, "size": 16, "heads": 2, "blocks": 2}
TEXT = {"context": 24, "size": 16, "heads": 2, "blocks": 2, "steps": 20, "temperature": 0.0}


def with_same_weights(own, other, heads):
    randomize(own.model, std=0.3)
    other.model.load_state_dict(torch_twin(own.model, heads).state_dict())
    return own, other


def test_training_steps_have_the_same_losses():
    own, other = with_same_weights(ours.Step(**STEP), theirs.Step(**STEP), STEP["heads"])
    losses = [(own.run(), other.run()) for _ in range(2 * ours.BATCHES)]
    own_losses, other_losses = np.array(losses).T
    np.testing.assert_allclose(own_losses, other_losses, atol=1e-4)
    assert own_losses[ours.BATCHES] < own_losses[0] - 0.1  # the same batch again: both have learned


def test_training_steps_change_the_weights_alike():
    own, other = with_same_weights(ours.Step(**STEP), theirs.Step(**STEP), STEP["heads"])
    for _ in range(5):
        own.run(), other.run()
    twin = torch_twin(own.model, STEP["heads"]).state_dict()
    for name, values in other.model.state_dict().items():
        if name.endswith("qkv.bias"):  # a bias of the keys changes no weight: its gradient is rounding
            values, twin[name] = (part.chunk(3)[2] for part in (values, twin[name]))
        torch.testing.assert_close(twin[name], values, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("heads", [1, 2])
def test_the_floor_takes_the_steps_of_the_engine(heads):
    sizes = STEP | {"heads": heads}
    own, bare = ours.Step(**sizes), floor.Step(**sizes)
    randomize(own.model, std=0.3)
    bare.load(own.model.state_dict())
    losses = [(own.run(), bare.run())]
    assert own.trainer.optimizer.clip_grad_norm(2.0) == pytest.approx(1.0, abs=1e-5)  # the gradient was clipped
    losses += [(own.run(), bare.run()) for _ in range(2 * ours.BATCHES)]
    np.testing.assert_allclose(*np.array(losses).T, atol=1e-5)
    for name, values in own.model.state_dict().items():
        if not name.endswith("key.bias"):  # it changes no weight of the attention: its gradient is rounding
            np.testing.assert_allclose(bare.weights[name], values, atol=2e-5, rtol=1e-4, err_msg=name)


def test_the_optimizers_have_the_same_settings():
    """Their decay is too weak to show in a few steps."""
    own, (matrices, others) = ours.Step(**STEP).trainer.optimizer, theirs.Step(**STEP).optimizer.param_groups
    for group in (matrices, others):
        assert (group["lr"], group["betas"], group["eps"]) == (own.lr, own.betas, own.eps)
        assert group["fused"]
    assert (matrices["weight_decay"], others["weight_decay"]) == (own.weight_decay, 0.0)
    settings = (floor.LR, (floor.BETA1, floor.BETA2), floor.EPS, floor.DECAY)
    assert settings == (own.lr, own.betas, own.eps, own.weight_decay)
    assert len(matrices["params"]) + len(others["params"]) == len(list(theirs.Step(**STEP).model.parameters()))


@pytest.mark.parametrize("kind", [theirs.Generation, theirs.GenerationWithoutCache])
def test_both_write_the_same_text(kind):
    own, other = with_same_weights(ours.Generation(**TEXT), kind(**TEXT), TEXT["heads"])
    text = own.run()
    assert len(text) == TEXT["steps"] + 1 and len(set(text)) > 3
    assert other.run() == text


@pytest.mark.parametrize("kind", [ours.Generation, theirs.Generation, theirs.GenerationWithoutCache])
def test_what_is_timed_draws(kind):
    torch.manual_seed(0)
    side = kind(**TEXT | {"temperature": 1.0})
    one, other = side.run(), side.run()
    assert one != other and len(one) == len(other) == TEXT["steps"] + 1
    assert all(0 <= token < ours.VOCABULARY for token in one + other)


def test_the_two_models_of_pytorch_are_one():
    """The cached pass, token by token, has the logits of the whole pass."""
    model = theirs.Generation(**TEXT).model
    ids = torch.randint(0, ours.VOCABULARY, (1, 12))
    caches = [theirs.KeysAndValues(model.heads, model.context, model.size) for _ in model.blocks]
    with torch.no_grad():
        whole = model(ids)[0]
        parts = [model.last_logits(ids[:, place : place + 1], place, caches)[0] for place in range(12)]
    torch.testing.assert_close(torch.stack(parts), whole, atol=1e-6, rtol=1e-5)


PLAIN = Path(os.environ.get("BENCHMARK_BASELINE", BASELINE))


@pytest.mark.skipif(not PLAIN.is_file(), reason="the file of the plain engine is not here")
def test_the_plain_engine_has_the_same_loss():
    seed(0)
    sizes = STEP | {"heads": 1}
    own, other = ours.BareStep(**sizes), baseline.Step(str(PLAIN), **sizes)
    pairs = list(zip(own.model.parameters, _in_our_order(other.model), strict=True))
    for mine, plain in pairs:
        plain.data[...] = mine.data
    for _ in range(5):
        assert own.run() == pytest.approx(other.run(), abs=1e-4)
        other.model.o.bias.data[...] = 0.0  # our output has no bias to learn


def _in_our_order(model):
    """The plain model's parameters but for the bias of its output, which ours does not have."""
    yield from (model.em.a.weight, model.em.b.weight)
    for block in model.bs:
        for layer in (block.a.q, block.a.k, block.a.v, block.a.o, block.f.i, block.f.o):
            yield from (layer.weight, layer.bias)
    yield model.o.weight
