"""Layers: parts of a model that own parameters. Chapter 1 builds the first one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

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

        The name is also written into the tensor, where error messages find it. Raises ValueError when two parameters
        get the same name, as those under the keys 1 and "1" of a dictionary do.
        """
        for name, tensor in self._named_parameters():
            tensor.name = name
            yield name, tensor

    def _named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The same, without writing names."""
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

    def __repr__(self) -> str:
        count = sum(tensor.data.size for _, tensor in self._named_parameters())
        return f"{type(self).__name__}({count:,} parameters)"


class Composite(Layer):
    """A layer made of layers, applied one after the other unless a subclass defines `forward`.

    A subclass that keeps layers as attributes lists them all: one that is forgotten raises ValueError, anything that
    is not a layer TypeError. Assigning another layer to such an attribute puts it into `layers`, too; an element of a
    list of one's own is replaced in both.

    >>> from src.core import Linear, ReLU
    >>> Composite([Linear(2, 8), ReLU(), Linear(8, 1)])
    Composite(33 parameters)
    """

    def __init__(self, layers: Sequence[Layer]):
        layers = list(layers)
        for layer in layers:
            if not isinstance(layer, Layer):
                raise TypeError(f"Composite takes layers, got {type(layer).__name__}: make it a subclass of Layer")
        self.layers = layers
        listed = {id(inner) for layer in layers for inner in layer.layers_within()}
        forgotten = [name for name, item in _walk(self) if name and isinstance(item, Layer) and id(item) not in listed]
        if forgotten:
            raise ValueError(f"{type(self).__name__} has layers that are not in its list: add {', '.join(forgotten)}")

    def __setattr__(self, name: str, value: Any) -> None:
        before, layers = vars(self).get(name), vars(self).get("layers")
        super().__setattr__(name, value)
        if not (isinstance(before, Layer) and isinstance(value, Layer) and isinstance(layers, list)):
            return
        if all(other is not before for other in vars(self).values()):  # it may have a second name
            layers[:] = [value if layer is before else layer for layer in layers]

    def forward(self, x: Any) -> Any:
        if "layers" not in vars(self):
            name = type(self).__name__
            raise RuntimeError(f"{name} has no list of layers: end its __init__ with super().__init__([...])")
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
    inside = vars(item) if isinstance(item, Layer) else item if isinstance(item, dict) else dict(enumerate(item))
    for key, value in inside.items():
        yield from _walk(value, f"{name}.{key}" if name else str(key), seen)
