"""Known traps of small engines: data, evaluation, generation, files."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest

import src.core
from src.core import (
    AdamWOptimizer,
    Dataset,
    Layer,
    Loss,
    SGDOptimizer,
    Tensor,
    Trainer,
    load_checkpoint,
    save_checkpoint,
)
from src.core.masking import causal_mask
from src.gpt import GPT, CharDataset, GPTLoss, GPTTrainer, generate
from src.gpt.cache import Cache

SIZES = {"vocab_size": 11, "context_size": 8, "embedding_size": 12, "blocks": 2, "heads": 2}


def windows(tmp_path, count, context_size=4, **settings):
    """A dataset whose two parts have `count` characters each."""
    path = tmp_path / "text.txt"
    path.write_text("abcdefghijklmnop"[:count] * 2, encoding="utf-8")
    return CharDataset(path, context_size=context_size, stride=1, split=0.5, **settings)


def test_t52_the_last_window_is_there(tmp_path):
    data = windows(tmp_path, 8)
    assert len(data) == 4
    x, y = data[3]
    assert (data.decode(x.data[0]), data.decode(y.data[0])) == ("defg", "efgh")
    assert len(windows(tmp_path, 5)) == 1
    with pytest.raises(ValueError, match="has 4 characters, a window and the next character need 5"):
        windows(tmp_path, 4)


@pytest.mark.parametrize("batch_size", [1, 4, 7, 64])
def test_t53_a_short_last_batch_weighs_less(batch_size):
    class Given(Dataset):
        def load(self):
            losses = np.array([1.0, 1.0, 1.0, 1.0, 5.0])
            self.train_data = self.test_data = (losses, losses)

    class Same(Layer):
        def __init__(self):
            self.weight = Tensor(1.0)

        def forward(self, x):
            return x * self.weight

    class Mean(Loss):
        def loss(self, p, y):
            return p.mean()

    model = Same()
    trainer = Trainer(model, Mean(), SGDOptimizer(model.parameters, 0.1))
    assert trainer.evaluate(Given(batch_size, drop_last=False)) == pytest.approx(1.8, rel=1e-6)


def test_t54_an_epoch_has_every_window_once_in_an_order_of_the_generator(tmp_path):
    def epoch(seed):
        generator = np.random.default_rng(seed)
        data = windows(tmp_path, 16, batch_size=5, shuffle=True, drop_last=False, generator=generator).train()
        return [data.decode(row) for x, _ in data for row in x.data]

    assert len(epoch(1)) == 12 and sorted(epoch(1)) == ["abcdefghijklmnop"[i : i + 4] for i in range(12)]
    assert epoch(1) == epoch(1) != epoch(2)


def test_t56_a_resumed_run_ends_in_the_same_bytes(tmp_path):
    def build(seed):
        generator = np.random.default_rng(seed)
        model = GPT(**SIZES, dropout=0.2, tied=True, generator=generator)
        return GPTTrainer(model, GPTLoss(), AdamWOptimizer(model.parameters, lr=0.01)), generator

    def steps(trainer, generator, count):
        for _ in range(count):
            tokens = generator.integers(0, 11, (2, 9))
            trainer.train_step(Tensor(tokens[:, :-1]), Tensor(tokens[:, 1:]))

    whole, first, second = build(1), build(1), build(2)
    steps(*whole, 20)
    steps(*first, 10)
    save_checkpoint(tmp_path / "c", first[0].model, first[0].optimizer, first[1], {"steps": 10})
    assert load_checkpoint(tmp_path / "c", second[0].model, second[0].optimizer, second[1]) == {"steps": 10}
    steps(*second, 10)
    for ours, theirs in zip(whole[0].model.parameters, second[0].model.parameters, strict=True):
        assert ours.data.tobytes() == theirs.data.tobytes()
    assert whole[1].bit_generator.state == second[1].bit_generator.state


class Planted:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("the checkpoint ran code",))


def test_t57_no_checkpoint_can_run_code(tmp_path):
    np.save(tmp_path / "object.npy", np.array([Planted()], dtype=object), allow_pickle=True)
    (tmp_path / "plain.pickle").write_bytes(pickle.dumps(Planted()))
    np.savez(tmp_path / "object.npz", x=np.array([Planted()], dtype=object))
    for path in ("object.npy", "plain.pickle", "object.npz"):
        with pytest.raises(ValueError, match="no safetensors file"):
            load_checkpoint(tmp_path / path)


def test_t57_the_engine_has_no_reader_that_could():
    for path in Path(src.core.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not imported & {"pickle", "marshal", "shelve"}, path.name
        assert not called & {"np.load", "np.fromfile", "eval", "exec", "compile"}, path.name


def test_t58_with_a_cache_the_mask_is_aligned_at_the_end():
    np.testing.assert_array_equal(causal_mask(2, 5), [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])


@pytest.mark.parametrize("chunk", [1, 2, 3, 8])
def test_t58_logits_with_and_without_cache_are_equal(chunk, rng):
    model, x = GPT(**SIZES, std=0.5).eval(), rng.integers(0, 11, (2, 8))
    with Tensor.no_grad():
        whole = model(Tensor(x)).data
        cache = Cache(SIZES["blocks"], SIZES["context_size"])
        parts = [model(Tensor(x[:, start : start + chunk]), cache).data for start in range(0, 8, chunk)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)
    assert np.abs(whole).max() > 1.0


@pytest.mark.parametrize("training", [True, False])
def test_t60_generate_leaves_the_modes_as_they_were(training):
    model = GPT(**SIZES, dropout=0.5)
    model.train() if training else model.eval()
    modes = [layer.training for layer in model.layers_within()]
    generate(model, [1, 2], 3)
    with pytest.raises(ValueError, match="got 99"):
        generate(model, [99], 3)
    assert [layer.training for layer in model.layers_within()] == modes == [training] * len(modes)
    assert (Tensor([1.0]) * 2).differentiable


def test_t60_a_prompt_longer_than_the_context_works_and_seeded_runs_repeat(rng):
    model, prompt = GPT(**SIZES), rng.integers(0, 11, 20).tolist()
    runs = [generate(model, prompt, 15, generator=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert len(runs[0]) == 35 and runs[0][:20] == prompt
    assert runs[0] == runs[1] != runs[2]
