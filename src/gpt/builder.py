"""How a chapter, or a reader, plugs a part of their own into the GPT. Chapter 5 does it first.

A builder is a class or function that takes `embedding_size` and returns a layer (B, T, C) -> (B, T, C); further
settings are fixed with `functools.partial`. Settings of the GPT, such as `heads`, go to builders that take them by
name; what `partial` has fixed stays as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..core import Layer

Builder = Callable[..., Layer]


def build(builder: Builder, *sizes: int, **settings: tuple[Any, Any]) -> Layer:
    """`builder(*sizes, ...)` with those settings that it takes; each setting is a pair (value, default).

    Raises TypeError when a setting that is not at its default is not taken or was fixed by `functools.partial`, or when
    no layer comes back.
    """
    taken, fixed = inspect.signature(builder).parameters, getattr(builder, "keywords", {})
    accepted = {name: value for name, (value, _) in settings.items() if name in taken and name not in fixed}
    _check_refused(builder, {name: pair for name, pair in settings.items() if name not in accepted}, fixed)
    layer = builder(*sizes, **accepted)
    if not isinstance(layer, Layer):
        raise TypeError(f"{_name(builder)} must return a Layer, got {type(layer).__name__}")
    return layer


def _check_refused(builder: Builder, refused: dict[str, tuple[Any, Any]], fixed: dict[str, Any]) -> None:
    """Raise TypeError for a setting that cannot reach the builder, unless it is at its default."""
    for name, (value, default) in refused.items():
        if value == default:
            continue
        if name in fixed:
            raise TypeError(
                f"{name} is given twice: {name}={value!r} to the GPT and {name}={fixed[name]!r} to {_name(builder)} "
                "by functools.partial: leave out one of them"
            )
        raise TypeError(
            f"{_name(builder)} does not take {name}, got {name}={value!r}: leave it out, "
            f"or give {_name(builder)} a parameter called {name}"
        )


def _name(builder: Builder) -> str:
    inner = getattr(builder, "func", builder)  # functools.partial keeps what it wraps there
    return getattr(inner, "__name__", type(inner).__name__)
