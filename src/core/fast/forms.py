"""How the layers of the engine compute on arrays, for layers.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..activation import GELU, ReLU, Softmax
from ..dropout import Dropout
from ..embedding import Embedding, check_ids
from ..layer import Composite
from ..linear import Linear
from ..normalization import LayerNorm
from ..tensor import Tensor
from .embedding import embedding
from .gelu import gelu_tanh
from .layer_norm import layer_norm
from .layers import Backward, Form, Pass, table_of
from .linear import linear, linears


def _embedding(layer: Embedding, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    check_ids(x, layer.weight.shape[0])
    return one_pass.kernel(embedding, x, layer.weight)


def _linear(layer: Linear, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    if x.shape[-1] != layer.weight.shape[0]:
        layer.forward(Tensor(x))  # raises, and says why
    return one_pass.kernel(linear, x, layer.weight, layer.bias)


def linears_of(layers: list[Linear], x: np.ndarray, one_pass: Pass) -> tuple[tuple[np.ndarray, ...], Backward]:
    """The results of several linear layers of one x; the backward function takes the gradients of them all."""
    for layer in layers:
        if x.shape[-1] != layer.weight.shape[0]:
            layer.forward(Tensor(x))  # raises, and says why
    return one_pass.kernel(linears, x, *[each for layer in layers for each in (layer.weight, layer.bias)])


def _layer_norm(layer: LayerNorm, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    if x.shape[-1] != layer.weight.shape[0]:
        layer.forward(Tensor(x))  # raises, and says why
    return one_pass.kernel(layer_norm, x, layer.weight, layer.bias, eps=layer.eps)


def _gelu(layer: GELU, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    return one_pass.kernel(gelu_tanh, x) if layer.approximate == "tanh" else on_tensors(layer, x, one_pass)


def _dropout(layer: Dropout, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    kept = layer.draw(x.shape, one_pass.generator(layer.generator))
    if kept is None:
        return identity(layer, x, one_pass)
    return np.where(kept, x * layer.scale, 0.0), lambda grad: np.where(kept, grad * layer.scale, 0.0)


def _composite(layer: Composite, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    return one_pass.layers(layer.layers, x)


def identity(layer: Any, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    """For a layer that gives back what it gets."""
    return x, lambda grad: grad


def on_tensors(layer: Any, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    """For a layer without parameters: its own operations on tensors."""
    start = Tensor(x, dtype=x.dtype)
    result = layer(start)

    def backward(grad: np.ndarray) -> np.ndarray:
        result.backward(grad)
        return start.received

    return result.data, backward


def _of_floats(layer: Any) -> bool:
    return layer.weight.dtype.kind == "f"


FORMS = table_of(
    Form(Embedding, _embedding, fits=_of_floats),
    Form(Linear, _linear, fits=_of_floats),
    Form(LayerNorm, _layer_norm, fits=_of_floats),
    Form(GELU, _gelu),
    Form(ReLU, on_tensors),
    Form(Softmax, on_tensors),
    Form(Dropout, _dropout),
    Form(Composite, _composite, parts=lambda layer: layer.layers, fits=lambda layer: "layers" in vars(layer)),
)
