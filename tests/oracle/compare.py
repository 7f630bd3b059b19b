"""One question, asked of everything in src/core: does it give PyTorch's numbers and PyTorch's gradients?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from src.core import Tensor

torch.set_num_threads(1)

Pair = tuple[float, float]  # relative and absolute tolerance


@dataclass(frozen=True)
class Level:
    """A precision and how far two results in it may be apart, as (relative, absolute)."""

    dtype: type
    value: Pair
    gradient: Pair


SINGLE = Level(np.float32, value=(1.3e-6, 1e-5), gradient=(1e-4, 1e-6))
DOUBLE = Level(np.float64, value=(1e-12, 1e-12), gradient=(1e-12, 1e-12))


def compare(
    ours: Callable[..., Any], theirs: Callable[..., Any], *inputs: Any, levels: tuple[Level, ...] = (SINGLE, DOUBLE)
) -> None:
    """Fail unless `ours(*tensors)` and `theirs(*torch tensors)` agree in value and in the gradient of each float input.

    Inputs are arrays; integer ones are passed on as they are. Either function returns one tensor, or a tuple of tensors
    that are all differentiated at once. The upstream gradient is random, in each precision the same for both sides.
    Shapes and dtypes must be equal too: a gradient that NumPy would broadcast is a wrong one.
    """
    for level in levels:
        with Tensor.precision(level.dtype):
            _compare_at(level, ours, theirs, [_cast(values, level.dtype) for values in inputs])


def _compare_at(level: Level, ours: Callable[..., Any], theirs: Callable[..., Any], arrays: list[np.ndarray]) -> None:
    own_inputs = [Tensor(values.copy()) for values in arrays]
    torch_inputs = [torch.tensor(values, requires_grad=values.dtype.kind == "f") for values in arrays]
    own, reference = _as_tuple(ours(*own_inputs)), _as_tuple(theirs(*torch_inputs))
    assert len(own) == len(reference)
    for number, (result, expected) in enumerate(zip(own, reference, strict=True)):
        assert_close(result.data, expected, level.value, f"output {number}, {level.dtype.__name__}")
    rng = np.random.default_rng(1)
    upstream = [np.asarray(rng.standard_normal(result.shape), dtype=level.dtype) for result in own]
    if len(own) == 1:
        own[0].backward(upstream[0])
    else:
        total = Tensor(0.0)
        for result, direction in zip(own, upstream, strict=True):
            total = total + (result * direction).sum()
        total.backward()
    torch.autograd.backward(reference, [torch.tensor(direction) for direction in upstream])
    for number, (tensor, expected) in enumerate(zip(own_inputs, torch_inputs, strict=True)):
        if expected.requires_grad:
            wanted = torch.zeros_like(expected) if expected.grad is None else expected.grad
            what = f"gradient of input {number}, {level.dtype.__name__}"
            assert_close(np.asarray(tensor.grad), wanted, level.gradient, what)


def assert_close(result: np.ndarray, expected: torch.Tensor | np.ndarray, tolerance: Pair, what: str) -> None:
    """Fail unless dtype and shape are equal and all numbers within (relative, absolute) tolerance; NaN is never."""
    wanted = expected.detach().numpy() if isinstance(expected, torch.Tensor) else expected
    assert result.dtype == wanted.dtype, f"{what}: dtype {result.dtype}, expected {wanted.dtype}"
    assert result.shape == wanted.shape, f"{what}: shape {result.shape}, expected {wanted.shape}"
    assert not np.isnan(result).any(), f"{what}: NaN"
    relative, absolute = tolerance
    np.testing.assert_allclose(result, wanted, rtol=relative, atol=absolute, err_msg=what)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal numbers in float64; another seed for another input."""
    return np.random.default_rng(seed).standard_normal(shape)


def uniform(low: float, high: float, *shape: int, seed: int = 0) -> np.ndarray:
    """Uniform numbers in float64, for operations that are not defined everywhere or are steep at 0."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def _cast(values: Any, dtype: type) -> np.ndarray:
    array = np.asarray(values)
    return array.astype(dtype) if array.dtype.kind == "f" else array


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
