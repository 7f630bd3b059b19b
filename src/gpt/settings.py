"""The configuration of a training run: a TOML file, read into three small tables. Chapter 10 explains its lines.

What is wrong in itself (an unknown key, a text where a number belongs) is refused here; values that cannot be, such as
three heads for 128 channels, are refused by the part of the engine that is built from them.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from .rotary import POSITIONS

TOKENIZERS = ("characters", "byte pairs")
OPTIMIZERS = ("adamw", "muon")
SCHEDULES = ("cosine", "linear")
KINDS = {
    int: "a whole number such as 4",
    float: "a number such as 0.1",
    bool: "true or false",
    str: "a text in quotes",
    list: "a list of two numbers such as [0.9, 0.99]",
}
Table = TypeVar("Table")


@dataclass(frozen=True)
class TextSettings:
    """[text]: what to read, and how to cut it into tokens and into a part for training and one for testing."""

    file: str  # as seen from the folder of the configuration
    tokenizer: str = "characters"
    vocab_size: int = 0  # of byte pairs alone: characters count themselves
    split: float = 0.9

    def __post_init__(self) -> None:
        _choose("tokenizer", self.tokenizer, TOKENIZERS)
        if (self.vocab_size != 0) != (self.tokenizer == "byte pairs"):
            raise ValueError(
                f'vocab_size = {self.vocab_size} with tokenizer = "{self.tokenizer}": '
                "say how many tokens for byte pairs, 512 for example, and leave it out for characters"
            )


@dataclass(frozen=True)
class ModelSettings:
    """[model]: the sizes of the GPT, by the names that `GPT` has for them, and its positions."""

    context_size: int
    embedding_size: int
    blocks: int
    heads: int
    dropout: float = 0.0
    tied: bool = True
    positions: str = "learned"

    def __post_init__(self) -> None:
        _choose("positions", self.positions, tuple(POSITIONS))


@dataclass(frozen=True)
class TrainingSettings:
    """[training]: batches, optimizer and learning rate, and how often to evaluate and to save."""

    steps: int
    batch_size: int
    stride: int  # from one training window to the next
    lr: float
    min_lr: float
    warmup_steps: int
    weight_decay: float
    evaluate_every: int
    save_every: int
    betas: list = field(default_factory=lambda: [0.9, 0.99])
    momentum: float = 0.95  # of Muon alone
    optimizer: str = "adamw"
    schedule: str = "cosine"
    half: bool = False  # the final model's file holds float16
    seed: int = 1

    def __post_init__(self) -> None:
        _choose("optimizer", self.optimizer, OPTIMIZERS)
        _choose("schedule", self.schedule, SCHEDULES)
        for name in ("steps", "evaluate_every", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class Settings:
    """All of a configuration."""

    text: TextSettings
    model: ModelSettings
    training: TrainingSettings

    def changed(self, **training: Any) -> Settings:
        """The same with other values in [training]; None leaves a value as it is."""
        given = {name: value for name, value in training.items() if value is not None}
        return dataclasses.replace(self, training=dataclasses.replace(self.training, **given))


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings in a TOML file. Raises ValueError, with the line to write, when it is not a whole configuration."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not in the form of TOML, lines such as `blocks = 4`: {error}") from None
    try:
        return settings_from(tables)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def settings_from(tables: Mapping[str, Any]) -> Settings:
    """The settings in nested dictionaries, as TOML gives them and `dataclasses.asdict` makes them.

    >>> settings_from({"text": {"file": "a.txt"}, "modle": {}})
    Traceback (most recent call last):
    ValueError: there is no table [modle], did you mean [model]? There are [text], [model], [training]
    """
    kinds = get_type_hints(Settings)
    for name in tables:
        if name not in kinds:
            known = ", ".join(f"[{kind}]" for kind in kinds)
            raise ValueError(f"there is no table [{name}]{_guess(name, kinds, '[{}]')} There are {known}")
    return Settings(**{name: _table(name, kind, tables.get(name)) for name, kind in kinds.items()})


def _table(table: str, kind: type[Table], given: Any) -> Table:
    """One table, each of its values checked against the type of the field."""
    if not isinstance(given, dict):
        raise ValueError(f"the table [{table}] is missing: begin it with a line [{table}]")
    types = get_type_hints(kind)
    for name, value in given.items():
        if name not in types:
            raise ValueError(
                f"[{table}] has no {name}{_guess(name, types, '{}')} It has {', '.join(types)}; "
                "in TOML a line belongs to the table above it"
            )
        _check_kind(f"{name} in [{table}]", value, types[name])
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]
        needed = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if needed and each.name not in given:
            raise ValueError(f"[{table}] needs a line {each.name} = ..., {KINDS[types[each.name]]}")
    converted = {name: float(value) if types[name] is float else value for name, value in given.items()}
    return kind(**converted)


def _check_kind(place: str, value: Any, kind: type) -> None:
    fits = type(value) is kind or (kind is float and type(value) is int)
    if fits and kind is list:
        fits = len(value) == 2 and all(type(each) in (int, float) for each in value)
    if not fits:
        raise ValueError(f"{place} must be {KINDS[kind]}, got {value!r}")


def _choose(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is one of {', '.join(map(repr, known))}, got {value!r}")


def _guess(name: str, known: Mapping[str, Any], form: str) -> str:
    """The end of "there is no ...": what was probably meant."""
    close = difflib.get_close_matches(name, known, 1)
    return f", did you mean {form.format(close[0])}?" if close else "."
