"""Chapter 9: what makes a stack of twelve blocks trainable, and how its weights should start."""

import math
from dataclasses import replace
from functools import partial

from src.core import Tensor
from src.course.runs import Experiment, Setup
from src.gpt import GPT, BareTransformer, GPTTransformer


class NormalizedTransformer(GPTTransformer):
    """Normalisation without residuals, (B, T, C) to (B, T, C): each part replaces what it was given."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]  # no cache
        return self.feed_forward(self.feed_forward_norm(self.attention(self.attention_norm(x))))


class PostNormTransformer(GPTTransformer):
    """The block of the first Transformer, (B, T, C) to (B, T, C): add, then normalise the stream itself."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]  # no cache
        x = self.attention_norm(x + self.attention(x))
        return self.feed_forward_norm(x + self.feed_forward(x))


def rescale_branches(model: GPT, factor: float) -> GPT:
    """Multiply the weights that write into the residual stream by `factor`, and give the model back."""
    for block in model.blocks:
        if isinstance(block, GPTTransformer):
            for output in block.residual_outputs():
                output.weight.data *= factor
    return model


def unscaled(vocab_size: int, context_size: int, embedding_size: int, blocks: int) -> GPT:
    """The GPT whose branches start as large as all other weights."""
    model = GPT(vocab_size, context_size, embedding_size, blocks)
    return rescale_branches(model, math.sqrt(2 * blocks))


def large_scaled(vocab_size: int, context_size: int, embedding_size: int, blocks: int) -> GPT:
    """The GPT with each layer's own, larger weights, its branches divided by the root of their number."""
    model = GPT(vocab_size, context_size, embedding_size, blocks, std=None)
    return rescale_branches(model, 1 / math.sqrt(2 * blocks))


def two_blocks(vocab_size: int, context_size: int, embedding_size: int, blocks: int) -> GPT:
    """The bare model, two blocks deep whatever the setup says."""
    return bare(vocab_size, context_size, embedding_size, 2)


bare = partial(GPT, block=BareTransformer, normalization=None, std=None)
post_norm = partial(GPT, block=PostNormTransformer)
only_normalized = partial(GPT, block=NormalizedTransformer)
only_residual = partial(GPT, normalization=None)
DEEP = Setup(context_size=16, stride=16, embedding_size=32, blocks=12, steps=300)
SEEDS = (0, 1, 2)

EXPERIMENTS = [
    Experiment(
        "ch09-depth",
        DEEP,
        {
            "bare, 2 blocks": two_blocks,
            "bare": bare,
            "bare, small weights": partial(bare, std=0.02),
            "only normalised": only_normalized,
            "only residual": only_residual,
            "post-norm": post_norm,
            "pre-norm": GPT,
        },
        SEEDS,
    ),
    # The pre-norm model above has small weights, and its branches are scaled.
    Experiment(
        "ch09-start",
        DEEP,
        {"large": partial(GPT, std=None), "large, branches scaled": large_scaled, "small": unscaled},
        SEEDS,
    ),
    # The ladder: two blocks, as in the other chapters. Without both parts the model is that of ch05-bare.
    Experiment(
        "ch09-block",
        Setup(),
        {"only residual": only_residual, "only normalised": only_normalized, "post-norm": post_norm},
        SEEDS,
    ),
    # Three times the learning rate, at full size from the first step on.
    Experiment(
        "ch09-warmup",
        replace(DEEP, lr=3e-3, warmup_steps=0),
        {"post-norm": post_norm, "pre-norm": GPT},
        SEEDS,
    ),
]

# Chapter, name on the page, stored runs, variant: the rungs above the models that only count.
LADDER = [
    (3, "average, no mask *", "ch03-averages", "average, no mask"),
    (3, "x xᵀ, no mask *", "ch03-averages", "x x^T, no mask"),
    (3, "table by place, no mask *", "ch03-averages", "table, no mask"),
    (4, "average of the past", "ch03-averages", "average, masked"),
    (4, "x xᵀ, masked", "ch03-averages", "x x^T, masked"),
    (4, "table by place, masked", "ch03-averages", "table, masked"),
    (5, "Q, K, V: the GPT", "ch05-roles", "Q, K, V"),
    (5, "V = x", "ch05-roles", "V = x"),
    (5, "Q = K = x", "ch05-roles", "Q = K = x"),
    (5, "Q = K = x, not itself", "ch03-self", "x x^T without itself, masked"),
    (6, "4 heads", "ch05-heads", "4 heads, Q, K, V"),
    (6, "16 heads", "ch06-heads", "16 heads"),
    (7, "no network", "ch07-activations", "no network"),
    (7, "network without activation", "ch07-activations", "identity"),
    (7, "exact GELU", "ch07-activations", "exact GELU"),
    (7, "ReLU", "ch07-activations", "ReLU"),
    (8, "no positions", "ch08-positions", "none"),
    (8, "waves, as they are", "ch08-positions", "waves, as they are"),
    (8, "waves, small", "ch08-positions", "waves, small"),
    (9, "no residual, no norm", "ch05-bare", "Q, K, V"),
    (9, "only normalised", "ch09-block", "only normalised"),
    (9, "only residual", "ch09-block", "only residual"),
    (9, "post-norm", "ch09-block", "post-norm"),
]
