"""Every checked exercise of every chapter, and the example: stub, solution, hints and wrong answers (case C38)."""

import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from src.course.exercise import Hint, Property, WrongAnswer
from src.course.exercises import chapter_exercises, chapter_names, find_exercise
from src.course.generated import write_generated_cells
from src.course.notebooks import find_chapter
from src.course.progress import ROOT
from tests.course import example
from tests.course import exercise_rules as rules

CHAPTERS = [*chapter_names(), "ch99"]


@pytest.fixture(autouse=True)
def example_chapter(monkeypatch):
    monkeypatch.setitem(sys.modules, "src.course.exercises.ch99", example)


def load(chapter):
    """The notebook of a chapter, its file name and its exercises."""
    if chapter == "ch99":
        notebook = example.example_notebook()
        sys.modules["src.course.exercises.ch99"] = example
        write_generated_cells(notebook, "99_example.ipynb")
        return notebook, Path("99_example.ipynb"), example.EXERCISES
    path = find_chapter(chapter.removeprefix("ch"))
    return nbformat.read(path, as_version=4), path, chapter_exercises(chapter)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_and_its_exercises_agree(chapter):
    notebook, path, exercises = load(chapter)
    rules.ids_are_the_same(notebook, exercises)
    assert all(exercise.id.startswith(f"{chapter}.") for exercise in exercises)
    rules.generated_cells_are_in_sync(notebook, path.name, exercises)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_exercise_has_a_statement_and_a_folded_solution(chapter):
    notebook, _, exercises = load(chapter)
    for exercise in exercises:
        rules.statement_exists(notebook, exercise)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_stub_is_not_attempted(chapter):
    notebook, _, exercises = load(chapter)
    for exercise in exercises:
        rules.stub_is_not_attempted(notebook, exercise)


@pytest.mark.parametrize("dtype", rules.PRECISIONS)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_solution_passes(chapter, dtype):
    notebook, _, exercises = load(chapter)
    for exercise in exercises:
        rules.solution_passes(notebook, exercise, dtype)


@pytest.mark.parametrize("dtype", rules.PRECISIONS)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_hints_state_passes(chapter, dtype):
    for exercise in load(chapter)[2]:
        rules.hints_pass(exercise, dtype)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_hints_state_can_be_run_in_the_notebook(chapter):
    notebook, _, exercises = load(chapter)
    for exercise in exercises:
        rules.hints_fit_the_notebook(notebook, exercise)


@pytest.mark.parametrize("dtype", rules.PRECISIONS)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_wrong_answers_fail_with_their_own_message(chapter, dtype):
    notebook, _, exercises = load(chapter)
    for exercise in exercises:
        solution = rules.solution_of(notebook, exercise)
        rules.wrong_answers_fail(exercise, dtype, solution)


def test_every_notebook_that_checks_has_an_exercise_file():
    for path in (ROOT / "chapters").rglob("[0-9]*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        ids = {name for cell in notebook.cells if cell.cell_type == "code" for name in rules.checked_ids(cell.source)}
        for name in ids:
            assert find_exercise(name).id == name


def test_the_warm_up_comes_first():
    names = chapter_names()
    cards = [name for name in names if name.startswith("warmup")]
    assert cards and names == sorted(cards) + sorted(set(names) - set(cards))


def test_ids_are_looked_up_exactly():
    assert find_exercise("ch99.weights").title == "Weights by hand"
    for near in ("weights", "ch99.weight", "ch99.weights ", "CH99.weights", "ch99", "", "ch98.weights", "../ch99"):
        with pytest.raises(ValueError, match="there are: "):
            find_exercise(near)


# The rules themselves: each must refuse an exercise or a notebook that breaks it.


def refuses(rule, *arguments):
    with pytest.raises((AssertionError, ValueError)):
        rule(*arguments)


def test_rules_refuse_a_hint_that_its_judge_rejects():
    good = example.weights_by_hand
    for hint in (
        Hint("x", "[1, 2, 4]", [1, 2, 4]),
        Hint("x", "[1, 2, 4]", good.hints[2].answer),
        Hint("x", "[1 / 7]"),
    ):
        refuses(rules.hints_pass, replace(good, hints=[*good.hints[:2], hint]), "float32")
    drifted = Hint("x", "query @ query", example.attend_by_formula)
    refuses(rules.hints_pass, replace(example.build_weights, hints=[*good.hints[:2], drifted]), "float32")
    refuses(rules.hints_pass, replace(good, hints=good.hints[:2]), "float32")


def test_rules_refuse_a_hint_with_names_that_no_reader_has():
    notebook = load("ch99")[0]
    by_hand, build = example.weights_by_hand, example.build_weights
    rules.hints_fit_the_notebook(notebook, build)
    for good, code in ((by_hand, "SEVENTHS"), (by_hand, "[1, 2, 4]"), (build, "scores @ key")):
        hints = [*good.hints[:2], Hint("x", code, good.hints[2].answer)]
        refuses(rules.hints_fit_the_notebook, notebook, replace(good, hints=hints))
    hints = [*build.hints[:2], Hint("With `scores`:", "scores @ key", build.hints[2].answer)]
    rules.hints_fit_the_notebook(notebook, replace(build, hints=hints))


def test_rules_refuse_wrong_answers_without_a_message_of_their_own():
    good = example.weights_by_hand
    for wrong in (
        WrongAnswer([1 / 7, 2 / 7, 4 / 7], contains="x"),  # right
        WrongAnswer([2, 4, 8], contains="divide each"),  # the words of another
        WrongAnswer([0.3, 0.2, 0.5], contains="transposed"),  # words that do not occur
        WrongAnswer([..., 1, 2], contains="not attempted"),
    ):
        refuses(rules.wrong_answers_fail, replace(good, wrong=[*good.wrong, wrong]), "float32")
    refuses(rules.wrong_answers_fail, replace(good, wrong=good.wrong[:2]), "float32")
    tells = replace(good, properties=[Property("x", lambda answer: f"not {answer}: 0.2857")])
    same = replace(tells, wrong=[WrongAnswer([n], contains=f"[{n}]") for n in range(3)])
    rules.wrong_answers_fail(same, "float32", [1.0, 2.0])
    refuses(rules.wrong_answers_fail, same, "float32", 2 / 7)


def test_rules_want_all_kinds_of_a_chapter_and_three_questions_of_a_card():
    notebook, _, exercises = load("ch99")
    for course in (example.COURSE, {"card": 1}):
        notebook.metadata["course"] = course
        rules.ids_are_the_same(notebook, exercises)
    third = next(n for n, cell in enumerate(notebook.cells) if f"exercise-start}} {exercises[2].title}" in cell.source)
    notebook.cells = notebook.cells[:third]
    for course in (example.COURSE, {"card": 1}):
        notebook.metadata["course"] = course
        refuses(rules.ids_are_the_same, notebook, exercises[:2])
    same_kind = [replace(exercise, kind="by hand") for exercise in exercises]
    whole = load("ch99")[0]
    refuses(rules.ids_are_the_same, whole, same_kind)
    whole.metadata["course"] = {"card": 1}
    rules.ids_are_the_same(whole, same_kind)


def test_rules_refuse_a_notebook_out_of_step():
    def broken(change):
        notebook, path, exercises = load("ch99")
        change(notebook)
        rules.ids_are_the_same(notebook, exercises)
        rules.generated_cells_are_in_sync(notebook, path.name, exercises)
        for exercise in exercises:
            rules.statement_exists(notebook, exercise)
            rules.stub_is_not_attempted(notebook, exercise)
            rules.solution_passes(notebook, exercise, "float32")

    def edit(number, old, new):
        def change(notebook):
            assert old in notebook.cells[number].source
            notebook.cells[number].source = notebook.cells[number].source.replace(old, new)

        return change

    notebook = load("ch99")[0]
    place = {cell.metadata.get("course", {}).get("generated"): n for n, cell in enumerate(notebook.cells)}
    stub = place["stub:ch99.weights"]
    broken(lambda notebook: None)
    for change in (
        edit(place["head"], "build them", "build it"),
        edit(stub, "...", "0"),
        edit(stub + 2, "as 1 to 2", "as 1 to 3"),
        edit(stub - 1, "A statement about Weights by hand.", ""),
        edit(stub + 3, ":class: dropdown", ""),
        edit(stub + 4, '"4/7"', '"3/7"'),
        edit(stub + 4, ", solution=True", ""),
        edit(stub + 4, "ch99.weights", "ch99.weight"),
        edit(stub + 3, "} ch99-weights", "} ch99-weight"),
        lambda notebook: notebook.cells.pop(stub),
        lambda notebook: notebook.cells.pop(stub + 2),
        lambda notebook: notebook.cells.pop(stub + 5),
        lambda notebook: notebook.cells[stub + 4].metadata.pop("jupyter"),
    ):
        refuses(broken, change)
