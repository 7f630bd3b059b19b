"""Known traps of small engines: the graph and its backward pass."""

import gc
import hashlib
import inspect
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import src.core
from src.core import AdamWOptimizer, Tensor, check_gradients
from src.core.graph import reachable
from src.gpt import GPT, GPTLoss, GPTTrainer, generate

ROOT = Path(__file__).parents[2]


def small_gpt(**settings):
    return GPT(**{"vocab_size": 11, "context_size": 8, "embedding_size": 12, "blocks": 2, "heads": 2, **settings})


def ids(rng, shape=(2, 8), size=11):
    return Tensor(rng.integers(0, size, shape))


def chain(x, length):
    for _ in range(length):
        x = x + 1.0
    return x


def test_t1_a_tensor_that_is_used_twice_gets_both_contributions():
    a = Tensor(1.0)
    b = a + a
    c = b + b
    c.backward()
    assert a.grad == 4.0


@pytest.mark.parametrize("doublings", [20, 100])
def test_t2_backward_visits_each_operation_once_not_once_a_path(doublings):
    calls = []

    def double(x):
        out = Tensor(x.data + x.data)

        def gradient_fn():
            calls.append(1)
            x.grad += out.grad
            x.grad += out.grad

        return out.attach(gradient_fn, (x, x))

    x = y = Tensor(1.0)
    for _ in range(doublings):
        y = double(y)
    assert len(reachable(y._record)) == doublings
    y.backward()
    assert len(calls) == doublings and x.grad == 2.0**doublings


def test_t3_a_node_is_freed_only_after_all_its_contributions_came():
    x = Tensor(2.0)
    y = x * 3
    (y * 2 + y * 5).backward()
    assert x.grad == 21.0


def test_t4_a_chain_of_50_000_additions_needs_no_recursion():
    limit = sys.getrecursionlimit()
    x = Tensor(1.0)
    chain(x, 50_000).backward()
    assert x.grad == 1.0 and sys.getrecursionlimit() == limit


def test_t4_a_long_chain_that_never_calls_backward_is_freed_without_recursion():
    y = chain(Tensor(1.0), 50_000)
    assert y.item() == 50_001.0
    del y


def test_t5_a_second_backward_raises_instead_of_counting_twice():
    a, b, d = Tensor(3.0), Tensor(2.0), Tensor(1.0)
    e = (a + b) * d
    e.backward()
    assert (a.grad, b.grad, d.grad) == (1.0, 1.0, 5.0)
    with pytest.raises(RuntimeError):
        e.backward()
    assert (a.grad, b.grad, d.grad) == (1.0, 1.0, 5.0)
    ((a + b) * d).backward()  # a new graph adds to what the leaves have
    assert (a.grad, b.grad, d.grad) == (2.0, 2.0, 10.0)


def test_t6_backward_on_a_freed_graph_says_what_to_do():
    x = Tensor([1.0, 2.0])
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match=r"run the forward pass again, or add the losses and call backward\(\) once"):
        loss.backward()


def test_t7_no_two_tensors_share_a_gradient_buffer():
    x, y = Tensor(1.0), Tensor(2.0)
    z = x + y
    (x / z).backward()
    assert x.grad == pytest.approx(2 / 9, rel=1e-6)
    assert y.grad == pytest.approx(-1 / 9, rel=1e-6)
    assert not np.shares_memory(x.grad, y.grad)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "left, right", [((2, 1, 3, 4), (2, 1, 3, 1)), ((4, 1), (1, 4)), ((), (5, 4)), ((3,), (2, 3)), ((5, 4), (1, 1))]
)
def test_t9_gradients_are_summed_over_what_was_broadcast(left, right, rng):
    a, b = Tensor(rng.uniform(1, 2, left)), Tensor(rng.uniform(1, 2, right))
    for function in (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a - b):
        assert check_gradients(function, a, b) < 1e-7
        assert a.grad.shape == left and b.grad.shape == right


def test_t9_the_gradient_of_a_bias_is_the_number_of_rows():
    layer = src.core.Linear(3, 2)
    layer(Tensor(np.ones((7, 3)))).sum().backward()
    np.testing.assert_array_equal(layer.bias.grad, [7.0, 7.0])


def test_t10_the_engine_needs_no_einsum():
    sources = Path(src.core.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "einsum" in path.read_text(encoding="utf-8")]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("axis", [None, 0, -1, 1, (1, 2), (0, 2), (-1, -2)])
@pytest.mark.parametrize("keepdims", [True, False])
def test_t11_t12_reductions_send_gradients_to_the_right_places(axis, keepdims, rng):
    """Sizes differ, so that a gradient that is tiled along the wrong axis cannot fit by luck."""
    x = Tensor(rng.standard_normal((2, 3, 4)))
    for reduce in (lambda x: x.sum(axis, keepdims), lambda x: x.mean(axis, keepdims)):
        assert check_gradients(lambda x, reduce=reduce: reduce(x * x), x) < 1e-7


@pytest.mark.parametrize("axes, inverse", [((1, 2, 0), (2, 0, 1)), ((-1, 0, 1), (1, 2, 0)), ((0, 2, 1), (0, 2, 1))])
def test_t13_the_gradient_of_a_transpose_uses_the_inverse_permutation(axes, inverse, rng):
    x, g = Tensor(np.zeros((2, 3, 4))), rng.standard_normal((2, 3, 4)).transpose(axes).astype(np.float32)
    x.transpose(axes).backward(g)
    np.testing.assert_array_equal(x.grad, g.transpose(inverse))


def test_t15_data_that_changed_after_the_forward_pass_is_noticed():
    x = Tensor([1.0, 2.0])
    y = (x * x).sum()
    x.data += 1
    with pytest.raises(RuntimeError, match="changed after the forward pass"):
        y.backward()


@pytest.mark.parametrize("kind", [list, np.array, Tensor, lambda ids: (np.array(ids), slice(None)), lambda ids: [ids]])
def test_t15_an_index_that_changed_later_does_not_lead_the_gradient_elsewhere(kind):
    x, index = Tensor([[1.0], [2.0], [3.0]]), kind([0])
    y = x[index].sum()
    inner = index
    while not isinstance(inner, np.ndarray | Tensor) and not isinstance(inner[0], int):
        inner = inner[0]
    (inner.data if isinstance(inner, Tensor) else inner)[0] = 2
    y.backward()
    np.testing.assert_array_equal(x.grad, [[1.0], [0.0], [0.0]])


def test_t15_ids_that_changed_after_a_look_up_are_noticed_or_do_no_harm():
    table, ids = src.core.Embedding(3, 1), Tensor([0])
    y = table(ids).sum()
    ids.data[0] = 2  # not noticed, and without effect
    y.backward()
    np.testing.assert_array_equal(table.weight.grad, [[1.0], [0.0], [0.0]])
    y = table(ids).sum()
    ids.data = [1]
    with pytest.raises(RuntimeError, match="changed after the forward pass"):
        y.backward()


def test_t15_an_optimizer_step_before_backward_is_noticed(rng):
    model, x = small_gpt(), ids(rng)
    optimizer = AdamWOptimizer(model.parameters)
    GPTLoss()(model(x), x).backward()
    loss = GPTLoss()(model(x), x)
    optimizer.step()
    with pytest.raises(RuntimeError, match=r"of shape .* was changed after the forward pass"):
        loss.backward()


@pytest.fixture
def traced():
    """No cyclic collector, and a count of the bytes in use."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    gc.enable()


def kept_by_one_pass(traced, model, x):
    """The bytes that the activations of one pass take while its result lives."""
    before = traced()
    logits = model(x)
    kept = traced() - before
    assert logits.differentiable and kept > 300_000
    return kept


def test_t16_forward_passes_that_never_call_backward_keep_nothing(traced, rng):
    model, x = small_gpt(embedding_size=32), ids(rng, (8, 8))
    one = kept_by_one_pass(traced, model, x)
    before = traced()
    for _ in range(20):
        model(x)
    assert (
        traced() - before < one / 2
    )  # NumPy and Python keep some small blocks for later; 20 passes would be 40 times this


def test_t16_training_steps_keep_nothing(traced, rng):
    model, x = small_gpt(embedding_size=32, dropout=0.1), ids(rng, (8, 8))
    trainer = GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters))
    one = kept_by_one_pass(traced, model, x)
    trainer.train_step(x, x)
    before = traced()
    for _ in range(30):
        trainer.train_step(x, x)
    assert traced() - before < one / 2


def test_t16_memory_falls_while_backward_runs(traced):
    """The first operation is replayed last, when almost all of the others must have been let go."""
    x, used = Tensor(np.ones(10_000)), []
    first = Tensor(x.data)

    def gradient_fn():
        used.append(traced())
        x.grad += first.grad

    y = first.attach(gradient_fn, (x,))
    for _ in range(50):
        y = y.tanh()
    before = traced()
    y.backward(np.ones(10_000))
    del y
    assert before - used[0] > 0.3 * 50 * 40_000  # 40,000 bytes each; gradients of what was replayed go too


def test_t17_an_error_inside_no_grad_puts_recording_back():
    with pytest.raises(KeyError), Tensor.no_grad():
        raise KeyError
    assert (Tensor([1.0]) * 2).differentiable


def test_t17_nested_blocks_put_back_the_outer_state():
    with Tensor.no_grad():
        with Tensor.no_grad():
            pass
        assert not (Tensor([1.0]) * 2).differentiable
    assert (Tensor([1.0]) * 2).differentiable


def test_t17_generate_cannot_be_paused_inside_no_grad():
    assert not inspect.isgeneratorfunction(generate) and not inspect.isgeneratorfunction(GPTTrainer.generate)


@pytest.mark.parametrize("tied", [True, False])
def test_t18_every_parameter_of_a_fresh_gpt_gets_a_gradient(tied, rng):
    """All but the key's bias: it moves all scores of a query alike, which softmax does not see."""
    model = small_gpt(tied=tied)
    GPTLoss()(model(ids(rng)), ids(rng)).backward()
    sizes = {name: float(np.abs(tensor.grad).max()) for name, tensor in model.named_parameters()}
    without = {name for name, size in sizes.items() if size < 1e-8}
    assert without == {"blocks.0.attention.key.bias", "blocks.1.attention.key.bias"}
    assert all(tensor.has_grad for tensor in model.parameters)


PROGRAM = """
import hashlib
import numpy as np
from src.core import AdamWOptimizer, Tensor
from src.gpt import GPT, GPTLoss, GPTTrainer

def product(*factors):                      # parents in a set, whose order depends on addresses
    out = Tensor(np.prod([factor.data for factor in factors], axis=0))
    def gradient_fn():
        for factor in factors:
            factor.grad += out.grad * out.data / factor.data
    return out.attach(gradient_fn, set(factors))

class Loss(GPTLoss):
    def loss(self, p, y):
        ce = super().loss(p, y)
        return product(ce * 0.3, ce + 1.0, ce * ce, 2.0 / ce)

rng = np.random.default_rng(3)
model = GPT(vocab_size=11, context_size=8, embedding_size=12, blocks=2, heads=2, dropout=0.1, tied=True)
trainer = GPTTrainer(model, Loss(), AdamWOptimizer(model.parameters))
for _ in range(20):
    trainer.train_step(Tensor(rng.integers(0, 11, (2, 8))), Tensor(rng.integers(0, 11, (2, 8))))
print(hashlib.sha256(b"".join(tensor.data.tobytes() for tensor in model.parameters)).hexdigest())
"""


def test_t19_twenty_steps_end_in_the_same_bytes_in_every_process():
    hashes = set()
    for hash_seed in ("0", "1", "12345"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )
        assert run.returncode == 0, run.stderr
        hashes.add(run.stdout)
    assert len(hashes) == 1 and hashes != {hashlib.sha256(b"").hexdigest() + "\n"}


@pytest.mark.parametrize("name", ["__add__", "__sub__", "__mul__", "__truediv__", "__matmul__"])
def test_t20_an_array_on_the_left_gives_a_tensor(name, rng):
    array, x = rng.uniform(1, 2, (2, 2)).astype(np.float32), Tensor(rng.uniform(1, 2, (2, 2)))
    symbol = {"__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__matmul__": "@"}[name]
    out = eval(f"array {symbol} x")
    assert type(out) is Tensor and out.dtype == np.float32
    np.testing.assert_allclose(out.data, getattr(array, name)(x.data), rtol=1e-6)
    out.sum().backward()
    assert x.has_grad
    assert type(eval(f"np.float64(2) {symbol} x.sum()" if symbol != "@" else "array @ x")) is Tensor
