"""Chapter 6: does it pay to share the channels among several heads? Parameters and multiplications stay the same.

Chapter 5 stores the runs with one head (ch05-roles) and with four (ch05-heads).
"""

from functools import partial

from src.course.runs import Experiment, Setup
from src.gpt import GPT

SEEDS = (0, 1, 2)
heads = {count: partial(GPT, heads=count) for count in (1, 2, 4, 8, 16)}

EXPERIMENTS = [
    Experiment("ch06-heads", Setup(), {f"{count} heads": heads[count] for count in (2, 8, 16)}, SEEDS),
    # Twice the context: more to tell apart.
    Experiment("ch06-longer", Setup(context_size=64), {"1 head": heads[1], "4 heads": heads[4]}, SEEDS),
]
