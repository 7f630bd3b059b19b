"""Causal self-attention: three projections, one attention, one projection back. Chapters 5 and 6 build it."""

from __future__ import annotations

import numpy as np

from ..core import Composite, Dropout, Linear, Tensor
from ..core.attention import attention_weights
from ..core.fast import is_on
from ..core.fast.attention import causal_attention
from ..core.fast.operation import operation
from ..core.linear import check_size
from .cache import LayerCache


class GPTAttention(Composite):
    """Each token asks earlier tokens and itself: (B, T, C) to (B, T, C), with H heads of size D = C / H.

    `dropout` acts on the weights and on the result. With `keep_weights`, a pass under `Tensor.no_grad()` leaves the
    weights (B, H, T, T) in the attribute `weights`, as a plain array. Raises ValueError when heads do not divide C.
    """

    cacheable = True

    def __init__(
        self,
        embedding_size: int,
        heads: int = 1,
        dropout: float = 0.0,
        bias: bool = True,
        generator: np.random.Generator | None = None,
    ):
        check_size("heads", heads)
        if embedding_size % heads:
            raise ValueError(f"{heads} heads cannot share {embedding_size} channels: choose a number that divides them")
        self.heads = heads
        self.query = Linear(embedding_size, embedding_size, bias, generator)
        self.key = Linear(embedding_size, embedding_size, bias, generator)
        self.value = Linear(embedding_size, embedding_size, bias, generator)
        self.output = Linear(embedding_size, embedding_size, bias, generator)
        self.dropout = Dropout(dropout, generator)
        self.keep_weights = False
        self.weights: np.ndarray | None = None
        super().__init__([self.query, self.key, self.value, self.output, self.dropout])

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        if x.ndim != 3:
            raise ValueError(f"attention takes vectors (B, T, C), got shape {x.shape}: a single text has B = 1")
        query, key = self.place(self.query(x), self.key(x), 0 if cache is None else cache.length)  # (B, T, C)
        value = self.value(x)  # (B, T, C)
        shown = self.keep_weights and not Tensor.recording()
        if is_on() and cache is None and not shown and self.as_built():
            kept = self.dropout.draw((x.shape[0], self.heads, x.shape[1], x.shape[1]))
            mixed = operation(
                causal_attention, query, key, value, heads=self.heads, kept=kept, kept_scale=self.dropout.scale
            )
            return self.dropout(self.output(mixed))
        query, key, value = self.split(query), self.split(key), self.split(value)  # (B, H, T, D)
        if cache is not None:
            key, value = cache.extend(key, value)  # (B, H, past + T, D)
        weights = attention_weights(query, key, causal=True)  # (B, H, T, past + T)
        if shown:
            self.weights = weights.data
        mixed = self.merge(self.dropout(weights) @ value)  # (B, H, T, past + T) @ (B, H, past + T, D) -> (B, T, C)
        return self.dropout(self.output(mixed))

    def place(self, query: Tensor, key: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Queries and keys that know their place, the first of them `start`: here unchanged; see rotary.py."""
        return query, key

    def as_built(self) -> bool:
        """True if nobody has replaced what the fast form does by itself."""
        known = (
            (self.split, SPLIT),
            (self.merge, MERGE),
            (getattr(self.dropout, "forward", None), DROP),
        )
        return all(getattr(method, "__func__", None) is usual for method, usual in known)

    def split(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, H, T, D): head h gets channels h * D to (h + 1) * D of every token."""
        batch, time, channels = x.shape
        return x.reshape(batch, time, self.heads, channels // self.heads).transpose((0, 2, 1, 3))

    def merge(self, x: Tensor) -> Tensor:
        """(B, H, T, D) back to (B, T, C), the inverse of `split`."""
        batch, heads, time, size = x.shape
        return x.transpose((0, 2, 1, 3)).reshape(batch, time, heads * size)


SPLIT, MERGE, DROP = GPTAttention.split, GPTAttention.merge, Dropout.forward  # should someone replace them in the class
