"""Positions: telling tokens where they stand. Chapter 8 explains both kinds."""

from __future__ import annotations

import math

import numpy as np

from ..core import Embedding, Layer, Tensor


class LearnedPositions(Layer):
    """Adds row t of a learned table to the token at place t: (B, T, C) to (B, T, C), as GPT-2 does.

    `start` is the place of the first token. Raises ValueError when a place lies beyond the table.
    """

    cacheable = True

    def __init__(self, context_size: int, embedding_size: int, generator: np.random.Generator | None = None):
        self.table = Embedding(context_size, embedding_size, generator)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        rows = places(start, x.shape[-2], self.table.weight.shape[0])
        return x + self.table(Tensor(rows))  # (B, T, C) + (T, C)


class PositionalEncoding(Layer):
    """Adds row t of the fixed sinusoidal table to the token at place t: (B, T, C) to (B, T, C).

    The table is state without gradient, a plain array. Raises ValueError when a place lies beyond `max_length`, and
    TypeError when x has another float type than the table.
    """

    cacheable = True

    def __init__(self, embedding_size: int, max_length: int = 5000):
        self.table = Tensor(sinusoidal_positions(max_length, embedding_size)).data  # in the current float type

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        rows = places(start, x.shape[-2], len(self.table))
        return x + Tensor(self.table[rows], dtype=self.table.dtype)  # (B, T, C) + (T, C)


def sinusoidal_positions(length: int, size: int) -> np.ndarray:
    """The table (length, size) of Vaswani et al. 2017, section 3.5: columns 2i and 2i + 1 are the sine and cosine of
    position / 10000^(2i / size). An odd size ends with a sine.

    >>> sinusoidal_positions(2, 4)[1].round(4)
    array([0.8415, 0.5403, 0.01  , 1.    ])
    """
    columns = np.arange(size)
    angles = np.arange(length)[:, None] * np.exp(-math.log(10000.0) * (columns // 2 * 2) / size)  # (length, size)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


def places(start: int, count: int, length: int) -> np.ndarray:
    """The places start, start + 1, ... of `count` tokens; raises ValueError when a table of `length` is too short."""
    if start + count > length:
        raise ValueError(f"the table has {length} positions, got tokens up to place {start + count}: crop the input")
    return np.arange(start, start + count)
