"""The concept map: what it says is what the book's table of contents, its pages and its list of plans say."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from src.course import concept_map
from src.course.__main__ import main
from src.course.concept_map import (
    ACROSS,
    CHAPTERS,
    DOWN,
    FILE,
    HEIGHT,
    MARGIN,
    MOST_LETTERS,
    WIDTH,
    draw,
    written_pages,
)
from src.course.exercises import find_exercise

PROJECT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
TOC = (PROJECT / "_toc.yml").read_text(encoding="utf-8")
NUMBERS = ["0", "W", *(str(number) for number in range(1, 13))]


def boxes(svg: str) -> dict[str, tuple[str, str, str]]:
    """Of each box, by its title: the line above the title, its class, and where it leads."""
    found = {}
    for link in ElementTree.fromstring(svg).iter(f"{SVG}a"):
        number, *title = [text.text for text in link.iter(f"{SVG}text")]
        found[" ".join(title)] = (number, link.get("class"), link.get("href"))
    return found


def test_the_stored_drawing_is_the_one_of_this_book() -> None:
    assert FILE.read_text(encoding="utf-8") == draw(TOC), "run: python -m src.course.concept_map"


def test_every_chapter_is_in_the_map_once() -> None:
    assert sorted(chapter.number for chapter in CHAPTERS) == sorted(NUMBERS)
    assert len(boxes(draw(TOC))) == len(NUMBERS)


def test_a_chapter_becomes_a_link_when_it_enters_the_toc() -> None:
    before = boxes(draw("root: chapters/00_start_here\n"))
    assert before["Start here"] == ("0", "written", "00_start_here.html")
    assert before["Many heads"] == ("6 · planned", "planned", "planned.html")
    after = boxes(
        draw("root: chapters/00_start_here\n- file: chapters/06_many_heads\n- file: chapters/warmup/01_shapes")
    )
    assert after["Many heads"] == ("6", "written", "06_many_heads.html")
    assert after["Warm-up: eight cards"] == ("before 1", "written", "warmup/01_shapes.html")
    changed = {title for title in before if before[title] != after[title]}
    assert changed == {"Many heads", "Warm-up: eight cards"}


def test_every_numbered_page_of_the_book_is_in_the_map() -> None:
    assert set(written_pages(TOC)) <= set(NUMBERS)
    leads = {target for _, _, target in boxes(draw(TOC)).values()}
    pages = {page.removeprefix("chapters/") + ".html" for page in written_pages(TOC).values()}
    assert leads == pages | ({"planned.html"} if len(pages) < len(NUMBERS) else set())


def heading(page: str) -> str:
    """The first heading of a page's source."""
    path = PROJECT / page
    if path.with_suffix(".md").exists():
        text = path.with_suffix(".md").read_text(encoding="utf-8")
    else:
        notebook = json.loads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))
        text = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1]


@pytest.mark.parametrize("number", [number for number in written_pages(TOC) if number != "W"])
def test_a_written_chapter_has_the_title_of_its_page(number: str) -> None:
    title = next(chapter.title for chapter in CHAPTERS if chapter.number == number)
    assert title.casefold() in heading(written_pages(TOC)[number]).casefold()


def test_a_planned_chapter_has_the_title_of_the_list() -> None:
    text = (PROJECT / "chapters" / "planned.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| (\d+)\. (.*?) \|", text, re.MULTILINE))
    planned = [chapter for chapter in CHAPTERS if chapter.number not in written_pages(TOC)]
    assert listed == {chapter.number: chapter.title for chapter in planned if chapter.number != "W"}
    assert re.search(r"^\| Warm-up: eight cards\b", text, re.MULTILINE) is not None or "W" in written_pages(TOC)


def test_needs_are_earlier_chapters_and_every_chapter_leads_on() -> None:
    order = {number: position for position, number in enumerate(NUMBERS)}
    needs = {(number, chapter.number) for chapter in CHAPTERS for number in chapter.needs}
    assert all(order[one] < order[other] for one, other in needs)
    assert {chapter.number for chapter in CHAPTERS if not chapter.needs} == {"0"}
    assert set(NUMBERS) - {one for one, _ in needs} == {"11", "12"}  # where reading ends


def test_arrows_lead_from_box_to_box() -> None:
    """From the middle of a side to the next box, or from the middle of a foot to the middle of a head."""
    corners = {chapter.number: chapter.corner for chapter in CHAPTERS}
    arrows = [path for path in ElementTree.fromstring(draw(TOC)).iter(f"{SVG}path") if path.get("class") == "needs"]
    assert {(path.get("data-from"), path.get("data-to")) for path in arrows} == {
        (number, chapter.number) for chapter in CHAPTERS for number in chapter.needs
    }
    for path in arrows:
        (x1, y1), (x2, y2) = corners[path.get("data-from")], corners[path.get("data-to")]
        numbers = [int(number) for number in re.findall(r"\d+", path.get("d"))]
        if "H" in path.get("d"):
            assert y1 == y2 and numbers == [x1 + WIDTH, y1 + HEIGHT // 2, x2]
        else:
            assert numbers[:2] == [x1 + WIDTH // 2, y1 + HEIGHT] and numbers[-2:] == [x2 + WIDTH // 2, y2]


def test_boxes_do_not_overlap_and_arrows_to_the_right_cross_none() -> None:
    assert ACROSS > WIDTH and DOWN > HEIGHT
    assert len({chapter.place for chapter in CHAPTERS}) == len(CHAPTERS)
    places = {chapter.number: chapter.place for chapter in CHAPTERS}
    for chapter in CHAPTERS:
        for number in chapter.needs:
            (column, row), (before, above) = chapter.place, places[number]
            assert row == above + 1 or (row == above and column == before + 1)


def test_labels_fit_into_their_boxes() -> None:
    for chapter in CHAPTERS:
        assert 1 <= len(chapter.lines) <= 2
        assert all(len(line) <= MOST_LETTERS for line in chapter.lines)
    root = ElementTree.fromstring(draw(TOC))
    _, _, width, height = map(int, root.get("viewBox").split())
    right, foot = zip(*((x + WIDTH, y + HEIGHT) for x, y in (chapter.corner for chapter in CHAPTERS)), strict=True)
    assert (width, height) == (max(right) + MARGIN, max(foot) + MARGIN)


def test_the_drawing_has_the_colours_of_the_page_and_asks_for_nothing() -> None:
    colours = re.findall(r"(?:fill|stroke): ([^;]+);", concept_map.STYLE)
    assert all(colour == "none" or colour.startswith("var(--pst-color-") for colour in colours)
    assert re.findall(r"https?:[^\"]*", draw(TOC)) == ["http://www.w3.org/2000/svg"]


def test_the_front_page_shows_it_and_names_what_there_is() -> None:
    text = (PROJECT / "chapters" / "00_start_here.md").read_text(encoding="utf-8")
    assert ":file: ../assets/concept_map.svg" in text
    named = set(re.findall(r"\"(ch\d\d\.\w+)\"", text))
    assert named and all(find_exercise(exercise).id == exercise for exercise in named)
    commands = set(re.findall(r"python -m src\.course (\w+)", text))
    assert commands == {"open", "reset", "doctor"}
    for command in commands:
        with pytest.raises(SystemExit, match=r"^0$"):
            main([command, "--help"])
