"""Re-execute a chapter and write it in one normal form, so that a difference between two versions is a real one."""

import os
import re
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from src.course.gates import find_spans
from src.course.generated import write_generated_cells
from src.course.notebooks import ONE_THREAD
from src.course.progress import write_atomically

LARGEST_PICTURE = 150_000  # bytes
SECONDS_A_CELL = 600
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
OF_ONE_SESSION = ("execution", "ExecuteTime", "collapsed", "scrolled", "editable", "slideshow", "trusted")
SOLUTION = "# Solution"  # the first line of a solution's code: JupyterLab shows that line of a folded cell
FOLDED = {"hide-output": "outputs_hidden", "hide-input": "source_hidden"}  # the page's tags, JupyterLab's metadata
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class RefreshError(RuntimeError):
    """A chapter could not be refreshed; its file is as it was."""


def refresh(path: Path) -> list[str]:
    """Write the generated cells, execute all cells, normalise, and replace the file; return remarks on large pictures.

    Raises:
        RefreshError: if a cell raises, writes to stderr, takes too long or ends the kernel.
    """
    notebook = nbformat.read(path, as_version=4)
    write_generated_cells(notebook, path.name)
    cover_solutions(notebook)
    execute(notebook, path.parent, path.name)
    normalise(notebook)
    nbformat.validate(notebook)
    write_atomically(path, nbformat.writes(notebook) + "\n")
    return large_pictures(notebook)


def execute(notebook: NotebookNode, folder: Path, name: str) -> None:
    """Run all cells with this Python, one BLAS thread, in `folder`."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    # No kernel folders: what is left is the kernel of this environment, whatever "python3" is installed elsewhere.
    kernels = KernelSpecManager(kernel_dirs=[])
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=kernels),
        timeout=SECONDS_A_CELL,
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute(env={**os.environ, **ONE_THREAD}, cwd=str(folder))
    except CellExecutionError as error:
        raise RefreshError(f"{name}: {_failing_cell(notebook)} raised {error.ename}: {error.evalue}") from None
    except CellTimeoutError:
        running = next((cell for cell in notebook.cells if cell.cell_type == "code" and not cell.execution_count), None)
        which = f"the cell that begins {running.source.strip().splitlines()[0]!r}" if running else "a cell"
        raise RefreshError(f"{name}: {which} took more than {SECONDS_A_CELL} seconds: is the machine busy?") from None
    except DeadKernelError:
        raise RefreshError(f"{name}: the kernel ended while it ran the cells, for lack of memory perhaps") from None
    for number, cell in enumerate(notebook.cells, start=1):
        noise = [output.text for output in cell.get("outputs", []) if output.get("name") == "stderr"]
        if noise:
            raise RefreshError(f"{name}: cell {number} writes to stderr: {COLOURS.sub('', noise[0]).strip()[:300]}")


def _failing_cell(notebook: NotebookNode) -> str:
    for number, cell in enumerate(notebook.cells, start=1):
        tolerated = "raises-exception" in cell.metadata.get("tags", [])
        if not tolerated and any(output.output_type == "error" for output in cell.get("outputs", [])):
            return f"cell {number} ({cell.source.strip().splitlines()[0]})"
    return "a cell"


def cover_solutions(notebook: NotebookNode) -> None:
    """Begin the code of each solution with a line that gives nothing away, and fold it."""
    for span in find_spans(notebook):
        for cell in notebook.cells[span.first : span.last + 1] if span.kind == "solution" else []:
            if cell.cell_type == "code":
                cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": True}
                if not cell.source.startswith(SOLUTION):
                    cell.source = f"{SOLUTION}\n{cell.source}"


def normalise(notebook: NotebookNode) -> None:
    """Fix ids and counts by position; drop what belongs to one session or one machine; merge streams; fold by tags."""
    notebook.nbformat_minor = 5
    notebook.metadata["kernelspec"] = dict(KERNEL)
    notebook.metadata["language_info"] = dict(LANGUAGE)
    count = 0
    for position, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{position:03d}"
        for key in OF_ONE_SESSION:
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            for tag in set(FOLDED) & set(cell.metadata.get("tags", [])):
                cell.metadata.setdefault("jupyter", {})[FOLDED[tag]] = True
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = _merge_streams(cell.outputs)
            for output in cell.outputs:
                output.get("metadata", {}).pop("needs_background", None)
                if output.output_type == "execute_result":
                    output["execution_count"] = count


def _merge_streams(outputs: list[Any]) -> list[Any]:
    """One output for each run of prints, however the kernel happened to cut them."""
    merged: list[Any] = []
    for output in outputs:
        last = merged[-1] if merged else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last["text"] += output.text
        else:
            merged.append(output)
    return merged


def large_pictures(notebook: NotebookNode) -> list[str]:
    """One remark for each picture that is too large to store."""
    remarks = []
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            size = len(output.get("data", {}).get("image/png", "")) * 3 // 4  # base64
            if size > LARGEST_PICTURE:
                kilobytes = f"{size // 1000} kB, at most {LARGEST_PICTURE // 1000} kB"
                remarks.append(f"cell {number}: a picture of {kilobytes}: lower its dpi")
    return remarks
