"""Datasets: batches, the two parts, order."""

import numpy as np
import pytest

from src.core import Dataset, Tensor


class Numbers(Dataset):
    """x counts up, y is its negative: 10 training pairs, 3 test pairs."""

    def __init__(self, batch_size, **settings):
        super().__init__(batch_size, **settings)

    def load(self):
        x = np.arange(13)
        self.train_data, self.test_data = (x[:10], -x[:10]), (x[10:], -x[10:])


def features(dataset):
    return [x.data.tolist() for x, _ in dataset]


def test_batches_of_both_parts():
    d = Numbers(3)
    assert (len(d), features(d)) == (3, [[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    assert d.eval() is d and features(d) == [[10, 11, 12]]
    assert d.train() is d and len(d) == 3


def test_the_last_batch_is_kept_on_request():
    d = Numbers(4, drop_last=False)
    assert features(d) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert features(d.eval()) == [[10, 11, 12]]
    assert len(Numbers(5, drop_last=False)) == 2


def test_features_and_labels_stay_together_in_any_order():
    d = Numbers(2, shuffle=True, generator=np.random.default_rng(1))
    for _ in range(3):
        d.train()
        for x, y in d:
            np.testing.assert_array_equal(x.data, -y.data)


def test_each_training_call_draws_a_new_order_and_the_test_part_keeps_its_own():
    d = Numbers(2, drop_last=False, shuffle=True, generator=np.random.default_rng(1))
    assert features(d) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]  # before the first call
    first, second = features(d.train()), features(d.train())
    assert first != second
    assert sorted(np.ravel(first)) == sorted(np.ravel(second)) == list(range(10))
    assert features(d.eval()) == [[10, 11], [12]]
    same = Numbers(2, drop_last=False, shuffle=True, generator=np.random.default_rng(1))
    assert features(same.train()) == first


def test_the_default_generator_shuffles_when_none_is_passed():
    first = features(Numbers(2, shuffle=True).train())
    assert features(Numbers(2, shuffle=True).train()) != first


@pytest.mark.parametrize("data", [[[1.0, 2.0], [3.0, 4.0]], np.ones((2, 2)), Tensor([[1.0, 2.0], [3.0, 4.0]])])
def test_lists_arrays_and_tensors_are_data(data):
    class Given(Dataset):
        def load(self):
            self.train_data = self.test_data = (data, [0, 1])

    x, y = Given(2)[0]
    assert x.shape == (2, 2) and x.dtype == np.float32 and y.dtype == np.int64


@pytest.mark.parametrize("index", [-1, 3, 100])
def test_batches_are_numbered_from_zero(index):
    with pytest.raises(IndexError, match=f"there are 3 batches, numbered from 0, got {index}"):
        Numbers(3)[index]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_a_batch_can_be_changed_without_changing_the_data(shuffle, dtype):
    class Numbers(Dataset):
        def load(self):
            x = np.arange(8).astype(dtype)
            self.train_data = self.test_data = (x, x)

    data = Numbers(batch_size=4, shuffle=shuffle)
    x, y = data[0]
    before = x.data.copy()
    x.data += 100
    y.data += 100
    again = data[0]
    np.testing.assert_array_equal(again[0].data, before)
    np.testing.assert_array_equal(again[1].data, before)
