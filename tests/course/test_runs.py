"""Stored runs: made once, completed when interrupted, dropped when the setup changes; and the losses of counting."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from src.course import runs
from src.course.ladder import count_losses
from src.course.runs import FOLDER, Experiment, Setup, load_runs, make_runs, train
from src.gpt import GPT, CharDataset

TEXT = "the cat sat on the mat. " * 200


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A setup of three steps on a small text, its experiment, and a folder for what is stored."""
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(runs, "corpus_path", lambda name: tmp_path / "text.txt")
    monkeypatch.setattr(runs, "FOLDER", tmp_path / "runs")
    setup = Setup(batch_size=2, context_size=8, stride=4, embedding_size=8, blocks=1, steps=21, warmup_steps=1)
    experiment = Experiment("small", setup, {"GPT": GPT}, seeds=(0, 1))
    module = type("module", (), {"EXPERIMENTS": [experiment]})
    monkeypatch.setattr(runs, "import_module", lambda name: module)
    return setup, module


def test_the_same_seed_gives_the_same_run(small):
    setup, _ = small
    first, again, other = train(setup), train(setup), train(setup, number=1)
    assert first.losses == again.losses and first.test_loss == again.test_loss
    assert first.losses != other.losses
    assert len(first.losses) == 21


def test_first_steps_are_those_of_the_whole_run(small):
    setup, _ = small
    part = train(setup, steps=5)
    assert part.losses == train(setup).losses[:5] and part.test_loss is None


def test_runs_are_stored_and_loaded(small):
    setup, _ = small
    make_runs(5)
    stored = load_runs("small")
    assert stored["setup"] == asdict(setup) and stored["command"] == "python -m src.course runs 5"
    variant = stored["variants"]["GPT"]
    assert variant["seeds"] == [0, 1] and variant["parameters"] > 0
    assert variant["losses"][0] == pytest.approx(train(setup).losses[::10], abs=1e-5)
    assert variant["test_loss"][0] == pytest.approx(train(setup).test_loss, abs=1e-5)


@pytest.mark.usefixtures("small")
def test_an_interrupted_command_goes_on_where_it_stopped(monkeypatch):
    make_runs(5)
    whole = (runs.FOLDER / "small.json").read_text(encoding="utf-8")
    cut = json.loads(whole)
    for key in ("seeds", "test_loss", "losses"):
        cut["variants"]["GPT"][key] = cut["variants"]["GPT"][key][:1]
    (runs.FOLDER / "small.json").write_text(json.dumps(cut), encoding="utf-8")
    trained = []
    monkeypatch.setattr(runs, "train", lambda *given: trained.append(given[2]) or train(*given))
    make_runs(5)
    assert trained == [1]
    assert (runs.FOLDER / "small.json").read_text(encoding="utf-8") == whole


def test_runs_of_another_setup_are_dropped(small):
    setup, module = small
    make_runs(5)
    changed = Setup(**(asdict(setup) | {"lr": 2e-3}))
    module.EXPERIMENTS = [Experiment("small", changed, {"GPT": GPT}, seeds=(0,))]
    make_runs(5)
    stored = load_runs("small")
    assert stored["setup"]["lr"] == 2e-3 and stored["variants"]["GPT"]["seeds"] == [0]


def test_an_unknown_name_lists_what_there_is(small):
    make_runs(5)
    with pytest.raises(ValueError, match="'large', there are: small"):
        load_runs("large")


def test_what_the_repository_stores_is_complete():
    for path in FOLDER.glob("*.json"):
        stored = json.loads(path.read_text(encoding="utf-8"))
        assert stored["command"].startswith("python -m src.course runs ")
        steps = stored["setup"]["steps"]
        for variant in stored["variants"].values():
            count = len(variant["seeds"])
            assert count >= 3 and len(variant["test_loss"]) == len(variant["losses"]) == count
            assert all(len(losses) == math.ceil(steps / runs.EVERY) for losses in variant["losses"])


def test_counting_losses_against_a_loop(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    dataset = CharDataset(path, context_size=8)
    boundary = int(len(TEXT) * 0.9)
    train_text, test_text = TEXT[:boundary], TEXT[boundary:]
    for past, name in enumerate(("unigram", "bigram", "trigram")):
        surprise = []
        seen = [train_text[i : i + past + 1] for i in range(len(train_text) - past)]
        for i in range(len(test_text) - past):
            window = test_text[i : i + past + 1]
            same_past = sum(each[:past] == window[:past] for each in seen)
            share = (seen.count(window) + 0.2) / (same_past + 0.2 * dataset.vocab_size)
            surprise.append(-math.log(share))
        assert count_losses(dataset)[name] == pytest.approx(np.mean(surprise))
