"""The trained model that comes with the course (chapters 10 and 11)."""

from pathlib import Path

from src.gpt.saved import SHIPPED


def shipped_model() -> Path:
    """The path of the GPT that was trained on `shakespeare` for this course, for `src.gpt.saved.load_model`.

    `data/models/shakespeare.toml` is its configuration, `shakespeare.json` its losses. Raises RuntimeError when the
    file is not there.
    """
    if not SHIPPED.is_file():
        raise RuntimeError(
            f"the course's model is not at {SHIPPED}: restore it from the repository, or train it, which takes hours: "
            "python -m src.gpt train data/models/shakespeare.toml"
        )
    return SHIPPED
