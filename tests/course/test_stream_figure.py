"""The residual stream beside the gradient norms: boxes in or beside the stream, dots at the given norms."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from src.course.stream_figure import stream_figure

NORMS = {"bare": [100.0, 10.0, 1.0], "pre-norm": [0.3, 0.2, 0.1]}


def boxes(axes):
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_norms_are_drawn_at_their_depth():
    figure = stream_figure(NORMS, residual=["pre-norm"])
    for axes, (name, norms) in zip(figure.axes[1::2], NORMS.items(), strict=True):
        (line,) = axes.get_lines()
        assert axes.get_title() == name
        assert list(line.get_xdata()) == norms and list(line.get_ydata()) == [0, 1, 2]
        assert axes.get_xscale() == "log"


def test_all_models_share_one_scale():
    figure = stream_figure(NORMS)
    low, high = figure.axes[1].get_xlim()
    assert figure.axes[3].get_xlim() == (low, high) and low < 0.1 and high > 100


def test_blocks_stand_in_the_stream_or_beside_it():
    bare, _, residual, _ = stream_figure(NORMS, residual=["pre-norm"]).axes
    for axes in (bare, residual):
        (stream, *_) = axes.get_lines()
        assert list(stream.get_xdata()) == [0, 0] and list(stream.get_ydata()) == [0, 2]
        assert len(boxes(axes)) == 2
        assert [box.get_y() + box.get_height() / 2 for box in boxes(axes)] == [0.5, 1.5]
    assert all(box.get_x() < 0 < box.get_x() + box.get_width() for box in boxes(bare))
    assert all(box.get_x() > 0 for box in boxes(residual))
    assert len(bare.get_lines()) == 1 and len(residual.get_lines()) == 5, "a way off and a way back for each block"


@pytest.mark.parametrize("norms", [[1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf]])
def test_norms_that_a_logarithm_refuses(norms):
    with pytest.raises(ValueError, match="deep: a logarithmic axis"):
        stream_figure({"deep": norms})


def test_models_of_different_depth_and_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"depths \[1, 2\]"):
        stream_figure({"a": [1, 1], "b": [1, 1, 1]})
    with pytest.raises(ValueError, match=r"names \['a'\]"):
        stream_figure({"a": [1, 1]}, residual=["b"])
