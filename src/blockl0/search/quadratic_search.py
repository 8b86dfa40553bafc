"""The search of method "refit" for the squared loss: pool, search, price, and walks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.data.gram_rows import GramRows
from blockl0.data.passes import PassBatcher
from blockl0.lazy import lazy
from blockl0.moves.pool import Pool, first_of
from blockl0.moves.pricing import (
    Priced,
    doubtful_columns,
    price_first,
    price_of_one,
    price_supports,
    stands_alone,
)
from blockl0.moves.single_moves import UnitMoves
from blockl0.moves.tableau import CLEAR, UnitRules
from blockl0.moves.unit_table import UnitTable
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import rounding_of
from blockl0.problem.problem import Problem, Sparsity
from blockl0.run import Incumbent, Run, Tally
from blockl0.search.frontier import Frontier
from blockl0.search.pool_sizes import (
    FEW_COLUMNS,
    LARGEST_POOL,
    SearchOptions,
    narrow_size,
    pool_size,
    walk_size,
)
from blockl0.search.price_memory import PriceMemory
from blockl0.search.search_base import MOST_TOGETHER, Search
from blockl0.search.settled import fit_with_kept, prove, prove_by_subsets
from blockl0.search.walks import FULL, PRICED, IndependentWalks, StagedWalks, Walks
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STAGES = 4
"""Parts in which a large X is first asked for its columns, each priced at what the last found."""
RELATIVE_TOLERANCE = 1e-11
"""Of ½‖y‖²: smaller improvements are rounding."""
MOST_REFITS = 400
"""Fits of moves that only the columns themselves show, before the question is left open."""
MAX_PRICINGS = 50
"""Rounds of pool, search and price before a search is given up; each lowers the objective."""


class QuadraticSearch(Search):
    """The squared loss: pools, descents, walks and pricing.

    Every quadratic problem is searched: single columns or groups of them, at one price or with
    costs, within bounds or not, with one response or several. Supports are units of the problem,
    ascending. Of single columns at one price, without bounds and with one response, `settle` tells
    by prices that no single change improves; of all others `check` does, which fits on the columns
    themselves whatever may be better.

    Attributes
    ----------
    proves : bool
        Whether a point is settled also where only the columns themselves can tell, and a problem of
        few columns solved to proven optimality. A model of another loss is worth neither.
    """

    def __init__(
        self,
        problem: Problem,
        options: SearchOptions,
        tally: Tally | None = None,
        proves: bool = False,
        like: QuadraticSearch | None = None,
    ) -> None:
        super().__init__(problem, options, tally)
        self.certifies = proves
        self.proves = proves and problem.is_plain and problem.n_features <= FEW_COLUMNS
        self.fits = make_fits(problem)
        self.sq_norms: Floats = problem.sq_norms if like is None else like.sq_norms
        self.target, self.constant = problem.gradient_at_zero, problem.smooth_at_zero
        self.tolerance = self.negligible = RELATIVE_TOLERANCE * self.constant
        self.tally.n_passes += 2 if like is None else 1
        self._whole = None if like is None else self._like_whole_of(like)
        self._last: Pool | None = None  # the last pool that was not all of X
        # where searches run side by side, they ask for prices together
        self._batcher: PassBatcher | None = None
        self._memory = PriceMemory(max(LARGEST_POOL, pool_size(problem, options)))
        self._fitted: tuple[bytes, Incumbent] | None = None  # the last support, and its fit
        # supports that have no hidden move, with the columns that were asked for
        self._without_move: set[tuple[Sparsity, bytes, bytes]] = set()
        self._blocks: UnitTable | None = None
        self._checked: set[bytes] = set()  # points of which no single change is better
        if (checkpoint := problem.shared.get("checkpoint")) is not None:
            checkpoint.fill(self._memory)

    @lazy
    def _sizes(self) -> Ints:
        """The columns of each unit."""
        return np.bincount(self.problem.units.each(np.arange(self.problem.n_features)))

    def for_sparsity(self, sparsity: Sparsity) -> QuadraticSearch:
        """Return the search of the same data under another price and budget; share all else."""
        other = copy(self)
        other.problem = replace(self.problem, sparsity=sparsity)
        other._last = other._fitted = None
        other._checked = set()
        other._whole = other._like_whole_of(self)
        return other

    def release(self) -> None:
        """Let go of the last pool: of many points of a path they would take all memory."""
        if self.problem.design.n_read is not None:
            self._last = None

    def together(self, most_bytes: float) -> tuple[QuadraticSearch, int]:
        """Return a search that batches its prices with others, and how many fit into memory."""
        if self.problem.design.n_read is None or not self.problem.is_plain:
            return super().together(most_bytes)
        other = copy(self)
        other._batcher = PassBatcher(self.price)
        p = pool_size(self.problem, self.options)
        each = 8.0 * p * (self.problem.n_samples + 2 * p)
        return other, max(1, min(MOST_TOGETHER, int(most_bytes / each)))

    def run_together(
        self, tasks: Sequence[Callable[[], Any]], interrupt: Callable[[], Any]
    ) -> list[Any]:
        """Run tasks and return their results; prices requested together are one product with X."""
        if self._batcher is None:
            return super().run_together(tasks, interrupt)
        return self._batcher.run(tasks, interrupt)

    def for_target(self, y: Floats) -> QuadraticSearch:
        """Return the search of the same columns for another target, with a tally of its own.

        It shares what does not depend on y: lengths of columns, and where X is one pool, the rows
        of the Gram matrix that either search has made.
        """
        problem = replace(self.problem, y=y)
        return QuadraticSearch(problem, self.options, proves=self.certifies, like=self)

    def _like_whole_of(self, other: QuadraticSearch) -> Pool | None:
        """Make a pool of all columns on the other search's Gram matrix, if X is one pool here."""
        if pool_size(self.problem, self.options) < self.problem.n_features:
            return None
        whole = other.whole_pool()
        return self._pool_of(whole.units, like=whole)

    def start(self, w: Floats, run: Run | None = None) -> Incumbent:
        """Fit the support of w and the kept units, less what is not worth its price."""
        support = self.problem.occupied(w)
        if support.size == 0:
            return self.first(run)
        # pricing looks at what enters; removals, and columns that depend on others, are seen here
        pool = self._pool_of(support)
        pool.run = run
        pool.load(support)
        pool.descend()
        fits = self.fit(support, 0), self.fit(pool.support, 0)
        return min(fits, key=lambda fit: fit.objective)

    def first(self, run: Run | None = None) -> Incumbent:
        """Start from nothing, most of the way on few columns, where moves are cheap.

        Of many columns those that matter late do not stand out at first: the support is then grown
        in stages, with new prices before each. Where there are few, the end is the optimum.
        """
        point = Incumbent(self.problem.zero(), self.constant, 0)
        price, budget = self.problem.sparsity
        # a price alone stops by itself
        is_staged = budget <= pool_size(self.problem, self.options) < self.problem.n_features
        stages = range(1, STAGES + 1) if is_staged else [STAGES]
        for part in [-(-budget * stage // STAGES) for stage in stages]:
            search = self if part == budget else self.for_sparsity(Sparsity(price, part))
            pool = search.make_pool(point, run, self._narrow_size(point))
            pool.descend()
            point = self.fit(pool.support, 0)
        if not self.proves or run is None:
            return point
        point.iteration = 1
        return self._prove(point, run)

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed unit, re-fitted, until `size` are left; kept ones stay."""
        support = self.problem.units.support(w)
        problem = replace(self.problem, sparsity=Sparsity(0.0, support.size))
        pool = Pool(problem, support, self.target, self.sq_norms, self.tolerance)
        pool.load(support)
        while pool.size > size and pool.movable.size:
            movable = pool.movable
            pool.toggle(movable[[np.argmin(pool.drop_costs(movable))]])
        return self.fits.coef_on(self.problem.units.columns(pool.support))

    # pool ------------------------------------------------------------------------------------

    def _narrow_size(self, incumbent: Incumbent) -> int:
        return narrow_size(self.problem, self.options, incumbent.n_nonzero)

    def whole_pool(self) -> Pool:
        """Make the pool of all units; its Gram matrix, in time, is one pass."""
        if self._whole is None:
            self._whole = self._pool_of(np.arange(self.problem.n_units))
            self.tally.n_passes += 1
        return self._whole

    def make_pool(
        self,
        incumbent: Incumbent,
        run: Run | None = None,
        most: int | None = None,
        around: Sequence[Incumbent] = (),
    ) -> Pool:
        """Load the support, the kept units, and the units with the best prices.

        They have at most `most` columns, or one unit more, unless the support needs more; by
        default `pool_size`. Other points may be given, whose columns and prices count as those of
        the incumbent do. The pool reads the clock of the run.
        """
        n, must = self.problem.n_features, self.problem.occupied(incumbent.w)
        most = pool_size(self.problem, self.options) if most is None else most
        n_must = self.problem.units.columns(must).size
        size = min(n, max(most, n_must + 1))
        if size == n:
            pool = self.whole_pool()
        else:
            prices = self.prices_at(incumbent).copy()
            for point in around:
                np.minimum(prices, self.prices_at(point), out=prices)
                prices[self.problem.occupied(point.w)] = -np.inf
            prices[must] = -np.inf
            inside = np.flatnonzero(prices == -np.inf)
            size = max(size, self.problem.units.columns(inside).size)
            pool = self._pool_at_hand(np.sort(self._best_units(prices, size)))
            # a product of all is quicker than many of a few, and needs no copy of the columns
            if size <= walk_size(self.problem, self.options, n_must):
                pool.know_all()
        pool.run = run  # a pool of all columns may be older than the run
        if not pool.is_at(must):
            pool.load(must)
        return pool

    def _best_units(self, prices: Floats, size: int) -> Ints:
        """Return the units of the lowest prices, with so many columns."""
        if self.problem.units is COLUMNS:
            return first_of(prices, size)
        order = np.argsort(prices, kind="stable")
        return order[: int(np.searchsorted(np.cumsum(self._sizes[order]), size)) + 1]

    def _pool_at_hand(self, units: Ints) -> Pool:
        """Return the last pool if it is of these units: rounds at one point share its products."""
        if self._last is None or not np.array_equal(self._last.units, units):
            self._last = self._pool_of(units)
        return self._last

    def _pool_of(self, units: Ints, like: Pool | None = None) -> Pool:
        return Pool(self.problem, units, self.target, self.sq_norms, self.tolerance, like)

    # price -----------------------------------------------------------------------------------

    def prices_at(self, incumbent: Incumbent) -> Floats:
        """Return the prices of all units at an incumbent, computed once."""
        if incumbent.prices is None:
            incumbent.doubtful = np.empty(0, dtype=np.int64)
            if not self.problem.is_plain:
                incumbent.prices = self._unit_prices(incumbent)
            elif incumbent.support.size:
                priced = self._priced(incumbent)
                of_one = price_of_one(self.problem, incumbent.support.size)
                incumbent.prices, incumbent.doubtful = priced.change(of_one), priced.doubtful
            else:
                price, budget = self.problem.sparsity
                incumbent.prices = price_first(self.sq_norms, self.target, price, budget)
        return incumbent.prices

    def _unit_prices(self, incumbent: Incumbent) -> Floats:
        """Compute the prices of all units, from rows of the Gram matrix that are kept."""
        problem = self.problem
        if self._blocks is None:
            gram = GramRows(problem.design, problem.weights, problem.ridge, self.tally)
            slopes = self.target.reshape(len(self.target), -1)
            self._blocks = UnitTable(gram, -slopes, UnitRules.of(problem), self.tolerance)
        # what does not depend on price and budget is made once
        _, table = self._blocks.own, copy(self._blocks)
        table.rules = table.rules._replace(sparsity=problem.sparsity)
        self.tally.n_passes += 1
        changes = table.changes(table.base(problem.occupied(incumbent.w)))
        return changes.best_entries()

    def _priced(self, incumbent: Incumbent) -> Priced:
        """Return what columns would bring to a support; by a pass, unless that is remembered."""
        support = incumbent.support
        found = self._memory.get(support, self.problem.n_features)
        if found is None:
            point = incumbent.w, support
            found = (
                self.price([point])[0] if self._batcher is None else self._batcher.request(point)
            )
            self._memory.put(support, found)
        return found

    def price(self, points: Sequence[tuple[Floats, Ints]]) -> list[Priced]:
        """Compute what columns would bring to some supports, by one pass."""
        self.tally.n_passes += 1
        return price_supports(self.problem, self.sq_norms, points)

    def settle(self, incumbent: Incumbent, run: Run, ceiling: float = np.inf) -> Incumbent:
        """Pool, search, price, until no column prices out; few columns are searched completely.

        A point that does not end below the ceiling is of no interest and may not be settled.
        """
        if incumbent.is_proven:
            return incumbent
        for _ in range(MAX_PRICINGS):
            if run.seconds_left <= 0.0:
                break
            pool = self.make_pool(incumbent, run)
            pool.descend()
            found = self.fit(pool.support, incumbent.iteration + 1)
            if found.objective > incumbent.objective:
                break
            stalled = found.objective == incumbent.objective
            incumbent = found
            if self.proves:
                incumbent = self._prove(incumbent, run)
                if incumbent.is_proven:
                    return incumbent
                continue
            if self.is_priced_out(found, pool):
                return self.settle_hidden(incumbent, run, ceiling)
            if stalled:
                break
        if not self.problem.is_plain:
            return incumbent
        if self.proves:
            incumbent = self._prove(incumbent, run)
            if incumbent.is_proven:
                return incumbent
        # the pool has lost its way in rounding: nothing that it says is about this point
        incumbent.doubtful = self._all_outside(incumbent)
        return self.settle_hidden(incumbent, run, ceiling)

    def _prove(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Find the optimum on the Gram matrix of the pool of all columns, if there is one.

        A proof that was given up is not begun again: the columns are then searched as many are.
        """
        gram = None if self._whole is None else self._whole.whole_gram()
        found = prove(self.problem, incumbent, run, gram)
        self.proves = found.is_proven
        return found

    def is_priced_out(self, incumbent: Incumbent, pool: Pool) -> bool:
        """Whether no single move over all columns improves a point that has none in its pool."""
        pool.refresh()
        self.tally.drift = max(self.tally.drift, pool.drift)
        if not self.problem.is_plain:
            outside = np.ones(self.problem.n_units, dtype=np.bool_)
            outside[pool.units] = False
            return not (
                outside.any() and np.any(self.prices_at(incumbent)[outside] < -self.tolerance)
            )
        if pool.size != incumbent.n_nonzero:
            # the pool cannot hold this support: nothing that it says is about it
            incumbent.doubtful = self._all_outside(incumbent)
            return True
        if pool is self._whole:
            pivots, members = pool.table.border[kernels.PIVOT], pool.members
            is_apart = np.all(pivots[members] * self.sq_norms[members] * CLEAR > -1.0)
            incumbent.prices = pool.prices()
            incumbent.doubtful = doubtful_columns(self.sq_norms, pivots, members, bool(is_apart))
        return not np.any(self.prices_at(incumbent) < -self.tolerance)

    def settle_hidden(self, incumbent: Incumbent, run: Run, ceiling: float = np.inf) -> Incumbent:
        """Make the moves that only the columns themselves show; then the point is settled."""
        doubtful = incumbent.doubtful
        if not self.problem.is_plain:
            return incumbent
        if doubtful is None or doubtful.size == 0:
            incumbent.is_settled = True
            return incumbent
        if not self.certifies or ceiling <= incumbent.objective:
            return incumbent
        for _ in range(MAX_PRICINGS):
            if run.seconds_left <= 0.0:
                break
            support = self.problem.occupied(incumbent.w)
            # by a digest, since it may be nearly all columns
            those = blake2b(doubtful.tobytes(), digest_size=16).digest()
            asked = self.problem.sparsity, support.tobytes(), those
            if asked in self._without_move:
                incumbent.is_settled = True
                break
            moves = UnitMoves(self.problem, self.fits, entering=doubtful)
            least = self.tolerance + rounding_of(self.problem, incumbent.w)
            verdict = moves.check(
                incumbent.w, incumbent.objective, least, run, most_refits=MOST_REFITS, units=support
            )
            if verdict.better is None:
                incumbent.is_settled = verdict.is_complete
                if verdict.is_complete:
                    self._without_move.add(asked)
                break
            incumbent = self.fit(self.problem.occupied(verdict.better), incumbent.iteration + 1)
            # the new support is one that the tableau cannot see
            doubtful = self._all_outside(incumbent)
        return incumbent

    def _all_outside(self, incumbent: Incumbent) -> Ints:
        """Return the columns outside the support that are not zero."""
        return np.setdiff1d(np.flatnonzero(self.sq_norms > 0.0), incumbent.support)

    def fit(self, support: Ints, iteration: int) -> Incumbent:
        """Return the incumbent on a support and the kept units, its objective from the data."""
        key = support.tobytes()
        if self._fitted is None or self._fitted[0] != key:
            point = fit_with_kept(self.problem, self.fits, support, self.sq_norms, iteration)
            self._fitted = key, point
        point = self._fitted[1]
        return Incumbent(point.w, point.objective, point.n_nonzero, iteration)

    def is_alone(self, incumbent: Incumbent) -> bool:
        """Whether nothing near a settled point is nearly as good, see `stands_alone`."""
        if not incumbent.is_settled or incumbent.prices is None or not self.problem.is_plain:
            return False
        least = float(incumbent.prices.min())
        total = self.problem.total_weight
        return stands_alone(self.problem, total, incumbent.support, incumbent.objective, least)

    def exhaust(self, incumbent: Incumbent, run: Run) -> tuple[Incumbent, bool]:
        """Return the best of all subsets, if there are few units, and whether all were searched."""
        if self.problem.is_plain:
            return incumbent, False
        return prove_by_subsets(self.problem, self.fits, incumbent, self.tolerance, run)

    def check(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """Find a better point one change of a unit away; else the incumbent is settled."""
        if self.problem.is_plain or incumbent.is_settled or not self.certifies:
            return None
        key = incumbent.w.tobytes()
        if key in self._checked:
            incumbent.is_settled = True
            return None
        verdict = UnitMoves(self.problem, self.fits).check(
            incumbent.w, incumbent.objective, self.tolerance, run
        )
        if verdict.is_complete:
            self._checked.add(key)
        incumbent.is_settled = verdict.is_complete
        if verdict.better is None:
            return None
        found = Incumbent.at(self.problem, verdict.better, incumbent.iteration + 1)
        return found if found.objective < incumbent.objective else None

    # walks -----------------------------------------------------------------------------------

    @property
    def has_frontier(self) -> bool:
        """Whether supports of one size compare alike at every price: not where units differ."""
        return self.problem.costs is None

    def walks(
        self,
        best: Incumbent,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier | None = None,
    ) -> Walks:
        """Independent walks; to large supports, or with a frontier that was given, staged ones."""
        is_given, price = frontier is not None, self.problem.sparsity.price
        if is_given or best.n_nonzero >= (PRICED if price > 0.0 else FULL):
            size = best.n_nonzero
            return StagedWalks(self, run, rng, rounds, frontier or Frontier(), size, is_given)
        return IndependentWalks(self, run, rng, rounds, Frontier())

    def fill(self, frontier: Frontier, best: Incumbent, run: Run, rng: np.random.Generator) -> None:
        """Fill a frontier with supports of all sizes."""
        StagedWalks(self, run, rng, 0, frontier, best.n_nonzero, is_given=True).fill(best)

    def pool_like(self, pool: Pool, run: Run) -> Pool:
        """Make a pool on the same Gram matrix, that another thread may change."""
        other = self._pool_of(pool.units, pool)
        other.run = run
        return other

    def settle_if_better(self, support: Ints, incumbent: Incumbent, run: Run) -> Incumbent:
        """Settle from a support; return the incumbent where that ends no lower."""
        found = self.settle(self.fit(support, incumbent.iteration), run, incumbent.objective)
        return found if found.objective < incumbent.objective else incumbent
