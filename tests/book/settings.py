"""Do the notebooks give the same numbers with other processors' kernels, thread counts and hash seeds?

    python -m tests.book.settings                          # all chapters under all settings: an hour or more
    python -m tests.book.settings --only 4 6 -- chapters/04_causal_mask.ipynb     # settings 4 and 6, one chapter

Each setting runs `pytest --nbval` in an environment in which OpenBLAS and NumPy pretend to be on an older processor.
The old kernels are several times slower. Where NumPy is not built with OpenBLAS its variables have no effect.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from src.course.notebooks import THREADS

ROOT = Path(__file__).resolve().parents[2]


def setting(threads: int, hash_seed: int, **kernels: str) -> dict[str, str]:
    """The environment variables of one setting."""
    return {**dict.fromkeys(THREADS, str(threads)), "PYTHONHASHSEED": str(hash_seed), **kernels}


SETTINGS = [
    setting(1, 0),
    setting(2, 1, OPENBLAS_CORETYPE="Haswell"),
    setting(1, 1, OPENBLAS_CORETYPE="Sandybridge"),
    setting(1, 0, OPENBLAS_CORETYPE="Nehalem"),
    setting(2, 0, OPENBLAS_CORETYPE="Prescott"),
    setting(1, 1, NPY_DISABLE_CPU_FEATURES="X86_V3"),
]


def environment(variables: dict[str, str]) -> dict[str, str]:
    """This process's environment with the setting's variables, and without kernels that were chosen outside."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "NPY_DISABLE"))}
    return {**ours, **variables}


def run(variables: dict[str, str], paths: list[str]) -> int:
    """Run the notebooks under one setting; the exit code of pytest."""
    shown = " ".join(f"{name}={value}" for name, value in variables.items() if name not in THREADS[1:])
    print(f"== {shown}", flush=True)
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", *paths]
    return subprocess.run(command, cwd=ROOT, env=environment(variables)).returncode


def main(arguments: list[str] | None = None) -> int:
    """Run the settings that were asked for; 0 if the notebooks pass under all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.book.settings", description=__doc__)
    parser.add_argument("--only", nargs="+", type=int, help=f"settings from 1 to {len(SETTINGS)}", metavar="N")
    parser.add_argument("paths", nargs="*", default=["chapters"], help="notebooks or folders")
    options = parser.parse_args(arguments)
    chosen = options.only or range(1, len(SETTINGS) + 1)
    if not all(1 <= number <= len(SETTINGS) for number in chosen):
        parser.error(f"settings are numbered from 1 to {len(SETTINGS)}, got {list(chosen)}")
    codes = [run(SETTINGS[number - 1], options.paths) for number in chosen]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
