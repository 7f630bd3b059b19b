"""The picture of rotary positions draws the pairs it is given, a hand for each place."""

import numpy as np
import pytest

from src.core import Tensor
from src.course.turning_drawing import turning_panels
from src.gpt import rotated

TURNED = rotated(Tensor(np.tile([1.0, 0.0], (1, 7, 3)))).data[0]  # (7, 6)


def hands(axes):
    """The tips of the hands: lines of two points that begin in the middle."""
    lines = [line.get_xydata() for line in axes.lines if len(line.get_xydata()) == 2]
    assert all((line[0] == 0).all() for line in lines)
    return np.array([line[1] for line in lines])


def test_each_panel_has_the_hands_of_its_pair():
    panels = turning_panels(TURNED).axes
    assert [axes.get_title() for axes in panels] == ["channels 0, 1", "channels 2, 3", "channels 4, 5"]
    for pair, axes in enumerate(panels):
        np.testing.assert_allclose(hands(axes), TURNED[:, 2 * pair : 2 * pair + 2], atol=1e-12)


def test_tips_have_the_numbers_of_their_places_unless_they_are_close():
    fast, slow, slowest = turning_panels(TURNED).axes
    assert [text.get_text() for text in fast.texts] == list("0123456")
    x, y = fast.texts[2].get_position()
    assert np.arctan2(y, x) == pytest.approx(2.0)
    assert [text.get_text() for text in slowest.texts] == ["0"]
    assert [text.get_text() for text in slow.texts] == ["0"]  # 6 places turn it by 0.28


@pytest.mark.parametrize("shape", [(3, 5), (4,)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="with an even D are wanted"):
        turning_panels(np.ones(shape))
