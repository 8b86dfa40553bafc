"""The search of method "refit" for other losses on many columns: a few of them at a time.

Every local model of such a loss has weights of its own, so that nothing of X'DX can be kept from
one model to the next. On a pool of columns a model is cheap; a pass over all of X prices the
columns at the point that the pool leads to, and makes the next pool, until nothing improves.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import Sparsity
from blockl0.run import Incumbent, Run
from blockl0.search.local_search import LocalSearch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOL, POOL_FACTOR = 256, 12
"""Columns in a pool: this many, or so many supports if that is more."""
AS_MANY = 16
"""Re-fits of a check that takes the place of trials, which make about as many."""
MAX_POOLS = 50
"""Pools of one settling; each but the last lowers the objective."""


class PooledSearch(LocalSearch):
    """`LocalSearch` that settles and kicks on pools."""

    def _forget(self) -> None:
        super()._forget()
        # the last pool, of the support for which it was made
        self._last: tuple[bytes, Ints, LocalSearch] | None = None
        # supports of which it has been asked whether anything is left to try
        self._asked: set[bytes] = set()
        # supports from which neither models nor trials lead on
        self._stuck: set[bytes] = set()

    def _n_returns(self) -> int:
        return 0 if self._last is None else self._last[2]._n_returns()

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column until `size` are left; only the support is read."""
        units = self.problem.units
        support, columns = units.support(w), units.columns(units.support(w))
        return self._lift(self._on(support).shrink(w[columns], size), columns)

    def settle(self, incumbent: Incumbent, run: Run, can_try: bool = True) -> Incumbent:
        """Settle in a pool, price all columns there, until the next pool brings nothing."""
        for _ in range(MAX_POOLS):
            key = incumbent.support.tobytes()
            if run.seconds_left <= 0.0 or key in self._stuck:
                break
            pool, inside = self._pool(incumbent)
            here = replace(incumbent, w=incumbent.w[pool])
            # trials cost more than models: they come when pools bring nothing any more
            if can_try and self._can_do_without_bound():
                is_end = partial(self._is_end_lifted, pool=pool, run=run)
                found = inside.follow_local(here, run, is_end)
            else:
                found = inside.settle(here, run, can_try=False)
            is_stuck = not found.objective < incumbent.objective - self.tolerance
            if is_stuck and can_try and not self._is_end(incumbent, run):
                found = inside.settle(here, run)
            if not found.objective < incumbent.objective - self.tolerance:
                if can_try and run.seconds_left > 0.0:
                    self._stuck.add(key)
                break
            incumbent = replace(found, w=self._lift(found.w, pool))
            if self._is_known_end(incumbent):
                break
        return incumbent

    def _is_end_lifted(self, found: Incumbent, pool: Ints, run: Run) -> bool:
        """Whether a point of a pool is the end among all columns."""
        return self._is_end(replace(found, w=self._lift(found.w, pool)), run)

    def _is_known_end(self, incumbent: Incumbent) -> bool:
        """Whether a check has told already that no single change improves a point."""
        verdict = self._checked.get(incumbent.support.tobytes())
        incumbent.is_settled = verdict is not None and verdict.is_complete
        return incumbent.is_settled

    def _is_end(self, incumbent: Incumbent, run: Run) -> bool:
        """Whether bounds alone, or nearly, exclude all that trials would look at.

        A check is due at the end anyway, and trials that cannot succeed cost about as much. At a
        price they also look at pairs, of which no check tells.
        """
        key = incumbent.support.tobytes()
        if self.problem.sparsity.price > 0.0 or key in self._asked:
            return False
        self._asked.add(key)
        return self.check(incumbent, run, AS_MANY) is None and incumbent.is_settled

    def kick_round(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool = False
    ) -> Incumbent:
        """Kicks inside the pool around the incumbent; what is better settles among all columns."""
        pool, inside = self._pool(incumbent)
        found = inside.kick_round(replace(incumbent, w=incumbent.w[pool]), run, rng, is_narrow)
        if not found.objective < incumbent.objective:
            return incumbent
        return self.settle(replace(found, w=self._lift(found.w, pool)), run)

    def _pool(self, incumbent: Incumbent) -> tuple[Ints, LocalSearch]:
        """The columns with the best prices at a point, ascending, and the search of them."""
        key, units = incumbent.support.tobytes(), self.problem.units
        if self._last is None or self._last[0] != key:
            must = np.union1d(units.support(incumbent.w), self.problem.keep).astype(np.int64)
            size = min(self.problem.n_units, pool_size(must.size))
            prices = self.models.at(incumbent.w).prices()
            prices[must] = -np.inf
            pool = np.sort(np.argpartition(prices, size - 1)[:size])
            self._last = key, units.columns(pool), self._on(pool)
        return self._last[1:]

    def _on(self, chosen: Ints) -> LocalSearch:
        """The search of some units, the kept ones among them."""
        problem, columns = self.problem, self.problem.units.columns(chosen)
        price, budget = problem.sparsity
        bounds, costs = problem.bounds, problem.costs
        part = replace(
            problem, design=problem.design.take(columns), units=problem.units.take(chosen),
            keep=np.searchsorted(chosen, np.intersect1d(problem.keep, chosen)),
            sparsity=Sparsity(price, min(budget, chosen.size)),
            bounds=None if bounds is None else (bounds[0][columns], bounds[1][columns]),
            costs=None if costs is None else costs[chosen],
        )  # fmt: skip
        return PoolSearch(part, self.options, self.tally)

    def _lift(self, w: Floats, columns: Ints) -> Floats:
        lifted = self.problem.zero()
        lifted[columns] = w
        return lifted


class PoolSearch(LocalSearch):
    """The search inside a pool, where a check of all changes would be one of a few columns only."""

    def _can_do_without_bound(self) -> bool:
        return False

    def _change(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        found = self._trial(incumbent, run)
        return self._add_pair(incumbent, run) if found is None else found


def pool_size(n_support: int) -> int:
    """Columns in a pool around a support."""
    return max(POOL, POOL_FACTOR * n_support)
