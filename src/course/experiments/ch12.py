"""Chapter 12: the GPT on byte pairs against the GPT on characters."""

from dataclasses import dataclass
from functools import lru_cache

from src.course.corpora import corpus_path, read_corpus
from src.course.runs import Experiment, Setup
from src.gpt import GPT, BytePairTokenizer, TokenDataset

TRAINING = 0.9  # of the characters; the last tenth is the test text of all tokenizers


def split_text(corpus: str = "shakespeare") -> tuple[str, str]:
    """The training text and the test text of a corpus."""
    text = read_corpus(corpus)
    boundary = int(len(text) * TRAINING)
    return text[:boundary], text[boundary:]


@lru_cache
def byte_pairs(vocab_size: int, corpus: str = "shakespeare") -> BytePairTokenizer:
    """The tokenizer trained on the training text of a corpus, never on its test text."""
    return BytePairTokenizer.train(split_text(corpus)[0], vocab_size)


@dataclass(frozen=True)
class TokenSetup(Setup):
    """A setup whose tokens are byte pairs; context and stride count tokens."""

    vocab_size: int = 512

    def dataset(self) -> TokenDataset:
        return TokenDataset(
            corpus_path(self.corpus),
            byte_pairs(self.vocab_size, self.corpus),
            self.batch_size,
            self.context_size,
            self.stride,
            shuffle=self.shuffle,
        )


SEEDS = (0, 1, 2)
TOKENS = TokenSetup()  # as many tokens a window as the character models of all chapters
SHORT = TokenSetup(context_size=16, stride=8)  # about as many characters a window
LARGE = TokenSetup(vocab_size=1024)

EXPERIMENTS = [
    Experiment("ch12-tokens", TOKENS, {"512 tokens": GPT}, SEEDS),
    Experiment("ch12-short", SHORT, {"512 tokens, half the window": GPT}, SEEDS),
    # Characters with twice the window: as many characters as 512 tokens in a window of 32.
    Experiment("ch12-long", Setup(context_size=64, stride=32), {"characters, twice the window": GPT}, SEEDS),
    Experiment("ch12-large", LARGE, {"1024 tokens": GPT}, SEEDS),
]
