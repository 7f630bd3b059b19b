"""What the tests of the engine share: every test starts from the same random numbers, in float32."""

import numpy as np
import pytest

from src.core import Tensor, seed


@pytest.fixture(autouse=True)
def same_start():
    seed(0)
    with Tensor.precision(np.float32):
        yield


@pytest.fixture
def double():
    """float64 inside the test, for gradient checks and numbers to twelve digits."""
    with Tensor.precision(np.float64):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(7)
