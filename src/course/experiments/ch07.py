"""Chapter 7: what the feed-forward network adds, which activation it takes, and how wide it should be."""

from collections.abc import Callable
from functools import partial

import numpy as np

from src.core import GELU, Composite, Layer, Linear, ReLU, Tensor
from src.course.runs import Experiment, Setup
from src.gpt import GPT, GPTFeedForward
from src.gpt.block import Identity


class Nothing(Layer):
    """Stands where the network is left out: the block adds its result to each token, so it gives zeros."""

    def __init__(self, embedding_size: int):
        self.embedding_size = embedding_size

    def forward(self, x: Tensor) -> Tensor:
        return Tensor(np.zeros(x.shape))


class SigmoidGate(Layer):
    """x / (1 + exp(-slope x)), any shape: SiLU with slope 1, the sigmoid form of GELU with 1.702."""

    def __init__(self, slope: float = 1.0):
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        with np.errstate(over="ignore"):  # where exp is infinite the gate is the right 0
            gate = 1.0 / (1.0 + np.exp(-self.slope * x.data))
        out = Tensor(x.data * gate)

        def gradient_fn() -> None:
            x.grad += out.grad * (gate + x.data * gate * (1.0 - gate) * self.slope)

        return out.attach(gradient_fn, (x,))


class ELU(Layer):
    """x where it is positive, alpha (exp(x) - 1) elsewhere, any shape."""

    def __init__(self, alpha: float = 0.5):
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        low = self.alpha * np.expm1(np.minimum(x.data, 0.0))
        out = Tensor(np.where(x.data > 0, x.data, low))

        def gradient_fn() -> None:
            x.grad += out.grad * np.where(x.data > 0, 1.0, low + self.alpha)

        return out.attach(gradient_fn, (x,))


class Wide(Composite):
    """GPT's feed-forward network with `factor` times as many channels inside, (B, T, C) to (B, T, C)."""

    def __init__(self, embedding_size: int, factor: int):
        self.input = Linear(embedding_size, factor * embedding_size)
        self.activation = GELU("tanh")
        self.output = Linear(factor * embedding_size, embedding_size)
        super().__init__([self.input, self.activation, self.output])

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.activation(self.input(x)))  # (B, T, C) -> (B, T, factor C) -> (B, T, C)


def with_activation(activation: Callable[[], Layer]) -> partial[GPT]:
    """The GPT with this activation in its feed-forward networks."""
    return partial(GPT, feed_forward=partial(GPTFeedForward, activation=activation))


def only_attention(vocab_size: int, context_size: int, embedding_size: int, blocks: int, more: int = 1) -> GPT:
    """The GPT without feed-forward networks, with `more` times as many blocks."""
    return GPT(vocab_size, context_size, embedding_size, more * blocks, feed_forward=Nothing)


EXPERIMENTS = [
    Experiment(
        "ch07-activations",
        Setup(),
        {
            "no network": only_attention,
            "identity": with_activation(Identity),
            "ReLU": with_activation(ReLU),
            "exact GELU": with_activation(GELU),
            "tanh GELU": with_activation(partial(GELU, "tanh")),
            # An attention has half as many parameters as a network: three times the blocks make up for it.
            "no network, 6 blocks": partial(only_attention, more=3),
            "sigmoid GELU": with_activation(partial(SigmoidGate, 1.702)),
            "SiLU": with_activation(SigmoidGate),
            "ELU": with_activation(ELU),
            # Ten times as steep: what goes into the activations is small, so that GELU hardly bends there.
            "steep gate": with_activation(partial(SigmoidGate, 17.02)),
        },
        seeds=(0, 1, 2),
    ),
    Experiment(
        "ch07-width",
        Setup(),
        {f"{factor} C": partial(GPT, feed_forward=partial(Wide, factor=factor)) for factor in (1, 2, 8)},
        seeds=(0, 1, 2),
    ),
]
