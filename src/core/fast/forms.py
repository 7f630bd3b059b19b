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
from .layers import Back, Pass, add_form
from .linear import linear


def _embedding(layer: Embedding, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    check_ids(x, layer.weight.shape[0])
    return here.kernel(embedding, x, layer.weight)


def _linear(layer: Linear, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    if x.shape[-1] != layer.weight.shape[0]:
        layer.forward(Tensor(x))  # raises, and says why
    return here.kernel(linear, x, layer.weight, layer.bias)


def _layer_norm(layer: LayerNorm, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    if x.shape[-1] != layer.weight.shape[0]:
        layer.forward(Tensor(x))  # raises, and says why
    return here.kernel(layer_norm, x, layer.weight, layer.bias, eps=layer.eps)


def _gelu(layer: GELU, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    return here.kernel(gelu_tanh, x) if layer.approximate == "tanh" else by_itself(layer, x, here)


def _dropout(layer: Dropout, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    kept = layer.draw(x.shape, here.generator(layer.generator))
    if kept is None:
        return nothing(layer, x, here)
    return np.where(kept, x * layer.scale, 0.0), lambda grad: np.where(kept, grad * layer.scale, 0.0)


def _composite(layer: Composite, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    return here.layers(layer.layers, x)


def nothing(layer: Any, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    """For a layer that gives back what it gets."""
    return x, lambda grad: grad


def by_itself(layer: Any, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    """For a layer without parameters: its own operations on tensors."""
    start = Tensor(x, dtype=x.dtype)
    result = layer(start)

    def way_back(grad: np.ndarray) -> np.ndarray:
        result.backward(grad)
        return start.received

    return result.data, way_back


add_form(Embedding, _embedding)
add_form(Linear, _linear)
add_form(LayerNorm, _layer_norm)
add_form(GELU, _gelu)
add_form(ReLU, by_itself)
add_form(Softmax, by_itself)
add_form(Dropout, _dropout)
add_form(Composite, _composite, parts=lambda layer: layer.layers)
