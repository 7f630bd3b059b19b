"""The GPT: shapes, first loss, initialisation, tying, builders, and what is refused."""

import math
from functools import partial

import numpy as np
import pytest

from src.core import Composite, Layer, LayerNorm, Linear, ReLU, Tensor, default_generator, seed
from src.gpt import (
    GPT,
    BareTransformer,
    GPTAttention,
    GPTEmbedding,
    GPTFeedForward,
    GPTLoss,
    GPTOutput,
    GPTTransformer,
    LearnedPositions,
    PositionalEncoding,
    RotaryAttention,
)
from src.gpt.cache import Cache


def ids(vocab_size, batch=4, time=8, number=0):
    return Tensor(np.random.default_rng(number).integers(0, vocab_size, (batch, time)))


def first_loss(model):
    x = ids(model.vocab_size, 16, model.context_size)
    y = ids(model.vocab_size, 16, model.context_size, number=1)
    return GPTLoss()(model(x), y).item()


@pytest.mark.parametrize("vocab_size", [27, 65, 85])
@pytest.mark.parametrize("tied", [False, True])
def test_c20_the_first_loss_is_ln_v(vocab_size, tied):
    seed(0)
    model = GPT(vocab_size, 32, 64, 2, heads=2, tied=tied)
    assert abs(first_loss(model) - math.log(vocab_size)) < 0.02 * math.log(vocab_size)


def test_c20_a_large_vocabulary():
    seed(0)
    model = GPT(50257, 8, 16, 1, tied=True)
    assert abs(first_loss(model) - math.log(50257)) < 0.02 * math.log(50257)


def test_weights_are_small_and_those_into_the_stream_smaller():
    seed(0)
    model = GPT(65, 32, 128, 8)
    for block in model.blocks:
        for name in ("query", "key", "value"):
            assert getattr(block.attention, name).weight.data.std() == pytest.approx(0.02, rel=0.05)
        assert block.feed_forward.input.weight.data.std() == pytest.approx(0.02, rel=0.05)
        for part in (block.attention, block.feed_forward):
            assert part.output.weight.data.std() == pytest.approx(0.02 / 4, rel=0.05)
    assert model.embedding.token.weight.data.std() == pytest.approx(0.02, rel=0.05)
    zeros = [name for name, tensor in model.named_parameters() if not tensor.data.any()]
    assert all("bias" in name for name in zeros)


def test_std_none_keeps_the_layers_own_initialisation():
    seed(0)
    model = GPT(65, 32, 128, 1, std=None)
    assert model.blocks[0].attention.query.weight.data.std() == pytest.approx(math.sqrt(2 / 128), rel=0.05)


def test_t39_tied_output_and_table_are_one_tensor():
    model = GPT(65, 8, 16, 1, tied=True)
    table = model.embedding.token.weight
    assert model.output.weight is table
    assert sum(tensor is table for tensor in model.parameters) == 1
    before = table.data.copy()
    GPTLoss()(model(ids(65)), ids(65, number=1)).backward()
    from_output = np.array(table.grad)
    assert (np.abs(from_output).sum(axis=1) > 0).all()  # the output reaches every row, the look-up only those used
    table.data -= 0.1 * table.grad
    assert not np.allclose(model.output.weight.data, before)


@pytest.mark.parametrize(("tied", "count"), [(True, 124_439_808), (False, 163_037_184)])
def test_c21_gpt2_small_has_the_published_number_of_parameters(tied, count):
    """Counted on two blocks of two widths and continued: every block has the same number of parameters."""

    def parameters(vocab_size, context_size, embedding_size, blocks):
        model = GPT(vocab_size, context_size, embedding_size, blocks, tied=tied)
        return sum(tensor.data.size for tensor in model.parameters)

    small = parameters(7, 5, 768, 1)
    block = parameters(7, 5, 768, 2) - small
    rows = (50257 - 7) * (1 if tied else 2) + (1024 - 5)
    assert small + 11 * block + rows * 768 == count


def test_t18_every_parameter_receives_a_gradient():
    model = GPT(65, 8, 16, 2, heads=2)
    x = Tensor(np.arange(64).reshape(8, 8))
    GPTLoss()(model(x), ids(65, 8, 8)).backward()
    idle = [name for name, tensor in model.named_parameters() if not np.any(tensor.grad)]
    assert idle in ([], ["blocks.0.attention.key.bias", "blocks.1.attention.key.bias"])  # the key's bias has none


def test_c19_a_block_with_zero_outputs_is_the_identity():
    block = GPTTransformer(16, heads=2)
    for output in block.residual_outputs():
        output.weight.data = np.zeros(output.weight.shape)
    x = Tensor(np.random.default_rng(0).standard_normal((2, 5, 16)))
    assert (block(x).data == x.data).all()


def test_c06_later_tokens_do_not_change_earlier_logits():
    seed(0)
    model = GPT(65, 16, 32, 2, heads=4)
    x = np.random.default_rng(0).integers(0, 65, (2, 16))
    changed = x.copy()
    changed[:, 9:] = (changed[:, 9:] + 1) % 65
    with Tensor.no_grad():
        before, after = model(Tensor(x)).data, model(Tensor(changed)).data
    assert (before[:, :9] == after[:, :9]).all()
    assert (before[:, 9:] != after[:, 9:]).any()


def test_dropout_is_found_everywhere_and_off_in_evaluation():
    model = GPT(65, 8, 16, 1, dropout=0.5)
    model.eval()
    x = ids(65)
    assert (model(x).data == model(x).data).all()
    model.train()
    assert (model(x).data != model(x).data).any()


def test_attention_weights_are_kept_on_request_and_without_recording_only():
    model = GPT(65, 8, 16, 2, heads=2)
    model(ids(65))
    assert all(block.attention.weights is None for block in model.blocks)
    weights = model.attention_weights(ids(65))
    assert [each.shape for each in weights] == [(4, 2, 8, 8)] * 2
    assert np.allclose(weights[0].sum(axis=-1), 1, atol=1e-6)
    assert not any(block.attention.keep_weights for block in model.blocks)


def test_attention_weights_are_those_of_evaluation_and_modes_are_left():
    seed(0)
    model, x = GPT(65, 8, 16, 2, dropout=0.5, std=0.5), ids(65)
    model.blocks[1].eval()
    modes = [layer.training for layer in model.layers_within()]
    first, second = model.attention_weights(x), model.attention_weights(x)
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    assert [layer.training for layer in model.layers_within()] == modes and Tensor.recording()
    with pytest.raises(ValueError, match="token ids"):
        model.attention_weights(Tensor([[99]]))
    assert [layer.training for layer in model.layers_within()] == modes


def test_c14_kept_weights_are_those_before_dropout():
    attention = GPTAttention(8, dropout=0.5)
    attention.keep_weights = True
    with Tensor.no_grad():
        attention(Tensor(np.ones((1, 4, 8))))
    assert np.allclose(attention.weights.sum(axis=-1), 1)


class Plain(Layer):
    """A reader's attention: takes the size and nothing else."""

    def __init__(self, size):
        self.linear = Linear(size, size)

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize(
    "options",
    [
        {"attention": Plain},
        {"feed_forward": Plain},
        {"block": Plain},
        {"block": lambda size: Composite([Linear(size, size), ReLU()])},
        {"normalization": partial(LayerNorm, eps=1e-3)},
        {"normalization": None},
        {"positions": PositionalEncoding},
        {"positions": None},
        {"positions": None, "attention": RotaryAttention},
        {"block": BareTransformer, "normalization": None, "std": None},
        {"feed_forward": partial(GPTFeedForward, activation=ReLU)},
        {"heads": 4, "dropout": 0.1, "tied": True},
    ],
)
def test_builders_and_options_give_a_model_that_learns(options):
    seed(0)
    model = GPT(11, 8, 16, 2, **options)
    x = ids(11)
    loss = GPTLoss()(model(x), x)
    loss.backward()
    before = loss.item()
    for tensor in model.parameters:
        if tensor.has_grad:
            tensor.data -= 0.005 * tensor.grad
    assert GPTLoss()(model(x), x).item() < before
    assert model(x).shape == (4, 8, 11)


@pytest.mark.parametrize("setting", [{"heads": 2}, {"dropout": 0.1}])
def test_settings_that_a_builder_does_not_take_are_an_error(setting):
    with pytest.raises(TypeError, match=f"Plain does not take {next(iter(setting))}"):
        GPT(11, 8, 16, 1, attention=Plain, **setting)


def test_settings_fixed_by_partial_stay_as_they_are():
    model = GPT(11, 8, 16, 1, attention=partial(GPTAttention, heads=4, dropout=0.5))
    attention = model.blocks[0].attention
    assert (attention.heads, attention.dropout.rate) == (4, 0.5)
    assert (
        GPT(11, 8, 16, 1, feed_forward=partial(GPTFeedForward, dropout=0.3)).blocks[0].feed_forward.dropout.rate == 0.3
    )
    block = GPT(11, 8, 16, 1, heads=2, block=partial(GPTTransformer, normalization=None)).blocks[0]
    assert block.attention_norm.parameters == [] and block.attention.heads == 2
    mixed = GPT(11, 8, 16, 1, heads=2, attention=partial(GPTAttention, dropout=0.5)).blocks[0].attention
    assert (mixed.heads, mixed.dropout.rate) == (2, 0.5)


@pytest.mark.parametrize("setting", [{"heads": 2}, {"dropout": 0.1}])
def test_a_setting_given_to_the_gpt_and_fixed_by_partial_is_an_error(setting):
    name = next(iter(setting))
    with pytest.raises(TypeError, match=rf"{name} is given twice: {name}={setting[name]}.*{name}=0.* GPTAttention"):
        GPT(11, 8, 16, 1, attention=partial(GPTAttention, **{name: 0}), **setting)


def test_a_builder_must_return_a_layer():
    with pytest.raises(TypeError, match="must return a Layer, got int"):
        GPT(11, 8, 16, 1, attention=lambda size: 3)


@pytest.mark.parametrize(("time", "message"), [(0, "rows of 0 token ids"), (9, "the context is 8 tokens, got 9: crop")])
def test_c23_the_context_is_respected(time, message):
    with pytest.raises(ValueError, match=message):
        GPT(11, 8, 16, 1)(Tensor(np.zeros((1, time), dtype=np.int64)))


def test_c23_cached_tokens_count_too():
    model, cache = GPT(11, 8, 16, 1), Cache(1, 8)
    with Tensor.no_grad(), pytest.raises(ValueError, match="the context is 8 tokens, got 3 after 6 that are cached"):
        for count in (6, 3):
            model(Tensor(np.zeros((1, count), dtype=np.int64)), cache)


@pytest.mark.parametrize("sizes", [(0, 8, 16, 1), (11, 0, 16, 1), (11, 8, 0, 1), (11, 8, 16, 0), (11, 8, 16, -1)])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match="must be at least 1"):
        GPT(*sizes)


@pytest.mark.parametrize("heads", [3, 5, 32])
def test_c09_heads_must_divide_the_channels(heads):
    with pytest.raises(ValueError, match=rf"{heads} heads cannot share 16 channels"):
        GPT(11, 8, 16, 1, heads=heads)


def test_c09_split_and_merge():
    attention = GPTAttention(6, heads=3)
    x = Tensor(np.arange(24.0).reshape(1, 4, 6))
    heads = attention.split(x)
    assert heads.data[0, 0].tolist() == [[0, 1], [6, 7], [12, 13], [18, 19]]
    assert (attention.merge(heads).data == x.data).all()


def test_embedding_and_output_on_their_own():
    embedding = GPTEmbedding(11, 8, 16, positions=LearnedPositions(8, 16))
    assert embedding(ids(11)).shape == (4, 8, 16)
    assert GPTEmbedding(11, 8, 16, positions=False)(ids(11)).shape == (4, 8, 16)
    assert GPTOutput(16, 11)(embedding(ids(11))).shape == (4, 8, 11)


def test_a_generator_that_is_passed_is_the_only_one_drawn_from():
    before = default_generator().bit_generator.state
    sizes = {"vocab_size": 7, "context_size": 5, "embedding_size": 8, "blocks": 1, "std": None}
    first, second = (GPT(**sizes, generator=np.random.default_rng(3)).state_dict() for _ in range(2))
    assert default_generator().bit_generator.state == before
    assert all((array == second[name]).all() for name, array in first.items())
