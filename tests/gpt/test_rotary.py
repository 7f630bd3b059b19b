"""Rotary positions: what they do to one vector, to a score, and to a whole model."""

from contextlib import nullcontext

import numpy as np
import pytest

from src.core import Tensor, check_gradients
from src.core.fast import plain
from src.gpt import GPTAttention, RotaryAttention, rotary, rotated
from tests.gpt.test_one_token import build

Q, K = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, 0.0])


def at(place, vector):
    with Tensor.precision(np.float64):
        return rotated(Tensor(vector[None, None]), start=place).data[0, 0]


def test_c33_values():
    assert (at(0, Q) == Q).all()
    np.testing.assert_allclose(at(1, Q), [0.540302, 0.841471, 0.99995, 0.01], atol=1e-6)
    assert at(5, Q) @ at(3, K) == pytest.approx(1.909097, abs=1e-6)


@pytest.mark.parametrize("shift", [7, 100, 1000])
def test_c33_a_score_depends_on_the_distance_alone(shift):
    q, k = np.random.default_rng(0).standard_normal((2, 8))
    score = at(5, q) @ at(3, k)
    assert at(5 + shift, q) @ at(3 + shift, k) == pytest.approx(score, rel=1e-12)
    assert at(6 + shift, q) @ at(3 + shift, k) != pytest.approx(score, rel=1e-3)


def test_c33_the_other_layout_is_this_one_with_its_channels_reordered():
    """Many programs turn channels i and i + D/2 together instead of 2i and 2i + 1."""
    x = np.random.default_rng(0).standard_normal(8)
    from_halves = np.arange(8).reshape(2, 4).T.ravel()  # 0 4 1 5 2 6 3 7
    angles = 3 * 10000.0 ** (-np.arange(4) / 4)
    low, high = x[:4], x[4:]
    halves = np.concatenate(
        [low * np.cos(angles) - high * np.sin(angles), low * np.sin(angles) + high * np.cos(angles)]
    )
    np.testing.assert_allclose(at(3, x[from_halves]), halves[from_halves], atol=1e-12)


def test_heads_are_turned_alike_and_tokens_by_their_place():
    x = np.random.default_rng(0).standard_normal((2, 5, 12))
    with Tensor.precision(np.float64):
        y = rotated(Tensor(x), heads=3, start=300).data  # beyond the first table
    for t in range(5):
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            np.testing.assert_allclose(y[1, t, part], at(300 + t, x[1, t, part]), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-12)


def test_an_array_with_gaps_is_turned_too():
    x = np.random.default_rng(0).standard_normal((2, 3, 8))
    with Tensor.precision(np.float64):
        expected = rotated(Tensor(x), start=2).data
        assert (rotated(Tensor(np.repeat(x, 2, axis=-1)[..., ::2]), start=2).data == expected).all()


def test_gradients():
    with Tensor.precision(np.float64):
        x = Tensor(np.random.default_rng(0).standard_normal((2, 3, 8)))
        assert check_gradients(lambda x: rotated(x, 2, 5), x) < 1e-7
        y = rotated(x, 2, 5)
        x.grad = None
        y.backward(y.data)
        np.testing.assert_allclose(x.grad, x.data, atol=1e-12)  # turned back, it is what it was


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_float_type_is_kept(dtype):
    with Tensor.precision(dtype):
        x = Tensor(np.ones((1, 2, 4)))
        y = rotated(x)
        y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype


def test_another_float_type_than_the_current_one_is_refused_as_everywhere():
    with Tensor.precision(np.float64):
        x = Tensor(np.ones((1, 2, 4)))
    with pytest.raises(TypeError, match="float64 tensor of shape"):
        rotated(x)


@pytest.mark.parametrize("sizes", [(6, 2), (3, 1), (12, 4)])
def test_c33_an_odd_number_of_channels_in_a_head_is_refused(sizes):
    with pytest.raises(ValueError, match="do not go into pairs"):
        RotaryAttention(*sizes)
    with pytest.raises(ValueError, match="do not go into pairs"):
        rotated(Tensor(np.ones((1, 2, sizes[0]))), sizes[1])


@pytest.mark.parametrize(
    ("shape", "settings", "error", "message"),
    [
        ((1, 2, 8), {"heads": 3}, ValueError, "8 channels of 3 heads do not go into pairs"),
        ((1, 2, 8), {"heads": 0}, ValueError, "heads must be at least 1, got 0"),
        ((1, 2, 8), {"start": -1}, ValueError, "places are counted from 0, got start=-1"),
        ((1, 2, 8), {"start": 1.5}, TypeError, "float"),
        ((2, 8), {}, ValueError, r"rotated takes \(B, T, C\), got shape \(2, 8\)"),
        ((1, 2, 2, 4), {}, ValueError, r"rotated takes \(B, T, C\)"),
        ((1, 2, 0), {}, ValueError, "0 channels of 1 heads"),
    ],
)
def test_what_cannot_be_turned_is_refused(shape, settings, error, message):
    with pytest.raises(error, match=message):
        rotated(Tensor(np.ones(shape)), **settings)


def test_integers_are_refused():
    with pytest.raises(TypeError, match=r"rotated turns floats, got int64 of shape \(1, 1, 2\)"):
        rotated(Tensor([[[3, 7]]]))


@pytest.mark.parametrize("start", [0, 255, rotary.LONGEST - 2, rotary.LONGEST - 1, rotary.LONGEST, 10**6])
def test_the_table_that_is_kept_and_what_lies_beyond_agree(start):
    x = np.random.default_rng(0).standard_normal((1, 2, 4))
    with Tensor.precision(np.float64):
        together = rotated(Tensor(x), start=np.int64(start)).data[0]
    angles = (start + np.arange(2))[:, None] * [1.0, 0.01]
    turned = (x[0, :, 0::2] + 1j * x[0, :, 1::2]) * np.exp(1j * angles)
    np.testing.assert_allclose(together[:, 0::2], turned.real, atol=1e-9)
    np.testing.assert_allclose(together[:, 1::2], turned.imag, atol=1e-9)


def test_the_table_cannot_be_written_and_the_result_is_no_view():
    assert not rotary.turns_of(0, 3, 4, np.dtype(np.float32)).flags.writeable
    x = Tensor(np.ones((1, 1, 4)))
    y = rotated(x)
    y.data += 1.0
    assert (x.data == 1.0).all()


def test_no_sequences_give_no_sequences():
    assert RotaryAttention(8, 2)(Tensor(np.ones((0, 3, 8)))).shape == (0, 3, 8)


def test_bias_and_generator_reach_the_layers():
    own, usual = (kind(8, 2, generator=np.random.default_rng(5)) for kind in (RotaryAttention, GPTAttention))
    assert (own.output.weight.data == usual.output.weight.data).all()
    assert RotaryAttention(8, 2, bias=False).query.bias is None


def test_weights_that_are_shown_are_turned_too():
    model = build(attention=RotaryAttention, positions=None)
    tokens = Tensor(np.arange(10)[None] % 7)
    attention, (shown, _) = model.blocks[0].attention, model.attention_weights(tokens)
    with Tensor.no_grad():
        x = model.blocks[0].attention_norm(model.embedding(tokens))
        q, k = (rotated(layer(x), 2).data.reshape(10, 2, 8) for layer in (attention.query, attention.key))
    scores = np.where(np.tri(10) == 1, np.einsum("qhd,khd->hqk", q, k) / np.sqrt(8), -np.inf)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(shown[0], exps / exps.sum(axis=-1, keepdims=True), atol=1e-5)


def test_keys_of_fewer_heads_are_turned_by_the_same_angles():
    """As with one key and one value for all heads: each head of the key is as large as one of the query."""
    attention = RotaryAttention(16, 4)
    q, k = np.random.default_rng(0).standard_normal((2, 1, 1, 16))
    scores = []
    for shift in (0, 7):
        query = attention.place(Tensor(q), Tensor(k[..., :4]), 5 + shift)[0].data.reshape(4, 4)
        key = attention.place(Tensor(q), Tensor(k[..., :4]), 3 + shift)[1].data.reshape(4)
        scores.append(query @ key)
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_later_tokens_do_not_change_earlier_ones_and_a_shifted_text_gives_the_same():
    model = build(attention=RotaryAttention, positions=None)
    tokens = np.arange(10)[None] % 7
    with Tensor.no_grad():
        long, short = (model(Tensor(tokens[:, :length])).data for length in (10, 6))
        turned = [rotated(model.blocks[0].attention.query(model.embedding(Tensor(tokens))), 2, s).data for s in (0, 50)]
    np.testing.assert_allclose(long[:, :6], short, atol=1e-5)
    assert np.abs(turned[0] - turned[1]).max() > 0.1  # the vectors differ, only their scores do not


def test_order_matters_to_it_and_not_to_a_model_without_positions():
    def last(tokens, **options):
        with Tensor.no_grad():
            return build(positions=None, **options)(Tensor([tokens])).data[0, -1]

    one, other = [1, 2, 3, 4], [2, 1, 3, 4]
    first_block_alone = {"blocks": 1}
    np.testing.assert_allclose(last(one, **first_block_alone), last(other, **first_block_alone), atol=1e-5)
    assert np.abs(last(one, attention=RotaryAttention) - last(other, attention=RotaryAttention)).max() > 0.05


def test_the_fast_and_the_plain_form_are_equal():
    gradients = []
    for form in (plain, nullcontext):
        model = build(attention=RotaryAttention, positions=None)
        with form():
            logits = model(Tensor(np.arange(24).reshape(2, 12) % 11))
            logits.backward(np.ones(logits.shape))
        gradients.append([np.array(parameter.grad) for parameter in model.parameters])
    for plainly, fast in zip(*gradients, strict=True):
        np.testing.assert_allclose(fast, plainly, rtol=1e-4, atol=1e-4 * np.abs(plainly).max())
