"""The way out: a vector becomes a score for each token that could come next. Chapter 5."""

from __future__ import annotations

import numpy as np

from ..core import Composite, Linear, Tensor


class GPTOutput(Composite):
    """Vectors (B, T, C) to a score, or logit, for each token that could come next: (B, T, V).

    With `table`, the token table (V, C) of the embedding, the two share their weights.
    """

    def __init__(
        self,
        embedding_size: int,
        vocab_size: int,
        table: Tensor | None = None,
        generator: np.random.Generator | None = None,
    ):
        linear = None if table is not None else Linear(embedding_size, vocab_size, bias=False, generator=generator)
        self.linear = linear
        self.table = table
        super().__init__([] if linear is None else [linear])

    @property
    def weight(self) -> Tensor:
        """(C, V), or the shared table (V, C)."""
        return self.table if self.linear is None else self.linear.weight  # type: ignore[return-value]

    def forward(self, x: Tensor) -> Tensor:
        if self.linear is not None:
            return self.linear(x)
        return x @ self.weight.transpose((1, 0))  # (B, T, C) @ (C, V) -> (B, T, V)
