"""Halves of a batch, where layers share parts or are not as they were built."""

import tracemalloc

import numpy as np
import pytest

from src.core import Composite, Linear, Tensor
from src.core.fast.layer_norm import layer_norm
from src.core.fast.layers import through
from src.core.gradient import Storage
from src.gpt import GPT, GPTFeedForward, GPTLoss
from src.gpt.rotary import POSITIONS

IDS = Tensor(np.random.default_rng(0).integers(0, 11, (5, 8)))
LABELS = Tensor(np.random.default_rng(1).integers(0, 11, (5, 8)))


@pytest.fixture
def model():
    with Tensor.precision(np.float64):
        yield GPT(11, context_size=8, embedding_size=16, blocks=2, heads=2, generator=np.random.default_rng(3))


def gradients(model):
    for parameter in model.parameters:
        parameter.grad = None
    GPTLoss()(model(IDS), LABELS).backward()
    return {name: parameter.received.copy() for name, parameter in model.named_parameters()}


def assert_same_in_halves(model, monkeypatch):
    whole = gradients(model)
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    for name, gradient in gradients(model).items():
        np.testing.assert_allclose(gradient, whole[name], rtol=1e-9, atol=1e-12, err_msg=name)


def share_tensor(model):
    model.blocks[1].attention.query.weight = model.blocks[0].attention.query.weight


def share_layer(model):
    model.blocks[1].attention = model.blocks[1].layers[1] = model.blocks[0].attention


def share_block(model):
    model.blocks[1] = model.layers[2] = model.blocks[0]


@pytest.mark.parametrize("share", [share_tensor, share_layer, share_block])
def test_what_two_blocks_share_receives_each_gradient_once(share, model, monkeypatch):
    share(model)
    assert_same_in_halves(model, monkeypatch)


def test_a_place_that_was_replaced_sees_the_whole_batch(model, monkeypatch):
    attention, shapes = model.blocks[0].attention, []
    attention.place = lambda query, key, start: (query, key, shapes.append(query.shape))[:2]
    assert_same_in_halves(model, monkeypatch)
    assert shapes == [(5, 8, 16)] * 2


def test_rotary_attention_is_halved_too(monkeypatch):
    with Tensor.precision(np.float64):
        model = GPT(11, 8, 16, 2, heads=2, generator=np.random.default_rng(3), **POSITIONS["rotary"])
        passes = []
        monkeypatch.setattr("src.gpt.model.through", lambda *given, **how: passes.append(how) or through(*given, **how))
        assert_same_in_halves(model, monkeypatch)
        assert passes == [{"halves": False}, {"halves": True}]


def test_gradients_of_two_passes_add_up(model, monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    once = gradients(model)
    GPTLoss()(model(IDS), LABELS).backward()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.received, 2 * once[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_weight_that_was_computed_sends_its_whole_gradient_on(model, monkeypatch):
    query = model.blocks[0].attention.query
    base = Tensor(query.weight.data.copy())

    def gradient():
        base.grad = None
        query.weight = base * 1.0
        GPTLoss()(model(IDS), LABELS).backward()
        return base.received

    whole = gradient()
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    np.testing.assert_allclose(gradient(), whole, rtol=1e-9, atol=1e-12)


def test_a_forward_that_was_replaced_sees_the_whole_batch(model, monkeypatch):
    attention, shapes = model.blocks[0].attention, []
    before = attention.forward
    attention.forward = lambda x: shapes.append(x.shape) or before(x)
    assert_same_in_halves(model, monkeypatch)
    assert shapes == [(5, 8, 16)] * 2


def test_a_change_of_a_weight_is_noticed_before_any_gradient_is_given(model, monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    loss = GPTLoss()(model(IDS), LABELS)
    list(model.named_parameters())
    model.blocks[1].attention.key.weight.data *= 1.0
    with pytest.raises(RuntimeError, match="changed after the forward"):
        loss.backward()
    assert not any(parameter.has_grad for parameter in model.parameters)


def test_names_of_parameters_stay(model, monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    names = [name for name, _ in model.named_parameters()]
    tensors = model.parameters
    GPTLoss()(model(IDS), LABELS).backward()
    assert [tensor.name for tensor in tensors] == names


def test_values_may_be_wider_than_keys(model, monkeypatch):
    attention = model.blocks[0].attention
    attention.value, attention.output = Linear(16, 24), Linear(24, 16)
    assert_same_in_halves(model, monkeypatch)


def test_a_shared_block_does_not_keep_a_gradient_for_each_of_its_uses(monkeypatch):
    model = GPT(11, context_size=8, embedding_size=32, blocks=12)
    for place in range(1, 12):
        model.blocks[place] = model.layers[1 + place] = model.blocks[0]
    size = sum(parameter.data.nbytes for parameter in model.parameters)
    for halved_from in (10**15, 1):
        monkeypatch.setattr("src.gpt.model.HALVED_FROM", halved_from)
        for parameter in model.parameters:
            parameter.grad = None
        loss = GPTLoss()(model(IDS), LABELS)
        tracemalloc.start()
        loss.backward()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 7 * size


def test_halves_are_added_in_their_order(monkeypatch):
    """To what was received before: first the one of the first half, then the other."""
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    model = GPT(11, context_size=8, embedding_size=16, blocks=1)
    orders = []
    receive = Storage.receive

    def watched(self, gradient, fresh=False):
        if self is model.norm.weight._storage:
            orders.append(gradient.copy())
        receive(self, gradient, fresh)

    logits = model(IDS)
    grad = np.zeros(logits.shape)
    grad[:2] = np.random.default_rng(4).standard_normal(grad[:2].shape)  # nothing for the second half
    model.norm.weight.grad = np.ones(16)
    monkeypatch.setattr(Storage, "receive", watched)
    logits.backward(grad)
    assert len(orders) == 2 and orders[0].any() and not orders[1].any()
    np.testing.assert_allclose(model.norm.weight.grad, 1.0 + orders[0], rtol=1e-6)


def test_a_class_with_other_parts_and_another_forward_is_computed_by_it(monkeypatch):
    def init(self, embedding_size, **_):
        self.only = Linear(embedding_size, embedding_size)
        Composite.__init__(self, [self.only])

    monkeypatch.setattr(GPTFeedForward, "__init__", init)
    monkeypatch.setattr(GPTFeedForward, "forward", lambda self, x: self.only(x))
    assert GPT(11, 8, 16, 1)(IDS).shape == (5, 8, 11)


def test_a_gradient_that_fits_no_parameter_is_noticed_before_any_is_given():
    model = GPT(11, context_size=8, embedding_size=16, blocks=1)
    model.blocks[0].feed_forward_norm.bias = Tensor(np.zeros((1, 16)))
    with pytest.raises(ValueError, match="cannot belong"):
        model(IDS).sum().backward()
    assert not any(parameter.has_grad for parameter in model.parameters)


def test_a_gradient_takes_the_float_type_of_its_parameter(monkeypatch):
    def precise(*arrays, **settings):
        result, backward = layer_norm(*arrays, **settings)
        return result, lambda grad: [gradient.astype(np.float64) for gradient in backward(grad)]

    monkeypatch.setattr("src.core.fast.forms.layer_norm", precise)
    model = GPT(11, context_size=8, embedding_size=16, blocks=1)
    model(IDS).sum().backward()
    assert {parameter.received.dtype for parameter in model.parameters} == {np.dtype(np.float32)}
