"""Each fast form against the plain form beside it: the same values, the same gradients, whatever the shape."""

import copy
import pickle
from contextlib import nullcontext

import numpy as np
import pytest

from src.core import (
    GELU,
    AdamWOptimizer,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    Tensor,
    scaled_dot_product_attention,
)
from src.core.fast import attention, gelu, is_on, plain, threads
from src.core.fast.attention import causal_attention
from src.gpt import GPT, BareTransformer, GPTAttention, GPTLoss, GPTTrainer

SHAPES = [(1, 1, 8), (2, 5, 8), (3, 70, 8), (5, 300, 64)]  # the last ones are cut into several blocks and parts


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that arrays of some thousand numbers, too, are cut into blocks, the last of them shorter than the others."""
    monkeypatch.setattr(threads, "BLOCK", 1000)
    monkeypatch.setattr(gelu, "KEPT", 2000)


def both(make, *inputs):
    """Values and gradients of `make(*tensors)` in the fast and in the plain form, as two lists of arrays."""
    results = []
    for context in (None, plain()):
        tensors = [Tensor(array.copy()) for array in inputs]
        if context is None:
            out = make(*tensors)
            start(out).backward()
        else:
            with context:
                out = make(*tensors)
                start(out).backward()
        results.append([out.data, *(tensor.grad for tensor in tensors)])
    return results


def start(out):
    """A scalar whose gradient is different at every place."""
    return (out * np.cos(np.arange(out.data.size)).reshape(out.shape)).sum()


def assert_equal(fast, slow, scale=1.0):
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-6, atol=2e-6 * scale)
    for one, other in zip(fast[1:], slow[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", [3, 300])
def test_linear(shape, outputs, rng):
    weight = rng.standard_normal((shape[-1], outputs)) / shape[-1] ** 0.5

    def make(x, w, b):
        layer = Linear(shape[-1], outputs)
        layer.weight, layer.bias = w, b
        return layer(x)

    fast, slow = both(make, rng.standard_normal(shape), weight, rng.standard_normal(outputs))
    assert_equal(fast, slow, scale=30.0)  # sums over up to 1,500 rows, in another order


@pytest.mark.parametrize("shape", SHAPES)
def test_gelu(shape, rng):
    assert_equal(*both(GELU("tanh"), 3 * rng.standard_normal(shape)))


@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm(shape, rng):
    def make(x, w, b):
        layer = LayerNorm(shape[-1])
        layer.weight, layer.bias = w, b
        return layer(x)

    x, size = rng.standard_normal(shape) + 5.0, shape[-1]
    assert_equal(*both(make, x, rng.standard_normal(size), rng.standard_normal(size)), scale=10.0)


def test_layer_norm_of_equal_numbers_is_zero_in_every_block():
    x = np.repeat(np.linspace(-50.0, 50.0, 700).astype(np.float32)[:, None], 96, axis=1)
    assert np.abs(LayerNorm(96)(Tensor(x)).data).max() < 1e-3


@pytest.mark.parametrize(("batch", "time", "heads"), [(1, 1, 1), (2, 7, 2), (9, 33, 4), (3, 130, 8)])
def test_attention(batch, time, heads, rng):
    layer = GPTAttention(16, heads)
    assert_equal(*both(layer, rng.standard_normal((batch, time, 16))), scale=3.0)


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_attention_with_dropout(rate, rng):
    def make(x):
        layer = GPTAttention(16, 4, dropout=rate, generator=np.random.default_rng(5))  # the same draws for both
        return layer(x)

    assert_equal(*both(make, rng.standard_normal((7, 40, 16))), scale=3.0)


@pytest.mark.parametrize("block", [1000, 1 << 17])  # weights computed again, and kept
@pytest.mark.parametrize("size", [1.0, 30.0, -30.0, 1e4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_attention_with_large_scores(block, size, dtype, rng, monkeypatch):
    """Scores of which exp would overflow, or vanish for a whole row: they are moved to where it does not."""
    monkeypatch.setattr(threads, "BLOCK", block)
    query, value, grad = (rng.standard_normal((2, 40, 8)).astype(dtype) for _ in range(3))
    key = (query * size + rng.standard_normal((2, 40, 8))).astype(dtype)  # each token's own score: about 3 times size
    with Tensor.precision(np.float64):
        slow = [Tensor(array) for array in (query, key, value)]
        expected, _ = scaled_dot_product_attention(*slow, causal=True)
        expected.backward(grad)
    close = dict(rtol=1e-8, atol=1e-8) if dtype == np.float64 else dict(rtol=1e-2, atol=1e-2)
    result, backward = causal_attention(query, key, value, 1)
    np.testing.assert_allclose(result, expected.data, **close)
    for gradient, tensor in zip(backward(grad), slow, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=close["rtol"], atol=close["atol"] * abs(size))


@pytest.mark.parametrize("score", [-2000.0, -100.0, -30.0, 30.0, 87.0, 88.0, 1e9])
@pytest.mark.parametrize("queries", [3, 40])
def test_equal_scores_give_the_average_whatever_they_are(score, queries):
    query, key = np.ones((1, queries, 4), np.float32), np.full((1, 40, 4), score / 2, np.float32)  # times 4 / sqrt(4)
    value = np.arange(40, dtype=np.float32).reshape(1, 40, 1) * np.ones(4, np.float32)
    result, _ = causal_attention(query, key, value, 1)
    np.testing.assert_allclose(result[0, :, 0], np.arange(40 - queries, 40) / 2, rtol=1e-5)


def test_a_large_score_of_an_earlier_token_is_found_for_the_last_queries(rng):
    query, key, value = rng.standard_normal((3, 1, 30, 4)).astype(np.float32)
    key[:, :20] -= 400.0 * query[:, 25:26]  # of token 25 all but its own and its neighbours' are far below zero
    key[:, 25:] = -100.0 * query[:, 25:]
    whole, _ = causal_attention(query, key, value, 1)
    last, _ = causal_attention(query[:, 25:], key, value, 1)
    assert np.isfinite(last).all()
    np.testing.assert_allclose(last, whole[:, 25:], rtol=1e-5, atol=1e-5)


def test_attention_with_a_score_that_is_no_number(rng):
    query, key, value = rng.standard_normal((3, 1, 6, 4))
    query[0, 2] = np.nan
    for size in (1.0, 1e4):
        result, _ = causal_attention(query * size, key, value, 1)
        assert np.isnan(result[0, 2]).all() and np.isfinite(np.delete(result[0], 2, axis=0)).all()


def test_attention_of_the_last_queries_only(rng):
    query, key, value = rng.standard_normal((3, 2, 9, 8))
    whole, _ = causal_attention(query, key, value, 2)
    last, _ = causal_attention(query[:, 6:], key, value, 2)
    np.testing.assert_allclose(last, whole[:, 6:], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [5, 5000])  # by a product, and by add.at
def test_embedding(count, rng):
    ids = Tensor(rng.integers(0, 5, (4, 6)))  # with repeated ids

    def make(table):
        layer = Embedding(count, 8)
        layer.weight = table
        return layer(ids)

    assert_equal(*both(make, rng.standard_normal((count, 8))))


@pytest.mark.parametrize("ignored", [0, 1, 40])
@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (6, 5), (40, 60), (40, 2000)])
def test_cross_entropy(rows, classes, ignored, rng):
    targets = rng.integers(0, classes, rows)
    targets[:ignored] = -100
    loss, logits = CrossEntropyLoss(ignore_index=-100), 20 * rng.standard_normal((rows, classes))
    fast, slow = both(lambda p: loss(p, Tensor(targets)), logits)
    np.testing.assert_array_equal(fast[0], slow[0])
    np.testing.assert_array_equal(fast[1], slow[1])
    assert np.isfinite(fast[0]) and np.any(fast[1]) == (ignored < rows and classes > 1)


def train(steps=6, **options):
    settings = dict(vocab_size=11, context_size=32, embedding_size=32, blocks=2, heads=4) | options
    model = GPT(**settings, generator=np.random.default_rng(1))
    trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters, lr=1e-2))
    ids = np.random.default_rng(2).integers(0, 11, (steps, 40, 33))
    losses = [trainer.train_step(Tensor(row[:, :-1]), Tensor(row[:, 1:])) for row in ids]
    return losses, model.state_dict(), trainer.optimizer.state_dict()


@pytest.mark.parametrize("options", [{}, {"tied": True}, {"heads": 1, "positions": None}])
def test_training_steps_of_a_whole_gpt_in_float64(options):
    with Tensor.precision(np.float64):
        losses, weights, state = train(**options)
        with plain():
            plain_losses, plain_weights, plain_state = train(**options)
    np.testing.assert_allclose(losses, plain_losses, rtol=1e-11)
    for name, array in weights.items():
        np.testing.assert_allclose(array, plain_weights[name], rtol=1e-8, atol=1e-9, err_msg=name)
    assert state.keys() == plain_state.keys()
    for name, array in state.items():
        np.testing.assert_allclose(array, plain_state[name], rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_result_does_not_depend_on_the_number_of_threads(count, monkeypatch):
    def bytes_with(number):
        monkeypatch.setattr(threads, "WORTHWHILE", 1)
        monkeypatch.setattr(threads, "count", lambda: number)
        threads._pool.cache_clear()
        try:
            losses, weights, _ = train(embedding_size=256)
            return losses, {name: array.tobytes() for name, array in weights.items()}, threads._pool() is not None
        finally:
            threads._pool.cache_clear()

    *alone, threaded = bytes_with(1)
    assert not threaded
    *together, threaded = bytes_with(count)
    assert threaded == (count > 1) and alone == together


def test_an_error_in_a_part_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "WORTHWHILE", 1)
    monkeypatch.setattr(threads, "count", lambda: 2)
    threads._pool.cache_clear()

    def fail():
        raise ValueError("in a part")

    with pytest.raises(ValueError, match="in a part"):
        threads.share([fail, fail, lambda: None], work=10)
    threads._pool.cache_clear()


def test_every_task_runs_once(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 3)
    threads._pool.cache_clear()
    done = []
    threads.share([lambda number=number: done.append(number) for number in range(500)], work=10**9)
    threads._pool.cache_clear()
    assert sorted(done) == list(range(500))


def test_blocks_cover_all_rows_once():
    for rows, width in ((1, 1), (1000, 64), (40_000, 1), (7, 100_000)):
        covered = [row for part in threads.blocks(rows, width) for row in range(part.start, part.stop)]
        assert covered == list(range(rows))


def test_plain_is_restored_after_an_error():
    with pytest.raises(KeyError), plain():
        raise KeyError
    assert is_on()


def single_layers():
    """Layers by themselves, so that each takes its own fast form."""
    x = Tensor(np.ones((1, 4, 8)))
    Linear(8, 8)(x), GELU("tanh")(x), LayerNorm(8)(x), Embedding(8, 8)(Tensor([1])), GPTAttention(8)(x)
    CrossEntropyLoss()(x, Tensor([[1, 2, 3, 4]]))


PLACES = {
    train: [
        "src.core.fast.forms.embedding",
        "src.core.fast.forms.linear",
        "src.core.fast.forms.layer_norm",
        "src.core.fast.forms.gelu_tanh",
        "src.core.loss.cross_entropy",
        "src.core.optimizer.adamw_step",
        "src.gpt.forms.causal_attention",
        "src.gpt.model.through",
    ],
    single_layers: [
        "src.core.embedding.embedding",
        "src.core.linear.linear",
        "src.core.normalization.layer_norm",
        "src.core.activation.gelu_tanh",
        "src.gpt.attention.causal_attention",
        "src.core.loss.cross_entropy",
    ],
}


def broken(*_, **__):
    raise AssertionError("the fast form was used")


def test_plain_forms_run_inside_plain(monkeypatch):
    """The switch reaches every place that has two forms: with the fast ones broken, plain() still computes."""
    for work, places in PLACES.items():
        for place in places:
            monkeypatch.setattr(place, broken)
        with plain():
            work()


@pytest.mark.parametrize(("work", "place"), [(work, place) for work, places in PLACES.items() for place in places])
def test_each_fast_form_is_used_where_it_is_meant_to_be(work, place, monkeypatch):
    monkeypatch.setattr(place, broken)
    with pytest.raises(AssertionError, match="the fast form"):
        work()


def test_a_subclass_with_its_own_update_keeps_it():
    class Frozen(AdamWOptimizer):
        def update(self, index, parameter):
            pass

    weight = Tensor([[1.0]])
    weight.grad += np.ones((1, 1))
    Frozen([weight]).step()
    assert weight.item() == 1.0


def test_a_parameter_without_gradient_is_skipped_beside_others():
    one, other = Tensor([[1.0]]), Tensor([[1.0]])
    optimizer = AdamWOptimizer([one, other], lr=0.1)
    one.grad += np.ones((1, 1))
    optimizer.step()
    assert other.item() == 1.0 and optimizer.steps.tolist() == [1, 0]
    one.grad, other.grad = np.ones((1, 1)), np.ones((1, 1))
    optimizer.step()
    assert optimizer.steps.tolist() == [2, 1]


def test_float_types_may_differ_between_parameters():
    one, other = Tensor([[1.0]]), Tensor([[1.0]], dtype=np.float64)
    optimizer = AdamWOptimizer([one, other], lr=0.1)
    one.grad += np.ones((1, 1))
    other.grad += np.ones((1, 1))
    optimizer.step()
    assert optimizer.means[0].dtype == np.float32 and optimizer.means[1].dtype == np.float64
    assert one.item() < 1.0 and other.item() < 1.0


def test_a_gradient_given_away_is_not_shared():
    x = Tensor(np.zeros(3))
    array = np.ones(3, dtype=np.float32)
    x.receive(array)
    assert x.received is array
    x.grad += np.ones(3)
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("gradient", [np.ones(3), np.ones(3, dtype=np.float32).view(np.recarray)])
def test_a_gradient_given_away_takes_the_type_of_the_tensor(gradient):
    x = Tensor(np.zeros(3))
    x.receive(gradient)
    assert type(x.received) is np.ndarray and x.received.dtype == np.float32


def test_parts_may_share_parts_again(monkeypatch):
    """A thread that hands over parts itself does not wait for a thread that waits for it."""
    monkeypatch.setattr(threads, "count", lambda: 2)
    threads._pool.cache_clear()
    done = []

    def outer(number):
        threads.share([lambda inner=inner: done.append((number, inner)) for inner in range(4)], work=10**9)

    threads.share([lambda number=number: outer(number) for number in range(4)], work=10**9)
    threads._pool.cache_clear()
    assert sorted(done) == [(number, inner) for number in range(4) for inner in range(4)]


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads_is_refused(wrong, monkeypatch):
    monkeypatch.setenv("ENGINE_THREADS", wrong)
    threads.count.cache_clear()
    with pytest.raises(ValueError, match="ENGINE_THREADS"):
        threads.count()


HALVED = [{}, {"tied": True}, {"dropout": 0.3}, {"block": BareTransformer, "normalization": None, "std": None}]


@pytest.mark.parametrize("options", HALVED)
def test_halves_give_what_the_whole_gives_on_any_number_of_threads(options, monkeypatch):
    def with_threads(number):
        monkeypatch.setattr(threads, "count", lambda: number)
        threads._pool.cache_clear()
        try:
            return train(**options)
        finally:
            threads._pool.cache_clear()

    with Tensor.precision(np.float64):
        whole = train(**options)
        monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
        alone, together = with_threads(1), with_threads(2)
    assert alone[0] == together[0]
    for name, array in alone[1].items():
        assert array.tobytes() == together[1][name].tobytes(), name
        if "dropout" not in options:  # the second half draws from a generator of its own
            np.testing.assert_allclose(array, whole[1][name], rtol=1e-8, atol=1e-9, err_msg=name)


def test_halves_are_used_for_long_passes_of_known_layers_only(monkeypatch):
    class Own(GPTAttention):
        pass

    taken = []

    def through(parts, forms, x, halves):
        taken.append(halves)
        return x

    monkeypatch.setattr("src.gpt.model.through", through)
    ids, long = Tensor(np.zeros((2, 32), dtype=int)), dict(vocab_size=11, context_size=32, blocks=2)
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 2 * 32 * 12 * 64 * 64)
    GPT(**long, embedding_size=64)(ids)
    GPT(**long, embedding_size=63)(ids)
    GPT(**long, embedding_size=64)(Tensor(ids.data[:1]))
    with Tensor.no_grad():
        GPT(**long, embedding_size=64)(ids)
    assert taken == [True, False, False, True]
    GPT(**long, embedding_size=64, attention=Own)(ids)
    with plain():
        GPT(**long, embedding_size=64)(ids)
    assert len(taken) == 4


def test_dropout_differs_between_the_halves(monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    model = GPT(vocab_size=11, context_size=8, embedding_size=16, blocks=1, dropout=0.5)
    row = np.arange(8)
    logits = model(Tensor([row, row])).data
    assert np.abs(logits[0] - logits[1]).max() > 1e-3


def test_a_second_backward_through_halves_is_refused(monkeypatch):
    monkeypatch.setattr("src.gpt.model.HALVED_FROM", 1)
    model = GPT(vocab_size=11, context_size=8, embedding_size=16, blocks=1)
    loss = model(Tensor([[1, 2], [3, 4]])).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="already used"):
        loss.backward()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_the_copy_of_an_optimizer_shows_the_averages_it_steps_with(copied):
    weight, bias = Tensor([[1.0, 2.0]]), Tensor([3.0])

    def step(optimizer):
        for parameter in optimizer.parameters:
            parameter.grad = np.ones(parameter.shape)
        optimizer.step()

    first = AdamWOptimizer([weight, bias], lr=0.1)
    step(first)
    second = copied(first)
    step(first)
    step(second)
    for name, array in first.state_dict().items():
        np.testing.assert_array_equal(second.state_dict()[name], array, err_msg=name)
    for one, other in zip(first.parameters, second.parameters, strict=True):
        assert one is not other and one.data.tobytes() == other.data.tobytes()


def test_a_step_between_forward_and_backward_is_noticed():
    weight = Tensor([[1.0]])
    weight.grad += np.ones((1, 1))
    loss = (weight * weight).sum()
    AdamWOptimizer([weight]).step()
    with pytest.raises(RuntimeError, match="changed after the forward"):
        loss.backward()


def test_an_update_that_was_replaced_in_the_class_is_used(monkeypatch):
    weight, seen = Tensor([[1.0]]), []
    monkeypatch.setattr(AdamWOptimizer, "update", lambda optimizer, index, parameter: seen.append(index))
    weight.grad += np.ones((1, 1))
    AdamWOptimizer([weight]).step()
    assert seen == [0] and weight.item() == 1.0


def test_an_update_that_was_replaced_is_used():
    weight, seen = Tensor([[1.0]]), []
    optimizer = AdamWOptimizer([weight])
    optimizer.update = lambda index, parameter: seen.append(index)
    weight.grad += np.ones((1, 1))
    optimizer.step()
    assert seen == [0] and weight.item() == 1.0


class NoDropout(Dropout):
    def forward(self, x):
        return x


class Same(Linear):
    def forward(self, x):
        return x


@pytest.mark.parametrize("part", [NoDropout(0.5), Same(1, 1), lambda x: x])
def test_attention_takes_what_stands_for_its_dropout(part):
    attention = GPTAttention(8, heads=2)
    x = Tensor(np.random.default_rng(0).standard_normal((2, 5, 8)))
    expected = attention(x).data
    attention.dropout = part
    np.testing.assert_allclose(attention(x).data, expected, rtol=1e-5, atol=1e-6)


def test_a_gradient_that_is_not_finite_reaches_the_row_of_its_own_id_only(rng):
    ids, grad = Tensor([0, 1, 1]), np.array([[np.inf, 0.0], [1.0, 2.0], [np.nan, 1.0]], np.float32)
    found = []
    for context in (nullcontext(), plain()):
        layer = Embedding(4, 2)
        with context:
            layer(ids).backward(grad)
        found.append(layer.weight.received)
    np.testing.assert_array_equal(found[0], [[np.inf, 0], [np.nan, 3], [0, 0], [0, 0]])
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4)])
def test_a_bias_of_another_shape_gets_the_gradient_of_the_plain_form(shape, rng):
    found = []
    for context in (nullcontext(), plain()):
        layer = Linear(3, 4, generator=np.random.default_rng(0))
        layer.bias = Tensor(np.full(shape, 0.5))
        with context:
            start(layer(Tensor(rng.permuted(np.ones((2, 3)))))).backward()
        found.append(layer.bias.received)
    assert found[0].shape == shape
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_products_are_shared_where_that_is_worth_it(monkeypatch):
    shared = []

    def watched(tasks, work):
        tasks = list(tasks)
        shared.append((len(tasks), work))
        for task in tasks:
            task()

    monkeypatch.setattr("src.core.fast.linear.share", watched)
    x = Tensor(np.ones((300, 8)))
    start(Linear(8, 20)(x)).backward()
    assert not shared
    monkeypatch.setattr(threads, "WORTHWHILE", 1)
    start(Linear(8, 20)(x)).backward()
    assert shared == [(2, 300 * 8 * 20)] * 2 + [(1, 300 * 8 * 20)]  # forward, by x, by the weight
    shared.clear()
    start(Linear(8, 700)(Tensor(np.ones((3, 8))))).backward()
    assert [parts for parts, _ in shared] == [4, 1, 4] and {work for _, work in shared} == {3 * 8 * 700}


def test_attention_takes_so_many_sequences_at_a_time_that_their_weights_fit_a_block(monkeypatch, rng):
    monkeypatch.setattr(threads, "BLOCK", 2 * 4 * 10 * 10)  # weights of two sequences, but numbers of more
    seen = []

    def watched(method):
        return lambda self, *arrays: seen.append(len(arrays[0])) or method(self, *arrays)

    for name in ("forward", "backward"):
        monkeypatch.setattr(attention._Attention, name, watched(getattr(attention._Attention, name)))
    query, key, value = rng.standard_normal((3, 5, 10, 8))
    result, backward = causal_attention(query, key, value, 4)
    backward(result)
    assert sorted(seen) == [1, 1, 2, 2, 2, 2]
