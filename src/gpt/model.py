"""The GPT: embedding, blocks, a last normalisation, and scores for the next token. Chapters 5 and 9 build it."""

from __future__ import annotations

import inspect
import math

import numpy as np

from ..core import Composite, Embedding, Layer, LayerNorm, Linear, Tensor
from ..core.fast import is_on
from ..core.fast.layers import known, through
from ..core.linear import check_size
from ..core.random import choose_generator
from ..core.trainer import evaluating
from .attention import GPTAttention
from .block import GPTTransformer, Identity, per_token, works_with
from .builder import Builder, build
from .cache import Cache
from .embedding import GPTEmbedding
from .feed_forward import GPTFeedForward
from .forms import FORMS
from .output import GPTOutput
from .positions import LearnedPositions

HALVED_FROM = 40_000_000  # multiplications in one block on its way forward; with less, two threads save too little


class GPT(Composite):
    """Token ids (B, T) to logits (B, T, V) for the token after each of them (Radford et al. 2019).

    Pre-norm blocks with residuals, learned positions, tanh GELU and a final LayerNorm. Weights start normal with
    standard deviation `std`, those that write into the residual stream divided by sqrt(2 * blocks), so that the first
    loss is about ln V; std=None leaves every layer's own initialisation. `tied` shares token table and output.
    `attention`, `feed_forward`, `block`, `normalization` and `positions` are builders (see builder.py):
    positions get context_size and embedding_size by name, the others embedding_size; normalization=None and
    positions=None leave the part out. `dropout` acts on attention weights and on what attention and network add to the
    stream, not on the embeddings. Raises ValueError for wrong sizes and for inputs longer than the context.

    >>> model = GPT(vocab_size=65, context_size=8, embedding_size=16, blocks=2)
    >>> model(Tensor([[1, 2, 3]])).shape
    (1, 3, 65)
    """

    def __init__(
        self,
        vocab_size: int,
        context_size: int,
        embedding_size: int,
        blocks: int,
        heads: int = 1,
        dropout: float = 0.0,
        attention: Builder = GPTAttention,
        feed_forward: Builder = GPTFeedForward,
        block: Builder = GPTTransformer,
        normalization: Builder | None = LayerNorm,
        positions: Builder | None = LearnedPositions,
        tied: bool = False,
        std: float | None = 0.02,
        generator: np.random.Generator | None = None,
    ):
        for name, size in (("vocab_size", vocab_size), ("context_size", context_size), ("blocks", blocks)):
            check_size(name, size)
        self.vocab_size, self.context_size, self.embedding_size = vocab_size, context_size, embedding_size
        place = _build_positions(positions, context_size, embedding_size, generator)
        self.embedding = GPTEmbedding(vocab_size, context_size, embedding_size, place or False, generator)
        self.blocks = [
            build(
                block,
                embedding_size,
                heads=(heads, 1),
                dropout=(dropout, 0.0),
                attention=(attention, GPTAttention),
                feed_forward=(feed_forward, GPTFeedForward),
                normalization=(normalization, normalization),
                generator=(generator, generator),
            )
            for _ in range(blocks)
        ]
        self.norm = Identity() if normalization is None else build(normalization, embedding_size)
        table = self.embedding.token.weight if tied else None
        self.output = GPTOutput(embedding_size, vocab_size, table, generator)
        super().__init__([self.embedding, *self.blocks, self.norm, self.output])
        if std is not None:
            self.initialize(std, choose_generator(generator))

    def initialize(self, std: float, generator: np.random.Generator) -> None:
        """Draw all linear and embedding weights anew, smaller where they write into the residual stream."""
        for layer in self.layers_within():
            if isinstance(layer, Linear | Embedding):
                layer.weight.data = std * generator.standard_normal(layer.weight.shape)
        for block in self.blocks:
            if isinstance(block, GPTTransformer):
                for output in block.residual_outputs():
                    output.weight.data *= 1.0 / math.sqrt(2 * len(self.blocks))

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        start = 0 if cache is None else cache.length
        self._check_ids(x, start)
        parts = [self.embedding, *self.blocks, self.norm, self.output]
        if cache is None and is_on() and known(parts, FORMS):
            return through(parts, FORMS, x, halves=self._worth_halving(x))  # what follows, at once: only for speed
        h = self.embedding(x, start)  # (B, T) -> (B, T, C)
        for index, block in enumerate(self.blocks):
            h = block(h) if cache is None else block(h, cache.layers[index])
        if cache is not None:
            cache.check(start + x.shape[-1])
        return self.output(self.norm(h))  # (B, T, C) -> (B, T, V)

    def _worth_halving(self, x: Tensor) -> bool:
        """True for a pass long enough to be done in two halves; a usual block has 12 C^2 weights."""
        return len(x.data) > 1 and x.data.size * 12 * self.embedding_size**2 >= HALVED_FROM

    def block_matrices(self) -> list[Tensor]:
        """The weight matrices inside the blocks, those that MuonOptimizer is for: no biases, tables or LayerNorms."""
        inside = {id(tensor) for block in self.blocks for tensor in block.parameters if tensor.ndim == 2}
        return [tensor for tensor in self.parameters if id(tensor) in inside]

    def _check_ids(self, x: Tensor, start: int) -> None:
        if x.ndim != 2:
            raise ValueError(
                f"a batch of token ids has shape (B, T), got {x.shape}: write Tensor([ids]) for one row of ids"
            )
        time = x.shape[-1]
        if time == 0:
            raise ValueError("got rows of 0 token ids: give at least one token")
        if start + time > self.context_size:
            cached = f" after {start} that are cached" if start else ""
            raise ValueError(
                f"the context is {self.context_size} tokens, got {time}{cached}: "
                f"crop the input or build GPT(context_size={start + time})"
            )

    @property
    def cacheable(self) -> bool:
        """True if generating with cached keys and values is known to give what generating without them gives."""
        if "cache" not in inspect.signature(self.forward).parameters:  # a subclass with a forward of its own
            return False
        positions = self.embedding.positions
        placed = positions is None or works_with(positions, "start")
        return placed and per_token(self.norm) and all(works_with(block, "cache") for block in self.blocks)

    def attention_weights(self, x: Tensor) -> list[np.ndarray]:
        """The weights (B, H, T, T) of every GPTAttention inside, first block first, for token ids (B, T).

        They are those of evaluation, without dropout. Modes are left as they were.
        """
        layers = [layer for layer in self.layers_within() if isinstance(layer, GPTAttention)]
        before = [layer.keep_weights for layer in layers]
        try:
            for layer in layers:
                layer.keep_weights = True
            with evaluating(self):
                self(x)
        finally:
            for layer, keep in zip(layers, before, strict=True):
                layer.keep_weights = keep
        return [layer.weights for layer in layers if layer.weights is not None]


def _build_positions(
    positions: Builder | None, context_size: int, embedding_size: int, generator: np.random.Generator | None
) -> Layer | None:
    """Everything goes by name, so that a builder which needs only one of the sizes takes only that."""
    if positions is None:
        return None
    settings = {"context_size": context_size, "embedding_size": embedding_size, "generator": generator}
    return build(positions, **{name: (value, value) for name, value in settings.items()})
