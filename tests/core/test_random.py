"""One source of randomness."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import src.core
from src.core import Linear, default_generator, seed
from src.core.random import choose_generator


def test_seed_puts_the_default_generator_back_even_where_it_is_held():
    held = default_generator()
    seed(3)
    first = held.random(3)
    seed(3)
    np.testing.assert_array_equal(held.random(3), first)
    seed(np.int64(4))
    assert not np.array_equal(held.random(3), first)
    assert held is default_generator()


def test_seed_gives_numpys_own_sequence():
    seed(5)
    np.testing.assert_array_equal(default_generator().random(3), np.random.default_rng(5).random(3))


def test_seed_forgets_half_drawn_numbers():
    """A float32 or 32-bit draw leaves half of a 64-bit number behind, which seed must drop."""
    seed(1)
    expected = default_generator().random(4, dtype=np.float32)
    seed(1)
    default_generator().random(3, dtype=np.float32)
    seed(1)
    np.testing.assert_array_equal(default_generator().random(4, dtype=np.float32), expected)


def test_every_process_starts_at_seed_zero():
    program = "from src.core import Linear; print(Linear(2, 2).weight.data.tobytes().hex())"
    results = {subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout for _ in range(2)}
    assert results == {Linear(2, 2).weight.data.tobytes().hex() + "\n"}


def test_which_generator_is_used():
    own = np.random.default_rng(1)
    assert choose_generator(own) is own
    assert choose_generator(None) is default_generator()
    with pytest.raises(TypeError, match=r"np\.random\.Generator"):
        choose_generator(np.random.RandomState(0))


def test_the_engine_draws_from_nothing_else():
    sources = Path(src.core.__file__).parent.rglob("*.py")
    drawing = re.compile(r"np\.random\.(?!Generator\b|PCG64\b|default_rng\(0\))\w+")
    found = {path.name: drawing.findall(path.read_text(encoding="utf-8")) for path in sources}
    assert len(found) >= 20 and not any(found.values()), found
