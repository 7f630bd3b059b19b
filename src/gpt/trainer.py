"""Training a GPT and letting it write."""

from __future__ import annotations

import numpy as np

from ..core import Trainer
from .data import TokenDataset
from .model import GPT
from .sampling import generate


class GPTTrainer(Trainer):
    """The trainer of the engine, with `generate` for text."""

    model: GPT

    def generate(
        self,
        dataset: TokenDataset,
        prompt: str,
        steps: int = 256,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: np.random.Generator | None = None,
    ) -> str:
        """The prompt and `steps` tokens that the model adds; the options are those of `src.gpt.generate`."""
        tokens = generate(self.model, dataset.encode(prompt), steps, temperature, top_k, top_p, generator)
        return dataset.decode(tokens)
