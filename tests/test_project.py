"""What is said in several files is said alike, and what the docstrings show is true."""

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import src

PROJECT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = sorted(module.name for module in pkgutil.walk_packages(src.__path__, "src."))


def read_yaml(name: str) -> dict:
    return yaml.safe_load((PROJECT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_package_is_installed() -> None:
    packages = ["src", *(module.name for module in pkgutil.walk_packages(src.__path__, "src.") if module.ispkg)]
    assert sorted(SETTINGS["tool"]["setuptools"]["packages"]) == sorted(packages)


def test_the_version_is_the_same_everywhere() -> None:
    book = read_yaml("_config.yml")["sphinx"]["config"]["version"]
    assert SETTINGS["project"]["version"] == book == read_yaml("CITATION.cff")["version"]


def test_every_requirement_is_pinned_and_every_dependency_is_required() -> None:
    text = (PROJECT / "requirements.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pinned = [line for line in lines if line != "-e ."]
    assert "-e ." in lines
    assert all(re.fullmatch(r"[a-z0-9._-]+==[\w.]+( ; \w+ [<!=]=? \"[\w.]+\")?", line) for line in pinned)
    names = {line.partition("==")[0] for line in pinned}
    assert len(names) == len(pinned)
    assert set(SETTINGS["project"]["dependencies"]) <= names
