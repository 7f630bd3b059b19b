"""Check a reader's answer: what is right, then the first thing that is not, shown at the smallest input (all chapters).

    check("ch05.noun", answer)      # a `Result`; as the last line of a cell it shows itself in at most three lines
    hint("ch05.noun")               # the next of three hints

The text is the same on every machine: no times, no addresses, no traceback, no count of attempts, never the answer.
"""

from dataclasses import dataclass, replace
from typing import Any

from src.course.attempt import find_problem, refuse_holes
from src.course.exercise import Exercise, NotAttempted
from src.course.exercises import find_exercise
from src.course.progress import hints_seen, record_hint, record_result

LONGEST_LINE = 300  # characters
_last_failure: dict[str, str] = {}  # by exercise, to notice that the same thing fails twice in a row


@dataclass(frozen=True, repr=False)
class Result:
    """The verdict as data: `properties` are pairs (name, "holds" | "fails" | "not checked")."""

    exercise: str
    attempted: bool
    passed: bool
    properties: tuple[tuple[str, str], ...]
    points: int
    of: int
    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True, repr=False)
class ShownHint:
    """A hint that shows itself as text."""

    number: int
    text: str

    def __repr__(self) -> str:
        return self.text


def check(exercise_id: str, answer: Any, solution: bool = False) -> Result:
    """Judge `answer` and return the verdict; in a working copy, record it.

    The book's own solution cells say `solution=True`: they are judged alike, and never recorded.

    Raises:
        ValueError: if no exercise has exactly this id.
    """
    exercise = find_exercise(exercise_id)
    result = judge(exercise, answer)
    failure = result.lines[-1] if result.attempted and not result.passed else ""
    if failure and _last_failure.get(exercise.id) == failure:
        line = f'The same as before. A hint may help: hint("{exercise.id}")'
        result = replace(result, lines=(*result.lines, line))
    _last_failure[exercise.id] = failure
    if result.attempted and not solution:
        record_result(exercise.id, result.points, result.of)
    return result


def hint(exercise_id: str) -> ShownHint:
    """Return the next hint of the exercise: the first, the second, from then on the third.

    Raises:
        ValueError: if no exercise has exactly this id.
    """
    exercise = find_exercise(exercise_id)
    number = min(hints_seen(exercise.id) + 1, len(exercise.hints))
    record_hint(exercise.id, number)
    return ShownHint(number, f"Hint {number} of {len(exercise.hints)}: {exercise.hints[number - 1].full_text}")


def judge(exercise: Exercise, answer: Any) -> Result:
    """Test the properties in their order up to the first that fails; remembers and records nothing."""
    held = 0
    problem = ""
    try:
        refuse_holes(answer)
        for each in exercise.properties:
            problem = find_problem(each.test, answer, exercise.seconds)
            if problem:
                break
            held += 1
    except NotAttempted as error:
        if held == 0:
            lines = (_one_line(f"{exercise.id}: not attempted yet. {error}"),)
            states = tuple((each.name, "not checked") for each in exercise.properties)
            return Result(exercise.id, False, False, states, 0, exercise.points, lines)
        problem = str(error)  # something holds already, so it was attempted: one case is missing
    return _verdict(exercise, held, problem)


def _verdict(exercise: Exercise, held: int, problem: str) -> Result:
    """The result when the first `held` properties hold and the next one, if any, has a problem."""
    names = [each.name for each in exercise.properties]
    states = ["holds"] * held + ["fails"] + ["not checked"] * len(names)
    points = sum(each.points for each in exercise.properties[:held])
    score = f"({points} of {exercise.points} points)"
    right = "; ".join(names[:held])
    if not problem:
        lines = [f"{exercise.id}: right: {right} {score}", exercise.explanation]
    else:
        first = f"right so far: {right} {score}" if held else f"not right yet {score}"
        about = "" if problem.startswith(names[held]) else f"{names[held]}: "  # a problem may name it itself
        lines = [f"{exercise.id}: {first}", f"Look at: {about}{problem}"]
    return Result(
        exercise.id,
        attempted=True,
        passed=not problem,
        properties=tuple(zip(names, states, strict=False)),
        points=points,
        of=exercise.points,
        lines=tuple(_one_line(line) for line in lines if line),
    )


def _one_line(text: str) -> str:
    """The text without line breaks, cut where it would fill the screen (a reader's own error may be long)."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
