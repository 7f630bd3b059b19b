"""Configurations: what they give, and how mistakes in them are named."""

from dataclasses import asdict
from pathlib import Path

import pytest

from src.core import MuonOptimizer
from src.gpt import GPT
from src.gpt.saved import build_gpt
from src.gpt.settings import read_settings, settings_from
from src.gpt.training import _build_optimizer

MODELS = Path(__file__).parents[2] / "data" / "models"
GOOD = """
[text]
file = "text.txt"
[model]
context_size = 8
embedding_size = 16
blocks = 2
heads = 4
[training]
steps = 30
batch_size = 4
stride = 2
lr = 1
min_lr = 1e-4
warmup_steps = 5
weight_decay = 0.1
evaluate_every = 10
save_every = 5
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "c.toml").write_text(text, encoding="utf-8")
        return read_settings(tmp_path / "c.toml")

    return read_text


def test_values_and_what_is_left_out(read):
    settings = read(GOOD)
    assert settings.text.file == "text.txt" and settings.text.split == 0.9
    assert settings.model.heads == 4 and settings.model.tied and settings.model.dropout == 0.0
    assert settings.training.lr == 1.0 and type(settings.training.lr) is float
    assert settings.training.betas == [0.9, 0.99] and settings.training.optimizer == "adamw"


def test_what_a_record_holds_is_read_back(read):
    settings = read(GOOD)
    assert settings_from(asdict(settings)) == settings


def test_changes_of_the_command_line(read):
    settings = read(GOOD)
    assert settings.changed(steps=None, seed=None) == settings
    changed = settings.changed(steps=7, seed=3)
    assert (changed.training.steps, changed.training.seed, changed.training.lr) == (7, 3, 1.0)
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        settings.changed(steps=0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("blocks = 2", "bloks = 2", r"\[model\] has no bloks, did you mean blocks\? It has context_size, "),
        ("blocks = 2", "", r"\[model\] needs a line blocks = \.\.\., a whole number such as 4"),
        ("blocks = 2", "blocks = 2.0", r"blocks in \[model\] must be a whole number such as 4, got 2\.0"),
        ("blocks = 2", "blocks = true", r"blocks in \[model\] must be a whole number .* got True"),
        ("blocks = 2", 'blocks = "2"', r"blocks in \[model\] must be a whole number .* got '2'"),
        ("min_lr = 1e-4", 'min_lr = "1e-4"', r"min_lr in \[training\] must be a number such as 0\.1, got '1e-4'"),
        ("heads = 4", "heads = 4\ntied = 1", r"tied in \[model\] must be true or false, got 1"),
        ("heads = 4", 'heads = 4\npositions = "rotory"', r"positions is one of 'learned', 'rotary', got 'rotory'"),
        ('file = "text.txt"', "file = 3", r"file in \[text\] must be a text in quotes, got 3"),
        ("lr = 1\n", "lr = 1\nbetas = 0.9\n", r"betas in \[training\] must be a list of two numbers .* got 0\.9"),
        ("lr = 1\n", 'lr = 1\nbetas = ["a"]\n', r"betas in \[training\] must be a list of two numbers"),
        ("lr = 1\n", "lr = 1\nbetas = [0.9]\n", r"betas in \[training\] must be a list of two numbers"),
        ("lr = 1\n", 'lr = 1\noptimizer = "adam"\n', r"optimizer is one of 'adamw'.*, got 'adam'"),
        ("lr = 1\n", 'lr = 1\nschedule = "step"\n', r"schedule is one of 'cosine'.*, got 'step'"),
        ("[model]", 'tokenizer = "words"\n[model]', "tokenizer is one of 'characters', 'byte pairs', got 'words'"),
        ("[model]", "vocab_size = 300\n[model]", 'vocab_size = 300 with tokenizer = "characters"'),
        ("[model]", 'tokenizer = "byte pairs"\n[model]', 'vocab_size = 0 with tokenizer = "byte pairs"'),
        ("[model]", "[modle]", r"there is no table \[modle\], did you mean \[model\]\? There are \[text\], \[model\]"),
        ("[training]", "", r"\[model\] has no steps.*in TOML a line belongs to the table above it"),
        ("[text]", "[[text]]", r"the table \[text\] is missing: begin it with a line \[text\]"),
        ("steps = 30", "steps = 0", "steps must be at least 1, got 0"),
        ("save_every = 5", "save_every = 0", "save_every must be at least 1, got 0"),
        ("evaluate_every = 10", "evaluate_every = -1", "evaluate_every must be at least 1, got -1"),
        ("lr = 1\n", "lr = \n", "not in the form of TOML"),
    ],
)
def test_mistakes_are_named_with_the_file_and_the_fix(old, new, message, read):
    assert old in GOOD
    with pytest.raises(ValueError, match=rf"c\.toml.*{message}"):
        read(GOOD.replace(old, new, 1))


def test_a_file_of_bytes_is_no_configuration(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\xff\x00\x80")
    with pytest.raises(ValueError, match=r"model\.safetensors is not in the form of TOML"):
        read_settings(tmp_path / "model.safetensors")


def test_nano_is_the_published_configuration():
    """karpathy/nanoGPT, README.md, the training on a CPU; of the sizes in its config the ones that it overrides."""
    settings = read_settings(MODELS / "nano.toml")
    model, training = settings.model, settings.training
    assert (model.blocks, model.heads, model.embedding_size, model.context_size) == (4, 4, 128, 64)
    assert (model.dropout, model.tied, settings.text.split) == (0.0, True, 0.9)
    assert (training.batch_size, training.steps, training.stride) == (12, 2000, 1)
    assert (training.optimizer, training.lr, training.min_lr, training.warmup_steps) == ("adamw", 1e-3, 1e-4, 100)
    assert (training.betas, training.weight_decay) == ([0.9, 0.99], 0.1)


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_configuration_can_be_read_and_built(path):
    settings = read_settings(path)
    model = build_gpt({"vocab_size": 65} | asdict(settings.model))
    optimizer = _build_optimizer(settings.training, model)
    assert f"python -m src.gpt train data/models/{path.name}" in path.read_text(encoding="utf-8")
    assert isinstance(optimizer, MuonOptimizer) == (settings.training.optimizer == "muon")


def test_momentum_reaches_muon(read):
    training = read(GOOD + 'optimizer = "muon"\nmomentum = 0.8\n').training
    optimizer = _build_optimizer(training, GPT(vocab_size=5, context_size=8, embedding_size=16, blocks=2, heads=4))
    assert optimizer.momentum == 0.8 and optimizer.lr == 1.0
