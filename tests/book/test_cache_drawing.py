"""The drawing of the cache: its tiles are as many as the keys and scores that the engine computes."""

import json
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from src.core import Tensor
from src.gpt import GPTAttention
from src.gpt.cache import LayerCache

PROJECT = Path(__file__).parents[2]
PROGRAM = runpy.run_path(str(PROJECT / "assets" / "draw_cache.py"))
STORED = PROGRAM["DRAWING"].read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def new_tiles(group: str, what: str) -> int:
    """How many tiles of keys or scores of the row "with" or "without" are computed in their step."""
    (found,) = (each for each in ElementTree.fromstring(STORED).iter(f"{SVG}g") if each.get("class") == group)
    return sum(tile.get("class") == f"{what} new" for tile in found.iter(f"{SVG}rect"))


def computed(cached: bool) -> tuple[int, int]:
    """The keys and the scores of one head that the engine computes for the third, fourth and fifth token."""
    layer, x = GPTAttention(4), np.random.default_rng(0).standard_normal((1, 5, 4))
    layer.keep_weights, keys, scores = True, 0, 0
    cache = LayerCache(5)
    with Tensor.no_grad():
        layer(Tensor(x[:, :2]), cache)
        for length in PROGRAM["LENGTHS"]:
            given = x[:, length - 1 : length] if cached else x[:, :length]
            layer(Tensor(given), cache if cached else None)
            keys += given.shape[1]
            scores += layer.weights[0, 0].size
    return keys, scores


def test_the_stored_drawing_is_what_its_program_draws() -> None:
    assert PROGRAM["draw"]() == STORED, "run: python assets/draw_cache.py"


@pytest.mark.parametrize(("group", "cached"), [("without", False), ("with", True)])
def test_as_many_tiles_as_the_engine_computes(group: str, cached: bool) -> None:
    assert (new_tiles(group, "key"), new_tiles(group, "score")) == computed(cached)


def test_what_is_kept_is_a_key_of_an_earlier_token() -> None:
    assert [PROGRAM["tiles_of"](n, True)[0].count("kept") for n in (1, 3, 5)] == [0, 2, 4]
    assert "kept" not in str(PROGRAM["tiles_of"](5, False))
    assert "kept" not in str(PROGRAM["tiles_of"](5, True)[1])


def test_nothing_is_cut_off_and_nothing_is_loaded() -> None:
    root = ElementTree.fromstring(STORED)
    width, height = map(int, root.get("viewBox").split()[2:])
    tiles = [tile for tile in root.iter(f"{SVG}rect") if tile.get("x")]
    assert len(tiles) == 2 * (3 + 9 + 4 + 16 + 5 + 25) + 3
    assert all(int(tile.get("x")) + 20 < width and int(tile.get("y")) + 20 < height for tile in tiles)
    assert re.findall(r"https?:[^\"]*", STORED) == ["http://www.w3.org/2000/svg"]


def test_the_chapter_shows_it() -> None:
    (path,) = (PROJECT / "chapters").glob("11_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert re.search(r"!\[[^\]]{40,}\]\(\.\./assets/cache\.svg\)", text)
