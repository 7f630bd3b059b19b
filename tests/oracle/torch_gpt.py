"""The same GPT as its users would write it in PyTorch, and the way to give it the weights of ours.

It shares no code with src: fused projections, weights of nn.Linear as (outputs, inputs), PyTorch's own attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from src.core import Tensor
from src.gpt import GPT, RotaryAttention


class TorchBlock(nn.Module):
    def __init__(self, size: int, heads: int, rotary: bool):
        super().__init__()
        self.heads, self.rotary = heads, rotary
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.projection = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(approximate="tanh"), nn.Linear(4 * size, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.norm1(x)).chunk(3, dim=-1)  # three of (B, T, C)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)  # (B, H, T, D)
        if self.rotary:
            query, key = turned(query), turned(key)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


def turned(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions by their definition: a matrix for each pair of channels, (B, H, T, D) to the same."""
    time, size = x.shape[-2:]
    frequencies = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(time, dtype=torch.float64)[:, None] * frequencies  # (T, D / 2)
    cosine, sine = angles.cos(), angles.sin()
    matrices = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
    return (matrices.to(x.dtype) @ x.unflatten(-1, (-1, 2, 1))).flatten(-3)


class TorchGPT(nn.Module):
    def __init__(
        self, vocab: int, context: int, size: int, blocks: int, heads: int, tied: bool = False, rotary: bool = False
    ):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, size), None if rotary else nn.Embedding(context, size)
        self.blocks = nn.ModuleList(TorchBlock(size, heads, rotary) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, vocab, bias=False)
        if tied:
            self.head.weight = self.token.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.token(ids)
        if self.position is not None:
            x = x + self.position(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Match(NamedTuple):
    """One parameter of our model and where PyTorch's model has it: some rows of a parameter, perhaps transposed."""

    name: str
    own: Tensor
    theirs: nn.Parameter
    rows: slice = slice(None)

    def part(self, values: torch.Tensor) -> torch.Tensor:
        rows = values[self.rows]
        is_linear = self.own.ndim == 2 and "table" not in self.name
        return rows.T if is_linear else rows


def matches(model: GPT, reference: TorchGPT) -> Iterator[Match]:
    """Every parameter of our model once, with its counterpart."""
    size = model.embedding_size
    yield Match("token table", model.embedding.token.weight, reference.token.weight)
    if reference.position is not None:
        yield Match("position table", model.embedding.positions.table.weight, reference.position.weight)
    for index, (own, theirs) in enumerate(zip(model.blocks, reference.blocks, strict=True)):
        attention, network = own.attention, own.feed_forward
        layers = [
            ("query", attention.query, theirs.qkv, slice(0, size)),
            ("key", attention.key, theirs.qkv, slice(size, 2 * size)),
            ("value", attention.value, theirs.qkv, slice(2 * size, 3 * size)),
            ("projection", attention.output, theirs.projection, slice(None)),
            ("mlp in", network.input, theirs.mlp[0], slice(None)),
            ("mlp out", network.output, theirs.mlp[2], slice(None)),
            ("norm1", own.attention_norm, theirs.norm1, slice(None)),
            ("norm2", own.feed_forward_norm, theirs.norm2, slice(None)),
        ]
        for name, layer, torch_layer, rows in layers:
            yield Match(f"block {index} {name} weight", layer.weight, torch_layer.weight, rows)
            yield Match(f"block {index} {name} bias", layer.bias, torch_layer.bias, rows)
    yield Match("norm weight", model.norm.weight, reference.norm.weight)
    yield Match("norm bias", model.norm.bias, reference.norm.bias)
    if model.output.weight is not model.embedding.token.weight:
        yield Match("head weight", model.output.weight, reference.head.weight)


def randomize(model: GPT, std: float, seed: int = 0) -> None:
    """Weights that make everything count: sharp attention, and no bias at 0 and no gain at 1."""
    rng = np.random.default_rng(seed)
    for name, parameter in model.named_parameters():
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        parameter.data = centre + std * rng.standard_normal(parameter.shape)


def torch_twin(model: GPT, heads: int) -> TorchGPT:
    """A PyTorch model with the sizes, the precision and the weights of ours."""
    tied = model.output.weight is model.embedding.token.weight
    dtype = torch.float32 if model.embedding.token.weight.dtype == np.float32 else torch.float64
    sizes = (model.vocab_size, model.context_size, model.embedding_size, len(model.blocks))
    rotary = isinstance(model.blocks[0].attention, RotaryAttention)
    reference = TorchGPT(*sizes, heads, tied, rotary).to(dtype)
    copied = 0
    with torch.no_grad():
        for match in matches(model, reference):
            match.part(match.theirs).copy_(torch.tensor(match.own.data))
            copied += match.own.data.size
    assert copied == sum(parameter.numel() for parameter in reference.parameters())
    assert copied == sum(parameter.data.size for parameter in model.parameters)
    return reference
