"""Layers: parts of a model that own parameters. Chapter 1 builds the first one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from .random import default_generator
from .tensor import Tensor


class Layer:
    """A part of a model. Subclasses define `forward`; calling the layer calls it.

    Every float Tensor made with `Tensor(...)` that is an attribute, or stands in an attribute that is a list, tuple or
    dictionary, is a parameter, and so are those of layers found in the same way. Plain arrays are not, and neither is a
    result such as `Tensor(...) * 0.1`: write `Tensor(0.1 * array)`.

    >>> class Scale(Layer):
    ...     def __init__(self):
    ...         self.factor = Tensor(2.0)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(Tensor([1.0, 2.0]))
    Tensor([2., 4.], dtype=float32)
    >>> [name for name, tensor in Scale().named_parameters()]
    ['factor']
    """

    training = True  # a class attribute, so that subclasses need not call Layer.__init__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], np.ndarray | list):
            raise TypeError(f"{type(self).__name__} takes a Tensor, got {type(args[0]).__name__}: write Tensor(...)")
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method forward(self, x) that returns a Tensor")

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Each parameter once, with a name such as "blocks.0.attention.query.weight", in the order of the attributes.

        The name is also written into the tensor, where error messages find it, unless a model that this layer is a part
        of has written its longer name. Raises ValueError when two parameters get the same name, as those under the keys
        1 and "1" of a dictionary do.
        """
        seen: set[int] = set()
        named: dict[str, Tensor] = {}
        for name, item in _walk(self):
            if isinstance(item, Tensor) and id(item) not in seen and item.dtype.kind == "f" and not item.computed:
                if name in named:
                    raise ValueError(
                        f"two parameters are called {name!r}, of shapes {named[name].shape} and {item.shape}: "
                        "give them different keys"
                    )
                seen.add(id(item))
                named[name] = item
                if not (item.name or "").endswith(f".{name}"):  # a part asked by itself does not shorten the name
                    item.name = name
                yield name, item

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, each once."""
        return [tensor for _, tensor in self.named_parameters()]

    def layers_within(self) -> Iterator[Layer]:
        """This layer and every layer inside it, each once."""
        return (item for _, item in _walk(self) if isinstance(item, Layer))

    def train(self) -> Layer:
        """Switch this layer and all inside it to training (Dropout drops). Returns the layer."""
        for layer in self.layers_within():
            layer.training = True
        return self

    def eval(self) -> Layer:
        """Switch this layer and all inside it to evaluation (Dropout does nothing). Returns the layer."""
        for layer in self.layers_within():
            layer.training = False
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of every parameter by name; a tensor shared by two layers is in it once."""
        return {name: tensor.data.copy() for name, tensor in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy arrays into the parameters of the same names, in place, so that shared tensors stay shared.

        All names and shapes are checked first: with a ValueError nothing has been changed.
        """
        parameters = dict(self.named_parameters())
        missing, unknown = parameters.keys() - state.keys(), state.keys() - parameters.keys()
        if missing or unknown:
            raise ValueError(
                f"the names do not fit this model: missing {sorted(missing) or 'none'}, "
                f"unknown {sorted(unknown) or 'none'}: build the model it was saved from"
            )
        for name, tensor in parameters.items():
            array = np.asarray(state[name])
            if array.shape != tensor.shape or array.dtype.kind != "f":
                raise ValueError(
                    f"{name}: the model has floats of shape {tensor.shape}, the file {array.dtype} of {array.shape}: "
                    "build the model with the sizes it was saved with"
                )
        for name, tensor in parameters.items():
            tensor.data = state[name]

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        memo[id(default_generator())] = default_generator()  # a copy draws from it, too, and `seed` reaches the copy
        copied = memo[id(self)] = object.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))
        return copied

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sum(tensor.data.size for tensor in self.parameters):,} parameters)"


class Composite(Layer):
    """A layer made of layers, applied one after the other unless a subclass defines `forward`.

    A subclass that keeps layers as attributes lists them all: one that is forgotten raises ValueError, anything that
    is not a layer TypeError. An attribute that is replaced later counts at once for a `forward` that uses it; without
    such a `forward` the list is what computes, and calling raises RuntimeError until the new layer is in it.

    >>> from src.core import Linear, ReLU
    >>> Composite([Linear(2, 8), ReLU(), Linear(8, 1)])
    Composite(33 parameters)
    """

    _named: Sequence[Layer] = ()  # those of the list that are, or have been, attributes as well

    def __init__(self, layers: Sequence[Layer]):
        layers = list(layers)
        for layer in layers:
            if not isinstance(layer, Layer):
                raise TypeError(f"Composite takes layers, got {type(layer).__name__}: make it a subclass of Layer")
        attributes = {id(item) for _, item in _walk(self)}
        self.layers = layers
        self._named = [layer for layer in layers if id(layer) in attributes]
        forgotten = self.unlisted()
        if forgotten:
            raise ValueError(f"{type(self).__name__} has layers that are not in its list: add {', '.join(forgotten)}")

    def unlisted(self) -> list[str]:
        """The names of layers that are attributes but neither in the list nor inside a layer of it."""
        holders = [value for value in vars(self).values() if isinstance(value, Layer | list | tuple | dict)]
        known = [self.layers, self._named, *self.layers]
        if all(any(value is each for each in known) for value in holders):  # the usual case, quickly
            return []
        listed = {id(inner) for layer in self.layers for inner in layer.layers_within()}
        return [name for name, item in _walk(self) if name and isinstance(item, Layer) and id(item) not in listed]

    def forward(self, x: Any) -> Any:
        kind = type(self).__name__
        if "layers" not in vars(self):
            raise RuntimeError(f"{kind} has no list of layers: end its __init__ with super().__init__([...])")
        if replaced := self.unlisted():
            raise RuntimeError(
                f"{kind} computes with its list of layers, where {replaced[0]} is not: put it into .layers"
            )
        for layer in self.layers:
            x = layer(x)
        return x


def _walk(item: Any, name: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Every layer and tensor reachable through attributes, lists, tuples and dictionaries, with its dotted name.

    Layers and containers are entered once, so a cycle ends; a shared tensor comes up under each of its names.
    """
    seen = set() if seen is None else seen
    if isinstance(item, Tensor):
        yield name, item
        return
    if isinstance(item, set | frozenset) and any(isinstance(value, Layer | Tensor) for value in item):
        raise TypeError(f"{name} is a set, which has no order of its own: keep layers and tensors in a list")
    if not isinstance(item, Layer | list | tuple | dict) or id(item) in seen:
        return
    seen.add(id(item))
    if isinstance(item, Layer):
        yield name, item
    inside = _inside(item)
    for key, value in inside.items():
        yield from _walk(value, f"{name}.{key}" if name else str(key), seen)


def _inside(item: Layer | list | tuple | dict) -> Mapping[Any, Any]:
    """What a layer or a container holds. Of the list of a Composite, only what has no name of its own: a layer with a
    name counts as long as the attribute holds it.
    """
    if isinstance(item, Composite) and "_named" in vars(item):
        named = {id(layer) for layer in item._named}
        inside: dict[str, Any] = {}
        for key, value in vars(item).items():
            if key == "layers":
                inside |= {f"layers.{place}": each for place, each in enumerate(value) if id(each) not in named}
            elif key != "_named":
                inside[key] = value
        return inside
    if isinstance(item, Layer):
        return vars(item)
    return item if isinstance(item, dict) else dict(enumerate(item))
