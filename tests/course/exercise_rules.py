"""What must hold for every checked exercise and its notebook; `test_exercises` applies it, and breaks it on purpose."""

import ast
import builtins
import copy
import inspect
import re
import sys

import numpy as np

import src.course
from src.core import Tensor
from src.course.check import judge
from src.course.compare import show
from src.course.gates import code_of, find_spans, text_of
from src.course.generated import write_generated_cells

KINDS = {"by hand", "build", "find the bug"}


def answers_in(code, namespace):
    """Run code and return what it hands to `check`, as triples (id, answer, solution)."""
    handed = []
    genuine = src.course.check
    recorder = lambda name, answer, solution=False: handed.append((name, answer, solution))  # noqa: E731
    src.course.check = recorder  # the code may import it
    try:
        exec(code, {**namespace, "check": recorder})
    finally:
        src.course.check = genuine
    return handed


def imports_of(notebook):
    """All import statements of the notebook as one program: an exercise may rely on these and on its own given code."""
    trees = [ast.parse(_without_magic(cell.source)) for cell in notebook.cells if cell.cell_type == "code"]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(dict.fromkeys(ast.unparse(node) for node in imports if node.col_offset == 0))


def _without_magic(source):
    return "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!")))


def given_of(notebook, exercise):
    """What a reader has run before the stub: the imports, then the exercise's own given code."""
    span = span_of(notebook, "exercise", exercise)
    given = [code for code in code_of(notebook, span) if code != exercise.stub]
    namespace = {"__name__": "__main__"}
    exec("\n".join([imports_of(notebook), *given]), namespace)
    return namespace


def span_of(notebook, kind, exercise):
    found = [span for span in find_spans(notebook) if (span.kind, span.label) == (kind, exercise.label)]
    assert len(found) == 1, f"{exercise.id}: {len(found)} spans {kind} with the label {exercise.label}, one is wanted"
    return found[0]


def ids_are_the_same(notebook, exercises):
    """The notebook and the module know the same ids, each once, of this chapter, and all kinds occur.

    A card of the warm-up has three questions of any kind.

    An exercise without a check, such as an open experiment, stands in the notebook alone.
    """
    ids = [exercise.id for exercise in exercises]
    assert len(set(ids)) == len(ids), f"an id occurs twice: {ids}"
    labels = {exercise.label for exercise in exercises}
    spans = find_spans(notebook)
    posed = [span for span in spans if span.kind == "exercise"]
    checked = {span.label for span in posed if any(checked_ids(code) for code in code_of(notebook, span))}
    assert checked == labels, f"checked in the notebook: {sorted(checked)}, in the module: {sorted(labels)}"
    solved = [span.label for span in spans if span.kind == "solution"]
    stray = [label for label in solved if label not in {span.label for span in posed} or solved.count(label) > 1]
    assert not stray, f"solutions to no exercise, or two to one: {stray}"
    calls = {name for cell in notebook.cells if cell.cell_type == "code" for name in checked_ids(cell.source)}
    assert calls == set(ids), f"ids in the notebook {sorted(calls)}, in the module {sorted(ids)}"
    kinds = {exercise.kind for exercise in exercises}
    if "card" in notebook.metadata["course"]:
        assert kinds <= KINDS and len(exercises) == 3, f"a card has three questions: {kinds}, {len(exercises)}"
    else:
        assert kinds == KINDS


def checked_ids(source):
    calls = [node for node in ast.walk(ast.parse(_without_magic(source))) if isinstance(node, ast.Call)]
    return [call.args[0].value for call in calls if getattr(call.func, "id", "") in ("check", "hint")]


def generated_cells_are_in_sync(notebook, file_name, exercises):
    """Head, stubs and hints are there and as their source says."""
    fresh = copy.deepcopy(notebook)
    write_generated_cells(fresh, file_name)
    for number, (stored, wanted) in enumerate(zip(notebook.cells, fresh.cells, strict=True), start=1):
        assert stored.source == wanted.source, f"cell {number} is out of date: python -m src.course refresh"
    kinds = [cell.metadata.get("course", {}).get("generated") for cell in notebook.cells]
    wanted = ["head", *(f"{kind}:{each.id}" for each in exercises for kind in ("stub", "hints"))]
    assert sorted(filter(None, kinds)) == sorted(wanted)


def statement_exists(notebook, exercise):
    """The exercise says what to do, and the solution is folded, in the page and in JupyterLab."""
    statement = text_of(notebook, span_of(notebook, "exercise", exercise))
    assert len(statement) > 20, f"{exercise.id}: the statement is {statement!r}"
    span = span_of(notebook, "solution", exercise)
    assert ":class: dropdown" in notebook.cells[span.first].source, f"{exercise.id}: the solution is not folded"
    for cell in notebook.cells[span.first : span.last + 1]:
        if cell.cell_type == "code":
            folded = cell.metadata.get("jupyter", {})
            assert folded.get("source_hidden") and folded.get("outputs_hidden"), (
                f"{exercise.id}: unfolded in JupyterLab"
            )


def stub_is_not_attempted(notebook, exercise):
    (name, answer, solution) = answers_in(exercise.stub, given_of(notebook, exercise))[0]
    assert (name, solution) == (exercise.id, False)
    result = judge(exercise, answer)
    assert not result.attempted and not result.passed and len(result.lines) == 1, result


def solution_of(notebook, exercise):
    """What the notebook's solution hands to `check`."""
    code = "\n".join(code_of(notebook, span_of(notebook, "solution", exercise)))
    handed = answers_in(code, given_of(notebook, exercise))
    assert [(name, solution) for name, _, solution in handed] == [(exercise.id, True)], handed
    return handed[0][1]


def solution_passes(notebook, exercise, dtype):
    """The notebook's solution, run after the given code alone, holds in this precision; it does not record itself."""
    with Tensor.precision(dtype):
        result = judge(exercise, solution_of(notebook, exercise))
    assert result.passed and result.points == exercise.points, result
    assert len(result.lines) <= 2, result


def hints_pass(exercise, dtype):
    """Three hints, and what a hint states as code is what its answer uses, and passes."""
    assert len(exercise.hints) == 3 and len({hint.full_text for hint in exercise.hints}) == 3
    for hint in exercise.hints:
        assert not hint.code or hint.answer is not None, f"{exercise.id}: {hint.code!r} is not proven by an answer"
        if hint.answer is None:
            continue
        answers = [hint.answer]
        if callable(hint.answer):
            source = inspect.getsource(hint.answer)
            assert _squeeze(hint.code) in _squeeze(source), f"{exercise.id}: the answer does not use {hint.code!r}"
        elif hint.code:
            answers.append(eval(hint.code, vars(sys.modules[exercise.properties[0].test.__module__])))
        for answer in answers:
            with Tensor.precision(dtype):
                result = judge(exercise, answer)
            assert result.passed, f"{exercise.id}: the hint {hint.full_text!r} is refused: {result}"


def hints_fit_the_notebook(notebook, exercise):
    """What a hint states as code can be run there: as it stands, or in the reader's function with the names it has."""
    namespace = given_of(notebook, exercise)
    code = "\n".join(code_of(notebook, span_of(notebook, "exercise", exercise)))
    known = {*dir(builtins), *namespace, *_top_level_names(notebook), *_all_names(code)}
    for hint in exercise.hints:
        known |= set(re.findall(r"[A-Za-z_]\w*", hint.text)) | _bound_names(hint.code)
        if not hint.code:
            continue
        unknown = _all_names(hint.code) - known
        assert not unknown, f"{exercise.id}: a hint uses {sorted(unknown)}, which no reader has: {hint.code}"
        if not callable(hint.answer):
            result = judge(exercise, eval(hint.code, dict(namespace)))
            assert result.passed, f"{exercise.id}: in the notebook {hint.code} is refused: {result}"


def _top_level_names(notebook):
    """The names that the chapter's own cells make, those of solutions apart."""
    spans = [span for span in find_spans(notebook) if span.kind == "solution"]
    solved = {number for span in spans for number in range(span.first, span.last + 1)}
    names = set()
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and number not in solved:
            for node in ast.parse(_without_magic(cell.source)).body:
                inside = isinstance(node, ast.FunctionDef | ast.ClassDef)
                names |= {node.name} if inside else _bound_names(ast.unparse(node))
    return names


def _bound_names(code):
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and _stores(node)}


def _stores(node):
    return isinstance(node.ctx, ast.Store)


def _all_names(code):
    """All names in it, those of parameters and of what it defines among them."""
    nodes = list(ast.walk(ast.parse(code)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return names | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _squeeze(text):
    return "".join(text.split())


def wrong_answers_fail(exercise, dtype, solution=None):
    """At least three mistakes, each told apart by its own words, none of which gives the answer away."""
    assert len(exercise.wrong) >= 3, f"{exercise.id}: {len(exercise.wrong)} wrong answers"
    texts = []
    for wrong in exercise.wrong:
        with Tensor.precision(dtype):
            result = judge(exercise, wrong.answer)
        assert result.attempted and not result.passed, f"{exercise.id}: {wrong.contains!r} is not refused: {result}"
        assert len(result.lines) == 2, result
        texts.append(result.lines[1])
        assert wrong.contains in result.lines[1], f"{exercise.id}: {wrong.contains!r} is not in {result.lines[1]!r}"
    for wrong in exercise.wrong:
        about = [text for text in texts if wrong.contains in text]
        assert len(about) == 1, f"{exercise.id}: {wrong.contains!r} is in {len(about)} messages: {about}"
    shown = "" if solution is None or callable(solution) else show(solution)
    if len(shown) >= 4:
        assert not [text for text in texts if shown in text], f"{exercise.id}: a message gives {shown} away"


PRECISIONS = [np.float32, np.float64]
