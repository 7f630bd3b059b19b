"""The bars of a distribution are its numbers, in the order of the distribution before."""

import numpy as np
import pytest

from src.course.distribution_bars import distribution_bars

BEFORE = [0.25, 0.25, 0.1, 0.4]


def test_bars_follow_the_order_before_and_outlines_are_before():
    figure = distribution_bars([[0.0, 0.3, 0.0, 0.7], BEFORE, [0, 0, 1, 0]], BEFORE, "a\nc ", ["top-k", "1", "0"])
    assert [axes.get_title() for axes in figure.axes] == ["top-k", "1", "0"]
    for axes, row in zip(figure.axes, ([0.7, 0.0, 0.3, 0.0], [0.4, 0.25, 0.25, 0.1], [0, 0, 0, 1]), strict=True):
        after, outline = axes.containers
        np.testing.assert_allclose([bar.get_height() for bar in after], row)
        np.testing.assert_allclose([bar.get_height() for bar in outline], [0.4, 0.25, 0.25, 0.1])
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["␣", "a", "⏎", "c"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["after", "before"]
    assert [round(axes.get_ylim()[1], 3) for axes in figure.axes] == [0.735, 0.735, 1.05]  # one scale a line


def test_each_panel_may_have_its_own_before():
    other = [0.1, 0.2, 0.3, 0.4]
    figure = distribution_bars([[0, 0.5, 0.5, 0], [0, 0, 0, 1]], [BEFORE, other], "abcd", ["x", "y"])
    for axes, names, heights in zip(figure.axes, ("dabc", "dcba"), ([0, 0, 0.5, 0.5], [1, 0, 0, 0]), strict=True):
        assert "".join(tick.get_text() for tick in axes.get_xticklabels()) == names
        np.testing.assert_allclose([bar.get_height() for bar in axes.containers[0]], heights)


def test_only_the_likeliest_are_drawn():
    axes = distribution_bars([BEFORE], BEFORE, "abcd", ["x"], most=2).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["d", "a"]


@pytest.mark.parametrize(
    ("rows", "before", "labels", "titles"),
    [
        ([BEFORE], BEFORE, "abc", ["x"]),
        ([BEFORE], BEFORE, "abcd", ["x", "y"]),
        ([BEFORE], BEFORE[:3], "abcd", ["x"]),
        ([[0.5, 0.5, 0.5, 0.5]], BEFORE, "abcd", ["x"]),
        ([[1.5, -0.5, 0, 0]], BEFORE, "abcd", ["x"]),
        ([BEFORE], [0.25, 0.25, 0.1, 0.1], "abcd", ["x"]),
    ],
)
def test_what_is_no_distribution_is_refused(rows, before, labels, titles):
    with pytest.raises(ValueError, match=r"labels need as many|sums to 1"):
        distribution_bars(rows, before, labels, titles)
