"""The language model on the command line: `python -m src.gpt train CONFIG`, `sample` and `calibrate`."""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import sys
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ..core.checkpoint import read_arrays
from .calibration import divide_logits, fit_temperature
from .data import read_utf8
from .model import GPT
from .saved import SHIPPED, load_model, load_notes, save_model
from .settings import read_settings
from .streaming import stream, stream_text
from .tokenizer import CharTokenizer, Tokenizer
from .training import Run, stop_on_interrupt, train

STOPPED = 130  # what a shell expects of a program that Ctrl-C ended
TRAIN = """Train a GPT on a text as a configuration file says.

  python -m src.course corpus shakespeare        fetches the text, once
  python -m src.gpt train data/models/nano.toml  trains, in work/nano

Ctrl-C stops after the step at hand and saves. The same command goes on from
the last checkpoint, also after the computer was switched off, and ends with
the same bytes as if nothing had happened. To train anew, name another folder
with --out."""
SAMPLE = """Let a trained GPT continue a text.

  python -m src.gpt sample --prompt "ROMEO:"
  python -m src.gpt sample work/nano/model.safetensors --temperature 0.5

Scores for the next token become chances. --temperature below 1 favours likely
tokens, above 1 unlikely ones; 0 always takes the most likely. --top-k and
--top-p leave out the unlikely ones altogether."""

CALIBRATE = """Fit one number, a temperature, to a text that the model was not trained on,
and write the model with all its logits divided by it.

  python -m src.gpt calibrate work/nano/model.safetensors \\
      --text data/cache/hamlet.txt --out work/nano/calibrated.safetensors

A model that knows its own text well is surer than it should be on others. The
order of the tokens stays. A text that shall test the model afterwards must not
be used here either."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0 if all is well, 1 after an error, 130 if it was stopped by Ctrl-C."""
    options = _parser().parse_args(arguments)
    options.words = sys.argv[1:] if arguments is None else arguments
    try:
        threadpool_limits(1, user_api="blas")  # small products; the engine has threads of its own
        return options.run(options)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return STOPPED
    except (ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m src.gpt", description="Train the course's GPT, and let it write.")
    commands = parser.add_subparsers(required=True, metavar="{train,sample,calibrate}")
    form = argparse.RawDescriptionHelpFormatter

    command = commands.add_parser("train", help="train a GPT on a text", description=TRAIN, formatter_class=form)
    command.set_defaults(run=_train)
    command.add_argument("config", type=Path, metavar="CONFIG", help="a file such as data/models/nano.toml")
    command.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where the files go (default: work/, then the name of CONFIG)"
    )
    command.add_argument("--text", type=Path, metavar="FILE", help="train on this text instead of that in CONFIG")
    command.add_argument("--steps", type=int, metavar="N", help="train for N steps instead of those in CONFIG")
    command.add_argument("--seed", type=int, metavar="N", help="other first weights and another order of the text")

    command = commands.add_parser(
        "calibrate", help="make a trained GPT as sure as it may be", description=CALIBRATE, formatter_class=form
    )
    command.set_defaults(run=_calibrate)
    command.add_argument("model", type=Path, metavar="MODEL", help="a model.safetensors that train wrote")
    command.add_argument("--text", type=Path, required=True, metavar="FILE", help="a text that it was not trained on")
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the changed model goes")

    command = commands.add_parser("sample", help="let a trained GPT write", description=SAMPLE, formatter_class=form)
    command.set_defaults(run=_sample)
    command.add_argument(
        "model",
        type=Path,
        nargs="?",
        default=SHIPPED,
        metavar="MODEL",
        help="a model.safetensors that train wrote (default: the course's own, trained on Shakespeare)",
    )
    command.add_argument(
        "--prompt", default="\n", metavar="TEXT", help="the text to continue (default: the start of a line)"
    )
    command.add_argument(
        "--length",
        type=int,
        default=500,
        metavar="N",
        help="tokens to add (default: 500); one is a character, or a piece of a word in a model of byte pairs",
    )
    command.add_argument("--temperature", type=float, default=0.8, metavar="T", help="0 or more (default: 0.8)")
    command.add_argument("--top-k", type=int, metavar="K", help="choose among the K most likely tokens")
    command.add_argument(
        "--top-p",
        type=float,
        metavar="P",
        help="choose among the likeliest tokens that together reach the chance P, above 0 and at most 1",
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another number gives another text (default: 0)"
    )
    return parser


def _train(options: argparse.Namespace) -> int:
    _check_file(options.config, "a configuration", "data/models/nano.toml is one")
    settings = read_settings(options.config).changed(steps=options.steps, seed=options.seed)
    text = options.text or options.config.parent / settings.text.file
    fetch = f"`python -m src.course corpus {text.stem}` fetches it, if it is a text of the course"
    seen = "" if options.text else f"; `file` is seen from the folder of {options.config.name}"
    _check_file(text.resolve(), "a text", f"{fetch}{seen}; --text names another place")
    folder = options.out or Path("work") / options.config.stem
    run = Run(settings, text, folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            return _train_in(run, options.words)
    except Timeout:
        raise RuntimeError(f"another process is training in {folder}: wait for it, or choose another --out") from None


def _train_in(run: Run, words: list[str]) -> int:
    """Go on with the run or begin it, and write to its folder, which nobody else does meanwhile."""
    again = run.resume()
    about, total = run.about, run.settings.training.steps
    characters = f"{about['text_characters']:,} characters"
    _report(f"{about['parameters']:,} weights, {about['vocab_size']} tokens, a text of {characters}")
    _report(f"{'going on from' if again else 'beginning at'} step {run.steps} of {total}, in {run.folder}")
    with stop_on_interrupt() as asked, _progress(total, run.steps) as bar:
        done = train(run, asked, _report, bar)
    if not done:
        print(f"saved at step {run.steps} of {total}. To go on:\n  python -m src.gpt {shlex.join(words)}")
        return STOPPED
    path = run.finish()
    print(f"\n{run.sample().strip()}\n\n{path} is written. For more of this:\n  python -m src.gpt sample {path}")
    return 0


def _progress(total: int, taken: int) -> tqdm:
    """A bar on the terminal, nothing elsewhere: there the lines of `_report` have to do."""
    return tqdm(total=total, initial=taken, unit="step", dynamic_ncols=True, disable=not sys.stderr.isatty())


def _report(line: str) -> None:
    try:
        tqdm.write(line)  # above the bar, if there is one
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`; that is no reason to lose the run
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sample(options: argparse.Namespace) -> int:
    model, tokenizer = _load(options.model)
    prompt = _encode(tokenizer, options.prompt)
    choice = (options.temperature, options.top_k, options.top_p)
    tokens = stream(model, prompt, options.length, *choice, generator=_generator(options.seed))
    print(options.prompt, end="")
    for piece in stream_text(tokenizer, tokens):
        print(piece, end="", flush=True)
    print()
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    (model, tokenizer), notes = _load(options.model), load_notes(options.model)
    _check_file(options.text, "a text", "`python -m src.course corpus hamlet` fetches one and prints its path")
    content = read_utf8(options.text)
    if hashlib.sha256(content.encode()).hexdigest() == notes.get("text_sha256"):
        raise ValueError(f"{options.text} is the text that the model was trained on: take one that it has not seen")
    temperature, before, after = fit_temperature(model, tokenizer.encode(content))
    divide_logits(model, temperature)
    earlier = notes.get("calibration", {}).get("temperature", 1.0)
    facts = {"text": options.text.name, "temperature": temperature * earlier, "loss": before, "calibrated_loss": after}
    half = all(array.dtype == np.float16 for array in read_arrays(options.model)[0].values())
    save_model(options.out, model, tokenizer, notes | {"calibration": facts}, half)
    print(f"temperature {temperature:.3f}: loss on {options.text.name} {before:.4f} before, {after:.4f} after")
    print(f"{options.out} is written: the same model with its logits divided by that temperature")
    return 0


def _load(path: Path) -> tuple[GPT, Tokenizer]:
    _check_file(path, "a model", "`python -m src.gpt train data/models/nano.toml` makes one")
    return load_model(path)


def _encode(tokenizer: Tokenizer, prompt: str) -> list[int]:
    try:
        return tokenizer.encode(prompt)
    except ValueError as error:
        known = f": {''.join(tokenizer.vocab)!r}" if isinstance(tokenizer, CharTokenizer) else ""
        raise ValueError(f"the model cannot read this prompt: {error}{known}") from None


def _generator(number: int) -> np.random.Generator:
    if number < 0:
        raise ValueError(f"a seed is zero or a positive number, got {number}")
    return np.random.default_rng(number)


def _check_file(path: Path, kind: str, fix: str) -> None:
    if not path.is_file():
        raise ValueError(f"{path} is no file, {kind} was expected: {fix}")


if __name__ == "__main__":
    sys.exit(main())
