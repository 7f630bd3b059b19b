"""Numbers as readers write them. Most of `compare` is tested through the exercises that use it."""

import pytest

from src.course.compare import compare, to_array
from src.course.exercise import Wrong


def test_a_mixed_number_is_not_read_as_another() -> None:
    with pytest.raises(Wrong, match="4 2/3"):
        to_array("4 2/3")


@pytest.mark.parametrize(("text", "number"), [("2 / 7", 2 / 7), (" - 3 ", -3.0), ("50 %", 0.5), ("1e-3", 0.001)])
def test_spaces_around_signs_are_no_matter(text: str, number: float) -> None:
    assert to_array(text) == pytest.approx(number)


def test_a_number_rounded_too_early_is_no_other_mistake() -> None:
    known = {"plain means are taken": 1.63929, "one decimal is a mistake of its own": 1.6}
    assert compare(1.64, 1.643, known=known) == "your value is rounded too early: keep at least 3 decimals"
    assert compare(1.639, 1.643, known=known) == "plain means are taken"
    assert compare(1.6, 1.643, known=known) == "one decimal is a mistake of its own"
