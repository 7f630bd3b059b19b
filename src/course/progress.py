"""What a reader has solved, kept in `work/progress.json`, and only there.

A check is recorded if the kernel runs in the folder `work`, as the kernel of a working copy does: Jupyter starts a
kernel in the folder of its notebook. The book's own chapters run in `chapters`, so they never record anything.
The file holds results, no times: {"ch05.noun": {"points": 3, "of": 3, "hints": 1}}.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "work"
FILE = "progress.json"
Records = dict[str, dict[str, int]]
_hints_in_memory: dict[str, int] = {}  # outside a working copy, hints advance for this kernel only


@dataclass(frozen=True, repr=False)
class Table:
    """The records, and the text that shows them."""

    records: Records
    text: str

    def __repr__(self) -> str:
        return self.text


def progress() -> Table:
    """Return a small table of the exercises of all chapters: what is solved, begun, and not yet begun."""
    from src.course.exercises import chapter_exercises, chapter_names

    if not in_working_copy():
        text = "Progress is kept in working copies. Open one in a terminal: python -m src.course open 5"
        return Table({}, text)
    records = _read()
    exercises = [each for chapter in chapter_names() for each in chapter_exercises(chapter)]
    widest = max(len(each.id) for each in exercises), max(len(each.title) for each in exercises)
    lines = []
    for exercise in exercises:
        record = records.get(exercise.id, {})
        points = f"{record['points']} of {record['of']}" if "points" in record else "-"
        hints = f"  hints: {record['hints']}" if record.get("hints") else ""
        lines.append(f"{exercise.id:<{widest[0]}}  {exercise.title:<{widest[1]}}  {points:>8}{hints}")
    return Table(records, "\n".join(lines))


def in_working_copy() -> bool:
    """True if this kernel runs in the folder of the working copies."""
    return Path.cwd().resolve() == WORK.resolve()


def record_result(exercise_id: str, points: int, of: int) -> None:
    """Remember the best result so far. Does nothing outside a working copy."""

    def change(records: Records) -> None:
        record = records.setdefault(exercise_id, {})
        record.update(points=max(points, record.get("points", 0)), of=of)

    if in_working_copy():
        _update(change)


def hints_seen(exercise_id: str) -> int:
    """How many hints were shown: by the working copies' records, elsewhere in this kernel."""
    if in_working_copy():
        return _read().get(exercise_id, {}).get("hints", 0)
    return _hints_in_memory.get(exercise_id, 0)


def record_hint(exercise_id: str, number: int) -> None:
    """Remember that hint `number` was shown."""
    if in_working_copy():
        _update(lambda records: records.setdefault(exercise_id, {}).update(hints=number))
    else:
        _hints_in_memory[exercise_id] = number


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that a reader, or a crash in between, sees the old file or the new one and nothing else.

    The engine's checkpoints have the same few lines for bytes; this module must load where NumPy is missing.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # opened in the ordinary way, for ordinary permissions
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _update(change: Callable[[Records], Any]) -> None:
    """Read, change and write under a lock: two notebooks may be open at once."""
    from filelock import FileLock

    with FileLock(WORK / f".{FILE}.lock"):
        records = _read()
        change(records)
        write_atomically(WORK / FILE, json.dumps(records, indent=1, sort_keys=True) + "\n")


def _read() -> Records:
    """The records; a file that is no JSON is put aside, so that a damaged file never stops a check."""
    path = WORK / FILE
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(record, dict) for record in records.values()):
            raise ValueError(f"{path}: an object of objects is wanted")
        return records
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):  # not JSON, or not an object
        os.replace(path, path.with_suffix(".damaged.json"))
        return {}
