"""Working copies for readers (`open`, `reset`) and one command that re-executes a chapter (`refresh`)."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from src.course.progress import ROOT

ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
# In markdown: [text](file), ![alt](file), src="file", ```{figure} file, {download}`text <file>`
LINK = re.compile(r"(\]\(|src=\"|\{(?:figure|image)\} |<)(?!\w+:|[/#.<])([^\s()\"<>`]+)")


def find_chapter(number: str, root: Path = ROOT) -> Path:
    """The notebook of a chapter, by its number: "5" is `chapters/05_query_key_value.ipynb`.

    Raises:
        ValueError: if there is no such notebook; the message lists those that exist.
    """
    notebooks = sorted((root / "chapters").glob("[0-9][0-9]_*.ipynb"))
    found = [path for path in notebooks if number.isdecimal() and int(path.name[:2]) == int(number)]
    if len(found) != 1:
        numbers = ", ".join(str(int(path.name[:2])) for path in notebooks) or "none"
        raise ValueError(f"there is no notebook for chapter {number!r}; chapters with a notebook: {numbers}")
    return found[0]


def open_copy(number: str, root: Path = ROOT) -> tuple[Path, bool]:
    """Copy a chapter into `work/` unless a copy is there; return its path and whether it is new."""
    import nbformat

    chapter = find_chapter(number, root)
    copy = root / "work" / chapter.name
    if copy.exists():
        return copy, False
    copy.parent.mkdir(exist_ok=True)
    notebook = nbformat.read(chapter, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda link: _from_work(link, chapter.parent), cell.source)
    partial = copy.with_suffix(".partial")
    nbformat.write(notebook, partial)
    os.replace(partial, copy)
    return copy, True


def _from_work(link: re.Match[str], chapters: Path) -> str:
    """A link to a picture or page beside the chapter, as it reads from the folder `work`."""
    opening, target = link.groups()
    file = target.partition("#")[0]
    is_beside = (chapters / file).exists() and not file.endswith(".ipynb")
    return f"{opening}../chapters/{target}" if is_beside else link[0]


def reset_copy(number: str, ask: Callable[[str], str] = input, root: Path = ROOT) -> Path | None:
    """Replace a working copy by a fresh one, if the reader agrees; return where the old one is kept, or None."""
    copy, is_new = open_copy(number, root)
    if is_new:
        return None
    backup = _free_name(root / "work" / "backup" / copy.name)
    question = f"Replace work/{copy.name} by a fresh copy? Yours is kept as work/backup/{backup.name}. [y/N] "
    if ask(question).strip().lower() not in ("y", "yes"):
        return None
    backup.parent.mkdir(exist_ok=True)
    shutil.move(copy, backup)
    open_copy(number, root)
    return backup


def _free_name(path: Path) -> Path:
    number = 1
    while (free := path.with_stem(f"{path.stem}-{number}")).exists():
        number += 1
    return free


def start_jupyter(notebook: Path, root: Path = ROOT) -> int:
    """Open a notebook in JupyterLab, one BLAS thread a kernel, until the reader stops it."""
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", str(notebook)]
    try:
        return subprocess.call(command, env={**ONE_THREAD, **os.environ}, cwd=root)
    except KeyboardInterrupt:
        return 0
