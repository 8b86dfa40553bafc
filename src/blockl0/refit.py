"""Method "refit": a pool of columns, blocks with re-fitted outside, and pricing over all of X.

    pool:   the support and the columns that look best from it; its Gram matrix, its tableau
    search: additions, removals, swaps and exact blocks inside the pool, support always re-fitted
    price:  one pass over all columns: would any addition or swap improve? then it joins the pool

until no column prices out: the point is then 1-swap stationary over all columns, re-fit included.
Rounds of kicks (drop part of the support, refill differently, search again) diversify.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate import Certificate
from blockl0.losses import LOSSES
from blockl0.newton import newton_on
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
POOL_FACTOR, KICK_FACTOR = 3, 6
"""Size of the pool in supports: between pricings, and for kicks."""
PRICE_CHUNK = 8192
"""Columns priced at a time, which bounds the memory beside X."""
RELATIVE_TOLERANCE = 1e-9
"""Of ½‖y‖²: smaller improvements are rounding."""
MAX_PRICINGS = 50
MAX_MODELS = 50
"""Local models of a loss before its search is given up; each lowers the objective."""
LEAST_CURVATURE = 1e-3
"""Share of the curvature bound below which a local model would be too flat to be trusted."""


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
        """The fit on the support of w and the kept columns."""
        support = np.union1d(np.flatnonzero(w), self.problem.keep).astype(np.int64)
        return self.fit(support, 0)

    # pool ------------------------------------------------------------------------------------

    def make_pool(self, incumbent: Incumbent, factor: int = POOL_FACTOR) -> Pool:
        """The support, the kept columns, and the columns with the best prices."""
        n, budget = self.problem.n_features, self.problem.sparsity.budget
        must = np.union1d(incumbent.support, self.problem.keep).astype(np.int64)
        wanted = self.options.pool or max(factor * min(budget, max(must.size, 20)), 60)
        size = min(n, max(wanted, must.size))
        prices = np.array(incumbent.prices)
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
        K: Floats = np.linalg.pinv(H, hermitian=True).astype(np.float64, copy=False)
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

    def settle(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Pool, search, price, until no column prices out."""
        for _ in range(MAX_PRICINGS):
            if incumbent.support.size:
                incumbent.prices = self.price(incumbent.w, incumbent.support)
            else:
                safe = np.where(self.sq_norms > 0.0, self.sq_norms, np.inf)
                incumbent.prices = self.problem.sparsity.price - 0.5 * self.target**2 / safe
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


class LocalSearch:
    """Other losses: search the quadratic model at the incumbent, polish on the true objective.

    At w the model is a weighted squared loss: weights D, the curvatures of the loss at eta = Xw,
    and target eta − slope/D. A support that does not lower the true objective is rejected; then the
    global majorizer, whose minimizer always does, has the last word where there is one.
    """

    def __init__(self, problem: Problem, options: SearchOptions) -> None:
        self.problem = problem
        self.options = options

    def start(self, w: Floats) -> Incumbent:
        """The true minimizer on the support of w and the kept columns."""
        support = np.union1d(np.flatnonzero(w), self.problem.keep).astype(np.int64)
        return self._polish(w, support, 0)

    def settle(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Model, search, polish, until neither the local nor the global model finds better."""
        is_global = False
        for _ in range(MAX_MODELS):
            if run.seconds_left <= 0.0:
                break
            search = QuadraticSearch(self._model(incumbent.w, is_global), self.options)
            found = search.settle(search.start(incumbent.w), run, rng)
            found = self._polish(found.w, found.support, incumbent.iteration + 1)
            if found.objective < incumbent.objective - self._tolerance(incumbent):
                incumbent, is_global = found, False
            elif is_global or not np.isfinite(self.problem.loss.curvature_bound):
                break
            else:
                is_global = True
        return incumbent

    def kick_round(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Kicks on the local model; what they find counts only by its true objective."""
        search = QuadraticSearch(self._model(incumbent.w), self.options)
        here = search.settle(search.start(incumbent.w), run, rng)
        found = search.kick_round(here, run, rng)
        found = self._polish(found.w, found.support, incumbent.iteration)
        if not found.objective < incumbent.objective - self._tolerance(incumbent):
            return incumbent
        return self.settle(found, run, rng)

    def _tolerance(self, incumbent: Incumbent) -> float:
        return RELATIVE_TOLERANCE * abs(incumbent.objective)

    def _model(self, w: Floats, is_global: bool = False) -> Problem:
        problem = self.problem
        eta = problem.design.matvec(w)
        curvature, bound = problem.loss.curvature(eta, problem.y), problem.loss.curvature_bound
        if is_global:
            curvature = np.full_like(eta, bound)
        ceiling = bound if np.isfinite(bound) else max(float(curvature.max()), 1e-300)
        curvature = np.maximum(curvature, LEAST_CURVATURE * ceiling)
        target = eta - problem.loss.gradient(eta, problem.y) / curvature
        weights = curvature if problem.sample_weight is None else curvature * problem.sample_weight
        return replace(problem, y=target, loss=LOSSES["squared"], sample_weight=weights)

    def _polish(self, w: Floats, support: Ints, iteration: int) -> Incumbent:
        w = newton_on(self.problem, w, support)
        return Incumbent(w, self.problem.objective(w), int(np.count_nonzero(w)), iteration)


def solve_refit(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    effort: str | int = "balanced",
    block: tuple[int, int, int] = (8, 8, 2),
    pool: int | None = None,
    patience: int = 2,
) -> Result:
    """Pool, search, price; then rounds of kicks, each followed by pricing, keeping the best.

    Parameters
    ----------
    problem : Problem
        A loss other than the squared one is searched through its local quadratic model, and every
        step is verified on the true objective.
    run : Run
    init : ndarray (n,), optional
        Its support is the first one.
    rng : Generator
    effort : "fast", "balanced", "thorough" or int
        Rounds of kicks: 0, 4, 40, or as given. A run with more effort goes through the same rounds
        first, so for the same seed it is never worse.
    block : (int, int, int)
        Columns of an exact block: from outside the support, from the support, at random.
    pool : int, optional
        Columns in the pool; a few times the support by default.
    patience : int
        Blocks without improvement that end a search.
    """
    rounds = _rounds(effort)
    options = SearchOptions(
        *(check_integer("block", size, low=0) for size in block),
        pool=None if pool is None else check_integer("pool", pool, low=1),
        patience=check_integer("patience", patience, low=0),
    )
    search = (QuadraticSearch if problem.is_quadratic else LocalSearch)(problem, options)
    incumbent = search.start(np.zeros(problem.n_features) if init is None else init)
    status: Status | None = None
    try:
        incumbent = search.settle(incumbent, run, rng)
        status = run.record(incumbent)
        for _ in range(rounds):
            if status is not None:
                break
            incumbent = search.kick_round(incumbent, run, rng)
            incumbent.iteration += 1
            status = run.record(incumbent)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return run.result(
        incumbent.w,
        status or Status.CONVERGED,
        incumbent.iteration,
        certificate=_certificate(problem, incumbent),
    )


def _rounds(effort: str | int) -> int:
    if isinstance(effort, str):
        return EFFORTS[check_choice("effort", effort, tuple(EFFORTS))]
    return check_integer("effort", effort, low=0)


def _certificate(problem: Problem, incumbent: Incumbent) -> Certificate | None:
    """What the last pricing proved: no single change, and under a full budget no swap, improves."""
    if not incumbent.is_settled:
        return None
    price, budget = problem.sparsity
    # without a price and without room every change of two is a swap, and those were priced
    level = 2 if price == 0.0 and incumbent.n_nonzero == budget else 1
    return Certificate(
        holds=True, level=level, outside="refit", complete=True, confidence=1.0, block=None,
        better_coef=None, better_objective=None, n_blocks=comb(problem.n_features, level),
        objective=incumbent.objective,
    )  # fmt: skip
