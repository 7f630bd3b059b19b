"""Training and evaluation of any model."""

import math

import numpy as np
import pytest

from src.core import (
    AdamWOptimizer,
    Composite,
    CrossEntropyLoss,
    Dataset,
    Dropout,
    Linear,
    MSELoss,
    SGDOptimizer,
    Tensor,
    Trainer,
    WarmupCosineScheduler,
)
from src.core.trainer import evaluating


class Pairs(Dataset):
    """y = x @ [1, -2] for 20 training and 5 test rows."""

    def load(self):
        x = np.random.default_rng(2).standard_normal((25, 2))
        y = x @ [[1.0], [-2.0]]
        self.train_data, self.test_data = (x[:20], y[:20]), (x[20:], y[20:])


def build(rate=0.0, lr=0.1):
    model = Composite([Dropout(rate), Linear(2, 1)])
    return Trainer(model, MSELoss(), SGDOptimizer(model.parameters, lr))


def test_training_finds_the_line_and_returns_every_loss():
    trainer, data = build(), Pairs(5)
    losses = trainer.train(data, epochs=60)
    assert len(losses) == trainer.steps == 240
    assert losses[-1] < 1e-4 < losses[0]
    np.testing.assert_allclose(trainer.model.layers[1].weight.data, [[1.0], [-2.0]], atol=0.01)


def test_one_step_is_clip_then_move():
    trainer = build(lr=0.5)
    weight, bias = trainer.model.parameters
    weight.data, bias.data = [[0.0], [0.0]], [0.0]
    loss = trainer.train_step(Tensor([[3.0, 4.0]]), Tensor([[10.0]]))
    assert loss == 100.0  # before the update
    gradient = np.array([-60.0, -80.0, -20.0])
    moved = -0.5 * gradient / np.linalg.norm(gradient)
    np.testing.assert_allclose([*weight.data[:, 0], bias.data[0]], moved, rtol=1e-6)


def test_the_schedule_is_counted_over_all_calls():
    trainer, data = build(), Pairs(5)
    scheduler = WarmupCosineScheduler(1.0, total_steps=100, warmup_steps=10)
    trainer.train(data, 1, scheduler)
    assert trainer.optimizer.lr == scheduler.step(3)
    trainer.train(data, 5, scheduler, max_steps=3)
    assert trainer.steps == 7 and trainer.optimizer.lr == scheduler.step(6)


@pytest.mark.parametrize("epochs, max_steps, steps", [(0, None, 0), (2, None, 8), (3, 5, 5), (1, 0, 0), (1, 100, 4)])
def test_how_long_it_trains(epochs, max_steps, steps):
    trainer = build()
    assert len(trainer.train(Pairs(5), epochs, max_steps=max_steps)) == trainer.steps == steps


def test_training_switches_model_and_dataset_to_training():
    trainer, data = build(0.5), Pairs(5)
    trainer.model.eval()
    data.eval()
    trainer.train(data, 1)
    assert trainer.model.training and trainer.model.layers[0].training and data.training


def test_each_epoch_draws_a_new_order():
    class Recorder(Linear):
        def forward(self, x):
            seen.append(x.data[:, 0].tolist())
            return super().forward(x)

    seen = []
    model = Recorder(2, 1)
    Trainer(model, MSELoss(), SGDOptimizer(model.parameters, 0.1)).train(Pairs(5, shuffle=True), 2)
    first, second = np.ravel(seen[:4]), np.ravel(seen[4:])
    assert (first != second).any() and sorted(first) == sorted(second)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 64])
def test_evaluation_does_not_depend_on_the_batch_size(batch_size):
    trainer, data = build(), Pairs(batch_size, drop_last=False)
    x, y = data.test_data
    expected = np.mean((x @ trainer.model.layers[1].weight.data - y) ** 2)
    assert trainer.evaluate(data) == pytest.approx(expected, rel=1e-5)
    predictions, loss = trainer.test(data)
    assert loss == trainer.evaluate(data)
    assert [p.shape[0] for p in predictions] == [len(f.data) for f, _ in data.eval()]


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_evaluation_weighs_by_the_targets_that_count(batch_size):
    class Labels(Dataset):
        def load(self):
            self.train_data = self.test_data = (
                [[0, 9, 0, 0], [0, 9, 0, 0], [9, 0, 0, 0], [0, 9, 0, 0]],
                [-1, -1, 1, 0],
            )

    class Same(Linear):
        def forward(self, x):
            return x * 1.0

    model = Same(1, 1)
    trainer = Trainer(model, CrossEntropyLoss(ignore_index=-1), SGDOptimizer(model.parameters, 0.1))
    expected = math.log(math.exp(9) + 3)  # both targets that count are the small logit
    assert trainer.evaluate(Labels(batch_size)) == pytest.approx(expected, rel=1e-6)


def test_nothing_to_count_is_zero():
    class Labels(Dataset):
        def load(self):
            self.train_data = self.test_data = (np.ones((2, 3)), [-1, -1])

    model = Linear(3, 3)
    trainer = Trainer(model, CrossEntropyLoss(ignore_index=-1), SGDOptimizer(model.parameters, 0.1))
    assert trainer.evaluate(Labels(2)) == 0.0


@pytest.mark.parametrize("training", [True, False])
def test_modes_are_as_before_after_an_evaluation_and_after_an_error(training):
    trainer, data = build(0.5), Pairs(5)
    drop, linear = trainer.model.layers
    drop.training, linear.training, data.training = training, not training, training
    trainer.test(data)
    trainer.evaluate(data)
    with pytest.raises(KeyError), evaluating(trainer.model, data):
        assert not drop.training and not data.training
        assert not (Tensor([1.0]) * 2).differentiable
        raise KeyError
    assert (drop.training, linear.training, data.training) == (training, not training, training)
    assert (Tensor([1.0]) * 2).differentiable


def test_evaluating_without_a_dataset():
    model = Dropout(0.5)
    with evaluating(model):
        assert not model.training
    assert model.training


def test_evaluation_does_not_drop_and_leaves_no_graph():
    trainer, data = build(0.9), Pairs(5)
    first, second = trainer.test(data), trainer.test(data)
    assert first[1] == second[1]
    assert not first[0][0].differentiable
    assert not any(parameter.has_grad for parameter in trainer.model.parameters)


def test_adamw_trains_it_too():
    model = Linear(2, 1)
    trainer = Trainer(model, MSELoss(), AdamWOptimizer(model.parameters, 0.05))
    trainer.train(Pairs(5), epochs=60)
    assert trainer.evaluate(Pairs(5)) < 0.01
