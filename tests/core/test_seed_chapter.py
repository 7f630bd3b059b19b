"""The chapter that this course grew from runs on the engine, unchanged."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAPTER = ROOT.parent / "shared" / "compat" / "seed_chapter.py"


@pytest.mark.skipif(not CHAPTER.is_file(), reason="../shared/compat/seed_chapter.py is not here")
def test_the_seed_chapter_trains_tests_and_generates(tmp_path):
    text = "ROMEO:\nBut soft, what light through yonder window breaks?\nIt is the east, and Juliet is the sun.\n\n" * 40
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(text, encoding="utf-8")
    command = [sys.executable, str(CHAPTER), str(corpus), "2", "30"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    windows = len(range(0, len(text) - int(len(text) * 0.9) - 33, 16))
    vocabulary = len(set(text))
    assert re.match(r"30 steps, [\d.]+ ms/step, last loss \d\.\d{4}\n", run.stdout)
    assert f"prediction:\t{windows // 4} steps, each (4, 32, {vocabulary})\n" in run.stdout
    loss = float(re.search(r"loss:\t([\d.]+)\n", run.stdout)[1])
    assert 1.0 < loss < 3.4  # ln V is 3.4 here; 30 steps learn the frequencies of the letters
    sample = run.stdout.split(f"{loss}\n", 1)[1].rstrip("\n")
    assert sample.startswith("ROMEO:") and 200 < len(sample) <= 262
