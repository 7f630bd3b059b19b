"""Scaled dot-product attention, the operation this course is about. Chapters 3 to 6 build it."""

from __future__ import annotations

import math

import numpy as np

from .activation import softmax, softmax_gradient
from .masking import causal_mask, check_mask
from .tensor import Tensor


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: np.ndarray | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(D)) V and the softmax itself (Vaswani et al. 2017, equation 1).

    query (..., Tq, D), key (..., Tk, D) and value (..., Tk, E), with equal leading axes, give output (..., Tq, E) and
    weights (..., Tq, Tk). `mask` holds booleans, True where a query may attend, of shape (Tq, Tk) or (1, Tk), with
    leading axes absent, equal or 1. `causal` lets each query see keys up to its own place; with fewer queries than keys
    the queries are taken as the last ones. A query that may attend to nothing gets zeros. Raises ValueError for shapes
    that do not fit and TypeError for a mask that is not boolean.

    >>> x = Tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> output, weights = scaled_dot_product_attention(x, x, x, causal=True)
    >>> weights.data.round(4)
    array([[1.    , 0.    ],
           [0.3302, 0.6698]], dtype=float32)
    """
    _check_shapes(query, key, value)
    weights = attention_weights(query, key, mask, causal)
    return weights @ value, weights  # (..., Tq, Tk) @ (..., Tk, E) -> (..., Tq, E)


def attention_weights(query: Tensor, key: Tensor, mask: np.ndarray | None = None, causal: bool = False) -> Tensor:
    """The weights (..., Tq, Tk) alone: scores, scale, mask and softmax as one operation."""
    allowed = _allowed(query, key, mask, causal)
    scale = 1.0 / math.sqrt(query.shape[-1])
    scores = query.data @ key.data.swapaxes(-1, -2)  # (..., Tq, D) @ (..., D, Tk) -> (..., Tq, Tk)
    scores *= scale
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    out = Tensor(weights)

    def gradient_fn() -> None:
        grad = softmax_gradient(weights, out.grad)  # zero wherever the weight is: forbidden scores get no gradient
        grad *= scale
        if query.differentiable:
            query.grad += grad @ key.data
        if key.differentiable:
            key.grad += grad.swapaxes(-1, -2) @ query.data

    return out.attach(gradient_fn, (query, key))


def _allowed(query: Tensor, key: Tensor, mask: np.ndarray | None, causal: bool) -> np.ndarray | None:
    """Both masks in one, or None when every query may attend to every key."""
    queries, keys = query.shape[-2], key.shape[-2]
    allowed = None if mask is None else check_mask(mask, (*query.shape[:-2], queries, keys))
    if causal and queries > keys:
        raise ValueError(
            f"causal attention aligns queries at the end of the keys, got {queries} queries and {keys} keys"
        )
    if causal:
        triangle = causal_mask(queries, keys)
        allowed = triangle if allowed is None else allowed & triangle
    return allowed


def _check_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a Tensor, got {type(tensor).__name__}: write Tensor(...)")
        if tensor.ndim < 2 or 0 in tensor.shape[-2:] or tensor.dtype.kind != "f":
            raise ValueError(f"{name} needs floats of shape (..., tokens, size), got {tensor.shape} of {tensor.dtype}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"queries have {query.shape[-1]} numbers, keys {key.shape[-1]}: a dot product needs equally many"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"there are {key.shape[-2]} keys and {value.shape[-2]} values: each key belongs to one value")
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        raise ValueError(
            f"the leading axes differ: query {query.shape}, key {key.shape}, value {value.shape}: make them equal"
        )
