"""`python -m src.gpt`: a run that is killed or interrupted ends with the same bytes; sampling; errors that help."""

import hashlib
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from src.core import AdamWOptimizer, MuonOptimizer, Tensor, WarmupCosineScheduler, WarmupLinearScheduler
from src.gpt import BytePairTokenizer, CharTokenizer, GPTAttention, GPTLoss, RotaryAttention, generate
from src.gpt.__main__ import main
from src.gpt.saved import load_model, load_notes
from src.gpt.settings import read_settings
from src.gpt.training import Run

PROJECT = Path(__file__).parents[2]
WORDS = "the cat sat on the mat and the dog sat on the log with a frog in a bog. who knows?\n"
TEXT = "".join(WORDS[i % 7 :] for i in range(60))
CONFIG = """
[text]
file = "text.txt"
[model]
context_size = 8
embedding_size = 16
blocks = 1
heads = 2
dropout = 0.1
[training]
steps = 40
batch_size = 4
stride = 3
lr = 0.01
min_lr = 0.001
warmup_steps = 4
weight_decay = 0.1
evaluate_every = 15
save_every = 10
"""
FILES = ("model.safetensors", "log.json", "checkpoint.safetensors")


@pytest.fixture
def config(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return write_config(tmp_path)


def write_config(folder, name="small", **changes):
    """A configuration with some of its lines changed or added in the last table."""
    text = CONFIG
    for key, value in changes.items():
        text, found = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
        text += "" if found else f"{key} = {value}\n"
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def use_byte_pairs(config):
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("[model]", 'tokenizer = "byte pairs"\nvocab_size = 280\n[model]'), encoding="utf-8")


def run(*arguments):
    """The command in this process: what it returned."""
    return main(["train", *map(str, arguments)])


def start(*arguments):
    """The command in a process of its own, from the folder of the project."""
    command = [sys.executable, "-m", "src.gpt", *map(str, arguments)]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def wait_for(path, process):
    """Return as soon as the file is there; the process must still be at work."""
    end = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


def read_log(folder):
    return json.loads((folder / "log.json").read_text(encoding="utf-8"))


# Training


def test_what_a_run_writes(config, tmp_path, capsys):
    assert run(config, "--out", tmp_path / "a") == 0
    log = read_log(tmp_path / "a")
    assert [row["step"] for row in log["log"]] == [0, 15, 30, 40]
    first, *_, last = log["log"]
    assert first["training_loss"] is None and first["test_loss"] == pytest.approx(math.log(log["vocab_size"]), abs=0.1)
    assert last["test_loss"] < first["test_loss"] and last["training_loss"] < log["log"][1]["training_loss"]
    assert log["settings"]["model"]["heads"] == 2 and log["settings"]["text"]["file"] == "text.txt"
    assert log["text_sha256"] == hashlib.sha256(TEXT.encode()).hexdigest() and log["text_characters"] == len(TEXT)
    model, tokenizer = load_model(tmp_path / "a" / "model.safetensors")
    assert log["parameters"] == sum(tensor.data.size for tensor in model.parameters)
    assert tokenizer.vocab == sorted(set(TEXT))
    notes = load_notes(tmp_path / "a" / "model.safetensors")
    assert notes == {name: value for name, value in log.items() if name != "log"} | last
    printed = capsys.readouterr()
    assert [line[:13] for line in printed.out.splitlines()[2:6]] == [f"step {n:>2} of 40" for n in (0, 15, 30, 40)]
    assert printed.err == ""  # no bar where there is no terminal


def test_the_test_loss_is_that_of_the_last_tenth_each_character_once(config, tmp_path):
    run(write_config(tmp_path, "sevens", batch_size=7), "--out", tmp_path / "a")
    model, tokenizer = load_model(tmp_path / "a" / "model.safetensors")
    part = np.array(tokenizer.encode(TEXT[int(len(TEXT) * 0.9) :]))
    count = (len(part) - 1) // 8
    assert count % 7  # the last batch is not full, and counts
    x, y = part[: count * 8].reshape(count, 8), part[1 : count * 8 + 1].reshape(count, 8)
    with Tensor.no_grad():
        loss = GPTLoss()(model(Tensor(x)), Tensor(y)).item()
    assert read_log(tmp_path / "a")["log"][-1]["test_loss"] == pytest.approx(loss, rel=1e-5)


def take_steps(run, count):
    for _ in range(count):
        run.step()
    return run


@pytest.mark.parametrize(("name", "value"), [("optimizer", "muon"), ("schedule", "linear")])
def test_optimizer_and_schedule_are_those_of_the_configuration(name, value, config, tmp_path):
    settings = read_settings(write_config(tmp_path, "chosen", **{name: f'"{value}"'}))
    plain, chosen = (
        take_steps(Run(each, tmp_path / "text.txt", tmp_path / "a"), 7) for each in (read_settings(config), settings)
    )
    kinds = {"muon": MuonOptimizer, "adamw": AdamWOptimizer, "linear": WarmupLinearScheduler}
    assert type(chosen.trainer.optimizer) is kinds[settings.training.optimizer]
    assert type(chosen.scheduler) is kinds.get(settings.training.schedule, WarmupCosineScheduler)
    assert chosen.trainer.optimizer.weight_decay == 0.1 and chosen.scheduler.min_lr == 0.001
    assert chosen.trainer.optimizer.lr == chosen.scheduler.step(6)
    assert chosen.losses[0] == plain.losses[0] and chosen.losses[-1] != plain.losses[-1]


def test_a_row_of_the_log_is_about_the_steps_since_the_row_before(config, tmp_path):
    begun = Run(read_settings(config), tmp_path / "text.txt", tmp_path / "a")
    for count in (2, 3):
        losses = [begun.step() for _ in range(count)]
        assert begun.evaluate()["training_loss"] == pytest.approx(np.mean(losses), rel=1e-12)
    assert begun.sample(20) == begun.sample(20)


def test_merges_are_learned_on_the_training_part_alone(config, tmp_path):
    use_byte_pairs(config)
    (tmp_path / "text.txt").write_text(TEXT + "zx" * 100, encoding="utf-8")
    content = (TEXT + "zx" * 100)[: int((len(TEXT) + 200) * 0.9)]
    begun = Run(read_settings(config), tmp_path / "text.txt", tmp_path / "a")
    assert begun.tokenizer.merges == BytePairTokenizer.train(content, 280).merges
    assert begun.tokenizer.merges != BytePairTokenizer.train(TEXT + "zx" * 100, 280).merges


def test_the_same_command_gives_the_same_bytes_and_another_seed_others(config, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "text.txt"  # paths are not part of what is written
    elsewhere.parent.mkdir()
    elsewhere.write_text(TEXT, encoding="utf-8")
    for folder, options in {"a": [], "b": ["--text", elsewhere], "c": ["--seed", 2]}.items():
        assert run(config, "--out", tmp_path / folder, *options) == 0
    for name in FILES:
        a, b, c = ((tmp_path / folder / name).read_bytes() for folder in "abc")
        assert a == b != c


def test_positions_of_the_configuration_are_those_of_the_model(config, tmp_path):
    text = config.read_text(encoding="utf-8")
    assert run(config, "--out", tmp_path / "learned", "--steps", 5) == 0
    config.write_text(text.replace("heads = 2", 'heads = 2\npositions = "rotary"'), encoding="utf-8")
    assert run(config, "--out", tmp_path / "rotary", "--steps", 5) == 0
    kinds = [load_model(tmp_path / name / "model.safetensors")[0].blocks[0].attention for name in ("learned", "rotary")]
    assert [type(kind) for kind in kinds] == [GPTAttention, RotaryAttention]
    assert main(["sample", str(tmp_path / "rotary" / "model.safetensors"), "--length", "20"]) == 0


def test_a_run_of_version_0_2_goes_on_to_the_same_bytes(config, tmp_path):
    """That version wrote nothing of positions into a checkpoint's notes."""
    assert run(config, "--out", tmp_path / "whole") == 0
    settings = read_settings(config)
    begun = Run(settings, tmp_path / "text.txt", tmp_path / "begun")
    begun.evaluate()
    for _ in range(10):
        begun.step()
    assert begun.about["settings"]["model"].pop("positions") == "learned"
    begun.save()
    assert run(config, "--out", tmp_path / "begun") == 0
    for name in FILES:
        assert (tmp_path / "begun" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("kind", ["characters and AdamW", "byte pairs and Muon"])
def test_a_run_killed_in_the_middle_ends_with_the_same_bytes(kind, config, tmp_path):
    """SIGKILL, more than once, wherever the process happens to be after a checkpoint, in an epoch or at its end."""
    config = write_config(tmp_path, "long", steps=500, evaluate_every=70)
    if kind == "byte pairs and Muon":
        config = write_config(tmp_path, "long", steps=500, evaluate_every=70, optimizer='"muon"', schedule='"linear"')
        use_byte_pairs(config)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(config, "--out", whole) == 0
    steps = []
    for _ in range(3):
        process = start("train", config, "--out", killed)
        if steps:
            assert f"going on from step {steps[-1]} " in process.stdout.readline() + process.stdout.readline()
        before = (killed / "checkpoint.safetensors").stat().st_mtime_ns if steps else 0
        wait_for(killed / "checkpoint.safetensors", process)
        while (killed / "checkpoint.safetensors").stat().st_mtime_ns == before:
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()
        process.communicate()
        assert process.returncode == (1 if os.name == "nt" else -signal.SIGKILL)
        assert not (killed / "model.safetensors").exists()
        steps.append(read_run(killed)["steps"])
    assert 0 < steps[0] < steps[1] < steps[2] < 500
    assert read_run(whole)["position"] < 500  # more than one epoch, so the order was drawn again
    assert run(config, "--out", killed) == 0
    for name in FILES:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


def read_run(folder):
    """How far the run in a checkpoint is, read without the engine."""
    content = (folder / "checkpoint.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"]["metadata"])["run"]


@pytest.mark.skipif(os.name == "nt", reason="on Windows one process cannot send Ctrl-C to another alone")
def test_ctrl_c_saves_says_how_to_go_on_and_the_run_ends_with_the_same_bytes(config, tmp_path):
    config = write_config(tmp_path, "long", steps=3000, save_every=5000)  # nothing is saved but by the interrupt
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(config, "--out", whole) == 0
    process = start("train", config, "--out", stopped)
    for line in process.stdout:
        if line.startswith("step   15 of 3000"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "stopping after this step" in err and "Traceback" not in err
    found = re.search(r"saved at step (\d+) of 3000\. To go on:\n  python -m src\.gpt (.*)\n", out)
    assert found is not None, out
    assert 15 <= int(found[1]) == read_run(stopped)["steps"] < 3000
    assert not (stopped / "model.safetensors").exists()
    assert main(shlex.split(found[2])) == 0
    for name in FILES:
        assert (stopped / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.skipif(os.name == "nt", reason="on Windows one process cannot send Ctrl-C to another alone")
def test_a_second_ctrl_c_stops_at_once(config, tmp_path, monkeypatch, capsys):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("still here")

    monkeypatch.setattr("src.gpt.model.GPT.forward", forward)
    assert run(config, "--out", tmp_path / "a") == 130
    assert "Ctrl-C again stops at once" in capsys.readouterr().err
    assert not (tmp_path / "a" / "checkpoint.safetensors").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_finished_run_is_not_trained_again(config, tmp_path, capsys):
    run(config, "--out", tmp_path / "a")
    before = {name: (tmp_path / "a" / name).read_bytes() for name in FILES}
    (tmp_path / "a" / "model.safetensors").unlink()
    capsys.readouterr()
    assert run(config, "--out", tmp_path / "a") == 0
    assert "going on from step 40 of 40" in capsys.readouterr().out
    assert {name: (tmp_path / "a" / name).read_bytes() for name in FILES} == before


def test_a_run_does_not_go_on_with_other_settings_or_another_text(config, tmp_path, capsys):
    run(config, "--out", tmp_path / "a", "--steps", 5)
    before = {name: (tmp_path / "a" / name).read_bytes() for name in FILES}
    (tmp_path / "other.txt").write_text(TEXT.replace("bog", "gob"), encoding="utf-8")
    for arguments, message in (
        (["--steps", 6], "steps in [training] was 5, is 6"),
        (["--steps", 5, "--seed", 9], "seed in [training] was 1, is 9"),
        (["--steps", 5, "--text", tmp_path / "other.txt"], "text_sha256 was '"),
    ):
        assert run(config, "--out", tmp_path / "a", *arguments) == 1
        error = capsys.readouterr().err
        assert message in error and "choose another --out, or delete" in error
    assert {name: (tmp_path / "a" / name).read_bytes() for name in FILES} == before


def test_a_damaged_checkpoint_is_refused_and_left_as_it_is(config, tmp_path, capsys):
    run(config, "--out", tmp_path / "a", "--steps", 5)
    path = tmp_path / "a" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    assert run(config, "--out", tmp_path / "a", "--steps", 5) == 1
    error = capsys.readouterr().err
    assert "damaged" in error and "choose another --out, or delete" in error
    (tmp_path / "a" / "model.safetensors").replace(path)
    assert run(config, "--out", tmp_path / "a", "--steps", 5) == 1
    assert "checkpoint" in capsys.readouterr().err


def test_two_processes_do_not_train_in_one_folder(config, tmp_path, capsys):
    process = start("train", config, "--out", tmp_path / "a", "--steps", 100_000)
    try:
        wait_for(tmp_path / "a" / "checkpoint.safetensors", process)
        assert run(config, "--out", tmp_path / "a") == 1
        assert f"another process is training in {tmp_path / 'a'}" in capsys.readouterr().err
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, "3 heads cannot share 16 channels"),
        ({"warmup_steps": 40}, "the warm-up must be shorter than the run, got 40 of 40"),
        ({"min_lr": 0.1}, "0 <= min_lr <= lr"),
        ({"dropout": 1.5}, "dropout rate lies between 0 and 1, got 1.5"),
        ({"batch_size": 10_000}, "too few for one batch of 10000"),
        ({"context_size": 5000}, "use a longer text or a smaller context_size"),
        ({"stride": 0}, "stride must be at least 1, got 0"),
        ({"betas": "[0.9, 1.0]"}, "betas are two numbers"),
        ({"weight_decay": -1}, "weight_decay must be zero or a positive number"),
        ({"seed": -1}, "a seed is zero or a positive integer, got -1"),
        ({"blocks": '"x"'}, "blocks in [model] must be a whole number"),
    ],
    ids=str,
)
def test_impossible_values_are_refused_before_anything_is_written(changes, message, config, tmp_path, capsys):
    assert run(write_config(tmp_path, "wrong", **changes), "--out", tmp_path / "a") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_missing_files_are_named_with_the_way_to_get_them(config, tmp_path, capsys):
    assert run(tmp_path / "no.toml") == 1
    assert "no.toml is no file, a configuration was expected" in capsys.readouterr().err
    (tmp_path / "text.txt").unlink()
    assert run(config, "--out", tmp_path / "a") == 1
    error = capsys.readouterr().err
    assert f"{(tmp_path / 'text.txt').resolve()} is no file, a text was expected: `python -m src.course corpus" in error
    assert f"`file` is seen from the folder of {config.name}" in error
    assert run(config, "--text", tmp_path / "other.txt", "--out", tmp_path / "a") == 1
    error = capsys.readouterr().err
    assert "other.txt is no file" in error and "is seen from" not in error


def test_without_out_the_files_go_to_work(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(config, "--steps", 5) == 0
    assert (tmp_path / "work" / "small" / "model.safetensors").is_file()


# Sampling


@pytest.fixture(params=["characters", "byte pairs"])
def trained(request, config, tmp_path, capsys):
    if request.param == "byte pairs":
        use_byte_pairs(config)
    assert run(config, "--out", tmp_path / "a") == 0
    capsys.readouterr()
    return tmp_path / "a" / "model.safetensors"


def sample(*arguments):
    return main(["sample", *map(str, arguments)])


def test_a_text_is_that_of_generate(trained, capsys):
    model, tokenizer = load_model(trained)
    assert isinstance(tokenizer, CharTokenizer | BytePairTokenizer)
    assert sample(trained, "--prompt", "the ", "--length", 30, "--temperature", 0.7, "--top-k", 9, "--seed", 4) == 0
    generator = np.random.default_rng(4)
    tokens = generate(model, tokenizer.encode("the "), 30, temperature=0.7, top_k=9, generator=generator)
    assert capsys.readouterr().out == tokenizer.decode(tokens) + "\n"
    assert sample(trained, "--prompt", "the ", "--length", 30, "--top-p", 0.5) == 0
    tokens = generate(model, tokenizer.encode("the "), 30, 0.8, top_p=0.5, generator=np.random.default_rng(0))
    assert capsys.readouterr().out == tokenizer.decode(tokens) + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--temperature", -0.5], "temperature is zero (the best token) or a positive number, got -0.5"),
        (["--temperature", "nan"], "temperature is zero"),
        (["--top-k", 0], "top_k is an integer, how many tokens to keep, at least 1, got 0"),
        (["--top-p", 1.5], "top_p is above 0 and at most 1, got 1.5"),
        (["--length", -1], "steps must be zero or more, got -1"),
        (["--prompt", ""], "the prompt is empty"),
        (["--seed", -1], "a seed is zero or a positive number, got -1"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused_before_anything_is_printed(arguments, message, trained, capsys):
    assert sample(trained, *arguments) == 1
    printed = capsys.readouterr()
    assert message in printed.err and printed.out == ""


def test_an_unknown_character_is_named_with_those_that_are_known(trained, capsys):
    code = sample(trained, "--prompt", "the é")
    printed = capsys.readouterr()
    if isinstance(load_model(trained)[1], BytePairTokenizer):
        assert code == 0 and printed.out.startswith("the é")  # bytes can say everything
    else:
        assert code == 1 and printed.out == ""
        assert "cannot read this prompt: 'é' is not among" in printed.err
        assert repr("".join(sorted(set(TEXT)))) in printed.err


def test_a_missing_file_or_one_that_is_no_model(config, tmp_path, capsys):
    assert sample(tmp_path / "no.safetensors") == 1
    assert "no.safetensors is no file, a model was expected: `python -m src.gpt train" in capsys.readouterr().err
    assert sample(config) == 1
    assert "is no safetensors file" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no broken pipes of this kind")
def test_a_reader_that_has_seen_enough_ends_it_quietly(config, tmp_path):
    run(config, "--out", tmp_path / "a", "--steps", 5)
    process = start("sample", tmp_path / "a" / "model.safetensors", "--length", 100_000)
    assert len(process.stdout.read(20)) == 20  # long before the whole is there: it is streamed
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


# Help and README


@pytest.mark.parametrize("arguments", [[], ["train"], ["sample"]], ids=str)
def test_help_fits_a_terminal_and_names_every_option(arguments, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0 and max(map(len, text.splitlines())) < 80
    options = {"train": ["--out", "--text", "--steps"], "sample": ["--prompt", "--top-k", "--top-p", "--temperature"]}
    assert all(re.search(rf"^  {option} [A-Z]", text, re.MULTILINE) for option in options.get("".join(arguments), []))


def test_the_commands_in_the_readme_exist():
    commands = re.findall(
        r"^python -m src\.gpt (.*)$", (PROJECT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {command.split()[0] for command in commands} == {"train", "sample"}
    for command in commands:
        words = shlex.split(command)
        assert all((PROJECT / word).is_file() for word in words if word.startswith("data/"))
        with pytest.raises(SystemExit) as end:
            main([*words, "--help"])
        assert end.value.code == 0


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
def test_a_run_whose_lines_nobody_reads_is_not_lost(config, tmp_path):
    """As `python -m src.gpt train ... | head -1` does it."""
    process = start("train", config, "--out", tmp_path / "piped")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert (tmp_path / "piped" / "model.safetensors").exists()


def test_a_missing_text_of_the_course_names_the_command_that_fetches_it(config, tmp_path, capsys):
    assert run(config, "--text", tmp_path / "sub" / ".." / "tinyshakespeare.txt") == 1
    message = capsys.readouterr().err
    assert "src.course corpus tinyshakespeare" in message and ".." not in message
