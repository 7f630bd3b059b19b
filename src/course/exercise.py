"""What an exercise is made of. One file a chapter, `exercises/chNN.py`, holds a list `EXERCISES` of these.

Statement, given code and solution live in the notebook; everything else about an exercise lives here, once:

    Exercise(
        id="ch03.weights",
        title="Weights by hand",
        kind="by hand",
        stub='weights = [..., ..., ...]\\ncheck("ch03.weights", weights)',
        properties=[Property("they sum to 1", sum_to_one), Property("the weights", the_weights)],
        hints=[Hint("..."), Hint("..."), Hint("Divide by the sum:", code="[1 / 7, 2 / 7, 4 / 7]", answer=SEVENTHS)],
        wrong=[WrongAnswer([1, 2, 4], contains="sum to 1"), ...],
        explanation="exp(n ln 2) is 2 ** n.",
    )

Why not an existing grader. nbgrader and otter-grader release, collect and grade assignments: the verdict of a failed
test is an assertion with its traceback, the tests sit in cells that the reader sees, and both bring a server or a
submission format that a self-taught reader has no use for. jupyterquiz judges numbers and choices in the browser, but
cannot run a reader's function, and its questions would be a second source next to the notebook. sphinx-exercise is
used: it numbers exercises and folds solutions that are real, executed cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["by hand", "build", "find the bug"]


class Wrong(Exception):
    """Raised inside a property's test when the answer cannot be judged further; its text is shown to the reader."""


class NotAttempted(Exception):
    """Raised when the answer still has a hole in it: `...`, None, or a function that returns nothing."""


@dataclass(frozen=True)
class Property:
    """One thing that must hold, tested in the order of the list; the first that fails is shown, later ones are not run.

    `test(answer)` returns None if it holds. Otherwise it returns (or raises as `Wrong`) one plain sentence with the
    smallest input that shows the failure and the reader's own value, and never the right one. It makes its inputs
    anew in each call, because a reader's function may overwrite them.
    """

    name: str
    test: Callable[[Any], str | None]
    points: int = 1


@dataclass(frozen=True)
class Hint:
    """A hint. If it states a formula, `code` is that formula and `answer` a full answer that uses it.

    The tests run `answer` through the check, and want to find `code` in the source of `answer` (or, if `answer` is
    not a function, evaluate `code` itself): a hint can therefore not say what the check refuses.
    """

    text: str
    code: str = ""
    answer: Any = None

    @property
    def full_text(self) -> str:
        """The text and, behind it, the formula as code."""
        return f"{self.text} `{self.code}`" if self.code else self.text


@dataclass(frozen=True)
class WrongAnswer:
    """A mistake that readers make, and words that only the message about this mistake contains."""

    answer: Any
    contains: str


@dataclass(frozen=True)
class Exercise:
    """A checked exercise. `seconds` is the time limit for each property."""

    id: str
    title: str
    kind: Kind
    stub: str
    properties: Sequence[Property]
    hints: Sequence[Hint]
    wrong: Sequence[WrongAnswer]
    explanation: str = ""
    seconds: float = 2.0

    @property
    def points(self) -> int:
        """All points that the exercise gives."""
        return sum(each.points for each in self.properties)

    @property
    def label(self) -> str:
        """The label of the exercise in the page: `ch05.noun` is `ch05-noun` there, as Sphinx wants no points."""
        return self.id.replace(".", "-")
