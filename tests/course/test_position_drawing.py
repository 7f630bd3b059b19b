"""The pictures of chapter 8 show the numbers they are given, with rows as positions."""

import numpy as np
import pytest

from src.course.position_drawing import binary_counter, heatmap_beside_counter, wave_panels
from src.gpt import sinusoidal_positions

TABLE = sinusoidal_positions(12, 6)


def test_the_counter_counts():
    assert [int("".join(map(str, row[::-1])), 2) for row in binary_counter(11, 4).tolist()] == list(range(11))
    with pytest.raises(ValueError, match="3 bits count to 7, asked for 9"):
        binary_counter(9, 3)


def test_both_tables_are_drawn_with_positions_as_rows():
    left, right, *bars = heatmap_beside_counter(TABLE, 4).axes
    assert [bar.get_xlabel() for bar in bars] == ["value of a wave", "value of a bit"]
    assert (left.get_ylabel(), left.get_xlabel(), right.get_xlabel()) == ("place", "channel", "bit")
    assert np.array_equal(left.collections[0].get_array().reshape(12, 6), TABLE)
    assert np.array_equal(right.collections[0].get_array().reshape(12, 4), binary_counter(12, 4))
    assert left.collections[0].get_clim() == (-1, 1)
    with pytest.raises(ValueError, match=r"shape \(T, C\), got \(6,\)"):
        heatmap_beside_counter(TABLE[0], 4)


def test_each_panel_draws_its_channel():
    panels = wave_panels(TABLE, [0, 3, 5]).axes
    assert [axes.get_title() for axes in panels] == ["channel 0", "channel 3", "channel 5"]
    for axes, channel in zip(panels, [0, 3, 5], strict=True):
        assert np.array_equal(axes.lines[0].get_ydata(), TABLE[:, channel])
    for channels in ([6], [-1]):
        with pytest.raises(ValueError, match="are wanted"):
            wave_panels(TABLE, channels)
