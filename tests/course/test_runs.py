"""Stored runs: made once, completed when interrupted, dropped when the setup changes; and the losses of counting."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from src.course import ladder, runs
from src.course.corpora import corpus_path
from src.course.ladder import EXCERPT_FILE, count_loss, count_losses, split_tokens
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
def test_an_interrupted_command_goes_on_where_it_stopped(monkeypatch, capsys):
    make_runs(5)
    whole = (runs.FOLDER / "small.json").read_text(encoding="utf-8")
    cut = json.loads(whole)
    for key in ("seeds", "test_loss", "losses"):
        cut["variants"]["GPT"][key] = cut["variants"]["GPT"][key][:1]
    (runs.FOLDER / "small.json").write_text(json.dumps(cut), encoding="utf-8")
    trained = []
    monkeypatch.setattr(runs, "train", lambda *given: trained.append(given[2]) or train(*given))
    make_runs(5)
    assert trained == [1] and "nothing is missing" not in capsys.readouterr().out
    make_runs(5)
    assert trained == [1] and capsys.readouterr().out == "all runs of chapter 5 are stored: nothing is missing\n"
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
    for path in set(FOLDER.glob("*.json")) - {EXCERPT_FILE}:  # that one is counted, not trained
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


@pytest.mark.parametrize("past", [0, 1, 3])
@pytest.mark.parametrize("pseudo_count", [0.2, 3.0])
def test_counting_only_what_occurs_gives_the_same_as_a_whole_table(past, pseudo_count):
    generator = np.random.default_rng(past)
    train_ids, test_ids = generator.integers(0, 4, 300), generator.integers(0, 5, 90)  # id 4 was never seen
    table = np.full((5,) * (past + 1), pseudo_count)
    for i in range(len(train_ids) - past):
        table[tuple(train_ids[i : i + past + 1])] += 1
    table /= table.sum(axis=-1, keepdims=True)
    surprise = [-math.log(table[tuple(test_ids[i : i + past + 1])]) for i in range(len(test_ids) - past)]
    assert count_loss(train_ids, test_ids, 5, past, pseudo_count) == pytest.approx(np.mean(surprise))


def test_counting_needs_a_past_and_a_pseudo_count_that_fit():
    ids = np.arange(60)
    for past in (-1, 10):
        with pytest.raises(ValueError, match=f"got {past}$"):
            count_loss(ids, ids, 63, past)
    assert count_loss(ids, ids, 63, 9) < math.log(63)
    for pseudo_count in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"got {pseudo_count}: what is unseen"):
            count_loss(ids, ids, 63, 1, pseudo_count)


def test_both_parts_together_are_the_text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    dataset = CharDataset(tmp_path / "text.txt", context_size=8, split=0.75)
    train_ids, test_ids = split_tokens(dataset)
    assert dataset.decode([*train_ids, *test_ids]) == TEXT and len(train_ids) == 0.75 * len(TEXT)


def test_what_is_stored_of_the_excerpt_is_what_its_command_stores(tmp_path, monkeypatch):
    try:
        corpus_path("tinyshakespeare")
    except RuntimeError as error:
        pytest.skip(f"the excerpt cannot be fetched: {str(error).splitlines()[0]}")
    stored = EXCERPT_FILE.read_text(encoding="utf-8")
    monkeypatch.setattr(ladder, "EXCERPT_FILE", tmp_path / "runs" / "excerpt.json")
    ladder.store_excerpt()
    assert (tmp_path / "runs" / "excerpt.json").read_text(encoding="utf-8") == stored


def test_the_losses_quoted_for_the_excerpt_are_those_of_the_second_pseudo_count():
    stored = json.loads(EXCERPT_FILE.read_text(encoding="utf-8"))["test_loss"]
    assert list(stored) == [str(ladder.PSEUDO_COUNT), str(ladder.QUOTED_PSEUDO_COUNT)]
    assert [f"{loss:.3f}" for loss in stored["0.43"].values()] == ["3.347", "2.482", "2.050"]


def test_a_chapter_without_runs_is_named_with_those_that_have_some() -> None:
    with pytest.raises(ValueError, match=r"chapter 1 has no stored runs .* choose one of 3, 5, 6"):
        make_runs(1)
