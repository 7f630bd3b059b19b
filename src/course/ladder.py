"""The ladder of test losses that grows from chapter to chapter. Its lowest rungs only count (chapter 2)."""

import numpy as np

from src.gpt import CharDataset

PSEUDO_COUNT = 0.2  # added to every count, so that what never occurred does not get the probability 0


def count_losses(dataset: CharDataset) -> dict[str, float]:
    """The test losses, in nats per character, of models that count in the training part and know nothing else.

    "unigram" uses how often each character occurs, "bigram" how often it follows the one before, "trigram" how often it
    follows the two before.
    """
    boundary = int(len(dataset.tokens) * dataset.split)
    train, test = dataset.tokens[:boundary], dataset.tokens[boundary:]
    names = ("unigram", "bigram", "trigram")
    return {name: _loss(train, test, dataset.vocab_size, past) for past, name in enumerate(names)}


def _loss(train: np.ndarray, test: np.ndarray, vocab_size: int, past: int) -> float:
    """The mean surprise at a character, given `past` characters before it."""
    counts = np.full((vocab_size,) * (past + 1), PSEUDO_COUNT)
    np.add.at(counts, _tuples(train, past), 1.0)
    probabilities = counts / counts.sum(axis=-1, keepdims=True)
    return float(-np.log(probabilities[_tuples(test, past)]).mean())


def _tuples(tokens: np.ndarray, past: int) -> tuple[np.ndarray, ...]:
    """Each character together with the `past` before it, as columns that index a table of counts."""
    return tuple(tokens[shift : len(tokens) - past + shift] for shift in range(past + 1))
