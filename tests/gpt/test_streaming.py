"""Streaming: the same tokens as `generate`, and text that is never cut inside a character."""

import numpy as np
import pytest

from src.core import Dropout, Tensor
from src.gpt import GPT, BytePairTokenizer, CharTokenizer, generate
from src.gpt.streaming import stream, stream_text


@pytest.fixture
def model():
    return GPT(11, 8, 16, 2, heads=2, dropout=0.2, std=0.5, generator=np.random.default_rng(0))


@pytest.mark.parametrize("prompt", [[1], [3, 1, 4], list(range(11))])
@pytest.mark.parametrize("options", [{}, {"temperature": 0}, {"temperature": 0.7, "top_k": 5, "top_p": 0.9}], ids=str)
def test_it_gives_what_generate_gives(model, prompt, options):
    whole = generate(model, prompt, 20, **options, generator=np.random.default_rng(5))
    assert [*prompt, *stream(model, prompt, 20, **options, generator=np.random.default_rng(5))] == whole


def test_between_two_tokens_all_is_as_it_was(model):
    dropouts = [layer for layer in model.layers_within() if isinstance(layer, Dropout)]
    tokens = stream(model, [1, 2], 5)
    for _ in range(2):
        next(tokens)
        assert Tensor.recording() and all(layer.training for layer in dropouts)
    with Tensor.no_grad():
        next(tokens)
        assert not Tensor.recording()
    tokens.close()
    assert Tensor.recording() and all(layer.training for layer in dropouts)


def test_each_token_is_computed_when_it_is_asked_for_and_from_the_cache(model, monkeypatch):
    lengths = []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda x, cache=None: lengths.append(x.shape[1]) or forward(x, cache))
    tokens = stream(model, [1, 2, 3], 8)
    assert lengths == []
    next(tokens)
    assert lengths == [3]
    list(tokens)
    assert lengths == [3, 1, 1, 1, 1, 1, 8, 8]  # past the context the whole window is computed anew


def test_the_prompt_is_not_changed(model):
    prompt = [1, 2]
    list(stream(model, prompt, 3))
    assert prompt == [1, 2]


def test_errors_come_at_once(model):
    with pytest.raises(ValueError, match=r"temperature is zero .* got -1"):
        stream(model, [1], 3, temperature=-1)
    with pytest.raises(ValueError, match="prompt is empty"):
        stream(model, [], 3)
    with pytest.raises(ValueError, match="steps must be zero or more, got -3"):
        stream(model, [1], -3)


BYTES = BytePairTokenizer([])
TEXT = "a é 🙂🙂 \ufffd z\n"


def test_text_comes_in_whole_characters():
    pieces = list(stream_text(BYTES, TEXT.encode()))
    assert "".join(pieces) == TEXT
    assert pieces == [
        "a",
        " ",
        "é",
        " ",
        "🙂",
        "🙂",
        " ",
        "\ufffd ",
        "z",
        "\n",
    ]  # a real U+FFFD waits for the next sign


@pytest.mark.parametrize("seed", range(20))
def test_the_pieces_of_any_bytes_are_their_text(seed):
    generator = np.random.default_rng(seed)
    likely = [*"é🙂".encode(), 0x61, 0xFF, 0x80, 0xE2]
    tokens = generator.choice(likely, size=40).tolist()
    merged = BytePairTokenizer([(0xC3, 0xA9), (0x9F, 0x99), (0x61, 0xF0)])
    mixed = [int(token) if generator.random() < 0.8 else 256 + int(generator.integers(3)) for token in tokens]
    assert "".join(stream_text(merged, mixed)) == merged.decode(mixed)


def test_a_cut_at_the_end_is_shown():
    assert list(stream_text(BYTES, "🙂".encode()[:3])) == ["\ufffd"]
    assert list(stream_text(BYTES, [])) == []


def test_characters_come_one_by_one():
    tokenizer = CharTokenizer.from_text("abé\ufffd")
    assert list(stream_text(tokenizer, tokenizer.encode("béa"))) == ["b", "é", "a"]
    assert "".join(stream_text(tokenizer, tokenizer.encode("b\ufffd\ufffda\ufffd"))) == "b\ufffd\ufffda\ufffd"
