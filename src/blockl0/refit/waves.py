"""Large supports: sizes gone through one by one, each as if it were a budget, up and down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.sparsity import Sparsity
from blockl0.refit.frontier import Frontier
from blockl0.refit.pool import Pool
from blockl0.run import Run

Ints = NDArray[np.int64]

WINDOW = 0.1
"""Of the best size: how far from it a wave may set out, and half as far it goes beyond."""
DEEPEST = 0.8
"""Share of a support that a wave drops at most."""
WAVES, FIRST_WAVES = 4, 2
"""Waves in a round, and in the first one."""
ROUND_WORK = 3e8
"""Operations of a round; the waves of a large support are fewer, and not as deep."""
FEWEST_WAVES = 1
"""In a round, whatever the size."""


class Waves:
    """A strategic oscillation on a pool: drop a part of a support, and grow it again.

    On the way up, the support is descended by swaps at every size, as under a budget of that size,
    and the frontier keeps the best of each. What is best at one size comes from what was best at
    others, so that a descent which has filled up with columns is left behind.

    Parameters
    ----------
    pool : Pool
    frontier : Frontier
        Shared by all waves around one point.
    """

    def __init__(self, pool: Pool, frontier: Frontier) -> None:
        self.pool, self.frontier = pool, frontier

    @property
    def best(self) -> float:
        """The best objective on the frontier."""
        return self.frontier.best(self.pool.sparsity)

    @property
    def best_size(self) -> int:
        """Its size."""
        return self.frontier.best_size(self.pool.sparsity)

    def note(self) -> None:
        """Offer where the pool stands to the frontier."""
        if self.pool.value < self.frontier.value(self.pool.size):
            self.frontier.offer(self.pool.value, self.pool.support)

    def grow_to(self, size: int, run: Run | None) -> None:
        """Add the best column and swap, size by size, while a column is left that helps."""
        pool = self.pool
        while pool.size < size and (run is None or run.seconds_left > 0.0):
            before = pool.size
            pool.descend(sparsity=Sparsity(0.0, before + 1))
            if pool.size == before:
                break
            self.note()

    def return_to_best(self) -> None:
        """Load the best support of the frontier, and descend from it for its price."""
        self.pool.move_to(self.frontier.support(self.best_size))
        self.pool.descend()
        self.note()

    def make_round(self, run: Run, rng: np.random.Generator, most: int = WAVES) -> None:
        """Some waves from supports of about the best size."""
        cost = max(self.pool.columns.size * self.best_size, 1)
        n_waves = int(min(max(ROUND_WORK / (cost * self.best_size), FEWEST_WAVES), WAVES))
        for _ in range(min(n_waves, most)):
            if run.seconds_left <= 0.0:
                break
            self.make_wave(run, rng, int(ROUND_WORK / (n_waves * cost)))
        self.return_to_best()

    def make_wave(self, run: Run, rng: np.random.Generator, deepest: int) -> None:
        """Drop up to `deepest` columns, at random, of a support of about the best size; grow."""
        pool, best_size = self.pool, self.best_size
        window = max(1, int(min(WINDOW * best_size, deepest / 8)))
        size = best_size + int(rng.integers(-window, window + 1))
        if size not in self.frontier or not pool.has(self.frontier.support(size)):
            size = best_size
        pool.move_to(self.frontier.support(size))
        movable = pool.movable
        # small drops are the most, large ones lead to other places
        most = max(2.0, min(DEEPEST * movable.size, deepest))
        dropped = rng.permutation(movable)[: int(most ** rng.uniform())]
        pool.toggle(dropped)
        pool.descend(sparsity=Sparsity(0.0, pool.size))
        self.note()
        self.grow_to(min(size + window // 2 + 1, pool.sparsity.budget), run)
