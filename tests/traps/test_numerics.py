"""Known traps of small engines: dtypes and numerics."""

import math

import numpy as np
import pytest

from src.core import GELU, AdamWOptimizer, CrossEntropyLoss, Dropout, LayerNorm, Softmax, Tensor, Tril
from src.core import scaled_dot_product_attention as attend
from src.core.graph import Storage
from src.core.masking import causal_mask
from src.gpt import GPT, GPTLoss, GPTTrainer, PositionalEncoding, generate, probabilities


@pytest.mark.parametrize("scalar", [np.sqrt(2.0), np.array(2.0), np.int64(3), np.float64(2), 2, 2.5, np.bool_(True)])
def test_t21_no_scalar_turns_float32_into_float64(scalar):
    x = Tensor([1.0, 2.0])
    for out in (x * scalar, x / scalar, x + scalar, x - scalar, scalar * x, scalar / x, scalar - x, x**scalar):
        assert out.dtype == np.float32
        out.sum().backward()
    assert x.grad.dtype == np.float32


def test_t21_no_float64_array_is_stored_in_a_training_step_of_the_gpt(monkeypatch, rng):
    settings = {"vocab_size": 11, "context_size": 8, "embedding_size": 12, "blocks": 2, "heads": 2, "dropout": 0.1}
    model = GPT(**settings, positions=PositionalEncoding)
    trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters))
    x, sizes = Tensor(rng.integers(0, 11, (2, 8))), {}
    real = Storage.__init__

    def watched(self, data):
        real(self, data)
        sizes[data.dtype] = max(sizes.get(data.dtype, 0), data.size)

    monkeypatch.setattr(Storage, "__init__", watched)
    loss = trainer.loss_fn(model(x), x)
    loss.backward()
    assert np.dtype(np.float32) in sizes and np.dtype(np.float64) not in sizes
    assert all(parameter.grad.dtype == np.float32 for parameter in model.parameters)


def test_t22_masks_are_booleans_and_tables_do_not_upcast():
    assert causal_mask(3, 3).dtype == np.bool_
    x = Tensor(np.ones((1, 3, 4)))
    assert PositionalEncoding(4)(x).dtype == np.float32
    assert Tril()(x @ x.transpose((0, 2, 1))).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_t23_a_row_that_may_attend_to_nothing_gives_zeros_and_finite_gradients(dtype, rng):
    with Tensor.precision(dtype):
        q, k, v = (Tensor(rng.standard_normal((4, 4))) for _ in range(3))
        mask = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]]) == 1
        output, weights = attend(q, k, v, mask=mask)
        (output * output).sum().backward()
        np.testing.assert_array_equal(output.data[1], np.zeros(4))
        np.testing.assert_array_equal(weights.data[~mask], 0.0)
        np.testing.assert_array_equal(q.grad[1], np.zeros(4))
        assert all(np.isfinite(tensor.grad).all() for tensor in (q, k, v))


def test_t23_a_causal_row_always_has_its_own_place(rng):
    x = Tensor(rng.standard_normal((5, 3)))
    _, weights = attend(x, x, x, causal=True)
    assert (weights.data[np.arange(5), np.arange(5)] > 0).all()


def test_t24_softmax_does_not_overflow():
    np.testing.assert_array_equal(Softmax()(Tensor([1e4, -1e4])).data, [1.0, 0.0])
    with Tensor.precision(np.float64):
        np.testing.assert_array_equal(Softmax()(Tensor([8e307, -8e307])).data, [1.0, 0.0])


def test_t25_the_loss_is_not_capped_and_its_gradient_is_right():
    logits = Tensor([[0.0, 50.0], [0.0, 1000.0]])
    loss = CrossEntropyLoss()(logits, [0, 0])
    assert loss.item() == 525.0
    loss.backward()
    np.testing.assert_array_equal(logits.grad, [[-0.5, 0.5], [-0.5, 0.5]])


def test_t27_ignored_targets_leave_the_mean():
    logits, loss = Tensor([[1.0, 2.0, 0.5], [3.0, 0.0, 1.0]]), CrossEntropyLoss(ignore_index=-1)
    assert loss(logits, [1, -1]).item() == CrossEntropyLoss()(logits[:1], [1]).item()
    assert loss(logits, [-1, -1]).item() == 0.0
    with pytest.raises(ValueError, match="got 3"):
        loss(logits, [1, 3])


def test_t28_layer_norm_divides_by_n_and_has_eps_inside_the_root():
    out = LayerNorm(4)(Tensor([1.0, 0.0, 0.0, 0.0])).data
    np.testing.assert_allclose(out, [1.73200, -0.57733, -0.57733, -0.57733], atol=1e-5)
    small = LayerNorm(2)(Tensor([1e-3, -1e-3])).data  # eps outside the root would give 1e-3 / (1e-3 + 1e-5)
    np.testing.assert_allclose(small, [1e-3 / math.sqrt(1.1e-5), -1e-3 / math.sqrt(1.1e-5)], rtol=1e-5)


@pytest.mark.usefixtures("double")
def test_t29_the_two_gelus_are_told_apart():
    assert GELU("tanh")(Tensor(1.0)).item() == pytest.approx(0.841192, abs=5e-7)
    assert GELU()(Tensor(1.0)).item() == pytest.approx(0.841345, abs=5e-7)
    x = Tensor(np.linspace(0, 8, 80_001))
    gap = np.abs(GELU("tanh")(x).data - GELU()(x).data)
    assert gap.max() == pytest.approx(4.73e-4, abs=5e-7) and x.data[gap.argmax()] == pytest.approx(2.70, abs=5e-3)


def test_t30_gradients_are_finite_where_a_root_or_a_choice_has_none():
    x = Tensor([[3.0, 3.0, 3.0]])
    (LayerNorm(3)(x) * Tensor([1.0, 2.0, 3.0])).sum().backward()
    assert np.isfinite(x.grad).all()
    scores = Tensor([[0.0, np.inf], [1.0, 2.0]])  # the forbidden score must be left out, not multiplied by 0
    out = Tril(0.0)(scores)
    out.sum().backward()
    np.testing.assert_array_equal(out.data, [[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(scores.grad, [[1.0, 0.0], [1.0, 1.0]])


def test_t33_probabilities_of_a_large_vocabulary_sum_to_one(rng):
    logits = (5 * rng.standard_normal(50_257)).astype(np.float32)
    p = probabilities(logits)
    assert p.dtype == np.float64 and abs(p.sum() - 1.0) < 1e-12
    assert 0 <= rng.choice(len(p), p=p) < 50_257


def test_t34_temperature_zero_is_the_maximum_and_ties_go_to_the_lowest_id():
    logits = np.array([1.0, 2.0, 2.0, 0.0])
    np.testing.assert_array_equal(probabilities(logits, temperature=0.0), [0, 1, 0, 0])
    np.testing.assert_array_equal(probabilities(logits, top_k=1), [0, 1, 0, 0])
    np.testing.assert_array_equal(probabilities(logits, top_k=99), probabilities(logits))
    np.testing.assert_array_equal(probabilities(logits, top_p=1e-9), [0, 1, 0, 0])
    np.testing.assert_allclose(probabilities(logits, temperature=1e-300), [0, 1 / 2, 1 / 2, 0])
    for temperature in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="temperature"):
            probabilities(logits, temperature=temperature)


def test_t34_generate_at_temperature_zero_draws_nothing():
    model = GPT(vocab_size=5, context_size=4, embedding_size=4, blocks=1)
    generators = [np.random.default_rng(seed) for seed in (1, 2)]
    first, second = (generate(model, [1], 6, temperature=0.0, generator=generator) for generator in generators)
    assert first == second and generators[0].bit_generator.state == np.random.default_rng(1).bit_generator.state


def test_t35_large_ids_stay_exact():
    assert Tensor([16_777_217]).item() == 16_777_217 and Tensor([16_777_217]).dtype == np.int64
    assert np.float32(16_777_217) == 16_777_216  # what a float32 tensor of ids would make of it


def test_t36_dropout_keeps_the_mean_at_every_rate():
    x = Tensor(np.ones(200_000))
    out = Dropout(0.3)(x)
    assert out.data.mean() == pytest.approx(1.0, abs=0.01)
    assert (out.data == 0).mean() == pytest.approx(0.3, abs=0.01)
    out.backward(np.ones(200_000))
    np.testing.assert_array_equal(x.grad, out.data)  # ones went in, so the same mask and scale come back
    np.testing.assert_array_equal(Dropout(1.0)(x).data, np.zeros(200_000))
    assert Dropout(0.3).eval()(x) is x
