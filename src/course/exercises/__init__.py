"""The exercises, one file a chapter or card: `ch05.py` and `warmup3.py` hold `EXERCISES`, lists of `Exercise`."""

import importlib
import pkgutil
import re
from collections.abc import Sequence

from src.course.exercise import Exercise


def chapter_names() -> list[str]:
    """The names of the exercise files in reading order: the warm-up first, as in `["warmup1", "ch05"]`."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(names, key=lambda name: (not name.startswith("warmup"), name))


def chapter_exercises(chapter: str) -> Sequence[Exercise]:
    """The exercises of `chapter`, a name such as "ch05"; empty if there is no such file."""
    name = f"{__name__}.{chapter}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # a package that the file needs is missing: that is another matter
            raise
        return []
    return module.EXERCISES


def find_exercise(exercise_id: str) -> Exercise:
    """The exercise with exactly this id.

    Raises:
        ValueError: if no exercise has it; the message lists the ids of the chapter.
    """
    chapter = str(exercise_id).partition(".")[0]
    exercises = chapter_exercises(chapter) if re.fullmatch(r"[a-z]+\d+", chapter) else []
    for exercise in exercises:
        if exercise.id == exercise_id:
            return exercise
    known = ", ".join(exercise.id for exercise in exercises) or f"none; chapters: {', '.join(chapter_names())}"
    raise ValueError(f"no exercise is called {exercise_id!r}; there are: {known}")
