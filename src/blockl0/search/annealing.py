"""Down to a price by chance: walks while the price falls, so that supports grow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.moves.pool import Pool
from blockl0.moves.single_pool import LEAST_PRICE, MAX_DRIFT, SingleTable, unit_of
from blockl0.run import Run
from blockl0.search.frontier import Frontier
from blockl0.search.threads import in_threads

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
MOST_WORK, MOST_FIRST, MOST_AGAIN = 1.6e10, 2e9, 8e8
"""Operations of an annealing, of the first one, and of a walk again, however large the support: a
few seconds, and fractions of one."""
MOST_REBUILT = 8
"""Times that rounding may spoil a table of single precision before walks go on in double."""
SPARE = 1.1, 8
"""Columns that a support may have, of those of a descent: such a multiple, and so many more."""
MOVES_EACH, FEWEST_MOVES, MOST_WALK = 100, 1000, 2e9
"""Of a walk at one size: moves for each column of the support, in all at least, and operations at
most."""
HOT, COLD = 0.36, 0.06
"""The temperatures of such a walk at its beginning, in drop costs of the lower quartile of the
support that is known, and at its end, in those of its least column."""


class Pace(NamedTuple):
    """How an annealing goes: the more moves, the warmer it may be and the better it ends.

    The temperature is in prices: what a column is worth is the unit in which supports differ. Moves
    are as many as if each were made on the whole support. Most of the work goes into prices up to
    `span` times the last one. Of however large a support, there are no more operations than
    `most_work`; of a small one, as many as of one with `fewest` columns.
    """

    moves: float
    heat: float
    walks: int = 1
    span: float = SPAN
    most_work: float = MOST_WORK
    fewest: int = 1


FIRST, LONG = Pace(5_000, 0.1, most_work=MOST_FIRST), Pace(48_000, 0.1, walks=4)
AGAIN = Pace(2_000, 0.1, most_work=MOST_AGAIN)
"""Of the first annealing; of the next, which has several walks in each stage; and of a walk that
sets out again from a higher price."""


def work_of(pool: Pool, n_nonzero: int, pace: Pace) -> float:
    """Operations of an annealing on a support of such a size."""
    return min(pace.moves * pool.columns.size * max(n_nonzero, pace.fewest), pace.most_work)


def most_columns(n_nonzero: int) -> int:
    """Columns in a support, where a descent, which fills up, has found so many."""
    return int(SPARE[0] * n_nonzero + SPARE[1])


def first_price(pool: Pool) -> float:
    """Return a price at which few columns are worth it."""
    return 0.5 * FIRST_SHARE * unit_of(pool)


def last_price(pool: Pool) -> float:
    """Return the price of the pool, or if it has none, one at which its budget is full and cold."""
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
    last : float
        The lowest price or temperature of its walks.
    run : Run or None
        Its clock ends a walk early.
    rng : Generator
        One number is drawn, and more by `draw`.
    """

    def __init__(
        self, pool: Pool, most: int, last: float, run: Run | None, rng: np.random.Generator
    ) -> None:
        pool.know_all()
        self.pool, self.run, self._rng = pool, run, rng
        self.most = min(most, pool.sparsity.budget, pool.units.size)
        self._single: SingleTable | None = None
        unit = unit_of(pool)
        if pool.structure is None and unit > 0.0 and last > LEAST_PRICE * unit:
            self._single = SingleTable(pool)
        self._n_rebuilt = 0
        self._cooling = kernels.Cooling(
            plan=np.append(np.zeros(7), pool.sparsity.price),
            chances=np.array([rng.integers(1, 2**63)], dtype=np.uint64),
            away=np.full((2, kernels.MOST_AWAY), -1),
            values=np.full(self.most + 1, np.inf),
            members=np.empty((self.most + 1, self.most), dtype=np.int32),
        )

    def draw(self) -> float:
        """Draw a number in [0, 1)."""
        return float(self._rng.uniform())

    @property
    def has_time(self) -> bool:
        """Whether the run's clock leaves any."""
        return self.run is None or self.run.seconds_left > 0.0

    @property
    def _unit(self) -> float:
        """Of the values met and of prices."""
        return 1.0 if self._single is None else self._single.unit

    @property
    def support(self) -> Ints:
        """Where the walk is."""
        return self.pool.support if self._single is None else self._single.support

    def go_to(self, support: Ints) -> None:
        """Begin the next walk at a support in the pool."""
        self.pool.move_to(support)
        if self._single is not None:
            self._single.take()

    @property
    def _table(self) -> kernels.SweptArrays:
        """The one that walks."""
        return self.pool.table if self._single is None else self._single.table

    def walk_from(
        self,
        support: Ints,
        first: float,
        last: float,
        work: float,
        heat: float,
        most: int | None = None,
    ) -> None:
        """Go to a support, and walk from there; in time."""
        if self.has_time:
            self.go_to(support)
            self.walk(first, last, work, heat, most)

    def walk(
        self, first: float, last: float, work: float, heat: float, most: int | None = None
    ) -> None:
        """Trials from where the walk is, while the price falls, for so many operations.

        There may be fewer columns than the walker has room for. A tableau that has drifted is built
        anew, which is work as well.
        """
        plan, most = self._cooling.plan, self.most if most is None else most
        plan[: kernels.MOVES] = first / self._unit, last / self._unit, heat, work, 0.0, MAX_DRIFT
        while plan[kernels.WORK_DONE] < work and self.has_time:
            until = min(work, plan[kernels.WORK_DONE] + SLICE)
            if self._single is None:
                plan[kernels.MOST_DRIFT] = kernels.MAX_DRIFT
            end = self._anneal(most, until)
            if end == kernels.DRIFTED:
                plan[kernels.WORK_DONE] += float(self.pool.columns.size) * self.pool.size**2
                self._rebuild()

    def _anneal(self, most: int, until: float) -> int:
        structure, tolerance = self.pool.structure, self.pool.tolerance
        return kernels.anneal(self._table, structure, self._cooling, most, tolerance, until)

    def _rebuild(self) -> None:
        """Make the table anew; where single precision needs that often, go on in double."""
        single = self._single
        if single is None:
            self.pool.refresh()
            return
        self._n_rebuilt += 1
        if self._n_rebuilt <= MOST_REBUILT:
            self.go_to(single.support)
            return
        self._cooling.values[:] *= single.unit
        self._cooling.plan[: kernels.HEAT] *= single.unit
        self._single = None
        self.pool.load(single.support)

    def best(self, price: float) -> tuple[float, Ints]:
        """Return the best support met for a price, and its value; the kept columns if none was."""
        values = self._unit * self._cooling.values + price * np.arange(self.most + 1)
        size = int(np.argmin(values))
        if values[size] == np.inf:
            return np.inf, self.pool.units[self.pool.table.kept]
        return float(values[size]), self._support(size)

    def _support(self, size: int) -> Ints:
        return np.sort(self.pool.units[self._cooling.members[size, :size]])

    def offer_to(self, frontier: Frontier, prices: tuple[float, float] | None) -> None:
        """Offer what was met to a frontier: what is best for prices between two, or of every size.

        The largest size is always among them, for a budget. Values of single precision tell only
        what may be better.
        """
        values = self._cooling.values
        sizes = np.flatnonzero(values < np.inf)
        if prices is not None and sizes.size:
            sizes = best_for(sizes, values[sizes] * self._unit, *prices)
        for size in sizes.tolist():
            value = float(values[size]) * self._unit
            if self._single is not None and value < frontier.value(size):
                value = self.pool.value_of(self._support(size))
            if value < frontier.value(size):
                frontier.offer(value, self._support(size))


def best_for(sizes: Ints, values: Floats, low: float, high: float) -> Ints:
    """Return the sizes that are best for a price between two, and the last one.

    They are corners of the lower convex hull; the best for a price is where its slope passes it.
    """
    kept: list[int] = []
    for k in range(sizes.size):
        while len(kept) > 1:
            a, b = kept[-2:]
            first = (values[b] - values[a]) * (sizes[k] - sizes[a])
            if first < (values[k] - values[a]) * (sizes[b] - sizes[a]):
                break
            kept.pop()
        kept.append(k)
    ends = [int(np.argmin(values[kept] + price * sizes[kept])) for price in (high, low)]
    chosen = kept[ends[0] : ends[1] + 1]
    return sizes[sorted({*chosen, kept[-1]})]


def best_of(walkers: Sequence[Walker], price: float) -> Ints:
    """Return the best support that any of them has met for a price."""
    return min((walker.best(price) for walker in walkers), key=lambda met: met[0])[1]


def anneal(
    walkers: Sequence[Walker], frontier: Frontier, price: float, work: float, pace: Pace, jobs: int
) -> None:
    """Walk from the kept columns alone to the price, and offer the best of each size met.

    A descent for a low price fills up with columns, of which each alone is worth it. Here the price
    falls slowly from one that few columns are worth, and the support is at every price one of the
    many that are about as good as any: what is large was grown from what was good when small. How
    well a walk ends is decided while the price falls to a tenth or so, and differs much from one to
    another; so the last prices are gone through in stages, where there are several walkers, which
    all begin at the best support that those of the stage before have met.

    Parameters
    ----------
    walkers : sequence of Walker
        As many as the pace has walks; what they do depends on no other one within a stage.
    frontier : Frontier
        All prices from the first to the last are served.
    price : float
        The last price, positive.
    work : float
        Operations.
    pace : Pace
    jobs : int
        Threads.
    """
    leader = walkers[0]
    first = first_price(leader.pool)
    if not price < first:
        return
    high = min(first, pace.span * price)
    leader.go_to(leader.best(first)[1])
    if high < first:
        leader.walk(first, high, EARLY * work, pace.heat)
        work *= 1.0 - EARLY
    n_stages = max(1, round(np.log(high / price) / np.log(STAGE))) if len(walkers) > 1 else 1
    share = work / (len(walkers) * n_stages)
    for above, below in pairwise(np.geomspace(high, price, n_stages + 1)):
        start = best_of(walkers, above)
        calls = [partial(w.walk_from, start, above, below, share, pace.heat) for w in walkers]
        in_threads(calls, jobs, leader.run)
    for walker in walkers:
        walker.offer_to(frontier, None if pace.span == np.inf else (price, SPAN * price))


class Schedule(NamedTuple):
    """A walk: where it begins, its first and last price, its operations, its temperature in prices,
    and the columns of its largest support.
    """

    start: Ints
    first: float
    last: float
    work: float
    heat: float
    most: int


class Temperatures(NamedTuple):
    """The temperatures of a walk at one size, and its operations."""

    first: float
    last: float
    work: float

    @classmethod
    def around(cls, pool: Pool) -> Temperatures:
        """For walks to supports like the one of a pool; zero where no column may leave it.

        What the weakest columns are worth tells by how much supports differ that are nearly as
        good.
        """
        costs, size = pool.drop_costs(pool.movable), pool.size
        moves = max(MOVES_EACH * size, FEWEST_MOVES)
        work = min(moves * pool.columns.size * (1.5 * size + 4.0), MOST_WALK)
        if costs.size == 0:
            return cls(0.0, 0.0, work)
        return cls(HOT * float(np.quantile(costs, 0.25)), COLD * float(costs.min()), work)
