"""The other side of the chapter-5 model: a plain engine in a file outside this repository, given by its path."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from .ours import VOCABULARY, batches


class Step:
    """Training steps of the plain engine: forward, backward, gradient norm at most 1, AdamW, all in float64."""

    def __init__(self, path: str, batch: int, context: int, size: int, heads: int, blocks: int):
        if heads != 1:
            raise ValueError(f"the plain engine has one head, got {heads}")
        spec = importlib.util.spec_from_file_location("seed_engine", Path(path))
        if spec is None or spec.loader is None:
            raise ValueError(f"{path} is no Python file")
        self.engine = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.engine)
        self.model = self.engine.GPT(VOCABULARY, context, size, blocks)
        self.optimizer = self.engine.AdamW(self.model.parameters, 1e-3)
        self.batches = batches(batch, context)

    def run(self) -> float:
        """One step; the loss before it."""
        x, y = (self.engine.Tensor(part) for part in next(self.batches))
        self.optimizer.zero_grad()
        loss = self.engine.gptloss(self.model(x), y)
        loss.backward()
        self.optimizer.clip_grad_norm()
        self.optimizer.step()
        return float(loss.data)
