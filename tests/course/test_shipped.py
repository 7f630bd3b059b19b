"""The course's own model, and the command that says where a text is."""

import pytest

from src.course import shipped, shipped_model
from src.course.__main__ import main
from src.course.corpora import DATA, corpus_path
from src.gpt.saved import SHIPPED
from src.gpt.settings import read_settings


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
        assert (path.parent / read_settings(path).text.file).resolve() == DATA / "cache" / "shakespeare.txt"


def test_a_text_is_taken_from_a_file_that_is_named(tmp_path, monkeypatch, capsys):
    source = corpus_path("shakespeare")
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    assert main(["corpus", "shakespeare", "--source", str(source)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "shakespeare.txt")
    assert main(["corpus", "shakespear"]) == 1
    assert "choose one of shakespeare, " in capsys.readouterr().err
