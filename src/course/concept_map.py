"""The concept map of the chapters: drawn into assets/concept_map.svg, which `chapters/00_start_here.md` shows.

What a chapter needs and where it stands in the map is said here; whether it is written is read from `_toc.yml`, where
every page of the book is listed anyway. After a change of either:

    python -m src.course.concept_map
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from src.course.progress import ROOT

FILE = ROOT / "assets" / "concept_map.svg"
PLANNED_PAGE = "chapters/planned"
WIDTH, HEIGHT = 128, 62  # of a box
ACROSS, DOWN = 146, 100  # from one box to the next
MARGIN = 3
NUMBER_Y, TITLE_Y, LINE = 17, 35, 16  # of the text in a box
MOST_LETTERS = 16  # in a line of a title: what fits into a box


@dataclass(frozen=True)
class Chapter:
    """A box of the map: number, title by lines, column and row, and the numbers of the chapters that it needs."""

    number: str
    lines: tuple[str, ...]
    place: tuple[int, int]
    needs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return " ".join(self.lines)

    @property
    def name(self) -> str:
        """Title and number, as one says them."""
        return self.title if self.number == "W" else f"Chapter {self.number}: {self.title}"

    @property
    def corner(self) -> tuple[int, int]:
        """x and y of the upper left corner."""
        return MARGIN + self.place[0] * ACROSS, MARGIN + self.place[1] * DOWN


CHAPTERS = [
    Chapter("0", ("Start here",), (0, 0)),
    Chapter("W", ("Warm-up:", "eight cards"), (1, 0), ("0",)),
    Chapter("1", ("Tensors and", "gradients"), (2, 0), ("W",)),
    Chapter("2", ("A language model", "from counts"), (1, 1), ("1",)),
    Chapter("12", ("Tokens",), (2, 1), ("2",)),
    Chapter("3", ("Self-attention",), (0, 2), ("2",)),
    Chapter("4", ("The causal mask",), (1, 2), ("3",)),
    Chapter("5", ("Query,", "key, value"), (2, 2), ("4",)),
    Chapter("6", ("Many heads",), (0, 3), ("5",)),
    Chapter("7", ("The feed-forward", "network and GELU"), (1, 3), ("5",)),
    Chapter("8", ("Positions",), (2, 3), ("5",)),
    Chapter("9", ("The Transformer", "block"), (0, 4), ("6", "7", "8")),
    Chapter("10", ("Training a GPT",), (1, 4), ("9",)),
    Chapter("11", ("Generating text",), (2, 4), ("10",)),
]

# The page gives the colours of its theme, light or dark; those behind the commas are for the file on its own.
STYLE = """
.concept-map { display: block; width: 100%; max-width: 34rem; margin: 1.5rem auto; font-family: inherit, sans-serif; }
.concept-map text { fill: var(--pst-color-text-base, #222832); text-anchor: middle; font-size: 13px; }
.concept-map .number { fill: var(--pst-color-text-muted, #48566b); font-size: 11.5px; }
.concept-map .written .title { fill: var(--pst-color-link, #0a7d91); }
.concept-map rect { fill: var(--pst-color-background, #fff); stroke: var(--pst-color-text-muted, #48566b); }
.concept-map .written rect { stroke: var(--pst-color-link, #0a7d91); stroke-width: 2.5; }
.concept-map .planned rect { stroke-dasharray: 4 3; }
.concept-map a:hover rect, .concept-map a:focus-visible rect { fill: var(--pst-color-surface, #f3f4f5); }
.concept-map a, .concept-map a:hover { text-decoration: none; }
.concept-map a:hover .title { text-decoration: underline; }
.concept-map .needs { fill: none; stroke: var(--pst-color-text-muted, #48566b); stroke-width: 1.3; }
.concept-map marker path { fill: var(--pst-color-text-muted, #48566b); }
"""


def written_pages(toc: str) -> dict[str, str]:
    """The page of each chapter that is written, by the chapter's number, from the text of `_toc.yml`.

    >>> written_pages("root: chapters/00_start_here\\n- file: chapters/05_query_key_value\\n- file: chapters/planned")
    {'0': 'chapters/00_start_here', '5': 'chapters/05_query_key_value'}
    """
    pages: dict[str, str] = {}
    for page in re.findall(r"(?:root|file):\s*(\S+)", toc):
        if numbered := re.match(r"chapters/(\d\d)_", page):
            pages.setdefault(str(int(numbered[1])), page)  # pages beside a chapter come after it
        elif page.startswith("chapters/warmup/"):
            pages.setdefault("W", page)  # the first card
    return pages


def draw(toc: str) -> str:
    """The map as SVG text: a written chapter links to its page, a planned one to the list of planned chapters."""
    pages = written_pages(toc)
    width = 2 * MARGIN + 2 * ACROSS + WIDTH
    height = 2 * MARGIN + 4 * DOWN + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="concept-map" viewBox="0 0 {width} {height}" role="group"'
        ' aria-labelledby="concept-map-title">',
        '<title id="concept-map-title">Concept map: the chapters, and an arrow from each to those that build on it'
        "</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="concept-map-arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto"><path d="M0 0 8 4 0 8Z"/></marker></defs>',
        *_arrows(),
        *(line for chapter in CHAPTERS for line in _box(chapter, pages.get(chapter.number))),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _arrows() -> Iterator[str]:
    """One arrow for each need: to the right within a row, otherwise from the foot of one box to the head of another."""
    by_number = {chapter.number: chapter for chapter in CHAPTERS}
    for chapter in CHAPTERS:
        for number in chapter.needs:
            x1, y1 = by_number[number].corner
            x2, y2 = chapter.corner
            if y1 == y2:
                path = f"M{x1 + WIDTH} {y1 + HEIGHT // 2}H{x2}"
            else:
                start, end, middle = (x1 + WIDTH // 2, y1 + HEIGHT), (x2 + WIDTH // 2, y2), (y1 + HEIGHT + y2) // 2
                path = f"M{start[0]} {start[1]}C{start[0]} {middle} {end[0]} {middle} {end[0]} {end[1]}"
            ends = f'data-from="{number}" data-to="{chapter.number}"'
            yield f'<path class="needs" {ends} d="{path}" marker-end="url(#concept-map-arrow)"/>'


def _box(chapter: Chapter, page: str | None) -> Iterator[str]:
    """A chapter: number and state above, its title below, all of it one link."""
    x, y = chapter.corner
    state = "planned" if page is None else "written"
    target = (page or PLANNED_PAGE).removeprefix("chapters/") + ".html"
    number = {"W": "before 1"}.get(chapter.number, chapter.number) + (" · planned" if page is None else "")
    planned = " (planned)" if page is None else ""
    centre = x + WIDTH // 2
    first = y + TITLE_Y + (LINE // 2 if len(chapter.lines) == 1 else 0)
    yield f'<a class="{state}" href="{target}"><title>{escape(chapter.name + planned)}</title>'
    yield f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>'
    yield f'<text class="number" x="{centre}" y="{y + NUMBER_Y}">{number}</text>'
    for index, line in enumerate(chapter.lines):
        yield f'<text class="title" x="{centre}" y="{first + index * LINE}">{escape(line)}</text>'
    yield "</a>"


if __name__ == "__main__":
    FILE.write_text(draw((ROOT / "_toc.yml").read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
