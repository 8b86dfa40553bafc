"""Away from where a descent ends, inside one pool: exact blocks, and kicks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.refit.pool import Pool, first_of
from blockl0.refit.pool_sizes import SearchOptions
from blockl0.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KICKS, NARROW_KICKS, FEWEST_KICKS = 24, 12, 6
"""Kicks in a round, in one on a narrow pool, and in one of supports so large that each is slow."""
LARGE_SUPPORT = 50
"""Columns in the support beyond which a round has fewer kicks, so that its time grows less."""
DROPPED = 0.5
"""Share of the support that a kick drops at most."""
LARGEST_BLOCK = 19
"""Columns of a block that joins two supports; larger ones need the relaxation to be searched."""


class PoolKicks:
    """A round of blocks and kicks on a pool.

    Parameters
    ----------
    pool : Pool
        Loaded, and descended.
    options : SearchOptions
    rng : Generator
    """

    def __init__(self, pool: Pool, options: SearchOptions, rng: np.random.Generator) -> None:
        self.pool, self.options, self.rng = pool, options, rng

    def make_round(self, run: Run, is_narrow: bool, best: float, slack: float) -> Ints | None:
        """Blocks, then kicks, each accepted below the best so far plus `slack`.

        Returns the support of the best point, None if none is better than `best`. The pool is left
        at the last point that was accepted.
        """
        pool, found = self.pool, None
        self.search_blocks(run)
        n_kicks = NARROW_KICKS if is_narrow else KICKS
        for _ in range(max(FEWEST_KICKS, n_kicks * LARGE_SUPPORT // max(pool.size, LARGE_SUPPORT))):
            if pool.objective < best - pool.tolerance:
                best, found = pool.objective, pool.support
            if run.seconds_left <= 0.0:
                break
            self.kick(best + slack)
        return pool.support if pool.objective < best - pool.tolerance else found

    def search_blocks(self, run: Run) -> None:
        """Exact blocks, each followed by a descent, until `patience` of them bring nothing."""
        pool, failures = self.pool, 0
        best = pool.objective
        while failures < self.options.patience and run.seconds_left > 0.0:
            block = self.choose_block()
            if block.size and pool.search_block(block):
                pool.descend()
            # a block and a descent may undo each other by rounding: only what is left counts
            failures = 0 if pool.objective < best - pool.tolerance else failures + 1
            best = min(best, pool.objective)

    def choose_block(self) -> Ints:
        """The weakest of the support with the strongest outside it, and a few at random."""
        n_outside, n_support, n_random = self.options[:3]
        pool, rng = self.pool, self.rng
        members, gains = pool.movable, pool.add_gains()
        # noise of up to a factor four keeps successive blocks different
        costs = pool.drop_costs(members) * rng.uniform(0.25, 1.0, members.size)
        gains *= rng.uniform(0.25, 1.0, gains.size)
        chosen = np.zeros(gains.size, dtype=np.bool_)
        chosen[members[first_of(costs, n_support)]] = True
        strong = first_of(-gains, n_outside)
        chosen[strong[gains[strong] > -np.inf]] = True
        chosen[rng.integers(0, gains.size, n_random)] = True
        # a kept column that depends on others can be neither added nor taken out
        chosen &= ~pool.table.kept | (pool.table.slot >= 0)
        return chosen.nonzero()[0]

    def kick(self, ceiling: float = -np.inf) -> None:
        """Drop a part of the support, refill without half of it, descend again.

        A point that is better, or below the ceiling, stays; from another one the pool returns, and
        searches what differs as a block.
        """
        pool, rng, movable = self.pool, self.rng, self.pool.movable
        if movable.size == 0:
            return
        state, before = pool.save(), pool.objective
        if ceiling == -np.inf:
            n_drop = int(movable.size * rng.uniform(0.2, 1.0) * DROPPED)
        else:
            # small ones, since these can be followed by others from where they lead
            n_drop = int(2.0 * (0.5 * DROPPED * movable.size + 0.5) ** rng.uniform())
        dropped = rng.permutation(movable)[: max(1, n_drop)]
        # half of what was dropped stays away at first, or the descent would put it all back
        weight = rng.uniform(0.5, 1.0, pool.columns.size)
        weight[dropped[: (dropped.size + 1) // 2]] = 0.0
        pool.descend(weight, dropped)
        pool.descend()
        if pool.objective < max(before - pool.tolerance, ceiling):
            pool.refresh()
            return
        other = pool.table.slot >= 0
        pool.restore(state)
        # two good supports: the best mixture of them is a block that is small enough to search
        self.join(other)

    def join(self, other: NDArray[np.bool_]) -> None:
        """Search the columns in which another support differs from the pool's as one block."""
        block = ((self.pool.table.slot >= 0) != other).nonzero()[0]
        if 2 < block.size <= LARGEST_BLOCK:
            self.pool.search_block(block)
