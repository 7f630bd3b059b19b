"""One file for a model: it comes back as it was, and a file that is damaged or foreign is refused."""

import json
from functools import partial

import numpy as np
import pytest
import safetensors.numpy

from src.core import AdamWOptimizer, Linear, ReLU, Tensor, save_checkpoint
from src.core.checkpoint import read_arrays, write_arrays
from src.gpt import GPT, BareTransformer, GPTAttention, GPTFeedForward, PositionalEncoding, RotaryAttention, generate
from src.gpt.saved import build_gpt, load_model, load_notes, model_settings, save_model
from src.gpt.tokenizer import BytePairTokenizer, CharTokenizer

TEXT = "to be, or not to be: that is the question\n"
CHARACTERS = CharTokenizer.from_text(TEXT)


def make(**changes):
    sizes = {"vocab_size": CHARACTERS.vocab_size, "context_size": 8, "embedding_size": 12, "blocks": 2, "heads": 3}
    return GPT(**(sizes | changes), generator=np.random.default_rng(7))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    model = make(dropout=0.25, tied=True)
    save_model(path, model, CHARACTERS, {"test_loss": 1.5, "who": "Füße"})
    return path, model


def test_a_model_with_rotary_positions_comes_back_as_it_was(tmp_path):
    model = build_gpt(model_settings(make(heads=2)) | {"positions": "rotary"}, np.random.default_rng(7))
    save_model(tmp_path / "m", model, CHARACTERS)
    again, _ = load_model(tmp_path / "m")
    assert type(again.blocks[0].attention) is RotaryAttention and again.embedding.positions is None
    prompt = CHARACTERS.encode("to be")
    assert generate(again, prompt, 9, temperature=0) == generate(model, prompt, 9, temperature=0)


class OtherRotary(RotaryAttention):
    def place(self, query, key, start):
        return query, key


OtherRotary.__name__ = OtherRotary.__qualname__ = "RotaryAttention"


def replaced_place():
    model = build_gpt(model_settings(make(heads=2)) | {"positions": "rotary"})
    model.blocks[0].attention.place = lambda query, key, start: (query, key)
    return model


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make(heads=2, attention=OtherRotary, positions=None), "the model has RotaryAttention"),
        (lambda: make(positions=None), r"GPTEmbedding\(positions=None\)"),
        (replaced_place, "RotaryAttention has methods of its own, place, which no file holds"),
    ],
)
def test_what_only_looks_like_rotary_positions_is_not_saved(build, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_model(tmp_path / "m", build(), CHARACTERS)
    assert not (tmp_path / "m").exists()


def test_a_damaged_context_of_rotary_positions_is_refused(tmp_path):
    model = build_gpt(model_settings(make(heads=2)) | {"positions": "rotary"})
    save_model(tmp_path / "m", model, CHARACTERS)
    rewrite(tmp_path / "m", gpt=changed(model_settings(model), context_size=10**12))
    with pytest.raises(ValueError, match="a context of 1,000,000,000,000 tokens, at most 1,048,576 are believed"):
        load_model(tmp_path / "m")


def test_settings_without_positions_mean_learned_ones_and_others_are_refused():
    settings = model_settings(make())
    assert build_gpt({name: value for name, value in settings.items() if name != "positions"}).embedding.positions
    with pytest.raises(ValueError, match="positions are one of learned, rotary, got 'x'"):
        build_gpt(settings | {"positions": "x"})


def test_a_file_of_version_0_2_says_nothing_of_positions(saved):
    path, model = saved
    settings = model_settings(model)
    assert settings.pop("positions") == "learned"
    assert json.loads(read_arrays(path)[1]["gpt"]) == settings  # and that version reads what this one writes
    assert model_settings(load_model(path)[0]) == model_settings(model)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("tokenizer", [CHARACTERS, BytePairTokenizer.train(TEXT, 260)], ids=["characters", "pairs"])
def test_a_model_comes_back_as_it_was(tied, tokenizer, tmp_path):
    model = make(vocab_size=tokenizer.vocab_size, tied=tied, dropout=0.5)
    save_model(tmp_path / "m", model, tokenizer, {"steps": 3})
    again, tokens = load_model(tmp_path / "m")
    assert type(tokens) is type(tokenizer) and tokens.to_json() == tokenizer.to_json()
    assert model_settings(again) == model_settings(model)
    assert all(array.tobytes() == model.state_dict()[name].tobytes() for name, array in again.state_dict().items())
    assert (again.output.weight is again.embedding.token.weight) == tied
    assert not any(layer.training for layer in again.layers_within())
    prompt = tokens.encode("to be")
    assert generate(again, prompt, 9, temperature=0) == generate(model, prompt, 9, temperature=0)
    assert load_notes(tmp_path / "m") == {"steps": 3}


def test_the_same_model_gives_the_same_bytes_and_another_library_reads_them(saved, tmp_path):
    path, model = saved
    save_model(tmp_path / "again", model, CHARACTERS, {"test_loss": 1.5, "who": "Füße"})
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    read = safetensors.numpy.load_file(path)
    assert {name: array.tobytes() for name, array in read.items()} == {
        name: array.tobytes() for name, array in model.state_dict().items()
    }


def test_half_takes_half_the_space_and_loads_into_the_current_float_type(saved, tmp_path):
    path, model = saved
    save_model(tmp_path / "half", model, CHARACTERS, {"test_loss": 1.5, "who": "Füße"}, half=True)
    numbers = sum(array.nbytes for array in model.state_dict().values())
    assert path.stat().st_size - (tmp_path / "half").stat().st_size == pytest.approx(numbers / 2, abs=100)
    again, _ = load_model(tmp_path / "half")
    for name, array in again.state_dict().items():
        assert array.dtype == np.float32
        assert (array == model.state_dict()[name].astype(np.float16)).all()
    with Tensor.precision(np.float64):
        wide, _ = load_model(tmp_path / "half")
    assert {tensor.dtype for tensor in wide.parameters} == {np.dtype(np.float64)}


@pytest.mark.parametrize("value", [np.nan, np.inf, 70000.0])
def test_numbers_that_the_file_cannot_hold_are_refused(value, saved, tmp_path):
    _, model = saved
    model.blocks[1].feed_forward.output.bias.data[2] = value
    with pytest.raises(ValueError, match=r"blocks\.1\.feed_forward\.output\.bias .* not finite in float16"):
        save_model(tmp_path / "half", model, CHARACTERS, half=True)
    assert not (tmp_path / "half").exists()
    if np.isfinite(value):
        save_model(tmp_path / "whole", model, CHARACTERS)


def test_a_tokenizer_of_another_size_is_refused(saved, tmp_path):
    with pytest.raises(ValueError, match=f"tokenizer has 2 tokens, the model {CHARACTERS.vocab_size}"):
        save_model(tmp_path / "m", saved[1], CharTokenizer(["a", "b"]))


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": partial(GPTAttention, bias=False)},
        {"attention": lambda embedding_size: Linear(embedding_size, embedding_size), "heads": 1},
        {"feed_forward": partial(GPTFeedForward, activation=ReLU)},
        {"block": BareTransformer, "normalization": None},
        {"normalization": None},
        {"positions": None},
        {"positions": PositionalEncoding},
    ],
    ids=["bias", "attention", "activation", "bare", "norm", "no positions", "waves"],
)
def test_a_model_with_other_parts_is_refused(changes, tmp_path):
    with pytest.raises(ValueError, match="only the GPT with its own parts"):
        save_model(tmp_path / "m", make(**changes), CHARACTERS)
    assert not (tmp_path / "m").exists()


def test_one_block_with_another_number_of_heads_is_refused():
    model = make()
    model.blocks[1].attention.heads = 4
    with pytest.raises(ValueError, match=r"heads=4.* where the GPT has .*heads=3"):
        model_settings(model)


def test_keeping_weights_for_a_figure_does_not_make_another_model():
    model = make()
    model.attention_weights(Tensor([[1, 2, 3]]))
    model.blocks[0].attention.keep_weights = True
    model.eval()
    assert model_settings(model) == model_settings(make())


def rewrite(path, **changes):
    """Write a file anew with other texts; a value of None leaves one out."""
    arrays, texts = read_arrays(path)
    texts = {name: text for name, text in (texts | changes).items() if text is not None}
    write_arrays(path, arrays, texts)


def changed(settings, **changes):
    return json.dumps(settings | changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embedding_size": 10**9}, "a GPT of these settings has 24,000"),
        ({"blocks": 10**12}, "a GPT of these settings has"),
        ({"blocks": 0}, "sizes are at least 1"),
        ({"context_size": -8}, "sizes are at least 1"),
        ({"heads": 5}, "5 heads cannot share 12 channels"),
        ({"heads": True}, "settings of a GPT are vocab_size"),
        ({"heads": 0}, "heads must be at least 1"),
        ({"dropout": 2.0}, "dropout rate lies between 0 and 1"),
        ({"dropout": float("nan")}, "dropout rate lies between 0 and 1"),
        ({"positions": "rotary"}, "a GPT of these settings has"),
        ({"positions": "none"}, "positions are one of learned, rotary, got 'none'"),
        ({"positions": 3}, "settings of a GPT are vocab_size"),
        ({"tied": False}, "a GPT of these settings has"),
        ({"attention": "mine"}, "settings of a GPT are vocab_size"),
        ({"vocab_size": 17, "context_size": 7}, r"1[0-9] tokens for a model of 17"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, saved):
    path, model = saved
    rewrite(path, gpt=changed(model_settings(model), **change))
    with pytest.raises(ValueError, match=f"model.safetensors is damaged: .*{message}"):
        load_model(path)


@pytest.mark.parametrize(
    "texts",
    [
        {"gpt": None},
        {"gpt": "{"},
        {"gpt": "[" * 100_000},
        {"gpt": "[1]"},
        {"tokenizer": '{"kind": "words"}'},
        {"tokenizer": '{"kind": "characters", "vocab": ["a", "b"]}'},
        {"notes": "3"},
        {"format": "pt"},
        {"format": None},
    ],
    ids=str,
)
def test_texts_that_are_damaged_or_foreign_are_refused(texts, saved):
    path, _ = saved
    rewrite(path, **texts)
    with pytest.raises(ValueError, match=r"model\.safetensors is (damaged|no model that this course saved)"):
        load_model(path)


def test_weights_of_other_names_or_not_finite_are_refused(saved):
    path, _ = saved
    arrays, texts = read_arrays(path)
    first, *others = arrays
    write_arrays(path, {"stranger": arrays[first]} | {name: arrays[name] for name in others}, texts)
    with pytest.raises(ValueError, match=r"is damaged: the names do not fit this model: .*stranger"):
        load_model(path)
    arrays[first].flat[0] = np.nan
    write_arrays(path, arrays, texts)
    with pytest.raises(ValueError, match=r"is damaged: .* not finite"):
        load_model(path)


def test_a_file_that_is_cut_short_or_something_else_is_refused(saved, tmp_path):
    path, model = saved
    whole = path.read_bytes()
    for content in (b"", whole[:5], whole[: len(whole) // 2], whole[:-1], whole + b"x", b"not a model " * 50):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"model\.safetensors"):
            load_model(path)
    save_checkpoint(tmp_path / "checkpoint", model, AdamWOptimizer(model.parameters))
    with pytest.raises(ValueError, match="not its checkpoint"):
        load_model(tmp_path / "checkpoint")


def test_tensors_shared_between_blocks_are_refused_when_saving(tmp_path):
    model = make()
    model.blocks[1].attention.query.weight = model.blocks[0].attention.query.weight
    with pytest.raises(ValueError, match=r"no blocks\.1\.attention\.query\.weight of its own"):
        save_model(tmp_path / "model.safetensors", model, CHARACTERS)
    assert not list(tmp_path.iterdir())
