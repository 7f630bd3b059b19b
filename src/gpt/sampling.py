"""Generating: from the scores of a model to a next token, again and again. Chapter 11 explains every option."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from ..core import Tensor
from ..core.fast import is_on
from ..core.random import choose_generator
from ..core.trainer import evaluating
from . import one_token
from .cache import Cache
from .model import GPT


def generate(
    model: GPT,
    tokens: Sequence[int],
    steps: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: np.random.Generator | None = None,
    cache: bool | None = None,
) -> list[int]:
    """The prompt `tokens`, continued by `steps` tokens.

    Temperature 0 takes the most likely token, the lowest id among equals. Otherwise one is drawn from `probabilities`.
    The model sees the last `context_size` tokens; it works without dropout and is left as it was. Keys and values of
    earlier tokens are cached while the window does not move; cache=False turns that off, and cache=True warns when a
    layer of the model cannot do it. Raises ValueError for an empty prompt, negative steps, or wrong sampling options,
    TypeError for tokens that are not a row of integers.
    """
    tokens = _ids(tokens)
    if steps < 0:
        raise ValueError(f"steps must be zero or more, got {steps}")
    _check_options(temperature, top_k, top_p)
    if cache and not model.cacheable:
        warnings.warn("a layer of this model has no cache: every token is computed anew", stacklevel=2)
    generator = choose_generator(generator)
    with evaluating(model):
        state = Cache(len(model.blocks), model.context_size) if cache is not False and model.cacheable else None
        for _ in range(steps):
            logits, state = next_logits(model, tokens, state)
            tokens.append(choose(logits, temperature, top_k, top_p, generator))
    return tokens


def probabilities(
    logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    """The distribution over the next token: logits (V,) to float64 probabilities (V,) that sum to 1.

    Logits are divided by the temperature; `top_k` keeps the k largest, `top_p` then the fewest whose probabilities
    reach p; what is cut gets 0. Among equals the lowest ids are kept. Raises ValueError for wrong options, logits that
    are not (V,), and NaN.

    >>> probabilities(np.array([2.0, 1.0, 0.0, -1.0]), top_k=2).round(6)
    array([0.731059, 0.268941, 0.      , 0.      ])
    """
    _check_options(temperature, top_k, top_p)
    scaled = np.asarray(logits, dtype=np.float64)
    best = int(np.argmax(scaled)) if scaled.ndim == 1 and scaled.size else -1  # the first of equals
    if best < 0 or not np.isfinite(scaled[best]):  # NaN counts as the largest
        raise ValueError(
            f"logits are one row (V,) with a finite largest one, got {scaled.shape}: pass those of one token"
        )
    if temperature == 0.0:
        return np.eye(len(scaled))[best]
    weights = np.exp((scaled - scaled[best]) / temperature)  # of numbers at most 0, so that nothing overflows
    if top_k is None and top_p is None:
        return weights / weights.sum()
    order = np.argsort(-scaled, kind="stable")  # best first; equals by id
    weights[order[top_k:] if top_k is not None else []] = 0.0
    weights /= weights.sum()
    if top_p is not None:
        before = np.cumsum(weights[order]) - weights[order]  # what the better ones already hold
        weights[order[before >= top_p]] = 0.0
        weights /= weights.sum()
    return weights


def _ids(tokens: Sequence[int]) -> list[int]:
    """The prompt as a list of integers, or an error that says what it is instead."""
    if isinstance(tokens, str):
        raise TypeError(f"tokens are ids, got the text {tokens[:20]!r}: write dataset.encode(text)")
    row = tokens.data if isinstance(tokens, Tensor) else np.asarray(tokens)
    if row.size == 0:
        raise ValueError("the prompt is empty: give at least one token to continue")
    if row.ndim != 1 or row.dtype.kind not in "iu":
        raise TypeError(f"tokens are one row of integer ids, got {row.dtype} of shape {row.shape}")
    return row.tolist()


def next_logits(model: GPT, tokens: list[int], state: Cache | None) -> tuple[np.ndarray, Cache | None]:
    """The logits (V,) after the last token, and the cache, which ends where the window begins to move."""
    if state is not None and len(tokens) <= model.context_size:
        if is_on() and 0 < state.length == len(tokens) - 1 and one_token.fits(model):
            return one_token.next_logits(model, tokens[-1], state), state
        return model(Tensor([tokens[state.length :]]), state).data[0, -1], state
    return model(Tensor([tokens[-model.context_size :]])).data[0, -1], None


def choose(
    logits: np.ndarray, temperature: float, top_k: int | None, top_p: float | None, generator: np.random.Generator
) -> int:
    """The next token from logits (V,): the likeliest at temperature 0, else drawn from `probabilities`."""
    if not np.isfinite(logits).all():
        raise RuntimeError("the model gives scores that are not finite: it has diverged, load an earlier checkpoint")
    if temperature == 0.0:
        return int(np.argmax(logits))
    reached = np.cumsum(probabilities(logits, temperature, top_k, top_p))
    return int(np.searchsorted(reached, generator.random() * reached[-1], side="right"))  # as generator.choice, quicker


def _check_options(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not 0.0 <= temperature < math.inf:
        raise ValueError(f"temperature is zero (the best token) or a positive number, got {temperature}")
    if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 1):
        raise ValueError(f"top_k is an integer, how many tokens to keep, at least 1, got {top_k!r}: without it all are")
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise ValueError(f"top_p is above 0 and at most 1, got {top_p}: leave it out to keep all")
