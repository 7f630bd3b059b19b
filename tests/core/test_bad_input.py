"""Wrong inputs: each is refused with the right type of error, what was given and what would be right.

A file that is damaged or belongs to another model is in test_checkpoint.py, a state in test_optimizer.py.
"""
# ruff: noqa: E501  one line a case, as a table

import re

import numpy as np
import pytest

from src.core import (
    GELU,
    AdamWOptimizer,
    Composite,
    CrossEntropyLoss,
    Dataset,
    Dropout,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    Loss,
    MSELoss,
    Optimizer,
    ReLU,
    SGDOptimizer,
    Softmax,
    Tensor,
    Trainer,
    Tril,
    WarmupCosineScheduler,
    check_gradients,
    load_checkpoint,
    save_checkpoint,
    scaled_dot_product_attention,
    seed,
)
from src.gpt import GPT, CharDataset, GPTAttention, PositionalEncoding, generate


def zeros(*shape):
    return Tensor(np.zeros(shape))


def attend(query=(2, 3, 4), key=(2, 5, 4), value=(2, 5, 6), **options):
    return scaled_dot_product_attention(zeros(*query), zeros(*key), zeros(*value), **options)


def mask(shape, dtype=bool):
    return np.ones(shape, dtype)


def step(rate=0.1, **settings):
    return AdamWOptimizer([zeros(2)], lr=rate, **settings)


def dataset(x, y, **settings):
    class Given(Dataset):
        def load(self):
            self.train_data = self.test_data = (x, y)

    return Given(**{"batch_size": 2, **settings})


class NoList(Composite):
    def __init__(self):
        self.inner = Linear(2, 2)


class Numbers(Loss):
    def loss(self, p, y):
        return float(p.data.sum())


class NoData(Dataset):
    def load(self):
        pass


def twice():
    x = Tensor([1.0])
    y = x * 2
    y.backward()
    y.backward()


def too_early():
    layer = Linear(2, 1)
    loss = layer(Tensor([[1.0, 2.0]])).sum()
    optimizer = SGDOptimizer(layer.parameters, lr=0.1)
    layer.weight.grad += np.ones((2, 1))
    optimizer.step()
    loss.backward()


def two_types():
    positions = PositionalEncoding(4)
    with Tensor.precision(np.float64):
        positions(zeros(1, 3, 4))


def double(*shape):
    return Tensor(np.zeros(shape), dtype=np.float64)


def trainer(model=None, loss_fn=None, optimizer=None):
    layer = Linear(2, 2)
    return Trainer(model or layer, loss_fn or MSELoss(), optimizer or SGDOptimizer(layer.parameters, 0.1))


def gpt(**settings):
    return GPT(**{"vocab_size": 7, "context_size": 4, "embedding_size": 6, "blocks": 1, **settings})


def windows(text="abcde" * 10, **settings):
    class Text(CharDataset):
        def load(self):
            self.filename = type("Given", (), {"read_text": lambda self, encoding: text})()
            super().load()

    return Text("", **{"context_size": 4, **settings})


BAD = {
    # tensors
    "text": (lambda: Tensor("abc"), TypeError, "a tensor holds numbers, got str"),
    "objects": (lambda: Tensor([object()]), TypeError, "a tensor holds numbers, got list of object"),
    "None": (lambda: Tensor(None), TypeError, "a tensor holds numbers, got NoneType"),
    "complex numbers": (lambda: Tensor([1j]), TypeError, "a tensor holds numbers, got list of complex128"),
    "a tensor of tensors": (lambda: Tensor([Tensor([1.0]), Tensor([2.0])]), TypeError, "a Tensor is not an array"),
    "a tensor in an array function": (lambda: np.asarray(Tensor([1.0])), TypeError, "use its .data"),
    "rows of different lengths": (lambda: Tensor([[1.0], [1.0, 2.0]]), ValueError, "rows of different lengths"),
    "a dtype that is not kept": (lambda: Tensor([1.0], dtype=np.float16), ValueError, "float32, float64, int64 or bool, got float16"),
    "an integer beyond 64 bits": (lambda: Tensor([2**63]), ValueError, "up to 2**63 - 1 (int64), got 9223372036854775808"),
    "an integer far beyond them": (lambda: Tensor(2**64), TypeError, "a tensor holds numbers, got int of object"),
    "a precision": (lambda: Tensor.precision(np.float16), ValueError, "np.float32 or np.float64, got float16"),
    "no precision": (lambda: Tensor.precision(None), ValueError, "np.float32 or np.float64, got None"),
    "data of another shape": (lambda: setattr(zeros(2, 3), "data", np.ones(3)), ValueError, "shape (2, 3), got data of shape (3,)"),
    "a gradient of another shape": (lambda: setattr(zeros(2, 3), "grad", np.ones(2)), ValueError, "shape (2,) cannot belong to a tensor of shape (2, 3)"),
    "a gradient for integers": (lambda: setattr(Tensor([1]), "grad", [1.0]), TypeError, "Tensor([1., 2., 3.])"),
    "a gradient scaled before there is one": (lambda: zeros(2).grad.__imul__(2.0), RuntimeError, "call backward() first"),
    "a gradient divided before there is one": (lambda: zeros(2).grad.__itruediv__(2.0), RuntimeError, "call backward() first"),
    "item of many": (lambda: zeros(2, 3).item(), ValueError, "one element, this one has shape (2, 3)"),
    "shapes that do not broadcast": (lambda: zeros(2, 3) + zeros(2), ValueError, "shapes (2, 3) and (2,) do not broadcast: counted from the last axis"),
    "powers that do not broadcast": (lambda: zeros(2, 3) ** np.ones((2, 1, 2)), ValueError, "shapes (2, 3) and (2, 1, 2) do not broadcast"),
    "a comparison that does not broadcast": (lambda: zeros(2) == zeros(3), ValueError, "shapes (2,) and (3,) do not broadcast"),
    "products of batches that do not fit": (lambda: zeros(2, 3, 4) @ zeros(3, 4, 5), ValueError, "(2, 3, 4) @ (3, 4, 5): the leading axes (2,) and (3,) do not broadcast"),
    "a comparison as a truth": (lambda: bool(zeros(2) == zeros(2)), ValueError, "shape (2,) is neither true nor false: write (a == b).data.all()"),
    "product of unequal sizes": (lambda: zeros(2, 3) @ zeros(4, 5), ValueError, "(2, 3) @ (4, 5) has 3 against 4"),
    "vectors of unequal sizes": (lambda: zeros(3) @ zeros(4), ValueError, "has 3 against 4"),
    "product with a number": (lambda: zeros(2, 3) @ 2.0, ValueError, "got shapes (2, 3) and (): use *"),
    "transpose with an axis twice": (lambda: zeros(2, 3).transpose((0, 0)), ValueError, "2 axes needs each of 0 to 1 once, got (0, 0)"),
    "transpose with an axis too few": (lambda: zeros(2, 3, 4).transpose((1, 0)), ValueError, "3 axes needs each of 0 to 2 once, got (1, 0)"),
    "reshape to another size": (lambda: zeros(2, 3).reshape(4), ValueError, "the 6 numbers of shape (2, 3) do not fill shape 4"),
    "reshape to another size by a tuple": (lambda: zeros(2, 3).reshape((4, -1)), ValueError, "the 6 numbers of shape (2, 3) do not fill shape (4, -1)"),
    "reshape to another size by numbers": (lambda: zeros(2, 3).reshape(2, 2), ValueError, "do not fill shape (2, 2)"),
    "sum over an axis that is not there": (lambda: zeros(2, 3).sum(axis=2), np.exceptions.AxisError, "axis 2 is out of bounds for array of dimension 2"),
    "a tensor as exponent": (lambda: zeros(2) ** zeros(2), TypeError, "(a.log() * b).exp()"),
    "a negative base": (lambda: (-2) ** zeros(2), ValueError, "positive number, got -2"),
    "an index out of range": (lambda: zeros(2)[5], IndexError, "index 5 is out of bounds for axis 0 with size 2"),
    "float32 and float64 together": (lambda: zeros(2) + double(2), TypeError, "float64 tensor of shape (2,) used where results are float32"),
    # backward
    "backward of integers": (lambda: Tensor([1]).backward(), TypeError, "write Tensor([1., 2., 3.])"),
    "backward through integers only": (lambda: (Tensor([1]) * 2.0).sum().backward(), TypeError, "integers are constants"),
    "backward of many numbers": (lambda: (zeros(2, 3) * 1).backward(), ValueError, "has shape (2, 3): use .sum(), or pass grad"),
    "backward with a gradient that does not fit": (lambda: (zeros(2, 3) * 1).backward(np.ones(3)), ValueError, "grad has shape (3,), the tensor (2, 3)"),
    "backward twice": (twice, RuntimeError, "run the forward pass again"),
    "backward after the weights have changed": (too_early, RuntimeError, "call backward() before optimizer.step()"),
    "gradients checked in float32": (lambda: check_gradients(lambda x: x, zeros(2)), TypeError, "input 0 is float32"),
    # layers
    "a layer without forward": (lambda: Layer()(zeros(2)), NotImplementedError, "forward(self, x)"),
    "an array instead of a tensor": (lambda: ReLU()(np.ones(2)), TypeError, "ReLU takes a Tensor, got ndarray: write Tensor(...)"),
    "a list instead of a tensor": (lambda: Embedding(3, 2)([0, 1]), TypeError, "Embedding takes a Tensor, got list: write Tensor(...)"),
    "a list that is no list of layers": (lambda: Composite([Linear(2, 2), 3]), TypeError, "takes layers, got int"),
    "a set of layers": (lambda: vars_of({Linear(2, 2)}).parameters, TypeError, "inner is a set"),
    "inputs of another size": (lambda: Linear(3, 2)(zeros(4, 5)), ValueError, "Linear takes 3 inputs in the last axis, got shape (4, 5)"),
    "no inputs": (lambda: Linear(0, 2), ValueError, "inputs must be at least 1, got 0"),
    "a number of outputs with a fraction": (lambda: Linear(3, 2.0), TypeError, "outputs must be an integer, got 2.0"),
    "a generator that is a seed": (lambda: Linear(3, 2, generator=42), TypeError, "np.random.default_rng(0), got 42"),
    "an id too large": (lambda: Embedding(3, 2)(Tensor([0, 3])), ValueError, "from 0 to 2, got 0 to 3"),
    "an id below zero": (lambda: Embedding(3, 2)(Tensor([-1, 1])), ValueError, "from 0 to 2, got -1 to 1"),
    "ids with fractions": (lambda: Embedding(3, 2)(Tensor([1.0])), TypeError, "looks up integers, got float32"),
    "ids that are booleans": (lambda: Embedding(3, 2)(Tensor([True])), TypeError, "looks up integers, got bool"),
    "an empty table": (lambda: Embedding(0, 2), ValueError, "count must be at least 1, got 0"),
    "channels of another size": (lambda: LayerNorm(4)(zeros(2, 3)), ValueError, "needs 4 channels in the last axis, got shape (2, 3)"),
    "channels too few": (lambda: LayerNorm(4)(zeros(2, 5)), ValueError, "needs 4 channels in the last axis, got shape (2, 5)"),
    "one number instead of channels": (lambda: LayerNorm(4)(zeros()), ValueError, "needs 4 channels in the last axis, got shape ()"),
    "layer norm of integers": (lambda: LayerNorm(3)(Tensor([1, 2, 4])), TypeError, "needs floats, got int64 of shape (3,)"),
    "layer norm of booleans": (lambda: LayerNorm(2)(Tensor([True, False])), TypeError, "needs floats, got bool"),
    "two parameters of one name": (lambda: vars_of({1: zeros(2), "1": zeros(3)}).parameters, ValueError, "called 'inner.1', of shapes (2,) and (3,)"),
    "a composite without a list": (lambda: NoList()(zeros(2)), RuntimeError, "NoList has no list of layers: end its __init__ with super().__init__([...])"),
    "an infinite eps": (lambda: LayerNorm(4, eps=np.inf), ValueError, "got inf"),
    "an eps below zero": (lambda: LayerNorm(4, eps=-1e-5), ValueError, "got -1e-05"),
    "a dropout rate above one": (lambda: Dropout(1.5), ValueError, "between 0 and 1, got 1.5"),
    "a dropout rate that is no number": (lambda: Dropout(np.nan), ValueError, "between 0 and 1, got nan"),
    "an unknown GELU": (lambda: GELU("sigmoid"), ValueError, "\"none\" (exact) or \"tanh\", got 'sigmoid'"),
    "softmax of integers": (lambda: Softmax()(Tensor([1, 2])), ValueError, "(2,) of int64"),
    "softmax of booleans": (lambda: Softmax()(Tensor([True, False])), ValueError, "(2,) of bool"),
    "softmax of nothing in three axes": (lambda: Softmax()(zeros(2, 3, 0)), ValueError, "got shape (2, 3, 0)"),
    "softmax of one number": (lambda: Softmax()(Tensor(1.0)), ValueError, "got shape ()"),
    "softmax of nothing": (lambda: Softmax()(zeros(2, 0)), ValueError, "got shape (2, 0)"),
    "a triangle of a vector": (lambda: Tril()(zeros(3)), ValueError, "got shape (3,)"),
    # attention and masks
    "keys of another size": (lambda: attend(key=(2, 5, 3)), ValueError, "queries have 4 numbers, keys 3"),
    "keys that are wider": (lambda: attend(key=(2, 5, 6)), ValueError, "queries have 4 numbers, keys 6"),
    "more values than keys": (lambda: attend(value=(2, 7, 6)), ValueError, "5 keys and 7 values"),
    "as many values as queries": (lambda: attend(value=(2, 3, 6)), ValueError, "5 keys and 3 values"),
    "another batch": (lambda: attend(key=(1, 5, 4), value=(1, 5, 6)), ValueError, "query (2, 3, 4), key (1, 5, 4)"),
    "a larger batch of keys": (lambda: attend(key=(3, 5, 4), value=(3, 5, 6)), ValueError, "query (2, 3, 4), key (3, 5, 4)"),
    "a larger batch of values": (lambda: attend(value=(3, 5, 6)), ValueError, "value (3, 5, 6)"),
    "a smaller batch of values": (lambda: attend(value=(1, 5, 6)), ValueError, "value (1, 5, 6)"),
    "no batch": (lambda: attend(key=(5, 4), value=(5, 6)), ValueError, "query (2, 3, 4), key (5, 4)"),
    "a query that is a vector": (lambda: attend(query=(4,)), ValueError, "query needs floats of shape (..., tokens, size), got (4,)"),
    "no keys": (lambda: attend(key=(2, 0, 4), value=(2, 0, 6)), ValueError, "key needs floats of shape (..., tokens, size), got (2, 0, 4)"),
    "attention of arrays": (lambda: scaled_dot_product_attention(np.ones((2, 2)), zeros(2, 2), zeros(2, 2)), TypeError, "query must be a Tensor, got ndarray"),
    "attention of nothing": (lambda: attend(query=(2, 3, 0), key=(2, 5, 0)), ValueError, "query needs floats of shape (..., tokens, size), got (2, 3, 0)"),
    "attention of booleans": (lambda: scaled_dot_product_attention(*[Tensor([[True, False]])] * 3), ValueError, "(1, 2) of bool"),
    "attention of integers": (lambda: scaled_dot_product_attention(*[Tensor([[1, 2]])] * 3), ValueError, "int64"),
    "causal with more queries than keys": (lambda: attend(query=(2, 6, 4), causal=True), ValueError, "6 queries and 5 keys"),
    "a mask of zeros and ones": (lambda: attend(mask=mask((3, 5), int)), TypeError, "mask == 1"),
    "an additive mask": (lambda: attend(mask=np.where(mask((3, 5)), 0.0, -np.inf)), TypeError, "mask == 0 for an additive mask"),
    "a mask of text": (lambda: attend(mask="causal"), TypeError, "booleans, True where a query may attend"),
    "a mask for one key": (lambda: attend(mask=mask((3, 1))), ValueError, "mask has shape (3, 1), the scores (2, 3, 5)"),
    "a mask turned round": (lambda: attend(mask=mask((5, 3))), ValueError, "mask has shape (5, 3), the scores (2, 3, 5)"),
    "a mask for another batch": (lambda: attend(mask=mask((3, 3, 5))), ValueError, "mask has shape (3, 3, 5), the scores (2, 3, 5)"),
    "a mask that is a row": (lambda: attend(mask=mask((5,))), ValueError, "give (3, 5) or (1, 5)"),
    # losses
    "a loss without loss": (lambda: Loss()(zeros(2), zeros(2)), NotImplementedError, "loss(self, p, y)"),
    "a loss that is a number": (lambda: Numbers()(zeros(2), zeros(2)), TypeError, "Numbers.loss must return a Tensor, got float"),
    "targets of another shape": (lambda: MSELoss()(zeros(2, 3), zeros(3)), ValueError, "shape (2, 3), targets (3,)"),
    "targets that would broadcast": (lambda: MSELoss()(zeros(2, 3), zeros(2, 1)), ValueError, "shape (2, 3), targets (2, 1)"),
    "a label too large": (lambda: CrossEntropyLoss()(zeros(2, 3), [0, 3]), ValueError, "from 0 to 2, got 3"),
    "labels far too large": (lambda: CrossEntropyLoss()(zeros(2, 2, 3), [[0, 9], [8, 1]]), ValueError, "from 0 to 2, got 9"),
    "a label below zero": (lambda: CrossEntropyLoss()(zeros(2, 3), [0, -1]), ValueError, "got -1: use CrossEntropyLoss(ignore_index=...)"),
    "labels with fractions": (lambda: CrossEntropyLoss()(zeros(2, 3), [0.0, 1.0]), TypeError, "targets are integers, got float32"),
    "labels as one-hot rows": (lambda: CrossEntropyLoss()(zeros(2, 3), np.eye(2, 3, dtype=int)), ValueError, "logits (2, 3) of float32 and targets (2, 3)"),
    "labels too few": (lambda: CrossEntropyLoss()(zeros(2, 3), [0]), ValueError, "logits (2, 3) of float32 and targets (1,)"),
    "logits that are integers": (lambda: CrossEntropyLoss()(Tensor([[1, 2]]), [0]), ValueError, "logits (1, 2) of int64"),
    "logits that are booleans": (lambda: CrossEntropyLoss()(Tensor([[True, False]]), [0]), ValueError, "logits (1, 2) of bool"),
    "logits that are a number": (lambda: CrossEntropyLoss()(Tensor(1.0), 0), ValueError, "logits () of float32 and targets ()"),
    "an ignored index with a fraction": (lambda: CrossEntropyLoss(ignore_index=1.5), TypeError, "integer such as -100, or None, got 1.5"),
    # optimizers and schedules
    "no parameters": (lambda: SGDOptimizer([], lr=0.1), ValueError, "at least one parameter, got 0: pass model.parameters"),
    "a parameter twice": (lambda: SGDOptimizer([zeros(2)] * 2, lr=0.1), ValueError, "twice"),
    "a layer for a parameter": (lambda: SGDOptimizer([Linear(2, 2)], lr=0.1), TypeError, "Linear(6 parameters): pass model.parameters"),
    "integers for parameters": (lambda: SGDOptimizer([Tensor([1])], lr=0.1), TypeError, "pass model.parameters"),
    "a computed parameter": (lambda: SGDOptimizer([zeros(2) * 2], lr=0.1), TypeError, "pass model.parameters"),
    "a learning rate below zero": (lambda: step(-0.1), ValueError, "such as 0.001, got -0.1"),
    "a learning rate that is no number": (lambda: step(np.nan), ValueError, "such as 0.001, got nan"),
    "an infinite learning rate": (lambda: step(np.inf), ValueError, "such as 0.001, got inf"),
    "a learning rate set later": (lambda: setattr(step(), "lr", -1.0), ValueError, "such as 0.001, got -1.0"),
    "a beta of one": (lambda: step(betas=(0.9, 1.0)), ValueError, "not including 1, got (0.9, 1.0)"),
    "a beta below zero": (lambda: step(betas=(-0.5, 0.9)), ValueError, "from 0 up to but not including 1, got (-0.5, 0.9)"),
    "a beta above one": (lambda: step(betas=(1.5, 0.9)), ValueError, "not including 1, got (1.5, 0.9)"),
    "one beta": (lambda: step(betas=(0.9,)), ValueError, "two numbers from 0 up to but not including 1, got (0.9,)"),
    "three betas": (lambda: step(betas=(0.9, 0.9, 0.9)), ValueError, "two numbers"),
    "an Adam eps below zero": (lambda: step(eps=-1e-8), ValueError, "eps must be zero or a positive number, got -1e-08"),
    "an infinite decay": (lambda: step(weight_decay=np.inf), ValueError, "weight_decay must be zero or a positive number, got inf"),
    "a decay below zero": (lambda: step(weight_decay=-0.1), ValueError, "weight_decay must be zero or a positive number, got -0.1"),
    "a norm below zero": (lambda: step().clip_grad_norm(-1.0), ValueError, "max_norm must be positive, got -1.0"),
    "a norm that is no number": (lambda: step().clip_grad_norm(np.nan), ValueError, "max_norm must be positive, got nan"),
    "a norm of zero": (lambda: step().clip_grad_norm(0.0), ValueError, "max_norm must be positive, got 0.0"),
    "a step without gradients": (lambda: step().step(), RuntimeError, "call loss.backward() before step()"),
    "an optimizer without update": (lambda: with_gradient(Optimizer).step(), NotImplementedError, "update(self, index, parameter)"),
    "a warm-up as long as the run": (lambda: WarmupCosineScheduler(0.1, 10, 10), ValueError, "got 10 of 10 steps"),
    "a warm-up below zero": (lambda: WarmupCosineScheduler(0.1, 10, -1), ValueError, "got -1 of 10 steps"),
    "a run without steps": (lambda: WarmupCosineScheduler(0.1, 0, 0), ValueError, "got 0 of 0 steps"),
    "a last rate above the first": (lambda: WarmupCosineScheduler(0.1, 10, 1, 0.2), ValueError, "min_lr 0.2 and lr 0.1"),
    "a rate that is no number": (lambda: WarmupCosineScheduler(np.nan, 10, 1), ValueError, "lr nan"),
    "a step below zero": (lambda: WarmupCosineScheduler(0.1, 10, 1).step(-1), ValueError, "counted from 0, got -1"),
    # data, training, files
    "a dataset without load": (lambda: Dataset(2), NotImplementedError, "load(self)"),
    "a dataset without data": (lambda: NoData(2), ValueError, "NoData.load() must set train_data = (x, y)"),
    "data that is no pair": (lambda: dataset_of(np.ones(3)), ValueError, "must set train_data = (x, y), got ndarray"),
    "features without labels": (lambda: dataset([1, 2, 3], [1, 2]), ValueError, "3 features and 2 labels"),
    "features of different lengths": (lambda: dataset([[1], [1, 2]], [1, 2]), ValueError, "train_data: rows of different lengths"),
    "a batch larger than the data": (lambda: dataset([1], [1]), ValueError, "1 pairs, too few for one batch of 2"),
    "no data at all": (lambda: dataset([], [], drop_last=False), ValueError, "0 pairs"),
    "a batch of nothing": (lambda: dataset([1], [1], batch_size=0), ValueError, "batch_size must be at least 1, got 0"),
    "a batch number too large": (lambda: dataset([1, 2], [1, 2])[1], IndexError, "there are 1 batches, numbered from 0, got 1"),
    "model and loss exchanged": (lambda: trainer(model=MSELoss()), TypeError, "model must be a Layer, got MSELoss"),
    "a loss that is a function": (lambda: trainer(loss_fn=abs), TypeError, "loss_fn must be a Loss, got builtin_function_or_method"),
    "no optimizer": (lambda: trainer(optimizer=Linear(2, 2)), TypeError, "optimizer must be a Optimizer, got Linear"),
    "a seed below zero": (lambda: seed(-1), ValueError, "zero or a positive integer, got -1"),
    "a seed with a fraction": (lambda: seed(1.0), TypeError, "an integer such as 0, got 1.0"),
    "a seed that is a truth": (lambda: seed(True), TypeError, "an integer such as 0, got True"),
    "a checkpoint that is not there": (lambda: load_checkpoint("/nowhere/run"), FileNotFoundError, "/nowhere/run"),
    "a folder that is not there": (lambda: save_checkpoint("/nowhere/run", Linear(1, 1)), FileNotFoundError, "no folder /nowhere, make it first"),
    # the language model
    "heads that do not divide the channels": (lambda: GPTAttention(6, heads=4), ValueError, "4 heads cannot share 6 channels"),
    "no heads": (lambda: gpt(heads=0), ValueError, "heads must be at least 1, got 0"),
    "heads below zero": (lambda: gpt(heads=-1), ValueError, "heads must be at least 1, got -1"),
    "a number of heads with a fraction": (lambda: gpt(heads=2.0), TypeError, "heads must be an integer, got 2.0"),
    "heads with a part that has none": (lambda: gpt(heads=2, attention=without_heads), TypeError, "does not take heads, got heads=2"),
    "a part that is no layer": (lambda: gpt(attention=no_layer), TypeError, "must return a Layer, got int"),
    "no blocks": (lambda: gpt(blocks=0), ValueError, "blocks must be at least 1, got 0"),
    "a text longer than the context": (lambda: gpt()(Tensor([[1] * 5])), ValueError, "context is 4 tokens"),
    "ids without a batch": (lambda: gpt()(Tensor([1, 2])), ValueError, "has shape (B, T), got (2,): write Tensor([ids])"),
    "an id out of the vocabulary": (lambda: gpt()(Tensor([[7]])), ValueError, "from 0 to 6, got 7 to 7"),
    "tokens beyond the position table": (lambda: PositionalEncoding(4, max_length=2)(zeros(1, 3, 4)), ValueError, "has 2 positions, got tokens up to place 3"),
    "float64 with a table of float32": (two_types, TypeError, "float32 tensor of shape (3, 4) used where results are float64"),
    "an empty prompt": (lambda: generate(gpt(), [], 3), ValueError, "the prompt is empty"),
    "steps below zero": (lambda: generate(gpt(), [1], -1), ValueError, "zero or more, got -1"),
    "a temperature below zero": (lambda: generate(gpt(), [1], 1, temperature=-1.0), ValueError, "got -1.0"),
    "a temperature that is no number": (lambda: generate(gpt(), [1], 1, temperature=np.nan), ValueError, "got nan"),
    "an infinite temperature": (lambda: generate(gpt(), [1], 1, temperature=np.inf), ValueError, "got inf"),
    "top_k of nothing": (lambda: generate(gpt(), [1], 1, top_k=0), ValueError, "at least 1, got 0"),
    "top_k that is a float": (lambda: generate(gpt(), [1], 1, top_k=2.0), ValueError, "top_k is an integer, how many tokens to keep, at least 1, got 2.0"),
    "an infinite top_k": (lambda: generate(gpt(), [1], 1, top_k=np.inf), ValueError, "at least 1, got inf"),
    "top_k of text": (lambda: generate(gpt(), [1], 1, top_k="a"), ValueError, "at least 1, got 'a'"),
    "a prompt of text": (lambda: generate(gpt(), "12", 1), TypeError, "got the text '12': write dataset.encode(text)"),
    "a prompt of fractions": (lambda: generate(gpt(), [1.9], 1), TypeError, "one row of integer ids, got float64 of shape (1,)"),
    "a prompt of truths": (lambda: generate(gpt(), [True], 1), TypeError, "one row of integer ids, got bool of shape (1,)"),
    "a batch of prompts": (lambda: generate(gpt(), [[1], [2]], 1), TypeError, "one row of integer ids, got int64 of shape (2, 1)"),
    "a tensor of two rows as prompt": (lambda: generate(gpt(), Tensor([[1, 2]]), 1), TypeError, "got int64 of shape (1, 2)"),
    "top_p of nothing": (lambda: generate(gpt(), [1], 1, top_p=0.0), ValueError, "above 0 and at most 1, got 0.0"),
    "top_p above one": (lambda: generate(gpt(), [1], 1, top_p=1.5), ValueError, "above 0 and at most 1, got 1.5"),
    "a text too short": (lambda: windows("abcdefgh"), ValueError, "the test part has 1 characters, a window and the next character need 5"),
    "a split of one": (lambda: windows(split=1.0), ValueError, "between 0 and 1, got 1.0"),
    "a stride of nothing": (lambda: windows(stride=0), ValueError, "stride must be at least 1, got 0"),
    "a character that is not in the text": (lambda: windows().encode("abz"), ValueError, "'z' is not among the 5 characters"),
    "an id that is no character": (lambda: windows().decode([0, 5]), ValueError, "from 0 to 4, got 5"),
}  # fmt: skip


def vars_of(value):
    layer = ReLU()
    layer.inner = value
    return layer


def with_gradient(optimizer):
    x = zeros(2)
    x.grad += np.ones(2)
    return optimizer([x], lr=0.1)


def dataset_of(data):
    class Given(Dataset):
        def load(self):
            self.train_data = self.test_data = data

    return Given(2)


def without_heads(embedding_size):
    return Linear(embedding_size, embedding_size)


def no_layer(embedding_size):
    return abs(embedding_size)


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_input_is_refused(name):
    action, error, message = BAD[name]
    with pytest.raises(error, match=re.escape(message)) as raised:
        action()
    assert type(raised.value) is error


def test_there_are_enough_of_them():
    assert len(BAD) >= 100 and len({message for _, _, message in BAD.values()}) > 90
