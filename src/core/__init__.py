"""The engine: tensors, layers, losses, optimizers and training, on NumPy alone.

Reading order: gradient, precision, graph, arrays, tensor, layer; random, linear, embedding, activation, erf, masking,
normalization, dropout, attention; loss, optimizer, muon, scheduler, dataset, trainer, checkpoint. What is in fast/ says
the same as the plain forms in these files and is there only for speed: skip it on first reading.
"""

from .activation import GELU, ReLU, Softmax
from .attention import scaled_dot_product_attention
from .checkpoint import load_checkpoint, save_checkpoint
from .dataset import Dataset
from .dropout import Dropout
from .embedding import Embedding
from .gradient import check_gradients
from .layer import Composite, Layer
from .linear import Linear
from .loss import CrossEntropyLoss, Loss, MSELoss
from .masking import Tril
from .muon import MuonOptimizer
from .normalization import LayerNorm
from .optimizer import AdamWOptimizer, Optimizer, SGDOptimizer
from .random import default_generator, seed
from .scheduler import WarmupCosineScheduler, WarmupLinearScheduler
from .tensor import Tensor
from .trainer import Trainer

from .fast import forms  # isort: skip  # noqa: F401 - here, so that it knows the layers before anybody changes them

__all__ = [
    "GELU",
    "AdamWOptimizer",
    "Composite",
    "CrossEntropyLoss",
    "Dataset",
    "Dropout",
    "Embedding",
    "Layer",
    "LayerNorm",
    "Linear",
    "Loss",
    "MSELoss",
    "MuonOptimizer",
    "Optimizer",
    "ReLU",
    "SGDOptimizer",
    "Softmax",
    "Tensor",
    "Trainer",
    "Tril",
    "WarmupCosineScheduler",
    "WarmupLinearScheduler",
    "check_gradients",
    "default_generator",
    "load_checkpoint",
    "save_checkpoint",
    "scaled_dot_product_attention",
    "seed",
]
