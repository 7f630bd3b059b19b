"""The key-value cache: generating one token without recomputing those before it. Chapter 11 derives it."""

from __future__ import annotations

import numpy as np

from ..core import Tensor


class LayerCache:
    """The keys and values of one attention layer for the tokens seen so far, up to `context_size` of them."""

    def __init__(self, context_size: int):
        self.context_size = context_size
        self.length = 0
        self.keys: np.ndarray | None = None  # (B, H, context_size, D), allocated when the first keys come
        self.values: np.ndarray | None = None

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values (B, H, T, D); return all of them, (B, H, past + T, D), as constants.

        Raises ValueError when they do not fit into the context or to those before, and RuntimeError while gradients are
        recorded.
        """
        if Tensor.recording():
            raise RuntimeError("cached keys have no gradient: generate inside Tensor.no_grad()")
        keys, values = self.append(key.data, value.data)
        return Tensor(keys), Tensor(values)

    def append(self, key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`extend` for plain arrays."""
        if key.shape[-2] != value.shape[-2]:
            raise ValueError(
                f"keys are of {key.shape[-2]} and values of {value.shape[-2]} tokens: append both for the same"
            )
        stop = self.length + key.shape[-2]
        if stop > self.context_size:
            raise ValueError(f"the cache holds {self.context_size} tokens, got {stop}: crop the input and start anew")
        if self.keys is None or self.values is None:
            self.keys = np.empty((*key.shape[:-2], self.context_size, key.shape[-1]), dtype=key.dtype)
            self.values = np.empty((*value.shape[:-2], self.context_size, value.shape[-1]), dtype=value.dtype)
        for name, new, kept in (("keys", key, self.keys), ("values", value, self.values)):
            if (*new.shape[:-2], new.shape[-1]) != (*kept.shape[:-2], kept.shape[-1]):
                raise ValueError(
                    f"{name} of shape {new.shape} do not fit those in the cache, {kept.shape}: start a new one"
                )
        self.keys[..., self.length : stop, :] = key
        self.values[..., self.length : stop, :] = value
        self.length = stop
        return self.keys[..., :stop, :], self.values[..., :stop, :]


class Cache:
    """One LayerCache for each block of a model."""

    def __init__(self, blocks: int, context_size: int):
        self.layers = [LayerCache(context_size) for _ in range(blocks)]

    @property
    def length(self) -> int:
        """How many tokens have been seen."""
        return self.layers[0].length

    def check(self, length: int) -> None:
        """Raise RuntimeError unless every block has kept the keys and values of `length` tokens."""
        for index, layer in enumerate(self.layers):
            if layer.length != length:
                raise RuntimeError(
                    f"block {index} has cached {layer.length} of {length} tokens: its attention must call "
                    "cache.extend(key, value), or say that it cannot by an attribute cacheable = False"
                )
