"""Text as training data: characters, windows, and the same windows one character later. Chapter 2 builds it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..core import Dataset
from ..core.linear import check_size


class CharDataset(Dataset):
    """Windows of `context_size` characters and the characters that follow each of them: x (B, T) and y (B, T).

    The first `split` of the text is for training, the rest for testing. Windows start every `stride` characters, by
    default half a window. Raises ValueError when a part has fewer than context_size + 1 characters, or a symbol or id
    is not in the vocabulary.
    """

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
        check_size("context_size", context_size)
        self.stride = max(context_size // 2, 1) if stride is None else stride
        check_size("stride", self.stride)
        if not 0.0 < split < 1.0:
            raise ValueError(f"split is the part used for training, between 0 and 1, got {split}")
        self.filename, self.context_size, self.split = Path(filename), context_size, split
        super().__init__(batch_size, drop_last, shuffle, generator)

    def load(self) -> None:
        text = self.filename.read_text(encoding="utf-8")
        self.vocab = sorted(set(text))
        self.vocab_size = len(self.vocab)
        self.stoi = {symbol: token for token, symbol in enumerate(self.vocab)}
        self.itos = dict(enumerate(self.vocab))
        self.tokens = np.array(self.encode(text), dtype=np.int64)
        boundary = int(len(self.tokens) * self.split)
        self.train_data = self._windows("training", self.tokens[:boundary])
        self.test_data = self._windows("test", self.tokens[boundary:])

    def encode(self, symbols: str) -> list[int]:
        """The ids of the characters of a text."""
        try:
            return [self.stoi[symbol] for symbol in symbols]
        except KeyError as error:
            raise ValueError(f"{error.args[0]!r} is not among the {self.vocab_size} characters of this text") from None

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of a sequence of ids."""
        try:
            return "".join(self.itos[int(token)] for token in tokens)
        except KeyError as error:
            raise ValueError(f"ids go from 0 to {self.vocab_size - 1}, got {error.args[0]}") from None

    def _windows(self, part: str, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Windows of T + 1 tokens, as views: x without the last token, y without the first."""
        if len(tokens) < self.context_size + 1:
            raise ValueError(
                f"the {part} part has {len(tokens)} characters, a window and the next character need "
                f"{self.context_size + 1}: use a longer text or a smaller context_size"
            )
        windows = np.lib.stride_tricks.sliding_window_view(tokens, self.context_size + 1)[:: self.stride]
        return windows[:, :-1], windows[:, 1:]
