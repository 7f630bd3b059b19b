"""Bars are as high as the weights, with names and numbers."""

import numpy as np
import pytest

from src.course.weight_bars import weight_bars

ROWS = np.array([[1 / 7, 2 / 7, 4 / 7], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])


def test_bars_are_as_high_as_the_weights_and_say_so():
    panels = weight_bars(ROWS, ["a", "$x$", " "], ["one", "two", "three"]).axes
    assert [panel.get_title() for panel in panels] == ["one", "two", "three"], "the fourth panel is gone"
    for panel, weights in zip(panels, ROWS, strict=True):
        assert [bar.get_height() for bar in panel.patches] == weights.tolist()
        assert [text.get_text() for text in panel.texts] == [f"{weight:.3f}" for weight in weights]
        assert [tick.get_text() for tick in panel.get_xticklabels()] == ["a", "$x$", "␣"]
        assert not any(tick.get_parse_math() for tick in panel.get_xticklabels()), "a dollar sign is no formula"
        assert panel.get_ylim() == (0, 1.15)


def test_axes_are_named():
    figure = weight_bars(ROWS[0], "abc", ["one"])
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("key", "weight")
    assert len(figure.axes) == 1


@pytest.mark.parametrize(
    ("rows", "labels", "titles", "message"),
    [
        (ROWS, "abc", ["one"], r"1 titles and 3 labels need as many rows and columns: \(3, 3\)"),
        (ROWS, "ab", ["one", "two", "three"], "3 titles and 2 labels"),
        (2 * ROWS, "abc", ["one", "two", "three"], "the sums are"),
        ([[1.5, -0.5]], "ab", ["one"], "at least 0"),
        ([[np.nan, 1.0]], "ab", ["one"], "at least 0"),
    ],
)
def test_what_does_not_fit_is_refused(rows, labels, titles, message):
    with pytest.raises(ValueError, match=message):
        weight_bars(rows, labels, titles)
