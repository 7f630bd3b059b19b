"""The converters against PyTorch, what the page says of PyTorch, and the page's own examples."""

import doctest
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right

from src.core import GELU, CrossEntropyLoss, LayerNorm, Linear, Tensor, scaled_dot_product_attention
from src.core.masking import causal_mask
from src.course.conventions import (
    halves_from_pairs,
    mask_from_additive,
    mask_from_integers,
    mask_from_padding,
    pairs_from_halves,
    split_projections,
)
from src.gpt import sinusoidal_positions

PAGE = Path(__file__).parents[2] / "chapters" / "conventions.md"
BATCH, HEADS, TOKENS, SIZE = 2, 3, 5, 4
CHANNELS = HEADS * SIZE
PADDING = np.array([[False, False, False, True, True], [False, False, False, False, True]])
LATER = ~causal_mask(TOKENS, TOKENS)
CLOSE = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(autouse=True)
def double_precision():
    with Tensor.precision(np.float64):
        yield


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def attend(query: np.ndarray, key: np.ndarray, value: np.ndarray, **masks) -> np.ndarray:
    return scaled_dot_product_attention(Tensor(query), Tensor(key), Tensor(value), **masks)[0].data


def multihead(**options) -> nn.MultiheadAttention:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(CHANNELS, HEADS, dtype=torch.float64, **options)
    nn.init.normal_(module.in_proj_bias)
    return module


def own_multihead(module: nn.MultiheadAttention, x: np.ndarray, **masks) -> np.ndarray:
    """The same layer on our attention, with the module's weights in our layout: x (B, T, C) to (B, T, C)."""
    weights = split_projections(module.in_proj_weight.detach().numpy().T)
    biases = split_projections(module.in_proj_bias.detach().numpy())
    query, key, value = (
        (x @ weight + bias).reshape(BATCH, TOKENS, HEADS, SIZE).swapaxes(1, 2)
        for weight, bias in zip(weights, biases, strict=True)
    )  # each (B, H, T, D)
    merged = attend(query, key, value, **masks).swapaxes(1, 2).reshape(BATCH, TOKENS, CHANNELS)
    return merged @ module.out_proj.weight.detach().numpy().T + module.out_proj.bias.detach().numpy()


# ---- the page -----------------------------------------------------------------------------------------------------


def test_the_examples_on_the_page_are_true() -> None:
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    with Tensor.precision(np.float32):  # as a reader runs them
        examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
        failed, attempted = doctest.DocTestRunner().run(examples)
    assert (failed, attempted) == (0, len(re.findall(r"^>>> ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)))


def test_every_converter_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    source = Path(split_projections.__code__.co_filename).read_text(encoding="utf-8")
    converters = re.findall(r"^def ([a-z]\w+)", source, re.MULTILINE)
    assert "split_projections" in converters
    assert [name for name in converters if f"{name}(" not in page] == ["pairs_from_halves"]
    assert "`pairs_from_halves`" in page


# ---- masks --------------------------------------------------------------------------------------------------------


def test_padding_of_multihead_attention() -> None:
    x, module = normal(BATCH, TOKENS, CHANNELS), multihead(batch_first=True)
    x_torch = torch.tensor(x)
    theirs = module(x_torch, x_torch, x_torch, key_padding_mask=torch.tensor(PADDING))[0].detach().numpy()
    np.testing.assert_allclose(own_multihead(module, x, mask=mask_from_padding(PADDING)), theirs, **CLOSE)
    integers = (~PADDING).astype(np.int64)
    np.testing.assert_allclose(own_multihead(module, x, mask=mask_from_integers(integers)), theirs, **CLOSE)


def test_the_two_boolean_masks_of_torch_are_opposite() -> None:
    x, module = normal(BATCH, TOKENS, CHANNELS), multihead(batch_first=True)
    x_torch = torch.tensor(x)
    theirs = module(x_torch, x_torch, x_torch, attn_mask=torch.tensor(LATER))[0].detach().numpy()
    np.testing.assert_allclose(own_multihead(module, x, mask=~LATER), theirs, **CLOSE)
    query = normal(BATCH, HEADS, TOKENS, SIZE)
    q = torch.tensor(query)
    theirs = F.scaled_dot_product_attention(q, q, q, attn_mask=torch.tensor(~LATER)).numpy()
    np.testing.assert_allclose(attend(query, query, query, mask=~LATER), theirs, **CLOSE)


def test_padding_without_heads() -> None:
    x = normal(BATCH, TOKENS, CHANNELS)
    output = attend(x, x, x, mask=mask_from_padding(PADDING)[:, 0])
    for sequence, padding in enumerate(PADDING):
        kept = x[sequence, ~padding]
        np.testing.assert_allclose(output[sequence], attend(x[sequence], kept, kept), **CLOSE)


@pytest.mark.parametrize("forbidden", [-np.inf, -1e4, -65504.0, float(np.finfo(np.float64).min)], ids=str)
def test_additive_masks(forbidden: float) -> None:
    additive = np.where(LATER, forbidden, 0.0)
    query = normal(BATCH, HEADS, TOKENS, SIZE)
    q = torch.tensor(query)
    theirs = F.scaled_dot_product_attention(q, q, q, attn_mask=torch.tensor(additive)).numpy()
    np.testing.assert_allclose(attend(query, query, query, mask=mask_from_additive(additive)), theirs, **CLOSE)


def test_the_additive_mask_that_torch_makes() -> None:
    square = nn.Transformer.generate_square_subsequent_mask(TOKENS).numpy()
    np.testing.assert_array_equal(mask_from_additive(square), causal_mask(TOKENS, TOKENS))
    np.testing.assert_array_equal(np.where(causal_mask(TOKENS, TOKENS), 0.0, -np.inf), square)


def test_a_query_without_a_key() -> None:
    query, nothing = normal(2, 3), np.zeros((2, 2), dtype=bool)
    q = torch.tensor(query)
    assert not attend(query, query, query, mask=nothing).any()
    assert not F.scaled_dot_product_attention(q, q, q, attn_mask=torch.tensor(nothing)).any()
    finite = torch.full((2, 2), torch.finfo(torch.float64).min, dtype=torch.float64)
    averaged = F.scaled_dot_product_attention(q, q, q, attn_mask=finite).numpy()
    np.testing.assert_allclose(averaged, np.broadcast_to(query.mean(axis=0), averaged.shape), **CLOSE)


@pytest.mark.parametrize(
    "convert, mask, error, message",
    [
        (mask_from_padding, [[1, 1, 0]], TypeError, "got int64: for ones and zeros use mask_from_integers"),
        (mask_from_padding, [True, False], ValueError, r"shape \(B, Tk\), got \(2,\)"),
        (mask_from_integers, [[True, False]], TypeError, "got bool: booleans where True means padding"),
        (mask_from_integers, [[0.0, -np.inf]], TypeError, "got float64"),
        (mask_from_integers, [[5, 1, 0]], ValueError, "got 5: are these token ids"),
        (mask_from_integers, [1, 0], ValueError, r"shape \(B, Tk\), got \(2,\)"),
        (mask_from_additive, [[1, 0]], TypeError, "got int64"),
        (mask_from_additive, [[True]], TypeError, "got bool"),
        (mask_from_additive, [[0.0, 1.0]], ValueError, "got 1: add such a bias"),
        (mask_from_additive, [[0.0, -9999.0]], ValueError, "at most -10000, got -9999"),
        (mask_from_additive, [[0.0, np.nan]], ValueError, "got nan"),
    ],
)
def test_a_mask_of_another_convention_is_refused(convert, mask, error, message) -> None:
    with pytest.raises(error, match=message):
        convert(mask)


def test_causal_masks_are_aligned_at_other_ends() -> None:
    query, key = normal(2, SIZE), normal(5, SIZE, seed=1)
    q, k = torch.tensor(query), torch.tensor(key)
    ours = attend(query, key, key, causal=True)
    by_mask = F.scaled_dot_product_attention(q, k, k, attn_mask=torch.tensor(causal_mask(2, 5)))
    np.testing.assert_allclose(ours, by_mask.numpy(), **CLOSE)
    np.testing.assert_array_equal(causal_mask(2, 5), causal_lower_right(2, 5)._materialize().numpy())
    theirs = F.scaled_dot_product_attention(q, k, k, is_causal=True).numpy()
    np.testing.assert_allclose(attend(query, key, key, mask=np.tri(2, 5, dtype=bool)), theirs, **CLOSE)
    assert np.abs(ours - theirs).max() > 0.1


# ---- axes and weights ---------------------------------------------------------------------------------------------


def test_torch_expects_time_first_unless_told_otherwise() -> None:
    x = normal(BATCH, TOKENS, CHANNELS)
    module = multihead()
    time_first = torch.tensor(x.swapaxes(0, 1))
    theirs = module(time_first, time_first, time_first)[0].detach().numpy()
    np.testing.assert_allclose(own_multihead(module, x), theirs.swapaxes(0, 1), **CLOSE)
    assert not nn.LSTM(2, 2).batch_first and not nn.GRU(2, 2).batch_first


def test_the_weight_of_a_linear_layer() -> None:
    theirs, ours = nn.Linear(3, 2, dtype=torch.float64), Linear(3, 2)
    assert theirs.weight.shape == (2, 3)
    ours.weight.data, ours.bias.data = theirs.weight.detach().numpy().T, theirs.bias.detach().numpy()
    x = normal(4, 3)
    np.testing.assert_allclose(ours(Tensor(x)).data, theirs(torch.tensor(x)).detach().numpy(), **CLOSE)
    assert nn.Embedding(7, 3).weight.shape == (7, 3)


@pytest.mark.parametrize("heads", [None, HEADS])
def test_packed_projections(heads: int | None) -> None:
    """The packed product, cut as the libraries cut it, against three products with the parts."""
    x, weight, bias = normal(BATCH, TOKENS, CHANNELS), normal(CHANNELS, 3 * CHANNELS), normal(3 * CHANNELS)
    packed = torch.tensor(x @ weight + bias)
    if heads is None:
        theirs = packed.chunk(3, dim=-1)
    else:
        by_head = packed.view(BATCH, TOKENS, heads, 3 * SIZE).chunk(3, dim=-1)
        theirs = tuple(part.reshape(BATCH, TOKENS, CHANNELS) for part in by_head)
    weights, biases = split_projections(weight, heads), split_projections(bias, heads)
    for expected, part, offset in zip(theirs, weights, biases, strict=True):
        np.testing.assert_allclose(x @ part + offset, expected.numpy(), **CLOSE)


@pytest.mark.parametrize("shape, heads", [((4, 7), None), ((4, 12), 3), ((12, 4), None), ((), None), ((4, 12), 0)])
def test_projections_that_do_not_divide_are_refused(shape: tuple[int, ...], heads: int | None) -> None:
    with pytest.raises(ValueError, match=re.escape(f"shape {shape} does not divide")):
        split_projections(np.zeros(shape), heads)


# ---- losses and layers --------------------------------------------------------------------------------------------


def test_ignored_targets() -> None:
    logits, targets = normal(3, 4), np.array([0, 1, -100])
    theirs = F.cross_entropy(torch.tensor(logits), torch.tensor(targets))  # -100 without being asked
    ours = CrossEntropyLoss(ignore_index=-100)
    np.testing.assert_allclose(ours(Tensor(logits), Tensor(targets)).item(), theirs.item(), **CLOSE)
    with pytest.raises(ValueError, match="got -100"):
        CrossEntropyLoss()(Tensor(logits), Tensor(targets))
    none = np.full(3, -100)
    assert ours(Tensor(logits), Tensor(none)).item() == 0.0
    assert math.isnan(F.cross_entropy(torch.tensor(logits), torch.tensor(none)).item())


def test_losses_are_in_nats() -> None:
    assert F.cross_entropy(torch.zeros(1, 65), torch.tensor([3])).item() == pytest.approx(math.log(65))
    assert CrossEntropyLoss()(Tensor(np.zeros((1, 65))), Tensor([3])).item() == pytest.approx(math.log(65))


@pytest.mark.parametrize("name", ["none", "tanh"])
def test_gelu_has_the_same_names_as_in_torch(name: str) -> None:
    x = np.linspace(-6, 6, 201)
    theirs = nn.GELU(approximate=name)(torch.tensor(x)).numpy()
    np.testing.assert_allclose(GELU(approximate=name)(Tensor(x)).data, theirs, **CLOSE)


def test_how_far_the_other_gelus_are() -> None:
    x = np.linspace(-6, 6, 120_001)
    exact = nn.GELU()(torch.tensor(x)).numpy()
    np.testing.assert_allclose(GELU()(Tensor(x)).data, exact, **CLOSE)
    tanh = np.abs(GELU(approximate="tanh")(Tensor(x)).data - exact)
    quick = np.abs(x / (1 + np.exp(-1.702 * x)) - exact)
    assert (round(tanh.max(), 5), round(abs(x[tanh.argmax()]), 2)) == (0.00047, 2.70)
    assert (round(quick.max(), 4), round(abs(x[quick.argmax()]), 2)) == (0.0203, 2.27)


def test_layer_norm_has_the_defaults_of_torch() -> None:
    assert LayerNorm(4).eps == nn.LayerNorm(4).eps == 1e-5
    x = 0.01 * normal(3, 4)
    for eps in (1e-12, 1e-5, 1e-3):
        theirs = nn.LayerNorm(4, eps=eps, dtype=torch.float64)(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(LayerNorm(4, eps=eps)(Tensor(x)).data, theirs, rtol=0, atol=1e-10)


# ---- pairs and halves ---------------------------------------------------------------------------------------------


def test_sines_first_then_cosines() -> None:
    frequencies = 10000.0 ** (-np.arange(0, 8, 2) / 8)
    angles = np.arange(6)[:, None] * frequencies
    halves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(halves_from_pairs(sinusoidal_positions(6, 8)), halves, **CLOSE)
    np.testing.assert_allclose(pairs_from_halves(halves), sinusoidal_positions(6, 8), **CLOSE)


def rotate(x: np.ndarray, angles: np.ndarray, first: slice, second: slice) -> np.ndarray:
    """Rotate channel i of `first` with channel i of `second` by angle i: rotary positions, in either order."""
    out = x.copy()
    out[..., first] = x[..., first] * np.cos(angles) - x[..., second] * np.sin(angles)
    out[..., second] = x[..., first] * np.sin(angles) + x[..., second] * np.cos(angles)
    return out


def test_rotary_positions_in_both_orders() -> None:
    """A weight whose columns are reordered head by head gives the other order the same query."""
    x, weight = normal(TOKENS, CHANNELS), normal(CHANNELS, CHANNELS)
    angles = np.arange(TOKENS)[:, None, None] * 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)  # (T, 1, D / 2)
    by_head = weight.reshape(CHANNELS, HEADS, SIZE)
    pairs = (x @ weight).reshape(TOKENS, HEADS, SIZE)
    halves = (x @ halves_from_pairs(by_head).reshape(CHANNELS, CHANNELS)).reshape(TOKENS, HEADS, SIZE)
    in_pairs = rotate(pairs, angles, slice(0, None, 2), slice(1, None, 2))
    in_halves = rotate(halves, angles, slice(None, SIZE // 2), slice(SIZE // 2, None))
    np.testing.assert_allclose(pairs_from_halves(in_halves), in_pairs, **CLOSE)


@pytest.mark.parametrize("convert", [halves_from_pairs, pairs_from_halves])
def test_odd_sizes_have_no_halves(convert) -> None:
    with pytest.raises(ValueError, match=r"got shape \(2, 3\)"):
        convert(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"got shape \(\)"):
        convert(1.0)
