"""PyTorch's side, written as its users write it: one packed projection for queries, keys and values, PyTorch's own
attention, fused AdamW with decay for matrices only, and for generation a preallocated cache of keys and values.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .ours import VOCABULARY, batches


class KeysAndValues:
    """What one block has computed for the tokens so far, (B, H, context, D) each."""

    def __init__(self, heads: int, context: int, size: int):
        self.keys, self.values = torch.empty(2, 1, heads, context, size // heads).unbind(0)

    def extend(self, start: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        stop = start + key.shape[2]
        self.keys[:, :, start:stop] = key
        self.values[:, :, start:stop] = value
        return self.keys[:, :, :stop], self.values[:, :, :stop]


class Block(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.projection = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(approximate="tanh"), nn.Linear(4 * size, size))

    def forward(self, x: torch.Tensor, start: int = 0, cache: KeysAndValues | None = None) -> torch.Tensor:
        batch, time, size = x.shape
        query, key, value = (
            part.view(batch, time, self.heads, size // self.heads).transpose(1, 2)  # (B, H, T, D)
            for part in self.qkv(self.norm1(x)).split(size, dim=2)
        )
        if cache is not None:
            key, value = cache.extend(start, key, value)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=start == 0)  # later, one query sees all
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, time, size))
        return x + self.mlp(self.norm2(x))


class TorchGPT(nn.Module):
    def __init__(self, vocabulary: int, context: int, size: int, heads: int, blocks: int):
        super().__init__()
        self.context, self.size, self.heads = context, size, heads
        self.token, self.position = nn.Embedding(vocabulary, size), nn.Embedding(context, size)
        self.blocks = nn.ModuleList(Block(size, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, vocabulary, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.hidden(ids))  # (B, T) -> (B, T, V)

    def last_logits(self, ids: torch.Tensor, start: int = 0, caches: list[KeysAndValues] | None = None) -> torch.Tensor:
        """(B, T) to (B, V): for generating, only the last token needs scores."""
        return self.head(self.hidden(ids, start, caches)[:, -1])

    def hidden(self, ids: torch.Tensor, start: int = 0, caches: list[KeysAndValues] | None = None) -> torch.Tensor:
        x = self.token(ids) + self.position(torch.arange(start, start + ids.shape[1]))
        for index, block in enumerate(self.blocks):
            x = block(x, start, None if caches is None else caches[index])
        return self.norm(x)


class Step:
    """Training steps: forward, backward, gradient norm at most 1, fused AdamW."""

    def __init__(self, batch: int, context: int, size: int, heads: int, blocks: int):
        self.model = TorchGPT(VOCABULARY, context, size, heads, blocks)
        matrices = [parameter for parameter in self.model.parameters() if parameter.ndim >= 2]
        others = [parameter for parameter in self.model.parameters() if parameter.ndim < 2]
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, fused=True)
        self.batches = ((torch.tensor(x), torch.tensor(y)) for x, y in batches(batch, context))

    def run(self) -> float:
        """One step; the loss before it."""
        ids, targets = next(self.batches)
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.model(ids)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


class Generation:
    """Texts of `steps` characters after a first one, drawn one by one; each computed from cached keys and values."""

    def __init__(self, context: int, size: int, heads: int, blocks: int, steps: int, temperature: float = 1.0):
        self.model = TorchGPT(VOCABULARY, context, size, heads, blocks).eval()
        self.steps, self.temperature = steps, temperature

    @torch.inference_mode()
    def run(self) -> list[int]:
        """One text; its tokens."""
        model = self.model
        caches = [KeysAndValues(model.heads, model.context, model.size) for _ in model.blocks]
        token = torch.zeros((1, 1), dtype=torch.int64)
        tokens = [token]
        for start in range(self.steps):
            token = self.choose(model.last_logits(token, start, caches))
            tokens.append(token)
        return torch.cat(tokens, dim=1)[0].tolist()

    def choose(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits (B, V) to the next tokens (B, 1)."""
        if self.temperature == 0.0:
            return logits.argmax(dim=-1, keepdim=True)
        return torch.multinomial(F.softmax(logits / self.temperature, dim=-1), num_samples=1)


class GenerationWithoutCache(Generation):
    """The same, computing the whole window anew for each character, as nanoGPT's `generate` does."""

    @torch.no_grad()
    def run(self) -> list[int]:
        ids = torch.zeros((1, 1), dtype=torch.int64)
        for _ in range(self.steps):
            logits = self.model.last_logits(ids[:, -self.model.context :])
            ids = torch.cat((ids, self.choose(logits)), dim=1)
        return ids[0].tolist()
