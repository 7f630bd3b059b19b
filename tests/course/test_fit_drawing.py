"""Points and lines stand where their numbers say, with names."""

import numpy as np
import pytest

from src.course.fit_drawing import draw_fit


def test_points_and_lines_stand_where_they_should():
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [2.0], [6.0]])
    points, first, second = draw_fit(x, y, {"flat": (0.0, 3.0), "steep": (2.0, 1.0)}).axes[0].lines
    np.testing.assert_array_equal(points.get_xydata(), np.hstack([x, y]))
    assert points.get_linestyle() == "None"
    np.testing.assert_array_equal(first.get_xydata(), [[0, 3], [2, 3]])
    np.testing.assert_array_equal(second.get_xydata(), [[0, 1], [2, 5]])
    assert first.get_linestyle() != second.get_linestyle(), "told apart without colour"


def test_axes_and_lines_are_named():
    figure = draw_fit([0, 1], [0, 1], {"after 3 steps": (1.0, 0.0)})
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("input", "answer")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["points", "after 3 steps"]


def test_points_need_both_coordinates():
    with pytest.raises(ValueError, match="3 places but 2 heights"):
        draw_fit([0, 1, 2], [0, 1], {})
