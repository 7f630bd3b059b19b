"""What chapters need around the model: corpora, figures, exercises and their checks.

    from src.course import check, hint, progress, read_corpus, attention_heatmap, shipped_model

`check` comes in at once, because its file has the same name and Python would otherwise hand out the module; it needs
nothing but the standard library. The others come on first use, so that `python -m src.course doctor` runs in an
environment in which something is missing, and reading a corpus does not load Matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from src.course.check import check, hint
from src.course.progress import progress

if TYPE_CHECKING:
    from src.course.corpora import corpus_path, read_corpus
    from src.course.figures import attention_heatmap, curves, heatmap
    from src.course.shipped import shipped_model

__all__ = [
    "attention_heatmap",
    "check",
    "corpus_path",
    "curves",
    "heatmap",
    "hint",
    "progress",
    "read_corpus",
    "shipped_model",
]

_HOME = {
    "corpus_path": "src.course.corpora",
    "read_corpus": "src.course.corpora",
    "attention_heatmap": "src.course.figures",
    "curves": "src.course.figures",
    "heatmap": "src.course.figures",
    "shipped_model": "src.course.shipped",
}


def __getattr__(name: str) -> Any:
    """Import `name` from its file on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
