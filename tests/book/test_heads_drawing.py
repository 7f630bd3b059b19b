"""The drawing of heads: its numbers are what the engine's attention makes of them, its colours tell the token."""

import json
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from src.core import Tensor
from src.gpt import GPTAttention

PROJECT = Path(__file__).parents[2]
PROGRAM = runpy.run_path(str(PROJECT / "assets" / "draw_heads.py"))
STORED = PROGRAM["DRAWING"].read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"
X = np.arange(24).reshape(4, 6)


def tables_in(drawing: str, kind: str) -> dict[str, np.ndarray]:
    """The numbers of each table of a kind by its name, read from left to right and from top to bottom."""
    found = {}
    for group in ElementTree.fromstring(drawing).iter(f"{SVG}g"):
        if group.get("class") != kind:
            continue
        name, *tiles = group.iter(f"{SVG}text")
        placed = sorted((int(tile.get("y")), int(tile.get("x")), int(tile.text)) for tile in tiles)
        rows = len({y for y, _, _ in placed})
        found[name.text] = np.array([number for _, _, number in placed]).reshape(rows, -1)
    return found


def test_the_stored_drawing_is_what_its_program_draws() -> None:
    assert PROGRAM["draw"](PROGRAM["tables_of"]()) == STORED, "run: python assets/draw_heads.py"


def test_the_right_heads_are_those_of_the_engine() -> None:
    heads = GPTAttention(6, heads=3).split(Tensor(X[None].astype(float))).data[0]
    drawn = tables_in(STORED, "right")
    assert list(drawn) == ["head 0", "head 1", "head 2"]
    assert np.array_equal(np.array(list(drawn.values())), heads)


def test_the_wrong_heads_are_those_of_the_popular_mistake() -> None:
    drawn = tables_in(STORED, "wrong")
    assert list(drawn) == ["head 0", "head 1", "head 2"]
    assert drawn["head 0"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert np.array_equal(np.array(list(drawn.values())), X.reshape(3, 4, 2))


def test_x_is_drawn_with_a_token_a_row() -> None:
    (drawn,) = tables_in(STORED, "x").values()
    assert np.array_equal(drawn, X)
    texts = [text.text for text in ElementTree.fromstring(STORED).iter(f"{SVG}text")]
    assert [texts.count(f"token {row}") for row in range(5)] == [2, 2, 2, 2, 0]


def test_a_tile_has_the_colour_of_its_token() -> None:
    seen = set()
    for group in ElementTree.fromstring(STORED).iter(f"{SVG}g"):
        tiles, (_, *texts) = list(group.iter(f"{SVG}rect")), list(group.iter(f"{SVG}text"))
        seen |= {(int(text.text) // 6, tile.get("stroke")) for tile, text in zip(tiles, texts, strict=True)}
    assert len(seen) == len({token for token, _ in seen}) == len({colour for _, colour in seen}) == 4


def test_nothing_is_cut_off_and_nothing_is_loaded() -> None:
    root = ElementTree.fromstring(STORED)
    width, height = map(int, root.get("viewBox").split()[2:])
    tiles = [tile for tile in root.iter(f"{SVG}rect") if tile.get("x")]
    assert len(tiles) == 72
    assert all(int(tile.get("x")) + 30 < width and int(tile.get("y")) + 30 < height for tile in tiles)
    assert re.findall(r"https?:[^\"]*", STORED) == ["http://www.w3.org/2000/svg"]


def test_the_chapter_shows_it() -> None:
    (path,) = (PROJECT / "chapters").glob("06_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert re.search(r"!\[[^\]]{40,}\]\(\.\./assets/heads\.svg\)", text)
