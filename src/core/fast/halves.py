"""Two halves of a batch on two threads, from the first layer to the last and back again.

Sharing out each operation for itself costs a wait at its end. Sequences of a batch do not meet inside a model, so each
thread can take half of them through all layers: forward is handed over once, backward once. The second thread works
with a twin of the layers, which has the same numbers but gradients of its own; they are added at the end, in a fixed
order, so the result does not depend on which thread was first, nor on whether there were two.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from ..layer import Layer
from ..tensor import Tensor
from .threads import share_apart


def in_halves(layers: Sequence[Layer], x: Tensor) -> Tensor:
    """The layers one after the other, (B, ...) to (B, ...), for layers that treat the B parts of a batch apart."""
    half = len(x.data) // 2
    pairs: list[tuple[Tensor, Tensor]] = []
    sides = [layers, twin(list(layers), {}, pairs)]
    inputs = [Tensor(x.data[:half]), Tensor(x.data[half:])]
    results: list[Any] = [None, None]

    def forward(side: int) -> None:
        h = inputs[side]
        for layer in sides[side]:
            h = layer(h)
        results[side] = h

    share_apart([partial(forward, 0), partial(forward, 1)])
    out = Tensor(np.concatenate([result.data for result in results]))

    def gradient_fn() -> None:
        given = [out.received[:half], out.received[half:]]
        share_apart([partial(result.backward, grad) for result, grad in zip(results, given, strict=True)])
        for parameter, second in pairs:
            if second.has_grad:
                parameter.receive(second.received)
        x.receive(np.concatenate([side.received for side in inputs]))

    return out.attach(gradient_fn, (x, *(parameter for parameter, _ in pairs)))  # a change of one is noticed


def twin(item: Any, made: dict[int, Any], pairs: list[tuple[Tensor, Tensor]]) -> Any:
    """A copy of layers, lists and tensors with the same numbers in the same memory, but with gradients of its own.

    A random generator is replaced by a new one that starts from a number drawn from it. `made` holds the copy of each
    thing by its id, so that what is shared stays shared; `pairs` gets each tensor, once, with its copy.
    """
    if id(item) in made:
        return made[id(item)]
    if isinstance(item, Tensor):
        made[id(item)] = second = Tensor(item.data, dtype=item.dtype)
        second.name = item.name
        pairs.append((item, second))
    elif isinstance(item, np.random.Generator):
        made[id(item)] = np.random.Generator(np.random.PCG64(int(item.integers(2**63))))
    elif isinstance(item, list | tuple):
        made[id(item)] = type(item)(twin(each, made, pairs) for each in item)
    elif isinstance(item, dict):
        made[id(item)] = {key: twin(value, made, pairs) for key, value in item.items()}
    elif isinstance(item, Layer):
        made[id(item)] = layer = copy(item)
        for name, value in vars(item).items():
            if isinstance(value, Layer | Tensor | list | tuple | dict | np.random.Generator):
                setattr(layer, name, twin(value, made, pairs))
    else:
        return item
    return made[id(item)]
