"""What the README, CONTRIBUTING and the back matter say is so: commands, files, chapters, versions, numbers."""

import re
import runpy
import shlex
import subprocess
import tomllib
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml

from src.core import GELU, Tensor
from src.course import concept_map, doctor
from src.course.__main__ import main
from src.course.exercises import find_exercise
from src.course.runs import Setup

PROJECT = Path(__file__).parents[2]
CHAPTERS = PROJECT / "chapters"
PAGES = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted(CHAPTERS.glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")
VERSION = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
MISSION = [
    "python -m pip install -r requirements.txt && jupyter-book build .",
    "python -m pip install -r requirements.txt && pytest --nbval",
]
FENCE = re.compile(r"^[ ]*```bash\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def course_commands(text: str) -> set[str]:
    """What follows `python -m src.course` in code blocks and between backquotes: "open 5"."""
    return set(re.findall(r"python -m src\.course ([\w .-]*\w)", text))


def parses(command: str) -> bool:
    """Whether `python -m src.course` knows these words. `--help` at the end keeps it from doing anything."""
    name, *arguments = shlex.split(command)
    with pytest.raises(SystemExit) as end:
        main([name, *arguments, "--help"])
    return end.value.code == 0


def local_links(text: str) -> list[str]:
    """Targets of links and pictures that are files here; code is left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:|#", link)]


def test_the_two_commands_stand_in_blocks_of_their_own() -> None:
    blocks = [block.strip() for block in FENCE.findall(README)]
    assert [block for block in blocks if block in MISSION] == MISSION


def test_the_whole_check_runs_the_same_steps() -> None:
    steps = read(PROJECT / ".ci" / "run")
    assert re.search(r"^python -m pip install .*-r requirements\.txt$", steps, re.MULTILINE)
    assert re.search(r"^jupyter-book build .*\.$", steps, re.MULTILINE)
    assert steps.endswith("\npytest --nbval\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_command_of_the_course_exists(page: Path) -> None:
    wrong = [command for command in course_commands(read(page)) if not parses(command)]
    assert wrong == []


def test_the_readme_shows_every_command_of_the_course(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    names = re.search(r"\{([\w,]+)\}", capsys.readouterr().out)
    assert names is not None
    shown = {command.split()[0] for command in course_commands(README)}
    assert shown == set(names[1].split(","))


def test_an_unknown_command_would_be_noticed() -> None:
    assert course_commands("`python -m src.course opne 5`") == {"opne 5"}
    assert not parses("opne 5")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_linked_file_exists(page: Path) -> None:
    links = [link for link in local_links(read(page)) if link]
    assert [link for link in links if not (page.parent / link).is_file()] == []


def test_every_exercise_that_the_readme_names_exists() -> None:
    ids = set(re.findall(r"\"(ch\d\d\.\w+)\"", README))
    assert ids
    assert all(find_exercise(each).id == each for each in ids)


def table_below(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of the README, without its head."""
    section = README.split(f"\n## {heading}\n", maxsplit=1)[1].split("\n## ", maxsplit=1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def test_the_table_of_paths_is_the_repository() -> None:
    named = {cells[0].strip("`") for cells in table_below("Where things are")}
    assert [path for path in named if not (PROJECT / path).exists()] == []
    listing = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git repository: what belongs to it is not known")
    folders = {path.partition("/")[0] for path in listing.stdout.splitlines() if "/" in path}
    assert {path.partition("/")[0] for path in named} == folders - {".github"}


def title_of(notebook: Path) -> str:
    """The first heading of the first level."""
    cells = nbformat.read(notebook, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    assert title is not None, notebook
    return title[1]


def test_what_is_said_to_be_written_and_planned_is_so() -> None:
    written, _ = (cells[1] for cells in table_below("What is there, and what is not yet"))
    titles = {path.name[:2]: title_of(path) for path in CHAPTERS.glob("[0-9][0-9]_*.ipynb")}
    named = {f"{int(number):02d}": name for number, name in re.findall(r"chapter (\d+), \*(.+?)\*", written)}
    assert named == titles
    listed = re.findall(r"^\| (\d+)\. ", read(CHAPTERS / "planned.md"), re.MULTILINE)
    chapters = [int(chapter.number) for chapter in concept_map.CHAPTERS if chapter.number not in ("0", "W")]
    assert sorted([*map(int, listed), *map(int, titles.keys() - {"00"})]) == sorted(chapters)


def test_versions_of_the_course_and_of_python_agree() -> None:
    assert f"This is version {VERSION};" in README
    assert f"{{Version {VERSION}}}" in README
    assert re.findall(r"^## (.+)$", read(CHAPTERS / "changelog.md"), re.MULTILINE)[0] == VERSION
    assert f"known in version {VERSION}" in read(CHAPTERS / "errata.md")
    wanted = [f"3.{minor}" for minor in range(doctor.OLDEST[1], doctor.NEWEST[1] + 1)]
    assert f"You need Python {', '.join(wanted[:-1])} or {wanted[-1]} " in README


def test_the_torch_to_reinstall_is_the_pinned_one() -> None:
    pinned = re.search(r"^torch==.*$", read(PROJECT / "requirements.txt"), re.MULTILINE)
    assert pinned is not None
    assert f" {pinned[0]} --index-url" in read(CHAPTERS / "troubleshooting.md")


def test_the_citation_is_the_one_for_programs() -> None:
    citation = yaml.safe_load(read(PROJECT / "CITATION.cff"))
    block = re.search(r"```bibtex\n(.*?)```", README, re.DOTALL)
    assert block is not None
    plain = re.sub(r"[{}]", "", block[1])
    assert citation["title"] in plain
    assert all(author["name"] in plain for author in citation["authors"])


def test_the_sums_of_the_errata_are_true() -> None:
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", read(CHAPTERS / "errata.md"), re.MULTILINE
    )
    assert len(rows) == 2
    for count, total, largest, area in rows:
        points = np.linspace(-5, 5, int(count.replace(",", "")))
        with Tensor.precision(np.float64):
            x = Tensor(points)
            difference = np.abs(GELU()(x).data - GELU(approximate="tanh")(x).data)
        assert f"{difference.sum():.4f}" == total
        assert f"{difference.max():.6f}" == largest
        assert f"{difference.sum() * (points[1] - points[0]):.6f}" == area


def test_the_picture_is_small_and_its_program_runs() -> None:
    program = runpy.run_path(str(PROJECT / "assets" / "draw_attention.py"))
    assert program["PICTURE"].stat().st_size < 150_000
    assert re.search(r"!\[[^\]]{40,}\]\(assets/attention\.png\)", README)
    tiny = Setup(batch_size=2, embedding_size=8, blocks=2)
    matrices = program["attention_of_verse"](tiny, steps=1)
    axes = program["draw"](matrices).axes
    verse = program["VERSE"].replace(" ", "␣")
    assert all(panel.patch.get_hatch() for panel in axes[:2])  # the mask is drawn
    assert [panel.get_title() for panel in axes[:2]] == ["block 1, head 3", "block 2, head 1"]
    assert "".join(label.get_text() for label in axes[0].get_yticklabels()) == verse
