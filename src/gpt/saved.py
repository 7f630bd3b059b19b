"""A trained GPT in one file: its weights, its sizes and its tokenizer. Chapters 10 and 11 use it.

The file is safetensors, like a checkpoint (src/core/checkpoint.py). What is no array stands as JSON in its texts: "gpt"
(the settings of the model), "tokenizer", and "notes" (how it was trained).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Layer, Tensor
from ..core.checkpoint import read_arrays, write_arrays
from .model import GPT
from .rotary import POSITIONS, RotaryAttention
from .tokenizer import Tokenizer, tokenizer_from_json

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "models" / "shakespeare.safetensors"  # the course's own model
FORMAT = "GPT of attention-from-scratch, 1"
LONGEST_CONTEXT = 1 << 20  # rotary positions have no table whose size would show that a context is damaged
KINDS = {
    "vocab_size": int,
    "context_size": int,
    "embedding_size": int,
    "blocks": int,
    "heads": int,
    "dropout": float,
    "tied": bool,
    "positions": str,
}  # what a file says of its model, by the names that [model] has in a configuration


def save_model(
    path: str | os.PathLike[str],
    model: GPT,
    tokenizer: Tokenizer,
    notes: Mapping[str, Any] | None = None,
    half: bool = False,
) -> None:
    """Write a model and its tokenizer to one file, under a temporary name that is then renamed.

    `notes` is a dictionary that JSON can hold. With `half`, weights are rounded to float16, three decimal digits, in
    half the space. Raises ValueError when the tokenizer has not as many tokens as the model, when the model has parts
    of another kind than the GPT's own, or weights that are not finite.
    """
    if tokenizer.vocab_size != model.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model {model.vocab_size}: "
            "save the tokenizer that the model was trained with"
        )
    settings = model_settings(model)
    if settings["positions"] == "learned":
        del settings["positions"]  # version 0.2 does not know the word, and reads such a file
    records = {"gpt": settings, "tokenizer": tokenizer.to_json(), "notes": dict(notes or {})}
    arrays = model.state_dict()
    if half:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused below
            arrays = {name: array.astype(np.float16) for name, array in arrays.items()}
    _check_finite("the model", arrays)
    write_arrays(path, arrays, {"format": FORMAT} | {name: json.dumps(record) for name, record in records.items()})


def load_model(path: str | os.PathLike[str]) -> tuple[GPT, Tokenizer]:
    """The model and the tokenizer of a file that `save_model` wrote. The model is in evaluation mode.

    Weights come in the current float type, whatever the file holds. Raises ValueError when the file is damaged or holds
    something else.
    """
    arrays, records = _read(path)
    try:
        records["gpt"] = {"positions": "learned"} | records["gpt"]  # not said by files of version 0.2
        _check_settings(records["gpt"], arrays)
        tokenizer = tokenizer_from_json(records["tokenizer"])
        if tokenizer.vocab_size != records["gpt"]["vocab_size"]:
            raise ValueError(f"{tokenizer.vocab_size} tokens for a model of {records['gpt']['vocab_size']}")
        _check_finite("the file", arrays)
        model = build_gpt(records["gpt"], np.random.default_rng(0))
        model.load_state_dict(arrays)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    model.eval()
    return model, tokenizer


def load_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `save_model` was told about the model: how it was trained, its losses. Raises ValueError as `load_model`."""
    return _read(path)[1]["notes"]


def build_gpt(settings: Mapping[str, Any], generator: np.random.Generator | None = None) -> GPT:
    """The GPT that a configuration or a file describes: the settings of KINDS, `positions` by its name, or learned.

    Raises ValueError for a name that is not in POSITIONS.

    >>> build_gpt({"vocab_size": 65, "context_size": 8, "embedding_size": 16, "blocks": 2, "positions": "rotary"})
    GPT(8,672 parameters)
    """
    sizes = {"positions": "learned"} | dict(settings)
    name = sizes.pop("positions")
    _check_positions(name)
    return GPT(**POSITIONS[name], **sizes, generator=generator)


def model_settings(model: GPT) -> dict[str, Any]:
    """What `build_gpt` makes a model of the same form from.

    Raises ValueError when there are none, because a part was plugged in or an option used that is not in KINDS.

    >>> model_settings(GPT(vocab_size=65, context_size=8, embedding_size=16, blocks=2, heads=4))["heads"]
    4
    """
    attention = getattr(model.blocks[0], "attention", None)
    settings: dict[str, Any] = {
        "vocab_size": model.vocab_size,
        "context_size": model.context_size,
        "embedding_size": model.embedding_size,
        "blocks": len(model.blocks),
        "heads": getattr(attention, "heads", 1),
        "dropout": getattr(getattr(attention, "dropout", None), "rate", 0.0),
        "tied": model.output.linear is None,
        "positions": "rotary" if isinstance(attention, RotaryAttention) else "learned",
    }
    twin = build_gpt(settings, np.random.default_rng(0))
    for own, other in zip_longest(model.layers_within(), twin.layers_within()):
        if own is not None and _replaced_methods(own):
            raise ValueError(
                f"{type(own).__name__} has methods of its own, {', '.join(_replaced_methods(own))}, "
                "which no file holds: save the weights with save_checkpoint"
            )
        if _form(own) != _form(other) or type(own) is not type(other):
            raise ValueError(
                f"the model has {_form(own)} where the GPT has {_form(other)}: a file holds only the GPT with its own "
                "parts. Save the weights with save_checkpoint, and build the model yourself before load_checkpoint"
            )
    names = [dict(each.named_parameters()).keys() for each in (twin, model)]
    if names[0] != names[1]:
        raise ValueError(
            f"the model has no {', '.join(sorted(names[0] - names[1])) or 'tensor'} of its own, where the GPT has one: "
            "a file holds only tensors that are not shared, but for `tied`. Give each layer its own Tensor"
        )
    return settings


def _form(layer: Layer | None) -> str:
    """A layer's class, the shapes of its own tensors, and its plain settings."""
    if layer is None:
        return "nothing"
    passing = {"training", "keep_weights", "weights"}  # what may differ from one pass to the next
    values = {name: value for name, value in vars(layer).items() if name not in passing}
    plain = [f"{name}={value}" for name, value in values.items() if isinstance(value, str | int | float | None)]
    shapes = [f"{name} {value.shape}" for name, value in values.items() if isinstance(value, Tensor)]
    return f"{type(layer).__name__}({', '.join(plain + shapes)})"


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the three records of a file. Raises ValueError when it is not one of `save_model`."""
    arrays, texts = read_arrays(path)
    if texts.get("format") != FORMAT:
        raise ValueError(
            f"{path} is no model that this course saved (format {texts.get('format')!r}, wanted {FORMAT!r}): "
            "take the model.safetensors that `python -m src.gpt train` wrote, not its checkpoint"
        )
    try:
        records = {name: json.loads(texts[name]) for name in ("gpt", "tokenizer", "notes")}
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    if not all(isinstance(record, dict) for record in records.values()):
        raise ValueError(f"{path} is damaged: settings, tokenizer and notes must be dictionaries")
    return arrays, records


def _check_settings(settings: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless the settings are complete and fit the numbers in the file.

    Counting first means that a damaged size never makes Python ask for more memory than such a file can fill.
    """
    if {name: type(value) for name, value in settings.items()} != KINDS:
        raise ValueError(f"settings of a GPT are {', '.join(KINDS)}, got {settings!r:.200}")
    vocab, context, size, blocks = (settings[name] for name in list(KINDS)[:4])
    if min(vocab, context, size, blocks) < 1:
        raise ValueError(f"sizes are at least 1, got {settings}")
    _check_positions(settings["positions"])
    if context > LONGEST_CONTEXT:
        raise ValueError(f"a context of {context:,} tokens, at most {LONGEST_CONTEXT:,} are believed of a file")
    tables = vocab * size * (1 if settings["tied"] else 2)
    tables += context * size if settings["positions"] == "learned" else 0
    expected = tables + blocks * (12 * size * size + 13 * size) + 2 * size
    found = sum(array.size for array in arrays.values())
    if found != expected:
        raise ValueError(f"a GPT of these settings has {expected:,} weights, the file {found:,}")


def _check_positions(name: Any) -> None:
    if name not in POSITIONS:
        raise ValueError(f"positions are one of {', '.join(POSITIONS)}, got {name!r:.50}")


def _check_finite(owner: str, arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} in {owner} has numbers that are not finite in {array.dtype}: training diverged")


def _replaced_methods(layer: Layer) -> list[str]:
    """The names of methods that were replaced on this very object, as by `layer.forward = ...`."""
    return [name for name in vars(layer) if callable(getattr(type(layer), name, None))]
