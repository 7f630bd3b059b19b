"""The quick way of one token through a usual GPT equals the plain one, and unusual models do not take it."""

from functools import partial

import numpy as np
import pytest

from src.core import GELU, Composite, Dropout, Layer, LayerNorm, Linear, Tensor, seed
from src.core.fast import plain
from src.gpt import (
    GPT,
    BareTransformer,
    GPTAttention,
    GPTFeedForward,
    GPTTransformer,
    PositionalEncoding,
    RotaryAttention,
    generate,
    one_token,
)
from src.gpt.cache import Cache
from src.gpt.sampling import probabilities
from tests.oracle.torch_gpt import randomize

SIZES = {"vocab_size": 11, "context_size": 12, "embedding_size": 16, "blocks": 2, "heads": 2}


def build(**options):
    seed(0)
    model = GPT(**SIZES | options)
    randomize(model, std=0.4)  # no bias is zero and no gain is one
    return model


PLACES = [{}, {"positions": None}, {"positions": None, "attention": RotaryAttention}]


@pytest.mark.parametrize("options", [{"tied": True}, *PLACES])
@pytest.mark.parametrize(("dtype", "close"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_logits_equal_those_of_the_model(options, dtype, close):
    tokens = np.random.default_rng(0).integers(0, 11, 12)
    with Tensor.precision(dtype), Tensor.no_grad():
        model = build(**options)
        model.eval()
        with plain():
            whole = model(Tensor([tokens])).data[0]
        cache = Cache(2, 12)
        model(Tensor([tokens[:1]]), cache)
        for place in range(1, 12):
            logits = one_token.next_logits(model, int(tokens[place]), cache)
            assert logits.dtype == dtype
            np.testing.assert_allclose(logits, whole[place], atol=close, rtol=close)
        assert [layer.length for layer in cache.layers] == [12, 12]


def test_equal_channels_normalize_to_the_bias():
    norm = LayerNorm(100)
    norm.bias.data = np.arange(100.0)
    row = np.full(100, 0.1, dtype=np.float32)
    assert one_token._normalize(norm, row).tolist() == norm(Tensor(row)).data.tolist() == list(range(100))


def test_texts_are_the_same_with_the_plain_forms():
    for temperature in (0, 1):
        with plain():
            text = generate(build(), [1, 2], 20, temperature, generator=np.random.default_rng(1))
        assert generate(build(), [1, 2], 20, temperature, generator=np.random.default_rng(1)) == text


def count_quick(model, monkeypatch):
    """How many of six tokens after the prompt come the quick way."""
    calls = []
    quick = one_token.next_logits
    with monkeypatch.context() as patch:
        patch.setattr(one_token, "next_logits", lambda *given: calls.append(1) or quick(*given))
        generate(model, [1, 2, 3], 7)
    return len(calls)


def test_the_usual_model_takes_it_after_the_prompt(monkeypatch):
    for options in [{"tied": True, "dropout": 0.5}, *PLACES]:
        assert count_quick(build(**options), monkeypatch) == 6
    with plain():
        assert count_quick(build(), monkeypatch) == 0


class Own(GPTAttention):
    def forward(self, x, cache=None):
        return super().forward(x, cache) * 2.0


class OwnModel(GPT):
    def forward(self, x, cache=None):
        return super().forward(x, cache) * 2.0


@pytest.mark.parametrize(
    "options",
    [
        {"attention": Own},
        {"normalization": None},
        {"positions": PositionalEncoding},
        {"feed_forward": partial(GPTFeedForward, activation=GELU)},
        {"feed_forward": lambda embedding_size: Composite([Linear(embedding_size, embedding_size)])},
        {"block": BareTransformer, "normalization": None},
    ],
)
def test_other_parts_do_not(options, monkeypatch):
    model = GPT(**SIZES | options)
    assert model.cacheable and count_quick(model, monkeypatch) == 0


def change_layer(model):
    model.blocks[1].feed_forward.output.forward = lambda x: x


def change_dropout(model):
    model.blocks[1].attention.dropout = type("Double", (Dropout,), {"forward": lambda self, x: x * 2.0})(0.0)


def change_place(model):
    model.blocks[1].attention.place = lambda query, key, start: (key, query)


def show_weights(model):
    model.blocks[1].attention.keep_weights = True


@pytest.mark.parametrize("change", [change_layer, change_dropout, change_place, show_weights])
def test_a_model_changed_afterwards_does_not(change):
    model = build()
    assert one_token.fits(model)
    change(model)
    assert not one_token.fits(model)


@pytest.mark.parametrize("part", [GPT, GPTTransformer, GPTAttention, Linear, LayerNorm, GELU])
def test_a_class_changed_afterwards_does_not(part, monkeypatch):
    model = build()
    monkeypatch.setattr(part, "forward", lambda *given: Layer.forward(*given))
    assert not one_token.fits(model)


def test_a_place_changed_on_the_class_is_noticed(monkeypatch):
    model = build(positions=None, attention=RotaryAttention)
    assert one_token.fits(model)
    monkeypatch.setattr(RotaryAttention, "place", lambda self, query, key, start: (query, key))
    assert not one_token.fits(model)


def test_a_model_of_ones_own_class_does_not():
    assert one_token.fits(GPT(**SIZES)) and not one_token.fits(OwnModel(**SIZES))


def test_drawing_is_that_of_numpy():
    from src.gpt.sampling import choose

    logits = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    own, other = np.random.default_rng(1), np.random.default_rng(1)
    drawn = [choose(logits, 1.5, 30, None, own) for _ in range(300)]
    assert drawn == other.choice(40, size=300, p=probabilities(logits, 1.5, 30)).tolist()


def test_values_may_be_wider_than_keys():
    tokens = np.random.default_rng(0).integers(0, 11, 12)
    model = build()
    attention = model.blocks[0].attention
    attention.value, attention.output = Linear(16, 24), Linear(24, 16)
    model.eval()
    assert one_token.fits(model)
    with Tensor.no_grad():
        whole, cache = model(Tensor([tokens])).data[0], Cache(2, 12)
        for token, expected in zip(tokens, whole, strict=True):
            np.testing.assert_allclose(one_token.next_logits(model, int(token), cache), expected, atol=1e-4, rtol=1e-4)


def test_heads_that_are_cut_another_way_do_not_take_it():
    model = build()
    attention = model.blocks[0].attention
    attention.split = lambda x: GPTAttention.split(attention, x)
    assert not one_token.fits(model)
