"""Plain text from a play in markdown: `NAME:` line, the speech, an empty line, as the tinyshakespeare excerpt has it.

The play texts come from a package (see `corpora`) that marks speakers with `**NAME**`, directions with `_..._` and
scenes with headings. `data/README.md` tells what the text built here keeps and what it leaves out. Chapter 2 reads it.
"""

import html
import re
from collections.abc import Sequence

# What to change in the markdown, in this order, until only headings, `**NAME**` lines and speech are left.
_RULES = [
    # `\--` and `\[`: the backslash only keeps markdown from reading mark-up. One play writes a dash for `--`.
    (r"\\([^\w\s])", r"\1"),
    (r"—", "--"),
    (r"& ([cC])\b", r"&\1"),  # "& c." -> "&c."
    (r" ([:;?])", r"\1"),
    # Directions: `_[Aside]_` alone on its line, the first underscore doubled or missing at times; then in a line of
    # verse brackets hold words that an editor supplied, and they stay; then all others, over several lines too. One
    # play writes *direction*, one numbers the people of a procession.
    (r"(?<!\*)\*(?!\*)([^*]+)\*(?!\*)", r"_\1_"),
    (r"^_*\[[^]\n]*\]_ *$", ""),
    (r"_+\[([^]\n]*)\]_", r"\1"),
    (r"_[^_\n]*(?:\n(?!\n)[^_\n]*)*_", ""),
    (r"^\d+\. .*(?:\n.+)*", ""),
    # Headings without their mark-up: a song, a scene, the play's title before a heading, epilogue and prologue.
    (r"^(?:(?:THE )?SONG|DUMB SHOW)\. *$", ""),
    (r"^(?:SCENE [IVX]+:|\*\*Scene [IVX]+\*\*)", "### "),
    (r"^[A-Z' ]+\n+(?=#)", ""),
    (r"^EPILOGUE *$", "# EPILOGUE"),
    (r"^#+ (EPILOGUE|(?i:Prologue)) *\n+(?=[^\s*#])", r"**\1**\n"),
    # Speakers: a verse that breaks after "I" is none; a name broken over two paragraphs ("Ghost", "**of Clarence**") is
    # one; a name fused with its speech ("Senators, &C We'll surety him.") is one as well.
    (r"^\*\*(.* I)\*\*\s+", r"\1 "),
    (r"^([A-Z]+|Ghosts?|[A-Z][a-z]+'s)\n\n\*\*", r"**\1 "),
    (r"^([A-Z][a-z]+, &C|[A-Z][a-z]+'s? Servants?|[A-Z]+(?=:)|[A-Z-]+(?: [A-Z-]+)+):? (?=[A-Z][a-z' ])", r"**\1**\n"),
]
_COMPILED = [(re.compile(pattern, re.MULTILINE), replacement) for pattern, replacement in _RULES]


def play_text(markdown: str, corrections: Sequence[tuple[str, str]] = ()) -> str:
    r"""Return the speeches of one play as plain text that ends with one newline.

    `corrections` are pairs (wrong, right) for slips of the source, each of which must occur exactly once: ValueError
    otherwise.

    >>> print(play_text("# Play\n\n### SCENE I.\n\n_Enter ANN_\n\n**ANN**  \n_\\[Aside]_  \nHo\\--who?"), end="")
    ANN:
    Ho--who?
    """
    for wrong, right in corrections:
        if (found := markdown.count(wrong)) != 1:
            raise ValueError(f"the correction of {wrong!r} must match once, it matches {found} times: update it")
        markdown = markdown.replace(wrong, right)
    text = html.unescape(markdown)
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
    return "\n".join(f"{name}:\n" + "".join(f"{line}\n" for line in lines) for name, lines in _speeches(text) if lines)


def _speeches(text: str) -> list[tuple[str, list[str]]]:
    """Return the pairs (speaker, lines), in order; a speech goes on after a direction until somebody else speaks."""
    speeches: list[tuple[str, list[str]]] = []
    lines: list[str] | None = None  # of the speech that goes on; None after a heading: there follows only scenery
    for line in (" ".join(raw.split()) for raw in text.split("\n")):
        if line.startswith("#"):
            lines = None
        elif speaker := re.fullmatch(r"\*\*(.+)\*\*", line):
            lines = []
            speeches.append((_name(speaker[1]), lines))
        elif line and lines is not None:
            lines.append(line)
    return speeches


def _name(speaker: str) -> str:
    """Return the name as printed: "A: & B:" -> "A & B", "A & B & &C" -> "A & B, &C"."""
    return " ".join(speaker.replace(":", "").replace("& &C", "&C").replace(" &C", ", &C").replace(",,", ",").split())
