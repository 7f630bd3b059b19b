"""How the parts of a GPT compute on plain arrays: only for speed, skip it on first reading.

The modules beside this one say what is computed; src/core/fast/layers.py says what a form is and when it is used.
"""

from __future__ import annotations

import numpy as np

from ..core import Dropout, Linear, Tensor
from ..core.fast import forms as core_forms
from ..core.fast.attention import causal_attention
from ..core.fast.layers import Backward, Form, Pass, table_of
from ..core.fast.linear import linear
from ..core.fast.operation import KernelBackward
from ..core.gradient import unbroadcast
from .attention import GPTAttention
from .block import BareTransformer, GPTTransformer, Identity
from .embedding import GPTEmbedding
from .feed_forward import GPTFeedForward
from .output import GPTOutput
from .positions import LearnedPositions, PositionalEncoding, places
from .rotary import RotaryAttention, turn, turns_of


def _gpt_embedding(layer: GPTEmbedding, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    return one_pass.layers(_parts_of_embedding(layer), x)


def _learned_positions(layer: LearnedPositions, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    places(0, x.shape[1], layer.table.weight.shape[0])  # raises if the table is too short
    return one_pass.kernel(_add_first_rows, x, layer.table.weight)


def _add_first_rows(x: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, KernelBackward]:
    """x (B, T, C) plus the first T rows of a table."""
    time = x.shape[1]

    def backward(grad: np.ndarray, _: bool = True) -> tuple[np.ndarray, ...]:
        table_grad = np.zeros(table.shape, dtype=table.dtype)
        table_grad[:time] = unbroadcast(grad, (time, table.shape[1]))
        return unbroadcast(grad, x.shape), table_grad

    return x + table[:time], backward


def _output(layer: GPTOutput, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    if layer.linear is None:
        return one_pass.kernel(_shared_table, x, layer.table)
    return one_pass.layers([layer.linear], x)


def _shared_table(x: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, KernelBackward]:
    """x (B, T, C) @ table.T (C, V) -> (B, T, V)."""
    result, linear_backward = linear(x, table.T, None)

    def backward(grad: np.ndarray, wanted: bool = True) -> tuple[np.ndarray | None, ...]:
        x_grad, turned, _ = linear_backward(grad, wanted)
        return x_grad, turned.T

    return result, backward


def _attention(layer: GPTAttention, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    (query, key, value), x_backward = core_forms.linears_of([layer.query, layer.key, layer.value], x, one_pass)
    turns = None
    if isinstance(layer, RotaryAttention):
        if query.shape[-1] % (2 * layer.heads) or key.shape != query.shape:
            layer.place(Tensor(query), Tensor(key), 0)  # raises where a head is not made of pairs
        turns = turns_of(0, x.shape[1], query.shape[-1] // layer.heads, query.dtype)
        query, key = turn(query, turns), turn(key, turns)
    batch, time, _ = x.shape
    kept = layer.dropout.draw((batch, layer.heads, time, time), one_pass.generator(layer.dropout.generator))
    mixed, mixed_backward = causal_attention(query, key, value, layer.heads, kept, layer.dropout.scale)
    result, result_backward = one_pass.layers([layer.output, layer.dropout], mixed)

    def backward(grad: np.ndarray) -> np.ndarray:
        query_grad, key_grad, value_grad = mixed_backward(result_backward(grad))
        if turns is not None:
            query_grad, key_grad = turn(query_grad, turns.conj()), turn(key_grad, turns.conj())
        return x_backward((query_grad, key_grad, value_grad))

    return result, backward


def _feed_forward(layer: GPTFeedForward, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    return one_pass.layers(_parts_of_network(layer), x)


def _block(layer: GPTTransformer, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    first, attention_backward = one_pass.layers([layer.attention_norm, layer.attention], x)
    between = x + first
    second, network_backward = one_pass.layers([layer.feed_forward_norm, layer.feed_forward], between)
    given, added, middle, last = x.shape, first.shape, between.shape, second.shape  # as a rule all (B, T, C)

    def backward(grad: np.ndarray) -> np.ndarray:
        grad = unbroadcast(grad, middle) + network_backward(unbroadcast(grad, last))
        return unbroadcast(grad, given) + attention_backward(unbroadcast(grad, added))

    return between + second, backward


def _bare_block(layer: BareTransformer, x: np.ndarray, one_pass: Pass) -> tuple[np.ndarray, Backward]:
    return one_pass.layers([layer.attention, layer.feed_forward], x)


def _parts_of_embedding(layer: GPTEmbedding) -> list:
    return [layer.token] if layer.positions is None else [layer.token, layer.positions]


def _parts_of_attention(layer: GPTAttention) -> list:
    return [layer.query, layer.key, layer.value, layer.output, layer.dropout]


def _parts_of_network(layer: GPTFeedForward) -> list:
    return [layer.input, layer.activation, layer.output, layer.dropout]


def _parts_of_block(layer: GPTTransformer) -> list:
    return [layer.attention_norm, layer.attention, layer.feed_forward_norm, layer.feed_forward]


def _as_built(layer: GPTAttention) -> bool:
    linear = type(layer.query) is type(layer.key) is type(layer.value) is Linear
    return linear and type(layer.dropout) is Dropout and not layer.keep_weights


FORMS = core_forms.FORMS | table_of(
    Form(GPTEmbedding, _gpt_embedding, _parts_of_embedding),
    Form(LearnedPositions, _learned_positions, lambda layer: [layer.table]),
    Form(PositionalEncoding, core_forms.on_tensors),
    Form(GPTOutput, _output, lambda layer: [] if layer.linear is None else [layer.linear]),
    Form(GPTAttention, _attention, _parts_of_attention, _as_built),
    Form(RotaryAttention, _attention, _parts_of_attention, _as_built),
    Form(GPTFeedForward, _feed_forward, _parts_of_network),
    Form(GPTTransformer, _block, _parts_of_block),
    Form(BareTransformer, _bare_block, lambda layer: [layer.attention, layer.feed_forward]),
    Form(Identity, core_forms.identity),
)
