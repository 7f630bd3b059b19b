"""The way in: token ids become vectors that know what they are and where they stand. Chapters 2 and 8."""

from __future__ import annotations

import numpy as np

from ..core import Composite, Embedding, Layer, Tensor
from .positions import LearnedPositions


class GPTEmbedding(Composite):
    """Token ids (B, T) to vectors (B, T, C): a row of the token table, plus its position.

    `positions` is a layer (B, T, C) -> (B, T, C), by default a learned table, or False for none.
    """

    def __init__(
        self,
        vocab_size: int,
        context_size: int,
        embedding_size: int,
        positions: Layer | bool = True,
        generator: np.random.Generator | None = None,
    ):
        self.token = Embedding(vocab_size, embedding_size, generator)
        if positions is True:
            positions = LearnedPositions(context_size, embedding_size, generator)
        self.positions = positions if isinstance(positions, Layer) else None
        super().__init__([self.token] if self.positions is None else [self.token, self.positions])

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        token = self.token(x)  # (B, T) -> (B, T, C)
        if self.positions is None:
            return token
        return self.positions(token, start) if start else self.positions(token)
