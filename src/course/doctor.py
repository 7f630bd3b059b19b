"""What is amiss in a reader's environment, and how to mend it. Imports nothing that may be missing."""

import importlib.util
import os
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from src.course.notebooks import ONE_THREAD
from src.course.progress import ROOT

OLDEST, NEWEST = (3, 11), (3, 13)
INSTALL = "python -m pip install -r requirements.txt"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `fix` is empty if all is well; `fatal` if the course cannot work without the fix."""

    text: str
    fix: str = ""
    fatal: bool = False

    def __str__(self) -> str:
        sign = "ok   " if not self.fix else "wrong" if self.fatal else "note "
        return f"{sign}  {self.text}" + (f"\n       -> {self.fix}" if self.fix else "")


def examine(root: Path = ROOT) -> list[Finding]:
    """All findings, in the order in which one would mend them."""
    return [
        python_version(sys.version_info[:2]),
        *packages(root / "requirements.txt"),
        kernel(),
        blas_threads(),
        cuda_build(),
        corpus(root),
    ]


def python_version(running: tuple[int, int]) -> Finding:
    """Python 3.11 to 3.13, as the pinned packages want."""
    text = f"Python {running[0]}.{running[1]}"
    if OLDEST <= running <= NEWEST:
        return Finding(text)
    fix = (
        f"the course is tested with Python 3.{OLDEST[1]} to 3.{NEWEST[1]}: make a virtual environment with one of these"
    )
    return Finding(text, fix, fatal=running < OLDEST)


def packages(requirements: Path) -> list[Finding]:
    """Each pin that is not met; one good line if all are. Packages for other systems count only where installed."""
    if not requirements.exists():
        return [Finding("requirements.txt is missing", "restore it from the repository", fatal=True)]
    findings = []
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)([ \t]*;)?", requirements.read_text(encoding="utf-8"), re.MULTILINE)
    for name, pinned, has_condition in pins:
        try:
            installed = version(name).partition("+")[0]  # torch's CPU build is 2.13.0+cpu
        except PackageNotFoundError:
            if not has_condition:
                findings.append(Finding(f"{name} is not installed", INSTALL, fatal=True))
            continue
        if installed != pinned:
            findings.append(Finding(f"{name} is {installed}, the course pins {pinned}", INSTALL))
    return findings or [Finding(f"{len(pins)} pinned packages")]


def kernel() -> Finding:
    """Does "python3" start this Python in Jupyter? A kernel of another environment would not find the course."""
    fix = (
        "start Jupyter as `python -m jupyterlab` in this environment, or run: python -m ipykernel install --sys-prefix"
    )
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return Finding("Jupyter is not installed", INSTALL, fatal=True)
    try:
        program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return Finding("there is no kernel python3", fix, fatal=True)
    is_ours = program in ("python", "python3") or Path(program).absolute() == Path(sys.executable).absolute()
    return (
        Finding("the kernel python3 runs this Python") if is_ours else Finding(f"the kernel runs {program}", fix, True)
    )


def blas_threads() -> Finding:
    """One thread: with more, each small matrix product may wait for the others on a busy machine."""
    threads = {name: os.environ.get(name) for name in ONE_THREAD}
    if "1" in (threads["OPENBLAS_NUM_THREADS"], threads["OMP_NUM_THREADS"]):
        return Finding("matrix products use one thread")
    fix = "python -m src.course open sets it; elsewhere set OPENBLAS_NUM_THREADS=1 before Python starts"
    return Finding("matrix products may use several threads in this terminal", fix)


def cuda_build() -> Finding:
    """The course never uses a GPU. PyTorch is only looked at, since importing it takes seconds."""
    package = importlib.util.find_spec("torch")
    if package is None or package.origin is None:
        return Finding("PyTorch is not installed: the proofs need it", INSTALL, fatal=True)
    text = Path(package.origin).with_name("version.py").read_text(encoding="utf-8")
    if re.search(r"^cuda\b.*=\s*['\"]", text, re.MULTILINE):
        fix = (
            "it works but takes gigabytes; the small one: python -m pip install --force-reinstall --no-deps "
            "torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
        )
        return Finding("PyTorch is a build for CUDA", fix)
    return Finding("PyTorch is a build for the CPU")


def corpus(root: Path) -> Finding:
    """Is the default corpus in the cache? Whether its bytes are right is checked at each use."""
    cache = Path(os.environ.get("COURSE_CACHE") or root / "data" / "cache")
    if (cache / "shakespeare.txt").exists():
        return Finding("the corpus is in the cache")
    fix = "it comes on first use, over the network: python -m src.course corpus shakespeare"
    return Finding("the corpus is not in the cache yet", fix)
