"""What is folded in the page is folded in JupyterLab too."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from src.course.progress import ROOT
from src.course.refresh import FOLDED, normalise


@pytest.mark.parametrize(("tag", "key"), FOLDED.items())
def test_tags_of_the_page_fold_in_jupyterlab(tag, key):
    notebook = new_notebook(cells=[new_code_cell("1 + 1", metadata={"tags": [tag]}), new_code_cell("2")])
    normalise(notebook)
    assert notebook.cells[0].metadata["jupyter"] == {key: True}
    assert "jupyter" not in notebook.cells[1].metadata


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").rglob("*.ipynb")), ids=lambda path: path.stem)
def test_the_chapters_are_folded(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for tag in set(FOLDED) & set(cell.metadata.get("tags", [])):
            assert cell.metadata.get("jupyter", {}).get(FOLDED[tag]), f"python -m src.course refresh folds {tag}"
