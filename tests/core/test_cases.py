"""Acceptance cases from public reports about courses and small GPT codebases, by their numbers.

Those about PyTorch's values are in tests/oracle, those about notebooks, the book and exercises in tests/book and
tests/course.
"""

import math

import numpy as np
import pytest

from src.core import (
    GELU,
    AdamWOptimizer,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    LayerNorm,
    Softmax,
    Tensor,
    Tril,
    WarmupCosineScheduler,
    scaled_dot_product_attention,
)
from src.gpt import (
    GPT,
    CharDataset,
    GPTAttention,
    GPTLoss,
    GPTTransformer,
    generate,
    probabilities,
    sinusoidal_positions,
)
from src.gpt.cache import Cache

double = pytest.mark.usefixtures("double")
NORMAL = np.random.default_rng


def attend(*arrays, **options):
    return scaled_dot_product_attention(*map(Tensor, arrays), **options)


def small_gpt(**settings):
    return GPT(**{"vocab_size": 11, "context_size": 8, "embedding_size": 12, "blocks": 2, "heads": 3, **settings})


# ---- attention and masks ---------------------------------------------------------------------------------------------


@double
def test_c01_the_worked_example():
    q = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    output, weights = attend(q, q, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], causal=True)
    expected = [[1.0, 0.0, 0.0], [0.330238, 0.669762, 0.0], [0.248255, 0.248255, 0.503490]]
    np.testing.assert_allclose(weights.data, expected, atol=5e-7)
    np.testing.assert_allclose(output.data, [[1.0, 2.0], [2.339523, 3.339523], [3.510470, 4.510470]], atol=5e-7)


def test_c02_forbidden_scores_are_replaced_not_zeroed():
    scores = Tensor(NORMAL(0).standard_normal((4, 4)))
    weights = Softmax()(Tril()(scores)).data
    np.testing.assert_allclose(weights[1], [0.289613, 0.710387, 0.0, 0.0], atol=5e-7)
    with pytest.raises(TypeError, match="additive mask"):
        attend(*[np.ones((4, 4))] * 3, mask=np.where(np.tri(4), 0.0, -np.inf))


@pytest.mark.parametrize(
    "mask", [np.full((4, 4), 0.5), np.full((4, 4), -np.inf), np.full((4, 4), "yes"), np.eye(4, dtype=int)]
)
def test_c03_a_mask_that_is_not_boolean_is_told_the_convention(mask):
    with pytest.raises(TypeError, match="a mask holds booleans, True where a query may attend"):
        attend(*[np.ones((4, 4))] * 3, mask=mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_c05_a_query_without_keys_gives_zeros_forward_and_backward(dtype):
    with Tensor.precision(dtype):
        tensors = [Tensor(NORMAL(1).standard_normal((2, 3, 3, 4))) for _ in range(3)]
        mask = np.array([[True, False, False], [False, False, False], [True, True, True]])
        output, _ = scaled_dot_product_attention(*tensors, mask=mask)
        output.backward(NORMAL(2).standard_normal(output.shape))
        np.testing.assert_array_equal(output.data[..., 1, :], np.zeros((2, 3, 4)))
        np.testing.assert_array_equal(tensors[0].grad[..., 1, :], np.zeros((2, 3, 4)))
        assert all(np.isfinite(tensor.grad).all() for tensor in tensors)


@pytest.mark.parametrize("settings", [{}, {"tied": True}, {"heads": 1}, {"positions": None}])
def test_c06_later_tokens_do_not_leak(settings, rng):
    model, ids = small_gpt(std=0.5, **settings).eval(), rng.integers(0, 11, (2, 8))
    for t in range(1, 8):
        changed = ids.copy()
        changed[:, t:] = (changed[:, t:] + 1 + rng.integers(0, 9, (2, 8 - t))) % 11
        before, after = model(Tensor(ids)).data, model(Tensor(changed)).data
        assert before[:, :t].tobytes() == after[:, :t].tobytes()
        assert (before[:, t:] != after[:, t:]).any(axis=-1).all()


def test_c06_no_output_has_a_slope_with_respect_to_a_later_token(rng):
    block = GPTTransformer(12, heads=3)
    for t in range(5):
        x = Tensor(rng.standard_normal((1, 5, 12)))
        block(x)[0, t].sum().backward()
        moved = (np.abs(x.grad[0]) > 0).any(axis=-1)
        np.testing.assert_array_equal(moved, np.arange(5) <= t)


def test_c06_the_leak_test_catches_a_mask_after_the_softmax(rng):
    x = rng.standard_normal((5, 4))

    def leaky(x):
        weights = Tril(0.0)(Softmax()(Tensor(x) @ Tensor(x.T)))
        return (weights @ Tensor(x)).data

    changed = x.copy()
    changed[4] += 1.0
    assert (leaky(x)[:4] != leaky(changed)[:4]).any()


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (3, 1)])
def test_c07_a_causal_table_of_another_size_is_an_error(shape):
    with pytest.raises(ValueError, match="the mask has shape"):
        attend(*[np.ones((3, 2))] * 3, mask=np.tri(*shape) == 1)


def test_c09_heads_are_split_by_channels():
    attention = GPTAttention(6, heads=3)
    heads = attention.split(Tensor(np.arange(24).reshape(1, 4, 6)))
    np.testing.assert_array_equal(heads.data[0, 0], [[0, 1], [6, 7], [12, 13], [18, 19]])
    np.testing.assert_array_equal(heads.data[0, 2], [[4, 5], [10, 11], [16, 17], [22, 23]])
    np.testing.assert_array_equal(attention.merge(heads).data, np.arange(24).reshape(1, 4, 6))
    with pytest.raises(ValueError, match="4 heads cannot share 6 channels"):
        GPTAttention(6, heads=4)


@double
def test_c12_the_scale_brings_the_variance_of_scores_to_one(rng):
    q, k = rng.standard_normal((2, 20_000, 1, 64))
    products = (q @ k.swapaxes(-1, -2)).ravel()
    assert products.var() == pytest.approx(64, rel=0.03) and (products / 8).var() == pytest.approx(1, rel=0.03)
    q, k, v = (rng.standard_normal((5, 64)) for _ in range(3))
    unscaled = (Softmax()(Tensor(q / 8) @ Tensor(k.T)) @ Tensor(v)).data  # q scaled instead of the scores
    np.testing.assert_allclose(attend(q, k, v)[0].data, unscaled, rtol=0, atol=1e-12)


def test_c14_kept_weights_are_those_before_dropout(rng):
    model, ids = small_gpt(std=0.5, dropout=0.1), Tensor(rng.integers(0, 11, (2, 8)))
    assert model.training
    for weights in model.attention_weights(ids):
        assert type(weights) is np.ndarray and weights.shape == (2, 3, 8, 8)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-6)
        assert weights.max() <= 1.0 + 1e-6
        np.testing.assert_array_equal(weights * ~np.tri(8, dtype=bool), 0.0)  # rows are queries


# ---- data, loss, training --------------------------------------------------------------------------------------------


def test_c15_windows_and_what_follows_them(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("0123456789" * 2, encoding="utf-8")
    data = CharDataset(path, batch_size=6, context_size=4, stride=1, split=0.5)
    x, y = data[0]
    assert x.shape == y.shape == (6, 4) and len(data) == 1
    np.testing.assert_array_equal(x.data[-1], [5, 6, 7, 8])
    np.testing.assert_array_equal(y.data[-1], [6, 7, 8, 9])
    np.testing.assert_array_equal(y.data[:, :-1], x.data[:, 1:])
    path.write_text("0123" * 2, encoding="utf-8")
    with pytest.raises(ValueError, match="has 4 characters, a window and the next character need 5"):
        CharDataset(path, context_size=4, split=0.5)


@double
def test_c17_cross_entropy():
    logits = Tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    assert CrossEntropyLoss(ignore_index=-100)(logits, [0, 1, -100]).item() == pytest.approx(0.753109, abs=5e-7)
    large = Tensor([[1000.0, 0.0]])
    assert CrossEntropyLoss()(large, [1]).item() == 1000.0
    assert CrossEntropyLoss()(large, [0]).item() == 0.0
    row = Tensor([2.0, 1.0, 0.0])
    CrossEntropyLoss()(row, 0).backward()
    np.testing.assert_allclose(row.grad, [-0.334759, 0.244728, 0.090031], atol=5e-7)


def test_c18_micro_batches_weigh_by_their_tokens():
    loss = CrossEntropyLoss(ignore_index=-1)
    four = [0.0, math.log(math.exp(4) - 1)]  # the loss of target 0 is 4
    one = [0.0, math.log(math.exp(1) - 1)]
    batches = [(Tensor([four, four]), Tensor([0, -1])), (Tensor([one, one, one]), Tensor([0, 0, 0]))]
    counts = [loss.count(y) for _, y in batches]
    losses = [loss(p, y).item() for p, y in batches]
    assert counts == [1, 3] and losses == pytest.approx([4.0, 1.0], rel=1e-6)
    assert np.average(losses, weights=counts) == pytest.approx(1.75, rel=1e-6)


@pytest.mark.parametrize("heads", [1, 3])
def test_c19_a_block_whose_branches_are_zero_is_the_identity(heads, rng):
    block, x = GPTTransformer(12, heads=heads), Tensor(rng.standard_normal((2, 5, 12)))
    assert block(x).data.tobytes() != x.data.tobytes()
    for output in block.residual_outputs():
        output.weight.data = np.zeros(output.weight.shape)
    assert block(x).data.tobytes() == x.data.tobytes()


@pytest.mark.parametrize("vocab_size, expected", [(27, 3.2958), (65, 4.1744), (85, 4.4427), (50_257, 10.8249)])
@pytest.mark.parametrize("tied", [False, True])
def test_c20_the_first_loss_is_ln_v(vocab_size, expected, tied, rng):
    model = GPT(vocab_size, context_size=8, embedding_size=32, blocks=2, heads=4, tied=tied)
    x, y = (Tensor(rng.integers(0, vocab_size, (8, 8))) for _ in range(2))
    assert GPTLoss()(model(x), y).item() == pytest.approx(expected, rel=0.02)


def count(model):
    return sum(parameter.data.size for parameter in model.parameters)


def test_c21_the_parameters_of_gpt2_small():
    """One block and two tables of the real width; the other eleven blocks and the rest of the tables are counted on."""
    model = GPT(vocab_size=10, context_size=16, embedding_size=768, blocks=1, heads=12, tied=True, std=None)
    block, width = count(model.blocks[0]), 768
    assert count(model) == (10 + 16) * width + block + 2 * width
    tied = (50_257 + 1024) * width + 12 * block + 2 * width
    assert tied == 124_439_808
    assert tied + 50_257 * width == 163_037_184


@pytest.mark.parametrize("tied", [True, False])
def test_c21_a_tied_weight_is_one_tensor_that_both_sides_move(tied, rng):
    model, ids = small_gpt(tied=tied), Tensor(rng.integers(0, 11, (2, 8)))
    token, output = model.embedding.token.weight, model.output.weight
    assert (token is output) == tied
    before = token.data.copy(), output.data.copy()
    GPTLoss()(model(ids), ids).backward()
    AdamWOptimizer(model.parameters).step()
    assert (token.data != before[0]).any() and (output.data != before[1]).any()


def test_c22_generation_is_without_dropout_and_graph_and_repeats(monkeypatch):
    model, recorded = small_gpt(dropout=0.9), []
    real = Dropout.forward
    monkeypatch.setattr(
        Dropout, "forward", lambda self, x: recorded.append((self.training, x.differentiable)) or real(self, x)
    )
    first = generate(model, [1], 20, generator=NORMAL(1))
    assert recorded and set(recorded) == {(False, False)} and model.training
    assert generate(model, [1], 20, generator=NORMAL(1)) == first
    assert generate(model, [1], 20, generator=NORMAL(2)) != first


def test_c23_prompts_and_outputs_of_any_length(rng):
    model = small_gpt(std=0.5)
    prompt = rng.integers(0, 11, 30).tolist()
    long = generate(model, prompt, 5, temperature=0.0)
    assert long[:30] == prompt and long[30:] == generate(model, prompt[-8:], 5, temperature=0.0)[8:]
    assert generate(model, prompt, 0) == prompt
    assert len(generate(model, [1], 20)) == 21
    with pytest.raises(ValueError, match="the prompt is empty"):
        generate(model, [], 5)


def test_c24_temperature_and_top_k():
    logits = np.array([2.0, 1.0, 0.0, -1.0])
    np.testing.assert_allclose(probabilities(logits), [0.643914, 0.236883, 0.087144, 0.032059], atol=5e-7)
    assert probabilities(logits, temperature=0.5)[0] == pytest.approx(0.864955, abs=5e-7)
    np.testing.assert_allclose(probabilities(logits, top_k=2), [0.731059, 0.268941, 0.0, 0.0], atol=5e-7)
    np.testing.assert_array_equal(probabilities(np.array([1.0, 3.0, 3.0]), temperature=0.0), [0.0, 1.0, 0.0])
    for temperature in (-0.5, math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="temperature is zero"):
            probabilities(logits, temperature=temperature)


@double
@pytest.mark.parametrize("tied", [True, False])
def test_c26_logits_with_and_without_cache_are_equal_at_every_step(tied, rng):
    model, ids = small_gpt(std=0.5, tied=tied).eval(), rng.integers(0, 11, (1, 8))
    with Tensor.no_grad():
        for _ in range(2):
            cache = Cache(2, 8)
            for t in range(8):
                step = model(Tensor(ids[:, t : t + 1]), cache).data[0, -1]
                np.testing.assert_allclose(step, model(Tensor(ids[:, : t + 1])).data[0, -1], rtol=0, atol=1e-12)
        with pytest.raises(ValueError, match="context is 8 tokens"):
            model(Tensor(ids[:, :1]), cache)
    for steps in (7, 20):  # within the context, and beyond it, where the window is computed anew
        runs = [generate(model, [1], steps, generator=NORMAL(1), cache=cache) for cache in (True, False, None)]
        assert runs[0] == runs[1] == runs[2]


def test_c27_the_first_learning_rate_is_above_zero():
    for warmup in (0, 1, 5, 99):
        assert WarmupCosineScheduler(1e-3, 100, warmup).step(0) > 0


# ---- engine and layers -----------------------------------------------------------------------------------------------


def test_c28_automatic_differentiation():
    a = Tensor(1.0)
    b = a + a
    (b + b).backward()
    assert a.grad == 4.0
    a, b = Tensor(3.0), Tensor(2.0)
    for total in (1.0, 2.0):
        ((a + b) * 1).backward()
        assert a.grad == total
    assert Tensor(2.0).exp().item() == pytest.approx(7.389056, abs=5e-7)
    x = y = Tensor(1.0)
    for _ in range(5000):
        y = y * 1.0
    y.backward()
    assert x.grad == 1.0


def test_c29_broadcasting_and_repeated_rows():
    column, row = Tensor(np.ones((3, 1))), Tensor([[1.0, 2.0, 3.0, 4.0]])
    (column * row).sum().backward()
    np.testing.assert_array_equal(column.grad, [[10.0]] * 3)
    np.testing.assert_array_equal(row.grad, [[3.0] * 4])
    x = Tensor([1.0, 5.0, 3.0, 7.0])
    (x - x.mean()).backward(np.ones(4))
    np.testing.assert_array_equal(x.grad, np.zeros(4))
    table = Embedding(4, 2)
    table(Tensor([1, 1, 3])).sum().backward()
    np.testing.assert_array_equal(table.weight.grad, [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]])


@double
def test_c30_layer_norm():
    norm = LayerNorm(4)
    np.testing.assert_allclose(norm(Tensor([1.0, 0, 0, 0])).data, [1.7320, -0.5773, -0.5773, -0.5773], atol=1e-4)
    np.testing.assert_allclose(norm(Tensor([1.0, 2, 3, 4])).data, [-1.3416, -0.4472, 0.4472, 1.3416], atol=5e-5)
    np.testing.assert_array_equal(norm(Tensor([5.0] * 4)).data, np.zeros(4))
    x = Tensor([1.0, 2.0, 4.0, 7.0])
    norm(x).backward([1.0, -2.0, 0.5, 3.0])
    np.testing.assert_allclose(x.grad, [0.748174, -0.794937, -0.171457, 0.218219], atol=5e-7)
    assert x.grad.sum() == pytest.approx(0.0, abs=1e-15)


@double
def test_c31_gelu():
    def values(form, x):
        return GELU(form)(Tensor(x)).data

    assert values("none", 1.0) == pytest.approx(0.8413447461, abs=5e-11)
    assert values("tanh", 1.0) == pytest.approx(0.8411919906, abs=5e-11)
    assert values("none", -1.0) == pytest.approx(-0.1586552539, abs=5e-11)
    x = np.linspace(0.0, 6.0, 60_001)
    gap = values("tanh", x) - values("none", x)
    assert gap.max() == pytest.approx(4.732e-4, abs=5e-8) and x[gap.argmax()] == pytest.approx(2.699, abs=5e-4)
    assert gap.min() == pytest.approx(-2.337e-4, abs=5e-8) and x[gap.argmin()] == pytest.approx(1.364, abs=1e-3)
    np.testing.assert_allclose(values("tanh", -x) - values("none", -x), gap, atol=1e-14)
    for form, slope in (("none", 1.0833), ("tanh", 1.0830)):
        one = Tensor(1.0)
        GELU(form)(one).backward()
        assert one.grad == pytest.approx(slope, abs=5e-5)


@double
def test_c32_sinusoidal_positions():
    table = sinusoidal_positions(50, 4)
    np.testing.assert_allclose(table[1], [0.841471, 0.540302, 0.0100, 0.99995], atol=5e-6)
    np.testing.assert_allclose(table[2], [0.909297, -0.416147, 0.0200, 0.9998], atol=5e-6)
    np.testing.assert_allclose((table**2).sum(axis=1), 2.0, rtol=1e-14)
    products = table @ table.T
    for shift in range(50):
        np.testing.assert_allclose(np.diagonal(products, shift), products[0, shift], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        sinusoidal_positions(2, 5)[1], [0.841471, 0.540302, 0.025116, 0.999685, 0.000631], atol=5e-7
    )
