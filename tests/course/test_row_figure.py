"""The heatmap with one row pulled out: labels, bars, frame and colours are those of the table."""

import numpy as np
import pytest

from src.course.row_figure import heatmap_with_row

TABLE = np.array([[0.5, 0.25, 0.25], [0.9, 0.1, 0.0], [0.0, 0.2, 0.8]])


@pytest.fixture
def figure():
    return heatmap_with_row(TABLE, "a\n ", " ", row_name="after", column_name="next", value_name="share", brightest=0.6)


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_both_parts_have_the_same_labels_in_the_same_columns(figure):
    upper, lower, _ = figure.axes
    assert labels(upper.xaxis) == labels(upper.yaxis) == labels(lower.xaxis) == ["a", "⏎", "␣"]
    assert upper.get_xlim() == lower.get_xlim() == (0, 3)
    assert upper.get_ylim() == (3, 0), "the first row is the upper one"
    assert list(upper.get_xticks()) == list(upper.get_yticks()) == list(lower.get_xticks()) == [0.5, 1.5, 2.5]
    figure.draw_without_rendering()
    assert upper.get_position().x0 == pytest.approx(lower.get_position().x0)
    assert upper.get_position().x1 == pytest.approx(lower.get_position().x1)


def test_names_say_what_is_drawn(figure):
    upper, lower, bar = figure.axes
    assert (upper.get_ylabel(), upper.get_xlabel()) == ("after", "next")
    assert (lower.get_title(), lower.get_xlabel(), lower.get_ylabel()) == ("after ␣", "next", "share")
    assert bar.get_ylabel() == "share"


def test_bars_and_frame_are_those_of_the_row(figure):
    upper, lower, _ = figure.axes
    assert [bar.get_height() for bar in lower.patches] == [0.0, 0.2, 0.8]
    assert [bar.get_x() + bar.get_width() / 2 for bar in lower.patches] == pytest.approx([0.5, 1.5, 2.5])
    (frame,) = upper.patches
    assert (frame.get_xy(), frame.get_width(), frame.get_height()) == ((0, 2), 3, 1)


def test_cells_hold_the_table_and_the_scale_ends_where_it_is_told(figure):
    cells = figure.axes[0].collections[0]
    np.testing.assert_array_equal(cells.get_array(), TABLE)
    assert cells.get_clim() == (0.0, 0.6)
    assert cells.colorbar.extend == "max"


@pytest.mark.parametrize(
    ("values", "row", "message"),
    [
        (TABLE[:2], "a", r"3 labels need a table of as many rows and columns, got shape \(2, 3\)"),
        (-TABLE, "a", "the smallest here is -0.9"),
        (TABLE * np.nan, "a", "the smallest here is nan"),
        (TABLE, "b", "there is no row 'b': choose one of a ⏎ ␣"),
    ],
)
def test_what_does_not_fit_is_refused(values, row, message):
    with pytest.raises(ValueError, match=message):
        heatmap_with_row(values, "a\n ", row)
