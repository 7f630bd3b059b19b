"""Layers one after the other as one operation: between them plain arrays go from kernel to kernel.

A tensor, its record and its gradient cost some ten microseconds for each operation, and a small model has thirty of
10 to 50 microseconds. And a batch can be cut: its sequences do not meet inside a model, so two threads take half of
them each, through all layers and back. Sharing out each operation for itself would cost a wait at its end.

Which layers can do this stands in FORMS; a model with any other is computed layer by layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..dropout import Dropout
from ..layer import Composite, Layer
from ..tensor import Tensor
from .threads import prepare, share_apart

Back = Callable[[np.ndarray], np.ndarray]  # from the gradient of a result to that of what went in


class Form(NamedTuple):
    """How a class of layers computes on arrays."""

    run: Callable[[Any, np.ndarray, Pass], tuple[np.ndarray, Back]]
    parts: Callable[[Any], Iterable[Any]]  # the layers inside, which must have forms too
    fits: Callable[[Any], bool]  # what else must be true of the layer
    methods: list[tuple[str, Any]]  # what `run` stands for: nobody must have replaced it
    names: frozenset[str]  # of all methods


FORMS: dict[type, Form] = {}


def add_form(
    kind: type,
    run: Callable[[Any, np.ndarray, Pass], tuple[np.ndarray, Back]],
    parts: Callable[[Any], Iterable[Any]] = lambda layer: (),
    fits: Callable[[Any], bool] = lambda layer: True,
) -> None:
    """From now on layers of this very class compute by `run(layer, x, here)`: the result and the way back."""
    names = [name for name in dir(kind) if callable(getattr(kind, name))]
    own = ["__call__", "forward", *(name for name in names if not hasattr(Composite, name))]
    methods = [(name, getattr(kind, name)) for name in own]
    FORMS[kind] = Form(run, parts, fits, methods, frozenset(names))


def known(layers: Iterable[Any]) -> bool:
    """True if the layers and all inside have forms, and nobody has replaced a method that a form stands for."""
    waiting = list(layers)
    while waiting:
        layer = waiting.pop()
        kind = type(layer)
        form = FORMS.get(kind)
        if form is None or not form.names.isdisjoint(layer.__dict__) or not form.fits(layer):
            return False
        for name, method in form.methods:
            if getattr(kind, name) is not method:
                return False
        waiting += form.parts(layer)
    return True


class Pass:
    """One way through layers and back. It collects gradients for itself: another thread may be on the same layers."""

    def __init__(self) -> None:
        self.recording = Tensor.recording()
        self.parameters: dict[int, Tensor] = {}  # by id, as the gradients
        self.gradients: dict[int, np.ndarray] = {}
        self.generators: dict[int, np.random.Generator] = {}  # what stands for a layer's own, by the id of that

    def layer(self, layer: Any, x: np.ndarray) -> tuple[np.ndarray, Back]:
        """The result of one layer, and the way back."""
        return FORMS[type(layer)].run(layer, x, self)

    def layers(self, layers: Sequence[Any], x: np.ndarray) -> tuple[np.ndarray, Back]:
        """The same of several. What a layer has kept is let go of as soon as the way back has used it."""
        backs: list[Back] = []
        for layer in layers:
            x, back = self.layer(layer, x)
            if self.recording:
                backs.append(back)

        def way_back(grad: np.ndarray) -> np.ndarray:
            while backs:
                grad = backs.pop()(grad)
            return grad

        return x, way_back

    def kernel(self, kernel: Any, x: np.ndarray, *parameters: Any, **settings: Any) -> tuple[np.ndarray, Back]:
        """The result of a kernel (see operation.py), and the way back, on which gradients of parameters are noted.

        A parameter that is missing is None for the kernel too.
        """
        result, back = kernel(x, *[None if each is None else each.data for each in parameters], **settings)
        for each in parameters:
            if each is not None:
                self.parameters[id(each)] = each

        def way_back(grad: np.ndarray) -> np.ndarray:
            x_grad, *found = back(grad)
            for parameter, gradient in zip(parameters, found, strict=True):
                if parameter is not None:
                    before = self.gradients.get(id(parameter))
                    self.gradients[id(parameter)] = gradient if before is None else before + gradient
            return x_grad

        return result, way_back

    def generator(self, own: np.random.Generator) -> np.random.Generator:
        """The generator to draw from."""
        return self.generators.get(id(own), own)


def through(layers: Sequence[Layer], x: Tensor, halves: bool = False) -> Tensor:
    """Known layers one after the other, (B, ...) to (B, ...). In halves, B must be 2 or more.

    Gradients of the halves are added in their order, so the result does not depend on which thread was first, nor on
    whether there were two.
    """
    prepare()
    half = len(x.data) // 2
    parts = [slice(half), slice(half, None)] if halves else [slice(None)]
    passes = [Pass() for _ in parts]
    results: list[Any] = [None for _ in parts]
    grads: list[Any] = [None for _ in parts]

    def forward(side: int) -> None:
        results[side] = passes[side].layers(layers, x.data[parts[side]])

    def backward(side: int) -> None:
        grads[side] = results[side][1](out.received[parts[side]])

    if halves:
        passes[1].generators = _generators(layers)
    _for_each(forward, len(parts))
    out = Tensor(np.concatenate([result for result, _ in results]) if halves else results[0][0])

    def gradient_fn() -> None:
        _for_each(backward, len(parts))
        for each in passes:
            for number, gradient in each.gradients.items():
                if each.parameters[number].differentiable:
                    each.parameters[number].receive(gradient)
        if x.differentiable:
            x.receive(np.concatenate(grads))  # a copy: a gradient that came all the way unchanged is not ours

    return out.attach(gradient_fn, (x, *passes[0].parameters.values()))


def _for_each(work: Callable[[int], None], sides: int) -> None:
    """`work` for each side, each on a thread of its own; one alone may share out its operations."""
    if sides == 1:
        work(0)
    else:
        share_apart([partial(work, side) for side in range(sides)])


def _generators(layers: Sequence[Layer]) -> dict[int, np.random.Generator]:
    """For each generator inside layers that drop, by its id, a new one that starts from a number drawn from it."""
    made: dict[int, np.random.Generator] = {}
    for layer in layers:
        for inner in layer.layers_within():
            if isinstance(inner, Dropout) and inner.training and inner.rate and id(inner.generator) not in made:
                number = int(inner.generator.integers(2**63))
                made[id(inner.generator)] = np.random.Generator(np.random.PCG64(number))
    return made
