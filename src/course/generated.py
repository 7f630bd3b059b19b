"""Cells of a chapter that are written by the course: the head of the page, the stubs and the folded hints.

Such a cell carries in its metadata {"course": {"generated": ...}} with "head", "stub:ch05.noun" (a code cell) or
"hints:ch05.noun". `python -m src.course refresh` writes them, a test compares them with their source: the notebook's
own metadata {"course": {...}} for the head, `src/course/exercises/ch05.py` for the others.
"""

from nbformat import NotebookNode

from src.course.exercises import find_exercise


def write_generated_cells(notebook: NotebookNode, file_name: str) -> None:
    """Write the source of each generated cell anew. `file_name` is the notebook's own, for its download link."""
    for cell in notebook.cells:
        what = cell.metadata.get("course", {}).get("generated")
        if what:
            cell.source = render(what, notebook, file_name)


def render(what: str, notebook: NotebookNode, file_name: str) -> str:
    """The source of one generated cell.

    Raises:
        ValueError: if `what` is none of the three kinds, or the chapter's metadata lacks a key.
    """
    kind, _, exercise_id = what.partition(":")
    if kind == "head":
        return render_head(notebook.metadata.get("course", {}), file_name)
    if kind == "stub":
        return find_exercise(exercise_id).stub
    if kind == "hints":
        return render_hints(exercise_id)
    raise ValueError(f'generated cells are "head", "stub:ID" and "hints:ID", got {what!r}')


def render_head(chapter: dict, file_name: str) -> str:
    """The head of the page, from the notebook's metadata, in MyST that JupyterLab shows too."""
    if "card" in chapter:
        return _render_head_of_card(chapter, file_name)
    _refuse_missing(chapter, ("chapter", "outcomes", "read_minutes", "do_minutes", "needs", "skip_when"), file_name)
    if len(chapter["outcomes"]) != 3:
        raise ValueError(f"{file_name}: three outcomes are wanted, got {len(chapter['outcomes'])}")
    lines = [
        "```{admonition} What you will be able to do",
        ":class: tip",
        *(f"- {outcome}" for outcome in chapter["outcomes"]),
        "",
        f"**Time**: {chapter['read_minutes']} minutes to read, {chapter['do_minutes']} for the exercises.\\",
        f"**You need**: {'; '.join(chapter['needs']) or 'nothing'}.\\",
        f"**Skip it** if {chapter['skip_when']}.",
        "",
        *_how_to_work(str(chapter["chapter"]), file_name),
        "```",
    ]
    return "\n".join(lines)


def _render_head_of_card(card: dict, file_name: str) -> str:
    """The shorter head of a card of the warm-up."""
    _refuse_missing(card, ("card", "skip_when", "used_in"), file_name)
    lines = [
        "```{admonition} Ten minutes, with three questions",
        ":class: tip",
        f"**Skip it** if {card['skip_when']}.\\",
        f"**Used in** {card['used_in']}.",
        "",
        *_how_to_work(f"warmup{card['card']}", file_name),
        "```",
    ]
    return "\n".join(lines)


def _refuse_missing(chapter: dict, wanted: tuple[str, ...], file_name: str) -> None:
    missing = [key for key in wanted if key not in chapter]
    if missing:
        raise ValueError(f"{file_name}: the notebook's metadata 'course' lacks {', '.join(missing)}")


def _how_to_work(name: str, file_name: str) -> list[str]:
    return [
        f"Download {{download}}`this notebook <{file_name}>`, or work in a copy of your own:\\",
        f"`python -m src.course open {name}`",
    ]


def render_hints(exercise_id: str) -> str:
    """The hints of an exercise, each folded on its own."""
    blocks = [
        f"```{{dropdown}} Hint {number}\n{each.full_text}\n```"
        for number, each in enumerate(find_exercise(exercise_id).hints, start=1)
    ]
    return "\n\n".join(blocks)
