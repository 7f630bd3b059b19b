"""The edition for classes holds no solution: not in its sources, and not in the book that is built from it."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from src.course.__main__ import main
from src.course.edition import cut_text, make_edition
from src.course.gates import code_of, find_spans, text_of
from src.course.generated import write_generated_cells
from src.course.refresh import normalise
from tests.course import example

CONFIG = """
title: Example
execute: {execute_notebooks: "off"}
parse: {myst_enable_extensions: [colon_fence, dollarmath]}
sphinx: {extra_extensions: [sphinx_exercise]}
"""
PAGE = """# Card

Text before.

:::{solution-start} card
:class: dropdown
:::
The zanzibar in markdown.
:::{solution-end}
:::

Text between.

````{solution} card
:label: card-solution
```python
zanzibar = "4/7"
```
````
Text after.
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project with the example chapter, its outputs stored, and things that no edition may contain."""
    monkeypatch.setitem(sys.modules, "src.course.exercises.ch99", example)
    root = tmp_path / "project"
    for folder in ("chapters/.ipynb_checkpoints", "src", "tests", "work", "data/cache", ".git"):
        (root / folder).mkdir(parents=True)
        (root / folder / "secret.txt").write_text("quetzalcoatl" * (folder != "src"), encoding="utf-8")
    (root / "_config.yml").write_text(CONFIG, encoding="utf-8")
    (root / "_toc.yml").write_text("format: jb-book\nroot: chapters/99_example\n", encoding="utf-8")
    notebook = example.example_notebook()
    write_generated_cells(notebook, "99_example.ipynb")
    normalise(notebook)
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        text = "Out: zanzibar\n" if "solution=True" in cell.source else "Out: fine\n"
        cell.update(outputs=[new_output("stream", name="stdout", text=text)])
    nbformat.write(notebook, root / "chapters" / "99_example.ipynb")
    return root


def everything_in(folder):
    """All text below a folder, files and their names."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    texts = [path.read_bytes().decode("utf-8", errors="replace") for path in files]
    return "\n".join([*map(str, files), *texts])


def test_the_sources_hold_no_solution(root, tmp_path):
    target = tmp_path / "edition"
    cut = make_edition(target, root)
    assert [page.name for page in cut] == ["99_example.ipynb"]
    text = everything_in(target)
    for secret in example.SECRETS:
        assert secret in everything_in(root) and secret not in text, secret
    assert "solution" not in text
    for kept in ("Divide by the sum", "A statement about", "def attend(query, key):", "Out: fine"):
        assert kept in text
    assert {path.name for path in target.iterdir()} == {"chapters", "src", "data", "_config.yml", "_toc.yml"}
    notebook = nbformat.read(target / "chapters" / "99_example.ipynb", as_version=4)
    nbformat.validate(notebook)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert len(find_spans(notebook)) == 3


def test_solutions_in_markdown_pages_are_cut():
    assert cut_text(PAGE).split() == ["#", "Card", "Text", "before.", "Text", "between.", "Text", "after."]
    assert cut_text(PAGE.replace("\nText after.\n", "")).split()[-1] == "between."
    assert cut_text("# No solution\n") == "# No solution\n"


def test_a_markdown_page_is_cut_too(root, tmp_path):
    (root / "chapters" / "card.md").write_text(PAGE, encoding="utf-8")
    make_edition(tmp_path / "edition", root)
    assert "zanzibar" not in everything_in(tmp_path / "edition")


def test_a_link_to_a_solution_is_refused(root, tmp_path):
    (root / "chapters" / "card.md").write_text("See {ref}`ch99-attend-solution`.", encoding="utf-8")
    with pytest.raises(ValueError, match=r"card.md links to the solution ch99-attend-solution"):
        make_edition(tmp_path / "edition", root)


def test_a_folder_in_use_is_refused(root, tmp_path):
    with pytest.raises(ValueError, match="not empty"):
        make_edition(root, root)
    with pytest.raises(ValueError, match="inside the chapters"):
        make_edition(root / "chapters" / "new", root)
    assert not (root / "chapters" / "new").exists()


def test_the_command(tmp_path, capsys):
    (tmp_path / "full").touch()
    assert main(["edition", str(tmp_path)]) == 1
    assert "not empty" in capsys.readouterr().err
    assert main(["edition", str(tmp_path / "new")]) == 0
    assert "solutions cut from" in capsys.readouterr().out
    assert (tmp_path / "new" / "src" / "core" / "tensor.py").exists()
    assert not (tmp_path / "new" / "tests").exists()


def gated(*sources):
    cells = [new_code_cell(text[1:]) if text.startswith("!") else new_markdown_cell(text) for text in sources]
    return new_notebook(cells=cells)


START, END = "```{solution-start} a\n```", "```{solution-end}\n```"


def test_gates_are_found():
    notebook = gated(
        "Text", "````{exercise-start} T\n:label: a\n````\nDo.", "!1", "```{exercise-end}\n```", START, "!2", END
    )
    exercise, solution = find_spans(notebook)
    assert (exercise.kind, exercise.label, exercise.first, exercise.last) == ("exercise", "a", 1, 3)
    assert (solution.kind, solution.label, solution.first, solution.last) == ("solution", "a", 4, 6)
    assert code_of(notebook, exercise) == ["1"] and text_of(notebook, exercise) == "Do."
    assert len(find_spans(gated(f"{START}\nAll in one cell.\n{END}"))) == 1


@pytest.mark.parametrize(
    "sources",
    [
        (START,),
        (END,),
        (START, START, END, END),
        (START, "```{exercise-end}\n```"),
        (f"Before\n{START}", END),
        (START, f"{END}\nAfter"),
        ("```{exercise-start} no label\n```", "```{exercise-end}\n```"),
    ],
)
def test_gates_out_of_place_are_refused(sources):
    with pytest.raises(ValueError, match=r"^cell \d: (exercise|solution)-(start|end)"):
        find_spans(gated(*sources))


@pytest.mark.slow
def test_the_built_book_holds_no_solution(root, tmp_path):
    """Pages, `_sources`, downloads and the search index; the whole book, built alike, holds all of it."""
    make_edition(tmp_path / "edition", root)
    built = {}
    for name, source in (("whole", root), ("edition", tmp_path / "edition")):
        program = "from jupyter_book.cli.main import main; main()"
        command = [sys.executable, "-c", program, "build", "-n", "-W", str(source)]
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", env={**os.environ, "PYTHONUTF8": "1"}
        )
        assert done.returncode == 0, done.stderr[-2000:]
        built[name] = source / "_build" / "html"
    for place in ("_sources", "_downloads", "searchindex.js", "chapters/99_example.html"):
        whole, edition = (built[name] / place for name in ("whole", "edition"))
        read = everything_in if whole.is_dir() else lambda path: path.read_text(encoding="utf-8")
        for secret in ("zanzibar", "quetzalcoatl"):
            assert secret in read(whole).lower(), f"{secret} is not even in the whole book's {place}"
            assert secret not in read(edition).lower(), f"{secret} is in the edition's {place}"
    text = everything_in(built["edition"])
    assert "axis=AXIS" not in text and "divide by the sum" in text.lower()
