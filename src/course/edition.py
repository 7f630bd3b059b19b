"""The edition for classes: the book's sources without the solutions, to build, to hand out, or both.

sphinx-exercise can hide solutions (`hide_solutions`), but the page's source, which Jupyter Book publishes next to it,
and the notebook to download still hold them. Therefore they are cut from a copy before the book is built. Hints stay.
The tests and the long runs' scripts stay behind; `src/course/exercises` comes along, since the check needs to know
what it checks: the pages tell nobody, but a student who reads the package can.
"""

import re
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from src.course.gates import find_spans
from src.course.progress import ROOT, write_atomically
from src.course.refresh import normalise

FOLDERS = ["chapters", "src", "data", "assets"]
FILES = ["_config.yml", "_toc.yml", "references.bib", "README.md", "LICENSE", "LICENSE-text", "CITATION.cff"]
PROJECT = ["pyproject.toml", "requirements.txt", "conftest.py"]
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "cache", "_build")
GATED = re.compile(r"^([`:]{3,})\{solution-start\}.*?^[`:]{3,}\{solution-end\}[^\n]*\n[`:]{3,}[ \t]*\n?", re.M | re.S)
WHOLE = re.compile(r"^([`:]{3,})\{solution\}.*?^\1[ \t]*(?:\n|\Z)", re.M | re.S)
LABEL = re.compile(r"^[`:]{3,}\{solution(?:-start)?\}[^\n]*\n(?::\w+:[^\n]*\n)*?:label:[ \t]*(\S+)", re.M)


def make_edition(target: Path, root: Path = ROOT) -> list[Path]:
    """Copy the book's sources to `target` and cut all solutions there; return the files that were cut.

    Raises:
        ValueError: if `target` exists and is not empty, or a page links to a solution that is cut.
    """
    if target.exists() and any(target.iterdir()):
        raise ValueError(f"{target} is not empty: choose a new folder")
    if target.resolve().is_relative_to((root / "chapters").resolve()):
        raise ValueError(f"{target} lies inside the chapters: choose a folder elsewhere")
    target.mkdir(parents=True, exist_ok=True)
    for part in FOLDERS + FILES + PROJECT:
        source = root / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=LEFT_OUT)
        elif source.exists():
            shutil.copy2(source, target / part)
    pages = sorted((target / "chapters").rglob("*.ipynb")) + sorted((target / "chapters").rglob("*.md"))
    labels = [label for page in pages for label in _solution_labels(page)]
    cut = [page for page in pages if _cut_page(page)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        linked = [label for label in labels if label in text]
        if linked:
            raise ValueError(
                f"{page.name} links to the solution {linked[0]}, which this edition cuts: link to the exercise"
            )
    return cut


def cut_notebook(notebook: NotebookNode) -> None:
    """Remove the cells of every solution, and solutions written inside a markdown cell, and count the cells anew."""
    gone: set[int] = set()
    for span in find_spans(notebook):
        if span.kind == "solution":
            gone.update(range(span.first, span.last + 1))
    notebook.cells = [cell for number, cell in enumerate(notebook.cells) if number not in gone]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = WHOLE.sub("", cell.source)
    normalise(notebook)


def cut_text(text: str) -> str:
    """A markdown page without its solutions."""
    return WHOLE.sub("", GATED.sub("", text))


def _cut_page(page: Path) -> bool:
    """Cut the solutions of one page; True if there were any."""
    if page.suffix == ".md":
        before = page.read_text(encoding="utf-8")
        after = cut_text(before)
    else:
        notebook = nbformat.read(page, as_version=4)
        normalise(notebook)
        before = nbformat.writes(notebook) + "\n"
        cut_notebook(notebook)
        after = nbformat.writes(notebook) + "\n"
    if after != before:
        write_atomically(page, after)
    return after != before


def _solution_labels(page: Path) -> list[str]:
    if page.suffix == ".md":
        return LABEL.findall(page.read_text(encoding="utf-8"))
    notebook = nbformat.read(page, as_version=4)
    return [label for cell in notebook.cells if cell.cell_type == "markdown" for label in LABEL.findall(cell.source)]
