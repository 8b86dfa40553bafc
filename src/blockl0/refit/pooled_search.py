"""The search of method "refit" for other losses on many columns: a few of them at a time.

Every local model of such a loss has weights of its own, so that nothing of X'DX can be kept from
one model to the next. On a pool of columns a model is cheap; a pass over all of X prices the
columns at the point that the pool leads to, and makes the next pool, until nothing improves.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import Problem
from blockl0.problem.sparsity import Sparsity
from blockl0.refit.local_search import LocalSearch
from blockl0.refit.quadratic_search import Incumbent, SearchOptions, Tally
from blockl0.refit.search import Search
from blockl0.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOL, POOL_FACTOR = 256, 12
"""Columns in a pool: this many, or so many supports if that is more."""
MAX_POOLS = 50
"""Pools of one settling; each but the last lowers the objective."""


class PooledSearch(Search):
    """`LocalSearch` on pools."""

    def __init__(
        self, problem: Problem, options: SearchOptions, tally: Tally | None = None
    ) -> None:
        super().__init__(problem, options, tally)
        self.whole = LocalSearch(problem, options, self.tally)
        self.tolerance, self.negligible = self.whole.tolerance, self.whole.negligible
        # the last pool, of the support for which it was made
        self._last: tuple[bytes, Ints, LocalSearch] | None = None

    def for_sparsity(self, sparsity: Sparsity) -> PooledSearch:
        """The search of the same data under another price and budget."""
        other = copy(self)
        other.whole, other._last = self.whole.for_sparsity(sparsity), None
        other.problem = other.whole.problem
        return other

    def start(self, w: Floats, run: Run | None = None) -> Incumbent:
        """The true minimizer on the support of w and the kept columns."""
        return self.whole.start(w)

    def scatter(self, rng: np.random.Generator, run: Run | None = None) -> Incumbent:
        """A start elsewhere, among all columns."""
        return self.whole.scatter(rng)

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column until `size` are left; only the support is read."""
        support = self.problem.units.support(w)
        return self._lift(self._on(support).shrink(w[support], size), support)

    def settle(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Settle in a pool, price all columns there, until the next pool brings nothing."""
        for _ in range(MAX_POOLS):
            if run.seconds_left <= 0.0:
                break
            pool, inside = self._pool(incumbent)
            here = replace(incumbent, w=incumbent.w[pool])
            # trials cost more than models: they come when pools bring nothing any more
            found = inside.settle(here, run, rng, can_try=False)
            if not found.objective < incumbent.objective - self.tolerance:
                found = inside.settle(here, run, rng)
            if not found.objective < incumbent.objective - self.tolerance:
                break
            incumbent = replace(found, w=self._lift(found.w, pool))
        return incumbent

    def check(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """A better point one change away, among all columns; else the incumbent is settled."""
        return self.whole.check(incumbent, run)

    def kick_round(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool = False
    ) -> Incumbent:
        """Kicks inside the pool around the incumbent; what is better settles among all columns."""
        pool, inside = self._pool(incumbent)
        found = inside.kick_round(replace(incumbent, w=incumbent.w[pool]), run, rng, is_narrow)
        if not found.objective < incumbent.objective:
            return incumbent
        return self.settle(replace(found, w=self._lift(found.w, pool)), run, rng)

    def _pool(self, incumbent: Incumbent) -> tuple[Ints, LocalSearch]:
        """The columns with the best prices at a point, ascending, and the search of them."""
        key = incumbent.support.tobytes()
        if self._last is None or self._last[0] != key:
            must = np.union1d(incumbent.support, self.problem.keep).astype(np.int64)
            size = min(self.problem.n_features, pool_size(must.size))
            prices = self.whole.models.at(incumbent.w).prices()
            prices[must] = -np.inf
            pool = np.sort(np.argpartition(prices, size - 1)[:size])
            self._last = key, pool, self._on(pool)
        return self._last[1:]

    def _on(self, columns: Ints) -> LocalSearch:
        """The search of some columns, the kept ones among them."""
        keep = np.searchsorted(columns, np.intersect1d(self.problem.keep, columns))
        price, budget = self.problem.sparsity
        part = replace(
            self.problem, design=self.problem.design.take(columns), keep=keep,
            sparsity=Sparsity(price, min(budget, columns.size)),
        )  # fmt: skip
        return LocalSearch(part, self.options, self.tally)

    def _lift(self, w: Floats, columns: Ints) -> Floats:
        lifted = self.problem.zero()
        lifted[columns] = w
        return lifted


def pool_size(n_support: int) -> int:
    """Columns in a pool around a support."""
    return max(POOL, POOL_FACTOR * n_support)
