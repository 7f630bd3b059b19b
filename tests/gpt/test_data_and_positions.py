"""Windows of text, and the tables of positions."""

import numpy as np
import pytest

from src.core import Tensor
from src.gpt import CharDataset, LearnedPositions, PositionalEncoding, sinusoidal_positions


def dataset(tmp_path, text, **options):
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    return CharDataset(path, **options)


TEXT = "0123456789abcdefghij"  # twenty characters, ids 0 to 19 in this order


def test_c15_windows_and_their_shift(tmp_path):
    d = dataset(tmp_path, TEXT, context_size=4, stride=1, split=0.5)
    assert len(d) == 6
    x, y = d[5]
    assert x.data.tolist() == [[5, 6, 7, 8]] and y.data.tolist() == [[6, 7, 8, 9]]
    for index in range(len(d)):
        x, y = d[index]
        assert (y.data[:, :-1] == x.data[:, 1:]).all()


def test_t52_the_last_window_is_kept(tmp_path):
    d = dataset(tmp_path, TEXT[:16], context_size=4, stride=1, split=0.5)  # 8 characters to train and 8 to test
    assert len(d) == 4
    d = dataset(tmp_path, TEXT[:10], context_size=4, stride=1, split=0.5)
    assert len(d) == 1
    with pytest.raises(ValueError, match=r"4 characters.*need 5"):
        dataset(tmp_path, TEXT[:8], context_size=4, stride=1, split=0.5)


def test_stride_and_batches(tmp_path):
    d = dataset(tmp_path, TEXT * 20, batch_size=4, context_size=8)
    assert d.stride == 4
    x, y = d[0]
    assert x.shape == y.shape == (4, 8) and x.dtype == np.int64
    assert (x.data[1] == x.data[0] + 4).all()


def test_train_and_test_do_not_overlap(tmp_path):
    d = dataset(tmp_path, "a" * 90 + "b" * 10, context_size=4)
    assert (d[0][0].data == 0).all() and (d.eval()[0][0].data == 1).all()


def test_encode_and_decode(tmp_path):
    d = dataset(tmp_path, "hello\nworld é🙂" * 10, context_size=4)
    assert d.decode(d.encode("hello\né🙂")) == "hello\né🙂" and d.encode("") == []
    with pytest.raises(ValueError, match="'z' is not among"):
        d.encode("z")
    with pytest.raises(ValueError, match="got 99"):
        d.decode([99])


@pytest.mark.parametrize(
    "options", [{"split": 0.0}, {"split": 1.0}, {"stride": 0}, {"context_size": 0}, {"batch_size": 0}]
)
def test_wrong_options(tmp_path, options):
    with pytest.raises(ValueError):
        dataset(tmp_path, TEXT * 5, **({"context_size": 4} | options))


def test_c32_sinusoidal_positions():
    table = sinusoidal_positions(50, 4)
    assert table[1] == pytest.approx([0.841471, 0.540302, 0.0100, 0.99995], abs=1e-5)
    assert table[2] == pytest.approx([0.909297, -0.416147, 0.0200, 0.9998], abs=1e-4)
    assert (table**2).sum(axis=1) == pytest.approx(np.full(50, 2.0))
    products = table @ table.T
    assert np.abs(products[1:, 1:] - products[:-1, :-1]).max() < 1e-12
    odd = sinusoidal_positions(2, 5)[1]
    assert odd == pytest.approx([0.841471, 0.540302, 0.025116, 0.999685, 0.000631], abs=1e-6)


@pytest.mark.parametrize("layer", [LearnedPositions(8, 6), PositionalEncoding(6, max_length=8)])
def test_positions_are_added_from_any_start(layer):
    x = Tensor(np.zeros((2, 8, 6)))
    whole = layer(x).data
    assert (layer(Tensor(np.zeros((2, 3, 6))), start=5).data == whole[:, 5:]).all()
    assert not np.allclose(whole[0, 0], whole[0, 1])
    with pytest.raises(ValueError, match="8 positions"):
        layer(Tensor(np.zeros((1, 9, 6))))


def test_the_sinusoidal_table_is_no_parameter():
    assert PositionalEncoding(6).parameters == [] and len(LearnedPositions(8, 6).parameters) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sinusoidal_table_has_the_current_float_type(dtype):
    with Tensor.precision(dtype):
        layer = PositionalEncoding(6, max_length=8)
        assert layer.table.dtype == dtype
        np.testing.assert_array_equal(layer.table, sinusoidal_positions(8, 6).astype(dtype))
        assert layer(Tensor(np.zeros((1, 8, 6)))).dtype == dtype


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "old.txt"
    path.write_bytes("caf\xe9 ".encode("latin-1") * 50)
    with pytest.raises(ValueError, match=r"old\.txt is not UTF-8, see its byte 3: save it as UTF-8 first"):
        CharDataset(path, context_size=4)
