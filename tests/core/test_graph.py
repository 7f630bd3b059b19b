"""Recording and replaying: what a tensor holds, attach, backward, no_grad, precision."""

import copy
import re
import threading

import numpy as np
import pytest

from src.core import Tensor
from src.core.fast import is_on, plain
from src.core.graph import Record


def square(x):
    """An operation as a reader writes it, with a closure."""
    out = Tensor(x.data * x.data)

    def gradient_fn():
        x.grad += out.grad * 2 * x.data

    return out.attach(gradient_fn, (x,))


@pytest.mark.parametrize(
    "data, dtype",
    [
        ([1.0, 2.0], np.float32),
        (np.float64(1.0), np.float32),
        (np.ones(2, np.float16), np.float32),
        ([1, 2], np.int64),
        (np.ones(2, np.int8), np.int64),
        (np.ones(2, np.uint8), np.int64),
        (range(3), np.int64),
        ([True, False], np.bool_),
        ([True, 2], np.int64),
        ([1, 2.0], np.float32),
        ([], np.float32),
    ],
)
def test_what_data_becomes(data, dtype):
    assert Tensor(data).dtype == dtype
    np.testing.assert_array_equal(Tensor(data).data, np.asarray(data))


def test_dtype_wins_over_the_current_precision():
    assert Tensor([1.0], dtype=np.float64).dtype == np.float64
    assert Tensor([1, 2], dtype=np.float32).dtype == np.float32
    assert Tensor([1, 0], dtype=bool).dtype == np.bool_
    assert Tensor([1, 0], dtype="int64").dtype == np.int64


def test_an_array_of_the_right_dtype_is_shared():
    array = np.ones(3, np.float32)
    assert np.shares_memory(Tensor(array).data, array)
    assert not np.shares_memory(Tensor(array, dtype=np.float64).data, array)


def test_a_copy_of_a_leaf_is_independent_and_a_graph_is_not_copied():
    x = Tensor([1.0, 2.0])
    x.grad = [3.0, 4.0]
    twin = copy.deepcopy(x)
    twin.data += 1
    twin.grad += twin.data
    np.testing.assert_array_equal([x.data, x.grad], [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal([twin.data, twin.grad], [[2.0, 3.0], [5.0, 7.0]])
    with pytest.raises(RuntimeError, match=re.escape("copy its numbers, Tensor(x.data.copy())")):
        copy.deepcopy(square(x))
    with Tensor.no_grad():
        assert copy.deepcopy(square(x)).computed


def test_shape_ndim_item_and_repr():
    x = Tensor([[1.0, 2.0, 3.0]])
    assert (x.shape, x.ndim) == ((1, 3), 2)
    assert repr(x) == "Tensor([[1., 2., 3.]], dtype=float32)"
    assert repr(Tensor(3)) == "Tensor(3, dtype=int64)"
    assert type(Tensor([[2.0]]).item()) is float and type(Tensor(2).item()) is int
    assert "0x" not in repr(square(x))


def test_data_is_assigned_in_place():
    array = np.ones(2, np.float32)
    x = Tensor(array)
    x.data = [3, 4]
    np.testing.assert_array_equal(array, [3.0, 4.0])
    x.data += 1
    np.testing.assert_array_equal(array, [4.0, 5.0])
    assert x.dtype == np.float32


def test_an_operation_written_by_a_reader():
    x = Tensor([1.0, -3.0])
    square(square(x)).sum().backward()
    np.testing.assert_array_equal(x.grad, [4.0, -108.0])


@pytest.mark.parametrize("kind", [list, tuple, set, iter])
def test_parents_in_any_collection(kind):
    x = Tensor(2.0)
    out = Tensor(x.data * 5)

    def gradient_fn():
        x.grad += out.grad * 5

    out.attach(gradient_fn, kind([x])).backward()
    assert x.grad == 5.0


def test_attach_returns_a_handle_on_the_same_numbers_and_gradient():
    x = Tensor([1.0])
    out = Tensor(x.data * 2)
    handle = out.attach(lambda: None, (x,))
    assert handle is not out and handle.data is out.data
    handle.backward()
    assert out.grad == 1.0
    assert handle.computed and handle.differentiable and not x.computed


def test_the_tensor_before_attach_cannot_be_used_by_mistake():
    x = Tensor([1.0])
    out = Tensor(x.data * 2)
    out.attach(lambda: None, (x,))
    with pytest.raises(RuntimeError, match=r"return out\.attach"):
        _ = out * 2
    with pytest.raises(RuntimeError, match=r"return out\.attach"):
        out.backward()


def test_backward_starts_from_the_given_gradient():
    x = Tensor([1.0, 2.0, 3.0])
    (x * 2).backward([1.0, 0.0, -1.0])
    np.testing.assert_array_equal(x.grad, [2.0, 0.0, -2.0])


def test_backward_of_a_leaf_and_of_one_element_starts_from_one():
    x = Tensor([[4.0]])
    x.backward()
    (x * 3).backward()
    assert x.grad == 4.0  # 1 + 3


def test_records_are_replayed_once_newest_first():
    order = []

    def note(number, *parents):
        out = Tensor(1.0)
        return out.attach(lambda: order.append(number), parents)

    leaf = Tensor(1.0)
    first = note(1, leaf)
    second = note(2, first)
    third = note(3, first, second)
    note(4, third, second, first).backward()
    assert order == [4, 3, 2, 1]


def test_records_are_freed_while_backward_runs():
    x = Tensor([1.0])
    y = square(x)
    record = y._record
    assert isinstance(record, Record) and record.gradient_fn is not None
    y.backward()
    assert record.gradient_fn is None and not record.parents and not record.read


def test_a_second_branch_of_a_freed_graph_is_refused():
    x = Tensor([1.0])
    y = square(x)
    first, second = y * 2, y * 3
    first.backward()
    with pytest.raises(RuntimeError, match="run the forward pass again"):
        second.backward()
    assert x.grad == 4.0


def test_a_refused_backward_leaves_all_gradients_alone():
    x, y = Tensor([1.0]), Tensor([2.0])
    z = square(x) + square(y)
    y.data += 1
    with pytest.raises(RuntimeError, match="changed after the forward pass"):
        z.backward()
    assert not x.has_grad and not y.has_grad and not z.has_grad


def test_without_recording_there_is_nothing_to_replay():
    x = Tensor([1.0])
    with Tensor.no_grad():
        y = square(x)
    assert not y.differentiable and y.computed
    with pytest.raises(RuntimeError, match=r"inside Tensor\.no_grad"):
        y.backward()
    with pytest.raises(RuntimeError, match=r"inside Tensor\.no_grad"):
        (y * 2).backward()
    (y * x).backward()  # a constant factor 1
    assert x.grad == 1.0 and not y.has_grad


def test_no_grad_as_a_decorator():
    @Tensor.no_grad()
    def forward(x):
        return x * 2

    assert not forward(Tensor([1.0])).differentiable
    assert (Tensor([1.0]) * 2).differentiable


def test_precision_as_a_statement_and_as_a_block():
    assert Tensor(1.0).dtype == np.float32
    with Tensor.precision(np.float64):
        assert Tensor(1.0).dtype == np.float64
        with Tensor.precision(np.float32):
            assert Tensor(1.0).dtype == np.float32
        assert Tensor(1.0).dtype == np.float64
    assert Tensor(1.0).dtype == np.float32
    Tensor.precision(np.float64)
    assert Tensor(1.0).dtype == np.float64  # the fixture puts float32 back


def test_precision_is_put_back_after_an_error():
    with pytest.raises(KeyError), Tensor.precision("float64"):
        raise KeyError
    assert Tensor(1.0).dtype == np.float32


def test_a_precision_can_be_used_again():
    precision = Tensor.precision(np.float64)
    for _ in range(2):
        with precision:
            with Tensor.precision(np.float32):
                with precision:
                    assert Tensor(1.0).dtype == np.float64
                assert Tensor(1.0).dtype == np.float32
            assert Tensor(1.0).dtype == np.float64
        assert Tensor(1.0).dtype == np.float32


def test_two_precisions_never_meet():
    with Tensor.precision(np.float64):
        double = Tensor([1.0])
    single = Tensor([1.0])
    for function in (lambda: single * double, lambda: double * single, lambda: double * 2, lambda: double.exp()):
        with pytest.raises(TypeError, match=re.escape("Tensor.precision(np.float64)")):
            function()
    with Tensor.no_grad(), pytest.raises(TypeError, match="float64"):
        _ = single + double
    with Tensor.precision(np.float64), pytest.raises(TypeError, match="float32"):
        _ = single + double


def test_parents_must_be_tensors():
    x = Tensor(2.0)
    for parents in ([x.data], [[x]], "x"):
        with pytest.raises(TypeError, match=re.escape("attach(gradient_fn, (x,)), got")):
            Tensor(1.0).attach(lambda: None, parents)


@pytest.mark.parametrize("data", [2.0, [2.0, 3.0], [[2.0], [3.0]]])
def test_one_parent_may_stand_alone(data):
    x = Tensor(data)
    out = Tensor(x.data * 3)

    def gradient_fn():
        x.grad += out.grad * 3

    out.attach(gradient_fn, x).sum().backward()
    np.testing.assert_array_equal(x.grad, np.full(x.shape, 3.0))


@pytest.mark.parametrize("compute", [lambda x: x * x, lambda x: Tensor([9.0]).attach(lambda: None, (x,))])
def test_attach_to_a_computed_tensor_is_refused(compute):
    """Its gradient would reach the parents twice: once by the operation that computed it, once by the new record."""
    x = Tensor([3.0])
    for out in (compute(x), compute(Tensor([3]) * 1.0)):
        with pytest.raises(RuntimeError, match=re.escape("write out = Tensor(...) of their .data")):
            out.attach(lambda: None, (x,))
    with Tensor.no_grad(), pytest.raises(RuntimeError, match="made of arrays"):
        compute(x).attach(lambda: None, (x,))


def test_a_graph_that_is_freed_while_it_is_replayed_is_refused():
    x = Tensor([3.0])
    middle = x * x
    inner = middle.sum()
    out = Tensor(middle.data)
    with pytest.raises(RuntimeError, match="run the forward pass again"):
        out.attach(lambda: inner.backward(), (middle,)).backward()


@pytest.mark.parametrize("function", [lambda x: x.exp(), lambda x: x.tanh(), lambda x: 1 / x, lambda x: x + 1])
def test_a_result_that_was_changed_is_noticed(function):
    """exp, tanh and division use their own output in the gradient."""
    y = function(Tensor([1.0, 2.0]))
    z = y.sum()
    y.data *= 2
    with pytest.raises(RuntimeError, match="changed after the forward pass"):
        z.backward()
    w = function(Tensor([1.0, 2.0]))
    w.data *= 2
    with pytest.raises(RuntimeError, match="changed after the forward pass"):
        w.sum().backward()


def test_a_constant_that_was_changed_is_noticed():
    x, constant = Tensor([1.0, 2.0]), Tensor([3, 4]) * 1.0
    y = (x * constant).sum()
    constant.data += 1
    with pytest.raises(RuntimeError, match="changed after the forward pass"):
        y.backward()


def test_no_grad_and_plain_are_each_threads_own():
    inside, left = threading.Event(), threading.Event()
    seen = []

    def other():
        seen.append((Tensor.recording(), is_on()))
        with Tensor.no_grad(), plain():
            inside.set()
            left.wait(10)
        seen.append((Tensor.recording(), is_on()))

    with Tensor.no_grad(), plain():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
    assert Tensor.recording() and is_on()  # while the other is still inside
    left.set()
    thread.join()
    assert Tensor.recording() and is_on() and seen == [(True, True)] * 2


def test_a_gradient_is_assigned_in_the_shape_of_its_tensor():
    x = Tensor([1.0, 2.0])
    x.grad = np.array([3.0, 4.0])
    for wrong in (np.ones((3, 2)), 1.0, np.ones(1)):
        with pytest.raises(ValueError, match=r"a gradient of shape .* cannot belong to a tensor of shape \(2,\)"):
            x.grad = wrong
    assert x.grad.tolist() == [3.0, 4.0]
    x.grad += np.ones((3, 2))
    assert x.grad.tolist() == [6.0, 7.0]


def test_floats_do_not_go_into_integers():
    ids = Tensor([1, 2])
    with pytest.raises(TypeError, match="this tensor holds int64, got data of float64"):
        ids.data = [1.7, 2.9]
    ids.data = [3, 4]
    assert ids.data.tolist() == [3, 4]


def test_no_grad_and_plain_may_stand_inside_themselves():
    with Tensor.no_grad(), plain():
        with Tensor.no_grad(), plain():
            pass
        assert not Tensor.recording() and not is_on()
