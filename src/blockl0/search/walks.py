"""The walks of a run, round by round, and when enough of them have been made.

A walk is a simulated annealing on a pool of columns around the best point. It takes nothing else
from that point, so that walks of a round are made at the same time, with random numbers of their
own, and what they find depends on no thread. Where several of them end at the best point that is
known, there is hardly a better one: the search ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.moves.pool import Pool
from blockl0.problem.problem import Sparsity
from blockl0.run import Incumbent, Run
from blockl0.search.annealing import (
    AGAIN,
    FIRST,
    LONG,
    SPAN,
    Pace,
    Schedule,
    Temperatures,
    Walker,
    anneal,
    first_price,
    last_price,
    most_columns,
    work_of,
)
from blockl0.search.frontier import Frontier
from blockl0.search.pool_sizes import narrow_size, walk_size
from blockl0.search.threads import Answer, in_threads

if TYPE_CHECKING:
    from blockl0.search.local_search import LocalSearch
    from blockl0.search.quadratic_search import QuadraticSearch

Ints = NDArray[np.int64]

PRICED, FULL = 24, 64
"""Columns in a support from which on walks are staged, at a price and under a budget alone."""
LARGE = 96
"""Columns in a support from which on no walk is from nothing."""
BRIEF = FIRST._replace(moves=0.5 * FIRST.moves, fewest=20)
"""The pace of a walk from nothing down to a price, to supports that are not large."""
AGREED, MODELS_AGREED, ROUNDS_EACH = 2, 3, 16
"""Walks that must end at the best point, of the squared loss and on models of others; and one more
for so many rounds of effort."""
FEW_UNITS, MORE_AMONG_FEW = 16, 8
"""Units up to which so many walks more must end at the best point."""
SAME = 1e-9
"""Of the objective: what differs by less is the same."""
PAIR = 2
"""Walks of a round."""
NEAR = (2.0, 5.0)
"""Times the price: prices whose best supports have a place in a pool."""
SHORT = 0.15
"""Of the work of a walk: that of one of the first round, on few columns."""
LEAST_WORK = 3e5
"""Operations of a walk that is not shortened further: a fraction of a millisecond."""
MEDIUM_SHARE, LARGE_SHARE = 0.75, 0.5
"""Fruitless walks that end staged ones, for each round of effort, of supports below `LARGE` and
from there on."""
LONGER_AFTER, LONGER = 12, 4
"""Fruitless walks between two long annealings, and how much longer the next one takes."""
FEW_WALKS, GIVEN_WALKS = 2, 1
"""Fruitless walks that end staged ones where the first annealing has brought nothing, and where a
frontier was given, to which points beside it add."""
WARM = 0.15
"""The temperature of annealings under a budget alone: it is full before the last price, when only
swaps are left, of which colder walks make too few."""
ANNEALINGS, EVEN = 4, LONG._replace(moves=4 * LONG.moves, span=np.inf, most_work=8e9)
"""Annealings that fill a frontier for many points; each gives all prices the same share of work."""
SMALL_GAIN = 2e-3
"""Of the objective: a round that brings less takes back but half of the failures before it."""


class WalkEnd(NamedTuple):
    """Where a walk has ended: the support, after a descent in its pool, and the objective there."""

    support: Ints
    objective: float


class Agreement:
    """Count the walks that end at the best point, until these are enough.

    Parameters
    ----------
    needed : int
        Walks that must end there; one more where any has ended elsewhere.
    """

    def __init__(self, needed: int) -> None:
        self._needed, self._at = needed, b""
        self.clear()

    def clear(self) -> None:
        """Forget all walks."""
        self._agreed = self._n_ends = 0

    @property
    def is_reached(self) -> bool:
        """Whether enough walks agree."""
        # where some have ended elsewhere, more may be needed to find what is best
        return self._agreed >= self._needed + (self._agreed < self._n_ends)

    def count(self, end: WalkEnd, best: WalkEnd, same: float) -> None:
        """Count a walk, given the best point after it; what differs by less is the same."""
        self._n_ends += 1
        key = best.support.tobytes()
        if key != self._at:
            self._at, self._agreed = key, 0
        is_there = np.array_equal(end.support, best.support)
        self._agreed += is_there or abs(end.objective - best.objective) <= same


class Walks(ABC):
    """Rounds of walks, until they agree or bring nothing any more.

    Parameters
    ----------
    run : Run
    rounds : int
        Fruitless rounds in a row that end the walks, beyond the first round, which is always made;
        −1 for no round at all.

    Attributes
    ----------
    n_rounds : int
        Rounds made.
    """

    def __init__(self, run: Run, rounds: int) -> None:
        self.run, self.rounds = run, rounds
        self.n_rounds, self.fruitless = 0, -1

    @property
    def are_over(self) -> bool:
        """Whether nothing more is to be made."""
        return self.fruitless >= self.rounds

    def advance(self, best: Incumbent) -> Incumbent:
        """Make a round, and return the best point after it."""
        found = self._make_round(best)
        self._count(best.objective, found.objective)
        self.n_rounds += 1
        return found

    def _count(self, before: float, after: float) -> None:
        self.fruitless = 0 if after < before else self.fruitless + 1

    @abstractmethod
    def _make_round(self, best: Incumbent) -> Incumbent:
        """Make walks around the best point, and return the best point after them."""


class PoolWalks(Walks):
    """Walks on a pool of columns of the squared loss.

    Parameters
    ----------
    search : QuadraticSearch
        Makes pools, and settles what walks find.
    run : Run
    rng : Generator
        One number is drawn: every walk has random numbers of its own.
    rounds : int
    frontier : Frontier
        Takes up the best supports met.

    Attributes
    ----------
    n_each : int
        Walks of a round under a budget alone.
    """

    def __init__(
        self,
        search: QuadraticSearch,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier,
    ) -> None:
        super().__init__(run, rounds)
        self.search, self.frontier = search, frontier
        self._seed, self._n_made = int(rng.integers(2**63)), 0
        self.n_each = PAIR

    def _next_rng(self) -> np.random.Generator:
        self._n_made += 1
        return np.random.default_rng([self._seed, self._n_made])

    def _pool(self, best: Incumbent, is_narrow: bool = False) -> Pool:
        """Return the pool around the best point, with its whole Gram matrix."""
        search, n_nonzero = self.search, best.n_nonzero
        size_of = narrow_size if is_narrow else walk_size
        size = size_of(search.problem, search.options, n_nonzero)
        around = [] if is_narrow else self._around(size)
        pool = search.make_pool(best, self.run, size, around)
        pool.know_all()
        return pool

    def _around(self, size: int) -> list[Incumbent]:
        """Return the points on whose columns a pool of so many is made, besides the best one.

        They are those for higher prices, of many columns: what is good there is not in a pool of
        those that are good here.
        """
        search, (price, budget) = self.search, self.search.problem.sparsity
        if size >= search.problem.n_features or price == 0.0:
            return []
        sizes = {self.frontier.best_size(Sparsity(f * price, budget)) for f in NEAR}
        return [
            search.fit(self.frontier.support(k), 0)
            for k in sorted(sizes)
            if k in self.frontier and k > 0
        ]

    def _walker(self, pool: Pool, most: int, last: float) -> Walker:
        """Make a walker on a pool of its own, so that it can be on a thread of its own."""
        own = self.search.pool_like(pool, self.run)
        return Walker(own, most, last, self.run, self._next_rng())

    def _at_size(self, pool: Pool, heat: Temperatures) -> tuple[Walker, Schedule]:
        """Plan a walk from nothing at the size of the pool; at a price, at one near it."""
        (price, budget), size = pool.sparsity, pool.size
        if price == 0.0:
            walker = self._walker(pool, size, heat.last)
        else:
            walker = self._walker(pool, most_columns(size), min(heat.last, price))
            step = int(3.0 * walker.draw()) - 1
            size = max(1, min(budget, size + step * max(1, size // 20)))
        return walker, Schedule(kept_of(pool), *heat, 1.0, size)

    def _down(self, pool: Pool, pace: Pace) -> tuple[Walker, Schedule]:
        """Plan a walk from nothing down to the price."""
        most, last = most_columns(pool.size), last_price(pool)
        walker, first = self._walker(pool, most, last), max(first_price(pool), 2.0 * last)
        work = max(work_of(pool, pool.size, pace), LEAST_WORK)
        return walker, Schedule(kept_of(pool), first, last, work, pace.heat, most)

    def _again(self, pool: Pool, pace: Pace) -> tuple[Walker, Schedule]:
        """Plan a walk down to the price from the frontier's best support for a higher one."""
        most, last = most_columns(pool.size), last_price(pool)
        walker = self._walker(pool, most, last)
        share = walker.draw()
        above, start = last * SPAN**share, pool.support
        size = self.frontier.best_size(Sparsity(above, pool.sparsity.budget))
        if size in self.frontier and pool.has(self.frontier.support(size)):
            start = self.frontier.support(size)
        work = share * work_of(pool, pool.size, pace)
        return walker, Schedule(start, above, last, work, pace.heat, most)

    def _from_nothing(
        self, pool: Pool, heat: Temperatures, share: float = 1.0
    ) -> list[tuple[Walker, Schedule]]:
        """Two walks from nothing: at a size, or at a price one at a size and one down to it."""
        heat = heat._replace(work=max(share * heat.work, min(heat.work, LEAST_WORK)))
        if pool.sparsity.price == 0.0:
            return (
                [self._at_size(pool, heat) for _ in range(self.n_each)] if heat.last > 0.0 else []
            )
        pace = BRIEF if pool.size < PRICED else FIRST
        down = self._down(pool, pace._replace(moves=share * pace.moves))
        if not heat.last > 0.0:
            return [down]
        return [down, self._at_size(pool, heat)]

    def _in_threads(self, calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
        return in_threads(calls, self.search.options.n_jobs, self.run)


def kept_of(pool: Pool) -> Ints:
    """Return the kept units of a pool, with which walks from nothing begin."""
    return pool.units[pool.table.kept]


class IndependentWalks(PoolWalks):
    """Walks from nothing, two in a round: at the size of the best support, or down to the price.

    Where supports are so large that a walk from nothing ends far above the best, there are
    `StagedWalks`.
    """

    def __init__(
        self,
        search: QuadraticSearch,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier,
    ) -> None:
        super().__init__(search, run, rng, rounds, frontier)
        # among few units walks from nothing often meet in the same poor place, and cost next to
        # nothing
        more = MORE_AMONG_FEW if search.problem.n_units <= FEW_UNITS else 0
        self._ends = Agreement(AGREED + more + rounds // ROUNDS_EACH)

    @property
    def are_over(self) -> bool:
        """Whether enough walks agree, or nothing was found for long."""
        return super().are_over or self._ends.is_reached

    def _make_round(self, best: Incumbent) -> Incumbent:
        is_first = self.n_rounds == 0
        pool = self._pool(best, is_first)
        walks = self._from_nothing(pool, Temperatures.around(pool), SHORT if is_first else 1.0)
        if not walks:
            # nothing may leave the support
            self.fruitless = self.rounds
        calls = [partial(self._descend, walker, schedule) for walker, schedule in walks]
        for end in self._in_threads(calls):
            best = self._take(end, best)
        for walker, _ in walks:
            walker.offer_to(self.frontier, None)
        if is_first:
            # those on few columns say nothing of the others
            self._ends.clear()
        return best

    def _descend(self, walker: Walker, schedule: Schedule) -> WalkEnd:
        """Walk, and descend from the best support met."""
        pool = walker.pool
        walker.walk_from(*schedule)
        pool.load(walker.best(pool.sparsity.price)[1])
        pool.descend()
        return WalkEnd(pool.support, pool.objective + self.search.constant)

    def _take(self, end: WalkEnd, best: Incumbent) -> Incumbent:
        """Return the better of an end, settled, and the best point; count how many ended there."""
        same = SAME * abs(best.objective) + self.search.tolerance
        if end.objective < best.objective - same:
            best = self.search.settle_if_better(end.support, best, self.run)
        support = self.search.problem.occupied(best.w)
        self._ends.count(end, WalkEnd(support, best.objective), same)
        return best


class ModelWalks(Walks):
    """Walks on models of a loss, each followed until it ends on the loss itself.

    One sets out from the model at the best point, when there is a new one; all others from models
    at random parts of it, so that they agree only where the loss, too, has nothing else as good.

    Parameters
    ----------
    search : LocalSearch
        Makes models, and settles what walks find.
    run : Run
    rng : Generator
    rounds : int
    """

    def __init__(
        self, search: LocalSearch, run: Run, rng: np.random.Generator, rounds: int
    ) -> None:
        super().__init__(run, rounds)
        self.search, self._rng = search, rng
        self._ends, self._walked = Agreement(MODELS_AGREED + rounds // ROUNDS_EACH), b""

    @property
    def are_over(self) -> bool:
        """Whether enough walks agree, or nothing was found for long."""
        return super().are_over or self._ends.is_reached

    def _make_round(self, best: Incumbent) -> Incumbent:
        search, is_first = self.search, self.n_rounds == 0
        for _ in range(PAIR):
            is_away = best.support.tobytes() == self._walked
            self._walked = best.support.tobytes()
            end = search.walk(best, self.run, self._rng, is_away, is_first)
            if end.objective < best.objective - search.tolerance:
                best = search.settle(end, self.run)
            if is_away:
                here = WalkEnd(best.support, best.objective)
                self._ends.count(WalkEnd(end.support, end.objective), here, search.tolerance)
        return best


class StagedWalks(PoolWalks):
    """Annealings to large supports, which grow from what was good when small.

    A short one, and where it is better than a descent a long one, in stages of several walks; then
    two walks in a round that set out from the frontier's best supports for higher prices.
    """

    def __init__(
        self,
        search: QuadraticSearch,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier,
        size: int,
        is_given: bool,
    ) -> None:
        share = LARGE_SHARE if size >= LARGE else MEDIUM_SHARE
        super().__init__(search, run, rng, ceil(share * rounds), frontier)
        self._is_given = is_given
        if is_given:
            self.rounds = min(self.rounds, GIVEN_WALKS)
        heat = FIRST.heat if search.problem.sparsity.price > 0.0 else WARM
        self._next: Pace | None = None if is_given else FIRST._replace(heat=heat)
        self._long = LONG._replace(heat=heat)
        self._next_at = -1
        self._n_in_round = 0

    def _make_round(self, best: Incumbent) -> Incumbent:
        if self.n_rounds == 0 and self._next is not None:
            return self._begin(best)
        if self._next is not None and self.fruitless >= self._next_at:
            pace, self._next = self._next, self._next._replace(moves=LONGER * self._next.moves)
            self._next_at += LONGER_AFTER
            return self._anneal(best, pace)
        pool = self._pool(best)
        # by turns from nothing, where that comes near, and from the frontier
        if best.n_nonzero < LARGE and self.n_rounds % 2 == 0:
            walks = self._from_nothing(pool, Temperatures.around(pool))
        elif self._is_given:
            walks = [self._again(pool, AGAIN._replace(moves=0.5 * AGAIN.moves))]
        else:
            walks = [self._again(pool, AGAIN) for _ in range(PAIR)]
        return self._walk(best, pool, walks)

    def fill(self, best: Incumbent) -> None:
        """Anneal down to the best point's size, all sizes on the way alike."""
        for _ in range(ANNEALINGS):
            best = self._anneal(best, EVEN)

    def _begin(self, best: Incumbent) -> Incumbent:
        """Anneal briefly; where that is no better than a descent, long annealings hardly are."""
        assert self._next is not None
        pace, self._next = self._next, None
        found = self._anneal(best, pace)
        self._n_in_round = 0
        if found is not best:
            self._next = self._long
        else:
            self.rounds = min(self.rounds, FEW_WALKS)
        # the least effort makes but one walk more
        pool = self._pool(found)
        return self._walk(found, pool, [self._again(pool, AGAIN)])

    def _count(self, before: float, after: float) -> None:
        self.fruitless = count_fruitless(self.fruitless, before, after, self._n_in_round)
        self._n_in_round = 0

    def _anneal(self, best: Incumbent, pace: Pace) -> Incumbent:
        """Anneal at a pace, and return the best point then."""
        pool, most = self._pool(best), most_columns(best.n_nonzero)
        price = last_price(pool)
        self._note(pool)
        walkers = [self._walker(pool, most, price) for _ in range(pace.walks)]
        work, jobs = work_of(pool, best.n_nonzero, pace), self.search.options.n_jobs
        anneal(walkers, self.frontier, price, work, pace, jobs)
        self._n_in_round += 1
        return self._settle_frontier(best, pool)

    def _walk(
        self, best: Incumbent, pool: Pool, walks: Sequence[tuple[Walker, Schedule]]
    ) -> Incumbent:
        """Make walks, and return the best point then."""
        self._note(pool)
        self._in_threads([partial(walker.walk_from, *schedule) for walker, schedule in walks])
        price = last_price(pool)
        for walker, _ in walks:
            walker.offer_to(self.frontier, (price, SPAN * price))
        self._n_in_round += len(walks)
        return self._settle_frontier(best, pool)

    def _settle_frontier(self, best: Incumbent, pool: Pool) -> Incumbent:
        """Settle the frontier's best support; return the best point if that is not better."""
        before = best.objective - self.search.constant
        pool.move_to(self.frontier.support(self.frontier.best_size(pool.sparsity)))
        pool.descend()
        self._offer(pool)
        if not self.frontier.best(pool.sparsity) < before - self.search.tolerance:
            return best
        return self.search.settle_if_better(pool.support, best, self.run)

    def _note(self, pool: Pool) -> None:
        """Offer where the pool stands; begin anew if it lacks what was best.

        That was not better where it was settled, by rounding, and has left the pool since.
        """
        self._offer(pool)
        best = self.frontier.support(self.frontier.best_size(pool.sparsity))
        if not pool.has(best):
            self.frontier.clear()
            self._offer(pool)

    def _offer(self, pool: Pool) -> None:
        if pool.value < self.frontier.value(pool.size):
            self.frontier.offer(pool.value, pool.support)


def count_fruitless(fruitless: int, before: float, after: float, n_made: int = 1) -> int:
    """Count the walks in a row without improvement after some more; a small one halves it.

    On a large support nearly every round finds a little.
    """
    if not after < before:
        return fruitless + n_made
    return max(fruitless, 0) // 2 if before - after < SMALL_GAIN * abs(before) else 0
