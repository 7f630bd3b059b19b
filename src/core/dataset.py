"""Datasets: features and labels in batches. Chapter 2 builds one from text."""

from __future__ import annotations

from typing import Any

import numpy as np

from .linear import check_size
from .random import choose_generator
from .tensor import Tensor


class Dataset:
    """Batches of (feature, label) pairs. Subclasses define `load()`, which sets `train_data` and `test_data`.

    Each is a pair (x, y) of lists or arrays of equal length. `len(d)` is the number of batches and `d[i]` one batch,
    two Tensors with `batch_size` first; `train()` and `eval()` choose between the two. With `drop_last` a last batch
    that is not full is left out. With `shuffle`, each call of `train()` draws a new order of the training pairs.
    Raises ValueError when x and y differ in length or a part has too few pairs for one batch.

    >>> class Squares(Dataset):
    ...     def load(self):
    ...         x = np.arange(10.0)
    ...         self.train_data, self.test_data = (x[:8], x[:8] ** 2), (x[8:], x[8:] ** 2)
    >>> d = Squares(batch_size=2)
    >>> len(d), d[1]
    (4, (Tensor([2., 3.], dtype=float32), Tensor([4., 9.], dtype=float32)))
    """

    train_data: tuple[Any, Any]
    test_data: tuple[Any, Any]

    def __init__(
        self,
        batch_size: int,
        drop_last: bool = True,
        shuffle: bool = False,
        generator: np.random.Generator | None = None,
    ):
        check_size("batch_size", batch_size)
        self.batch_size, self.drop_last, self.shuffle = batch_size, drop_last, shuffle
        self.generator = choose_generator(generator)
        self.load()
        self._train, self._test = self._arrays("train_data"), self._arrays("test_data")
        self.order: np.ndarray | None = None  # the order of the training pairs, once shuffled
        self.training = True

    def load(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} needs a method load(self) that sets train_data and test_data")

    def train(self) -> Dataset:
        """Give training batches from now on, in a new order if the dataset shuffles. Returns the dataset."""
        self.training = True
        if self.shuffle:
            self.order = self.generator.permutation(len(self._train[0]))
        return self

    def eval(self) -> Dataset:
        """Give test batches from now on, always in the same order. Returns the dataset."""
        self.training = False
        return self

    @property
    def settings(self) -> dict[str, int]:
        """What decides, besides the order, which pairs are in which training batch."""
        settings = {"pairs": len(self._train[0]), "batch_size": int(self.batch_size)}
        return settings | {"drop_last": self.drop_last, "shuffle": self.shuffle}

    def __len__(self) -> int:
        count, size = len(self._current()[0]), self.batch_size
        return count // size if self.drop_last else -(-count // size)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} batches, numbered from 0, got {index}")
        rows: Any = slice(index * self.batch_size, (index + 1) * self.batch_size)
        if self.training and self.order is not None:
            rows = self.order[rows]
        x, y = self._current()
        return Tensor(x[rows].copy()), Tensor(y[rows].copy())  # to be changed without changing the data

    def _current(self) -> tuple[np.ndarray, np.ndarray]:
        return self._train if self.training else self._test

    def _arrays(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        pair = getattr(self, name, None)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"{type(self).__name__}.load() must set {name} = (x, y), got {type(pair).__name__}")
        try:
            x, y = (part.data if isinstance(part, Tensor) else np.asarray(part) for part in pair)
        except ValueError as error:
            raise ValueError(f"{name}: rows of different lengths make no array: {error}") from None
        if len(x) != len(y):
            raise ValueError(f"{name} has {len(x)} features and {len(y)} labels: there must be equally many")
        if len(x) < (self.batch_size if self.drop_last else 1):
            raise ValueError(
                f"{name} has {len(x)} pairs, too few for one batch of {self.batch_size}: "
                "use a smaller batch_size, or drop_last=False"
            )
        return x, y
