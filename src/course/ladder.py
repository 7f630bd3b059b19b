"""The ladder of test losses that grows from chapter to chapter. Its lowest rungs only count; chapter 2 explains them.

python -m src.course.ladder     # counts in the tinyshakespeare excerpt, stores what chapter 2 shows of it
"""

import json

import numpy as np

from src.core.checkpoint import write_atomically
from src.course.corpora import corpus_path
from src.course.runs import FOLDER
from src.gpt import CharDataset

PSEUDO_COUNT = 0.2  # added to every count, so that what never occurred does not get the probability 0
QUOTED_PSEUDO_COUNT = 0.43  # gives the losses quoted for the excerpt, 3.347, 2.482 and 2.050, to the last digit
NAMES = ("unigram", "bigram", "trigram")
EXCERPT_FILE = FOLDER / "ch02-excerpt.json"


def count_losses(dataset: CharDataset, pseudo_count: float = PSEUDO_COUNT) -> dict[str, float]:
    """The test losses, in nats per character, of models that count in the training part and know nothing else.

    "unigram" uses how often each character occurs, "bigram" how often it follows the one before, "trigram" how often it
    follows the two before.
    """
    train, test = split_tokens(dataset)
    return {name: count_loss(train, test, dataset.vocab_size, past, pseudo_count) for past, name in enumerate(NAMES)}


def split_tokens(dataset: CharDataset) -> tuple[np.ndarray, np.ndarray]:
    """The ids of the training part and of the test part, uncut."""
    boundary = int(len(dataset.tokens) * dataset.split)
    return dataset.tokens[:boundary], dataset.tokens[boundary:]


def count_loss(
    train: np.ndarray, test: np.ndarray, vocab_size: int, past: int, pseudo_count: float = PSEUDO_COUNT
) -> float:
    """The mean surprise in nats at a character of `test` (N,), given the `past` characters before it.

    Its probability is (count + pseudo_count) / (count of its past + V * pseudo_count), counted in `train`. Only pasts
    that occur take memory, a table would have V ** (past + 1) entries. Raises ValueError for a past below 0 or too long
    for whole numbers of 64 bits, and for pseudo-counts that are not positive.

    >>> ids = np.array([0, 1, 0, 1, 0])
    >>> round(count_loss(ids, ids, vocab_size=2, past=1, pseudo_count=1.0), 4)  # -ln 3/4
    0.2877
    """
    if past < 0 or vocab_size ** (past + 1) >= 2**63:
        raise ValueError(f"past goes from 0 as far as {vocab_size} ** (past + 1) stays below 2 ** 63, got {past}")
    if not pseudo_count > 0.0:
        raise ValueError(f"the pseudo-count must be positive, got {pseudo_count}: what is unseen would have no chance")
    seen, asked = _codes(train, vocab_size, past), _codes(test, vocab_size, past)
    together = _count(seen, asked)
    before = _count(seen // vocab_size, asked // vocab_size)
    return float(-np.log((together + pseudo_count) / (before + vocab_size * pseudo_count)).mean())


def _codes(tokens: np.ndarray, vocab_size: int, past: int) -> np.ndarray:
    """Each character and the `past` before it as one whole number: its digits, to the base V, are the ids."""
    codes = np.zeros(len(tokens) - past, dtype=np.int64)
    for shift in range(past + 1):
        codes = codes * vocab_size + tokens[shift : len(tokens) - past + shift]
    return codes


def _count(seen: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """How often each number of `asked` occurs in `seen`."""
    numbers, counts = np.unique(seen, return_counts=True)
    places = np.minimum(np.searchsorted(numbers, asked), len(numbers) - 1)
    return np.where(numbers[places] == asked, counts[places], 0)


def store_excerpt() -> None:
    """Count in the excerpt that other courses train on, and store the losses: readers need not have it."""
    dataset = CharDataset(corpus_path("tinyshakespeare"))
    record = {
        "command": "python -m src.course.ladder",
        "corpus": "tinyshakespeare",
        "characters": len(dataset.tokens),
        "vocab_size": dataset.vocab_size,
        "test_loss": {
            str(pseudo_count): {name: round(loss, 6) for name, loss in count_losses(dataset, pseudo_count).items()}
            for pseudo_count in (PSEUDO_COUNT, QUOTED_PSEUDO_COUNT)
        },
    }
    EXCERPT_FILE.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(EXCERPT_FILE, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    store_excerpt()
