"""What a stored notebook must be before it is committed (cases C35 and C37): `find_faults` lists what it is not.

Works on the parsed JSON, so that the tests can plant each fault in a copy.
"""

import base64
import re
from collections.abc import Iterator
from typing import Any

LARGEST_PICTURE = 150_000  # bytes
LARGEST_UNCOMPARED_SHARE = 0.05

# What differs from machine to machine or from run to run, and so must not be in an output.
VOLATILE = {
    "a NumPy scalar's repr (print it rounded)": re.compile(r"\bnp\.(?:float|int|uint|complex|bool|str)\w*\("),
    "an address": re.compile(r"\b0x[0-9a-fA-F]{6,}"),
    "an absolute path": re.compile(
        r"(?<![\w/.:])/(?:home|Users|root|tmp|usr|opt|var|mnt|private|work)/|\b[A-Za-z]:\\\w"
    ),
    "a time": re.compile(
        r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?|hours?|it/s|s/it)\b"
        r"|\b\d{1,2}:\d{2}:\d{2}\b|\b\d{4}-\d{2}-\d{2}\b|\b(?:Wall time|CPU times)\b"
    ),
}
COMPARED = ("text/plain", "text/html", "text/markdown", "text/latex", "image/png")


def text_of(value: str | list[str]) -> str:
    """A multi-line string as the notebook format stores it: one string or a list of lines."""
    return value if isinstance(value, str) else "".join(value)


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The code cells that hold code; nbval and Jupyter skip empty ones."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and text_of(cell["source"]).strip()]


def is_uncompared(cell: dict[str, Any]) -> bool:
    """Whether nbval runs the cell without comparing its output, or does not run it at all."""
    marks = {"NBVAL_IGNORE_OUTPUT", "NBVAL_SKIP", "PYTEST_VALIDATE_IGNORE_OUTPUT"}
    comments = {line.strip().lstrip("#").strip() for line in text_of(cell["source"]).splitlines() if "#" in line}
    tags = {tag.upper().replace("-", "_") for tag in cell["metadata"].get("tags", [])}
    return bool(marks & (comments | tags))


def find_faults(notebook: dict[str, Any]) -> list[str]:
    """One line for each fault, with the number of the cell (from 1, all cells counted)."""
    faults = []
    if "version" in notebook["metadata"].get("language_info", {}):
        faults.append("metadata: language_info has a version, which differs between machines")
    cells = code_cells(notebook)
    for number, cell in enumerate(notebook["cells"], start=1):
        found = _faults_of_text(cell) if cell["cell_type"] != "code" else []
        if cell in cells:
            found = [*_faults_of_run(cell, cells.index(cell) + 1), *_faults_of_outputs(cell)]
        faults += [f"cell {number}: {fault}" for fault in found]
    return faults


def _faults_of_text(cell: dict[str, Any]) -> Iterator[str]:
    if re.search(r"!\[\s*\]\(", text_of(cell["source"])):
        yield "a picture without alt text"


def _faults_of_run(cell: dict[str, Any], position: int) -> Iterator[str]:
    count = cell["execution_count"]
    if count is None:
        yield "was never run, or its outputs were cleared"
    elif count != position:
        yield f"has execution count {count}, expected {position}: run all cells in order"
    if text_of(cell["source"]).rstrip().endswith(";"):
        yield "ends in a semicolon, which hides nothing under nbval: end in None or plt.show()"
    if is_uncompared(cell) and "assert" not in text_of(cell["source"]):
        yield "its output is not compared and it asserts nothing"
    for output in cell["outputs"]:
        if output.get("name") == "stderr":
            yield "writes to stderr"
        if output["output_type"] == "error" and "raises-exception" not in cell["metadata"].get("tags", []):
            yield f"ends in {output['ename']}"


def _faults_of_outputs(cell: dict[str, Any]) -> Iterator[str]:
    pictures = 0
    for output in cell["outputs"]:
        data = output.get("data", {})
        texts = [value for kind, value in data.items() if kind.startswith("text/")]
        for text in map(text_of, [output.get("text", ""), output.get("evalue", ""), *texts]):
            yield from (f"prints {what}: {hit[0]!r}" for what, mark in VOLATILE.items() if (hit := mark.search(text)))
        yield from (f"has an output of type {kind}" for kind in data if kind not in COMPARED)
        if "image/png" in data:
            pictures += 1
            size = len(base64.b64decode(text_of(data["image/png"])))
            if size > LARGEST_PICTURE:
                yield f"a picture of {size} bytes, at most {LARGEST_PICTURE}"
    if pictures > 1:
        yield f"{pictures} pictures share one alt text: one figure a cell"
    if pictures and not cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "").strip():
        yield "a figure without alt text (cell metadata: mystnb, image, alt)"


def uncompared_share(notebooks: list[dict[str, Any]]) -> tuple[int, int]:
    """(cells that nbval does not compare, all code cells) over several notebooks."""
    cells = [cell for notebook in notebooks for cell in code_cells(notebook)]
    return sum(map(is_uncompared, cells)), len(cells)
