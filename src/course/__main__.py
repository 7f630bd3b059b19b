"""The course on the command line: `python -m src.course open 5`."""

import argparse
import sys
from pathlib import Path

from src.course.progress import ROOT


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0 if all is well, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m src.course", description="Work with the course's notebooks.")
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("open", help="copy a chapter into work/ and open it in JupyterLab")
    command.add_argument("chapter", help="its number, such as 5; a card: warmup3; a page beside chapter 10: deeper10")
    command.add_argument("--copy-only", action="store_true", help="do not start JupyterLab")

    command = commands.add_parser("reset", help="replace a working copy by a fresh one; yours is kept")
    command.add_argument("chapter", help="its number, such as 5; a card: warmup3; a page beside chapter 10: deeper10")
    command.add_argument("--yes", action="store_true", help="do not ask")

    commands.add_parser("doctor", help="look for what is amiss in this environment, and say how to mend it")

    command = commands.add_parser("refresh", help="execute a chapter anew and store its outputs in normal form")
    command.add_argument("chapter", nargs="*", help="numbers or paths of notebooks")
    command.add_argument("--all", action="store_true", help="all chapters")

    command = commands.add_parser("edition", help="copy the book's sources without solutions, for classes")
    command.add_argument("folder", type=Path, help="a new folder")

    command = commands.add_parser("runs", help="train what is missing of a chapter's stored runs (may take an hour)")
    command.add_argument("chapter", type=int, help="its number, such as 5")

    command = commands.add_parser("corpus", help="fetch a text if it is not here yet, and print where it is")
    command.add_argument("name", help="shakespeare, shakespeare-complete, hamlet or tinyshakespeare")
    command.add_argument("--source", type=Path, metavar="FILE", help="without network: take it from this file")

    options = parser.parse_args(arguments)
    run = {
        "open": _open,
        "reset": _reset,
        "doctor": _doctor,
        "refresh": _refresh,
        "edition": _edition,
        "runs": _runs,
        "corpus": _corpus,
    }
    try:
        return run[options.command](options)
    except (ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _open(options: argparse.Namespace) -> int:
    from src.course.notebooks import open_copy, start_jupyter

    copy, is_new = open_copy(options.chapter)
    print(f"work/{copy.name} is {'new' if is_new else 'the copy you have'}.")
    return 0 if options.copy_only else start_jupyter(copy)


def _reset(options: argparse.Namespace) -> int:
    from src.course.notebooks import reset_copy

    try:
        backup = reset_copy(options.chapter, ask=(lambda question: "y") if options.yes else input)
    except EOFError:  # nobody is there to answer
        backup = None
    print(f"A fresh copy is in work/. Yours is work/backup/{backup.name}." if backup else "Nothing was replaced.")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from src.course.doctor import examine

    findings = examine()
    print("\n".join(str(finding) for finding in findings))
    return int(any(finding.fatal for finding in findings))


def _refresh(options: argparse.Namespace) -> int:
    from src.course.notebooks import find_chapter
    from src.course.refresh import refresh

    if options.all == bool(options.chapter):
        raise ValueError("name the chapters to refresh, or say --all")
    named = [Path(each) if each.endswith(".ipynb") else find_chapter(each) for each in options.chapter]
    for path in named or sorted((ROOT / "chapters").rglob("[0-9]*.ipynb")):
        remarks = refresh(path)
        print("\n".join([f"{path.name}: executed and stored", *remarks]))
    return 0


def _edition(options: argparse.Namespace) -> int:
    from src.course.edition import make_edition

    cut = make_edition(options.folder)
    print(f"{options.folder}: solutions cut from {', '.join(page.name for page in cut) or 'no page'}")
    return 0


def _runs(options: argparse.Namespace) -> int:
    from src.course.runs import make_runs

    make_runs(options.chapter)
    return 0


def _corpus(options: argparse.Namespace) -> int:
    from src.course.corpora import corpus_path

    print(corpus_path(options.name, options.source))
    return 0


if __name__ == "__main__":
    sys.exit(main())
