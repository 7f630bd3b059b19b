"""Every page of the built book; and each check of `pages.py` against a small site that has the fault."""

import os
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

from tests.book.pages import (
    broken_links,
    css_addresses,
    missing_alt,
    outside_requests,
    read_pages,
    search_boxes,
    unrendered_markup,
)

PROJECT = Path(__file__).parents[2]
ROOT = PROJECT / "_build" / "html"


@pytest.fixture(scope="module")
def pages() -> dict[Path, BeautifulSoup]:
    """The built pages. `.ci/run` sets BOOK_IS_BUILT, so that there the tests cannot be skipped by mistake."""
    if not (ROOT / "index.html").exists() and not os.environ.get("BOOK_IS_BUILT"):
        pytest.skip("no book in _build/html: run `jupyter-book build .` first")
    return read_pages(ROOT)


@pytest.fixture(scope="module")
def articles(pages: dict[Path, BeautifulSoup]) -> dict[Path, BeautifulSoup]:
    """The pages that have text of the course: all but the redirect and the search page."""
    found = {path: page for path, page in pages.items() if path.parent != ROOT}
    assert found
    return found


def toc_files() -> list[str]:
    toc = yaml.safe_load((PROJECT / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    return [toc["root"], *(each["file"] for entry in entries for each in [entry, *entry.get("sections", [])])]


def test_the_toc_names_every_source_and_no_other() -> None:
    sources = {
        path.relative_to(PROJECT).with_suffix("").as_posix()
        for kind in ("*.md", "*.ipynb")
        for path in (PROJECT / "chapters").rglob(kind)
        if ".ipynb_checkpoints" not in path.parts
    }
    assert sorted(toc_files()) == sorted(sources)


def test_every_file_of_the_toc_is_built(articles: dict[Path, BeautifulSoup]) -> None:
    assert sorted(articles) == sorted(ROOT / f"{name}.html" for name in toc_files())


def test_nothing_is_requested_from_another_host(pages: dict[Path, BeautifulSoup]) -> None:
    assert outside_requests(ROOT, pages) == []


def test_mathjax_comes_from_the_book(articles: dict[Path, BeautifulSoup]) -> None:
    formulas = [path for path, page in articles.items() if page.select(".math")]
    loaders = [path for path, page in articles.items() if page.select('script[src*="_static/mathjax/tex-svg-full.js"]')]
    assert formulas and set(formulas) <= set(loaders)


def test_every_picture_has_alt_text(pages: dict[Path, BeautifulSoup]) -> None:
    assert missing_alt(ROOT, pages) == []


def test_no_internal_link_is_broken(pages: dict[Path, BeautifulSoup]) -> None:
    assert broken_links(ROOT, pages) == []


def test_the_front_page_leads_into_the_book(pages: dict[Path, BeautifulSoup]) -> None:
    target = pages[ROOT / "index.html"].find("meta", attrs={"http-equiv": "Refresh"})["content"].partition("url=")[2]
    assert (ROOT / target).is_file()


def test_every_page_has_one_search_box(pages: dict[Path, BeautifulSoup]) -> None:
    boxes = {path.name: len(search_boxes(page)) for path, page in pages.items() if path.name != "index.html"}
    assert set(boxes.values()) == {1}, boxes


def test_every_page_says_what_it_is(articles: dict[Path, BeautifulSoup]) -> None:
    titles = [page.title.get_text() for page in articles.values()]
    assert len(set(titles)) == len(titles)
    for path, page in articles.items():
        assert page.title.get_text().endswith("— Attention and GPT from scratch"), path
        assert len(page.find("meta", attrs={"name": "description"})["content"]) > 40, path
        assert page.html["lang"] == "en", path
        assert page.find("link", rel="icon")["href"].endswith("favicon.svg"), path
        assert "CC BY 4.0" in page.find("footer", class_="bd-footer-content").get_text(), path
        assert len(page.select("article h1")) == 1, path


def test_every_chapter_says_how_to_cite_it(articles: dict[Path, BeautifulSoup]) -> None:
    for path, page in articles.items():
        is_chapter = path.name[:2].isdigit() and path.name[:2] != "00"
        assert len(page.select(".cite-this-chapter")) == is_chapter, path


def test_every_solution_is_folded_on_screen_and_on_paper(articles: dict[Path, BeautifulSoup]) -> None:
    for path, page in articles.items():
        assert all("dropdown" in solution["class"] for solution in page.select("div.solution")), path
        assert "let toggleOpenOnPrint = 'false'" in str(page.head), path


def test_no_raw_markup_shows(articles: dict[Path, BeautifulSoup]) -> None:
    assert {path.name: found for path, page in articles.items() if (found := unrendered_markup(page))} == {}


# The checks themselves, on a site of one page.

SOUND = '<a href="#here" id="here">x</a><img src="a.png" alt="A cat."><a href="https://example.org/">elsewhere</a>'


def site(folder: Path, body: str) -> tuple[Path, dict[Path, BeautifulSoup]]:
    (folder / "a.png").write_bytes(b"")
    (folder / "page.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    return folder, read_pages(folder)


@pytest.mark.parametrize("check", [outside_requests, missing_alt, broken_links])
def test_a_sound_page_has_no_fault(tmp_path: Path, check) -> None:
    assert check(*site(tmp_path, SOUND)) == []


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://example.org/a.js"></script>',
        '<img src="//example.org/a.png" alt="x">',
        '<img srcset="a.png 1x, https://example.org/a.png 2x" src="a.png" alt="x">',
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<link rel="preconnect" href="https://example.org">',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(https://example.org/a.png)"></p>',
        '<script>const url = "https://example.org/a.js"</script>',
        '<iframe src="https://example.org/"></iframe>',
    ],
)
def test_a_request_to_another_host_is_found(tmp_path: Path, body: str) -> None:
    assert len(outside_requests(*site(tmp_path, body))) == 1


def test_a_request_from_a_style_sheet_or_script_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/a.woff2) }", encoding="utf-8")
    (tmp_path / "a.js").write_text("fetch('https://example.org/')", encoding="utf-8")
    faults = outside_requests(*site(tmp_path, '<script src="a.js"></script>'))
    assert faults == ["a.css loads https://example.org/a.woff2", "a.js names example.org"]


def test_comments_of_a_style_sheet_load_nothing() -> None:
    assert css_addresses("/* url(https://example.org) */ a { background: url('b.png') }") == ["b.png"]


@pytest.mark.parametrize(
    "body",
    [
        '<img src="a.png">',
        '<img src="a.png" alt=" ">',
        '<img src="a.png" alt="a.png">',
        "<article><svg></svg></article>",
    ],
)
def test_a_picture_without_alt_text_is_found(tmp_path: Path, body: str) -> None:
    assert len(missing_alt(*site(tmp_path, body))) == 1


@pytest.mark.parametrize(
    "body",
    ['<a href="gone.html">', '<a href="#gone">', '<a href="page.html#gone">', '<svg><a xlink:href="gone.html">'],
)
def test_a_broken_link_is_found(tmp_path: Path, body: str) -> None:
    assert len(broken_links(*site(tmp_path, body))) == 1


def test_raw_markup_is_found(tmp_path: Path) -> None:
    _, found = site(tmp_path, "<article>:::{note} and {ref}`x` <code>```{note}</code></article>")
    assert unrendered_markup(found[tmp_path / "page.html"]) == [":::{note", "{ref}`"]
