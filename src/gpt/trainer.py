"""Training a GPT and letting it write."""

from __future__ import annotations

from ..core import Trainer
from .data import CharDataset
from .model import GPT
from .sampling import generate


class GPTTrainer(Trainer):
    """The trainer of the engine, with `generate` for text."""

    def generate(self, dataset: CharDataset, prompt: str, steps: int = 256, **sampling: float) -> str:
        """The prompt and `steps` characters that the model adds; sampling options as in `src.gpt.generate`."""
        assert isinstance(self.model, GPT)
        return dataset.decode(generate(self.model, dataset.encode(prompt), steps, **sampling))
