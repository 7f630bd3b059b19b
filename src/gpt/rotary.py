"""Rotary positions: queries and keys are turned by their place, so a score depends on how far apart two tokens are.

Channels 2i and 2i + 1 of a head are the two coordinates of a point. At place t the point is turned by the angle
t / 10000^(2i / D) (Su et al. 2021, section 3.2.2). The page beside chapter 8 explains it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..core import Tensor
from .attention import GPTAttention

SHORTEST = 256  # places in the smallest table of turns


class RotaryAttention(GPTAttention):
    """Causal self-attention whose queries and keys are turned by their place; it needs no other positions.

    Raises ValueError, besides what GPTAttention refuses, when a head has an odd number of channels.

    >>> from src.gpt import GPT
    >>> model = GPT(65, context_size=8, embedding_size=16, blocks=2, attention=RotaryAttention, positions=None)
    >>> model(Tensor([[1, 2, 3]])).shape
    (1, 3, 65)
    """

    def __init__(
        self,
        embedding_size: int,
        heads: int = 1,
        dropout: float = 0.0,
        bias: bool = True,
        generator: np.random.Generator | None = None,
    ):
        super().__init__(embedding_size, heads, dropout, bias, generator)
        size = embedding_size // heads
        if size % 2:
            raise ValueError(
                f"{heads} heads of {embedding_size} channels have {size} channels each, which do not go into pairs: "
                "choose another number of heads or channels"
            )

    def place(self, query: Tensor, key: Tensor, start: int) -> tuple[Tensor, Tensor]:
        return rotated(query, self.heads, start), rotated(key, self.heads, start)


# What GPT is told for the positions that a configuration or a saved model names.
POSITIONS: dict[str, dict[str, Any]] = {"learned": {}, "rotary": {"attention": RotaryAttention, "positions": None}}


def rotated(x: Tensor, heads: int = 1, start: int = 0) -> Tensor:
    """x (B, T, C) with the token at place start + t turned by that place, in each of the heads alike.

    Raises ValueError when the channels of a head do not go into pairs.

    >>> rotated(Tensor([[[1.0, 0.0, 1.0, 0.0]]]), start=1).data.round(6)
    array([[[0.540302, 0.841471, 0.99995 , 0.01    ]]], dtype=float32)
    """
    turns = turns_of(start, x.shape[1], x.shape[2] // heads, x.dtype)  # (T, D / 2)
    out = Tensor(turn(x.data, heads, turns), dtype=x.dtype)

    def gradient_fn() -> None:
        x.receive(turn(out.received, heads, turns.conj()))  # turned back

    return out.attach(gradient_fn, (x,))


def turns_of(start: int, count: int, size: int, dtype: np.dtype) -> np.ndarray:
    """(count, size / 2): for each place and pair the complex number of length 1 that turns the pair by its angle."""
    longest = max(SHORTEST, 1 << (start + count - 1).bit_length())
    return _table(longest, size, np.result_type(dtype, np.complex64))[start : start + count]


@lru_cache(maxsize=8)
def _table(length: int, size: int, dtype: np.dtype) -> np.ndarray:
    """The turns for places 0 to length - 1, from angles in float64."""
    if size % 2:
        raise ValueError(f"{size} channels do not go into pairs: an even number of channels in a head is needed")
    angles = np.arange(length)[:, None] * np.exp(-math.log(10000.0) * np.arange(0, size, 2) / size)
    table = np.exp(1j * angles).astype(dtype)
    table.flags.writeable = False
    return table


def turn(x: np.ndarray, heads: int, turns: np.ndarray) -> np.ndarray:
    """A pair (a, b) is seen as the complex number a + ib, in the same memory: to turn it is to multiply it."""
    pairs = np.ascontiguousarray(x).view(turns.dtype)  # (B, T, C / 2)
    pairs = pairs.reshape(*pairs.shape[:2], heads, -1)  # (B, T, H, D / 2)
    return (pairs * turns[:, None]).view(x.dtype).reshape(x.shape)
