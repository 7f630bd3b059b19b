"""The fixtures of the engine's own tests."""

from tests.core.conftest import double, rng, same_start  # noqa: F401
