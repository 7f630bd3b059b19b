"""`check` and `hint`: what a reader sees, whatever the answer is or does."""

import contextlib
import importlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from src.core import Layer, Tensor
from src.course import check, hint
from src.course import limit as limits
from src.course.attempt import find_problem
from src.course.check import judge
from src.course.compare import choose, compare, show, to_array
from src.course.exercise import Exercise, NotAttempted, Property, Wrong
from tests.course import example

check_module = importlib.import_module("src.course.check")
progress_module = importlib.import_module("src.course.progress")


@pytest.fixture(autouse=True)
def example_chapter(monkeypatch):
    monkeypatch.setitem(sys.modules, "src.course.exercises.ch99", example)
    monkeypatch.setattr(check_module, "_last_failure", {})
    monkeypatch.setattr(progress_module, "_hints_in_memory", {})


def one(test, name="the property", **settings):
    """An exercise with one property."""
    return Exercise("ch99.one", "One", "build", "", [Property(name, test)], [], [], **settings)


def doubles(function):
    return compare(function(3), 6, 1e-6, "double(3)")


# What is shown


def test_right_answer_shows_what_is_right_and_why():
    result = check("ch99.weights", ["1/7", Fraction(2, 7), 0.5714])
    assert repr(result).splitlines() == [
        "ch99.weights: right: the weights sum to 1; the three weights (3 of 3 points)",
        "exp(n ln 2) = 2 ** n, so scores 0, ln 2, 2 ln 2 give 1 : 2 : 4.",
    ]
    assert (result.attempted, result.passed, result.points, result.of) == (True, True, 3, 3)
    assert result.properties == (("the weights sum to 1", "holds"), ("the three weights", "holds"))


def test_wrong_answer_shows_first_what_is_right():
    result = check("ch99.weights", ["2/7", "1/7", "4/7"])
    assert repr(result).splitlines() == [
        "ch99.weights: right so far: the weights sum to 1 (1 of 3 points)",
        "Look at: the three weights: your list has the right numbers in another order",
    ]
    assert result.properties == (("the weights sum to 1", "holds"), ("the three weights", "fails"))


def test_a_problem_that_names_its_property_does_not_name_it_twice():
    assert judge(one(lambda answer: "the property is too small"), 3).lines[1] == "Look at: the property is too small"


def test_properties_after_the_first_failure_are_not_checked():
    result = check("ch99.weights", [1, 2, 4])
    assert repr(result).splitlines()[0] == "ch99.weights: not right yet (0 of 3 points)"
    assert result.properties == (("the weights sum to 1", "fails"), ("the three weights", "not checked"))


def test_hint_is_offered_after_two_equal_failures_only():
    first, other, again, solved = [1, 2, 4], [2, 4, 8], [1, 2, 4], example.SEVENTHS
    lengths = [len(check("ch99.weights", answer).lines) for answer in (first, other, again)]
    assert lengths == [2, 2, 2]
    third = check("ch99.weights", again)
    assert third.lines[2] == 'The same as before. A hint may help: hint("ch99.weights")'
    check("ch99.weights", solved)
    assert len(check("ch99.weights", again).lines) == 2


def test_hints_come_one_by_one_and_the_last_stays():
    shown = [hint("ch99.attend") for _ in range(4)]
    assert [each.number for each in shown] == [1, 2, 3, 3]
    assert repr(shown[0]) == "Hint 1 of 3: A score is a product of a query and a key."
    assert repr(shown[2]).endswith("The scores: `query @ key.transpose((1, 0)) * (1 / key.shape[-1] ** 0.5)`")
    assert hint("ch99.weights").number == 1


def test_unknown_id_is_an_error_that_lists_the_ids():
    with pytest.raises(ValueError, match=r"'ch99.weigths'; there are: ch99.weights, ch99.attend"):
        check("ch99.weigths", 1)
    with pytest.raises(ValueError, match="there are"):
        hint("weights")


def test_at_most_three_lines_of_bounded_length():
    exercise = one(lambda answer: "first\nsecond\n" + "x" * 1000)
    result = judge(exercise, 1)
    assert len(result.lines) == 2 and len(result.lines[1]) == 300 and "\n" not in result.lines[1]


# Not attempted


class EmptyLayer(Layer):
    def forward(self, x): ...


def raises_not_implemented(x):
    raise NotImplementedError


@pytest.mark.parametrize("hole", [None, ..., "", "...", [..., 1], [[1, 2], [None, 3]], {"W_Q": ...}, (1, "...")])
def test_holes_are_not_attempted(hole):
    result = check("ch99.weights", hole)
    assert not result.attempted and len(result.lines) == 1 and "not attempted yet" in result.lines[0]
    assert {state for _, state in result.properties} == {"not checked"}


@pytest.mark.parametrize("stub", [lambda x: None, lambda x: ..., lambda x: (1, ...), raises_not_implemented])
def test_stub_functions_are_not_attempted(stub):
    assert not judge(one(doubles), stub).attempted


def test_stub_layers_are_not_attempted():
    assert not judge(example.mend_centre, EmptyLayer).attempted
    assert not judge(one(lambda layer: str(layer()(1.0).shape)), EmptyLayer).attempted


def test_object_array_with_a_hole_is_not_attempted():
    assert not check("ch99.weights", np.array([1, ..., 2], dtype=object)).attempted


def test_forgotten_return_is_named():
    def double(x):
        x * 2

    assert "double returned None for the input 3: is a `return` missing?" in judge(one(doubles), double).lines[0]


def test_one_missing_case_is_an_attempt():
    exercise = Exercise(
        "ch99.two", "", "build", "", [Property("three", doubles), Property("zero", lambda f: f(0) and "")], [], []
    )
    result = judge(exercise, lambda x: 6 if x == 3 else None)
    assert result.attempted and result.points == 1
    assert result.lines[1] == "Look at: zero: <lambda> returned None for the input 0: is a `return` missing?"


# Whatever the reader's code does


def test_exceptions_become_one_line_with_the_readers_line_and_input():
    def double(x):
        rows = [x]
        return rows[1]

    line = judge(one(doubles), double).lines[1]
    first = double.__code__.co_firstlineno
    expected = (
        f"Look at: the property: IndexError in line {first + 2} of its cell for the input 3: list index out of range"
    )
    assert line == expected


def test_addresses_in_messages_are_hidden():
    def double(x):
        raise TypeError(f"what is {object()}")

    assert "0x…" in judge(one(doubles), double).lines[1]


def endless_recursion(x):
    return endless_recursion(x)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (endless_recursion, "RecursionError"),
        (lambda x: sys.exit("bye"), "SystemExit"),
        (lambda x: x / 0, "ZeroDivisionError"),
        (lambda: 6, "TypeError"),
        (lambda x: [][x], "IndexError"),
        (lambda x: (_ for _ in ()).throw(GeneratorExit), "GeneratorExit"),
    ],
)
def test_every_exception_is_survived(function, name):
    result = judge(one(doubles), function)
    assert result.attempted and not result.passed and name in result.lines[1]
    assert "Traceback" not in repr(result)


def test_the_interrupt_button_still_interrupts():
    def double(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(one(doubles), double)


def test_prints_and_warnings_stay_out_of_the_verdict(capsys):
    def double(x):
        print("noise")
        print("noise", file=sys.stderr)
        return np.log(np.zeros(1))[0] + 6

    judge(one(doubles), double)
    assert capsys.readouterr() == ("", "")


def test_nan_and_infinity_are_named():
    assert judge(one(doubles), lambda x: float("nan")).lines[1].endswith("double(3): yours is nan")
    assert compare([1, np.nan], [1, 2], name="it") == "it: yours is nan at [1]"
    assert compare([[np.inf, 1]], [[1, 1]], name="it") == "it: yours is inf at [0, 0]"


# Endless loops


def loops():
    while True:
        pass


def loops_and_catches_exceptions():
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.001)


def loops_and_catches_everything():
    while True:
        with contextlib.suppress(BaseException):
            sum(range(100))


def loops_and_catches_by_a_bare_except():
    while True:
        try:
            sum(range(100))
        except:  # noqa: E722
            count = 0
            count += 1


def allocates():
    numbers = [1]
    while True:
        numbers = [*numbers[-1000:], len(numbers)]


def loops_through_many_calls_and_catches_everything():
    """Nearly every instruction that looks for signals stands inside the `try`."""
    calls = "\n".join(["        sum(range(9))"] * 20)
    exec(f"while True:\n    try:\n{calls}\n    except:\n        pass")


def loops_in_nested_tries():
    while True:
        try:
            try:
                sum(range(100))
            except BaseException:
                sum(range(10))
        except BaseException:
            sum(range(10))


LOOPS = [
    loops,
    loops_and_catches_exceptions,
    allocates,
    loops_and_catches_everything,
    loops_and_catches_by_a_bare_except,
    loops_in_nested_tries,
    loops_through_many_calls_and_catches_everything,
]


@pytest.mark.parametrize("loop", LOOPS)
def test_endless_loops_end_in_the_main_thread(loop):
    limit_is_kept(loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_endless_loops_end_on_windows(loop, monkeypatch):
    monkeypatch.delattr(limits.signal, "pthread_kill", raising=False)
    limit_is_kept(loop)


@pytest.mark.parametrize("loop", LOOPS[:3])
def test_endless_loops_end_in_another_thread(loop):
    failures = []

    def run():
        try:
            limit_is_kept(loop)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures


def limit_is_kept(loop):
    started = time.monotonic()
    with pytest.raises(limits.TimeUp):
        limits.run_limited(loop, 0.2)
    assert time.monotonic() - started < 20  # generous: the machine may be busy
    for _ in range(200):  # nothing arrives late
        sum(range(1000))
    assert limits.run_limited(lambda: 7, 5) == 7


@pytest.mark.skipif(sys.platform == "win32", reason="a sleep is not interrupted on Windows")
def test_a_long_sleep_ends():
    started = time.monotonic()
    with pytest.raises(limits.TimeUp):
        limits.run_limited(lambda: time.sleep(20), 0.2)
    assert time.monotonic() - started < 10


def test_the_handler_of_the_interrupt_button_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(limits.TimeUp):
        limits.run_limited(loops, 0.1)
    assert signal.getsignal(signal.SIGINT) == before
    with pytest.raises(KeyboardInterrupt):  # and before the time is up, it does what it did
        limits.run_limited(lambda: signal.raise_signal(signal.SIGINT), 5)


def test_two_seconds_are_the_limit_of_a_check():
    result = judge(one(doubles), lambda x: next(i for i in itertools.cycle([0]) if i))
    assert result.lines[1] == (
        "Look at: the property: it still runs after 2 seconds for the input 3: does its loop end?"
    )


def test_an_interruption_that_arrives_while_cleaning_up_is_survived(monkeypatch):
    class LateThread(threading.Thread):
        def join(self):
            if not interrupted:
                interrupted.append(True)
                signal.raise_signal(signal.SIGINT)
            super().join()

    def swallows_one():
        try:
            loops()
        except limits.TimeUp:
            return 7

    interrupted = []
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(limits.threading, "Thread", LateThread)
    assert limits.run_limited(swallows_one, 0.1) == 7
    assert interrupted and signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize("in_main", [True, False])
def test_an_end_at_the_last_moment_is_clean(monkeypatch, in_main):
    """The function ends about when its time is up: it returns or is late, and nothing arrives afterwards."""
    monkeypatch.setattr(limits, "PAUSES", (1e-4,))
    outcomes = []

    def run():
        for _ in range(200):
            try:
                outcomes.append(limits.run_limited(lambda: sum(range(20_000)), 3e-4))
            except limits.TimeUp:
                outcomes.append(0)
        sum(range(100_000))

    if in_main:
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(outcomes) == 200 and set(outcomes) <= {0, sum(range(20_000))}


# Numbers


def test_numbers_are_accepted_in_every_usual_form():
    import torch

    third = [[1 / 3, 2 / 3]]
    for answer in (
        [["1/3", "2/3"]],
        ((Fraction(1, 3), 0.6667),),
        np.array(third, dtype=np.float32),
        Tensor(third),
        torch.tensor(third, requires_grad=True),
        [["33.33%", " 2 / 3 "]],
        [np.array([1 / 3, 2 / 3])],
        [Tensor([1 / 3, 2 / 3])],
        np.array([["1/3", "2/3"]]),
    ):
        assert compare(answer, third) is None, answer
    assert compare(["2/7"], 2 / 7) is None
    assert compare(True, 1) is None


@pytest.mark.parametrize("answer", ["a", "1/0", "0,5", object(), {"a": 1}, ["x"], 1j])
def test_what_is_no_number_is_said_to_be_none(answer):
    with pytest.raises(Wrong, match="must be made of numbers"):
        compare(answer, 1.0)


def test_ragged_lists_are_named():
    with pytest.raises(Wrong, match=r"equal length, yours have the shapes \(1,\), \(2,\)"):
        to_array([[1, 2], [3]])


MATRIX = np.array([[0.2, 0.8], [0.6, 0.4]])


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (0.29, 2 / 7, "rounded too early: keep at least 3 decimals"),
        (0.28, 2 / 7, "rounded too early"),
        (28.57, 2 / 7, "in percent"),
        (-0.2857, 2 / 7, "wrong sign"),
        (0.5714, 2 / 7, "twice"),
        (0.1429, 2 / 7, "half"),
        (3.5, 2 / 7, "upside down"),
        (0.7143, 2 / 7, "opposite case"),
        (np.log2(5), np.log(5), "in bits"),
        (np.log10(5), np.log(5), "base 10"),
        (MATRIX.T, MATRIX, "is transposed"),
        (np.ones((3, 2)), np.ones((2, 3)), "transposed"),
        ([1, 2, 3, 4], [[1, 2], [3, 4]], r"in the shape \(4,\), wanted is \(2, 2\)"),
        ([1, 2, 3], [1, 2], r"has the shape \(3,\), wanted is \(2,\)"),
        ([1, 2, 4], [1 / 7, 2 / 7, 4 / 7], "not yet divided by the sum"),
        ([[0.25, 0.9], [0.75, 0.1]], [[0.2, 0.8], [0.6, 0.4]], "it is the rows that must"),
        ([3, 2, 1], [1, 2, 3], "reverse order"),
        ([2, 3, 1], [1, 2, 3], "another order"),
        ([[1, 2], [3, 5]], [[1, 2], [3, 4]], r"is 5 at \[1, 1\] \(3 of 4"),
        (9, 4, "your value is 9$"),
        (0, 0.04, "your value is 0$"),
    ],
)
def test_common_slips_are_recognised(answer, expected, words):
    message = compare(answer, expected)
    assert message and re.search(words, message), message
    assert show(expected) not in message


def test_a_number_that_is_shown_is_said_to_be_the_readers():
    assert compare(9, 4, name="the weight") == "the weight: yours is 9"
    assert compare(9, 4, name="your weight") == "your weight is 9"


def test_known_wrong_values_come_first():
    weight = np.arange(6.0).reshape(2, 3)
    message = "this is PyTorch's layout: transpose"
    assert compare(weight.T, weight, known={message: weight.T}) == message
    assert compare(weight, weight, known={message: weight.T}) is None


def test_tolerance_is_relative_above_one():
    assert compare(1000.4, 1000) is None
    assert compare(1001, 1000) is not None
    assert compare(0.2863, 2 / 7) is not None
    assert compare([np.inf, 1], [np.inf, 1]) is None


def test_choice_of_words():
    assert choose("B", "b", {"a": "no"}) is None
    assert choose("a", "b", {"a": "no"}) == "no"
    assert choose("c", "b", {"a": "no"}) == "choose one of a, b; yours is 'c'"


def test_numbers_are_shown_plainly():
    assert show(np.float64(2 / 7)) == "0.2857" and show(-0.0) == "0" and show(np.bool_(True)) == "True"
    assert show(Tensor([[1.0, 2.0]])) == "[[1, 2]]" and show(np.zeros((5, 5))) == "an array of shape (5, 5)"
    assert show(len) == "len" and show(Layer()) == "Layer" and show("a") == "'a'" and show(None) == "None"


def test_find_problem_passes_not_attempted_on():
    with pytest.raises(NotAttempted):
        find_problem(doubles, lambda x: None, 1.0)


def test_text_is_the_same_in_every_process():
    program = (
        "import sys; from tests.course import example; sys.modules['src.course.exercises.ch99'] = example\n"
        "from src.course import check\n"
        "for answer in ([1, 2, 4], [...], object(), lambda x: x):\n    print(check('ch99.weights', answer))"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=progress_module.ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1] and "0x" not in texts[0] and len(texts[0].splitlines()) == 7


def test_infinity_is_near_nothing_but_itself():
    assert compare(0.0, float("-inf")) and compare(1e300, float("inf")) and compare(float("-inf"), float("inf"))
    assert compare(float("-inf"), float("-inf")) is None
    assert "upside down" not in compare(1.0, 0.0)
