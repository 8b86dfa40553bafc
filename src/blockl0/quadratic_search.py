"""The search of method "refit" for the squared loss: pool, search, price, and kicks."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.certificate.moves import CLEAR
from blockl0.exact_search import ExactSearch
from blockl0.exact_search import Incumbent as Point
from blockl0.fits import least_squares_on
from blockl0.hidden_moves import find_hidden_move
from blockl0.pool import Pool, Saved
from blockl0.problem import Problem
from blockl0.run import Run
from blockl0.sparsity import Sparsity
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KICKS, NARROW_KICKS, FEWEST_KICKS = 24, 12, 6
"""Kicks in a round, in one on a narrow pool, and in one of supports so large that each is slow."""
LARGE_SUPPORT = 50
"""Columns in the support beyond which a round has fewer kicks, so that its time grows less."""
NARROW_POOL, NARROW_FACTOR = 160, 8
"""Columns in the narrow pool of the start and the first round: this many, or so many supports."""
DROPPED = 0.5
"""Share of the support that a kick drops at most."""
SLACK = 0.04
"""By how much of the best objective a wide search may walk above it."""
POOL_SIZE, POOL_FACTOR = 1024, 8
"""Columns in the pool: this many, or so many supports if that is more."""
POOL_BYTES, WHOLE_BYTES = 64 << 20, 128 << 20
"""Bytes of a pool's columns, unless so many supports need more, and of an X that is one pool."""
KICK_WORK = 2e9
"""Operations spent at most on the Gram matrix of a pool for kicks."""
LARGEST_POOL = 4096
"""Columns in any pool that is not all of X."""
PROOF_NODES, PROOF_SLICE = 200_000, 2000
"""Nodes spent on the proof that a small problem is solved, and between two looks at the clock."""
STAGES = 4
"""Parts in which a large X is first asked for its columns, each priced at what the last found."""
LARGEST_BLOCK = 19
"""Columns of a block that joins two supports; larger ones need the relaxation to be searched."""
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
class Incumbent(Point):
    """The best point so far, and what is known of it.

    `prices` holds, for every column, the change of the objective by the best addition or swap that
    brings it in, once the point has been priced, and `doubtful` the columns whose prices are only
    rounding; `is_settled` says that none of them improves, `is_proven` that nothing at all does.
    """

    prices: Floats | None = None
    doubtful: Ints | None = None
    is_settled: bool = False
    is_proven: bool = False

    @property
    def support(self) -> Ints:
        """The columns with a nonzero coefficient."""
        return COLUMNS.support(self.w)


@dataclass
class Tally:
    """Full passes over X so far (a pool of all columns is one), and the largest drift seen."""

    n_passes: int = 0
    drift: float = 0.0


class QuadraticSearch:
    """The squared loss: pools, descents, kicks and pricing.

    Attributes
    ----------
    tolerance : float
        Smaller improvements are rounding.
    tally : Tally
        Shared with the searches made from this one.
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
    ) -> None:
        self.problem = problem
        self.options = options
        self.certifies = proves
        self.proves = proves and problem.n_features <= LARGEST_BLOCK
        self.tally = Tally() if tally is None else tally
        self.sq_norms: Floats = problem.design.sq_norms(problem.sample_weight) + problem.ridge
        zero = np.zeros(problem.n_features)
        eta = np.zeros(problem.n_samples)
        self.target = problem.gradient(zero, eta)
        self.constant = problem.smooth(zero, eta)
        self.tolerance = self.negligible = RELATIVE_TOLERANCE * self.constant
        self.tally.n_passes += 2
        self.run: Run | None = None  # whose clock the pools read
        self._whole: Pool | None = None
        # the last pool with the point and the size it was made for, and where a walk has come to
        self._last: tuple[Incumbent, int, Pool] | None = None
        self._walk: tuple[Incumbent, Pool, Saved] | None = None

    def for_sparsity(self, sparsity: Sparsity) -> QuadraticSearch:
        """The search of the same data under another price and budget; it shares what it can."""
        other = copy(self)
        other.problem = replace(self.problem, sparsity=sparsity)
        other._last = other._walk = None
        other._whole = None
        n = self.problem.n_features
        if other.pool_size == n:
            # one Gram matrix for all
            if self._whole is None:
                self._whole = self._pool_of(np.arange(n))
                self.tally.n_passes += 1
            other._whole = other._pool_of(self._whole.columns, like=self._whole)
        return other

    def start(self, w: Floats) -> Incumbent:
        """The fit on the support of w and the kept columns, less what is not worth its price."""
        support = self._with_kept(w)
        if support.size == 0:
            return self.first()
        # pricing looks at what enters; removals, and columns that depend on others, are seen here
        pool = self._pool_of(support)
        pool.load(support)
        pool.descend()
        fits = self.fit(support, 0), self.fit(pool.support, 0)
        return min(fits, key=lambda fit: fit.objective)

    def first(self) -> Incumbent:
        """A start from nothing, most of the way on few columns, where moves are cheap.

        Of many columns those that matter late do not stand out at first: the support is then grown
        in stages, with new prices before each.
        """
        point = Incumbent(np.zeros(self.problem.n_features), self.constant, 0)
        price, budget = self.problem.sparsity
        # a price alone stops by itself
        is_staged = budget <= self.pool_size < self.problem.n_features
        stages = range(1, STAGES + 1) if is_staged else [STAGES]
        for part in [-(-budget * stage // STAGES) for stage in stages]:
            search = self if part == budget else self.for_sparsity(Sparsity(price, part))
            pool = search.make_pool(point, self.narrow_size(point))
            pool.descend()
            point = self.fit(pool.support, 0)
        return point

    def scatter(self, rng: np.random.Generator) -> Incumbent:
        """A start elsewhere: additions ranked by gains times random numbers, then a descent."""
        zero = Incumbent(np.zeros(self.problem.n_features), self.constant, 0)
        pool = self.make_pool(zero, self.kick_size)
        pool.descend(rng.uniform(0.0, 1.0, pool.columns.size))
        pool.descend()
        return self.fit(pool.support, 0)

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column, re-fitted, until `size` are left; kept ones stay."""
        support = np.flatnonzero(w)
        problem = replace(self.problem, sparsity=Sparsity(0.0, support.size))
        target, sq_norms = self.target[support], self.sq_norms[support]
        pool = Pool(problem, support, target, sq_norms, self.tolerance)
        pool.load(support)
        while pool.size > size and pool.movable.size:
            movable = pool.movable
            pool.toggle(movable[[np.argmin(pool.drop_costs(movable))]])
        return least_squares_on(self.problem, pool.support)

    # pool ------------------------------------------------------------------------------------

    @property
    def pool_size(self) -> int:
        """Columns in a pool; all of them when they are not many."""
        n, budget = self.problem.n_features, self.problem.sparsity.budget
        if self.options.pool is not None:
            return min(n, self.options.pool)
        m, design = self.problem.n_samples, self.problem.design
        affordable = int(POOL_BYTES * n / max(design.nbytes, 1))
        most = min(POOL_FACTOR * min(budget, m), LARGEST_POOL)
        wanted = max(min(POOL_SIZE, affordable), most, NARROW_POOL)
        is_whole = n <= 2 * wanted and design.nbytes <= WHOLE_BYTES
        return n if is_whole else min(n, wanted)

    def narrow_size(self, incumbent: Incumbent) -> int:
        """Columns in the pool of the start and of the first round, where moves are cheapest."""
        return min(self.pool_size, max(NARROW_POOL, NARROW_FACTOR * incumbent.n_nonzero))

    @property
    def kick_size(self) -> int:
        """Columns in a pool for kicks, which come to need its whole Gram matrix."""
        m, budget = self.problem.n_samples, self.problem.sparsity.budget
        affordable = int(np.sqrt(KICK_WORK / m))
        most = min(POOL_FACTOR * min(budget, m), LARGEST_POOL)
        return min(self.pool_size, max(affordable, most))

    def make_pool(self, incumbent: Incumbent, most: int | None = None) -> Pool:
        """The support, the kept columns, and the columns with the best prices, loaded.

        There are at most `most` of them, unless the support needs more; `pool_size` by default.
        """
        n, must = self.problem.n_features, self._with_kept(incumbent.w)
        size = min(n, max(self.pool_size if most is None else most, must.size + 1))
        if size == n:
            if self._whole is None:
                self._whole = self._pool_of(np.arange(n))
                self.tally.n_passes += 1
            pool = self._whole
        elif self._last is not None and self._last[0] is incumbent and self._last[1] == size:
            pool = self._last[2]
        else:
            prices = self.prices_at(incumbent).copy()
            prices[must] = -np.inf
            pool = self._pool_of(np.sort(np.argpartition(prices, size - 1)[:size]))
            self._last = incumbent, size, pool
        # a product of all is quicker than many of a few, and needs no copy of the columns
        if pool is not self._whole and size <= self.kick_size:
            pool.know_all()
        pool.load(must)
        return pool

    def _with_kept(self, w: Floats) -> Ints:
        chosen = w != 0.0
        chosen[self.problem.keep] = True
        return np.flatnonzero(chosen)

    def _pool_of(self, columns: Ints, like: Pool | None = None) -> Pool:
        pool = Pool(
            self.problem, columns, self.target[columns], self.sq_norms[columns], self.tolerance,
            like,
        )  # fmt: skip
        pool.run = self.run
        return pool

    # search ----------------------------------------------------------------------------------

    def search_blocks(self, pool: Pool, run: Run, rng: np.random.Generator) -> None:
        """Exact blocks, each followed by a descent, until `patience` of them bring nothing."""
        failures, best = 0, pool.objective
        while failures < self.options.patience and run.seconds_left > 0.0:
            block = self.choose_block(pool, rng)
            if block.size and pool.search_block(block):
                pool.descend()
            # a block and a descent may undo each other by rounding: only what is left counts
            failures = 0 if pool.objective < best - self.tolerance else failures + 1
            best = min(best, pool.objective)

    def choose_block(self, pool: Pool, rng: np.random.Generator) -> Ints:
        """The weakest of the support with the strongest outside it, and a few at random."""
        n_outside, n_support, n_random = self.options[:3]
        members, gains = pool.movable, pool.add_gains()
        # noise of up to a factor four keeps successive blocks different
        costs = pool.drop_costs(members) * rng.uniform(0.25, 1.0, members.size)
        gains *= rng.uniform(0.25, 1.0, gains.size)
        chosen = np.zeros(gains.size, dtype=np.bool_)
        chosen[members[_first(costs, n_support)]] = True
        strong = _first(-gains, n_outside)
        chosen[strong[gains[strong] > -np.inf]] = True
        chosen[rng.integers(0, gains.size, n_random)] = True
        # a kept column that depends on others can be neither added nor taken out
        chosen &= ~pool.table.kept | (pool.table.slot >= 0)
        return np.flatnonzero(chosen)

    def kick(self, pool: Pool, rng: np.random.Generator, ceiling: float) -> None:
        """Drop a part of the support, refill without half of it, descend again.

        A point that is better, or below the ceiling, stays; from another one the pool returns, and
        searches what differs as a block.
        """
        movable = pool.movable
        if movable.size == 0:
            return
        state, before = pool.save(), pool.objective
        if ceiling == -np.inf:
            n_drop = int(movable.size * rng.uniform(0.2, 1.0) * DROPPED)
        else:
            # small ones, since these can be followed by others from where they lead
            n_drop = int(2.0 * (0.5 * DROPPED * movable.size + 0.5) ** rng.uniform())
        dropped = rng.permutation(movable)[: max(1, n_drop)]
        weight = rng.uniform(0.5, 1.0, pool.columns.size)
        weight[dropped[: (dropped.size + 1) // 2]] = 0.0
        pool.descend(weight, dropped)
        pool.descend()
        if pool.objective < max(before - self.tolerance, ceiling):
            pool.refresh()
            return
        other = pool.table.slot >= 0
        pool.restore(state)
        self.join(pool, other)

    def join(self, pool: Pool, other: NDArray[np.bool_]) -> None:
        """Search the columns in which another support differs from the pool's as one block."""
        block = np.flatnonzero((pool.table.slot >= 0) != other)
        if 2 < block.size <= LARGEST_BLOCK:
            pool.search_block(block)

    # price -----------------------------------------------------------------------------------

    def price(self, w: Floats, support: Ints) -> tuple[Floats, Ints]:
        """Change of the objective by the best addition or swap that brings in each column, (n,).

        And the columns outside the support for which that is rounding.

        With u = X_S'x_i, K = inv(X_S'X_S + ridge) and W = K u, the pivot of column i is
        M_ii = ‖x_i‖² − u'W; swapping it for j changes the minimum by
        w_j²/2K_jj − (g_i − W_j w_j/K_jj)² / 2(M_ii + W_j²/K_jj). O(mns), one pass over X.
        """
        problem = self.problem
        budget, price = problem.sparsity.budget, problem.sparsity.price
        self.tally.n_passes += 1
        X_S = problem.design.columns(support)
        # the residual rides along, so that gradient and regressions take one pass
        eta = X_S @ w[support]
        weighted = np.column_stack([X_S, problem.loss.gradient(eta, problem.y)])
        if problem.sample_weight is not None:
            weighted *= problem.sample_weight[:, None]
        H = weighted[:, :-1].T @ X_S
        H.flat[:: support.size + 1] += problem.ridge
        # unit diagonal: what counts as dependent must not depend on the user's units
        scale = np.sqrt(np.where(H.diagonal() > 0.0, H.diagonal(), 1.0))
        K = np.linalg.pinv(H / scale / scale[:, None], hermitian=True).astype(np.float64)
        K = K / scale / scale[:, None]
        free = ~np.isin(support, problem.keep)
        change, pivots = np.empty(problem.n_features), np.empty(problem.n_features)
        for start in range(0, change.size, problem.design.chunk):
            part = slice(start, min(start + problem.design.chunk, change.size))
            U = problem.design.cross(weighted, part)
            change[part], pivots[part] = _price_columns(
                U[:-1], K, w[support], U[-1], self.sq_norms[part], free,
                price if support.size < budget else np.inf,
            )  # fmt: skip
        change[support] = np.inf
        is_apart = 1.0 / (K.diagonal() * H.diagonal()) > CLEAR
        return change, self._doubtful(pivots, support, bool(is_apart.all()))

    def _doubtful(self, pivots: Floats, support: Ints, is_apart: bool) -> Ints:
        """Columns near the span of the support; all of them when that is nearly dependent."""
        doubtful = self.sq_norms > 0.0
        if is_apart:
            doubtful &= ~(pivots > CLEAR * self.sq_norms)
        doubtful[support] = False
        return np.flatnonzero(doubtful)

    def prices_at(self, incumbent: Incumbent) -> Floats:
        """The prices of all columns at an incumbent, (n,), computed once."""
        if incumbent.prices is None:
            price, budget = self.problem.sparsity
            incumbent.doubtful = np.empty(0, dtype=np.int64)
            if incumbent.support.size:
                incumbent.prices, incumbent.doubtful = self.price(incumbent.w, incumbent.support)
            elif budget == 0:
                incumbent.prices = np.full(self.target.size, np.inf)
            else:
                safe = np.where(self.sq_norms > 0.0, self.sq_norms, np.inf)
                incumbent.prices = price - 0.5 * self.target**2 / safe
        return incumbent.prices

    def settle(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, ceiling: float = np.inf
    ) -> Incumbent:
        """Pool, search, price, until no column prices out; few columns are searched completely.

        A point that does not end below the ceiling is of no interest and may not be settled.
        """
        for _ in range(MAX_PRICINGS):
            if run.seconds_left <= 0.0:
                break
            pool = self.make_pool(incumbent)
            pool.descend()
            if not self.proves and pool is self._whole and pool.columns.size <= LARGEST_BLOCK:
                pool.search_block(np.arange(pool.columns.size))
            found = self.fit(pool.support, incumbent.iteration + 1)
            if found.objective > incumbent.objective:
                break
            stalled = found.objective == incumbent.objective
            incumbent = found
            if self.proves:
                return self.prove(incumbent, run)
            if self.is_priced_out(found, pool):
                return self.settle_hidden(incumbent, run, ceiling)
            if stalled:
                break
        if self.proves:
            return self.prove(incumbent, run)
        # the pool has lost its way in rounding: nothing that it says is about this point
        incumbent.doubtful = np.setdiff1d(np.flatnonzero(self.sq_norms > 0.0), incumbent.support)
        return self.settle_hidden(incumbent, run, ceiling)

    def prove(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """The optimum of a small problem, or the incumbent where the nodes or the time run out."""
        iteration, incumbent.iteration = incumbent.iteration, 0  # there it counts nodes
        search = ExactSearch(self.problem, incumbent, run)
        while not search.finished and search.incumbent.iteration < PROOF_NODES:
            if run.seconds_left <= 0.0:
                break
            search.advance(PROOF_SLICE)
        best = search.incumbent
        if best.objective < incumbent.objective:
            incumbent = Incumbent(best.w, best.objective, best.n_nonzero, iteration)
        incumbent.iteration = iteration
        incumbent.is_settled = incumbent.is_proven = search.finished
        return incumbent

    def is_priced_out(self, incumbent: Incumbent, pool: Pool) -> bool:
        """Whether no single move over all columns improves a point that has none in its pool."""
        pool.refresh()
        self.tally.drift = max(self.tally.drift, pool.drift)
        if pool.size != incumbent.n_nonzero:
            # the pool cannot hold this support: nothing that it says is about it
            incumbent.doubtful = np.setdiff1d(
                np.flatnonzero(self.sq_norms > 0.0), incumbent.support
            )
            return True
        if pool is self._whole:
            pivots, members = pool.table.border[kernels.PIVOT], pool.members
            is_apart = np.all(pivots[members] * self.sq_norms[members] * CLEAR > -1.0)
            incumbent.prices = pool.prices()
            incumbent.doubtful = self._doubtful(pivots, members, bool(is_apart))
        return not np.any(self.prices_at(incumbent) < -self.tolerance)

    def settle_hidden(self, incumbent: Incumbent, run: Run, ceiling: float = np.inf) -> Incumbent:
        """Make the moves that only the columns themselves show; then the point is settled."""
        doubtful, everything = incumbent.doubtful, np.flatnonzero(self.sq_norms > 0.0)
        if doubtful is None or doubtful.size == 0:
            incumbent.is_settled = True
            return incumbent
        if not self.certifies or ceiling <= incumbent.objective:
            return incumbent
        for _ in range(MAX_PRICINGS):
            if run.seconds_left <= 0.0:
                break
            support = self._with_kept(incumbent.w)
            move = find_hidden_move(
                self.problem, incumbent.w, support, doubtful, self.tolerance, run
            )  # fmt: skip
            if move.support is None:
                incumbent.is_settled = move.is_complete
                break
            incumbent = self.fit(move.support, incumbent.iteration + 1)
            # the new support is one that the tableau cannot see
            doubtful = np.setdiff1d(everything, incumbent.support)
        return incumbent

    def fit(self, support: Ints, iteration: int) -> Incumbent:
        """The incumbent on a support and the kept columns, its objective from the data.

        A pool leaves a kept column out that is nearly a combination of others; here it comes back,
        and where that is one too many, the least of the others goes.
        """
        keep, budget = self.problem.keep, self.problem.sparsity.budget
        support = np.union1d(support, keep) if keep.size else support
        w = least_squares_on(self.problem, support)
        while np.count_nonzero(w) > budget:
            movable = np.setdiff1d(np.flatnonzero(w), keep)
            least = movable[np.argmin(w[movable] ** 2 * self.sq_norms[movable])]
            w = least_squares_on(self.problem, np.setdiff1d(np.flatnonzero(w), least))
        return Incumbent(w, self.problem.objective(w), int(np.count_nonzero(w)), iteration)

    def kick_round(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool = False
    ) -> Incumbent:
        """Blocks and kicks on a pool around the incumbent; the best, settled, or the incumbent.

        On a narrow pool only better points are accepted. On a wide one also those that are not much
        worse: the search walks away from the incumbent, and the next wide round goes on from there.
        """
        pool = self.make_pool(
            incumbent, self.narrow_size(incumbent) if is_narrow else self.kick_size
        )
        best, best_support = pool.objective, None
        slack = -np.inf
        if not is_narrow:
            slack = SLACK * abs(incumbent.objective)
            if self._walk is not None and self._walk[0] is incumbent and self._walk[1] is pool:
                pool.restore(self._walk[2])
        self.search_blocks(pool, run, rng)
        n_kicks = NARROW_KICKS if is_narrow else KICKS
        for _ in range(max(FEWEST_KICKS, n_kicks * LARGE_SUPPORT // max(pool.size, LARGE_SUPPORT))):
            if pool.objective < best - self.tolerance:
                best, best_support = pool.objective, pool.support
            if run.seconds_left <= 0.0:
                break
            self.kick(pool, rng, best + slack)
        if pool.objective < best - self.tolerance:
            best_support = pool.support
        self._walk = None if is_narrow else (incumbent, pool, pool.save())
        if best_support is None:
            return incumbent
        self._walk = None
        start = self.fit(best_support, incumbent.iteration)
        found = self.settle(start, run, rng, incumbent.objective)
        return found if found.objective < incumbent.objective else incumbent


def _price_columns(
    U: Floats, K: Floats, w: Floats, g: Floats, sq: Floats, free: NDArray[np.bool_], price: float
) -> tuple[Floats, Floats]:
    """The prices of a chunk of columns, and their pivots; U = X_S' X_chunk, (s, c)."""
    W = K @ U
    M = np.maximum(sq - np.einsum("ij,ij->j", U, W), 0.0)
    least = 1e-9 * sq
    change = price - 0.5 * g * g / np.where(M > least, M, np.inf)
    kernels.price_swaps(W, np.diag(K).copy(), w, free, g, M, least + 1e-300, change)
    change[sq <= 0.0] = np.inf
    return change, M


def _first(keys: Floats, count: int) -> Ints:
    """Positions of the `count` smallest keys."""
    return np.argpartition(keys, count)[:count] if count < keys.size else np.arange(keys.size)
