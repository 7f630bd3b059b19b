"""A temperature fitted to a text, and a model whose logits are divided by it."""

import json

import numpy as np
import pytest

from src.core import AdamWOptimizer, LayerNorm, Tensor
from src.gpt import GPT, GPTLoss, GPTTrainer
from src.gpt.__main__ import main
from src.gpt.calibration import divide_logits, fit_temperature
from src.gpt.saved import load_model, load_notes, save_model
from src.gpt.tokenizer import CharTokenizer

TEXT = "the cat sat on the mat and the dog sat on the log. " * 20
CHARACTERS = CharTokenizer.from_text(TEXT)


TOKENS = np.array(CHARACTERS.encode(TEXT))
OTHER = TEXT[30:400].replace("cat", "dog")


def make(**changes):
    sizes = {"vocab_size": CHARACTERS.vocab_size, "context_size": 8, "embedding_size": 16, "blocks": 1}
    return GPT(**sizes | changes, generator=np.random.default_rng(3))


@pytest.fixture(scope="module")
def weights():
    """Of a model that has learned something of the text."""
    model, rng = make(), np.random.default_rng(0)
    trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters, lr=1e-2))
    for _ in range(60):
        rows = TOKENS[rng.integers(0, len(TOKENS) - 9, 16)[:, None] + np.arange(9)]
        trainer.train_step(Tensor(rows[:, :-1]), Tensor(rows[:, 1:]))
    return model.state_dict()


@pytest.fixture
def model(weights):
    trained = make()
    trained.load_state_dict(weights)
    return trained


def surprise(model, tokens, temperature=1.0):
    """Window by window, another way than the tested function's."""
    total, count = 0.0, 0
    model.eval()
    for start in range(0, len(tokens) - 8, 8):
        with Tensor.no_grad():
            logits = model(Tensor([tokens[start : start + 8]])).data[0].astype(np.float64) / temperature
        for row, target in zip(logits, tokens[start + 1 : start + 9], strict=True):
            total += np.log(np.exp(row - row.max()).sum()) - (row[target] - row.max())
            count += 1
    return total / count


@pytest.mark.parametrize("gain", [0.2, 1.0, 4.0, 40.0])
def test_no_other_temperature_surprises_less(gain, model):
    tokens = CHARACTERS.encode(OTHER)
    plain = fit_temperature(model, tokens)[0]
    model.norm.weight.data *= gain  # the larger, the surer of itself
    model.norm.bias.data *= gain
    temperature, before, after = fit_temperature(model, tokens)
    assert before == pytest.approx(surprise(model, tokens), rel=1e-5)
    assert after == pytest.approx(surprise(model, tokens, temperature), rel=1e-5)
    assert after <= min(surprise(model, tokens, temperature * factor) for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))
    assert temperature == pytest.approx(gain * plain, rel=1e-3)


def test_dividing_is_dividing_and_then_nothing_is_left_to_fit(model):
    tokens = CHARACTERS.encode(OTHER)
    ids = Tensor([tokens[:8]])
    assert np.abs(model.norm.bias.data).max() > 0.0
    before = model(ids).data
    divide_logits(model, 2.5)
    np.testing.assert_allclose(model(ids).data, before / 2.5, rtol=1e-4, atol=1e-5)
    divide_logits(model, fit_temperature(model, tokens)[0])
    assert fit_temperature(model, tokens)[0] == pytest.approx(1.0, abs=1e-4)


def test_modes_are_left_and_dropout_is_off(weights):
    model, tokens = make(dropout=0.5), CHARACTERS.encode(OTHER)
    model.load_state_dict(weights)
    model.train()
    first, second = fit_temperature(model, tokens), fit_temperature(model, tokens)
    assert first == second and all(layer.training for layer in model.layers_within())


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_is_positive(temperature):
    with pytest.raises(ValueError, match="a temperature is a positive number"):
        divide_logits(make(), temperature)


def test_what_cannot_be_fitted_or_divided_is_refused():
    with pytest.raises(ValueError, match="the text has 8 tokens, a window and the next need 9"):
        fit_temperature(make(), list(range(8)))
    model = make()
    model.output.linear.weight.data = np.zeros(model.output.weight.shape)
    with pytest.raises(ValueError, match="the same score"):
        fit_temperature(model, CHARACTERS.encode(TEXT))
    with pytest.raises(ValueError, match="say nothing about this text"):
        fit_temperature(make(std=1.0), CHARACTERS.encode(TEXT))  # as it was drawn
    for other in (make(normalization=None), make(normalization=type("Own", (LayerNorm,), {}))):
        with pytest.raises(ValueError, match="a LayerNorm was expected"):
            divide_logits(other, 2.0)


@pytest.fixture
def files(tmp_path, model):
    save_model(tmp_path / "m.safetensors", model, CHARACTERS, {"text_sha256": "0", "test_loss": 2.0}, half=True)
    (tmp_path / "other.txt").write_text(OTHER, encoding="utf-8")
    return tmp_path


def calibrate(folder, text="other.txt", model="m.safetensors", out="c.safetensors"):
    return main(["calibrate", str(folder / model), "--text", str(folder / text), "--out", str(folder / out)])


def test_the_command_writes_a_model_that_says_what_was_done(files, capsys):
    assert calibrate(files) == 0
    notes, printed = load_notes(files / "c.safetensors"), capsys.readouterr().out
    facts = notes["calibration"]
    assert notes["test_loss"] == 2.0 and facts["text"] == "other.txt" and facts["calibrated_loss"] < facts["loss"]
    assert f"temperature {facts['temperature']:.3f}" in printed and f"{facts['calibrated_loss']:.4f} after" in printed
    model, tokenizer = load_model(files / "c.safetensors")
    tokens = tokenizer.encode(OTHER)
    assert fit_temperature(model, tokens)[0] == pytest.approx(1.0, abs=2e-3)  # weights are rounded to float16
    assert (files / "c.safetensors").stat().st_size < 1.2 * (files / "m.safetensors").stat().st_size
    assert calibrate(files, model="c.safetensors", out="d.safetensors") == 0  # once more: hardly a change
    again = load_notes(files / "d.safetensors")["calibration"]
    assert again["temperature"] == pytest.approx(facts["temperature"], rel=5e-3)
    assert json.dumps(again)


def test_the_text_that_it_was_trained_on_is_refused(files, capsys):
    import hashlib

    digest = hashlib.sha256((files / "other.txt").read_bytes()).hexdigest()
    save_model(files / "m.safetensors", make(), CHARACTERS, {"text_sha256": digest})
    assert calibrate(files) == 1
    assert "is the text that the model was trained on: take one that it has not seen" in capsys.readouterr().err
    assert not (files / "c.safetensors").exists()


def test_files_that_are_missing_or_have_other_characters_are_named(files, capsys):
    assert calibrate(files, text="none.txt") == 1
    assert "none.txt is no file, a text was expected" in capsys.readouterr().err
    (files / "other.txt").write_text("ÄÖÜ" * 100, encoding="utf-8")
    assert calibrate(files) == 1
    assert "'Ä'" in capsys.readouterr().err
