"""The loss of a language model: average surprise at the next token. Chapter 2 derives it."""

from ..core import CrossEntropyLoss


class GPTLoss(CrossEntropyLoss):
    """Cross-entropy of logits (B, T, V) and the ids (B, T) of the tokens that came next, in nats per token."""
