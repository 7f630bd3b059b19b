"""Sphinx extension: formulas drawn as SVG by the MathJax that `sphinx-mathjax-offline` copies into the book.

That package chooses output with web fonts, which some browsers refuse to load next to a page opened from file://, in a
way that no setting overrides. Listed after it in _config.yml, this extension has the last word.
"""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx when it loads the extension."""
    app.config.mathjax_path = "mathjax/tex-svg-full.js"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
