"""What is folded in the page is folded in JupyterLab too."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from src.course.gates import find_spans
from src.course.progress import ROOT
from src.course.refresh import FOLDED, SOLUTION, cover_solutions, normalise
from tests.course.example import example_notebook


@pytest.mark.parametrize(("tag", "key"), FOLDED.items())
def test_tags_of_the_page_fold_in_jupyterlab(tag, key):
    notebook = new_notebook(cells=[new_code_cell("1 + 1", metadata={"tags": [tag]}), new_code_cell("2")])
    normalise(notebook)
    assert notebook.cells[0].metadata["jupyter"] == {key: True}
    assert "jupyter" not in notebook.cells[1].metadata


def test_a_folded_solution_shows_nothing_of_itself():
    notebook = example_notebook()
    cover_solutions(notebook)
    cover_solutions(notebook)  # once is enough
    for span in find_spans(notebook):
        for cell in notebook.cells[span.first : span.last + 1]:
            if cell.cell_type == "code":
                assert (cell.source.count(SOLUTION) == 1) == (span.kind == "solution")


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").rglob("*.ipynb")), ids=lambda path: path.stem)
def test_solutions_of_the_chapters_are_covered(path):
    notebook = nbformat.read(path, as_version=4)
    before = nbformat.writes(notebook)
    cover_solutions(notebook)
    assert nbformat.writes(notebook) == before, "python -m src.course refresh covers them"


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").rglob("*.ipynb")), ids=lambda path: path.stem)
def test_the_chapters_are_folded(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for tag in set(FOLDED) & set(cell.metadata.get("tags", [])):
            assert cell.metadata.get("jupyter", {}).get(FOLDED[tag]), f"python -m src.course refresh folds {tag}"
