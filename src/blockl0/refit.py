"""Method "refit": a pool of columns, blocks with re-fitted outside, and pricing over all of X.

    pool:   the support and the columns that look best from it; its Gram matrix, its tableau
    search: additions, removals, swaps and exact blocks inside the pool, support always re-fitted
    price:  one pass over all columns: would any addition or swap improve? then it joins the pool

until no column prices out: the point is then 1-swap stationary over all columns, re-fit included.
Rounds of kicks (drop part of the support, refill differently, search again) diversify.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.pool import Pool
from blockl0.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.validate import check_choice, check_integer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EFFORTS = {"fast": 0, "balanced": 4, "thorough": 40}
"""Rounds of kicks by name."""
KICKS = 12
"""Kicks in a round."""
PRICE_CHUNK = 8192
"""Columns priced at a time, which bounds the memory beside X."""
RELATIVE_TOLERANCE = 1e-9
"""Of ½‖y‖²: smaller improvements are rounding."""
MAX_PRICINGS = 50


@dataclass
class Incumbent:
    """The best support so far with its fit, in the shape `Run.record` wants."""

    w: Floats
    objective: float
    support: Ints
    iteration: int = 0

    @property
    def n_nonzero(self) -> int:
        """Size of the support."""
        return self.support.size


class Search:
    """The squared-loss problem between pricings: scores, pools, descents and kicks."""

    def __init__(
        self, problem: Problem, block: tuple[int, int, int], pool: int | None, patience: int
    ) -> None:
        self.problem = problem
        self.block = block
        self.pool_size = pool
        self.patience = patience
        self.sq_norms: Floats = problem.design.sq_norms(problem.sample_weight) + problem.ridge
        zero = np.zeros(problem.n_features)
        self.target = problem.gradient(zero)
        self.constant = problem.smooth(zero)
        self.tolerance = RELATIVE_TOLERANCE * self.constant
        self.n_passes = 3
        """Passes over X so far: the norms, X'y, and y itself against its fit."""

    # pool ------------------------------------------------------------------------------------

    def make_pool(self, support: Ints, merit: Floats, factor: int = 3) -> Pool:
        """The support, the kept columns, and the columns of highest merit."""
        n, budget = self.problem.n_features, self.problem.sparsity.budget
        size = self.pool_size or max(factor * min(budget, max(support.size, 20)), 60)
        must = np.union1d(support, self.problem.keep).astype(np.int64)
        size = min(n, max(size, must.size))
        merit = merit.copy()
        merit[must] = np.inf
        columns = np.sort(np.argpartition(-merit, size - 1)[:size]) if size < n else np.arange(n)
        pool = Pool(self.problem, columns, self.target[columns])
        pool.tolerance = self.tolerance
        pool.load(must)
        return pool

    # search ----------------------------------------------------------------------------------

    def search(self, pool: Pool, rng: np.random.Generator) -> None:
        """Descend by single moves, then by exact blocks, until `patience` blocks bring nothing."""
        pool.descend()
        failures = 0
        while failures < self.patience:
            block = self.choose_block(pool, rng)
            if block.size and pool.search_block(block):
                pool.descend()
                failures = 0
            else:
                failures += 1

    def choose_block(self, pool: Pool, rng: np.random.Generator) -> Ints:
        """The weakest of the support with the strongest outside it, and a few at random."""
        n_outside, n_support, n_random = self.block
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
        K = np.linalg.pinv(H, hermitian=True) if support.size else H
        self.n_passes += 2
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

    def settle(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator
    ) -> tuple[Incumbent, Floats]:
        """Pool, search, price, until no column prices out; the point and the last prices."""
        merit = self.target**2 / np.where(self.sq_norms > 0.0, self.sq_norms, np.inf)
        change = -merit
        for _ in range(MAX_PRICINGS):
            if incumbent.support.size:
                change = self.price(incumbent.w, incumbent.support)
                if not np.any(change < -self.tolerance):
                    break
            pool = self.make_pool(incumbent.support, -change)
            self.search(pool, rng)
            found = self.fit(pool.support, incumbent.iteration + 1)
            improved = found.objective < incumbent.objective - self.tolerance
            if found.objective <= incumbent.objective:
                incumbent = found
            if not improved or run.seconds_left <= 0.0:
                break
        return incumbent, change

    def fit(self, support: Ints, iteration: int) -> Incumbent:
        """The incumbent on a support, its objective from the data."""
        w = self.problem.fit_on(support)
        return Incumbent(w, self.problem.objective(w), np.flatnonzero(w), iteration)


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


def solve_refit(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    effort: str | int = "balanced",
    block: tuple[int, int, int] = (8, 8, 2),
    pool: int | None = None,
    patience: int | None = None,
) -> Result:
    """Pool, search, price; then rounds of kicks, each followed by pricing, keeping the best.

    Parameters
    ----------
    problem : Problem
        Squared loss.
    run : Run
    init : ndarray (n,), optional
        Its support is the first one.
    rng : Generator
    effort : "fast", "balanced", "thorough" or int
        Rounds of kicks. A run with more effort goes through the same rounds first, so for the same
        seed it is never worse.
    block : (int, int, int)
        Columns of an exact block: from outside the support, from the support, at random.
    pool : int, optional
        Columns in the pool; a few times the support by default.
    patience : int, optional
        Blocks without improvement that end a search; by default 1 without kicks and 4 with them.
    """
    if isinstance(effort, str):
        check_choice("effort", effort, tuple(EFFORTS))
        rounds = EFFORTS[effort]
    else:
        rounds = check_integer("effort", effort, low=0)
    patience = 2 if patience is None else check_integer("patience", patience, low=0)
    search = Search(problem, block, pool, patience)
    first = np.flatnonzero(init) if init is not None else problem.keep
    incumbent = search.fit(np.union1d(first, problem.keep).astype(np.int64), 0)
    status: Status | None = None
    try:
        incumbent, change = search.settle(incumbent, run, rng)
        status = run.record(incumbent)
        for _ in range(rounds):
            if status is not None:
                break
            found = kick_round(search, incumbent, change, run, rng)
            if found is not None:
                incumbent, change = found
            incumbent.iteration += 1
            status = run.record(incumbent)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return run.result(incumbent.w, status or Status.CONVERGED, incumbent.iteration)


def kick_round(
    search: Search, incumbent: Incumbent, change: Floats, run: Run, rng: np.random.Generator
) -> Any:
    """Kicks on a wider pool around the incumbent; settle the best. None if nothing better."""
    pool = search.make_pool(incumbent.support, -change, factor=6)
    improved = False
    for _ in range(KICKS):
        improved |= search.kick(pool, rng)
        if run.seconds_left <= 0.0:
            break
    if not improved:
        return None
    search.search(pool, rng)
    found, change = search.settle(search.fit(pool.support, incumbent.iteration), run, rng)
    return (found, change) if found.objective < incumbent.objective else None
