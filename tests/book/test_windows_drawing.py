"""The drawing of windows: its labels are what the dataset makes of the same text, each below its place."""

import json
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

from src.gpt import CharDataset

PROJECT = Path(__file__).parents[2]
PROGRAM = runpy.run_path(str(PROJECT / "assets" / "draw_windows.py"))
STORED = PROGRAM["DRAWING"].read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def rows_in(drawing: str) -> dict[str, list[tuple[int, str]]]:
    """Of each row, by its name: (distance from the left, character) of its boxes."""
    found = {}
    for group in ElementTree.fromstring(drawing).iter(f"{SVG}g"):
        name, *boxes = group.iter(f"{SVG}text")
        found[name.text] = [(int(box.get("x")), box.text.replace("␣", " ")) for box in boxes]
    return found


def test_the_stored_drawing_is_what_its_program_draws() -> None:
    assert PROGRAM["draw"](PROGRAM["rows_of"]()) == STORED, "run: python assets/draw_windows.py"


def test_the_labels_are_the_windows_of_the_dataset(tmp_path: Path) -> None:
    text = PROGRAM["TEXT"]
    (tmp_path / "text.txt").write_text(text + "-" * 10, encoding="utf-8")  # the test part, cut off by `split`
    split = (len(text) + 0.5) / (len(text) + 10)
    dataset = CharDataset(tmp_path / "text.txt", 1, PROGRAM["CONTEXT_SIZE"], PROGRAM["STRIDE"], split=split)
    wanted = {"text": text}
    for number in range(len(dataset)):
        wanted |= {
            f"{name}[{number}]": dataset.decode(ids.data[0]) for name, ids in zip("xy", dataset[number], strict=True)
        }
    assert len(wanted) == 5
    assert {name: "".join(symbol for _, symbol in boxes) for name, boxes in rows_in(STORED).items()} == wanted


def test_equal_places_stand_below_each_other() -> None:
    places = [
        int(place.get("x"))
        for place in ElementTree.fromstring(STORED).iter(f"{SVG}text")
        if place.get("class") == "place"
    ]
    assert len(places) == len(PROGRAM["TEXT"])
    start = {name: places.index(boxes[0][0]) for name, boxes in rows_in(STORED).items()}
    assert start == {"text": 0, "x[0]": 0, "y[0]": 1, "x[1]": 4, "y[1]": 5}
    for boxes in rows_in(STORED).values():
        first = places.index(boxes[0][0])
        assert [left for left, _ in boxes] == places[first : first + len(boxes)]


def test_nothing_is_cut_off_and_nothing_is_loaded() -> None:
    root = ElementTree.fromstring(STORED)
    width, height = map(int, root.get("viewBox").split()[2:])
    boxes = [
        [int(box.get(side)) for side in ("x", "y", "width", "height")]
        for box in root.iter(f"{SVG}rect")
        if box.get("x")
    ]
    assert boxes and all(x + w < width and y + h < height for x, y, w, h in boxes)
    assert re.findall(r"https?:[^\"]*", STORED) == ["http://www.w3.org/2000/svg"]


@pytest.mark.parametrize("symbol", ["<", "&"])
def test_symbols_with_a_meaning_in_svg_are_escaped(symbol: str) -> None:
    rows = rows_in(PROGRAM["draw"](PROGRAM["rows_of"](f"a{symbol}bc", context_size=2, stride=1)))
    assert [text for _, text in rows["x[0]"]] == ["a", symbol]


def test_the_chapter_shows_it() -> None:
    (path,) = (PROJECT / "chapters").glob("02_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert re.search(r"!\[[^\]]{40,}\]\(\.\./assets/windows\.svg\)", text)
