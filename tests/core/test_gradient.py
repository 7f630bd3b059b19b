"""The door into a gradient, and the tester of gradients, itself tested with wrong ones."""

import numpy as np
import pytest

from src.core import Softmax, Tensor, check_gradients
from src.core.gradient import Gradient, unbroadcast


@pytest.mark.parametrize(
    "wide, shape",
    [
        ((2, 3), (2, 3)),
        ((2, 3), (3,)),
        ((2, 3), (1, 3)),
        ((2, 3), (2, 1)),
        ((2, 3), (1, 1)),
        ((2, 3), (1,)),
        ((2, 3), ()),
        ((), ()),
        ((4, 2, 3), (2, 1)),
        ((4, 2, 3), (4, 1, 3)),
        ((4, 2, 3), (1, 2, 1)),
        ((4, 1, 3), (1, 3)),
        ((4, 1, 3), (1, 1)),
        ((2, 0), (0,)),
        ((2, 0), (1, 0)),
        ((2, 0), (2, 1)),
    ],
)
def test_unbroadcast_is_the_transpose_of_broadcasting(wide, shape, rng):
    """<broadcast(x), g> = <x, unbroadcast(g)> for all x and g says exactly that."""
    x, gradient = rng.standard_normal(shape), rng.standard_normal(wide)
    back = unbroadcast(gradient, shape)
    assert back.shape == shape
    np.testing.assert_allclose((np.broadcast_to(x, wide) * gradient).sum(), (x * back).sum(), rtol=1e-12)


def test_unbroadcast_returns_a_fitting_gradient_itself():
    gradient = np.ones((2, 3))
    assert unbroadcast(gradient, (2, 3)) is gradient


@pytest.mark.parametrize(
    "wide, shape", [((2, 3), (2,)), ((3,), (2, 3)), ((), (3,)), ((2, 3), (4, 3)), ((1, 3), (2, 3))]
)
def test_unbroadcast_refuses_what_cannot_fit(wide, shape):
    with pytest.raises(ValueError, match="cannot belong") as error:
        unbroadcast(np.ones(wide), shape)
    assert str(wide) in str(error.value) and str(shape) in str(error.value)


def test_the_gradient_is_zeros_before_any_and_reading_it_marks_nothing():
    x = Tensor([[1.0, 2.0]])
    np.testing.assert_array_equal(x.grad, [[0.0, 0.0]])
    assert x.grad.shape == (1, 2) and x.grad.dtype == np.float32 and not x.has_grad
    with pytest.raises(ValueError, match="read-only"):
        x.grad[0, 0] = 1.0
    x.grad += 0.0 * x.data
    assert x.has_grad


def test_plus_and_minus_go_through_the_door():
    x = Tensor([1.0, 2.0])
    x.grad += np.ones((3, 2))  # summed over the axis that x was broadcast along
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])
    x.grad -= np.array([1.0, 0.0])
    np.testing.assert_array_equal(x.grad, [2.0, 3.0])
    assert x.grad.dtype == np.float32
    with pytest.raises(ValueError, match="cannot belong"):
        x.grad += 1.0


def test_a_gradient_is_never_shared():
    x, y, source = Tensor([1.0]), Tensor([1.0]), np.array([1.0], np.float32)
    x.grad += source
    y.grad += x.grad
    source += 10
    x.grad += source
    assert (x.grad, y.grad) == (12.0, 1.0)
    y.grad = x.grad
    x.grad += source
    assert (x.grad, y.grad) == (23.0, 12.0)


def test_assigning_replaces_and_none_clears():
    x = Tensor([1.0, 2.0])
    x.grad = [1, 2]
    x.grad = np.array([3.0, 4.0])
    np.testing.assert_array_equal(x.grad, [3.0, 4.0])
    x.grad *= 0.5
    np.testing.assert_array_equal(x.grad, [1.5, 2.0])
    x.grad = None
    assert not x.has_grad


def test_a_kept_gradient_no_longer_belongs_to_the_tensor():
    """The sum of gradients of two batches, as one would write it by hand."""
    w = Tensor([1.0])
    (w * 1.0).sum().backward()
    total = w.grad
    w.grad = None
    (w * 10.0).sum().backward()
    total += w.grad
    assert (total, w.grad) == (11.0, 10.0)
    total -= w.grad
    assert (total, w.grad) == (1.0, 10.0)


def test_a_kept_gradient_can_be_given_back():
    w = Tensor([1.0])
    w.grad = [1.0]
    kept = w.grad
    w.grad = None
    w.grad = kept
    assert w.has_grad and w.grad == 1.0
    w.grad = [5.0]
    w.grad = kept
    assert w.grad == 1.0
    w.grad += w.data
    w.grad = w.grad
    assert w.grad == 2.0


@pytest.mark.parametrize("wrong", [[1.0, 2.0, 3.0], "a"])
def test_a_gradient_that_does_not_fit_leaves_the_old_one(wrong):
    x = Tensor([1.0, 2.0])
    x.grad = [3.0, 4.0]
    with pytest.raises((ValueError, TypeError)):
        x.grad = wrong
    np.testing.assert_array_equal(x.grad, [3.0, 4.0])


def test_what_is_computed_from_a_gradient_is_a_plain_array():
    x = Tensor([1.0, 2.0])
    x.grad = [1, 2]
    assert type(x.grad) is Gradient
    assert type(x.grad * 2) is np.ndarray and type(-x.grad) is np.ndarray
    assert type(x.grad.sum()) is np.float32
    part = x.grad[:1]
    part += 5  # a view of the numbers, as NumPy has it, that knows nothing of the door
    part -= 1
    np.testing.assert_array_equal(x.grad, [5.0, 2.0])
    assert repr(x.grad) == "array([5., 2.], dtype=float32)"


def test_integers_get_no_gradient():
    with pytest.raises(TypeError, match=r"Tensor\(\[1\., 2\., 3\.\]\)"):
        Tensor([1, 2]).grad += 1
    with pytest.raises(TypeError, match="integers are constants"):
        Tensor([True]).grad = [1.0]


def wrong(factor=1.0, shift=0.0):
    """x squared, with a gradient that is off by a factor and a shift."""

    def function(x):
        out = Tensor(x.data * x.data)

        def gradient_fn():
            x.grad += out.grad * 2 * x.data * factor + shift

        return out.attach(gradient_fn, (x,))

    return function


@pytest.mark.usefixtures("double")
class TestCheckGradients:
    def test_a_right_gradient_passes_and_the_error_is_small(self):
        x = Tensor([1.0, -2.0, 0.0])
        assert 0.0 <= check_gradients(wrong(), x) < 1e-8
        np.testing.assert_array_equal(x.data, [1.0, -2.0, 0.0])

    @pytest.mark.parametrize(
        "factor, shift", [(-1.0, 0.0), (0.5, 0.0), (0.0, 0.0), (1.00001, 0.0), (1.0, 1e-5), (np.nan, 0.0)]
    )
    def test_a_wrong_gradient_is_caught(self, factor, shift):
        with pytest.raises(ValueError, match=r"input 0 at .*the gradient is .*central differences give"):
            check_gradients(wrong(factor, shift), Tensor([1.0, -2.0, 3.0]))

    def test_one_wrong_element_is_caught_and_named(self):
        def function(x):
            out = Tensor(x.data * 3)

            def gradient_fn():
                grad = out.grad * 3
                grad[1, 2] = 0.0
                x.grad += grad

            return out.attach(gradient_fn, (x,))

        with pytest.raises(ValueError, match=r"input 0 at \(1, 2\): the gradient is 0,"):
            check_gradients(function, Tensor(np.ones((2, 3))))

    def test_a_wrong_second_input_is_named(self):
        with pytest.raises(ValueError, match="input 1"):
            check_gradients(lambda a, b: a + wrong(2.0)(b), Tensor([1.0]), Tensor([1.0]))

    def test_gradients_that_only_cancel_in_the_sum_are_caught(self):
        def swapped(x):
            out = Tensor(x.data.copy())

            def gradient_fn():
                x.grad += out.grad[::-1]

            return out.attach(gradient_fn, (x,))

        with pytest.raises(ValueError, match="input 0"):
            check_gradients(swapped, Tensor([1.0, 2.0]))

    def test_an_operation_that_forgot_to_attach_is_caught(self):
        with pytest.raises(ValueError, match="the gradient is 0,"):
            check_gradients(lambda x: Tensor(x.data * 2), Tensor([1.0]))

    def test_the_tolerance_and_the_step_are_used(self):
        loose = check_gradients(wrong(1.001), Tensor([1.0]), tolerance=0.1)
        assert 1e-4 < loose < 1e-2
        assert check_gradients(lambda x: x**4, Tensor([1.0]), step=0.1, tolerance=1.0) > 1e-3

    @pytest.mark.parametrize("x", [1e-6, 0.1, 100.0])
    def test_the_error_is_relative_to_the_largest_gradient_of_the_input(self, x):
        """A gradient that is half too large is wrong by a third, whatever its size."""
        error = check_gradients(wrong(1.5), Tensor(x), tolerance=1.0)
        assert error == pytest.approx(1 / 3, rel=1e-3)
        with pytest.raises(ValueError, match="central differences"):
            check_gradients(wrong(1.5), Tensor(x), tolerance=0.33)

    @pytest.mark.parametrize("size", [1e-12, 1e-7, 1e-3, 1e6])
    def test_a_wrong_gradient_is_caught_however_small(self, size):
        def function(x):
            out = Tensor(x.data * size)

            def gradient_fn():
                x.grad += 0.0 * out.grad

            return out.attach(gradient_fn, (x,))

        with pytest.raises(ValueError, match="the gradient is 0, central differences give"):
            check_gradients(function, Tensor([1.0, 2.0]))
        assert check_gradients(lambda x: x * size, Tensor([1.0, 2.0])) < 1e-8

    def test_what_rounding_makes_of_a_zero_gradient_is_no_error(self):
        assert check_gradients(lambda a, b: a * 1000.0 + (b - b), Tensor([1.1, 2.3]), Tensor([0.7, 0.9])) < 1e-8

    @pytest.mark.parametrize("fails_at", [2, 3])
    def test_inputs_are_put_back_when_the_function_fails(self, fails_at):
        calls = []

        def function(x):
            calls.append(1)
            if len(calls) == fails_at:
                raise KeyError
            return x * x

        x = Tensor([1.0, 2.0])
        with pytest.raises(KeyError):
            check_gradients(function, x)
        np.testing.assert_array_equal(x.data, [1.0, 2.0])
        assert x.recording()

    def test_old_gradients_do_not_count(self):
        x = Tensor([1.0])
        x.grad += np.array([100.0])
        check_gradients(wrong(), x)

    def test_large_gradients_are_compared_relatively(self):
        assert check_gradients(lambda x: (x * 1000.0).exp(), Tensor([0.01])) < 1e-6

    def test_nothing_to_check_is_refused(self):
        with pytest.raises(ValueError, match="at least one input"):
            check_gradients(lambda: Tensor([1.0]))


def test_check_gradients_needs_float64():
    with pytest.raises(TypeError, match=r"input 1 is float32.*precision"):
        check_gradients(lambda a, b: b, Tensor([1.0], dtype=np.float64), Tensor([1.0]))


def test_an_output_whose_rounding_could_hide_an_error_is_refused():
    def wrong(x):
        out = Tensor(x.data + 1e9)

        def gradient_fn():
            x.grad += out.grad * 1.01

        return out.attach(gradient_fn, (x,))

    with Tensor.precision(np.float64), pytest.raises(ValueError, match="could hide a wrong gradient"):
        check_gradients(wrong, Tensor([1.0, 2.0]))


def test_a_gradient_that_is_zero_by_mathematics_is_checked():
    with Tensor.precision(np.float64):
        x, b = Tensor(np.arange(6.0).reshape(2, 3)), Tensor(np.ones((2, 1)))
        assert check_gradients(lambda x, b: Softmax()(x + b), x, b) < 1e-6
