"""How `python -m benchmarks` measures and reports, without measuring anything that takes time."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import benchmarks
from benchmarks import growth, report, step, worker
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.options import Options
from benchmarks.report import BEGIN, END, Row
from benchmarks.side import Contender, Process, take_turns

ROOT = Path(__file__).parents[2]
MODULES = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(f"benchmarks.{name}")).failed == 0


def test_the_list_names_every_benchmark():
    command = [sys.executable, "-m", "benchmarks", "--list"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert run.returncode == 0 and run.stderr == ""
    assert [line.split()[0] for line in run.stdout.splitlines()] == list(BENCHMARKS)


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--threads", "-1"], ["--seconds", "nan"], ["--only", "x"]])
def test_what_makes_no_sense_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_one_benchmark_alone_leaves_the_page_as_it_is(monkeypatch, capsys):
    before = report.README.read_bytes()
    main(["--only", "step-bare", "--baseline", "nowhere.py"])
    assert "Left out: the chapter-5 model" in capsys.readouterr().out
    assert report.README.read_bytes() == before


class Sleeper:
    """A step of known length."""

    def __init__(self, seconds: float):
        self.seconds = seconds

    def run(self) -> None:
        time.sleep(self.seconds)


def test_a_worker_times_steps_and_says_who_failed(capfd):
    sleeper = Contender("tests.benchmarks.test_measuring:Sleeper", {"seconds": 0.02})
    with Process(sleeper, 1) as process:
        assert 0.02 <= process.ask("time", 0.05) < 2.0
    broken = Contender(sleeper.factory, {"seconds": -1})
    with Process(broken, 1) as process, pytest.raises(RuntimeError, match=r"Sleeper.*ended with code 1"):
        process.ask("time", 0.05)
    assert "ValueError" in capfd.readouterr().err


def test_sides_take_turns_and_are_compared_round_by_round():
    contenders = [Contender("tests.benchmarks.test_measuring:Sleeper", {"seconds": part}) for part in (0.01, 0.04)]
    fast, slow = take_turns(contenders, Options(rounds=2, seconds=0.01, threads=(1,)))
    assert len(fast.answers) == len(slow.answers) == 2 and fast.threads == 1
    assert (fast.answers < slow.answers).all()


class Hoarder:
    """Needs so many bytes for the time of a step, one number for each step."""

    def __init__(self, sizes: list[int]):
        self.sizes = iter(sizes)

    def run(self) -> None:
        np.ones(next(self.sizes), dtype=np.uint8)


@pytest.mark.skipif(not worker.FORGET_PEAK.exists(), reason="read from Linux's /proc")
def test_the_peak_of_a_step_counts_what_was_freed_again():
    hoarder = Contender("tests.benchmarks.test_measuring:Hoarder", {"sizes": [50_000_000] * 2 + [1000] * 2})
    with Process(hoarder, 1) as process:  # in this one the array could lie where other tests have left memory
        assert 49e6 < process.ask("peak", 2) < 80e6
        assert process.ask("peak", 2) < 20e6  # the earlier peak is forgotten


def test_the_table_gives_medians_and_quartiles():
    row = Row("a step", 0.5, "1 ms", "2 ms", np.array([0.4, 0.5, 0.6, 0.7, 5.0]))
    cells = [cell.strip() for cell in report.table([row]).splitlines()[-1].strip("|").split("|")]
    assert cells == ["a step", "0.50", "1 ms", "2 ms", "0.600", "0.500 to 0.700", "no"]
    assert Row("a step", None, "1 ms", "2 ms", np.ones(3)).cells() == [
        "a step",
        "",
        "1 ms",
        "2 ms",
        "1.000",
        "1.000 to 1.000",
        "",
    ]


def test_only_what_is_between_the_markers_is_replaced(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n", encoding="utf-8")
    report.write("new", page)
    assert page.read_text(encoding="utf-8") == f"before\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(ValueError, match="needs the lines"):
        report.write("new", page)


def test_the_page_has_its_markers():
    page = report.README.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1 and page.index(BEGIN) < page.index(END)


def test_the_sizes_are_those_of_the_table():
    assert [tuple(sizes.values()) for sizes in (step.SMALL, step.NANOGPT, step.LARGE)] == [
        (4, 32, 64, 1, 2),
        (12, 64, 128, 4, 4),
        (32, 128, 256, 8, 4),
    ]


def test_the_figure_of_growth_is_drawn(tmp_path):
    points = [(1, 0.001, 0.002), (2, 0.002, 0.003)]
    growth.draw({"context": points, "batch": points}, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
