"""Files are whole or not written at all, and everybody may read them as any other file."""

import os
from pathlib import Path

import pytest

from src.core.checkpoint import write_atomically as write_bytes
from src.course.progress import write_atomically as write_text

WRITERS = {
    "text": write_text,
    "bytes": lambda path, content: write_bytes(path, content.encode()),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_permissions_are_those_of_an_ordinary_file(write, tmp_path: Path) -> None:
    ordinary, written = tmp_path / "ordinary", tmp_path / "written"
    ordinary.write_text("a", encoding="utf-8")
    write(written, "a")
    assert written.stat().st_mode == ordinary.stat().st_mode


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(write, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "kept"
    path.write_text("old", encoding="utf-8")

    def refuse(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space"):
        write(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
