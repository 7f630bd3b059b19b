"""Rotary positions: queries and keys are turned by their place, so a score depends on how far apart two tokens are.

Channels 2i and 2i + 1 of a head are the two coordinates of a point. At place t the point is turned by the angle
t / 10000^(2i / D) (Su et al. 2021, section 3.2.2). The page beside chapter 8 explains it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.linear import check_size
from .attention import GPTAttention

LONGEST = 4096  # places in the table that is kept; turns beyond it are computed when asked for


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
        size = query.shape[-1] // self.heads  # keys may have fewer heads, of the same size
        return rotated(query, self.heads, start), rotated(key, max(key.shape[-1] // size, 1), start)


# What GPT is told for the positions that a configuration or a saved model names.
POSITIONS: dict[str, dict[str, Any]] = {"learned": {}, "rotary": {"attention": RotaryAttention, "positions": None}}


def rotated(x: Tensor, heads: int = 1, start: int = 0) -> Tensor:
    """x (B, T, C) with the token at place start + t turned by that place, in each of the heads alike.

    Raises TypeError for integers, and ValueError for another shape, a negative place, and heads that do not divide C
    into pairs.

    >>> rotated(Tensor([[[1.0, 0.0, 1.0, 0.0]]]), start=1).data.round(6)
    array([[[0.540302, 0.841471, 0.99995 , 0.01    ]]], dtype=float32)
    """
    start = index(start)
    if x.dtype.kind != "f":
        raise TypeError(f"rotated turns floats, got {x.dtype} of shape {x.shape}: write Tensor([[[1., 2.]]])")
    if x.ndim != 3:
        raise ValueError(f"rotated takes (B, T, C), got shape {x.shape}: heads are cut from the last axis, by `heads`")
    check_size("heads", heads)
    if x.shape[2] % (2 * heads) or x.shape[2] == 0:
        raise ValueError(
            f"{x.shape[2]} channels of {heads} heads do not go into pairs: choose a number that 2 * heads divides"
        )
    if start < 0:
        raise ValueError(f"places are counted from 0, got start={start}")
    turns = turns_of(start, x.shape[1], x.shape[2] // heads, x.dtype)  # (T, D / 2)
    out = Tensor(turn(x.data, turns))

    def gradient_fn() -> None:
        x.receive(turn(out.received, turns.conj()))  # turned back

    return out.attach(gradient_fn, (x,))


def turns_of(start: int, count: int, size: int, dtype: np.dtype) -> np.ndarray:
    """(count, size / 2): for each place and pair the complex number of length 1 that turns the pair by its angle."""
    kind = np.result_type(dtype, np.complex64)
    if start + count <= LONGEST:
        return _table(size, kind)[start : start + count]
    return _turns(np.arange(start, start + count), size, kind)


def turn(x: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """A pair (a, b) is seen as the complex number a + ib, in the same memory: to turn it is to multiply it."""
    batch, time, channels = x.shape
    pairs = np.ascontiguousarray(x).view(turns.dtype)  # (B, T, C / 2)
    size = turns.shape[1]  # D / 2, of one head
    turned = pairs.reshape(batch, time, channels // (2 * size), size) * turns[:, None]  # (B, T, H, D / 2)
    return turned.view(x.dtype).reshape(x.shape)


@lru_cache(maxsize=8)
def _table(size: int, kind: np.dtype) -> np.ndarray:
    """The turns of the first LONGEST places, read-only."""
    table = _turns(np.arange(LONGEST), size, kind)
    table.flags.writeable = False
    return table


def _turns(places: np.ndarray, size: int, kind: np.dtype) -> np.ndarray:
    """From angles in float64."""
    angles = places[:, None] * np.exp(-math.log(10000.0) * np.arange(0, size, 2) / size)
    return np.exp(1j * angles).astype(kind)
