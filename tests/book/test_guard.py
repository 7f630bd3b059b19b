"""The guard is guarded: each fault, planted alone in a good notebook, is found; nbval sees a changed digit (C37)."""

import base64
import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from src.course.refresh import execute, normalise
from tests.book.guard import LARGEST_PICTURE, find_faults, uncompared_share

PICTURE_CELL = 3
CELLS = [
    "x = 1 / 3",
    "print(f'{x:.4f}')",
    "x > 0",
    "import matplotlib.pyplot as plt\n\nplt.figure(figsize=(1, 1)).add_subplot().plot([1, 2])\nplt.show()",
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A small notebook, run and normalised as `refresh` does it."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    notebook.cells[PICTURE_CELL].metadata["mystnb"] = {"image": {"alt": "A line that rises from 1 to 2."}}
    execute(notebook, tmp_path_factory.mktemp("run"), "small.ipynb")
    normalise(notebook)
    return json.loads(nbformat.writes(notebook))


def test_a_good_notebook_has_no_faults(stored: dict[str, Any]) -> None:
    assert find_faults(stored) == []
    assert uncompared_share([stored, stored]) == (0, 8)


def printing(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": [text]}


def plant(number: int, **changes: Any) -> Any:
    """A fault: the cell `number` with some of its fields changed."""
    return lambda notebook: notebook["cells"][number].update(changes)


def oversized() -> list[dict[str, Any]]:
    data = {"image/png": base64.b64encode(bytes(LARGEST_PICTURE + 1)).decode()}
    return [{"output_type": "display_data", "metadata": {}, "data": data}]


SVG = [{"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": "<svg/>"}}]
ERROR = [{"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}]
STDERR = [{"output_type": "stream", "name": "stderr", "text": "warning"}]
FAULTS = {
    "cleared": (plant(1, execution_count=None, outputs=[]), "cell 2: was never run, or its outputs were cleared"),
    "count": (plant(1, execution_count=7), "cell 2: has execution count 7, expected 2: run all cells in order"),
    "stderr": (plant(0, outputs=STDERR), "cell 1: writes to stderr"),
    "error": (plant(0, outputs=ERROR), "cell 1: ends in ValueError"),
    "scalar": (plant(0, outputs=[printing("np.float64(0.5)")]), "cell 1: prints a NumPy scalar's repr"),
    "address": (plant(0, outputs=[printing("<f at 0x7f3a1c2b>")]), "cell 1: prints an address: '0x7f3a1c2b'"),
    "path": (plant(0, outputs=[printing("in /home/me/a.txt")]), "cell 1: prints an absolute path: '/home/'"),
    "windows path": (plant(0, outputs=[printing("C:\\Users")]), "cell 1: prints an absolute path"),
    "seconds": (plant(0, outputs=[printing("took 3.2 s")]), "cell 1: prints a time: '3.2 s'"),
    "clock": (plant(0, outputs=[printing("at 12:30:05")]), "cell 1: prints a time: '12:30:05'"),
    "svg": (plant(0, outputs=SVG), "cell 1: has an output of type image/svg+xml"),
    "large": (plant(PICTURE_CELL, outputs=oversized()), "cell 4: a picture of 150001 bytes, at most 150000"),
    "semicolon": (plant(0, source="x;"), "cell 1: ends in a semicolon"),
    "alt": (plant(PICTURE_CELL, metadata={}), "cell 4: a figure without alt text"),
    "empty alt": (plant(0, cell_type="markdown", source="![](a.png)"), "cell 1: a picture without alt text"),
    "skipped": (plant(0, metadata={"tags": ["nbval-skip"]}), "cell 1: its output is not compared and it asserts"),
    "ignored": (plant(0, source="# NBVAL_IGNORE_OUTPUT\nx"), "cell 1: its output is not compared and it asserts"),
    "version": (lambda notebook: notebook["metadata"]["language_info"].update(version="3.11.7"), "metadata: language"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(stored: dict[str, Any], fault: str) -> None:
    planting, message = FAULTS[fault]
    notebook = copy.deepcopy(stored)
    planting(notebook)
    assert any(found.startswith(message) for found in find_faults(notebook)), find_faults(notebook)


def test_two_pictures_in_one_cell_are_found(stored: dict[str, Any]) -> None:
    notebook = copy.deepcopy(stored)
    outputs = notebook["cells"][PICTURE_CELL]["outputs"]
    outputs.append(outputs[-1])
    assert find_faults(notebook) == ["cell 4: 2 pictures share one alt text: one figure a cell"]


@pytest.mark.parametrize("text", ["32 steps, loss 2.0770", "shape (4, 32, 65)", "ROMEO: 5 sirs", "and/or 1:2"])
def test_ordinary_outputs_are_no_faults(stored: dict[str, Any], text: str) -> None:
    notebook = copy.deepcopy(stored)
    notebook["cells"][0]["outputs"] = [printing(text)]
    assert find_faults(notebook) == []


def test_an_expected_error_is_no_fault(stored: dict[str, Any]) -> None:
    notebook = copy.deepcopy(stored)
    plant(0, outputs=ERROR, metadata={"tags": ["raises-exception"]})(notebook)
    assert find_faults(notebook) == []


def nbval(folder: Path, notebook: dict[str, Any]) -> str:
    """pytest's closing line for the notebook alone, in a folder without this project's settings."""
    (folder / "small.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "small.ipynb"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8")
    return re.sub(r" in .*", "", run.stdout.strip().splitlines()[-1])


def test_nbval_passes_the_stored_outputs(stored: dict[str, Any], tmp_path: Path) -> None:
    assert nbval(tmp_path, stored) == "4 passed"


def test_nbval_fails_when_one_digit_is_changed(stored: dict[str, Any], tmp_path: Path) -> None:
    notebook = copy.deepcopy(stored)
    assert notebook["cells"][1]["outputs"][0]["text"] == ["0.3333\n"]
    notebook["cells"][1]["outputs"][0]["text"] = ["0.3334\n"]
    assert nbval(tmp_path, notebook) == "1 failed, 3 passed"
