"""The course's own model, and the command that says where a text is."""

import hashlib
import json

import numpy as np
import pytest

from src.core import Tensor
from src.course import shipped, shipped_model
from src.course.__main__ import main
from src.course.corpora import DATA, corpus_path
from src.gpt import GPTLoss
from src.gpt.saved import SHIPPED, load_model, load_notes
from src.gpt.settings import read_settings, settings_from


def test_the_path_is_that_of_the_file_and_a_missing_file_names_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "m.safetensors")
    with pytest.raises(RuntimeError, match=r"not at .*m\.safetensors: restore it .*src\.gpt train data/models/"):
        shipped_model()
    (tmp_path / "m.safetensors").write_bytes(b"")
    assert shipped_model() == tmp_path / "m.safetensors"


def test_the_corpus_command_prints_where_the_text_is_and_the_configurations_look_there(capsys):
    assert main(["corpus", "shakespeare"]) == 0
    assert capsys.readouterr().out == f"{corpus_path('shakespeare')}\n"
    configurations = sorted(SHIPPED.parent.glob("*.toml"))
    assert configurations
    for path in configurations:
        text = (path.parent / read_settings(path).text.file).resolve()
        assert text.parent == DATA / "cache" and text.stem in ("shakespeare", "tinyshakespeare")


def test_the_shipped_model_is_the_one_its_record_speaks_of():
    """Its record: the command's own log. Its test loss is computed again on the first windows, in float16 as stored."""
    record = json.loads(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))
    settings = settings_from(record["settings"] | {"text": record["settings"]["text"] | {"file": "a"}})
    configured = read_settings(SHIPPED.with_suffix(".toml"))
    assert (settings.model, settings.training) == (configured.model, configured.training)
    assert record["log"][-1]["step"] == settings.training.steps
    assert SHIPPED.stat().st_size <= 4 * 2**20
    model, tokenizer = load_model(SHIPPED)
    text = corpus_path("shakespeare").read_text(encoding="utf-8")
    assert hashlib.sha256(text.encode()).hexdigest() == record["text_sha256"]
    assert sum(tensor.data.size for tensor in model.parameters) == record["parameters"]
    ids = np.array(tokenizer.encode(text[int(0.9 * len(text)) :]))
    rows = np.lib.stride_tricks.sliding_window_view(ids, 257)[::2048]  # a window in eight
    with Tensor.no_grad():
        loss = GPTLoss()(model(Tensor(rows[:, :-1])), Tensor(rows[:, 1:])).item()
    facts = record["calibration"]
    assert abs(loss - facts["test_loss"]) < 0.05 and facts["test_loss"] < record["log"][-1]["test_loss"]
    assert load_notes(SHIPPED)["calibration"].items() <= facts.items()


def test_a_text_is_taken_from_a_file_that_is_named(tmp_path, monkeypatch, capsys):
    source = corpus_path("shakespeare")
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    assert main(["corpus", "shakespeare", "--source", str(source)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "shakespeare.txt")
    assert main(["corpus", "shakespear"]) == 1
    assert "choose one of shakespeare, " in capsys.readouterr().err
