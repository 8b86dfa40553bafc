"""Down to a price by chance: walks while the price falls, so that supports grow."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.problem.sparsity import Sparsity
from blockl0.refit.frontier import Frontier
from blockl0.refit.pool import Pool
from blockl0.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_SHARE = 0.25
"""Of the best gain of a single column: the price at which an annealing begins."""
LAST_SHARE = 0.1
"""Of what the least column of a full budget is worth: the price at which an annealing ends."""
SPAN, EARLY = 30.0, 0.15
"""The last prices of an annealing, as multiples of the last one, and the work before them: what a
walk has met above them is forgotten below."""
STAGE = 3.0
"""A stage ends at a price that is so many times lower."""
SLICE = 1e8
"""Operations between two looks at the clock; about a twentieth of a second."""
MOST_WORK, MOST_AGAIN = 8e9, 4e8
"""Operations of an annealing, and of a walk again, however large the support: a few seconds, and a
fraction of one."""
SPARE = 1.1, 8
"""Columns that a support may have, of those of a descent: such a multiple, and so many more."""


class Pace(NamedTuple):
    """How an annealing goes: the more moves, the warmer it may be and the better it ends.

    The temperature is in prices: what a column is worth is the unit in which supports differ. Moves
    are as many as if each were made on the whole support. Most of the work goes into prices up to
    `span` times the last one.
    """

    moves: float
    heat: float
    walks: int = 1
    span: float = SPAN


FIRST, LONG, AGAIN = Pace(1_200, 0.1), Pace(16_000, 0.15, walks=4), Pace(1_000, 0.1)
"""Of the first annealing; of the next, which has several walks in each stage; and of a walk that
sets out again from a higher price."""


def work_of(pool: Pool, n_nonzero: int, moves: float) -> float:
    """Operations for so many moves on a support of such a size."""
    return min(moves * pool.columns.size * max(n_nonzero, 1), MOST_WORK)


def most_columns(n_nonzero: int) -> int:
    """Columns in a support, where a descent, which fills up, has found so many."""
    return int(SPARE[0] * n_nonzero + SPARE[1])


def first_price(pool: Pool) -> float:
    """A price at which few columns are worth it."""
    safe = np.where(pool.sq_norms > 0.0, pool.sq_norms, np.inf)
    return float(np.max(FIRST_SHARE * 0.5 * pool.target**2 / safe))


def last_price(pool: Pool) -> float:
    """The price of the pool; where it has none, one at which its budget is full and all cold."""
    costs = pool.drop_costs(pool.movable)
    cheapest = LAST_SHARE * float(costs.min()) if costs.size else 0.0
    return max(pool.sparsity.price, cheapest, pool.tolerance)


class Walker:
    """Walks by chance on a pool, and the best support of each size that they meet.

    Parameters
    ----------
    pool : Pool
        Its whole Gram matrix is made. It is left at the end of a walk.
    most : int
        Columns in a support, at most; memory is quadratic in them.
    run : Run or None
        Its clock ends a walk early.
    rng : Generator
        One number is drawn, and more by `draw`.
    """

    def __init__(self, pool: Pool, most: int, run: Run | None, rng: np.random.Generator) -> None:
        pool.know_all()
        self.pool, self.run, self._rng = pool, run, rng
        self.most = min(most, pool.sparsity.budget, pool.columns.size)
        self._cooling = kernels.Cooling(
            plan=np.zeros(5),
            chances=np.array([rng.integers(1, 2**63)], dtype=np.uint64),
            values=np.full(self.most + 1, np.inf),
            members=np.empty((self.most + 1, self.most), dtype=np.int32),
        )

    def draw(self) -> float:
        """A number in [0, 1)."""
        return float(self._rng.uniform())

    @property
    def has_time(self) -> bool:
        """Whether the run's clock leaves any."""
        return self.run is None or self.run.seconds_left > 0.0

    def walk(self, first: float, last: float, work: float, heat: float) -> None:
        """Trials from where the pool stands, while the price falls, for so many operations.

        A tableau that has drifted is built anew, which is work as well.
        """
        pool, cooling, plan = self.pool, self._cooling, self._cooling.plan
        plan[:] = first, last, heat, work, 0.0
        while plan[kernels.WORK_DONE] < work and self.has_time:
            until = min(work, plan[kernels.WORK_DONE] + SLICE)
            if kernels.anneal(pool.table, cooling, pool.equal, self.most, until) == kernels.DRIFTED:
                plan[kernels.WORK_DONE] += float(pool.columns.size) * pool.size**2
                pool.refresh()

    def best(self, price: float) -> Ints:
        """The best support met for a price; the kept columns where none was."""
        values = self._cooling.values + price * np.arange(self.most + 1)
        size = int(np.argmin(values))
        if values[size] == np.inf:
            return self.pool.columns[self.pool.table.kept]
        return self._support(size)

    def _support(self, size: int) -> Ints:
        return np.sort(self.pool.columns[self._cooling.members[size, :size]])

    def tell(self, frontier: Frontier) -> None:
        """Offer what was met to a frontier."""
        values = self._cooling.values
        for size in np.flatnonzero(values < np.inf).tolist():
            if values[size] < frontier.value(size):
                frontier.offer(float(values[size]), self._support(size))


def anneal(walker: Walker, frontier: Frontier, price: float, work: float, pace: Pace) -> None:
    """Walk from the kept columns alone to the price, and offer the best of each size met.

    A descent for a low price fills up with columns, of which each alone is worth it. Here the price
    falls slowly from one that few columns are worth, and the support is at every price one of the
    many that are about as good as any: what is large was grown from what was good when small. How
    well a walk ends is decided while the price falls to a tenth or so, and differs much from one to
    another; so the last prices are gone through in stages, where there are several walks, which all
    begin at the best support that those of the stage before have met.

    Parameters
    ----------
    walker : Walker
    frontier : Frontier
        All prices from the first to the last are served.
    price : float
        The last price, positive.
    work : float
        Operations.
    pace : Pace
    """
    pool, first = walker.pool, first_price(walker.pool)
    if not price < first:
        return
    high = min(first, pace.span * price)
    pool.load(walker.best(first))
    if high < first:
        walker.walk(first, high, EARLY * work, pace.heat)
        work *= 1.0 - EARLY
    n_stages = max(1, round(np.log(high / price) / np.log(STAGE))) if pace.walks > 1 else 1
    share = work / (pace.walks * n_stages)
    for above, below in pairwise(np.geomspace(high, price, n_stages + 1)):
        start = walker.best(above)
        for _ in range(pace.walks):
            if walker.has_time:
                pool.move_to(start)
                walker.walk(above, below, share, pace.heat)
    walker.tell(frontier)


def anneal_again(walker: Walker, frontier: Frontier, price: float, work: float, pace: Pace) -> None:
    """From the best support for a higher price down to the price; parameters as of `anneal`.

    The higher that price the more work there is, all of it from the highest.
    """
    pool, share = walker.pool, walker.draw()
    above = price * SPAN**share
    start = frontier.support(frontier.best_size(Sparsity(above, pool.sparsity.budget)))
    if pool.has(start):
        pool.move_to(start)
        walker.walk(above, price, min(work, MOST_AGAIN) * share, pace.heat)
        walker.tell(frontier)
