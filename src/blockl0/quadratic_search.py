"""The search of method "refit" for the squared loss: pool, search, price, and kicks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.pool import Pool
from blockl0.problem import Problem
from blockl0.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KICKS = 12
"""Kicks in a round."""
POOL_FACTOR, KICK_FACTOR = 3, 6
"""Size of the pool in supports: between pricings, and for kicks."""
PRICE_CHUNK = 8192
"""Columns priced at a time, which bounds the memory beside X."""
RELATIVE_TOLERANCE = 1e-11
"""Of ½‖y‖²: smaller improvements are rounding."""
MAX_PRICINGS = 50
"""Rounds of pool, search and price before a search is given up; each lowers the objective."""


class SearchOptions(NamedTuple):
    """How a pool is searched; see `solve_refit`."""

    n_outside: int
    n_support: int
    n_random: int
    pool: int | None
    patience: int


@dataclass
class Incumbent:
    """The best point so far, in the shape `Run.record` wants.

    `prices` holds, for every column, the change of the objective by the best addition or swap that
    brings it in, once the point has been priced; `is_settled` says that none of them improves.
    """

    w: Floats
    objective: float
    n_nonzero: int
    iteration: int = 0
    prices: Floats | None = None
    is_settled: bool = False

    @property
    def support(self) -> Ints:
        """The columns with a nonzero coefficient."""
        return np.flatnonzero(self.w)


class QuadraticSearch:
    """The squared loss: pools, descents, kicks and pricing."""

    def __init__(self, problem: Problem, options: SearchOptions) -> None:
        self.problem = problem
        self.options = options
        self.sq_norms: Floats = problem.design.sq_norms(problem.sample_weight) + problem.ridge
        zero = np.zeros(problem.n_features)
        self.target = problem.gradient(zero)
        self.constant = problem.smooth(zero)
        self.tolerance = RELATIVE_TOLERANCE * self.constant

    def start(self, w: Floats) -> Incumbent:
        """The fit on the support of w and the kept columns, less what is not worth its price."""
        support = np.union1d(np.flatnonzero(w), self.problem.keep).astype(np.int64)
        if support.size == 0:
            return self.fit(support, 0)
        # pricing looks at what enters; removals, and columns that depend on others, are seen here
        pool = Pool(self.problem, support, self.target[support])
        pool.tolerance = self.tolerance
        pool.load(support)
        pool.descend()
        fits = self.fit(support, 0), self.fit(pool.support, 0)
        return min(fits, key=lambda fit: fit.objective)

    # pool ------------------------------------------------------------------------------------

    def make_pool(self, incumbent: Incumbent, factor: int = POOL_FACTOR) -> Pool:
        """The support, the kept columns, and the columns with the best prices."""
        n, budget = self.problem.n_features, self.problem.sparsity.budget
        must = np.union1d(incumbent.support, self.problem.keep).astype(np.int64)
        wanted = self.options.pool or max(factor * min(budget, max(must.size, 20)), 60)
        size = min(n, max(wanted, must.size + 1))
        prices = self.prices_at(incumbent) if incumbent.prices is None else incumbent.prices.copy()
        prices[must] = -np.inf
        columns = np.sort(np.argpartition(prices, size - 1)[:size]) if size < n else np.arange(n)
        pool = Pool(self.problem, columns, self.target[columns])
        pool.tolerance = self.tolerance
        pool.load(must)
        return pool

    # search ----------------------------------------------------------------------------------

    def search(self, pool: Pool, rng: np.random.Generator) -> None:
        """Descend by single moves, then by exact blocks, until `patience` blocks bring nothing."""
        pool.descend()
        failures = 0
        while failures < self.options.patience:
            block = self.choose_block(pool, rng)
            if block.size and pool.search_block(block):
                pool.descend()
                failures = 0
            else:
                failures += 1

    def choose_block(self, pool: Pool, rng: np.random.Generator) -> Ints:
        """The weakest of the support with the strongest outside it, and a few at random."""
        n_outside, n_support, n_random = self.options[:3]
        costs, gains = pool.drop_costs(), pool.add_gains()
        # noise of up to a factor four keeps successive blocks different
        costs = costs * rng.uniform(0.25, 1.0, costs.size)
        gains = gains * rng.uniform(0.25, 1.0, gains.size)
        weak = _first(costs, n_support)
        strong = _first(-gains, n_outside)
        chosen = np.union1d(weak[np.isfinite(costs[weak])], strong[np.isfinite(gains[strong])])
        rest = np.setdiff1d(np.flatnonzero(~pool.kept | pool.inside), chosen)
        more = rng.choice(rest, min(n_random, rest.size), replace=False)
        return np.union1d(chosen, more).astype(np.int64)

    def kick(self, pool: Pool, rng: np.random.Generator) -> bool:
        """Drop a part of the support, refill without half of it, search again; keep if better."""
        state, before = pool.save(), pool.objective
        movable = np.flatnonzero(pool.inside & ~pool.kept)
        if movable.size == 0:
            return False
        n_drop = max(1, int(movable.size * rng.uniform(0.1, 0.5)))
        dropped = rng.choice(movable, n_drop, replace=False)
        for j in dropped:
            pool.toggle(j)
        barred = np.zeros(pool.inside.size, dtype=np.bool_)
        barred[dropped[: max(1, n_drop // 2)]] = True
        pool.descend(barred)
        pool.descend()
        if pool.objective < before - self.tolerance:
            return True
        pool.restore(state)
        return False

    # price -----------------------------------------------------------------------------------

    def price(self, w: Floats, support: Ints) -> Floats:
        """Change of the objective by the best addition or swap that brings in each column, (n,).

        With u = X_S'x_i, K = inv(X_S'X_S + ridge) and W = K u, the pivot of column i is
        M_ii = ‖x_i‖² − u'W; swapping it for j changes the minimum by
        w_j²/2K_jj − (g_i − W_j w_j/K_jj)² / 2(M_ii + W_j²/K_jj). One pass over X, O(mns).
        """
        problem = self.problem
        budget, price = problem.sparsity.budget, problem.sparsity.price
        gradient = problem.gradient(w)
        X_S = problem.design.columns(support)
        weighted = X_S if problem.sample_weight is None else X_S * problem.sample_weight[:, None]
        H = weighted.T @ X_S
        H.flat[:: support.size + 1] += problem.ridge
        # unit diagonal: what counts as dependent must not depend on the user's units
        scale = np.sqrt(np.where(H.diagonal() > 0.0, H.diagonal(), 1.0))
        K = np.linalg.pinv(H / scale / scale[:, None], hermitian=True).astype(np.float64)
        K = K / scale / scale[:, None]
        free = ~np.isin(support, problem.keep)
        change = np.empty(problem.n_features)
        for start in range(0, change.size, PRICE_CHUNK):
            part = slice(start, min(start + PRICE_CHUNK, change.size))
            U = problem.design.cross(weighted, part)
            change[part] = _price_columns(
                U, K, w[support], gradient[part], self.sq_norms[part], free,
                price if support.size < budget else np.inf,
            )  # fmt: skip
        change[support] = np.inf
        return change

    def prices_at(self, incumbent: Incumbent) -> Floats:
        """The prices of all columns at an incumbent, (n,)."""
        price, budget = self.problem.sparsity
        if incumbent.support.size:
            return self.price(incumbent.w, incumbent.support)
        if budget == 0:
            return np.full(self.target.size, np.inf)
        safe = np.where(self.sq_norms > 0.0, self.sq_norms, np.inf)
        return price - 0.5 * self.target**2 / safe

    def settle(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Pool, search, price, until no column prices out."""
        for _ in range(MAX_PRICINGS):
            incumbent.prices = self.prices_at(incumbent)
            incumbent.is_settled = not np.any(incumbent.prices < -self.tolerance)
            if incumbent.is_settled or run.seconds_left <= 0.0:
                break
            pool = self.make_pool(incumbent)
            self.search(pool, rng)
            found = self.fit(pool.support, incumbent.iteration + 1)
            if not found.objective < incumbent.objective:
                break
            incumbent = found
        return incumbent

    def fit(self, support: Ints, iteration: int) -> Incumbent:
        """The incumbent on a support, its objective from the data."""
        w = self.problem.fit_on(support)
        return Incumbent(w, self.problem.objective(w), int(np.count_nonzero(w)), iteration)

    def kick_round(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Kicks on a wider pool around the incumbent; the best, settled, or the incumbent."""
        pool = self.make_pool(incumbent, factor=KICK_FACTOR)
        improved = False
        for _ in range(KICKS):
            improved |= self.kick(pool, rng)
            if run.seconds_left <= 0.0:
                break
        if not improved:
            return incumbent
        self.search(pool, rng)
        found = self.settle(self.fit(pool.support, incumbent.iteration), run, rng)
        return found if found.objective < incumbent.objective else incumbent


def _price_columns(
    U: Floats, K: Floats, w: Floats, g: Floats, sq: Floats, free: NDArray[np.bool_], price: float
) -> Floats:
    """The prices of a chunk of columns; U = X_S' X_chunk, (s, c)."""
    W = K @ U
    M = np.maximum(sq - np.einsum("ij,ij->j", U, W), 0.0)
    usable = M > 1e-9 * sq
    safe = np.where(usable, M, np.inf)
    best = price - 0.5 * g * g / safe
    diagonal = np.diag(K)[free]
    if diagonal.size:
        W, w = W[free], w[free]
        slope = g - W * (w / diagonal)[:, None]
        pivot = M + W * W / diagonal[:, None]
        swap = (0.5 * w * w / diagonal)[:, None] - 0.5 * slope * slope / np.maximum(
            pivot, 1e-9 * sq + 1e-300
        )
        best = np.minimum(best, swap.min(axis=0))
    best[~usable & (sq <= 0.0)] = np.inf
    return best


def _first(keys: Floats, count: int) -> Ints:
    """Positions of the `count` smallest keys."""
    return np.argpartition(keys, count)[:count] if count < keys.size else np.arange(keys.size)
