"""The head of a chapter asks for what was learned before: on the last chapter, two back, and four or more back."""

import re
from pathlib import Path

import nbformat
import pytest

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
QUESTION = re.compile(r"^`{3}\{dropdown\} From (?:chapter (\d+)|the warm-up|card \d)", re.MULTILINE)


def questions(notebook: nbformat.NotebookNode) -> list[int]:
    """The chapters that the folded questions are about; 0 for the warm-up."""
    cells = [cell.source for cell in notebook.cells if cell.source.startswith("## From memory")]
    return [int(match[1] or 0) for source in cells for match in QUESTION.finditer(source)]


def well_spaced(chapter: int, asked: list[int]) -> bool:
    """One question on the last chapter, one on two back, one on four or more back; early on, the warm-up steps in."""
    wanted = [max(chapter - 1, 0), max(chapter - 2, 0)]
    return len(asked) == 3 and asked[:2] == wanted and asked[2] <= max(chapter - 4, 0)


AFTER_THE_FIRST = [path for path in sorted(CHAPTERS.glob("[01][0-9]_*.ipynb")) if path.name[:2] > "01"]


@pytest.mark.parametrize("path", AFTER_THE_FIRST, ids=lambda path: path.stem)
def test_questions_from_memory_are_spaced(path: Path) -> None:
    assert well_spaced(int(path.name[:2]), questions(nbformat.read(path, as_version=4)))


@pytest.mark.parametrize("asked", [[4, 3], [4, 3, 2], [4, 4, 1], [3, 4, 1], [4, 3, 1, 0], []])
def test_other_spacings_are_refused(asked: list[int]) -> None:
    assert well_spaced(5, [4, 3, 1]) and well_spaced(5, [4, 3, 0]) and not well_spaced(5, asked)
