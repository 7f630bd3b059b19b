"""The feed-forward network: each token on its own, four times as wide in between. Chapter 7 explains it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core import GELU, Composite, Dropout, Layer, Linear, Tensor


class GPTFeedForward(Composite):
    """Linear, activation, linear: (B, T, C) -> (B, T, 4C) -> (B, T, C).

    `activation` is a class or function that returns a layer; by default GPT-2's tanh GELU.
    """

    def __init__(
        self,
        embedding_size: int,
        dropout: float = 0.0,
        activation: Callable[[], Layer] | None = None,
        generator: np.random.Generator | None = None,
    ):
        self.input = Linear(embedding_size, 4 * embedding_size, generator=generator)
        self.activation = GELU("tanh") if activation is None else activation()
        self.output = Linear(4 * embedding_size, embedding_size, generator=generator)
        self.dropout = Dropout(dropout, generator)
        super().__init__([self.input, self.activation, self.output, self.dropout])

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.input(x))  # (B, T, 4C)
        return self.dropout(self.output(hidden))  # (B, T, C)
