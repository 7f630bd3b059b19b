"""What is there only for speed. Skip it on first reading: every operation here stands in plain form in src.core.

The plain forms say what is computed; these say the same in fewer passes over memory, in blocks that fit the processor's
cache, on more than one thread. `plain()` switches them off, and tests hold both equal.

Reading order: switch, memory, threads, operation; then linear, embedding, gelu, layer_norm, attention, cross_entropy
and adamw; at last layers and forms, which make a whole model one operation.
"""

from .switch import is_on, plain

__all__ = ["is_on", "plain"]
