"""The frames of a backward pass: labels, places, and which arrows are red."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch

from src.course.graph_drawing import GREY, RED, draw_replay, place_tensors
from src.course.tracing import replay_in_frames
from tests.course.test_tracing import loss_of_one_point

BLACK = "#000000"


@pytest.fixture(scope="module")
def replay():
    return replay_in_frames(*loss_of_one_point())


@pytest.fixture(scope="module")
def frames(replay):
    return draw_replay(replay).axes


def labels(axes, colour):
    return [text.get_text() for text in axes.texts if text.get_text() and to_hex(text.get_color()) == colour]


def arrows(axes, colour):
    return [
        (text.xyann, text.xy)
        for text in axes.texts
        if not text.get_text() and to_hex(text.arrow_patch.get_edgecolor()) == to_hex(colour)
    ]


def test_values_are_black_in_every_frame(frames):
    values = ["w = 3", "x = 2", "c = -4", "m = 6", "e = 2", "loss = 4"]
    assert [sorted(labels(axes, BLACK)) for axes in frames] == [sorted(values)] * 4


def test_gradients_are_red_and_appear_as_they_arrive(frames):
    assert [sorted(labels(axes, RED)) for axes in frames] == [
        [],
        ["grad 1", "grad 4"],
        ["grad 1", "grad 4", "grad 4", "grad 4"],
        ["grad 1", "grad 12", "grad 4", "grad 4", "grad 4", "grad 8"],
    ]


def test_a_gradient_stands_in_the_box_of_its_tensor(frames, replay):
    places = place_tensors(replay)
    for text in frames[3].texts:
        if text.get_text().startswith("grad"):
            inside = [name for name, (column, row) in places.items() if text.get_position() == (column, row + 0.21)]
            assert [f"grad {replay.gradients[3][name]:g}" for name in inside] == [text.get_text()]


def test_titles_say_what_was_replayed(frames):
    assert [axes.get_title(loc="left") for axes in frames] == [
        "0. recorded",
        "1. replayed: loss = e × e",
        "2. replayed: e = m + c",
        "3. replayed: m = w × x",
    ]


def test_red_arrows_point_back_and_grey_ones_forward(frames):
    assert [len(arrows(axes, RED)) for axes in frames] == [0, 2, 2, 2], "e is used twice"
    assert [len(arrows(axes, GREY)) for axes in frames] == [6, 4, 4, 4]
    for axes in frames:
        assert all(start[0] > end[0] for start, end in arrows(axes, RED))
        assert all(start[0] < end[0] for start, end in arrows(axes, GREY))


def test_boxes_do_not_overlap(frames, replay):
    places = list(place_tensors(replay).values())
    assert len(set(places)) == 6
    assert all(abs(a[0] - b[0]) >= 1 or abs(a[1] - b[1]) >= 1 for a in places for b in places if a is not b)
    assert [len([patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]) for axes in frames] == [6] * 4


def test_inputs_stand_left_of_what_is_computed_from_them(replay):
    places = place_tensors(replay)
    for operation in replay.operations:
        assert all(places[name][0] < places[operation.output][0] for name in operation.inputs)
