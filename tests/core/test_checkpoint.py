"""Checkpoints: the round trip, the same bytes after a resume, and files that are damaged."""

import json
import os
import re
import threading

import numpy as np
import pytest
import safetensors.numpy

from src.core import (
    AdamWOptimizer,
    Composite,
    Dropout,
    Linear,
    MSELoss,
    ReLU,
    SGDOptimizer,
    Tensor,
    Trainer,
    load_checkpoint,
    save_checkpoint,
)
from src.core.checkpoint import read_arrays, write_arrays


class Run:
    """A small training run with everything that a checkpoint has to keep: weights, averages, dropout, data."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        drop = Dropout(0.3, generator=self.generator)
        self.model = Composite(
            [Linear(3, 8, generator=self.generator), ReLU(), drop, Linear(8, 1, generator=self.generator)]
        )
        self.optimizer = AdamWOptimizer(self.model.parameters, lr=0.05, weight_decay=0.1)
        self.trainer = Trainer(self.model, MSELoss(), self.optimizer)
        self.parts = (self.model, self.optimizer, self.generator)

    def steps(self, count):
        for _ in range(count):
            x = self.generator.standard_normal((4, 3))
            self.trainer.train_step(Tensor(x), Tensor(x.sum(axis=1, keepdims=True)))

    def everything(self):
        arrays = {**self.model.state_dict(), **self.optimizer.state_dict()}
        return {name: array.tobytes() for name, array in arrays.items()}, self.generator.bit_generator.state


@pytest.fixture
def saved(tmp_path):
    """A checkpoint on disk, the run it came from, and another run to load it into."""
    path, run = tmp_path / "run.safetensors", Run(1)
    run.steps(3)
    save_checkpoint(path, *run.parts, metadata={"steps": 3, "name": "Füße"})
    return path, run, Run(2)


def test_round_trip(saved):
    path, run, other = saved
    assert other.everything() != run.everything()
    assert load_checkpoint(path, *other.parts) == {"steps": 3, "name": "Füße"}
    assert other.everything() == run.everything()


def test_ten_steps_saved_and_ten_more_are_twenty_steps(tmp_path):
    whole, first, second = Run(1), Run(1), Run(2)
    whole.steps(20)
    first.steps(10)
    save_checkpoint(tmp_path / "c", *first.parts)
    load_checkpoint(tmp_path / "c", *second.parts)
    second.steps(10)
    assert second.everything() == whole.everything()


@pytest.mark.parametrize("lost", ["optimizer", "generator"])
def test_a_resume_without_optimizer_or_generator_ends_elsewhere(lost, tmp_path):
    """The test above would not see a checkpoint that forgets them if this one failed."""
    whole, first, second = Run(1), Run(1), Run(2)
    whole.steps(20)
    first.steps(10)
    save_checkpoint(tmp_path / "c", *first.parts)
    parts = {"optimizer": (second.model, None, second.generator), "generator": (second.model, second.optimizer)}[lost]
    load_checkpoint(tmp_path / "c", *parts)
    second.steps(10)
    assert second.everything()[0] != whole.everything()[0]


def test_parts_can_be_left_out(tmp_path):
    run, other = Run(1), Run(2)
    save_checkpoint(tmp_path / "c", run.model)
    before = other.everything()
    assert load_checkpoint(tmp_path / "c") == {}
    assert other.everything() == before
    load_checkpoint(tmp_path / "c", other.model)
    assert other.model.state_dict().keys() == run.model.state_dict().keys()
    np.testing.assert_array_equal(other.model.parameters[0].data, run.model.parameters[0].data)


def test_a_generator_goes_on_where_it_was_with_its_half_drawn_number(tmp_path):
    first, second = np.random.default_rng(1), np.random.default_rng(2)
    first.random(3, dtype=np.float32)
    save_checkpoint(tmp_path / "c", Linear(1, 1), generator=first)
    load_checkpoint(tmp_path / "c", generator=second)
    np.testing.assert_array_equal(first.random(4, dtype=np.float32), second.random(4, dtype=np.float32))


@pytest.mark.parametrize("kind", ["PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_other_generators_are_refused_before_a_file_is_made_or_read(kind, tmp_path):
    other = np.random.Generator(getattr(np.random, kind)(1))
    with pytest.raises(ValueError, match=rf"PCG64 generators, got {kind}: make it by np\.random\.default_rng"):
        save_checkpoint(tmp_path / "c", Linear(1, 1), generator=other)
    assert os.listdir(tmp_path) == []
    save_checkpoint(tmp_path / "c", Linear(1, 1), generator=np.random.default_rng(1))
    with pytest.raises(ValueError, match=rf"PCG64 generators, got {kind}"):
        load_checkpoint(tmp_path / "c", generator=other)


def test_float64_weights_stay_exact(tmp_path):
    with Tensor.precision(np.float64):
        first, second = Linear(3, 2), Linear(3, 2)
    save_checkpoint(tmp_path / "c", first)
    load_checkpoint(tmp_path / "c", second)
    assert first.weight.data.tobytes() == second.weight.data.tobytes()


def test_a_shared_tensor_is_stored_once_and_stays_shared(tmp_path):
    def build():
        layer = Linear(2, 2)
        model = Composite([layer, Linear(2, 2, bias=False)])
        model.layers[1].weight = layer.weight
        return model

    first, second = build(), build()
    save_checkpoint(tmp_path / "c", first)
    assert list(read_arrays(tmp_path / "c")[0]) == ["model.layers.0.weight", "model.layers.0.bias"]
    load_checkpoint(tmp_path / "c", second)
    assert second.layers[0].weight is second.layers[1].weight
    np.testing.assert_array_equal(second.layers[1].weight.data, first.layers[0].weight.data)


# ---- the format ------------------------------------------------------------------------------------------------------

ARRAYS = {
    "single": np.array([[1.5, -2.0], [np.inf, np.nan]], np.float32),
    "double": np.array(np.pi),
    "half": np.array([0.5], np.float16),
    "integers": np.array([[[-(2**62), 7]]]),
    "booleans": np.array([True, False, True]),
    "empty": np.zeros((0, 3), np.float32),
    "back to front": np.arange(6.0)[::-2],
    "Füße": np.arange(6.0).reshape(2, 3).T,
}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_the_safetensors_library_reads_our_files(tmp_path):
    write_arrays(tmp_path / "c", ARRAYS, {"note": "text"})
    assert_same(safetensors.numpy.load_file(tmp_path / "c"), ARRAYS)
    with safetensors.safe_open(tmp_path / "c", "numpy") as file:
        assert file.metadata() == {"note": "text"}


def test_we_read_the_files_of_the_safetensors_library(tmp_path):
    contiguous = {name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}
    contiguous["double"] = ARRAYS["double"]  # ascontiguousarray makes one axis of none
    safetensors.numpy.save_file(contiguous, tmp_path / "c", {"note": "text"})
    arrays, notes = read_arrays(tmp_path / "c")
    assert_same(arrays, ARRAYS)
    assert notes == {"note": "text"}
    safetensors.numpy.save_file({}, tmp_path / "none")
    assert read_arrays(tmp_path / "none") == ({}, {})


def test_numbers_start_at_a_multiple_of_eight_bytes(tmp_path):
    for length in range(8):
        write_arrays(tmp_path / "c", {"x" * (length + 1): np.ones(1)}, {})
        assert int.from_bytes((tmp_path / "c").read_bytes()[:8], "little") % 8 == 0


def test_arrays_that_were_read_can_be_changed(tmp_path):
    write_arrays(tmp_path / "c", {"x": np.ones(2)}, {})
    array = read_arrays(tmp_path / "c")[0]["x"]
    array += 1
    np.testing.assert_array_equal(array, [2.0, 2.0])


# ---- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file_and_no_other(where, error, saved, monkeypatch):
    path, run, _ = saved
    before = path.read_bytes()
    run.steps(1)

    def interrupted(*_):
        raise error

    monkeypatch.setattr(os, where, interrupted)
    with pytest.raises(type(error)):
        save_checkpoint(path, *run.parts)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_what_cannot_be_written_is_refused_before_a_file_is_made(saved):
    path, run, _ = saved
    before = path.read_bytes()
    with pytest.raises(TypeError, match="JSON"):
        save_checkpoint(path, run.model, metadata={"when": object()})
    with pytest.raises(TypeError, match="x is complex128: a checkpoint holds float64, float32"):
        write_arrays(path, {"x": np.ones(1, complex)}, {})
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


# ---- damaged and foreign files ---------------------------------------------------------------------------------------


def file_of(header, body=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + body


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


EIGHT = b"\0" * 8
DAMAGED = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "length beyond the file": file_of({}, length=3),
    "length beyond the limit": file_of({}, length=2**63),
    "text": b"this is a letter and no checkpoint",
    "a pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtins.",
    "a zip": b"PK\x03\x04" + b"\0" * 40,
    "no JSON": file_of(b"{]"),
    "no UTF-8": file_of(b'{"\xff": 1}'),
    "a list": file_of([1]),
    "a number": file_of(5),
    "deep nesting": file_of(b"[" * 100_000),
    "an entry that is a number": file_of({"x": 5}),
    "an entry without dtype": file_of({"x": {"shape": [2], "data_offsets": [0, 8]}}, EIGHT),
    "an entry without shape": file_of({"x": {"dtype": "F32", "data_offsets": [0, 8]}}, EIGHT),
    "an entry without place": file_of({"x": {"dtype": "F32", "shape": [2]}}, EIGHT),
    "an unknown dtype": file_of({"x": entry("BF16", (4,))}, EIGHT),
    "a dtype that is a list": file_of({"x": entry(["F32"])}, EIGHT),
    "objects": file_of({"x": entry("O", (1,))}, EIGHT),
    "three offsets": file_of({"x": entry(offsets=(0, 4, 8))}, EIGHT),
    "offsets of text": file_of({"x": entry(offsets="08")}, EIGHT),
    "offsets with fractions": file_of({"x": entry(offsets=(0.0, 8.0))}, EIGHT),
    "offsets below zero": file_of({"x": entry(offsets=(-8, 0))}, EIGHT),
    "offsets back to front": file_of({"x": entry(offsets=(8, 0))}, EIGHT),
    "offsets beyond the end": file_of({"x": entry(offsets=(4, 12))}, EIGHT),
    "a shape too small": file_of({"x": entry(shape=(1,))}, EIGHT),
    "a shape too large": file_of({"x": entry(shape=(3,))}, EIGHT),
    "a negative shape": file_of({"x": entry(shape=(-1, -2))}, EIGHT),
    "a shape with fractions": file_of({"x": entry(shape=(2.0,))}, EIGHT),
    "a shape of text": file_of({"x": entry(shape=("2",))}, EIGHT),
    "a shape beyond all memory": file_of({"x": entry(shape=(2**70, 0), offsets=(0, 0))}),
    "bytes too many": file_of({"x": entry()}, EIGHT + b"\0"),
    "no bytes for a header": file_of({"x": entry()}),
    "two arrays in one place and a gap": file_of({"x": entry(), "y": entry()}, EIGHT * 2),
    "a gap": file_of({"x": entry(), "y": entry(offsets=(12, 20))}, EIGHT * 2 + b"\0" * 4),
    "notes that are a list": file_of({"__metadata__": [1]}),
    "notes that are text": file_of({"__metadata__": "text"}),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused(name, tmp_path):
    path = tmp_path / "c"
    path.write_bytes(DAMAGED[name])
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_arrays(path)


def test_the_file_that_the_damaged_ones_are_made_from_is_read(tmp_path):
    (tmp_path / "c").write_bytes(file_of({"x": entry()}, EIGHT))
    np.testing.assert_array_equal(read_arrays(tmp_path / "c")[0]["x"], [0.0, 0.0])


def test_a_file_cut_anywhere_is_refused_and_changes_nothing(saved):
    path, _, other = saved
    content, before = path.read_bytes(), other.everything()
    for length in [*range(0, len(content), 41), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="run.safetensors".replace(".", r"\.")):
            load_checkpoint(path, *other.parts)
    assert other.everything() == before


def rewrite(path, change_arrays=None, change_notes=None):
    arrays, notes = read_arrays(path)
    if change_arrays:
        change_arrays(arrays)
    if change_notes:
        change_notes(notes)
    write_arrays(path, arrays, notes)


def pcg64(state=1, inc=3, half=0):
    return json.dumps(
        {"bit_generator": "PCG64", "state": {"state": state, "inc": inc}, "has_uint32": half, "uinteger": 0}
    )


FOREIGN = {
    "another part": (lambda a: a.update({"other.x": np.ones(1)}), None, "no checkpoint of save_checkpoint"),
    "a model name missing": (lambda a: a.pop("model.layers.0.bias"), None, r"missing \['layers\.0\.bias'\]"),
    "a model name unknown": (lambda a: a.update({"model.x": np.ones(1)}), None, r"unknown \['x'\]"),
    "a model shape": (lambda a: a.update({"model.layers.0.bias": np.ones(9)}), None, r"\(8,\).*\(9,\)"),
    "a model dtype": (lambda a: a.update({"model.layers.0.bias": np.ones(8, int)}), None, "int64"),
    "an optimizer shape": (lambda a: a.update({"optimizer.steps": np.ones(9, int)}), None, r"\(9,\).*\(4,\)"),
    "an optimizer name": (lambda a: a.pop("optimizer.steps"), None, "12 entries.*13"),
    "a learning rate": (lambda a: a.update({"optimizer.lr": np.array(-1.0)}), None, "learning rate"),
    "no optimizer": (lambda a: [a.pop(n) for n in list(a) if n[0] == "o"], None, "no optimizer state"),
    "no generator": (None, lambda n: n.pop("generator"), "no generator state"),
    "generator no JSON": (None, lambda n: n.update(generator="{"), "damaged notes"),
    "generator a list": (None, lambda n: n.update(generator="[]"), "dictionary was expected, got list"),
    "generator another": (None, lambda n: n.update(generator='{"bit_generator": "SFC64"}'), "SFC64.*PCG64"),
    "generator empty": (None, lambda n: n.update(generator='{"bit_generator": "PCG64"}'), "damaged generator state"),
    "generator even": (None, lambda n: n.update(generator=pcg64(inc=2)), "damaged generator state"),
    "generator beyond 128 bits": (None, lambda n: n.update(generator=pcg64(inc=2**128 + 1)), "damaged generator state"),
    "generator below zero": (None, lambda n: n.update(generator=pcg64(state=-1)), "damaged generator state"),
    "generator with a fraction": (None, lambda n: n.update(generator=pcg64(state=1.5)), "damaged generator state"),
    "generator with text": (None, lambda n: n.update(generator=pcg64(state="1")), "damaged generator state"),
    "generator half": (None, lambda n: n.update(generator=pcg64(half=7)), "damaged generator state"),
    "metadata no JSON": (None, lambda n: n.update(metadata="x"), "damaged notes"),
    "metadata a number": (None, lambda n: n.update(metadata="3"), "dictionary was expected, got int"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_does_not_fit_is_refused_and_changes_nothing(name, saved):
    path, _, other = saved
    change_arrays, change_notes, message = FOREIGN[name]
    rewrite(path, change_arrays, change_notes)
    before = other.everything()
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path, *other.parts)
    assert other.everything() == before


def test_the_state_of_another_optimizer_is_refused(saved):
    path, _, other = saved
    with pytest.raises(ValueError, match="SGDOptimizer has 1"):
        load_checkpoint(path, other.model, SGDOptimizer(other.model.parameters, 0.1))


def test_threads_that_save_to_one_path_leave_a_whole_file(tmp_path):
    path, errors = tmp_path / "model.safetensors", []

    def save():
        try:
            for _ in range(10):
                save_checkpoint(path, Linear(64, 64))
                load_checkpoint(path, Linear(64, 64))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and [each.name for each in tmp_path.iterdir()] == ["model.safetensors"]
