"""Generating for somebody who watches: tokens one by one, and their text as soon as it is whole. Chapter 11 uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..core.random import choose_generator
from ..core.trainer import evaluating
from .cache import Cache
from .model import GPT
from .sampling import choose, generate, next_logits
from .tokenizer import Tokenizer

CUT = "\ufffd"  # what decoding puts in place of bytes that are no character, or not yet a whole one


def stream(
    model: GPT,
    tokens: Sequence[int],
    steps: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: np.random.Generator | None = None,
) -> Iterator[int]:
    """The tokens that `generate` appends to the prompt, each as soon as it is chosen. Errors are those of `generate`.

    Between two tokens the model is in the mode in which it was, and gradients are recorded as they were: the one who
    takes the tokens may do anything, also stop, but change the weights: of earlier tokens keys and values are kept.
    """
    tokens = generate(model, tokens, 0, temperature, top_k, top_p)  # only checks: no step is taken
    if steps < 0:
        raise ValueError(f"steps must be zero or more, got {steps}")
    generator = choose_generator(generator)
    cache = Cache(len(model.blocks), model.context_size) if model.cacheable else None

    def chosen(state: Cache | None) -> Iterator[int]:
        for _ in range(steps):
            with evaluating(model):  # left before each token is handed out
                logits, state = next_logits(model, tokens, state)
            tokens.append(choose(logits, temperature, top_k, top_p, generator))
            yield tokens[-1]

    return chosen(cache)


def stream_text(tokenizer: Tokenizer, tokens: Iterable[int]) -> Iterator[str]:
    """The text of tokens that come one by one, in pieces that together are `decode` of them all.

    A character whose bytes are spread over several tokens comes when its last byte is there.

    >>> from src.gpt.tokenizer import BytePairTokenizer
    >>> list(stream_text(BytePairTokenizer([]), "né!".encode()))
    ['n', 'é', '!']
    """
    waiting: list[int] = []  # tokens since the last whole character
    given = 0  # how many of their characters have been handed out
    for token in tokens:
        waiting.append(token)
        text = tokenizer.decode(waiting)
        whole = len(text) - text.endswith(CUT)  # bytes that follow may still change the last sign
        if whole > given:
            yield text[given:whole]
        waiting, given = (waiting, whole) if text.endswith(CUT) else ([], 0)
    if waiting:
        yield tokenizer.decode(waiting)[given:]
