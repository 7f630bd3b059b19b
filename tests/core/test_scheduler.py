"""The learning rate over time."""

import math

import pytest

from src.core import WarmupCosineScheduler, WarmupLinearScheduler


def test_the_whole_course_of_a_small_schedule():
    scheduler = WarmupCosineScheduler(lr=1.0, total_steps=6, warmup_steps=2, min_lr=0.2)
    falling = [0.2 + 0.4 * (1 + math.cos(math.pi * part / 4)) for part in range(5)]
    expected = [0.5, 1.0, *falling, 0.2, 0.2]
    assert [scheduler.step(n) for n in range(9)] == pytest.approx(expected, rel=1e-12)


def test_without_warm_up_it_starts_at_the_top_and_ends_at_zero():
    scheduler = WarmupCosineScheduler(0.1, 10, 0)
    assert scheduler.step(0) == 0.1
    assert scheduler.step(10) == scheduler.step(10**9) == 0.0


def test_equal_rates_stay_equal():
    scheduler = WarmupCosineScheduler(0.1, 10, 3, min_lr=0.1)
    assert {scheduler.step(n) for n in range(3, 20)} == {0.1}


def test_a_step_has_one_rate_whatever_was_asked_before():
    scheduler = WarmupCosineScheduler(0.1, 10, 3)
    assert [scheduler.step(n) for n in (7, 2, 7)] == [scheduler.step(7), scheduler.step(2), scheduler.step(7)]


@pytest.mark.parametrize("lr, warmup", [(0.1, 3), (0.3, 10), (0.7, 49), (1e-3, 100)])
def test_no_rounding_lifts_a_rate_above_the_top(lr, warmup):
    scheduler = WarmupCosineScheduler(lr, 1000, warmup)
    assert max(scheduler.step(n) for n in range(warmup)) == lr == scheduler.step(warmup - 1)


@pytest.mark.parametrize("kind", [WarmupCosineScheduler, WarmupLinearScheduler])
def test_no_rounding_lifts_a_rate_above_the_top_where_the_fall_begins(kind):
    for percent in range(1, 100):
        scheduler = kind(lr=0.3, total_steps=5, warmup_steps=0, min_lr=0.3 * percent / 100)
        assert scheduler.step(0) <= 0.3, percent
