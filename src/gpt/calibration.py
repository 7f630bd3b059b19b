"""How sure may a model be? One number, a temperature, is fitted to a text that it was not trained on (Guo et al. 2017).

A model that has learned its text well is surer of itself than it is right about other texts. Dividing its logits by a
temperature above 1 makes it less sure and leaves the order of the tokens as it is. Chapter 10 uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core import LayerNorm, Tensor
from ..core.trainer import evaluating
from .model import GPT

ROWS = 16  # windows that go through the model at once
STEPS = 50  # of Newton's method, which needs about five
SURE = 1e-6  # the relative step below which it has arrived
HIGHEST = 1000.0  # a higher temperature leaves nothing of the scores


def fit_temperature(model: GPT, tokens: Sequence[int]) -> tuple[float, float, float]:
    """The temperature at which the tokens surprise the model least, and the mean surprise at 1 and there, in nats.

    The text is cut into windows of the model's context that do not overlap. Raises ValueError when it has less than
    one, or when the model's scores say nothing about the text.
    """
    logits, targets = _predictions(model, tokens)  # (N, V), (N,)
    inverse, before = 1.0, _surprise(logits, targets, 1.0)[0]
    for _ in range(STEPS):
        _, slope, curvature = _surprise(logits, targets, inverse)
        if not curvature > 0.0:
            raise ValueError("the model gives all tokens the same score: there is no temperature to fit")
        step = float(np.clip(-slope / curvature, -0.5 * inverse, inverse))  # the surprise is convex; 1/T stays positive
        inverse += step
        if inverse < 1.0 / HIGHEST:
            raise ValueError("the model's scores say nothing about this text: it is no better than none")
        if abs(step) < SURE * inverse:
            break
    return 1.0 / inverse, before, _surprise(logits, targets, inverse)[0]


def divide_logits(model: GPT, temperature: float) -> None:
    """Change the last LayerNorm so that all logits are divided by the temperature.

    Raises ValueError for a temperature that is not positive, and when the last norm is no LayerNorm of the engine.
    """
    if not 0.0 < temperature < np.inf:
        raise ValueError(f"a temperature is a positive number, got {temperature}")
    if type(model.norm) is not LayerNorm:
        raise ValueError(f"the model ends with {type(model.norm).__name__}, a LayerNorm was expected")
    model.norm.weight.data /= temperature
    model.norm.bias.data /= temperature


def _predictions(model: GPT, tokens: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The logits at every place of every window, and the tokens that came next."""
    size = model.context_size
    if len(tokens) < size + 1:
        raise ValueError(f"the text has {len(tokens)} tokens, a window and the next need {size + 1}: use a longer text")
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(tokens, dtype=np.int64), size + 1)[::size]
    with evaluating(model):
        parts = [model(Tensor(windows[i : i + ROWS, :-1])).data for i in range(0, len(windows), ROWS)]
    return np.concatenate(parts).reshape(-1, model.vocab_size), windows[:, 1:].reshape(-1)


def _surprise(logits: np.ndarray, targets: np.ndarray, inverse: float) -> tuple[float, float, float]:
    """Of the logits times `inverse`: the mean surprise, and its first and second derivative by `inverse`."""
    total, slope, curvature = 0.0, 0.0, 0.0
    for start in range(0, len(targets), 4096):
        z, y = logits[start : start + 4096].astype(np.float64), targets[start : start + 4096]
        z -= z.max(axis=-1, keepdims=True)
        right = np.take_along_axis(z, y[:, None], axis=-1)[:, 0]
        weights = np.exp(inverse * z)
        sums = weights.sum(axis=-1, keepdims=True)
        weights /= sums
        mean = (weights * z).sum(axis=-1)
        total += float((np.log(sums[:, 0]) - inverse * right).sum())
        slope += float((mean - right).sum())
        curvature += float(((weights * z * z).sum(axis=-1) - mean**2).sum())
    return total / len(targets), slope / len(targets), curvature / len(targets)
