"""Checkpoints: a model, its optimizer and the random generator in one file, from which training goes on exactly.

The format is safetensors (8 bytes with the length of a JSON header, the header, the numbers), which holds names, shapes
and plain numbers and cannot run code. Chapter 10 uses it.
"""

from __future__ import annotations

import json
import math
import os
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
        notes["generator"] = json.dumps(generator_state(generator))
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
    state = None
    if generator is not None:
        generator_state(generator)
        state = _json(path, notes["generator"])
        check_generator_state(path, state)
    metadata = _json(path, notes.get("metadata", "{}"))
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
    return metadata


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
    """Write a file under a temporary name beside `path`, then rename it: `path` is always whole.

    Raises FileNotFoundError, naming it, if the folder does not exist.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}, make it first")
    # A name that no other call has, in whatever thread; opened in the ordinary way, for ordinary permissions.
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The named arrays and the texts of a safetensors file. Raises ValueError when the file is not one, or damaged."""
    content = Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(MAX_HEADER, len(content) - 8):
        raise ValueError(f"{path} is no safetensors file, or cut short: it has {len(content)} bytes")
    try:
        header = json.loads(content[8 : 8 + length])
        notes = dict(header.pop("__metadata__", {}))
        body = memoryview(content)[8 + length :]
        arrays = {name: _array(path, name, entry, body) for name, entry in header.items()}
    except (ValueError, AttributeError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} has a damaged header: {type(error).__name__}: {error}") from None
    _check_layout(path, sorted(entry["data_offsets"] for entry in header.values()), len(body))
    return arrays, notes


def _check_layout(path: Any, ends: list[list[int]], size: int) -> None:
    """Raise ValueError unless the arrays fill the file from its first number to its last, without gap or overlap."""
    reached = 0
    for start, end in ends:
        if start != reached:
            raise ValueError(f"{path} is damaged: numbers start at byte {start} where {reached} was expected")
        reached = end
    if reached != size:
        raise ValueError(f"{path} has {size} bytes of numbers, its header speaks of {reached}: it is damaged")


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


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """What JSON has to hold for the generator to go on where it is. Raises ValueError for any other than a PCG64."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise ValueError(
            f"a checkpoint holds PCG64 generators, got {state['bit_generator']}: make it by np.random.default_rng(0)"
        )
    return dict(state)


def check_generator_state(path: Any, state: Any) -> None:
    """Raise ValueError unless `state` is one that a PCG64 generator can have. NumPy itself checks too little."""
    kind = state.get("bit_generator") if isinstance(state, dict) else type(state).__name__
    if kind != "PCG64":
        raise ValueError(f"{path} holds the state of {kind}, a checkpoint has those of PCG64 generators: it is damaged")
    trial = np.random.PCG64(0)
    try:
        trial.state = state
        fits = trial.state == state and state["state"]["inc"] % 2 == 1 and state["has_uint32"] in (0, 1)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"{path} has a damaged generator state: {type(error).__name__}: {error}") from None
    if not fits:
        raise ValueError(f"{path} has a damaged generator state: {state}")


def _json(path: Any, text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} has damaged notes: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} has damaged notes: a dictionary was expected, got {type(value).__name__}")
    return value
