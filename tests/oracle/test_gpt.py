"""The whole GPT against one written in PyTorch, with the same weights: logits, all gradients, training, cache."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from src.core import AdamWOptimizer, Tensor
from src.gpt import GPT, GPTAttention, GPTLoss, GPTTrainer, generate
from src.gpt.cache import Cache
from src.gpt.rotary import POSITIONS
from tests.oracle.compare import DOUBLE, SINGLE, assert_close, compare, normal
from tests.oracle.torch_gpt import matches, randomize, torch_twin

EXACT = (1e-9, 1e-9)
HEADS = pytest.mark.parametrize("heads", [1, 4])
PLACES = pytest.mark.parametrize("places", ["learned", "rotary"])
TIED = pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])


def build(heads, tied, std, dtype, places="learned"):
    sizes = {"vocab_size": 27, "context_size": 16, "embedding_size": 32, "blocks": 2, "heads": heads}
    with Tensor.precision(dtype):
        model = GPT(**sizes, tied=tied, **POSITIONS[places])
    randomize(model, std)
    return model, torch_twin(model, heads)


def tokens(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 27, shape)


def torch_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def check_gradients_and_logits(model, reference, value, gradient):
    x, y = tokens(3, 16), tokens(3, 16, seed=1)
    with Tensor.precision(model.parameters[0].dtype):
        logits = model(Tensor(x))
        loss = GPTLoss()(logits, Tensor(y))
        loss.backward()
    expected = reference(torch.tensor(x))
    expected_loss = torch_loss(expected, torch.tensor(y))
    expected_loss.backward()
    assert_close(logits.data, expected, value, "logits")
    assert_close(loss.data, expected_loss, value, "loss")
    for match in matches(model, reference):
        assert match.own.has_grad, match.name
        assert_close(np.asarray(match.own.grad), match.part(match.theirs.grad), gradient, match.name)


@HEADS
@TIED
@PLACES
def test_logits_and_all_gradients_in_float64(heads, tied, places):
    check_gradients_and_logits(*build(heads, tied, 0.3, np.float64, places), EXACT, EXACT)


@HEADS
@TIED
@PLACES
def test_logits_and_all_gradients_in_float32(heads, tied, places):
    check_gradients_and_logits(*build(heads, tied, 0.1, np.float32, places), SINGLE.value, SINGLE.gradient)


@HEADS
@TIED
def test_twenty_steps_of_training(heads, tied):
    """AdamW, decay of matrices only, clipping at 1: losses, norms and all weights agree after every step."""
    model, reference = build(heads, tied, 0.3, np.float64)
    settings = {"lr": 1e-2, "betas": (0.9, 0.95)}
    trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters, weight_decay=0.1, **settings))
    wide = [p for p in reference.parameters() if p.ndim >= 2]
    narrow = [p for p in reference.parameters() if p.ndim < 2]
    groups = [{"params": wide, "weight_decay": 0.1}, {"params": narrow, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, **settings)
    clipped = 0
    for step in range(20):
        x, y = tokens(4, 16, seed=step), tokens(4, 16, seed=step)[:, ::-1].copy()
        with Tensor.precision(np.float64):
            loss = trainer.train_step(Tensor(x), Tensor(y))
        expected = torch_loss(reference(torch.tensor(x)), torch.tensor(y))
        assert loss == pytest.approx(expected.item(), rel=1e-9, abs=1e-9)
        optimizer.zero_grad()
        expected.backward()
        clipped += torch_clip(reference) > 1.0
        optimizer.step()
        for match in matches(model, reference):
            assert_close(match.own.data, match.part(match.theirs), EXACT, f"{match.name} after step {step}")
    assert clipped >= 5  # or the clipping would not have been compared


def torch_clip(reference):
    """Clip at norm 1 and return the norm before.

    torch.nn.utils.clip_grad_norm_ divides by norm + 1e-6, which would show here in the seventh digit of a gradient.
    """
    gradients = [parameter.grad for parameter in reference.parameters()]
    norm = nn.utils.get_total_norm(gradients)
    if norm > 1.0:
        for gradient in gradients:
            gradient /= norm
    return float(norm)


@HEADS
@TIED
@PLACES
@pytest.mark.parametrize("chunks", [[1] * 16, [2] * 8, [16], [5, 1, 1, 7, 2]], ids=str)
def test_logits_with_a_cache_are_those_of_torch_without(heads, tied, chunks, places):
    model, reference = build(heads, tied, 0.3, np.float64, places)
    x = tokens(2, 16)
    expected = reference(torch.tensor(x)).detach().numpy()
    cache = Cache(blocks=2, context_size=16)
    with Tensor.precision(np.float64), Tensor.no_grad():
        for chunk in chunks:
            start = cache.length
            logits = model(Tensor(x[:, start : start + chunk]), cache)
            assert_close(logits.data, expected[:, start : start + chunk], (1e-12, 1e-12), f"tokens from {start}")
    assert cache.length == 16


@PLACES
@pytest.mark.parametrize("cached", [True, False])
def test_the_most_likely_text_is_that_of_torch_beyond_the_context_too(cached, places):
    model, reference = build(4, False, 0.3, np.float64, places)
    ids = [3, 1, 4]
    with Tensor.precision(np.float64):
        own = generate(model, ids, steps=30, temperature=0.0, cache=cached)
    for _ in range(30):
        ids = [*ids, int(reference(torch.tensor([ids[-16:]]))[0, -1].argmax())]
    assert own == ids
    assert len(set(ids)) > 5  # not one token again and again, which a wrong model could give too


@pytest.mark.parametrize("batch, time", [(2, 5), (1, 5), (3, 1), (1, 1)])
@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_c11_multi_head_attention(bias, heads, batch, time):
    """nn.MultiheadAttention stacks [W_Q; W_K; W_V] as (3C, C), computes x W^T, and in its mask True means forbidden."""
    size = 8
    mask = torch.ones(time, time, dtype=torch.bool).triu(1)
    theirs = nn.MultiheadAttention(size, heads, bias=bias, batch_first=True)

    def torch_attention(x, *weights):
        names = ["in_proj_weight", "out_proj.weight", "in_proj_bias", "out_proj.bias"]
        parameters = dict(zip(names, weights, strict=False))
        settings = {"attn_mask": mask, "average_attn_weights": False}
        return torch.func.functional_call(theirs.to(x.dtype), parameters, (x, x, x), settings)

    def our_attention(x, in_weight, out_weight, in_bias=None, out_bias=None):
        layer = stacked_attention(size, heads, in_weight, out_weight, in_bias, out_bias)
        with Tensor.no_grad():
            layer.keep_weights = True
            layer(x)
        return layer(x), layer.weights

    # The gradient of the key's bias is exactly 0 (it adds one number to all scores of a query), so in float32 both
    # sides show nothing but rounding there; weights of 0.3 keep that noise below the absolute tolerance.
    arrays = [normal(batch, time, size), 0.3 * normal(3 * size, size, seed=1), 0.3 * normal(size, size, seed=2)]
    if bias:
        arrays += [normal(3 * size, seed=3), normal(size, seed=4)]
    compare(lambda *inputs: our_attention(*inputs)[0], lambda *inputs: torch_attention(*inputs)[0], *arrays)
    with Tensor.precision(np.float64):
        weights = our_attention(*(Tensor(array) for array in arrays))[1]
    expected = torch_attention(*(torch.tensor(array) for array in arrays))[1]
    assert_close(weights, expected, DOUBLE.value, "weights of each head")


def stacked_attention(size, heads, in_weight, out_weight, in_bias, out_bias):
    """Our layer with PyTorch's stacked weights, cut and transposed by operations of the engine."""
    layer = GPTAttention(size, heads, bias=in_bias is not None)
    for index, part in enumerate([layer.query, layer.key, layer.value]):
        rows = slice(index * size, (index + 1) * size)
        part.weight = in_weight[rows].transpose((1, 0))
        part.bias = None if in_bias is None else in_bias[rows]
    layer.output.weight, layer.output.bias = out_weight.transpose((1, 0)), out_bias
    return layer
