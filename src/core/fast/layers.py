"""Layers one after the other as one operation: between them plain arrays go from kernel to kernel.

A tensor, its record and its gradient cost some ten microseconds for each operation, and a small model has thirty of
10 to 50 microseconds. And a batch can be cut: its sequences do not meet inside a model, so two threads take half of
them each, through all layers and back. Sharing out each operation for itself would cost a wait at its end.

Which layers can do this stands in tables of forms, here and in src/gpt; a model with any other layer is computed layer
by layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from ..dropout import Dropout
from ..gradient import unbroadcast
from ..layer import Composite, Layer
from ..tensor import Tensor
from .threads import prepare, run_apart

Backward = Callable[[Any], np.ndarray]  # from the gradient of a result to that of what went in


class Form:
    """How layers of one class, not of its subclasses, compute on arrays.

    `run(layer, x, one_pass)` gives the result and its backward function; `parts` the layers inside, which must have
    forms too; `fits` says whether the layer is as `run` takes it to be.
    """

    def __init__(
        self,
        kind: type[Layer],
        run: Callable[[Any, np.ndarray, Pass], tuple[np.ndarray, Backward]],
        parts: Callable[[Any], Iterable[Any]] | None = None,
        fits: Callable[[Any], bool] | None = None,
    ):
        self.kind, self.run, self.parts, self.fits = kind, run, parts, fits
        methods = [name for name in dir(kind) if callable(getattr(kind, name))]
        self.names = frozenset(methods)
        own = ["__call__", "forward", *(name for name in methods if not hasattr(Composite, name))]
        self.methods_of = attrgetter(*own)
        self.methods = self.methods_of(kind)  # `run` does what they do as they are now


Forms = Mapping[type, Form]


def table_of(*forms: Form) -> dict[type, Form]:
    """The forms by their classes."""
    return {form.kind: form for form in forms}


def known(layers: Iterable[Any], forms: Forms) -> bool:
    """True if the layers and all inside them have forms, and nobody has replaced a method of one."""
    waiting, seen, used = list(layers), set(), set()
    for layer in waiting:  # which grows
        form = forms.get(type(layer))
        if form is None or not form.names.isdisjoint(layer.__dict__):
            return False
        if form not in used:
            used.add(form)
            if form.methods_of(form.kind) != form.methods:
                return False
        if form.fits and not form.fits(layer):
            return False
        if form.parts and id(layer) not in seen:  # it may be shared, or inside itself
            seen.add(id(layer))
            waiting += form.parts(layer)
    return True


class Pass:
    """One forward and backward pass. It collects gradients for itself: another thread may be on the same layers."""

    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        self.recording = Tensor.recording()
        self.parameters: list[Tensor | None] = []  # those of each kernel; one that is used twice stands here twice
        self.gradients: dict[int, np.ndarray] = {}  # by the id of the parameter
        self.generators: dict[int, np.random.Generator] = {}  # what stands for a layer's own, by the id of that

    def layers(self, layers: Sequence[Any], x: np.ndarray) -> tuple[np.ndarray, Backward]:
        """The result of layers one after the other, and their backward function.

        What a layer has kept is let go of as soon as the backward pass has used it.
        """
        backwards: list[Backward] = []
        for layer in layers:
            x, backward = self.forms[type(layer)].run(layer, x, self)
            if self.recording:
                backwards.append(backward)

        def all_backward(grad: np.ndarray) -> np.ndarray:
            while backwards:
                grad = backwards.pop()(grad)
            return grad

        return x, all_backward

    def kernel(self, kernel: Any, x: np.ndarray, *parameters: Any, **settings: Any) -> tuple[Any, Backward]:
        """The result of a kernel (see operation.py), and a backward function that notes the parameters' gradients.

        A parameter that is missing is None for the kernel too.
        """
        arrays = [None if each is None else each.data for each in parameters]
        result, kernel_backward = kernel(x, *arrays, **settings)
        self.parameters += parameters
        gradients = self.gradients

        def backward(grad: np.ndarray) -> np.ndarray:
            x_grad, *found = kernel_backward(grad)
            for parameter, array, gradient in zip(parameters, arrays, found, strict=True):
                if array is None:
                    continue
                number = id(parameter)
                if gradient.shape != array.shape:
                    gradient = unbroadcast(gradient, array.shape)
                if number in gradients:
                    gradient = gradients[number] + gradient
                gradients[number] = gradient
            return x_grad

        return result, backward

    def generator(self, own: np.random.Generator) -> np.random.Generator:
        """The generator to draw from."""
        return self.generators.get(id(own), own)


def through(layers: Sequence[Layer], forms: Forms, x: Tensor, halves: bool = False) -> Tensor:
    """Known layers one after the other, (B, ...) to (B, ...). In halves, B must be 2 or more.

    Gradients of the halves are added in their order, so the result does not depend on which thread was first, nor on
    whether there were two. Where layers drop, the second half draws from a generator of its own: other numbers than
    without halves, in the same shares.
    """
    prepare()
    half = len(x.data) // 2
    parts = [slice(half), slice(half, None)] if halves else [slice(None)]
    passes = [Pass(forms) for _ in parts]
    if halves:
        passes[1].generators = _generators(layers)
    done = run_apart([partial(each.layers, layers, x.data[part]) for each, part in zip(passes, parts, strict=True)])
    results, backwards = zip(*done, strict=True)
    out = Tensor(np.concatenate(results) if halves else results[0])
    parameters = {id(each): each for each in passes[0].parameters if each is not None}

    def gradient_fn() -> None:
        given = out.received
        grads = run_apart([partial(each, given[part]) for each, part in zip(backwards, parts, strict=True)])
        storages = {number: each._storage for number, each in parameters.items() if each.differentiable}
        for each in passes:
            for number, gradient in each.gradients.items():
                if number in storages:  # not of a constant
                    storages[number].take(gradient)
        if x.differentiable:
            x.receive(np.concatenate(grads))  # a copy: a gradient that came all the way unchanged is not ours

    return out.attach(gradient_fn, (x, *parameters.values()))


def _generators(layers: Sequence[Layer]) -> dict[int, np.random.Generator]:
    """For each generator inside layers that drop, by its id, a new one that starts from a number drawn from it."""
    made: dict[int, np.random.Generator] = {}
    for layer in layers:
        for inner in layer.layers_within():
            if isinstance(inner, Dropout) and inner.training and inner.rate and id(inner.generator) not in made:
                number = int(inner.generator.integers(2**63))
                made[id(inner.generator)] = np.random.Generator(np.random.PCG64(number))
    return made
