"""Sampling and the key-value cache."""

from functools import partial

import numpy as np
import pytest

from src.core import Composite, Layer, LayerNorm, Linear, ReLU, Tensor, seed
from src.gpt import (
    GPT,
    BareTransformer,
    CharDataset,
    GPTAttention,
    GPTFeedForward,
    GPTLoss,
    GPTTrainer,
    GPTTransformer,
    LearnedPositions,
    PositionalEncoding,
    generate,
    probabilities,
)
from src.gpt.cache import Cache, LayerCache


@pytest.fixture
def model():
    seed(0)
    return GPT(11, 8, 16, 2, heads=2, std=0.5)


LOGITS = np.array([2.0, 1.0, 0.0, -1.0])


def test_c24_probabilities():
    assert probabilities(LOGITS) == pytest.approx([0.643914, 0.236883, 0.087144, 0.032059], abs=1e-6)
    assert probabilities(LOGITS, temperature=0.5)[0] == pytest.approx(0.864955, abs=1e-6)
    assert probabilities(LOGITS, top_k=2) == pytest.approx([0.731059, 0.268941, 0, 0], abs=1e-6)
    assert probabilities(LOGITS, temperature=0).tolist() == [1, 0, 0, 0]


def test_top_p_keeps_the_fewest_that_reach_p():
    assert np.count_nonzero(probabilities(LOGITS, top_p=0.64)) == 1
    assert np.count_nonzero(probabilities(LOGITS, top_p=0.65)) == 2
    assert np.count_nonzero(probabilities(LOGITS, top_p=1e-9)) == 1
    assert probabilities(LOGITS, top_p=1.0) == pytest.approx(probabilities(LOGITS))
    assert probabilities(LOGITS, top_p=0.65).sum() == pytest.approx(1)


def test_t34_ties_keep_the_lowest_ids_and_large_k_keeps_all():
    tied = np.array([1.0, 2.0, 2.0, 0.0])
    assert probabilities(tied, top_k=1).tolist() == [0, 1, 0, 0]
    assert probabilities(tied, temperature=0).tolist() == [0, 1, 0, 0]
    assert np.count_nonzero(probabilities(tied, top_k=99)) == 4


def test_t34_ties_keep_the_lowest_ids_among_many():
    """NumPy's default sort is stable for short arrays only."""
    many = np.random.default_rng(0).integers(0, 3, 500).astype(float)
    best = np.flatnonzero(many == many.max())
    assert np.flatnonzero(probabilities(many, top_k=5)).tolist() == best[:5].tolist()
    assert probabilities(many, temperature=0).argmax() == best[0]


def test_t33_probabilities_sum_to_one_in_float64():
    logits = np.random.default_rng(0).standard_normal(50_000).astype(np.float32)
    result = probabilities(logits, temperature=1e-3)
    assert result.dtype == np.float64 and result.sum() == pytest.approx(1, abs=1e-12)
    assert probabilities(np.array([1e4, -1e4])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": -1}, "top_k"),
        ({"top_k": 1.5}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_p": float("nan")}, "top_p"),
        ({"steps": -1}, "steps"),
        ({"tokens": []}, "prompt is empty"),
        ({"tokens": [11]}, "token ids go from 0 to 10"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_generated(model, option, message):
    arguments = {"tokens": [1, 2], "steps": 3} | option
    with pytest.raises(ValueError, match=message):
        generate(model, **arguments)
    assert model.training


def test_c23_no_steps_give_the_prompt_and_a_long_prompt_is_cropped(model):
    assert generate(model, [1, 2], 0) == [1, 2]
    long = list(range(11)) * 3
    result = generate(model, long, 5, temperature=0)
    assert result[:33] == long and len(result) == 38
    assert result[33:] == generate(model, long[-8:], 5, temperature=0)[8:]


def test_c22_same_seed_same_text_and_modes_are_restored(model):
    model.blocks[0].eval()
    draw = np.random.default_rng
    first = generate(model, [1], 30, generator=draw(1))
    assert first == generate(model, [1], 30, generator=draw(1))
    assert first != generate(model, [1], 30, generator=draw(2))
    assert model.training and not model.blocks[0].training and Tensor.recording()


def test_t60_modes_are_restored_after_an_error(model):
    with pytest.raises(ValueError, match="token ids"):
        generate(model, [99], 3)
    assert model.training and Tensor.recording()


def test_c22_dropout_does_not_act():
    seed(0)
    model = GPT(11, 8, 16, 1, dropout=0.9)
    assert generate(model, [1], 8, temperature=0) == generate(model, [1], 8, temperature=0)


@pytest.mark.parametrize("chunk", [1, 2, 8])
def test_c26_t58_logits_with_and_without_cache_are_equal(model, chunk):
    tokens = np.random.default_rng(0).integers(0, 11, (3, 8))
    with Tensor.precision(np.float64), Tensor.no_grad():
        seed(0)
        double = GPT(11, 8, 16, 2, heads=2, std=0.5)
        whole = double(Tensor(tokens)).data
        for _ in range(2):  # a second use starts from a fresh cache
            cache = Cache(2, 8)
            parts = [double(Tensor(tokens[:, at : at + chunk]), cache).data for at in range(0, 8, chunk)]
            assert np.abs(np.concatenate(parts, axis=1) - whole).max() < 1e-12


def test_cached_and_uncached_generation_agree_past_the_context(model):
    for temperature in (0, 1):
        draws = [np.random.default_rng(3) for _ in range(2)]
        cached = generate(model, [1, 2], 20, temperature, generator=draws[0])
        assert cached == generate(model, [1, 2], 20, temperature, generator=draws[1], cache=False)


def test_the_cache_refuses_gradients_and_overflow(model):
    with pytest.raises(RuntimeError, match="no_grad"):
        model(Tensor([[1]]), Cache(2, 8))
    with Tensor.no_grad():
        cache = Cache(2, 8)
        model(Tensor([[1] * 8]), cache)
        with pytest.raises(ValueError, match="context is 8 tokens"):
            model(Tensor([[1]]), cache)


class Plain(Layer):
    def __init__(self, size):
        self.linear = Linear(size, size)

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize("part", ["attention", "positions"])
def test_a_layer_without_cache_falls_back_and_says_so(part):
    builder = Plain if part == "attention" else (lambda embedding_size: Plain(embedding_size))
    model = GPT(11, 8, 16, 1, **{part: builder})
    assert len(generate(model, [1], 4)) == 5
    with pytest.warns(UserWarning, match="no cache"):
        assert len(generate(model, [1], 4, cache=True)) == 5


class WithoutCache(GPTAttention):
    """Inherits `cacheable`, but its forward takes no cache."""

    def forward(self, x):
        return self.output(self.value(x))


class MeanOverTime(Layer):
    """Mixes tokens where the model expects each to be treated on its own."""

    def __init__(self, embedding_size):
        self.weight = Tensor(np.ones(embedding_size))

    def forward(self, x):
        return (x - x.mean(axis=1, keepdims=True)) * self.weight


class OddNorm(LayerNorm):
    def forward(self, x):
        return super().forward(x) - x.mean(axis=1, keepdims=True)


class PlainPositions(LearnedPositions):
    """Inherits `cacheable`, but cannot start anywhere but at place 0."""

    def forward(self, x):
        return super().forward(x)


class PlainBlock(GPTTransformer):
    def forward(self, x):
        return super().forward(x)


NOT_CACHEABLE = {
    "attention without cache": {"attention": WithoutCache},
    "attention as network": {"feed_forward": lambda embedding_size: GPTAttention(embedding_size)},
    "network over time": {"feed_forward": MeanOverTime},
    "network with a part over time": {
        "feed_forward": partial(GPTFeedForward, activation=lambda: MeanOverTime(64)),
    },
    "norm over time": {"normalization": MeanOverTime},
    "norm of one's own": {"normalization": OddNorm},
    "block without cache": {"block": PlainBlock},
    "bare block": {"block": BareTransformer, "feed_forward": MeanOverTime, "normalization": None},
    "positions from 0": {"positions": PlainPositions},
}


@pytest.mark.parametrize("name", NOT_CACHEABLE)
def test_what_might_differ_with_a_cache_is_generated_without(name):
    seed(0)
    model = GPT(11, 8, 16, 2, std=0.5, **NOT_CACHEABLE[name])
    assert not model.cacheable
    plain = generate(model, [1, 2, 3], 12, temperature=0, cache=False)
    assert generate(model, [1, 2, 3], 12, temperature=0) == plain
    with pytest.warns(UserWarning, match="no cache"):
        assert generate(model, [1, 2, 3], 12, temperature=0, cache=True) == plain


class Shift(Layer):
    """Treats each token on its own, and says so."""

    per_token = True

    def __init__(self, embedding_size):
        self.linear = Linear(embedding_size, embedding_size)

    def forward(self, x):
        return self.linear(x) + 1.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalization": None},
        {"positions": None},
        {"positions": PositionalEncoding},
        {"feed_forward": Shift},
        {"normalization": Shift},
        {"feed_forward": partial(GPTFeedForward, activation=ReLU)},
        {"feed_forward": lambda embedding_size: Composite([Linear(embedding_size, embedding_size), ReLU()])},
        {"block": BareTransformer, "normalization": None},
    ],
)
def test_what_treats_each_token_on_its_own_is_cached(options):
    seed(0)
    model = GPT(11, 8, 16, 2, std=0.5, **options)
    assert model.cacheable
    cached = generate(model, [1, 2, 3], 12, temperature=0, cache=True)
    assert cached == generate(model, [1, 2, 3], 12, temperature=0, cache=False)


def test_attention_that_takes_a_cache_and_does_not_fill_it_is_noticed():
    class Ignores(GPTAttention):
        def forward(self, x, cache=None):
            return super().forward(x)

    model = GPT(11, 8, 16, 2)
    model.blocks[1].attention = Ignores(16)
    with pytest.raises(RuntimeError, match=r"block 1 has cached 0 of 2 tokens.*cacheable = False"):
        generate(model, [1, 2], 3)


def test_a_diverged_model_says_so(model):
    model.norm.weight.data = np.full(16, np.nan)
    with pytest.raises(RuntimeError, match="not finite"):
        generate(model, [1], 1)


def test_the_trainer_writes_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("to be or not to be, " * 20, encoding="utf-8")
    dataset = CharDataset(path, batch_size=4, context_size=8)
    model = GPT(dataset.vocab_size, 8, 16, 1)
    from src.core import AdamWOptimizer

    trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters, lr=0.01))
    losses = trainer.train(dataset, epochs=8)
    text = trainer.generate(dataset, "to be", steps=12, temperature=0)
    assert losses[-1] < 0.5 * losses[0]
    assert text.startswith("to be") and len(text) == 17 and set(text) <= set(dataset.vocab)


@pytest.mark.parametrize("wrong", [np.zeros((3, 3)), np.zeros(0), [np.nan, 1.0], [np.inf, 1.0], [-np.inf, -np.inf]])
@pytest.mark.parametrize("options", [{}, {"temperature": 0.0}, {"top_k": 1}])
def test_logits_that_are_no_row_of_numbers_are_refused(wrong, options):
    with pytest.raises(ValueError, match="logits are one row"):
        probabilities(np.asarray(wrong), **options)


def test_some_tokens_may_be_impossible():
    np.testing.assert_array_equal(probabilities(np.array([0.0, -np.inf, 0.0])), [0.5, 0, 0.5])


def test_a_cache_refuses_more_tokens_than_it_holds_and_others_than_those_before():
    cache, one = LayerCache(2), np.ones((1, 1, 1, 4), np.float32)
    cache.append(one, one)
    for other in (np.ones((2, 1, 1, 4), np.float32), np.ones((1, 1, 1, 3), np.float32)):
        with pytest.raises(ValueError, match=r"keys of shape .* do not fit those in the cache, \(1, 1, 2, 4\)"):
            cache.append(other, other)
        with pytest.raises(ValueError, match=r"values of shape"):
            cache.append(one, other)
    with pytest.raises(ValueError, match="keys are of 1 and values of 2 tokens"):
        LayerCache(4).append(one, np.ones((1, 1, 2, 4)))
    assert cache.append(one, one)[0].shape == (1, 1, 2, 4)
    with pytest.raises(ValueError, match="the cache holds 2 tokens, got 3"):
        cache.append(one, one)


def test_a_model_with_a_forward_of_its_own_generates_without_a_cache():
    class Own(GPT):
        def forward(self, x):
            return super().forward(x)

    settings = dict(vocab_size=11, context_size=8, embedding_size=16, blocks=1)
    own, usual = (kind(**settings, generator=np.random.default_rng(1)) for kind in (Own, GPT))
    assert not own.cacheable
    assert generate(own, [1], 12, temperature=0) == generate(usual, [1], 12, temperature=0)


def test_attention_says_which_axes_it_takes():
    with pytest.raises(ValueError, match=r"attention takes vectors \(B, T, C\), got shape \(4, 8\)"):
        GPTAttention(8)(Tensor(np.ones((4, 8))))
