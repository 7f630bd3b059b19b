"""The picture of card 7 shows the loss, the tangent and the steps that it was given."""

from itertools import pairwise

import numpy as np
import pytest

from src.course.descent_drawing import draw_descent


def parabola(w):
    return (w - 3) ** 2


PATHS = {"small": [0.0, 0.6, 1.08], "large": [0.0, 6.6, -1.32]}


def test_what_is_drawn_is_what_was_given():
    axes = draw_descent(parabola, -6.0, PATHS, -2, 8).axes[0]
    drawn = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert np.allclose(drawn["loss"][:, 1], parabola(drawn["loss"][:, 0]))
    assert drawn["loss"][0, 0] == -2 and drawn["loss"][-1, 0] == 8
    (x0, y0), (x1, y1) = drawn["tangent"]
    assert np.isclose((y1 - y0) / (x1 - x0), -6) and np.isclose(y0 - 6 * (0 - x0), 9) and np.isclose(y1, 0)
    for name, path in PATHS.items():
        assert np.allclose(drawn[name], [(w, parabola(w)) for w in path])
    arrows = [(note.xyann, note.xy) for note in axes.texts]
    steps = [(a, b) for path in PATHS.values() for a, b in pairwise(path)]
    assert np.allclose(arrows, [[(a, parabola(a)), (b, parabola(b))] for a, b in steps])


def test_paths_start_at_one_place_that_is_not_flat():
    with pytest.raises(ValueError, match=r"start at \[0.0, 1.0\]"):
        draw_descent(parabola, -6.0, {"a": [0.0, 1.0], "b": [1.0, 2.0]}, -2, 8)
    with pytest.raises(ValueError, match="not flat"):
        draw_descent(parabola, 0.0, {"a": [3.0, 3.0]}, -2, 8)
