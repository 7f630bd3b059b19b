"""How many decimals of a trained loss may be printed: those that survive a change of one weight by one ulp, minus one.

    python -m tests.book.surviving_digits          # trains the GPT of Setup() twice, about a minute

A chapter that trains something else calls `surviving_decimals` with its own setup and model.
"""

import math
from collections.abc import Callable

import numpy as np

from src.course.runs import Setup, train
from src.gpt import GPT


def nudged(model: Callable[..., GPT]) -> Callable[..., GPT]:
    """The same model with its first weight moved to the next number that a float32 can hold."""

    def build(*sizes: int) -> GPT:
        gpt = model(*sizes)
        weight = gpt.parameters[0].data
        weight.flat[0] = np.nextafter(weight.flat[0], np.inf, dtype=weight.dtype)
        return gpt

    return build


def surviving_decimals(setup: Setup, model: Callable[..., GPT] = GPT) -> tuple[int, float]:
    """The number of decimals of the test loss that may be printed, and the difference that the nudge made."""
    losses = [train(setup, each).test_loss or 0.0 for each in (model, nudged(model))]
    difference = abs(losses[0] - losses[1])
    return (15 if difference == 0 else max(0, math.floor(-math.log10(difference)) - 1)), difference


if __name__ == "__main__":
    decimals, difference = surviving_decimals(Setup())
    print(f"the test loss moves by {difference:.1e}: print at most {decimals} decimals")
