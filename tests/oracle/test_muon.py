"""Muon against PyTorch's, which makes its matrices orthogonal in bfloat16: three digits, no more."""

import numpy as np
import pytest
import torch

from src.core import MuonOptimizer, Tensor


@pytest.mark.parametrize("shape", [(16, 16), (16, 64), (64, 16)])
def test_ten_steps(shape):
    rng = np.random.default_rng(0)
    start, grads = rng.standard_normal(shape), rng.standard_normal((10, *shape))
    ours = Tensor(start.copy())
    theirs = torch.nn.Parameter(torch.tensor(start.T.copy(), dtype=torch.float32))  # PyTorch keeps (outputs, inputs)
    optimizer = MuonOptimizer([ours], [ours], lr=0.02, momentum=0.95, weight_decay=0.1)
    settings = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1, "nesterov": True}
    oracle = torch.optim.Muon([theirs], adjust_lr_fn="match_rms_adamw", **settings)
    for grad in grads:
        ours.grad = grad
        optimizer.step()
        theirs.grad = torch.tensor(grad.T.copy(), dtype=torch.float32)
        oracle.step()
    moved = np.abs(ours.data - start).max()
    np.testing.assert_allclose(ours.data, theirs.detach().numpy().T, atol=0.02 * moved)
