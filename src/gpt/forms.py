"""How the parts of a GPT compute on plain arrays: only for speed, skip it on first reading.

The modules beside this one say what is computed; src/core/fast/layers.py says what a form is and when it is used.
"""

from __future__ import annotations

import numpy as np

from ..core import Dropout, Tensor
from ..core.fast import operation
from ..core.fast.attention import causal_attention
from ..core.fast.forms import nothing
from ..core.fast.layers import Back, Pass, add_form, known, through
from ..core.fast.linear import linear
from .attention import GPTAttention
from .block import BareTransformer, GPTTransformer, Identity
from .embedding import GPTEmbedding
from .feed_forward import GPTFeedForward
from .output import GPTOutput
from .positions import LearnedPositions, PositionalEncoding, places
from .rotary import RotaryAttention, turn, turns_of

__all__ = ["known", "through"]  # for the model: with this module the forms are there


def _gpt_embedding(layer: GPTEmbedding, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    return here.layers(_parts_of_embedding(layer), x)


def _learned_positions(layer: LearnedPositions, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    places(0, x.shape[1], layer.table.weight.shape[0])  # raises if the table is too short
    return here.kernel(_add_first_rows, x, layer.table.weight)


def _add_first_rows(x: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, operation.Back]:
    """x (B, T, C) plus the first T rows of a table."""
    time = x.shape[1]

    def back(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray, ...]:
        table_grad = np.zeros(table.shape, dtype=table.dtype)
        grad.sum(axis=0, out=table_grad[:time])
        return grad, table_grad

    return x + table[:time], back


def _sinusoidal_positions(layer: PositionalEncoding, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    return layer.forward(Tensor(x, dtype=x.dtype)).data, lambda grad: grad


def _output(layer: GPTOutput, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    return here.kernel(_shared_table, x, layer.table) if layer.linear is None else here.layer(layer.linear, x)


def _shared_table(x: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, operation.Back]:
    """x (B, T, C) @ table.T (C, V) -> (B, T, V)."""
    result, linear_back = linear(x, table.T, None)

    def back(grad: np.ndarray, wanted: bool = True) -> tuple[np.ndarray | None, ...]:
        x_grad, turned, _ = linear_back(grad, wanted)
        return x_grad, turned.T

    return result, back


def _attention(
    layer: GPTAttention, x: np.ndarray, here: Pass, turns: np.ndarray | None = None
) -> tuple[np.ndarray, Back]:
    """`turns` (T, D / 2) turn queries and keys by their places."""
    query, query_back = here.layer(layer.query, x)
    key, key_back = here.layer(layer.key, x)
    value, value_back = here.layer(layer.value, x)
    if turns is not None:
        query, key = turn(query, turns), turn(key, turns)
    batch, time, _ = x.shape
    kept = layer.dropout.draw((batch, layer.heads, time, time), here.generator(layer.dropout.generator))
    mixed, mixed_back = causal_attention(query, key, value, layer.heads, kept, layer.dropout.scale)
    result, result_back = here.layers([layer.output, layer.dropout], mixed)

    def way_back(grad: np.ndarray) -> np.ndarray:
        query_grad, key_grad, value_grad = mixed_back(result_back(grad))
        if turns is not None:
            query_grad, key_grad = turn(query_grad, turns.conj()), turn(key_grad, turns.conj())
        x_grad = query_back(query_grad)
        x_grad += key_back(key_grad)
        x_grad += value_back(value_grad)
        return x_grad

    return result, way_back


def _rotary(layer: RotaryAttention, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    size = layer.query.weight.shape[1] // layer.heads
    return _attention(layer, x, here, turns_of(0, x.shape[1], size, x.dtype))


def _feed_forward(layer: GPTFeedForward, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    return here.layers([layer.input, layer.activation, layer.output, layer.dropout], x)


def _block(layer: GPTTransformer, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    change, attention_back = here.layers([layer.attention_norm, layer.attention], x)
    between = x + change
    change, network_back = here.layers([layer.feed_forward_norm, layer.feed_forward], between)

    def way_back(grad: np.ndarray) -> np.ndarray:
        grad = grad + network_back(grad)
        return grad + attention_back(grad)

    return between + change, way_back


def _bare_block(layer: BareTransformer, x: np.ndarray, here: Pass) -> tuple[np.ndarray, Back]:
    return here.layers([layer.attention, layer.feed_forward], x)


def _parts_of_embedding(layer: GPTEmbedding) -> list:
    return [layer.token] if layer.positions is None else [layer.token, layer.positions]


def _parts_of_attention(layer: GPTAttention) -> tuple:
    return layer.query, layer.key, layer.value, layer.output, layer.dropout


def _shows_nothing(layer: GPTAttention) -> bool:
    return type(layer.dropout) is Dropout and not layer.keep_weights


add_form(GPTEmbedding, _gpt_embedding, _parts_of_embedding)
add_form(LearnedPositions, _learned_positions, lambda layer: [layer.table])
add_form(PositionalEncoding, _sinusoidal_positions)
add_form(GPTOutput, _output, lambda layer: [] if layer.linear is None else [layer.linear])
add_form(GPTAttention, _attention, _parts_of_attention, _shows_nothing)
add_form(RotaryAttention, _rotary, _parts_of_attention, _shows_nothing)
add_form(GPTFeedForward, _feed_forward, lambda layer: (layer.input, layer.activation, layer.output, layer.dropout))
add_form(
    GPTTransformer,
    _block,
    lambda layer: (layer.attention_norm, layer.attention, layer.feed_forward_norm, layer.feed_forward),
)
add_form(BareTransformer, _bare_block, lambda layer: (layer.attention, layer.feed_forward))
add_form(Identity, nothing)
