"""The learning rate over time: a linear warm-up, then half a cosine or a line. Chapter 10 explains it."""

import math


class WarmupCosineScheduler:
    """Rises in `warmup_steps` equal steps to `lr`, then falls along half a cosine to `min_lr` and stays there.

    Step 0 already has lr / warmup_steps, not 0. Raises ValueError unless 0 <= warmup_steps < total_steps and
    0 <= min_lr <= lr.

    >>> scheduler = WarmupCosineScheduler(lr=1e-3, total_steps=100, warmup_steps=10, min_lr=1e-4)
    >>> [round(scheduler.step(n), 8) for n in (0, 9, 10, 55, 99, 100)]
    [0.0001, 0.001, 0.001, 0.00055, 0.00010027, 0.0001]
    """

    def __init__(self, lr: float, total_steps: int, warmup_steps: int, min_lr: float = 0.0):
        if not 0 <= warmup_steps < total_steps:
            raise ValueError(
                f"the warm-up must be shorter than the run, got {warmup_steps} of {total_steps} steps: "
                "make warmup_steps smaller, or take more steps"
            )
        if not 0.0 <= min_lr <= lr < math.inf:
            raise ValueError(f"the learning rate must satisfy 0 <= min_lr <= lr, got min_lr {min_lr} and lr {lr}")
        self.lr, self.min_lr = lr, min_lr
        self.total_steps, self.warmup_steps = total_steps, warmup_steps

    def step(self, n: int) -> float:
        """The learning rate of step `n`, counted from 0. Raises ValueError for a negative one."""
        if n < 0:
            raise ValueError(f"steps are counted from 0, got {n}")
        if n < self.warmup_steps:
            return min(self.lr * (n + 1) / self.warmup_steps, self.lr)  # rounding may end one digit above
        progress = min((n - self.warmup_steps) / (self.total_steps - self.warmup_steps), 1.0)
        return min(self.min_lr + (self.lr - self.min_lr) * self.left(progress), self.lr)

    def left(self, progress: float) -> float:
        """The part of the way from min_lr to lr that is left, from 1 at progress 0 to 0 at progress 1."""
        return 0.5 * (1.0 + math.cos(math.pi * progress))


class WarmupLinearScheduler(WarmupCosineScheduler):
    """The same rise, then a straight line down to `min_lr`.

    >>> scheduler = WarmupLinearScheduler(lr=1e-3, total_steps=100, warmup_steps=10, min_lr=1e-4)
    >>> [round(scheduler.step(n), 8) for n in (0, 9, 55, 100)]
    [0.0001, 0.001, 0.00055, 0.0001]
    """

    def left(self, progress: float) -> float:
        return 1.0 - progress
