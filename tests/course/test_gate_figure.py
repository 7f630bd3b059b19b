"""The areas and the points of the gate figure are those of the normal distribution."""

import math

import numpy as np
import pytest

from src.course.gate_figure import draw_errors, draw_gate


def test_each_place_has_its_area_and_its_point():
    figure = draw_gate([-1.0, 2.0])
    above, below = figure.axes[:2], figure.axes[2:]
    for place, bell, output in zip([-1.0, 2.0], above, below, strict=True):
        area = 0.5 * (1 + math.erf(place / math.sqrt(2)))
        assert bell.get_title() == f"area left of {place:g}: {area:.2f}"
        shaded = bell.collections[0].get_paths()[0].vertices
        assert abs(shaded[:, 0].max() - place) < 0.03 and shaded[:, 0].min() == -3.5
        straight, curve, bar, point = output.lines
        np.testing.assert_allclose(point.get_xydata(), [[place, place * area]])
        np.testing.assert_allclose(bar.get_xydata(), [[place, place], [place, place * area]])
        x, y = curve.get_xydata().T
        np.testing.assert_allclose(y, [each * 0.5 * (1 + math.erf(each / math.sqrt(2))) for each in x], atol=1e-12)
        np.testing.assert_array_equal(straight.get_xdata(), straight.get_ydata())
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x", "x times area"]


@pytest.mark.parametrize("places", [[], [4.0], [float("nan")]])
def test_places_must_lie_in_the_picture(places):
    with pytest.raises(ValueError, match=r"between -3\.5 and 3\.5"):
        draw_gate(places)


def test_the_extremes_right_of_zero_are_marked():
    x = np.array([-2.0, -1, 0, 1, 2])
    figure = draw_errors(x, {"tanh": [9.0, 0, 0, -1, 4], "sigmoid": [0.0, 0, 3, 1, -5]})
    assert [axes.get_title() for axes in figure.axes] == ["tanh", "sigmoid"]
    marks = [axes.lines[1].get_xydata() for axes in figure.axes]
    np.testing.assert_array_equal(marks[0], [[2, 4], [1, -1]])
    np.testing.assert_array_equal(marks[1], [[0, 3], [2, -5]])
    np.testing.assert_array_equal(figure.axes[1].lines[0].get_xydata(), np.stack([x, [0, 0, 3, 1, -5]], axis=1))


def test_each_place_needs_an_error():
    with pytest.raises(ValueError, match=r"tanh has the shape \(2,\) and x has \(3,\)"):
        draw_errors([0, 1, 2], {"tanh": [0, 1]})
