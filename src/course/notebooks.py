"""Working copies for readers (`open`, `reset`) and one command that re-executes a chapter (`refresh`)."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from src.course.progress import ROOT

FOLDERS = {"": "chapters", "warmup": "chapters/warmup", "deeper": "chapters/deeper"}  # cards; pages beside chapters
# OpenBLAS, PyTorch's OpenMP, MKL and macOS's Accelerate each read their own name.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
# In markdown: [text](file), ![alt](file), src="file", ```{figure} file, {download}`text <file>`
LINK = re.compile(r"(\]\(|src=\"|\{(?:figure|image)\} |<)(?!\w+:|[/#.<])([^\s()\"<>`]+)")


def find_chapter(name: str, root: Path = ROOT) -> Path:
    """The notebook of a chapter, as "5" is `05_query_key_value.ipynb`, of a card, "warmup3", or beside it, "deeper10".

    Raises:
        ValueError: if there is no such notebook; the message lists those that exist.
    """
    notebooks = {
        path: f"{kind}{int(path.name[:2])}"
        for kind, folder in FOLDERS.items()
        for path in sorted((root / folder).glob("[0-9][0-9]_*.ipynb"))
    }
    asked = re.sub(r"(?<![0-9])0+(?=[0-9])", "", name)  # "05" is chapter 5 too
    found = [path for path, known in notebooks.items() if known == asked]
    if len(found) != 1:
        names = ", ".join(notebooks.values()) or "none"
        raise ValueError(f"there is no notebook for chapter {name!r}; chapters with a notebook: {names}")
    return found[0]


def open_copy(name: str, root: Path = ROOT) -> tuple[Path, bool]:
    """Copy a chapter into `work/` unless a copy is there; return its path and whether it is new."""
    import nbformat

    chapter = find_chapter(name, root)
    copy = root / "work" / chapter.name
    if copy.exists():
        return copy, False
    copy.parent.mkdir(exist_ok=True)
    notebook = nbformat.read(chapter, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda link: _from_work(link, chapter.parent, root), cell.source)
    partial = copy.with_suffix(".partial")
    nbformat.write(notebook, partial)
    os.replace(partial, copy)
    return copy, True


def _from_work(link: re.Match[str], folder: Path, root: Path) -> str:
    """A link to a picture or page beside the chapter, as it reads from the folder `work`."""
    opening, target = link.groups()
    file = target.partition("#")[0]
    is_beside = (folder / file).exists() and not file.endswith(".ipynb")
    return f"{opening}../{folder.relative_to(root).as_posix()}/{target}" if is_beside else link[0]


def reset_copy(name: str, ask: Callable[[str], str] = input, root: Path = ROOT) -> Path | None:
    """Replace a working copy by a fresh one, if the reader agrees; return where the old one is kept, or None."""
    copy, is_new = open_copy(name, root)
    if is_new:
        return None
    backup = _free_name(root / "work" / "backup" / copy.name)
    question = f"Replace work/{copy.name} by a fresh copy? Yours is kept as work/backup/{backup.name}. [y/N] "
    if ask(question).strip().lower() not in ("y", "yes"):
        return None
    backup.parent.mkdir(exist_ok=True)
    shutil.move(copy, backup)
    open_copy(name, root)
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
