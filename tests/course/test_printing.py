"""Printed numbers: fixed decimals, no signed zero, no trace of NumPy's types."""

import numpy as np
import pytest
import torch

from src.course.printing import format_number, plain_array, print_matrix, visible


class Holder:
    def __init__(self, data):
        self.data = data


@pytest.mark.parametrize(
    "value, expected",
    [
        (np.float64(2 / 7), "0.286"),
        (np.float32(0.1), "0.100"),
        (-0.0, "0.000"),
        (-0.0004, "0.000"),
        (-0.0006, "-0.001"),
        (np.int64(65), "65"),
        (-3, "-3"),
        (np.bool_(True), "True"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        (np.nan, "nan"),
        (1e6, "1000000.000"),
        (np.array([[1.5]]), "1.500"),
        (Holder(np.array(1.5, np.float32)), "1.500"),
        (torch.tensor(1.5, requires_grad=True), "1.500"),
    ],
)
def test_one_number(value, expected):
    assert format_number(value) == expected


@pytest.mark.parametrize("decimals, expected", [(0, "0"), (1, "-0.3"), (5, "-0.28571")])
def test_decimals(decimals, expected):
    assert format_number(-2 / 7 if decimals else -0.2, decimals) == expected


def test_a_matrix_is_aligned(capsys):
    print_matrix([[1, -0.5], [100, -0.0001]])
    assert capsys.readouterr().out == "  1.000   -0.500\n100.000    0.000\n"


def test_labels_name_rows_and_columns(capsys):
    print_matrix(Holder(np.array([[1, 0], [0, 1]])), rows=["\n", "to be"], columns="a ")
    assert capsys.readouterr().out == "       a  ␣\n⏎      1  0\nto be  0  1\n"


def test_only_rows_or_only_columns_are_named(capsys):
    print_matrix([[0.5, 1]], decimals=1, rows="q")
    print_matrix([0.5, 1], decimals=1, columns=["first", "last"])
    assert capsys.readouterr().out == "q  0.5  1.0\nfirst   last\n  0.5    1.0\n"


def test_masked_scores(capsys):
    print_matrix(np.array([[0.5, -np.inf]], np.float32), decimals=1)
    assert capsys.readouterr().out == " 0.5  -inf\n"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: print_matrix(np.zeros((2, 2, 2))), ValueError, r"got shape \(2, 2, 2\): choose one by indexing"),
        (lambda: print_matrix(1.0), ValueError, r"got shape \(\)"),
        (lambda: print_matrix(np.zeros((2, 3)), rows="abc"), ValueError, "2 rows but 3 row labels"),
        (lambda: print_matrix(np.zeros((2, 3)), columns="ab"), ValueError, "3 columns but 2 column labels"),
        (lambda: format_number([1, 2]), ValueError, r"one number wanted, got shape \(2,\)"),
        (lambda: format_number("1"), TypeError, "numbers wanted, got <U1 from str"),
        (lambda: plain_array([None]), TypeError, "numbers wanted, got object from list"),
        (lambda: plain_array([1j]), TypeError, "numbers wanted, got complex128"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_white_space_becomes_visible():
    assert visible("a b\nc\td") == "a b⏎c⇥d"
    assert visible("  the ") == "␣␣the␣"
    assert visible("   ") == "␣␣␣"
    assert visible(7) == "7"
