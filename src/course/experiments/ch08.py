"""Chapter 8: what do positions bring, and does it matter whether they are waves or a learned table?"""

import math
from functools import partial

from src.course.runs import Experiment, Setup
from src.gpt import GPT, PositionalEncoding, RotaryAttention


class SmallWaves(PositionalEncoding):
    """The sinusoidal table, scaled so that its numbers are on average as large as `std`: the GPT's tables start so."""

    def __init__(self, embedding_size: int, max_length: int = 5000, std: float = 0.02):
        super().__init__(embedding_size, max_length)
        self.table = self.table * (std * math.sqrt(2))  # the mean of sin ** 2 and cos ** 2 is a half


EXPERIMENTS = [
    Experiment(
        "ch08-positions",
        Setup(),
        {
            "none": partial(GPT, positions=None),
            "waves, as they are": partial(GPT, positions=PositionalEncoding),
            "waves, small": partial(GPT, positions=SmallWaves),
            "learned table": GPT,
            "rotary": partial(GPT, positions=None, attention=RotaryAttention),
        },
        seeds=(0, 1, 2),
    )
]
