"""Every stored chapter passes the guard and is what `refresh` would write, but for what a run may change."""

import json
from pathlib import Path

import nbformat
import pytest

from src.course.refresh import normalise
from tests.book.guard import LARGEST_UNCOMPARED_SHARE, find_faults, uncompared_share

CHAPTERS = Path(__file__).parents[2] / "chapters"
NOTEBOOKS = sorted(path for path in CHAPTERS.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_guard_finds_no_fault(path: Path) -> None:
    assert find_faults(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_stored_notebook_is_normalised(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    normalise(notebook)
    assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n", "run: python -m src.course refresh"


def test_few_outputs_are_not_compared() -> None:
    notebooks = [json.loads(path.read_text(encoding="utf-8")) for path in NOTEBOOKS]
    ignored, cells = uncompared_share(notebooks)
    print(f"{ignored} of {cells} code cells have an output that nbval does not compare")
    assert ignored <= LARGEST_UNCOMPARED_SHARE * cells
