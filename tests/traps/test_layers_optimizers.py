"""Known traps of small engines: layers, parameters, optimizers, schedules."""

import math

import numpy as np
import pytest

from src.core import (
    AdamWOptimizer,
    Composite,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    Tensor,
    WarmupCosineScheduler,
    load_checkpoint,
    save_checkpoint,
)
from src.core.checkpoint import read_arrays
from src.gpt import GPT, BareTransformer, GPTLoss, PositionalEncoding

SIZES = {"vocab_size": 65, "context_size": 8, "embedding_size": 12, "blocks": 2, "heads": 2}
MODELS = {
    "default": {},
    "tied": {"tied": True},
    "with dropout": {"dropout": 0.5},
    "bare": {"block": BareTransformer, "normalization": None, "std": None},
    "sinusoidal": {"positions": PositionalEncoding},
    "without positions": {"positions": None},
}


def reachable(item, seen=None):
    """Every layer and tensor that attributes, lists and dictionaries lead to, found without the engine's own walk."""
    seen = {} if seen is None else seen
    if id(item) in seen or not isinstance(item, Layer | Tensor | list | tuple | dict):
        return seen
    seen[id(item)] = item
    if not isinstance(item, Tensor):
        inside = vars(item) if isinstance(item, Layer) else item
        for value in inside.values() if isinstance(inside, dict) else inside:
            reachable(value, seen)
    return seen


def one_step(gradients, decay=0.0, theta=1.0, shape=(1, 1), lr=0.01):
    x = Tensor(np.full(shape, theta))
    optimizer = AdamWOptimizer([x], lr=lr, weight_decay=decay)
    values = []
    for gradient in gradients:
        optimizer.zero_grad()
        x.grad += np.full(shape, gradient)
        optimizer.step()
        values.append(x.item())
    return values


def test_t37_a_repeated_id_counts_every_time():
    layer = Embedding(3, 2)
    layer(Tensor([0, 0, 1])).sum().backward()
    np.testing.assert_array_equal(layer.weight.grad, [[2.0, 2.0], [1.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize("name", MODELS)
def test_t38_every_tensor_and_every_dropout_is_found(name):
    model = GPT(**SIZES, **MODELS[name])
    everything = reachable(model).values()
    tensors = [item for item in everything if isinstance(item, Tensor)]
    assert {id(tensor) for tensor in tensors} == {id(tensor) for tensor in model.parameters}
    assert len(model.parameters) == len(tensors) > 0
    drops = [item for item in everything if isinstance(item, Dropout)]
    assert len(drops) >= 4
    model.eval()
    assert not any(drop.training for drop in drops)
    model.train()
    assert all(drop.training for drop in drops)


def test_t38_a_forgotten_layer_is_an_error():
    class Forgetful(Composite):
        def __init__(self):
            self.first, self.second = Linear(2, 2), Linear(2, 2)
            super().__init__([self.first])

    with pytest.raises(ValueError, match="add second"):
        Forgetful()


def test_t39_tied_weights_start_small_and_the_first_loss_is_ln_v(rng):
    model = GPT(**SIZES, tied=True)
    assert model.embedding.token.weight is model.output.weight
    assert model.output.weight.data.std() == pytest.approx(0.02, rel=0.1)
    x, y = (Tensor(rng.integers(0, 65, (16, 8))) for _ in range(2))
    assert GPTLoss()(model(x), y).item() == pytest.approx(math.log(65), abs=0.1)


def test_t40_loading_keeps_ties_and_a_tie_is_stored_once(tmp_path):
    first, second = GPT(**SIZES, tied=True), GPT(**SIZES, tied=True)
    save_checkpoint(tmp_path / "gpt", first)
    load_checkpoint(tmp_path / "gpt", second)
    assert second.embedding.token.weight is second.output.weight
    shapes = [array.shape for array in read_arrays(tmp_path / "gpt")[0].values()]
    assert shapes.count((65, 12)) == 1 and (12, 65) not in shapes
    np.testing.assert_array_equal(second.output.weight.data, first.embedding.token.weight.data)


def test_t40_a_tied_weight_is_stepped_once(rng):
    model = GPT(**SIZES, tied=True)
    x = Tensor(rng.integers(0, 65, (2, 8)))
    before = model.output.weight.data.copy()
    GPTLoss()(model(x), x).backward()
    AdamWOptimizer(model.parameters, lr=0.01, weight_decay=0.0).step()
    assert np.abs(model.output.weight.data - before).max() == pytest.approx(0.01, rel=1e-3)  # Adam's first step is lr


def test_t41_t42_adamw_decays_apart_from_the_gradient_and_before_the_step():
    values = one_step([0.1, -0.3, 0.2], decay=0.1)
    np.testing.assert_allclose(values, [0.98900, 0.99295, 0.99177], atol=5e-6)
    assert one_step([0.1], decay=0.5, lr=0.5)[0] == pytest.approx(
        0.25, rel=1e-5
    )  # 1 * 0.75 - 0.5, not (1 - 0.5) * 0.75


def test_t43_the_decay_shrinks():
    assert one_step([0.0], decay=0.1)[0] == pytest.approx(0.999, rel=1e-6)
    assert one_step([0.0], decay=0.1, theta=-1.0)[0] == pytest.approx(-0.999, rel=1e-6)


def test_t44_the_averages_are_corrected_for_their_start():
    assert one_step([0.1])[0] == pytest.approx(0.99, rel=1e-6)  # without the correction 0.96838


def test_t45_a_zero_gradient_moves_nothing():
    assert one_step([0.0, 0.0], shape=(1,)) == [1.0, 1.0]


def test_t46_biases_and_gains_do_not_decay_but_tables_do():
    layers = [Linear(3, 2), LayerNorm(2), Embedding(4, 2)]
    model = Composite(layers)
    layers[0].bias.data = [1.0, 2.0]
    before = model.state_dict()
    for parameter in model.parameters:
        parameter.grad += np.zeros(parameter.shape)
    AdamWOptimizer(model.parameters, lr=0.1, weight_decay=0.5).step()
    shrunk = {name for name, values in model.state_dict().items() if not np.array_equal(values, before[name])}
    assert shrunk == {"layers.0.weight", "layers.2.weight"}


def test_t48_nothing_is_dropped_in_evaluation(rng):
    model, x = GPT(**SIZES, dropout=0.5), Tensor(rng.integers(0, 65, (2, 8)))
    assert model(x).data.tobytes() != model(x).data.tobytes()
    model.eval()
    assert model(x).data.tobytes() == model(x).data.tobytes()


def test_t49_the_first_step_has_a_learning_rate():
    scheduler = WarmupCosineScheduler(1e-3, 100, 10, 1e-4)
    steps = (0, 9, 10, 55, 99, 100, 1000)
    expected = [1e-4, 1e-3, 1e-3, 5.5e-4, 1.00274e-4, 1e-4, 1e-4]
    np.testing.assert_allclose([scheduler.step(n) for n in steps], expected, rtol=1e-5)


@pytest.mark.parametrize("warmup", [0, 1, 10, 99])
def test_t50_the_rate_never_exceeds_its_top_and_never_rises_again(warmup):
    scheduler = WarmupCosineScheduler(1e-3, 100, warmup, 1e-4)
    rates = [scheduler.step(n) for n in range(300)]
    assert max(rates) == 1e-3
    assert all(later <= earlier for earlier, later in zip(rates[warmup:], rates[warmup + 1 :], strict=False))
    assert rates[100:] == [1e-4] * 200
    with pytest.raises(ValueError, match="100 of 100"):
        WarmupCosineScheduler(1e-3, 100, 100)


def test_gradients_accumulate_over_micro_batches_by_their_targets():
    """T53's sister in training: the mean of means weighs 1 target like 3."""
    logits, targets = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 0.0]]), [1, 0, 0, 1]
    whole, parts = Tensor(logits), Tensor(logits)
    loss = CrossEntropyLoss()
    loss(whole, targets).backward()
    for rows in (slice(0, 1), slice(1, 4)):
        part = targets[rows]
        (loss(parts[rows], part) * (len(part) / len(targets))).backward()
    np.testing.assert_allclose(parts.grad, whole.grad, rtol=1e-6)
