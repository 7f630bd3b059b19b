"""A faster recipe, the page beside chapter 10: Muon against AdamW, with all else equal.

python -m src.course.experiments.faster_recipe     # trains what is missing, and stores it in data/runs/ch10
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from src.core import AdamWOptimizer, MuonOptimizer, Optimizer, WarmupCosineScheduler, WarmupLinearScheduler, seed
from src.core.checkpoint import write_atomically
from src.course.experiments import ch10
from src.course.runs import EVERY, FOLDER, Setup, load_runs
from src.gpt import GPT, GPTLoss, GPTTrainer, TokenDataset

SEEDS = (0, 1, 2)
RATES = (0.001, 0.004, 0.016, 0.064)  # tried in short runs on the validation text, as chapter 10 tried those of AdamW


@dataclass(frozen=True)
class Recipe:
    """What differs between two trainings of the GPT of all comparisons: optimizer and schedule."""

    muon: bool = True  # for the matrices of the blocks; False: AdamW for all
    lr: float = 0.016  # the best of RATES
    linear: bool = False  # a line down to 0 after the warm-up; False: half a cosine down to a tenth
    steps: int = 2000

    @property
    def setup(self) -> Setup:
        return Setup(lr=self.lr, min_lr=self.lr / 10, steps=self.steps)


RECIPES = {
    "AdamW 0.004, linear": Recipe(muon=False, lr=0.004, linear=True),
    "AdamW 0.004, 2,925 steps": Recipe(muon=False, lr=0.004, steps=2925),  # as many multiplications as Muon's 2,000
    "Muon 0.004": Recipe(lr=0.004),
    "Muon 0.016": Recipe(),
    "Muon 0.016, linear": Recipe(linear=True),
}


def choose_optimizer(model: GPT, muon: bool, lr: float) -> Optimizer:
    """AdamW as the chapters use it, or Muon with that AdamW for the rest."""
    if not muon:
        return AdamWOptimizer(model.parameters, lr)
    return MuonOptimizer(model.parameters, model.block_matrices(), lr, betas=(0.9, 0.999))


def build(recipe: Recipe, number: int) -> tuple[TokenDataset, GPTTrainer, WarmupCosineScheduler]:
    """Text, trainer and schedule of a recipe, from seed `number`."""
    seed(number)
    setup = recipe.setup
    dataset = setup.dataset()
    model = GPT(dataset.vocab_size, setup.context_size, setup.embedding_size, setup.blocks)
    trainer = GPTTrainer(model, GPTLoss(), choose_optimizer(model, recipe.muon, recipe.lr))
    kind = WarmupLinearScheduler if recipe.linear else WarmupCosineScheduler
    return dataset, trainer, kind(recipe.lr, setup.steps, setup.warmup_steps, 0.0 if recipe.linear else setup.min_lr)


def validation_loss(lr: float, number: int) -> float:
    """Of Muon after the 600 steps in which chapter 10 tried rates of AdamW, on the same validation windows."""
    plan = ch10.Plan(lr=lr)
    dataset, trainer, schedule = ch10.build(plan, number)
    trainer.optimizer = choose_optimizer(trainer.model, True, lr)
    trainer.train(dataset, 1, schedule, max_steps=plan.steps)
    return trainer.evaluate(dataset.sample(training=False))


def load() -> dict[str, Any]:
    """The stored runs: "rates", of each rate its validation losses, and "variants", of each recipe its runs."""
    return load_runs("ch10/muon")


def make() -> None:
    """Train what is missing, one run after the other; each is stored when it is done."""
    old = load() if (FOLDER / "ch10" / "muon.json").exists() else {"rates": {}, "variants": {}}
    record: dict[str, Any] = {"rates": {str(lr): old["rates"].get(str(lr), []) for lr in RATES}, "variants": {}}
    record["variants"] = {name: runs for name, runs in old["variants"].items() if name in RECIPES}
    for lr in RATES:
        losses = record["rates"][str(lr)]
        for number in SEEDS[len(losses) :]:
            losses.append(round(validation_loss(lr, number), 4))
            print(f"rate {lr}, seed {number}: {losses[-1]:.4f}", flush=True)
            _write(record)
    for name, recipe in RECIPES.items():
        runs = record["variants"].setdefault(name, {"seeds": [], "test_loss": [], "losses": []})
        for number in SEEDS[len(runs["seeds"]) :]:
            dataset, trainer, schedule = build(recipe, number)
            losses = trainer.train(dataset, recipe.setup.steps, schedule, max_steps=recipe.setup.steps)
            runs["seeds"].append(number)
            runs["test_loss"].append(round(trainer.evaluate(dataset), 6))
            runs["losses"].append([round(loss, 5) for loss in losses[::EVERY]])
            print(f"{name}, seed {number}: {runs['test_loss'][-1]:.4f}", flush=True)
            _write(record)


def _write(record: dict[str, Any]) -> None:
    text = json.dumps({"command": "python -m src.course.experiments.faster_recipe"} | record, indent=1)
    text = re.sub(r"\[([^\[\]{}]*)\]", lambda found: f"[{' '.join(found[1].split())}]", text)  # a list a line
    write_atomically(FOLDER / "ch10" / "muon.json", (text + "\n").encode())


if __name__ == "__main__":
    make()
