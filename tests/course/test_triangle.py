"""Corners, mixtures and points out of reach stand where their numbers say."""

import numpy as np
import pytest

from src.course.triangle import draw_mixtures

CORNERS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
POINTS = np.array([[2 / 3, 2 / 3], [0.75, 0.9]])


@pytest.fixture
def axes():
    return draw_mixtures(CORNERS, POINTS, "abc", ["even", "sharp"], outside=[[0.4, 0.3]]).axes[0]


def test_everything_stands_where_it_should(axes):
    for triangle in axes.patches:
        np.testing.assert_array_equal(triangle.get_xy()[:3], CORNERS)
    dots, crosses = axes.lines
    np.testing.assert_array_equal(dots.get_xydata(), POINTS)
    np.testing.assert_array_equal(crosses.get_xydata(), [[0.4, 0.3]])
    assert dots.get_marker() != crosses.get_marker(), "told apart without colour"


def test_names_stand_at_their_points(axes):
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c", "even", "sharp"]
    np.testing.assert_array_equal([text.xy for text in axes.texts], np.concatenate([CORNERS, POINTS]))
    shifts = np.array([text.get_position() for text in axes.texts[:3]])
    assert ((shifts * (CORNERS - CORNERS.mean(axis=0))).sum(axis=1) > 0).all(), "corners are named outside"


def test_a_name_at_a_corner_stands_clear_of_the_edges():
    figure = draw_mixtures(CORNERS, [[0.99, 0.99], [0.9, 0.9]], "abc", ["at c", "inside"])
    at_corner, inside = (text.get_position()[1] for text in figure.axes[0].texts[3:])
    assert at_corner > 0 == inside


def test_both_axes_have_one_scale_and_a_name(axes):
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("first number", "second number")
    assert axes.get_aspect() == 1


def test_nothing_outside_needs_no_cross():
    assert len(draw_mixtures(CORNERS, POINTS, "abc", ["even", "sharp"]).axes[0].lines) == 1


@pytest.mark.parametrize(
    ("corners", "points", "names", "message"),
    [
        (CORNERS[:2], POINTS, ["even", "sharp"], r"got \(2, 2\) and \(2, 2\)"),
        (CORNERS, POINTS[0], ["even"], r"got \(3, 2\) and \(2,\)"),
        (CORNERS, POINTS, ["even"], "3 corners and 2 points, but 3 and 1 names"),
    ],
)
def test_what_does_not_fit_is_refused(corners, points, names, message):
    with pytest.raises(ValueError, match=message):
        draw_mixtures(corners, points, "abc", names)
