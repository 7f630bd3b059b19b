"""Training and evaluation of any model."""

import json
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
    default_generator,
    seed,
)
from src.core.checkpoint import read_arrays, write_arrays
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


# ---- stopping and going on -------------------------------------------------------------------------------------------

SHUFFLED = {"batch_size": 2, "shuffle": True}  # ten batches an epoch


def run(seed=1, rate=0.5, **settings):
    """A run with everything that a resume has to keep: dropout, averages, a shuffled dataset, two generators."""
    model = Composite([Dropout(rate, np.random.default_rng(seed)), Linear(2, 1)])
    optimizer = AdamWOptimizer(model.parameters, 0.05, betas=(0.8, 0.9))
    return Trainer(model, MSELoss(), optimizer), Pairs(**{**SHUFFLED, **settings})


def bytes_of(trainer):
    arrays = [*trainer.model.state_dict().values(), *trainer.optimizer.state_dict().values()]
    return [array.tobytes() for array in arrays]


SCHEDULE = WarmupCosineScheduler(0.1, 40, 5)


@pytest.mark.parametrize("stops", [(5, 5), (3, 7), (10,), (1,) * 10, (10, 0)])
def test_an_epoch_in_parts_is_an_epoch(stops):
    seed(5)
    trainer, data = run()
    expected = trainer.train(data, 1, max_steps=10) + trainer.train(data, 1, max_steps=4)
    seed(5)
    other, data = run()
    parts = [loss for steps in stops for loss in other.train(data, 1, max_steps=steps)]
    assert parts + other.train(data, 1, max_steps=4) == expected
    assert bytes_of(other) == bytes_of(trainer)


def test_an_unfinished_epoch_counts_as_one():
    trainer, data = run()
    trainer.train(data, 2, max_steps=13)
    assert len(trainer.train(data, 1)) == 7
    assert len(trainer.train(data, 1)) == 10


def test_another_order_drawn_meanwhile_does_not_disturb_the_epoch():
    seen = []

    class Recorder(Linear):
        def forward(self, x):
            seen.extend(x.data[:, 0].tolist())
            return super().forward(x)

    model = Recorder(2, 1)
    trainer, data = Trainer(model, MSELoss(), SGDOptimizer(model.parameters, 0.1)), Pairs(**SHUFFLED)
    trainer.train(data, 1, max_steps=4)
    data.train()
    data.eval()
    trainer.train(data, 1)
    assert len(seen) == 20 and len(set(seen)) == 20


def test_another_dataset_and_another_trainer_begin_at_the_beginning():
    trainer, data = run()
    trainer.train(data, 1, max_steps=4)
    assert len(trainer.train(Pairs(**SHUFFLED), 1)) == 10
    assert len(run()[0].train(data, 1)) == 10


def test_no_order_is_drawn_for_an_epoch_that_does_not_begin():
    trainer, data = run(rate=0.0)
    seed(5)
    trainer.train(data, 3, max_steps=10)
    after = default_generator().bit_generator.state
    seed(5)
    trainer.train(data, 1)
    assert default_generator().bit_generator.state == after


@pytest.mark.parametrize("steps", [0, 4, 10, 13, 20])
@pytest.mark.parametrize("order", ["shuffled", "shuffled by its own generator", "kept"])
def test_a_saved_run_goes_on_to_the_same_bytes(steps, order, tmp_path):
    def build(number):
        own = np.random.default_rng(number) if "own" in order else None
        return run(number, shuffle=order != "kept", generator=own)

    seed(5)
    whole, data = build(1)
    expected = whole.train(data, 3, SCHEDULE, max_steps=steps) + whole.train(data, 2, SCHEDULE, max_steps=15)
    seed(5)
    first, data = build(1)
    losses = first.train(data, 3, SCHEDULE, max_steps=steps)
    first.save(tmp_path / "run", data, {"note": "Füße"})
    first.train(data, 1)
    seed(99)
    second, data = build(2)
    second.train(data, 1, max_steps=3)
    second.optimizer.betas = (0.1, 0.1)
    assert second.load(tmp_path / "run", data) == {"note": "Füße"}
    assert losses + second.train(data, 2, SCHEDULE, max_steps=15) == expected
    assert bytes_of(second) == bytes_of(whole) and second.steps == whole.steps


def saved_notes(path):
    return json.loads(read_arrays(path)[1]["metadata"])


DAMAGED = {
    "no run": (lambda n: n.pop("run"), "holds no training run"),
    "a run without order": (lambda n: n["run"].pop("order"), "holds no training run"),
    "steps": (lambda n: n["run"].update(steps=-1), "counted from 0"),
    "steps with a fraction": (lambda n: n["run"].update(steps=1.5), "counted from 0"),
    "position": (lambda n: n["run"].update(position=-1), "counted from 0"),
    "an order too short": (lambda n: n["run"]["order"].pop(), "its order is none of 20 pairs"),
    "an order with a pair twice": (lambda n: n["run"]["order"].__setitem__(0, n["run"]["order"][1]), "order is none"),
    "an order of text": (lambda n: n["run"].update(order=["a"] * 20), "order is none"),
    "an order of truths": (lambda n: n["run"].update(order=True), "order is none"),
    "a generator too few": (lambda n: n["run"]["generators"].pop(), "does not have 2 random generators"),
    "a generator that is text": (lambda n: n["run"].update(generators=["a", "b"]), "state of str"),
    "other data": (lambda n: n["run"]["data"].update(pairs=21), "'pairs': 21.*'pairs': 20"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_run_that_does_not_fit_is_refused_and_changes_nothing(name, tmp_path):
    change, message = DAMAGED[name]
    trainer, data = run()
    trainer.train(data, 1, max_steps=4)
    trainer.save(tmp_path / "run", data)
    arrays, _ = read_arrays(tmp_path / "run")
    notes = saved_notes(tmp_path / "run")
    change(notes)
    write_arrays(tmp_path / "run", arrays, {"metadata": json.dumps(notes)})
    other, data = run(seed=2)
    before, random = bytes_of(other), default_generator().bit_generator.state
    with pytest.raises(ValueError, match=message):
        other.load(tmp_path / "run", data)
    assert bytes_of(other) == before and (other.steps, other.position) == (0, 0)
    assert default_generator().bit_generator.state == random


@pytest.mark.parametrize("setting", [{"batch_size": 4}, {"shuffle": False}, {"drop_last": False}])
def test_a_run_on_other_batches_is_refused(setting, tmp_path):
    trainer, data = run()
    trainer.save(tmp_path / "run", data)
    other, data = run(**setting)
    with pytest.raises(ValueError, match="was trained on data with"):
        other.load(tmp_path / "run", data)


# ---- a model that was changed ----------------------------------------------------------------------------------------


def test_an_optimizer_of_parameters_that_the_model_does_not_have_is_refused():
    model = Composite([Linear(2, 2), Linear(2, 1)])
    optimizer = SGDOptimizer(model.parameters, 0.1)
    trainer = Trainer(model, MSELoss(), optimizer)
    model.layers[0].weight = Tensor(np.ones((2, 2)))
    for use in (lambda: trainer.train(Pairs(5), 1), lambda: Trainer(model, MSELoss(), optimizer)):
        with pytest.raises(ValueError, match=r"the optimizer changes layers\.0\.weight, which the model does not have"):
            use()
    Trainer(model, MSELoss(), SGDOptimizer(model.layers[1].parameters, 0.1))  # a part of them is allowed


class Parts(Composite):
    def __init__(self):
        self.first, self.second = Linear(2, 2), Linear(2, 1)
        super().__init__([self.first, self.second])

    def forward(self, x):
        return self.second(self.first(x))


def test_a_part_that_was_replaced_after_the_optimizer_was_built_is_noticed():
    model = Parts()
    trainer = Trainer(model, MSELoss(), SGDOptimizer(model.parameters, 0.1))
    model.second = Linear(2, 1)
    with pytest.raises(ValueError, match=r"second\.weight, second\.bias, which the model does not have"):
        trainer.train(Pairs(5), 1)


def test_a_batch_whose_step_was_interrupted_is_taken_again(monkeypatch):
    trainer, data, seen = build(), Pairs(5), []
    step = trainer.train_step

    def interrupted_once(feature, label, scheduler=None):
        seen.append(feature.data.copy())
        if len(seen) == 2:
            raise KeyboardInterrupt
        return step(feature, label, scheduler)

    monkeypatch.setattr(trainer, "train_step", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        trainer.train(data, 1)
    assert len(trainer.train(data, 1)) == 3
    np.testing.assert_array_equal(np.concatenate([seen[0], *seen[2:]]), data.train_data[0].astype(np.float32))


def test_a_negative_number_of_steps_is_refused():
    with pytest.raises(ValueError, match="max_steps must be zero or more, got -1"):
        build().train(Pairs(5), 1, max_steps=-1)


def test_evaluation_leaves_out_the_rest_that_drop_last_leaves_out():
    trainer, data = build(), Pairs(2)
    x, y = data.test_data
    expected = np.mean((x[:4] @ trainer.model.layers[1].weight.data - y[:4]) ** 2)
    assert trainer.evaluate(data) == pytest.approx(expected, rel=1e-5)


def test_a_step_that_was_taken_is_not_taken_again(tmp_path):
    """A step of one's own may save, or stop, after the usual one."""
    saved, runs = tmp_path / "run", []
    for stop in (False, True):
        seed(0)
        trainer, data = build(), Pairs(5)
        usual, losses = trainer.train_step, []

        def step(feature, label, scheduler=None, trainer=trainer, data=data, usual=usual, stop=stop, losses=losses):
            losses.append(usual(feature, label, scheduler))
            if trainer.steps == 2:
                trainer.save(saved, data)
                if stop:
                    raise KeyboardInterrupt
            return losses[-1]

        trainer.train_step = step
        if stop:
            with pytest.raises(KeyboardInterrupt):
                trainer.train(data, 1)
        trainer.train(data, 1)
        runs.append(losses)
    assert len(runs[0]) == 4 and runs[0] == runs[1]
    again = build()
    again.load(saved, data)
    assert again.train(data, 1) == runs[0][2:]
