"""The picture of the README: where two heads of a small GPT look while they read a verse.

    OPENBLAS_NUM_THREADS=1 python assets/draw_attention.py    # trains for a minute, then writes assets/attention.png

The heads are two of eight, chosen because what they do can be seen. Another machine may draw slightly other shades.
"""

from functools import partial
from pathlib import Path

import numpy as np

from src.core import Tensor
from src.course.drawing import Figure
from src.course.figures import attention_heatmap
from src.course.printing import print_matrix
from src.course.runs import Setup, train
from src.gpt import GPT

VERSE = "wherefore art thou Romeo?"
HEADS = [(0, 2), (1, 0)]  # (block, head), counted from 0
PICTURE = Path(__file__).with_name("attention.png")


def attention_of_verse(setup: Setup, steps: int | None = None) -> list[np.ndarray]:
    """Train a GPT with four heads, to its end or for some steps; return the weights (T, T) of the two heads."""
    run = train(setup, partial(GPT, heads=4), steps=steps)
    tokens = Tensor([run.dataset.encode(VERSE)])  # (1, T)
    weights = run.trainer.model.attention_weights(tokens)  # one (1, H, T, T) for each block
    return [weights[block][0, head] for block, head in HEADS]


def draw(weights: list[np.ndarray]) -> Figure:
    """Draw the two heads side by side; what the causal mask hides is hatched."""
    titles = [f"block {block + 1}, head {head + 1}" for block, head in HEADS]
    mask = np.tril(np.ones((len(VERSE), len(VERSE)), bool))  # True = may attend
    return attention_heatmap(weights, VERSE, mask=mask, titles=titles)


if __name__ == "__main__":
    matrices = attention_of_verse(Setup())
    print_matrix(matrices[1][-6:, -6:], rows=VERSE[-6:], columns=VERSE[-6:])
    PICTURE.write_bytes(draw(matrices)._repr_png_())
    print(f"{PICTURE.name} is written.")
