"""What `from src.core import *` gives, what the engine imports, and the examples in its docstrings."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import sys

import numpy as np
import pytest

import src.core
from src.core import (
    GELU,
    AdamWOptimizer,
    Composite,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    ReLU,
    Softmax,
    Tensor,
    Trainer,
    Tril,
    scaled_dot_product_attention,
)
from src.core.graph import Storage

MODULES = sorted(info.name for info in pkgutil.walk_packages(src.core.__path__, "src.core."))
PUBLIC = """
    Tensor Layer Composite Linear Embedding LayerNorm Dropout ReLU GELU Softmax Tril scaled_dot_product_attention
    Loss MSELoss CrossEntropyLoss Optimizer SGDOptimizer AdamWOptimizer MuonOptimizer Dataset Trainer
    WarmupCosineScheduler WarmupLinearScheduler
    save_checkpoint load_checkpoint seed default_generator check_gradients
"""


def test_the_public_names_are_exactly_those_of_the_design():
    given = {}
    exec("from src.core import *", given)
    assert given.keys() - {"__builtins__"} == set(PUBLIC.split())


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module):
    module = importlib.import_module(module)
    results = doctest.testmod(module, extraglobs={"np": np, "Tensor": Tensor})
    assert results.failed == 0


@pytest.mark.parametrize("module", ["src.core", *MODULES])
def test_the_engine_imports_numpy_and_the_standard_library(module):
    source = inspect.getsource(importlib.import_module(module))
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.split(".")[0])
    allowed = {"threadpoolctl"} if module == "src.core.fast.threads" else set()  # imported when threads start
    assert found <= {"numpy", *allowed, *sys.stdlib_module_names}


def test_every_public_callable_explains_itself():
    for name in PUBLIC.split():
        assert getattr(src.core, name).__doc__, name


class Everything(Composite):
    """A model with one of each part of the engine."""

    def __init__(self):
        self.table, self.norm, self.drop = Embedding(11, 8), LayerNorm(8), Dropout(0.2)
        self.query, self.key, self.value = Linear(8, 8), Linear(8, 8), Linear(8, 8, bias=False)
        self.relu, self.gelu, self.exact, self.tril, self.softmax = ReLU(), GELU("tanh"), GELU(), Tril(), Softmax()
        self.scale, self.output = Tensor(np.ones(8)), Linear(8, 11)
        super().__init__([item for item in vars(self).values() if isinstance(item, Layer)])

    def forward(self, ids):
        x = self.drop(self.norm(self.table(ids)))
        query, key, value = self.query(x), self.key(x), self.value(x)
        first, _ = scaled_dot_product_attention(query, key, value, causal=True)
        scores = query @ key.transpose((0, 2, 1)) / 8**0.5
        second = self.softmax(self.tril(scores)) @ value
        x = x + self.relu(first) * 0.5 - self.gelu(second) / 2 + self.exact(x) ** 2 * self.scale
        return self.output(x - x.mean(axis=-1, keepdims=True) + (-x).exp() * np.ones(8) + (2 + x * x).log().tanh())


def test_no_float64_array_is_stored_in_a_float32_training_step(monkeypatch):
    """Storage holds the numbers and the gradient of every tensor, so it sees each array of the step."""
    model = Everything()
    trainer = Trainer(model, CrossEntropyLoss(ignore_index=-1), AdamWOptimizer(model.parameters))
    dtypes = set()

    class Watched(Storage):
        __slots__ = ()

        def receive(self, gradient, fresh=False):
            dtypes.add(("gradient", getattr(gradient, "dtype", type(gradient))))
            super().receive(gradient, fresh)
            dtypes.add(("stored gradient", self.gradient.dtype))

    real = Tensor.__init__

    def watched(self, data, dtype=None):
        dtypes.add(("data", getattr(data, "dtype", type(data))))
        real(self, data, dtype)
        self._storage = Watched(self._storage.data)
        dtypes.add(("stored data", self._storage.data.dtype))

    ids, targets = Tensor([[1, 2, 3], [4, 5, 10]]), Tensor([[2, 3, 4], [5, -1, 0]])
    monkeypatch.setattr(Tensor, "__init__", watched)
    trainer.train_step(ids, targets)
    monkeypatch.undo()
    arrays = {(what, dtype) for what, dtype in dtypes if isinstance(dtype, np.dtype) and dtype.kind == "f"}
    allowed = {
        ("data", np.dtype(np.float64)),  # the loss, one number, which is summed in float64 on purpose
        ("gradient", np.dtype(np.float64)),  # the 1 that backward starts from
    }
    assert {dtype for what, dtype in arrays - allowed} == {np.dtype(np.float32)}, arrays
    assert all(parameter.dtype == parameter.grad.dtype == np.float32 for parameter in model.parameters)
    assert all(parameter.has_grad for parameter in model.parameters)
    assert all(array.dtype == np.float32 for array in trainer.optimizer.means + trainer.optimizer.squares)
