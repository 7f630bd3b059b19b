"""How a chapter, or a reader, plugs a part of their own into the GPT. Chapter 5 does it first.

A builder is a class or function that takes `embedding_size` and returns a layer (B, T, C) -> (B, T, C); further
settings are fixed with `functools.partial`. Settings of the GPT, such as `heads`, go to builders that take them by
name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..core import Layer

Builder = Callable[..., Layer]


def build(builder: Builder, *sizes: int, **settings: tuple[Any, Any]) -> Layer:
    """`builder(*sizes, ...)` with those settings that it takes; each setting is a pair (value, default).

    Raises TypeError when a setting that is not at its default is not taken, or when no layer comes back.
    """
    taken = inspect.signature(builder).parameters
    accepted = {name: value for name, (value, _) in settings.items() if name in taken}
    for name, (value, default) in settings.items():
        if name not in taken and value != default:
            raise TypeError(
                f"{_name(builder)} does not take {name}, got {name}={value!r}: leave it out, "
                f"or give {_name(builder)} a parameter called {name}"
            )
    layer = builder(*sizes, **accepted)
    if not isinstance(layer, Layer):
        raise TypeError(f"{_name(builder)} must return a Layer, got {type(layer).__name__}")
    return layer


def _name(builder: Builder) -> str:
    inner = getattr(builder, "func", builder)  # functools.partial keeps what it wraps there
    return getattr(inner, "__name__", type(inner).__name__)
