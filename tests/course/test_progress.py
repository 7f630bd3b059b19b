"""Progress is recorded in a working copy, and only there."""

import importlib
import json
import sys
import threading

import pytest

from src.course import check, hint, progress
from tests.course import example

module = importlib.import_module("src.course.progress")


@pytest.fixture(autouse=True)
def work(monkeypatch, tmp_path):
    """The folder of working copies, in which this process now runs."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setitem(sys.modules, "src.course.exercises.ch99", example)
    monkeypatch.setattr("src.course.exercises.chapter_names", lambda: ["ch99"])
    monkeypatch.setattr(module, "WORK", folder)
    monkeypatch.setattr(module, "_hints_in_memory", {})
    monkeypatch.chdir(folder)
    return folder


def stored(work):
    return json.loads((work / "progress.json").read_text(encoding="utf-8"))


def test_the_best_result_is_kept(work):
    check("ch99.weights", [1, 2, 4])
    assert stored(work) == {"ch99.weights": {"of": 3, "points": 0}}
    check("ch99.weights", example.SEVENTHS)
    check("ch99.weights", ["4/7", "2/7", "1/7"])
    assert stored(work) == {"ch99.weights": {"of": 3, "points": 3}}


def test_a_stub_is_not_recorded(work):
    check("ch99.weights", [..., ..., ...])
    assert not list(work.iterdir())


def test_a_solution_is_not_recorded(work):
    assert check("ch99.weights", example.SEVENTHS, solution=True).passed
    assert not list(work.iterdir())


@pytest.mark.parametrize("elsewhere", ["chapters", "work/backup", "."])
def test_nothing_is_recorded_elsewhere(work, monkeypatch, elsewhere):
    folder = work.parent / elsewhere
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    assert check("ch99.weights", example.SEVENTHS).passed
    assert [hint("ch99.weights").number, hint("ch99.weights").number] == [1, 2]
    assert not list(work.rglob("*.json"))
    assert repr(progress()).endswith("python -m src.course open 5") and progress().records == {}


def test_hints_go_on_after_a_restart(work, monkeypatch):
    hint("ch99.weights")
    monkeypatch.setattr(module, "_hints_in_memory", {})  # a new kernel
    assert hint("ch99.weights").number == 2
    assert stored(work) == {"ch99.weights": {"hints": 2}}


def test_the_table(work):
    check("ch99.weights", example.SEVENTHS)
    check("ch99.attend", example.attend_unscaled)
    hint("ch99.attend")
    assert repr(progress()).splitlines() == [
        "ch99.weights  Weights by hand         3 of 3",
        "ch99.attend   Weights of attention    1 of 2  hints: 1",
        "ch99.centre   The wrong axis               -",
    ]
    assert progress().records["ch99.attend"] == {"hints": 1, "of": 2, "points": 1}


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"ch99.weights": 3}', '{"a": {"points": 1}'])
def test_a_damaged_file_is_put_aside(work, text):
    (work / "progress.json").write_text(text, encoding="utf-8")
    assert check("ch99.weights", example.SEVENTHS).passed
    assert stored(work) == {"ch99.weights": {"of": 3, "points": 3}}
    assert (work / "progress.damaged.json").read_text(encoding="utf-8") == text


def test_two_notebooks_at_once_lose_nothing(work):
    def record(chapter):
        for number in range(20):
            module.record_result(f"{chapter}.{number}", 1, 1)

    threads = [threading.Thread(target=record, args=(name,)) for name in ("ch01", "ch02", "ch03")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored(work)) == 60


def test_a_failed_write_leaves_the_old_file_and_nothing_else(work, monkeypatch):
    check("ch99.weights", example.SEVENTHS)
    before = sorted(path.name for path in work.iterdir())

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(module.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        module.record_result("ch99.attend", 1, 2)
    assert stored(work) == {"ch99.weights": {"of": 3, "points": 3}}
    assert sorted(path.name for path in work.iterdir()) == before
