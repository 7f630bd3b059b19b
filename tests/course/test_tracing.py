"""What is read from the engine's records: operations in order, gradients after each, what is kept."""

import numpy as np
import pytest

from src.core import Tensor
from src.course.tracing import count_kept, print_replay, replay_in_frames


def loss_of_one_point():
    """(3 * 2 - 4)^2, with every tensor named."""
    w, x, c = Tensor(3.0), Tensor(2.0), Tensor(-4.0)
    m = w * x
    e = m + c
    loss = e * e
    return loss, {"w": w, "x": x, "c": c, "m": m, "e": e, "loss": loss}


def test_operations_stand_in_the_order_of_their_creation():
    loss, names = loss_of_one_point()
    operations = replay_in_frames(loss, names).operations
    assert [str(operation) for operation in operations] == ["m = w × x", "e = m + c", "loss = e × e"]


def test_gradients_arrive_one_operation_at_a_time():
    loss, names = loss_of_one_point()
    frames = replay_in_frames(loss, names).gradients
    received = [{name: value for name, value in frame.items() if value is not None} for frame in frames]
    assert received == [
        {},
        {"loss": 1.0, "e": 4.0},
        {"loss": 1.0, "e": 4.0, "m": 4.0, "c": 4.0},
        {"loss": 1.0, "e": 4.0, "m": 4.0, "c": 4.0, "w": 8.0, "x": 12.0},
    ]


def test_the_last_frame_is_what_backward_gives_and_the_graph_is_used_up():
    loss, names = loss_of_one_point()
    last = replay_in_frames(loss, names).gradients[-1]
    again, others = loss_of_one_point()
    again.backward()
    assert last == {name: float(tensor.grad) for name, tensor in others.items()}
    with pytest.raises(RuntimeError, match="already used"):
        loss.backward()


def test_functions_of_one_input_have_their_own_name():
    def halve(x):
        out = Tensor(x.data / 2)

        def gradient_fn():
            x.grad += out.grad / 2

        return out.attach(gradient_fn, (x,))

    a = Tensor(1.0)
    b = a.exp()
    c = halve(b)
    operations = replay_in_frames(c, {"a": a, "b": b, "c": c}).operations
    assert [str(operation) for operation in operations] == ["b = exp(a)", "c = halve(b)"]


def test_the_table_has_a_row_for_each_tensor(capsys):
    loss, names = loss_of_one_point()
    print_replay(replay_in_frames(loss, names))
    assert capsys.readouterr().out.splitlines() == [
        "      value  0  1  2   3",
        "w         3  -  -  -   8",
        "x         2  -  -  -  12",
        "c        -4  -  -  4   4",
        "m         6  -  -  4   4",
        "e         2  -  4  4   4",
        "loss      4  -  1  1   1",
    ]


def test_what_cannot_be_shown_is_refused():
    loss, names = loss_of_one_point()
    with pytest.raises(ValueError, match=r"a tensor of the value 6\.0 has no name"):
        replay_in_frames(loss, {name: tensor for name, tensor in names.items() if name != "m"})
    with pytest.raises(ValueError, match="nothing was recorded"):
        replay_in_frames(Tensor(1.0), {})
    pair = Tensor([1.0, 2.0])
    total = pair.sum()
    with pytest.raises(ValueError, match="one element"):
        replay_in_frames(total, {"pair": pair, "total": total})


def test_results_are_counted_once_and_only_if_recorded():
    x = Tensor(np.ones((4, 5)))
    product = x @ Tensor(np.ones((5, 3)))  # 12 numbers
    total = (product * product).sum()  # 12 numbers and 1
    assert count_kept(total) == (3, 4 * (12 + 12 + 1))
    assert count_kept(x) == (0, 0)
    with Tensor.no_grad():
        assert count_kept((x * x).sum()) == (0, 0)
