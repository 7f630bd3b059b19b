"""A small chapter, number 99, with one exercise of each kind, to prove the machinery of exercises."""

import numpy as np
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from src.core import Layer, Softmax, Tensor
from src.course.compare import compare, show, to_array
from src.course.exercise import Exercise, Hint, Property, WrongAnswer


def sum_to_one(answer):
    total = to_array(answer).sum()
    return None if abs(total - 1) < 2e-3 else f"your weights sum to {show(total)}: divide each by the sum"


def the_weights(answer):
    return compare(answer, [1 / 7, 2 / 7, 4 / 7], name="your list")


SEVENTHS = [1 / 7, 2 / 7, 4 / 7]

weights_by_hand = Exercise(
    id="ch99.weights",
    title="Weights by hand",
    kind="by hand",
    stub='weights = [..., ..., ...]\n\ncheck("ch99.weights", weights)',
    properties=[Property("the weights sum to 1", sum_to_one), Property("the three weights", the_weights, points=2)],
    hints=[
        Hint("exp(n ln 2) is a power of two."),
        Hint("The weights are as 1 to 2 to 4."),
        Hint("Divide by the sum:", code="[1 / 7, 2 / 7, 4 / 7]", answer=SEVENTHS),
    ],
    wrong=[
        WrongAnswer([1, 2, 4], contains="sum to 7"),
        WrongAnswer(["4/7", "2/7", "1/7"], contains="reverse order"),
        WrongAnswer([0.1, 0.3, 0.6], contains="rounded too early"),
        WrongAnswer([0.2, 0.3, 0.5], contains="0 of 3 entries"),
    ],
    explanation="exp(n ln 2) = 2 ** n, so scores 0, ln 2, 2 ln 2 give 1 : 2 : 4.",
)


def rows_sum_to_one(attend):
    weights = attend(Tensor([[1.0, 0.0]]), Tensor([[1.0, 0.0], [0.0, 1.0]])).data
    if abs(weights.sum() - 1) < 1e-5:
        return None
    return f"one query, two keys: your weights are {show(weights)}, with the sum {show(weights.sum())}"


def scaled(attend):
    query = np.array([[1.0, 1.0, 1.0, 1.0]])
    key = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    raw = np.exp([4.0, 0.0]) / np.exp([4.0, 0.0]).sum()
    too_flat = np.exp([1.0, 0.0]) / np.exp([1.0, 0.0]).sum()
    right = np.exp([2.0, 0.0]) / np.exp([2.0, 0.0]).sum()
    known = {
        "with head size 4 your scores are not scaled": [raw],
        "with head size 4 you divide by the size: the root of it is wanted": [too_flat],
    }
    return compare(attend(Tensor(query), Tensor(key)), [right], 1e-5, "your row of weights", known)


def attend_by_formula(query, key):
    return Softmax()(query @ key.transpose((1, 0)) * (1 / key.shape[-1] ** 0.5))


def attend_unscaled(query, key):
    return Softmax()(query @ key.transpose((1, 0)))


def attend_by_size(query, key):
    return Softmax()(query @ key.transpose((1, 0)) * (1 / key.shape[-1]))


def attend_without_softmax(query, key):
    return query @ key.transpose((1, 0)) * (2 / key.shape[-1] ** 0.5)


build_weights = Exercise(
    id="ch99.attend",
    title="Weights of attention",
    kind="build",
    stub='def attend(query, key):\n    ...\n\n\ncheck("ch99.attend", attend)',
    properties=[Property("rows sum to 1", rows_sum_to_one), Property("scores are scaled", scaled)],
    hints=[
        Hint("A score is a product of a query and a key."),
        Hint("Softmax makes each row sum to 1."),
        Hint(
            "The scores:", code="query @ key.transpose((1, 0)) * (1 / key.shape[-1] ** 0.5)", answer=attend_by_formula
        ),
    ],
    wrong=[
        WrongAnswer(attend_unscaled, contains="not scaled"),
        WrongAnswer(attend_by_size, contains="the root of it"),
        WrongAnswer(attend_without_softmax, contains="with the sum 1.414"),
    ],
)


class Centre(Layer):
    def forward(self, x):
        return x - x.mean(axis=-1, keepdims=True)


class CentreColumns(Layer):
    def forward(self, x):
        return x - x.mean(axis=0, keepdims=True)


class CentreAll(Layer):
    def forward(self, x):
        return x - x.mean()


class CentreNothing(Layer):
    def forward(self, x):
        return x * 1.0


def centred(layer):
    x = np.array([[1.0, 3.0], [5.0, 9.0]])
    known = {
        "for x = [[1, 3], [5, 9]] your columns have mean 0: the axis is the wrong one": x - x.mean(0),
        "for x = [[1, 3], [5, 9]] you subtract one mean for all rows": x - x.mean(),
        "for x = [[1, 3], [5, 9]] your output is the input": x,
    }
    return compare(layer()(Tensor(x)), x - x.mean(1, keepdims=True), 1e-5, "the output", known)


mend_centre = Exercise(
    id="ch99.centre",
    title="The wrong axis",
    kind="find the bug",
    stub='Centre = ...\n\ncheck("ch99.centre", Centre)',
    properties=[Property("each row has mean 0", centred)],
    hints=[Hint("Print the means."), Hint("Which axis is a token?"), Hint("The last axis:", "axis=-1", Centre)],
    wrong=[
        WrongAnswer(CentreColumns, contains="wrong one"),
        WrongAnswer(CentreAll, contains="for all rows"),
        WrongAnswer(CentreNothing, contains="is the input"),
    ],
)

EXERCISES = [weights_by_hand, build_weights, mend_centre]

SOLUTIONS = {
    "ch99.weights": 'weights = ["1/7", "2/7", "4/7"]\n\ncheck("ch99.weights", weights, solution=True)',
    "ch99.attend": """def attend(query, key):
    zanzibar = query @ key.transpose((1, 0)) * (1 / key.shape[-1] ** 0.5)
    return Softmax()(zanzibar)


check("ch99.attend", attend, solution=True)""",
    "ch99.centre": """class Centre(Layer):
    def forward(self, x):
        return x - x.mean(axis=AXIS, keepdims=True)


check("ch99.centre", Centre, solution=True)""",
}
# What a reader of the class edition must not find anywhere.
SECRETS = ["zanzibar", "quetzalcoatl", "axis=AXIS"]
COURSE = {
    "chapter": 99,
    "outcomes": ["compute weights by hand", "build them", "mend a layer"],
    "read_minutes": 5,
    "do_minutes": 10,
    "needs": ["nothing at all"],
    "skip_when": "you know it",
}


def example_notebook():
    """The chapter as a notebook, its generated cells still to be written."""
    notebook = new_notebook(metadata={"course": COURSE})
    notebook.cells = [
        new_markdown_cell("# An example"),
        new_markdown_cell("", metadata={"course": {"generated": "head"}}),
        new_code_cell("from src.core import *\nfrom src.course import check"),
    ]
    for exercise in EXERCISES:
        label = exercise.label
        start = f"```{{exercise-start}} {exercise.title}\n:label: {label}\n```\n\nA statement about {exercise.title}."
        notebook.cells.append(new_markdown_cell(start))
        if exercise.kind == "find the bug":
            notebook.cells.append(new_code_cell("AXIS = -1"))
        notebook.cells += [
            new_code_cell("", metadata={"course": {"generated": f"stub:{exercise.id}"}}),
            new_markdown_cell("```{exercise-end}\n```"),
            new_markdown_cell("", metadata={"course": {"generated": f"hints:{exercise.id}"}}),
            new_markdown_cell(
                f"```{{solution-start}} {label}\n:label: {label}-solution\n:class: dropdown\n```\n\n"
                "The quetzalcoatl says why."
            ),
            new_code_cell(
                SOLUTIONS[exercise.id], metadata={"jupyter": {"source_hidden": True, "outputs_hidden": True}}
            ),
            new_markdown_cell("```{solution-end}\n```"),
        ]
    return notebook
