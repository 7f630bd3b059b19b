"""What a built book must be: functions that read every page under a folder and list the faults they find."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

# Attributes whose address a browser loads by itself, without a click.
LOADED = {
    **dict.fromkeys(("script", "img", "iframe", "embed", "audio", "video", "source", "track", "input"), ("src",)),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "link": ("href",),
}
LOADED["video"] = ("src", "poster")
NOT_LOADED_LINKS = {"author", "index", "search", "next", "prev", "canonical", "license", "help", "top", "up"}
CSS_ADDRESS = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Hosts that the scripts name without loading anything from them.
NAMED_IN_SCRIPTS = {
    "www.w3.org": "names of XML namespaces",
    "clipboardjs.com": "a comment of copybutton",
    "developer.mozilla.org": "a comment of Sphinx's search",
    "pydata-sphinx-theme.readthedocs.io": "an error message of the theme",
    "www.apache.org": "the licence of MathJax, in a comment",
    "github.com": "a comment of MathJax",
    "www.mathjax.org": "MathJax's menu, which is off",
    "cdn.jsdelivr.net": "MathJax's speech engine, which only its menu starts, and that is off",
}


def read_pages(root: Path) -> dict[Path, BeautifulSoup]:
    """Every HTML page under `root`, parsed; the theme's own templates in _static are none."""
    files = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.relative_to(root).parts]
    return {path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in files}


def is_outside(address: str) -> bool:
    """Whether the address names another host (or a scheme that is not this folder's)."""
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme not in ("", "data")


def loaded_addresses(page: BeautifulSoup) -> Iterator[str]:
    """All addresses that a browser requests when it opens the page."""
    for tag in page.find_all(list(LOADED)):
        relation = set(tag.get("rel") or ["?"])
        if tag.name == "link" and relation <= NOT_LOADED_LINKS:
            continue
        yield from (tag[name] for name in LOADED[tag.name] if tag.get(name))
    for tag in page.find_all(srcset=True):
        yield from (part.split()[0] for part in tag["srcset"].split(",") if part.strip())
    styles = [tag.get_text() for tag in page.find_all("style")] + [tag["style"] for tag in page.find_all(style=True)]
    yield from (address for style in styles for address in css_addresses(style))


def css_addresses(style: str) -> list[str]:
    """The addresses in url(...) and @import of a style sheet, comments left out."""
    return [one or other for one, other in CSS_ADDRESS.findall(COMMENT.sub("", style))]


def outside_requests(root: Path, pages: dict[Path, BeautifulSoup]) -> list[str]:
    """Everything that a page, a style sheet or a script would load from another host."""
    faults = []
    for path, page in pages.items():
        name = path.relative_to(root)
        faults += [f"{name} loads {address}" for address in loaded_addresses(page) if is_outside(address)]
        inline = [tag.get_text() for tag in page.find_all("script") if not tag.get("src")]
        faults += [f"{name} names {host} in a script" for script in inline for host in hosts(script)]
    for path in sorted(root.rglob("*.css")):
        addresses = css_addresses(path.read_text(encoding="utf-8"))
        faults += [f"{path.relative_to(root)} loads {address}" for address in addresses if is_outside(address)]
    for path in scripts(pages):
        named = hosts(path.read_text(encoding="utf-8")) - NAMED_IN_SCRIPTS.keys()
        faults += [f"{path.name} names {host}" for host in sorted(named)]
    return faults


def hosts(script: str) -> set[str]:
    """Hosts of all absolute addresses in a script, also those in its comments; not this machine's own."""
    return set(re.findall(r"(?:https?:|[\"'`])//([\w-]+(?:\.[\w-]+)+)", script))


def scripts(pages: dict[Path, BeautifulSoup]) -> list[Path]:
    """The script files that the pages load."""
    found = {
        (path.parent / urlsplit(tag["src"]).path).resolve()
        for path, page in pages.items()
        for tag in page.find_all("script", src=True)
        if not is_outside(tag["src"])
    }
    return sorted(found)


def missing_alt(root: Path, pages: dict[Path, BeautifulSoup]) -> list[str]:
    """Pictures that a screen reader could not describe; Sphinx falls back to the file's own name as alt text."""
    faults = []
    for path, page in pages.items():
        for picture in page.find_all("img"):
            alt = picture.get("alt", "").strip()
            if not alt or alt in picture["src"]:
                faults.append(f"{path.relative_to(root)}: {picture['src']} has no alt text")
        for drawing in page.select("article svg:not([aria-hidden=true])"):
            if not (drawing.get("aria-label") or drawing.get("aria-labelledby") or drawing.find("title")):
                faults.append(f"{path.relative_to(root)}: a drawing has no aria-label and no title")
    return faults


def broken_links(root: Path, pages: dict[Path, BeautifulSoup]) -> list[str]:
    """Links and loaded files inside the book whose file or anchor does not exist."""
    anchors = {path: {tag.get("id") or tag.get("name") for tag in page.find_all(True)} for path, page in pages.items()}
    faults = []
    for path, page in pages.items():
        links = [link.get("href") or link.get("xlink:href") for link in page.find_all("a")]
        addresses = {*filter(None, links), *loaded_addresses(page)}
        for address in sorted(address for address in addresses if not is_outside(address)):
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            missing_anchor = parts.fragment and target in anchors and unquote(parts.fragment) not in anchors[target]
            if not target.is_file() or missing_anchor:
                faults.append(f"{path.relative_to(root)}: {address}")
    return faults


def search_boxes(page: BeautifulSoup) -> list[Tag]:
    """The search boxes that a wide screen shows: fields outside of dialogs, and buttons that look like a field."""
    fields = [field for field in page.select("input[type=search]") if not field.find_parent("dialog")]
    return [*fields, *page.select("button.search-button-field")]


def unrendered_markup(page: BeautifulSoup) -> list[str]:
    """MyST directives and roles that show as raw text outside of code."""
    article = BeautifulSoup(str(page.select_one("article") or ""), "html.parser")
    for code in article.select("pre, code, script, style"):
        code.decompose()
    return re.findall(r":::+\{?\w*|```+\{?\w*|\{\w[\w:-]*\}`", article.get_text())
