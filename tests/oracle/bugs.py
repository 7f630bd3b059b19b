"""Fourteen classic mistakes, each put into the GPT of this course at the place where learners make it.

`BUGS` maps the name of a mistake to the settings of GPT(...) that build it in; "none" is the control.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from src.core import GELU, LayerNorm, Softmax, Tensor
from src.gpt import CharDataset, GPTAttention, GPTFeedForward, GPTTransformer, LearnedPositions


class PlainAttention(GPTAttention):
    """Attention step by step, in small operations, so that each step can be done wrong. This one is right."""

    def forward(self, x: Tensor, cache: Any = None) -> Tensor:
        query, key, value = (self.split(layer(x)) for layer in (self.query, self.key, self.value))  # (B, H, T, D)
        scores = query @ key.transpose((0, 1, 3, 2)) * self.scale(x.shape[-1], query.shape[-1])  # (B, H, T, T)
        weights = self.normalize(scores)
        if self.keep_weights and not Tensor.recording():
            self.weights = weights.data
        return self.output(self.merge(weights @ value))

    def scale(self, channels: int, head_size: int) -> float:
        return 1 / math.sqrt(head_size)

    def allowed(self, time: int) -> np.ndarray:
        return np.tri(time, dtype=bool)

    def normalize(self, scores: Tensor) -> Tensor:
        return Softmax()(scores + np.where(self.allowed(scores.shape[-1]), 0.0, -np.inf))


class NoScale(PlainAttention):
    def scale(self, channels, head_size):
        return 1.0


class ScaleOfTheModel(PlainAttention):
    def scale(self, channels, head_size):
        return 1 / math.sqrt(channels)


class PenaltyOnAllowedKeys(PlainAttention):
    """The forbidden keys are gone already; the others get -1e9, which in float32 swallows the scores."""

    def normalize(self, scores):
        return super().normalize(scores + np.where(self.allowed(scores.shape[-1]), -1e9, 0.0))


class SplitWithoutTranspose(PlainAttention):
    def split(self, x):
        batch, time, channels = x.shape
        return x.reshape(batch, self.heads, time, channels // self.heads)


class MergeWithoutTranspose(PlainAttention):
    def merge(self, x):
        batch, heads, time, size = x.shape
        return x.reshape(batch, time, heads * size)


class SoftmaxOverQueries(PlainAttention):
    def normalize(self, scores):
        masked = scores + np.where(self.allowed(scores.shape[-1]), 0.0, -np.inf)
        return Softmax()(masked.transpose((0, 1, 3, 2))).transpose((0, 1, 3, 2))


class MaskAfterSoftmax(PlainAttention):
    def normalize(self, scores):
        return Softmax()(scores) * self.allowed(scores.shape[-1])


class MaskInverted(PlainAttention):
    def allowed(self, time):
        return np.tri(time, dtype=bool).T


class MaskOffByOne(PlainAttention):
    def allowed(self, time):
        return np.tri(time, k=1, dtype=bool)


class LayerNormOfSamples(LayerNorm):
    """Divides by n - 1 and adds eps outside the root."""

    def forward(self, x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).sum(-1, keepdims=True) / (x.shape[-1] - 1)
        return centred / (variance**0.5 + self.eps) * self.weight + self.bias


class ResidualFromNormalized(GPTTransformer):
    def forward(self, x, cache=None):
        x = self.attention_norm(x)
        x = x + self.attention(x)
        x = self.feed_forward_norm(x)
        return x + self.feed_forward(x)


class PositionsNotAdded(LearnedPositions):
    def forward(self, x, start=0):
        return x


class TargetsNotShifted(CharDataset):
    def _windows(self, part, tokens):
        x, _ = super()._windows(part, tokens)
        return x, x


BUGS: dict[str, dict[str, Any]] = {
    "none": {"attention": PlainAttention},
    "no root of D": {"attention": NoScale},
    "root of C instead of D": {"attention": ScaleOfTheModel},
    "exact GELU for tanh": {"feed_forward": partial(GPTFeedForward, activation=GELU)},
    "LayerNorm with n - 1": {"normalization": LayerNormOfSamples},
    "residual from normalised x": {"block": ResidualFromNormalized},
    "-1e9 on allowed keys": {"attention": PenaltyOnAllowedKeys},
    "split without transpose": {"attention": SplitWithoutTranspose},
    "merge without transpose": {"attention": MergeWithoutTranspose},
    "softmax over queries": {"attention": SoftmaxOverQueries},
    "mask after softmax": {"attention": MaskAfterSoftmax},
    "mask inverted": {"attention": MaskInverted},
    "mask off by one": {"attention": MaskOffByOne},
    "positions not added": {"positions": PositionsNotAdded},
    "targets not shifted": {"attention": PlainAttention},  # the model is right, its data are not
}
