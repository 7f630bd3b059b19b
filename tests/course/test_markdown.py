"""Formulas of exercises are not eaten by Markdown: no bold by stars, no quotes that curl, no numbers of lists."""

import re

import nbformat
import pytest
import yaml
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from src.course.exercises import chapter_exercises, chapter_names
from src.course.gates import find_spans, text_of
from src.course.progress import ROOT

PLAIN = {"paragraph_open", "paragraph_close", "inline", "text", "softbreak", "code_inline", "math_inline"}
DROPDOWN = re.compile(r"^(`{3,})\{dropdown\}[^\n]*\n(.*?)^\1[ \t]*$", re.M | re.S)
SUSPECT = {  # in what is neither code nor mathematics
    "an operator of Python": re.compile(r"[\w)\]]\*+[\w(\[]|\*\*\d"),
    "a name of Python": re.compile(r"__|[a-z]_[a-z]{2,}"),
    "a text of Python": re.compile(r"=[\"']|[(\[][\"']|\"[)\]]|\"\"|\(\.\.\.\)"),
    "the number of a list": re.compile(r"^[ \t]*\d+[.)][ \t]", re.M),
}


@pytest.fixture(scope="module")
def parser():
    """The parser of the book, with its extensions."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    config = MdParserConfig(enable_extensions=settings["parse"]["myst_enable_extensions"])
    return create_md_parser(config, RendererHTML)


def damage(text):
    """What Markdown would eat of this text, or None."""
    bare = re.sub(r"\$\$.*?\$\$|\$[^$]+\$|(`+)(?!`).+?(?<!`)\1(?!`)", " ", text, flags=re.S)
    found = [f"{what}: {match.group()!r}" for what, form in SUSPECT.items() for match in form.finditer(bare)]
    return "; ".join(found) or None


def kinds(parser, text):
    """The kinds of tokens that the book's parser makes of this text."""
    blocks = parser.parse(text)
    return {token.type for block in blocks for token in (block, *(block.children or []))}


@pytest.mark.parametrize("chapter", chapter_names())
def test_hints_are_plain_text_and_code(parser, chapter):
    for exercise in chapter_exercises(chapter):
        for hint in exercise.hints:
            assert damage(hint.full_text) is None, f"{exercise.id}: {damage(hint.full_text)}: {hint.full_text}"
            other = kinds(parser, hint.full_text) - PLAIN
            assert not other, f"{exercise.id}: {other} in {hint.full_text}"


def test_tasks_and_solutions_keep_their_formulas():
    for path in sorted((ROOT / "chapters").rglob("[0-9]*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for span in find_spans(notebook):
            text = text_of(notebook, span)
            assert damage(text) is None, f"{path.name}, {span.kind} {span.label}: {damage(text)}"


def test_answers_in_dropdowns_keep_their_numbers():
    """The questions "From memory" and of the warm-up, and everything else that is folded."""
    for path in sorted((ROOT / "chapters").rglob("*.*")):
        texts = [path.read_text(encoding="utf-8")] if path.suffix == ".md" else []
        if path.suffix == ".ipynb":
            cells = nbformat.read(path, as_version=4).cells
            texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
        for folded in [match.group(2) for text in texts for match in DROPDOWN.finditer(text)]:
            number = SUSPECT["the number of a list"].search(folded)
            assert number is None, f"{path.name}: {number.group()!r} in {folded}"


@pytest.mark.parametrize(
    "text",
    [
        "to be divided by 1 - 0.9**2 and 1 - 0.999**2.",
        "y = 3a + a**2",
        "The slope of 2(w - 1)**2 is 4(w - 1).",
        "make it in __init__.",
        "One merge is a call of merge_pair.",
        "first out = Tensor(...), then a closure",
        'decoded with errors="ignore" it gives',
        'one piece for each id, "" if there is nothing',
        'a class ("replace") of',
        "16. The heads share the channels.",
        "The root is\n4. Variances add up.",
    ],
)
def test_damage_is_seen(text):
    assert damage(text)


def test_code_and_prose_are_not_damaged(parser):
    for text in (
        'A **word**, `0.9**2`, $a^{**}$, `x["a"]` and `errors="ignore"`, the text "aab": five are "ab".',
        "12 = 2 * 2 * 3, the scores of W_Q and W_K; it takes 4.5 bits, or `__init__`.",
    ):
        assert damage(text) is None
    assert kinds(parser, "a `b` $c$\nd") <= PLAIN
    assert "strong_open" in kinds(parser, "by 1 - 0.9**2 and 1 - 0.999**2.")
    assert "ordered_list_open" in kinds(parser, "16. The heads")
