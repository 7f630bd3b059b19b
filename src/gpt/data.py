"""Text as training data: tokens, windows, and the same windows one token later.

Chapter 2 builds it with a token a character; chapter 12 puts other tokens in.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..core import Dataset
from ..core.linear import check_size
from .tokenizer import CharTokenizer, Tokenizer


class TokenDataset(Dataset):
    """Windows of `context_size` tokens and the tokens that follow each of them: x (B, T) and y (B, T).

    The first `split` of the text is for training, the rest for testing; the cut is between the same two characters
    whatever the tokenizer, by default one of the text's characters. Windows start every `stride` tokens, by default
    half a window. Raises ValueError when a part has fewer than context_size + 1 tokens.
    """

    unit = "token"

    def __init__(
        self,
        filename: str | os.PathLike[str],
        tokenizer: Tokenizer | None = None,
        batch_size: int = 1,
        context_size: int = 64,
        stride: int | None = None,
        split: float = 0.9,
        drop_last: bool = True,
        shuffle: bool = False,
        generator: np.random.Generator | None = None,
    ):
        check_size("context_size", context_size)
        self.stride = max(context_size // 2, 1) if stride is None else stride
        check_size("stride", self.stride)
        if not 0.0 < split < 1.0:
            raise ValueError(f"split is the part used for training, between 0 and 1, got {split}")
        self.filename, self.context_size, self.split = Path(filename), context_size, split
        self._given = tokenizer
        super().__init__(batch_size, drop_last, shuffle, generator)

    def load(self) -> None:
        text = read_utf8(self.filename)
        self.tokenizer: Tokenizer = CharTokenizer.from_text(text) if self._given is None else self._given
        self.vocab_size = self.tokenizer.vocab_size
        boundary = int(len(text) * self.split)
        train, test = (np.array(self.encode(part), dtype=np.int64) for part in (text[:boundary], text[boundary:]))
        self.tokens = np.concatenate([train, test])
        self.train_data, self.test_data = self._windows("training", train), self._windows("test", test)

    def encode(self, text: str) -> list[int]:
        """The ids of the tokens of a text."""
        return self.tokenizer.encode(text)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of a sequence of ids."""
        return self.tokenizer.decode(tokens)

    def _windows(self, part: str, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Windows of T + 1 tokens, as views: x without the last token, y without the first."""
        if len(tokens) < self.context_size + 1:
            raise ValueError(
                f"the {part} part has {len(tokens)} {self.unit}s, a window and the next {self.unit} need "
                f"{self.context_size + 1}: use a longer text or a smaller context_size"
            )
        windows = np.lib.stride_tricks.sliding_window_view(tokens, self.context_size + 1)[:: self.stride]
        return windows[:, :-1], windows[:, 1:]


class CharDataset(TokenDataset):
    """Windows of `context_size` characters and the characters that follow each of them: x (B, T) and y (B, T).

    The tokens are the characters of the text itself, `vocab`; otherwise as `TokenDataset`. Raises ValueError, too, when
    a symbol or id is not in the vocabulary.
    """

    unit = "character"
    tokenizer: CharTokenizer

    def __init__(
        self,
        filename: str | os.PathLike[str],
        batch_size: int = 1,
        context_size: int = 64,
        stride: int | None = None,
        split: float = 0.9,
        drop_last: bool = True,
        shuffle: bool = False,
        generator: np.random.Generator | None = None,
    ):
        super().__init__(filename, None, batch_size, context_size, stride, split, drop_last, shuffle, generator)

    def load(self) -> None:
        super().load()
        self.vocab, self.stoi, self.itos = self.tokenizer.vocab, self.tokenizer.stoi, self.tokenizer.itos


def read_utf8(path: Path) -> str:
    """The text of a file. Raises ValueError, naming it, when it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8, see its byte {error.start}: save it as UTF-8 first") from None
