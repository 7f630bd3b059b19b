"""From text to token ids and back: one token a character, or byte pairs merged by how often they occur.

Chapter 2 uses characters; chapter 12 builds byte-pair encoding.
"""

from __future__ import annotations

import operator
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

from ..core.linear import check_size

BYTES = 256  # the ids below are the bytes themselves
# Every text is a row of such pieces, without a gap: a word or a run of marks, each with one space before it if there
# is one; else white space, up to the space that belongs to the next word.
PIECE = re.compile(r" ?\w+| ?[^\w\s]+|\s+?(?= ?\S)|\s+")
Pair = tuple[int, int]


class Tokenizer(Protocol):
    """What turns a text into ids below `vocab_size` and ids into text."""

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Iterable[int]) -> str: ...

    def to_json(self) -> dict[str, Any]: ...


class CharTokenizer:
    """One token a character: the id of a character is its place in `vocab`.

    Raises ValueError when the vocabulary is empty, repeats a character or holds something else, and when a character
    or an id is not in it.

    >>> tokenizer = CharTokenizer.from_text("hello")
    >>> tokenizer.vocab, tokenizer.encode("hole"), tokenizer.decode([1, 0, 2, 2])
    (['e', 'h', 'l', 'o'], [1, 3, 2, 0], 'hell')
    """

    kind = "characters"

    def __init__(self, vocab: Sequence[str]):
        self.vocab = list(vocab)
        wrong = [symbol for symbol in self.vocab if not isinstance(symbol, str) or len(symbol) != 1]
        if wrong:
            raise ValueError(f"a vocabulary is a list of single characters, got {wrong[0]!r}")
        self.stoi = {symbol: token for token, symbol in enumerate(self.vocab)}
        self.itos = dict(enumerate(self.vocab))
        if len(self.stoi) != len(self.vocab) or not self.vocab:
            raise ValueError(
                f"a vocabulary names characters once each, got {len(self.vocab)}, {len(self.stoi)} different"
            )

    @classmethod
    def from_text(cls, text: str) -> CharTokenizer:
        """The tokenizer of the characters that occur in a text, sorted."""
        if not text:
            raise ValueError("an empty text has no characters to make tokens of")
        return cls(sorted(set(text)))

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    def encode(self, text: str) -> list[int]:
        """The ids of the characters of a text."""
        try:
            return [self.stoi[symbol] for symbol in text]
        except KeyError as error:
            raise ValueError(
                f"{error.args[0]!r} is not among the {self.vocab_size} characters of the vocabulary"
            ) from None

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a sequence of ids."""
        try:
            return "".join(self.itos[operator.index(token)] for token in ids)
        except KeyError as error:
            raise ValueError(f"ids go from 0 to {self.vocab_size - 1}, got {error.args[0]}") from None

    def to_json(self) -> dict[str, Any]:
        """What `from_json` makes the same tokenizer of, as plain values."""
        return {"kind": self.kind, "vocab": self.vocab}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> CharTokenizer:
        """The tokenizer that `to_json` described. Raises ValueError when the record is damaged."""
        return cls(_read(record, cls.kind, "vocab"))


class BytePairTokenizer:
    """Byte-pair encoding: ids 0 to 255 are the bytes of UTF-8, id 256 + n is the pair of ids that merge n joins.

    A text is first cut into pieces (words, runs of marks, white space; `PIECE`), and no token crosses a cut: training
    takes seconds, and no token holds the end of one line and the name that begins the next. Decoding gives an encoded
    text back exactly. Raises ValueError when a merge joins ids that do not exist yet or repeats an earlier one, when an
    id is outside the vocabulary, and for half a surrogate pair, which UTF-8 cannot hold.
    After Gage (1994) and, for text models, Sennrich, Haddow and Birch (2016).

    >>> tokenizer = BytePairTokenizer.train("aaabdaaabac", 256 + 3)
    >>> tokenizer.merges  # aa; then ab, which (256, 97) only ties with; then both
    [(97, 97), (97, 98), (256, 257)]
    >>> tokenizer.encode("aaabdaaabac")  # XdXac
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode([258, 100])
    'aaabd'
    """

    kind = "byte pairs"

    def __init__(self, merges: Iterable[Pair]):
        self.merges: list[Pair] = []
        self.symbols = [bytes([value]) for value in range(BYTES)]  # the bytes that each id stands for
        for merge in merges:
            left, right = self._checked(merge)
            self.merges.append((left, right))
            self.symbols.append(self.symbols[left] + self.symbols[right])
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        if len(self._ranks) != len(self.merges):
            raise ValueError(f"{len(self.merges)} merges join only {len(self._ranks)} different pairs: one is repeated")

    @classmethod
    def train(cls, text: str, vocab_size: int) -> BytePairTokenizer:
        """Join the most frequent pair of neighbours, and again, until there are `vocab_size` tokens.

        Among equally frequent pairs the one with the lowest ids wins, so equal texts give equal tokenizers. In "aaa"
        the pair "aa" counts twice. Raises ValueError below 256, and when the text has no more pairs to join.
        """
        check_size("vocab_size", vocab_size)
        if vocab_size < BYTES:
            raise ValueError(f"the {BYTES} bytes are tokens too: vocab_size is at least {BYTES}, got {vocab_size}")
        words = _Words(text)
        merges: list[Pair] = []
        for new in range(BYTES, vocab_size):
            pair = words.most_frequent_pair()
            if pair is None:
                raise ValueError(f"after {new} tokens no pair is left, not {vocab_size}: use a longer text or fewer")
            words.merge(pair, new)
            merges.append(pair)
        return cls(merges)

    @property
    def vocab_size(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> list[int]:
        """The ids of a text: in each piece, the merge learned first is made first. A piece is worked out once."""
        known: dict[str, list[int]] = {}
        ids: list[int] = []
        for piece in PIECE.findall(text):
            if piece not in known:
                known[piece] = self._encode_piece(piece)
            ids += known[piece]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a sequence of ids. Bytes that are no UTF-8, as of a character cut in two, become U+FFFD."""
        numbers = [operator.index(token) for token in ids]
        for token in numbers:
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"ids go from 0 to {self.vocab_size - 1}, got {token}")
        return b"".join(self.symbols[token] for token in numbers).decode("utf-8", errors="replace")

    def to_json(self) -> dict[str, Any]:
        """What `from_json` makes the same tokenizer of, as plain values."""
        return {"kind": self.kind, "merges": [list(pair) for pair in self.merges]}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> BytePairTokenizer:
        """The tokenizer that `to_json` described. Raises ValueError when the record is damaged."""
        return cls(_read(record, cls.kind, "merges"))

    def _encode_piece(self, piece: str) -> list[int]:
        ids = list(piece.encode("utf-8"))
        while len(ids) > 1:
            pair = min(pairwise(ids), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if pair not in self._ranks:
                break
            ids = merge_pair(ids, pair, BYTES + self._ranks[pair])
        return ids

    def _checked(self, merge: Any) -> Pair:
        """A merge as a pair of ids that stand before its own."""
        try:
            left, right = merge
        except (TypeError, ValueError):
            raise ValueError(f"a merge is a pair of ids, got {merge!r}") from None
        for token in (left, right):
            if type(token) is not int or not 0 <= token < self.vocab_size:
                raise ValueError(f"merge {len(self.merges)} joins ids from 0 to {self.vocab_size - 1}, got {merge!r}")
        return left, right


def merge_pair(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """The ids with `new` in place of each `pair` of neighbours, from the left.

    >>> merge_pair([7, 7, 7, 2, 7, 7], (7, 7), 9)
    [9, 7, 2, 9]
    """
    merged: list[int] = []
    place = 0
    while place < len(ids):
        found = tuple(ids[place : place + 2]) == pair
        merged.append(new if found else ids[place])
        place += 2 if found else 1
    return merged


def tokenizer_from_json(record: dict[str, Any]) -> CharTokenizer | BytePairTokenizer:
    """The tokenizer, of whichever kind, that its `to_json` described. Raises ValueError when the record is damaged."""
    kind = record.get("kind") if isinstance(record, dict) else None
    if kind == CharTokenizer.kind:
        return CharTokenizer.from_json(record)
    if kind == BytePairTokenizer.kind:
        return BytePairTokenizer.from_json(record)
    raise ValueError(f"a tokenizer's kind is {CharTokenizer.kind!r} or {BytePairTokenizer.kind!r}, got {kind!r}")


class _Words:
    """The distinct pieces of a text as rows of ids, each with its number of copies, and the pairs in them.

    Counting words instead of the text, and after a merge only the words that held the pair, is what makes training
    take seconds.
    """

    def __init__(self, text: str):
        copies = Counter(PIECE.findall(text))
        self.copies = list(copies.values())
        self.rows = [list(word.encode("utf-8")) for word in copies]
        self.counts: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[int]] = defaultdict(set)  # where a pair is, or once was
        for number in range(len(self.rows)):
            self._count(number)

    def most_frequent_pair(self) -> Pair | None:
        """The pair that occurs most often, of equals the one with the lowest ids; None when there is no pair."""
        pair = min(self.counts, key=lambda pair: (-self.counts[pair], pair), default=None)
        return pair if pair is not None and self.counts[pair] else None

    def merge(self, pair: Pair, new: int) -> None:
        for number in self.places.pop(pair):
            for old in pairwise(self.rows[number]):
                self.counts[old] -= self.copies[number]
            self.rows[number] = merge_pair(self.rows[number], pair, new)
            self._count(number)

    def _count(self, number: int) -> None:
        for pair in pairwise(self.rows[number]):
            self.counts[pair] += self.copies[number]
            self.places[pair].add(number)


def _read(record: dict[str, Any], kind: str, field: str) -> list[Any]:
    """The list that a tokenizer's record holds under `field`, once its kind is the right one."""
    if not isinstance(record, dict) or record.get("kind") != kind or not isinstance(record.get(field), list):
        raise ValueError(f"not the record of a tokenizer: needs kind {kind!r} and a list {field!r}, got {record!r:.80}")
    return record[field]
