"""One token through a GPT of the usual parts, on plain arrays: only for speed, skip it on first reading.

`model(Tensor([[token]]), cache)` computes the same. But one token is little work, and most of its time would go into
tensors and records that nobody asks for. `fits` says what the model must be made of; with any other, and inside
`plain()`, generating calls the model itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import GELU, Dropout, Embedding, Layer, LayerNorm, Linear
from ..core.fast.gelu import gate_of
from .attention import GPTAttention
from .block import GPTTransformer
from .cache import Cache, LayerCache
from .embedding import GPTEmbedding
from .feed_forward import GPTFeedForward
from .model import GPT
from .output import GPTOutput
from .positions import LearnedPositions
from .rotary import RotaryAttention, turn, turns_of

ATTENTION = (GPTAttention, RotaryAttention)
OURS = (GPT, GPTEmbedding, LearnedPositions, GPTTransformer, *ATTENTION, GPTFeedForward, GPTOutput)
FORWARD: dict[type, Any] = {part: part.forward for part in (*OURS, Embedding, Linear, LayerNorm, GELU, Dropout)}
PLACE: dict[type, Any] = {attention: attention.place for attention in ATTENTION}


def fits(model: GPT) -> bool:
    """True if the model is made of these parts, each where it belongs, and nobody has replaced what one computes.

    It has a check of its own, not `layers.known`: it runs before every token, and asks for the place of each part.
    """
    if not all(
        type(layer) in kinds and getattr(layer.forward, "__func__", None) is FORWARD[type(layer)]
        for layer, kinds in _layers(model)
    ):
        return False
    blocks: list[Any] = model.blocks
    return all(
        block.attention.as_built()
        and not block.attention.keep_weights
        and getattr(block.attention.place, "__func__", None) is PLACE[type(block.attention)]
        and block.feed_forward.activation.approximate == "tanh"
        for block in blocks
    )


def _layers(model: Any) -> Iterator[tuple[Layer, tuple[type, ...]]]:
    """Each layer with the classes it may be of. The first that is not ends it, so that each has the attributes used."""
    yield model, (GPT,)
    yield model.embedding, (GPTEmbedding,)
    yield model.embedding.token, (Embedding,)
    if model.embedding.positions is not None:
        yield model.embedding.positions, (LearnedPositions,)
        yield model.embedding.positions.table, (Embedding,)
    for block in model.blocks:
        yield block, (GPTTransformer,)
        yield block.attention_norm, (LayerNorm,)
        yield block.attention, ATTENTION
        yield block.attention.dropout, (Dropout,)
        yield block.feed_forward_norm, (LayerNorm,)
        yield block.feed_forward, (GPTFeedForward,)
        yield block.feed_forward.activation, (GELU,)
        yield block.feed_forward.dropout, (Dropout,)
        for linear in ("query", "key", "value", "output"):
            yield getattr(block.attention, linear), (Linear,)
        yield block.feed_forward.input, (Linear,)
        yield block.feed_forward.output, (Linear,)
    yield model.norm, (LayerNorm,)
    yield model.output, (GPTOutput,)
    if model.output.linear is not None:
        yield model.output.linear, (Linear,)


def next_logits(model: GPT, token: int, cache: Cache) -> np.ndarray:
    """The logits (V,) after a token that follows those in the cache, which learns it. Without dropout or gradients."""
    embedding: Any = model.embedding
    x = embedding.token.weight.data[token].copy()  # (C,)
    if embedding.positions is not None:
        x += embedding.positions.table.weight.data[cache.length]
    block: Any
    for block, layer_cache in zip(model.blocks, cache.layers, strict=True):
        x += _attend(block.attention, _normalize(block.attention_norm, x), layer_cache)
        x += _feed_forward(block.feed_forward, _normalize(block.feed_forward_norm, x))
    x = _normalize(model.norm, x)  # type: ignore[arg-type]
    weight = model.output.weight.data
    return x @ (weight if model.output.linear is not None else weight.T)  # (C,) @ (C, V) -> (V,)


def _attend(attention: GPTAttention, x: np.ndarray, cache: LayerCache) -> np.ndarray:
    shape = (attention.heads, 1, -1)  # (H, 1, D)
    query, key, value = (_linear(linear, x) for linear in (attention.query, attention.key, attention.value))  # (C,)
    if isinstance(attention, RotaryAttention):
        turns = turns_of(cache.length, 1, len(query) // attention.heads, query.dtype)
        query, key = (turn(each[None, None], turns) for each in (query, key))
    query, key, value = (each.reshape(shape) for each in (query, key, value))
    keys, values = cache.append(key[None], value[None])  # (1, H, t, D)
    weights = query @ keys[0].swapaxes(-1, -2)  # (H, 1, D) @ (H, D, t) -> (H, 1, t)
    weights *= 1.0 / math.sqrt(query.shape[-1])
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return _linear(attention.output, (weights @ values[0]).reshape(-1))  # (H, 1, t) @ (H, t, D) -> (H, 1, D)


def _feed_forward(network: GPTFeedForward, x: np.ndarray) -> np.ndarray:
    hidden = _linear(network.input, x)
    hidden *= gate_of(hidden)
    return _linear(network.output, hidden)


def _linear(linear: Linear, x: np.ndarray) -> np.ndarray:
    y = x @ linear.weight.data
    if linear.bias is not None:
        y += linear.bias.data
    return y


def _normalize(norm: LayerNorm, x: np.ndarray) -> np.ndarray:
    normal = x - float(np.add.reduce(x, dtype=np.float64)) / x.size
    normal *= 1.0 / math.sqrt(float(normal @ normal) / x.size + norm.eps)
    normal *= norm.weight.data
    normal += norm.bias.data
    return normal
