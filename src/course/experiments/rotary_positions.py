"""Rotary positions, the page beside chapter 8: what happens beyond the trained length.

python -m src.course.experiments.rotary_positions     # trains what is missing, and stores it in data/runs/ch08
python -m src.course runs 8                           # trains "rotary" for the comparison at the trained length
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, cast

import numpy as np

from src.core import Tensor, scaled_dot_product_attention
from src.core.checkpoint import write_atomically
from src.course.experiments.ch08 import SmallWaves
from src.course.ladder import split_tokens
from src.course.runs import EVERY, FOLDER, Run, Setup, load_runs, train
from src.gpt import GPT, CharDataset, GPTLoss, LearnedPositions, RotaryAttention

NAME = "ch08/longer"
SEEDS = (0, 1, 2)
PLACES = 128  # what the models have room for
NEAR = 32  # tokens in the windows that they are trained on
GROUP = 8  # places whose losses are stored as one mean


def with_room(vocab_size: int, context_size: int, embedding_size: int, blocks: int, **options: Any) -> GPT:
    """The GPT of all comparisons, with room for PLACES tokens."""
    return GPT(vocab_size, PLACES, embedding_size, blocks, **options)


class NearRotary(RotaryAttention):
    """RotaryAttention in which a token sees only itself and the NEAR - 1 before it: the distances of the training."""

    cacheable = False

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        query, key = self.place(self.query(x), self.key(x), 0)
        query, key, value = (self.split(each) for each in (query, key, self.value(x)))  # (B, H, T, D)
        back = np.arange(x.shape[1])[:, None] - np.arange(x.shape[1])  # (T, T)
        mixed, _ = scaled_dot_product_attention(query, key, value, mask=(back >= 0) & (back < NEAR))
        return self.output(self.merge(mixed))


VARIANTS: Mapping[str, Callable[..., GPT]] = {
    "none": partial(with_room, positions=None),
    "waves, small": partial(with_room, positions=SmallWaves),
    "learned table": partial(with_room, positions=LearnedPositions),
    "rotary": partial(with_room, positions=None, attention=RotaryAttention),
    "rotary, 32 keys": partial(with_room, positions=None, attention=NearRotary),
}


def losses_by_place(run: Run) -> list[float]:
    """The mean loss of each GROUP of places, in windows of PLACES tokens that cover the test part.

    A window starts every 32 tokens, so that nearly all tokens occur in each quarter of the places: the quarters differ
    in how much came before, not in what there is to predict.
    """
    tokens = np.asarray(split_tokens(cast(CharDataset, run.dataset))[1])
    starts = range(0, len(tokens) - PLACES, NEAR)
    total, model = np.zeros(PLACES // GROUP), run.trainer.model
    model.eval()
    for first in range(0, len(starts), 64):
        windows = np.stack([tokens[n : n + PLACES + 1] for n in starts[first : first + 64]])
        with Tensor.no_grad():
            logits = model(Tensor(windows[:, :-1]))
            for group in range(len(total)):
                part = slice(group * GROUP, (group + 1) * GROUP)
                loss = GPTLoss()(logits[:, part], Tensor(windows[:, 1:][:, part]))
                total[group] += len(windows) * loss.item()
    return [round(float(loss), 4) for loss in total / len(starts)]


def make() -> None:
    """Train what is missing, one run after the other; each is stored when it is done."""
    setup = Setup()
    record: dict[str, Any] = {"setup": asdict(setup), "variants": {}}
    if (FOLDER / f"{NAME}.json").exists():
        record["variants"] = load_runs(NAME)["variants"]
    for variant, model in VARIANTS.items():
        runs = record["variants"].setdefault(variant, {"seeds": [], "test_loss": [], "losses": [], "by_place": []})
        for number in SEEDS[len(runs["seeds"]) :]:
            run = train(setup, model, number)
            runs["seeds"].append(number)
            runs["test_loss"].append(round(run.test_loss or 0.0, 6))
            runs["losses"].append([round(loss, 5) for loss in run.losses[::EVERY]])
            runs["by_place"].append(losses_by_place(run))
            print(f"{variant}, seed {number}: {runs['test_loss'][-1]:.4f} {runs['by_place'][-1]}", flush=True)
            _write(record)


def _write(record: dict[str, Any]) -> None:
    text = json.dumps({"command": "python -m src.course.experiments.rotary_positions"} | record, indent=1)
    text = re.sub(r"\[([^\[\]{}]*)\]", lambda found: f"[{' '.join(found[1].split())}]", text)  # a list a line
    (FOLDER / NAME).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(FOLDER / f"{NAME}.json", (text + "\n").encode())


if __name__ == "__main__":
    make()
