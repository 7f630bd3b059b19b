"""Chapter 5: which of the three roles, query, key and value, needs a projection of its own?"""

from functools import partial

import numpy as np

from src.core import Composite
from src.course.runs import Experiment, Setup
from src.gpt import GPT, BareTransformer, GPTAttention
from src.gpt.block import Identity


class RoleAttention(GPTAttention):
    """GPTAttention in which the roles named in `plain` are played by x itself, without a projection."""

    def __init__(
        self,
        embedding_size: int,
        heads: int = 1,
        plain: tuple[str, ...] = (),
        generator: np.random.Generator | None = None,
    ):
        super().__init__(embedding_size, heads, generator=generator)
        for role in plain:
            setattr(self, role, Identity())
        Composite.__init__(self, [self.query, self.key, self.value, self.output, self.dropout])


def with_plain(*roles: str, heads: int = 1) -> partial[GPT]:
    """The GPT whose attention takes x itself in these roles."""
    return partial(GPT, heads=heads, attention=partial(RoleAttention, plain=roles))


bare = partial(GPT, block=BareTransformer, normalization=None, std=None)

EXPERIMENTS = [
    Experiment(
        "ch05-roles",
        Setup(),
        {
            "Q, K, V": with_plain(),
            "V = x": with_plain("value"),
            "K = x": with_plain("key"),
            "Q = x": with_plain("query"),
            "Q = K = x": with_plain("query", "key"),
            "Q = K = V = x": with_plain("query", "key", "value"),
        },
    ),
    # Four heads of 16 channels: a query and a key that are x itself have no smaller space of their own.
    Experiment(
        "ch05-heads",
        Setup(),
        {
            "4 heads, Q, K, V": with_plain(heads=4),
            "4 heads, V = x": with_plain("value", heads=4),
            "4 heads, K = x": with_plain("key", heads=4),
            "4 heads, Q = K = x": with_plain("query", "key", heads=4),
        },
        seeds=(0, 1, 2),
    ),
    Experiment(
        "ch05-bare",
        Setup(),
        {"Q, K, V": bare, "Q = K = x": partial(bare, attention=partial(RoleAttention, plain=("query", "key")))},
        seeds=(0, 1, 2),
    ),
    # The run that the course grew from: no residual, no normalisation, two passes over the excerpt in its own order.
    Experiment(
        "ch05-published",
        Setup(corpus="tinyshakespeare", batch_size=4, steps=31368, shuffle=False),
        {"bare": bare},
        seeds=(0, 1, 2),
    ),
]
