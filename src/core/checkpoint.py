"""Checkpoints: a model, its optimizer and the random generator in one file, from which training goes on exactly.

The format is safetensors (8 bytes with the length of a JSON header, the header, the numbers), which holds names, shapes
and plain numbers and cannot run code. Chapter 10 uses it.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .layer import Layer
from .optimizer import Optimizer

DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "BOOL": np.bool_}
CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
MAX_HEADER = 100_000_000  # bytes; the limit of the format


def save_checkpoint(
    path: str | os.PathLike[str],
    model: Layer,
    optimizer: Optimizer | None = None,
    generator: np.random.Generator | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write the parameters, and if given the state of optimizer and generator, to `path`.

    `metadata` is a dictionary that JSON can hold: configuration, steps, losses. The file is written under a temporary
    name and renamed, so an interrupted call leaves an older file as it was.
    """
    arrays = {f"model.{name}": array for name, array in model.state_dict().items()}
    if optimizer is not None:
        arrays |= {f"optimizer.{name}": array for name, array in optimizer.state_dict().items()}
    notes = {"metadata": json.dumps(dict(metadata or {}))}
    if generator is not None:
        notes["generator"] = json.dumps(generator.bit_generator.state)
    write_arrays(path, arrays, notes)


def load_checkpoint(
    path: str | os.PathLike[str],
    model: Layer | None = None,
    optimizer: Optimizer | None = None,
    generator: np.random.Generator | None = None,
) -> dict[str, Any]:
    """Put what `path` holds into model, optimizer and generator, in place; return the metadata.

    Everything is checked before anything is changed. Raises ValueError when the file is damaged, when names or shapes
    do not fit, or when it has no state for the optimizer or generator that was passed.
    """
    arrays, notes = read_arrays(path)
    parts: dict[str, dict[str, np.ndarray]] = {"model": {}, "optimizer": {}}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        if part not in parts:
            raise ValueError(f"{path} holds {name!r}: it is no checkpoint of save_checkpoint")
        parts[part][rest] = array
    if optimizer is not None and not parts["optimizer"]:
        raise ValueError(f"{path} has no optimizer state: save it with save_checkpoint(path, model, optimizer)")
    if generator is not None and "generator" not in notes:
        raise ValueError(f"{path} has no generator state: save it with save_checkpoint(path, ..., generator=...)")
    state = _generator_state(path, notes["generator"], generator) if generator is not None else None
    kept = optimizer.state_dict() if optimizer is not None else {}
    if optimizer is not None:
        optimizer.load_state_dict(parts["optimizer"])
    try:
        if model is not None:
            model.load_state_dict(parts["model"])
    except ValueError:
        if optimizer is not None:
            optimizer.load_state_dict(kept)
        raise
    if generator is not None and state is not None:
        generator.bit_generator.state = state
    return json.loads(notes.get("metadata", "{}"))


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], notes: Mapping[str, str]) -> None:
    """Write named arrays and a dictionary of texts as a safetensors file. Raises TypeError for other dtypes."""
    header: dict[str, Any] = {"__metadata__": dict(notes)}
    blocks, offset = [], 0
    for name, array in arrays.items():
        if array.dtype not in CODES:
            raise TypeError(f"{name} is {array.dtype}: a checkpoint holds {', '.join(map(str, CODES))}")
        block = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        ends = [offset, offset + len(block)]
        header[name] = {"dtype": CODES[array.dtype], "shape": list(array.shape), "data_offsets": ends}
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the numbers start at a multiple of 8
    write_atomically(Path(path), b"".join([len(text).to_bytes(8, "little"), text, *blocks]))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name beside `path`, then rename it: `path` is always whole."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The named arrays and the texts of a safetensors file. Raises ValueError when the file is not one, or damaged."""
    content = Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(MAX_HEADER, len(content) - 8):
        raise ValueError(f"{path} is no safetensors file, or cut short: it has {len(content)} bytes")
    try:
        header = json.loads(content[8 : 8 + length])
        notes = header.pop("__metadata__", {})
        body = memoryview(content)[8 + length :]
        arrays = {name: _array(path, name, entry, body) for name, entry in header.items()}
    except (UnicodeDecodeError, json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} has a damaged header: {type(error).__name__}: {error}") from None
    if sum(array.nbytes for array in arrays.values()) != len(body):
        raise ValueError(f"{path} has {len(body)} bytes of numbers, its header speaks of another size: it is damaged")
    return arrays, notes


def _array(path: Any, name: str, entry: dict[str, Any], body: memoryview) -> np.ndarray:
    start, end = entry["data_offsets"]
    shape = entry["shape"]
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"{path}: {name} has dtype {entry['dtype']}, this reader knows {', '.join(DTYPES)}")
    dtype = np.dtype(DTYPES[entry["dtype"]])
    if not 0 <= start <= end <= len(body) or math.prod(shape) * dtype.itemsize != end - start:
        raise ValueError(
            f"{path}: {name} of shape {shape} should lie in bytes {start} to {end} of {len(body)}: damaged"
        )
    return np.frombuffer(body[start:end], dtype=dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def _generator_state(path: Any, text: str, generator: np.random.Generator) -> dict[str, Any]:
    state = json.loads(text)
    own = type(generator.bit_generator).__name__
    if not isinstance(state, dict) or state.get("bit_generator") != own:
        raise ValueError(f"{path} holds the state of another generator than {own}: pass the kind it was saved with")
    return state
