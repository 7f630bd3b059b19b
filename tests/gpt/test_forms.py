"""A whole GPT as one operation on arrays gives what its layers give one by one, and is used only where it may be."""

import os
import subprocess
import sys
import tracemalloc
from functools import partial

import numpy as np
import pytest

from src.core import GELU, Composite, Dropout, Embedding, Layer, LayerNorm, Linear, ReLU, Softmax, Tensor
from src.core.fast import plain
from src.core.fast.layers import known, through
from src.gpt import (
    GPT,
    BareTransformer,
    GPTAttention,
    GPTFeedForward,
    GPTLoss,
    GPTTransformer,
    PositionalEncoding,
    RotaryAttention,
)
from src.gpt.block import Identity
from src.gpt.forms import FORMS

IDS = Tensor(np.random.default_rng(0).integers(0, 11, (5, 8)))
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
LABELS = Tensor(np.random.default_rng(1).integers(0, 11, (5, 8)))


def build(**options):
    settings = dict(vocab_size=11, context_size=9, embedding_size=16, blocks=2, heads=2) | options
    return GPT(**settings, generator=np.random.default_rng(3))


def loss_and_gradients(model):
    for parameter in model.parameters:
        parameter.grad = None
    loss = GPTLoss()(model(IDS), LABELS)
    loss.backward()
    return loss.item(), {name: parameter.received.copy() for name, parameter in model.named_parameters()}


def assert_equal(one, other):
    """Two results of `loss_and_gradients` are the same but for rounding in float64."""
    assert one[0] == pytest.approx(other[0], rel=1e-12)
    for name, gradient in one[1].items():
        np.testing.assert_allclose(gradient, other[1][name], rtol=1e-9, atol=1e-12, err_msg=name)


def wide(embedding_size):
    return Composite([Linear(embedding_size, 24), ReLU(), Linear(24, embedding_size), Softmax()])


OPTIONS = {
    "as usual": {},
    "tied": {"tied": True},
    "rotary": {"attention": RotaryAttention, "positions": None},
    "waves": {"positions": lambda embedding_size: PositionalEncoding(embedding_size, 9)},
    "no positions": {"positions": None},
    "no normalisation": {"normalization": None, "std": None},
    "bare": {"block": BareTransformer, "normalization": None, "std": None},
    "ReLU": {"feed_forward": partial(GPTFeedForward, activation=ReLU)},
    "exact GELU": {"feed_forward": partial(GPTFeedForward, activation=GELU)},
    "a composite": {"feed_forward": wide},
    "one layer": {"feed_forward": lambda embedding_size: Linear(embedding_size, embedding_size)},
    "nothing": {"feed_forward": lambda embedding_size: Identity()},
    "without bias": {"attention": partial(GPTAttention, bias=False)},
    "another eps": {"normalization": partial(LayerNorm, eps=0.1)},
    "one channel is added to all": {"feed_forward": lambda embedding_size: Linear(embedding_size, 1)},
    "dropout": {"dropout": 0.3},
    "all dropped": {"dropout": 1.0},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_loss_and_gradients_are_those_of_the_plain_layers(name):
    with Tensor.precision(np.float64):
        model, other = build(**OPTIONS[name]), build(**OPTIONS[name])
        assert known([model.embedding, *model.blocks, model.norm, model.output], FORMS)
        fast = loss_and_gradients(model)
        with plain():
            assert_equal(fast, loss_and_gradients(other))


@pytest.mark.parametrize("halved_from", [1, 10**15])
def test_layers_computed_one_by_one_give_the_same(halved_from, monkeypatch):
    class Own(Linear):
        pass

    monkeypatch.setattr("src.gpt.model.HALVED_FROM", halved_from)
    with Tensor.precision(np.float64):
        model, other = build(), build()
        layer = other.blocks[1].feed_forward.input
        own = Own(16, 64)
        own.weight, own.bias = layer.weight, layer.bias
        other.blocks[1].feed_forward.input = own
        assert known(model.blocks, FORMS) and not known(other.blocks, FORMS)
        assert_equal(loss_and_gradients(model), loss_and_gradients(other))


@pytest.mark.parametrize("kind", [Linear, LayerNorm, GELU, Dropout, GPTAttention, GPTFeedForward, BareTransformer])
def test_a_forward_that_was_replaced_in_the_class_is_used(kind, monkeypatch):
    model, seen, before = build(block=BareTransformer) if kind is BareTransformer else build(), [], kind.forward
    monkeypatch.setattr(kind, "forward", lambda *given: seen.append(1) or before(*given))
    model(IDS)
    assert seen


def test_whoever_watches_all_calls_sees_every_layer(monkeypatch):
    model, seen, before = build(), [], Layer.__call__
    monkeypatch.setattr(Layer, "__call__", lambda layer, *given: seen.append(type(layer)) or before(layer, *given))
    model(IDS)
    assert seen.count(LayerNorm) == 5 and seen.count(Linear) == 13


@pytest.mark.parametrize("method", ["split", "merge", "place"])
def test_a_method_of_the_attention_that_was_replaced_is_used(method, monkeypatch):
    model, seen, before = build(), [], getattr(GPTAttention, method)
    monkeypatch.setattr(GPTAttention, method, lambda *given: seen.append(1) or before(*given))
    model(IDS)
    assert seen


def test_a_draw_that_was_replaced_is_used():
    model = build(dropout=0.5)
    for block in model.blocks:
        for dropout in (block.attention.dropout, block.feed_forward.dropout):
            dropout.draw = lambda shape: np.ones(shape, dtype=bool)
            dropout.rate = 0.0  # so that nothing is scaled either
    assert model(IDS).data.tobytes() == model(IDS).data.tobytes()
    np.testing.assert_allclose(model(IDS).data, build()(IDS).data, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("block", [GPTTransformer, BareTransformer])
@pytest.mark.parametrize("feed_forward", [GPTFeedForward, wide])
def test_a_forward_that_was_replaced_is_used_wherever_the_layer_is(block, feed_forward):
    count = len(list(build(block=block, feed_forward=feed_forward).layers_within()))
    for place in range(1, count):
        model = build(block=block, feed_forward=feed_forward)
        layer, seen = list(model.layers_within())[place], []
        before = layer.forward
        layer.forward = lambda *given, seen=seen, before=before: seen.append(1) or before(*given)
        model(IDS)
        assert seen, f"{type(layer).__name__}, number {place}"


@pytest.mark.parametrize("dropout", [Identity, lambda: Composite([Dropout(0.0)])])
def test_the_dropout_of_the_attention_may_be_another_layer(dropout):
    model, expected = build(), build()(IDS).data
    model.blocks[0].attention.dropout = dropout()
    np.testing.assert_allclose(model(IDS).data, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("query", [lambda: Composite([Linear(16, 16), ReLU()]), Identity, lambda: LayerNorm(16)])
@pytest.mark.parametrize("attention", [GPTAttention, RotaryAttention])
def test_a_projection_may_be_another_layer(attention, query):
    with Tensor.precision(np.float64):
        model = build(attention=attention)
        model.blocks[0].attention.query = query()
        fast = loss_and_gradients(model)
        with plain():
            assert_equal(fast, loss_and_gradients(model))


def narrow_table(model):
    model.embedding.positions.table = Embedding(9, 1)


def narrow_attention(model):
    model.blocks[1].attention.output = Linear(16, 1)


def narrow_tokens(model):
    model.embedding.token = Embedding(11, 1)


def narrow_stream(model):
    model.embedding.token, model.embedding.positions = Embedding(11, 1), None
    model.blocks[0].attention_norm, model.blocks[0].attention = Identity(), Linear(1, 16)


def narrow_stream_until_the_network(model):
    model.embedding.token, model.embedding.positions = Embedding(11, 1), None
    block = model.blocks[0]
    block.attention_norm, block.attention, block.feed_forward_norm = Identity(), Linear(1, 1), Identity()
    block.feed_forward = Linear(1, 16)


def one_bias_for_all(model):
    bias = Tensor([0.3])
    for layer in model.blocks[1].layers_within():
        if isinstance(layer, Linear):
            layer.bias = bias
    model.blocks[1].attention.output = Linear(16, 1)
    model.blocks[1].attention.output.bias = bias


@pytest.mark.parametrize("halved_from", [1, 10**15])
@pytest.mark.parametrize(
    "change",
    [narrow_table, narrow_attention, narrow_tokens, narrow_stream, narrow_stream_until_the_network, one_bias_for_all],
    ids=lambda change: change.__name__,
)
def test_one_channel_may_stand_for_all(change, halved_from, monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", halved_from)
    with Tensor.precision(np.float64):
        model = build()
        change(model)
        fast = loss_and_gradients(model)
        with plain():
            assert_equal(fast, loss_and_gradients(model))


@pytest.mark.parametrize("heads", [3, 16])
def test_heads_that_rotary_attention_cannot_turn_are_refused(heads):
    model = build(attention=RotaryAttention, positions=None)
    model.blocks[0].attention.heads = heads
    with pytest.raises(ValueError, match=f"16 channels of {heads} heads do not go into pairs"):
        model(IDS)


@pytest.mark.parametrize("attention", [GPTAttention, RotaryAttention])
def test_a_weight_of_integers_is_a_constant(attention):
    model = build(attention=attention)
    model.blocks[0].attention.query.weight = Tensor(np.arange(256).reshape(16, 16) % 3)
    fast = model(IDS).data
    with plain():
        np.testing.assert_allclose(fast, model(IDS).data, rtol=1e-4, atol=1e-5)


def test_a_rate_of_numpy_leaves_the_precision_as_it_is():
    model = build(dropout=0.3, feed_forward=partial(GPTFeedForward, activation=ReLU))
    for layer in model.layers_within():
        if isinstance(layer, Dropout):
            layer.rate = np.float64(0.3)
    assert model(IDS).dtype == np.float32
    assert Dropout(0.5).scale == 2.0 and type(model.blocks[0].attention.dropout.scale) is float


def test_a_composite_without_its_list_says_so():
    model = build(feed_forward=wide)
    del model.blocks[0].feed_forward.layers
    with pytest.raises(RuntimeError, match="no list of layers"):
        model(IDS)


def test_a_layer_inside_itself_ends_as_in_python():
    model = build(feed_forward=wide)
    network = model.blocks[0].feed_forward
    network.layers.append(network)
    with pytest.raises(RecursionError):
        model(IDS)


def test_constants_get_no_gradient():
    model = build()
    linear = model.blocks[0].attention.query
    with Tensor.no_grad():
        linear.weight = Tensor(linear.weight.data.copy()) * 1.0
    loss_and_gradients(model)
    assert not linear.weight.has_grad and linear.bias.has_grad
    linear.bias.grad = None
    linear(Tensor(np.ones((2, 16)))).sum().backward()
    assert not linear.weight.has_grad and linear.bias.has_grad


@pytest.mark.parametrize(
    ("find", "name"),
    [
        (lambda model: model.embedding.token, "weight"),
        (lambda model: model.embedding.positions.table, "weight"),
        (lambda model: model.blocks[0].attention.query, "bias"),
        (lambda model: model.norm, "weight"),
        (lambda model: model.norm, "bias"),
        (lambda model: model.output, "table"),
    ],
)
@pytest.mark.parametrize("halved_from", [1, 10**9])
def test_any_parameter_may_be_made_a_constant(find, name, halved_from, monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", halved_from)
    model = build(tied=name == "table")
    layer = find(model)
    with Tensor.no_grad():
        setattr(layer, name, Tensor(getattr(layer, name).data.copy()) * 1.0)
    loss_and_gradients(model)
    assert not getattr(layer, name).has_grad
    assert all(parameter.has_grad for parameter in model.parameters)


def test_the_second_half_draws_from_a_generator_that_the_first_one_gives(monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    model, alone = build(dropout=0.5), build(dropout=0.5)
    _restart(model, np.random.default_rng(7))
    seed = int(np.random.default_rng(7).integers(2**63))
    _restart(alone, np.random.Generator(np.random.PCG64(seed)))
    both = model(Tensor(IDS.data[:2])).data
    np.testing.assert_allclose(both[1:], alone(Tensor(IDS.data[1:2])).data, rtol=1e-5, atol=1e-6)


def _restart(model, generator):
    for layer in model.layers_within():
        if isinstance(layer, Dropout):
            layer.generator = generator


@pytest.mark.parametrize(("mode", "rate", "numbers"), [("train", 0.5, 1), ("train", 0.0, 0), ("eval", 0.5, 0)])
def test_halves_take_one_number_from_a_generator_and_only_if_something_is_dropped(mode, rate, numbers, monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    monkeypatch.setattr(Dropout, "scale", 1.0)
    model, generator, expected = build(), np.random.default_rng(7), np.random.default_rng(7)
    _restart(model, generator)
    for layer in model.layers_within():
        if isinstance(layer, Dropout):
            layer.rate = rate
    getattr(model, mode)()
    drawn = []
    monkeypatch.setattr(
        "src.core.fast.layers.np.random.PCG64", lambda number: drawn.append(number) or np.random.MT19937(1)
    )
    model(IDS)
    assert drawn == [int(expected.integers(2**63)) for _ in range(numbers)]
    if not rate or mode == "eval":
        assert generator.bit_generator.state == expected.bit_generator.state


def test_one_sequence_is_not_halved(monkeypatch):
    whole = build()(Tensor(IDS.data[:1])).data
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    np.testing.assert_array_equal(build()(Tensor(IDS.data[:1])).data, whole)


def test_a_method_that_was_replaced_before_the_model_was_imported_is_used():
    program = """
from src.core import Linear, Tensor
before, seen = Linear.forward, []
Linear.forward = lambda layer, x: seen.append(1) or before(layer, x)
from src.gpt import GPT
GPT(11, 8, 16, 1)(Tensor([[1, 2, 3]]))
print(len(seen))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert run.stdout == "7\n", run.stderr


def test_halves_keep_their_logits_once(monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    model, ids = build(vocab_size=4000, blocks=1), Tensor(np.zeros((64, 8), dtype=int))
    model(ids)
    tracemalloc.start()
    out = model(ids)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 1.7 * out.data.nbytes


def test_weights_are_kept_where_they_are_asked_for():
    model = build()
    assert [weights.shape for weights in model.attention_weights(IDS)] == [(5, 2, 8, 8)] * 2


def test_wrong_sizes_are_refused_as_the_layers_do():
    model = build()
    model.blocks[1].attention.query = Linear(8, 16)
    with pytest.raises(ValueError, match="Linear takes 8 inputs in the last axis, got shape"):
        model(IDS)
    model = build()
    model.blocks[1].attention_norm = LayerNorm(8)
    with pytest.raises(ValueError, match=r"LayerNorm\(8\) needs 8 channels"):
        model(IDS)
    model = build(positions=lambda embedding_size: PositionalEncoding(embedding_size, 4))
    with pytest.raises(ValueError, match="4 positions"):
        model(IDS)
    model = build()
    model.embedding.positions.table.weight = Tensor(np.zeros((4, 16)))
    with pytest.raises(ValueError, match="4 positions"):
        model(IDS)


def test_wrong_ids_are_refused_as_the_embedding_does():
    with pytest.raises(ValueError, match="token ids go from 0 to 10, got 3 to 11"):
        build()(Tensor([[3, 11]]))
    with pytest.raises(TypeError, match="Embedding looks up integers"):
        build()(Tensor([[1.0, 2.0]]))


def test_a_layer_in_another_precision_is_refused():
    model = build()
    with Tensor.precision(np.float64):
        model.blocks[0].attention_norm = LayerNorm(16)
    with pytest.raises(TypeError, match="float64 tensor of shape"):
        model(IDS)


def test_ids_may_change_between_forward_and_backward():
    one, other = build(), build()
    _, expected = loss_and_gradients(one)
    ids = Tensor(IDS.data.copy())
    loss = GPTLoss()(other(ids), LABELS)
    ids.data[...] = 0
    loss.backward()
    for name, parameter in other.named_parameters():
        np.testing.assert_array_equal(parameter.received, expected[name], err_msg=name)


def test_a_gradient_flows_to_floats_that_go_through_layers():
    layers = [LayerNorm(4), Linear(4, 4), Identity()]
    x = Tensor(np.random.default_rng(0).standard_normal((6, 4)))
    expected = Tensor(x.data)
    h = expected
    for layer in layers:
        h = layer(h)
    h.backward(np.ones((6, 4)))
    for halves in (False, True):
        x.grad = None
        through(layers, FORMS, x, halves).backward(np.ones((6, 4)))
        np.testing.assert_allclose(x.grad, expected.grad, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_what_only_passes_is_not_shared():
    x = Tensor(np.zeros((2, 3)))
    out = through([Identity()], FORMS, x)
    out.backward(np.ones((2, 3)))
    x.received[...] = 7.0
    assert out.grad.tolist() == np.ones((2, 3)).tolist()


def test_without_recording_nothing_is_kept():
    model = build(embedding_size=64, blocks=8)
    ids = Tensor(np.zeros((16, 8), dtype=int))

    def peak():
        model(ids)
        tracemalloc.start()
        model(ids)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    recorded = peak()
    with Tensor.no_grad():
        assert peak() < 0.5 * recorded
