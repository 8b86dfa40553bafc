"""Search other losses: models propose supports, the loss decides.

The quadratic model at a point is settled as the squared loss is, and its end is fitted. Where that
is no lower, the changes that look best are tried on the loss itself, and at last all are excluded.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blockl0.exact import few_columns
from blockl0.exact.watch import Watch
from blockl0.moves.single_moves import MoveCheck, Verdict
from blockl0.moves.trial_moves import Proposal, best_fit
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem, Sparsity
from blockl0.run import Incumbent, Run, Tally
from blockl0.search.all_sizes import AllSizes, is_for_all_sizes
from blockl0.search.frontier import Frontier
from blockl0.search.models import Models
from blockl0.search.pool_sizes import SearchOptions
from blockl0.search.quadratic_search import RELATIVE_TOLERANCE
from blockl0.search.search_base import Search
from blockl0.search.walks import ModelWalks, Walks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_MODELS, MAX_POOLS = 50, 50
"""Models, and pools, before a point is left as it is; each but the last lowers the objective."""
WHOLE, POOL, POOL_FACTOR = 512, 256, 12
"""Units up to which there are no pools; and those in a pool: so many, or supports if more."""
FEW_ABOVE = 40
"""Columns up to which every point of an unchecked path is searched by walks of its own."""
FROM_ABOVE = (8.0, 4.0, 2.0, 1.4)
"""Times the price: the prices through which a walk comes down, each from the last."""
MOST_REFITS = 16
"""Re-fits of a check before trials, which make about as many."""
NEGLIGIBLE = 1e-7
"""Share of the loss at zero that counts as none: of separable classes it falls for ever."""


class LocalSearch(Search):
    """Search the quadratic model at the incumbent, and fit its ends on the true objective.

    Of many columns a pool is searched as a problem of its own, since nothing of X'DX can be kept
    from one model to the next, whose curvatures D differ; a pass over X makes the next pool.
    """

    def __init__(
        self, problem: Problem, options: SearchOptions, tally: Tally | None = None
    ) -> None:
        super().__init__(problem, options, tally)
        self.fits = make_fits(problem)
        # not of the incumbent's objective: on separable data that goes to zero
        at_zero = problem.smooth(problem.zero())
        self.tolerance, self.negligible = RELATIVE_TOLERANCE * at_zero, NEGLIGIBLE * at_zero
        self.models = Models(problem, options, self.tally, self.fits, self.tolerance)
        self._forget()

    def _forget(self) -> None:
        """Forget what depends on price and budget."""
        # where models lead from a support, and what checks found there
        self._ends: dict[bytes, Incumbent] = {}
        self._verdicts: dict[bytes, Verdict] = {}
        self._pool: tuple[bytes, Ints, LocalSearch] | None = None
        self._moves: MoveCheck = self.problem.kind.load("moves")(self.problem, self.fits)

    def for_sparsity(self, sparsity: Sparsity) -> LocalSearch:
        """Search the same data under another price and budget; share what is possible."""
        other = copy(self)
        other.problem = replace(self.problem, sparsity=sparsity)
        other.models = self.models.for_problem(other.problem)
        other._forget()
        return other

    def start(self, w: Floats, run: Run | None = None) -> Incumbent:
        """Fit the support of w and the kept columns."""
        return self._at(w, 0)

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column of the model at w until `size` are left."""
        units = self.problem.units
        columns = units.columns(units.support(w))
        part = self._on(units.support(w))
        proposal = part.models.at(w[columns]).shrink(size)
        return self._at(self._lift(proposal.w, columns), 0).w

    # models ----------------------------------------------------------------------------------

    def settle(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Follow models on pools of columns, until the next pool brings nothing."""
        for _ in range(MAX_POOLS):
            if run.seconds_left <= 0.0:
                break
            columns, inside = self.pool_around(incumbent)
            found = inside.follow(replace(incumbent, w=incumbent.w[columns]), run)
            if not found.objective < incumbent.objective - self.tolerance:
                break
            incumbent = replace(found, w=self._lift(found.w, columns))
            # where the pool is all columns, another would be the same
            if inside is self:
                break
        return incumbent

    def follow(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Model, search, fit, until neither the local nor the global model finds better.

        The global one lies above the loss: what lowers it lowers the loss, far from w as well.
        """
        is_global, seen = False, []
        has_bound = np.isfinite(self.problem.loss.curvature_bound)
        for _ in range(MAX_MODELS):
            if run.seconds_left <= 0.0 or incumbent.objective <= self.negligible:
                return incumbent
            key = incumbent.support.tobytes()
            # walks often end where others came by
            if key in self._ends:
                incumbent = replace(self._ends[key], iteration=incumbent.iteration)
                break
            seen.append(key)
            proposal = self.models.at(incumbent.w, is_global).settle(run)
            found = self._fit(proposal, incumbent.iteration + 1, incumbent.objective)
            if found.objective < incumbent.objective - self.tolerance:
                incumbent, is_global = found, False
            elif is_global or not has_bound:
                break
            else:
                is_global = True
        self._ends.update(dict.fromkeys(seen, incumbent))
        return incumbent

    def pool_around(self, incumbent: Incumbent) -> tuple[Ints, LocalSearch]:
        """Return the columns that look best at a point, ascending, and the search of them."""
        problem, n_units = self.problem, self.problem.n_units
        key, units = incumbent.support.tobytes(), problem.units
        must = np.union1d(units.support(incumbent.w), problem.keep).astype(np.int64)
        if self.options.pool is not None:
            size = max(self.options.pool, must.size + 1)
        else:
            size = max(POOL, POOL_FACTOR * must.size) if n_units > WHOLE else n_units
        if size >= n_units:
            return np.arange(problem.n_features), self
        if self._pool is None or self._pool[0] != key:
            prices = self.models.at(incumbent.w).prices()
            prices[must] = -np.inf
            chosen = np.sort(np.argpartition(prices, size - 1)[:size])
            self._pool = key, units.columns(chosen), self._on(chosen)
        return self._pool[1:]

    def _on(self, chosen: Ints) -> LocalSearch:
        """Search some units, the kept ones among them."""
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
        return LocalSearch(part, self.options._replace(pool=None), self.tally)

    def _lift(self, w: Floats, columns: Ints) -> Floats:
        lifted = self.problem.zero()
        lifted[columns] = w
        return lifted

    # the loss itself -------------------------------------------------------------------------

    def check(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """Find a better point one change away; if there is none, the incumbent is settled.

        Bounds exclude most changes; where they leave many, the likeliest are fitted, and all others
        only then. Unless the time or the work that may be spent ends before that is certain.
        """
        if incumbent.is_settled:
            return None
        key = incumbent.support.tobytes()
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdict(incumbent, run)
            self._verdicts[key] = verdict
        incumbent.is_settled = verdict.is_complete
        if verdict.better is None:
            return None
        found = self._at(verdict.better, incumbent.iteration + 1)
        return found if found.objective < incumbent.objective else None

    def _verdict(self, incumbent: Incumbent, run: Run) -> Verdict:
        """Check all changes, or where bounds leave many, try the likeliest before."""
        given = incumbent.w, incumbent.objective, self.tolerance, run
        verdict, is_open = Verdict(None, False), incumbent.objective > self.negligible
        if self.options.is_checked:
            # models of a perfect fit say nothing: all changes are checked at once
            most_refits = MOST_REFITS if is_open else np.inf
            verdict = self._moves.check(*given, most_refits=most_refits)
        if is_open and not verdict.is_complete:
            # the best of some changes rather than the first of all
            columns, inside = self.pool_around(incumbent)
            changes = inside.models.at(incumbent.w[columns]).changes()
            ceiling = incumbent.objective - self.tolerance
            fit = best_fit(inside.problem, inside.fits, changes, ceiling, run)
            if fit is not None:
                verdict = Verdict(self._lift(fit.w, columns), False)
            elif verdict.better is None and self.options.is_checked:
                verdict = self._moves.check(*given)
        return verdict

    def exhaust(self, incumbent: Incumbent, run: Run) -> tuple[Incumbent, bool]:
        """Return the best of all subsets, where there are few, and whether all were searched."""
        if (
            incumbent.objective <= self.negligible
            or self.problem.n_units > few_columns.MOST_COLUMNS
        ):
            return incumbent, False
        subsets = few_columns.Subsets(
            self.problem, self.fits, incumbent.w, incumbent.objective, self.tolerance
        )
        subsets.search(Watch(run))
        if subsets.objective < incumbent.objective:
            found = self._at(subsets.best, incumbent.iteration)
            if found.objective < incumbent.objective:
                incumbent = found
        # single changes of the best of all are among those that are no better
        incumbent.is_settled |= subsets.is_complete
        incumbent.is_proven |= subsets.is_complete
        return incumbent, subsets.is_complete

    def best_of_sizes(self, largest: int, run: Run) -> list[Floats] | None:
        """Return the best points of at most 0, 1, …, `largest` units; None if there are many.

        Where the fits or the time do not suffice, there is none either.
        """
        if not is_for_all_sizes(self.problem):
            return None
        sizes = AllSizes(self.problem, self.fits, largest, self.tolerance, self.negligible)
        return sizes.points() if sizes.search(run) else None

    # walks -----------------------------------------------------------------------------------

    def walks(
        self,
        best: Incumbent,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier | None = None,
    ) -> Walks:
        """Begin rounds of walks on models at the best point and away from it."""
        return ModelWalks(self, run, rng, rounds)

    def walk(
        self, best: Incumbent, run: Run, rng: np.random.Generator, is_away: bool, is_first: bool
    ) -> Incumbent:
        """Walk on the model at a point, or at a random part of its support, and follow its end.

        Where samples are fitted nearly perfectly, the model at the point says little about them;
        with fewer columns they count again.
        """
        columns, inside = self.pool_around(best)
        w = best.w[columns]
        model = inside.models.at(inside._part_of(w, rng) if is_away else w)
        proposals = model.walk(inside.problem.units.support(w), run, rng, is_first)
        ends = [inside.follow(inside._fit(p, best.iteration), run) for p in proposals]
        ends = [replace(end, w=self._lift(end.w, columns)) for end in ends]
        if is_away and is_first and self.problem.sparsity.price > 0.0:
            ends.append(self._come_down(run))
        return min(ends, key=lambda end: end.objective)

    def _come_down(self, run: Run) -> Incumbent:
        """Settle from nothing through falling prices: what is large has grown from what was good.

        A model from nothing at a low price takes in many columns before the loss is asked.
        """
        (price, budget), w = self.problem.sparsity, self.problem.zero()
        for share in FROM_ABOVE:
            search = self.for_sparsity(Sparsity(share * price, budget))
            w = search.settle(search.start(w), run).w
        return self.settle(self.start(w), run)

    def _part_of(self, w: Floats, rng: np.random.Generator) -> Floats:
        """Fit a random part of a support."""
        units, keep = self.problem.units.support(w), self.problem.keep
        stays = (rng.random(units.size) < rng.random()) | np.isin(units, keep)
        part = self.problem.zero()
        columns = self.problem.units.columns(units[stays])
        part[columns] = w[columns]
        return self._at(part, 0).w

    def _at(self, w: Floats, iteration: int) -> Incumbent:
        """Minimize the loss on the support of w and the kept columns."""
        columns = self.problem.units.columns(self.problem.occupied(w))
        return self._fit(Proposal(columns, w), iteration)

    def _fit(self, proposal: Proposal, iteration: int, ceiling: float = np.inf) -> Incumbent:
        """Minimize the loss on a support; or return a point above a ceiling, if that is, too."""
        (support, start, intercept), problem = proposal, self.problem
        smooth = ceiling - problem.cost(problem.units.of(support))
        fit = self.fits.minimum(support, start, smooth, intercept)
        held = problem.occupied(fit.w)
        is_allowed = problem.sparsity.allows(held.size)
        objective = fit.value + problem.cost(held) if is_allowed else np.inf
        return Incumbent(fit.w, objective, problem.units.count(fit.w), iteration)
