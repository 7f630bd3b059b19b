"""The Transformer block: attention, then the feed-forward network. Chapter 9 explains why it looks like this."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from ..core import GELU, Composite, Dropout, Layer, LayerNorm, Linear, ReLU, Softmax, Tensor
from .attention import GPTAttention
from .builder import Builder, build
from .cache import LayerCache
from .feed_forward import GPTFeedForward


class GPTTransformer(Composite):
    """A pre-norm block, (B, T, C) to (B, T, C): each part sees normalised tokens and adds its result to them.

    `attention`, `feed_forward` and `normalization` are builders (see builder.py); normalization=None leaves it out.
    """

    def __init__(
        self,
        embedding_size: int,
        heads: int = 1,
        dropout: float = 0.0,
        attention: Builder = GPTAttention,
        feed_forward: Builder = GPTFeedForward,
        normalization: Builder | None = LayerNorm,
        generator: np.random.Generator | None = None,
    ):
        self.attention_norm = _build_norm(normalization, embedding_size)
        self.attention = _build_attention(attention, embedding_size, heads, dropout, generator)
        self.feed_forward_norm = _build_norm(normalization, embedding_size)
        self.feed_forward = _build_feed_forward(feed_forward, embedding_size, dropout, generator)
        super().__init__([self.attention_norm, self.attention, self.feed_forward_norm, self.feed_forward])

    @property
    def cacheable(self) -> bool:
        """True if the attention can work with cached keys and values, and all else treats each token on its own."""
        others = (self.attention_norm, self.feed_forward_norm, self.feed_forward)
        return works_with(self.attention, "cache") and all(map(per_token, others))

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        x = x + _attend(self.attention, self.attention_norm(x), cache)
        return x + self.feed_forward(self.feed_forward_norm(x))

    def residual_outputs(self) -> list[Linear]:
        """The linear layers whose result is added to the stream: `output` of the attention and of the network."""
        outputs = (getattr(part, "output", None) for part in (self.attention, self.feed_forward))
        return [output for output in outputs if isinstance(output, Linear)]


class BareTransformer(Composite):
    """The block this course grew from, (B, T, C) to (B, T, C): no residual, no normalisation."""

    def __init__(
        self,
        embedding_size: int,
        heads: int = 1,
        dropout: float = 0.0,
        attention: Builder = GPTAttention,
        feed_forward: Builder = GPTFeedForward,
        generator: np.random.Generator | None = None,
    ):
        self.attention = _build_attention(attention, embedding_size, heads, dropout, generator)
        self.feed_forward = _build_feed_forward(feed_forward, embedding_size, dropout, generator)
        super().__init__([self.attention, self.feed_forward])

    @property
    def cacheable(self) -> bool:
        """True if the attention can work with cached keys and values, and all else treats each token on its own."""
        return works_with(self.attention, "cache") and per_token(self.feed_forward)

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        return self.feed_forward(_attend(self.attention, x, cache))


class Identity(Layer):
    """Gives back what it gets: stands where a part is left out."""

    def forward(self, x: Tensor) -> Tensor:
        return x


PER_TOKEN = (Linear, LayerNorm, ReLU, GELU, Softmax, Dropout, Composite, GPTFeedForward, Identity)


def per_token(layer: Layer) -> bool:
    """True if the layer is known to treat each token on its own, so that earlier ones need not be computed again.

    Known are the layers of this course, not their subclasses, and what says so by an attribute `per_token = True`.
    """
    known = (type(inner) in PER_TOKEN or getattr(inner, "per_token", False) for inner in layer.layers_within())
    return getattr(layer, "per_token", False) or all(known)


def works_with(layer: Layer, argument: str) -> bool:
    """True if the layer says `cacheable` and its `forward` takes the argument: `cache`, or `start` of positions."""
    return getattr(layer, "cacheable", False) and argument in inspect.signature(layer.forward).parameters


def _attend(attention: Layer, x: Tensor, cache: LayerCache | None) -> Tensor:
    return attention(x) if cache is None else attention(x, cache)


def _build_norm(normalization: Callable[..., Layer] | None, embedding_size: int) -> Layer:
    return Identity() if normalization is None else build(normalization, embedding_size)


def _build_attention(
    attention: Builder, embedding_size: int, heads: int, dropout: float, generator: np.random.Generator | None
) -> Layer:
    return build(attention, embedding_size, heads=(heads, 1), dropout=(dropout, 0.0), generator=(generator, generator))


def _build_feed_forward(
    feed_forward: Builder, embedding_size: int, dropout: float, generator: np.random.Generator | None
) -> Layer:
    return build(feed_forward, embedding_size, dropout=(dropout, 0.0), generator=(generator, generator))
