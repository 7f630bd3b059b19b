"""The stored runs of the page on rotary positions are whole, and what was measured beyond the trained length is so."""

from dataclasses import asdict

import numpy as np
import pytest

from src.core import AdamWOptimizer, Tensor
from src.course.corpora import corpus_path
from src.course.experiments import ch08
from src.course.experiments.rotary_positions import (
    GROUP,
    NAME,
    NEAR,
    PLACES,
    SEEDS,
    VARIANTS,
    NearRotary,
    losses_by_place,
)
from src.course.runs import Run, Setup, load_runs
from src.gpt import CharDataset, GPTLoss, GPTTrainer, RotaryAttention


def test_stored_runs_are_complete_and_of_this_setup():
    stored = load_runs(NAME)
    assert stored["setup"] == asdict(Setup()) and stored["variants"].keys() == VARIANTS.keys()
    for runs in stored["variants"].values():
        assert tuple(runs["seeds"]) == SEEDS and len(runs["test_loss"]) == len(SEEDS)
        assert all(len(losses) == Setup().steps // 10 for losses in runs["losses"])
        assert all(len(losses) == PLACES // GROUP for losses in runs["by_place"])
        for loss, places in zip(runs["test_loss"], runs["by_place"], strict=True):
            assert np.mean(places[: NEAR // GROUP]) == pytest.approx(loss, abs=0.01)  # the trained length


def test_more_room_changes_nothing_where_no_table_is_drawn():
    longer, stored = load_runs(NAME)["variants"], load_runs(ch08.EXPERIMENTS[0].name)["variants"]
    for name in ("none", "waves, small", "rotary"):
        assert longer[name]["test_loss"] == pytest.approx(stored[name]["test_loss"], abs=1e-3)
    assert longer["rotary, 32 keys"]["test_loss"] == pytest.approx(longer["rotary"]["test_loss"], abs=1e-3)


def test_a_token_of_near_rotary_sees_the_last_32_only():
    near, whole = NearRotary(8, heads=2), RotaryAttention(8, heads=2)
    whole.load_state_dict(near.state_dict())
    x = np.random.default_rng(0).standard_normal((1, NEAR + 3, 8))
    changed = x.copy()
    changed[0, 2] += 1
    with Tensor.no_grad():
        a, b, c = near(Tensor(x)).data[0], whole(Tensor(x)).data[0], near(Tensor(changed)).data[0]
    np.testing.assert_allclose(a[:NEAR], b[:NEAR], atol=1e-5)
    assert np.abs(a[NEAR:] - b[NEAR:]).max() > 1e-3
    moved = np.abs(a - c).max(axis=1) > 0
    assert moved.tolist() == [2 <= t < 2 + NEAR for t in range(NEAR + 3)]


def test_losses_by_place_are_those_of_the_windows_one_by_one(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(corpus_path("shakespeare").read_text(encoding="utf-8")[:8000], encoding="utf-8")
    data = CharDataset(path, 4, 32, 16)
    model = VARIANTS["none"](data.vocab_size, 32, 8, 1)
    run = Run(0, [], None, GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters)), data)
    tokens = data.tokens[int(len(data.tokens) * 0.9) :]
    starts, wanted = range(0, len(tokens) - PLACES, NEAR), []
    for first in range(0, PLACES, GROUP):
        part = slice(first, first + GROUP)
        losses = [
            GPTLoss()(model(Tensor(tokens[n : n + PLACES][None]))[:, part], Tensor(tokens[n + 1 :][None, part])).item()
            for n in starts
        ]
        wanted.append(np.mean(losses))
    assert losses_by_place(run) == pytest.approx(wanted, abs=2e-4)
