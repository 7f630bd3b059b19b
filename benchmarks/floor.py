"""The floor: the training step of a GPT in bare NumPy calls, written out for this one model.

No tensors, layers or graph, no checks, all weights in one row of numbers, so that the optimizer has one array: what an
engine adds is the difference to `ours.py`. It is not to be learned from: `src/core` says what is computed.
"""

from __future__ import annotations

import math

import numpy as np

from src.core.fast.memory import keep_freed_memory
from src.gpt import GPT

from .ours import VOCABULARY, batches

LR, BETA1, BETA2, EPS, DECAY = 1e-3, 0.9, 0.999, 1e-8, 0.01
ROOT, CUBIC = 2.0 * math.sqrt(2.0 / math.pi), 0.044715


class Step:
    """Training steps: forward, backward, gradient norm at most 1, AdamW with decay for matrices only."""

    def __init__(self, batch: int, context: int, size: int, heads: int, blocks: int):
        keep_freed_memory()
        self.shape, self.heads, self.blocks = (batch, context, size), heads, blocks
        self.load(GPT(VOCABULARY, context, size, blocks, heads).state_dict())
        self.batches = batches(batch, context)
        self.ones = np.ones(batch * context, dtype=np.float32)
        self.average = np.full((size, 1), 1.0 / size, dtype=np.float32)
        self.forbidden = np.where(np.tri(context, dtype=bool), 0.0, -np.inf).astype(np.float32)

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Lay all weights end to end, matrices first."""
        ordered = dict(sorted(weights.items(), key=lambda item: item[1].ndim < 2))
        self.matrices = sum(array.size for array in ordered.values() if array.ndim >= 2)
        self.row = np.concatenate([array.reshape(-1) for array in ordered.values()])
        self.grad, self.means, self.squares, self.scratch = (np.zeros_like(self.row) for _ in range(4))
        self.weights, self.grads, self.steps = {}, {}, 0
        start = 0
        for name, array in ordered.items():
            part = slice(start, start + array.size)
            self.weights[name], self.grads[name] = (each[part].reshape(array.shape) for each in (self.row, self.grad))
            start = part.stop

    def run(self) -> float:
        """One step; the loss before it."""
        ids, targets = next(self.batches)
        x = self.weights["embedding.token.weight"][ids]
        x += self.weights["embedding.positions.table.weight"]
        x = x.reshape(-1, self.shape[2])  # (B T, C)
        kept = []
        for number in range(self.blocks):
            x, saved = self.block(f"blocks.{number}.", x)
            kept.append(saved)
        normal, norm = self.norm("norm", x)
        probabilities = normal @ self.weights["output.linear.weight"]
        probabilities -= probabilities.max(axis=1, keepdims=True)
        np.exp(probabilities, out=probabilities)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        picked = np.arange(len(probabilities)), targets.reshape(-1)
        loss = -float(np.log(probabilities[picked]).mean())
        probabilities[picked] -= 1.0
        probabilities *= 1.0 / len(probabilities)
        np.matmul(normal.T, probabilities, out=self.grads["output.linear.weight"])
        grad = self.norm_back("norm", probabilities @ self.weights["output.linear.weight"].T, norm)
        for number in reversed(range(self.blocks)):
            grad = self.block_back(f"blocks.{number}.", grad, kept.pop())
        grad.reshape(self.shape).sum(axis=0, out=self.grads["embedding.positions.table.weight"])
        chosen = np.zeros((VOCABULARY, len(grad)), dtype=np.float32)
        chosen[ids.reshape(-1), np.arange(len(grad))] = 1.0
        np.matmul(chosen, grad, out=self.grads["embedding.token.weight"])
        self.update()
        return loss

    def update(self) -> None:
        """Clipping and AdamW on the whole row at once."""
        grad, scratch = self.grad, self.scratch
        norm = math.sqrt(float(np.dot(grad, grad)))
        if norm > 1.0:
            grad *= 1.0 / norm
        self.steps += 1
        root = math.sqrt(1.0 - BETA2**self.steps)
        np.multiply(grad, grad, out=scratch)
        scratch *= 1.0 - BETA2
        self.squares *= BETA2
        self.squares += scratch
        np.multiply(grad, 1.0 - BETA1, out=scratch)
        self.means *= BETA1
        self.means += scratch
        np.sqrt(self.squares, out=scratch)
        scratch += root * EPS
        np.divide(self.means, scratch, out=scratch)
        scratch *= root * LR / (1.0 - BETA1**self.steps)
        self.row[: self.matrices] *= 1.0 - LR * DECAY
        self.row -= scratch

    def block(self, name: str, x: np.ndarray) -> tuple[np.ndarray, tuple]:
        normal, norm = self.norm(f"{name}attention_norm", x)
        q, k, v = (self.linear(f"{name}attention.{part}", normal) for part in ("query", "key", "value"))
        weights = self.split(q) @ self.split(k).swapaxes(-1, -2)
        weights *= 1.0 / math.sqrt(self.shape[2] // self.heads)
        weights += self.forbidden
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = np.empty_like(x)
        np.matmul(weights, self.split(v), out=self.split(mixed))
        between = self.linear(f"{name}attention.output", mixed)
        between += x
        network_normal, network_norm = self.norm(f"{name}feed_forward_norm", between)
        hidden = self.linear(f"{name}feed_forward.input", network_normal)
        square = hidden * hidden
        gate = square * (-ROOT * CUBIC)
        gate -= ROOT
        gate *= hidden
        np.exp(gate, out=gate)
        gate += 1.0
        np.divide(1.0, gate, out=gate)
        active = hidden * gate
        y = self.linear(f"{name}feed_forward.output", active)
        y += between
        return y, (normal, norm, q, k, v, weights, mixed, network_normal, network_norm, square, gate, active)

    def block_back(self, name: str, grad: np.ndarray, saved: tuple) -> np.ndarray:
        normal, norm, q, k, v, weights, mixed, network_normal, network_norm, slope, gate, active = saved
        active_grad = self.linear_back(f"{name}feed_forward.output", grad, active)
        slope *= 3.0 * ROOT * CUBIC
        slope += ROOT
        change = 1.0 - gate
        change *= active
        change *= slope
        change += gate
        change *= active_grad
        normal_grad = self.linear_back(f"{name}feed_forward.input", change, network_normal)
        grad = grad + self.norm_back(f"{name}feed_forward_norm", normal_grad, network_norm)
        mixed_grad = self.split(self.linear_back(f"{name}attention.output", grad, mixed))
        q_grad, k_grad, v_grad = (np.empty_like(mixed) for _ in range(3))
        np.matmul(weights.swapaxes(-1, -2), mixed_grad, out=self.split(v_grad))
        change = mixed_grad @ self.split(v).swapaxes(-1, -2)
        change -= np.vecdot(mixed_grad, self.split(mixed))[..., None]
        change *= weights
        change *= 1.0 / math.sqrt(self.shape[2] // self.heads)
        np.matmul(change, self.split(k), out=self.split(q_grad))
        np.matmul(change.swapaxes(-1, -2), self.split(q), out=self.split(k_grad))
        normal_grad = self.linear_back(f"{name}attention.query", q_grad, normal)
        normal_grad += self.linear_back(f"{name}attention.key", k_grad, normal)
        normal_grad += self.linear_back(f"{name}attention.value", v_grad, normal)
        return grad + self.norm_back(f"{name}attention_norm", normal_grad, norm)

    def split(self, x: np.ndarray) -> np.ndarray:
        """(B T, C) seen as (B, H, T, D)."""
        batch, context, size = self.shape
        return x.reshape(batch, context, self.heads, size // self.heads).swapaxes(1, 2)

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        y = x @ self.weights[f"{name}.weight"]
        y += self.weights[f"{name}.bias"]
        return y

    def linear_back(self, name: str, grad: np.ndarray, x: np.ndarray) -> np.ndarray:
        np.matmul(x.T, grad, out=self.grads[f"{name}.weight"])
        np.matmul(self.ones, grad, out=self.grads[f"{name}.bias"])
        return grad @ self.weights[f"{name}.weight"].T

    def norm(self, name: str, x: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        normal = x - x @ self.average
        root = np.vecdot(normal, normal)[:, None]
        root *= 1.0 / self.shape[2]
        root += 1e-5
        np.sqrt(root, out=root)
        np.divide(1.0, root, out=root)
        normal *= root
        y = normal * self.weights[f"{name}.weight"]
        y += self.weights[f"{name}.bias"]
        return y, (normal, root)

    def norm_back(self, name: str, grad: np.ndarray, saved: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        normal, root = saved
        weight = self.weights[f"{name}.weight"]
        product = grad * normal
        np.matmul(self.ones, product, out=self.grads[f"{name}.weight"])
        np.matmul(self.ones, grad, out=self.grads[f"{name}.bias"])
        share = self.average * weight[:, None]
        normal *= product @ share
        normal += grad @ share
        np.multiply(grad, weight, out=product)
        product -= normal
        product *= root
        return product
