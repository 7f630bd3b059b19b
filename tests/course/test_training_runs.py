"""What chapter 10 stores of its runs is what its plans say, and its three texts do not overlap."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from src.course.experiments import ch10
from src.course.experiments.ch10 import PLANS, SEEDS, Plan, ThreeParts, build, load, log_curves, train
from src.course.runs import EVERY, load_runs
from src.gpt.settings import read_settings, settings_from


@pytest.mark.parametrize("name", PLANS)
def test_stored_runs_are_complete_and_of_these_plans(name):
    stored = load(name)
    assert stored.keys() == PLANS[name].keys()
    for variant, plan in PLANS[name].items():
        runs = stored[variant]
        assert runs["plan"] == asdict(plan) and tuple(runs["seeds"]) == SEEDS
        assert all(len(losses) == -(-plan.steps // EVERY) for losses in runs["losses"])
        steps = list(range(0, plan.steps + 1, plan.measured_every))
        assert len(runs["curve"]) == len(SEEDS)
        assert all([point[0] for point in curve] == steps for curve in runs["curve"])


def test_the_stored_log_is_of_the_configuration():
    real = load_runs("ch10/nano")
    stored = settings_from(real["settings"])  # a setting that came later has its default there
    settings = read_settings(ch10.NANO)
    assert stored.text == replace(settings.text, file="shakespeare.txt")
    assert (stored.model, stored.training) == (settings.model, settings.training)
    assert [row["step"] for row in real["log"]] == list(range(0, 2001, 250)) and len(real["losses"]) == 100


def test_training_and_validation_text_do_not_overlap_and_leave_the_test_part_alone():
    data = ThreeParts(Plan())
    boundary, end = int(0.8 * len(data.tokens)), int(0.9 * len(data.tokens))
    for (x, y), start, stop in ((data.train_data, 0, boundary), (data.test_data, boundary, end)):
        assert (x[0] == data.tokens[start : start + 32]).all()
        last = start + 32 * (len(x) - 1)
        assert (y[-1] == data.tokens[last + 1 : last + 33]).all() and last + 33 <= stop


def test_a_small_text_is_the_beginning_of_the_training_text():
    data = ThreeParts(Plan(characters=1000))
    assert len(data.train_data[0]) == 31 and (data.train_data[1][-1] == data.tokens[961:993]).all()


def test_clipping_can_be_left_out():
    norms = {}
    for clipped in (True, False):
        data, trainer, _ = build(Plan(clipped=clipped), 0)
        trainer.loss_fn(trainer.model(data[0][0]), data[0][1]).backward()
        before = trainer.optimizer.clip_grad_norm(0.001)
        after = np.sqrt(sum(float((tensor.grad**2).sum()) for tensor in trainer.model.parameters))
        norms[clipped] = after / before
    assert norms[True] < 0.01 and norms[False] == pytest.approx(1.0, rel=1e-4)


def test_a_curve_begins_at_step_0_and_measures_both_texts():
    plan = replace(PLANS["dropout"]["dropout 0.1"], measured_every=2)
    run = train(plan, steps=4)
    assert [step for step, _, _ in run.curve] == [0, 2, 4] and len(run.losses) == 4
    stored = load("dropout")["dropout 0.1"]["curve"][0][0]
    assert run.curve[0] == pytest.approx(tuple(stored), abs=1e-3)


def test_two_curves_of_a_log():
    log = [
        {"step": 0, "training_loss": None, "test_loss": 4.0},
        {"step": 5, "training_loss": 3.0, "test_loss": 2.0},
    ]
    assert list(log_curves(log).values()) == [([5], [3.0]), ([0, 5], [4.0, 2.0])]
