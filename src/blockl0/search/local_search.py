"""The search of method "refit" for other losses, through their local quadratic models.

And for whatever is no single column, or within bounds; the squared loss is then its own model.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from blockl0.exact import few_columns
from blockl0.exact.watch import Watch
from blockl0.moves.single_moves import MoveCheck, Verdict
from blockl0.moves.trial_moves import Proposal, best_fit
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem, Sparsity
from blockl0.run import Run
from blockl0.search.all_sizes import AllSizes, is_for_all_sizes
from blockl0.search.frontier import Frontier
from blockl0.search.models import Models
from blockl0.search.quadratic_search import RELATIVE_TOLERANCE, Incumbent, SearchOptions, Tally
from blockl0.search.search_base import Search
from blockl0.search.walks import Walks
from blockl0.search.whole_model import MOST_COLUMNS as MOST_WHOLE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_MODELS = 50
"""Local models of a loss before its search is given up; each lowers the objective."""
MOST_REFITS = 1
"""Re-fits of a check between models: where it needs more, trials of likely changes come first."""
RETURNS = 2
"""Kicks in a row that come back, after which there is hardly anything else to come to."""
FEW_ABOVE = 40
"""Columns up to which a search that is not checked comes down from all of them."""
OTHER_PRICES = (0.4, 2.5)
"""Shares of the price, between these two, at which a kick settles before it comes back."""
FROM_ABOVE = (8.0, 4.0, 2.0, 1.4)
"""Times the price: the prices through which the first round comes down, each from the last."""
NEGLIGIBLE = 1e-7
"""Share of the loss at zero that counts as none: of separable classes it falls for ever."""


class LocalSearch(Search):
    """Other losses: search the quadratic model at the incumbent, polish on the true objective.

    A support that does not lower the true objective is rejected; then the global majorizer, whose
    minimizer always does, has the last word where there is one. Any number of outputs: what depends
    on it are the models and the fits.
    """

    def __init__(
        self, problem: Problem, options: SearchOptions, tally: Tally | None = None
    ) -> None:
        super().__init__(problem, options, tally)
        self.fits = make_fits(problem)
        # not of the incumbent's objective: on separable data that goes to zero
        at_zero = problem.smooth(problem.zero())
        self.tolerance, self.negligible = RELATIVE_TOLERANCE * at_zero, NEGLIGIBLE * at_zero
        if problem.is_quadratic:
            self.negligible = self.tolerance
        self.models = Models(problem, options, self.tally, self.fits, self.tolerance)
        # what is left of all columns, by how many; of all budgets
        self._above: dict[int, Floats] = {}
        self._forget()

    def _forget(self) -> None:
        """Forget what is known of points: it depends on price and budget."""
        # where models lead from a support, and what trials and checks found there
        self._ends: dict[bytes, Incumbent] = {}
        self._tried: dict[bytes, Incumbent | None] = {}
        self._checked: dict[bytes, Verdict] = {}
        # checks that were given up, and after how many re-fits
        self._given_up: dict[bytes, float] = {}
        self._paired: dict[bytes, Incumbent | None] = {}
        self._moves: MoveCheck | None = None
        # kicks in a row that came back to where they set out
        self._returns = 0

    def is_alone(self, incumbent: Incumbent) -> bool:
        """Whether no single change came near, and the last kicks came back; or none in the model.

        At a price neither says anything of larger supports.
        """
        verdict = self._checked.get(incumbent.support.tobytes())
        if verdict is None or not verdict.is_complete or self.problem.sparsity.price > 0.0:
            return False
        is_back = verdict.is_clear and self._n_returns() >= RETURNS
        model = self.models.at(incumbent.w)
        return is_back or model.is_alone_by(verdict.cheapest_change) or model.is_alone()

    def _n_returns(self) -> int:
        return self._returns

    def for_sparsity(self, sparsity: Sparsity) -> LocalSearch:
        """The search of the same data under another price and budget; it shares what it can."""
        other = copy(self)
        other.problem = replace(self.problem, sparsity=sparsity)
        other.models = self.models.for_problem(other.problem)
        other._forget()
        return other

    def start(self, w: Floats, run: Run | None = None) -> Incumbent:
        """The true minimizer on the support of w and the kept columns."""
        return self._at(w, 0)

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column of the model at w until `size` are left."""
        return self._polish(self.models.at(w).shrink(size), 0).w

    def settle(self, incumbent: Incumbent, run: Run, can_try: bool = True) -> Incumbent:
        """Model, search, polish, until neither a model nor a change of one column finds better."""
        for _ in range(MAX_MODELS):
            if can_try and self._can_do_without_bound():
                incumbent = self.follow_local(incumbent, run, partial(self._is_end, run=run))
                if self._is_end(incumbent, run):
                    break
            incumbent = self._follow_models(incumbent, run)
            found = self._change(incumbent, run) if can_try else None
            if found is None:
                break
            incumbent = found
        return incumbent

    def settle_briefly(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Descend by models alone, without trials on the loss itself."""
        return self.settle(incumbent, run, can_try=False)

    def _can_do_without_bound(self) -> bool:
        """Whether the global model looks at nothing that a check of single changes does not.

        It lies above the loss: a change that improves it improves the loss. Of few columns its best
        point of all is known, and at a price pairs are tried where it ends.
        """
        problem = self.problem
        is_judged = self.options.is_checked and problem.is_plain and problem.sparsity.price == 0.0
        return is_judged and problem.n_features > MOST_WHOLE

    def _is_end(self, incumbent: Incumbent, run: Run) -> bool:
        """Whether bounds alone, or nearly, exclude all single changes of a point."""
        is_open = incumbent.objective > self.negligible
        return is_open and self.check(incumbent, run, MOST_REFITS) is None and incumbent.is_settled

    def _follow_models(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Model, search, polish, until neither the local nor the global model finds better."""
        is_global, seen = False, []
        has_bound = np.isfinite(self.problem.loss.curvature_bound)
        for _ in range(MAX_MODELS):
            if run.seconds_left <= 0.0 or incumbent.objective <= self.negligible:
                return incumbent
            key = incumbent.support.tobytes()
            # kicks often fall back to where others came by
            if key in self._ends:
                incumbent = replace(self._ends[key], iteration=incumbent.iteration)
                break
            seen.append(key)
            proposal = self.models.at(incumbent.w, is_global).settle(run)
            found = self._polish(proposal, incumbent.iteration + 1, incumbent.objective)
            if found.objective < incumbent.objective - self.tolerance:
                incumbent, is_global = found, False
            elif is_global or not has_bound or self.problem.is_quadratic:
                break
            else:
                is_global = True
        self._ends.update(dict.fromkeys(seen, incumbent))
        return incumbent

    def follow_local(
        self,
        incumbent: Incumbent,
        run: Run,
        is_end: Callable[[Incumbent], bool],
    ) -> Incumbent:
        """Model, search, polish, until the local model finds nothing better.

        A point that stands alone in the model which led to it is the end already if it is told so.
        """
        for _ in range(MAX_MODELS):
            if run.seconds_left <= 0.0 or incumbent.objective <= self.negligible:
                break
            if incumbent.support.tobytes() in self._ends:
                break
            model = self.models.at(incumbent.w)
            proposal = model.settle(run)
            found = self._polish(proposal, incumbent.iteration + 1, incumbent.objective)
            if not found.objective < incumbent.objective - self.tolerance:
                break
            incumbent = found
            if model.ends_alone() and is_end(incumbent):
                break
        return incumbent

    def _change(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """A better point one change away: of all changes, or where those are too many, of some."""
        if incumbent.objective <= self.negligible:
            return None
        found = self.check(incumbent, run, MOST_REFITS)
        if not incumbent.is_settled:
            # the best of some changes rather than the first of all
            found = self._trial(incumbent, run) or found
        return self._add_pair(incumbent, run) if found is None else found

    def _add_pair(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """A better point with two more columns, that only pay together; asked at a price."""
        price, budget = self.problem.sparsity
        if price == 0.0 or incumbent.n_nonzero + 2 > budget or run.seconds_left <= 0.0:
            return None
        if not self.problem.is_plain:
            return None
        return self._best_pair(incumbent, incumbent.w, run)

    def _best_pair(self, incumbent: Incumbent, w: Floats, run: Run) -> Incumbent | None:
        """The best point with two columns more than w, if it is better; found once."""
        key = incumbent.support.tobytes()
        if key not in self._paired:
            pairs = self.models.at(w).pairs()
            ceiling = incumbent.objective - self.tolerance
            fit = best_fit(self.problem, self.fits, pairs, ceiling, run)
            self._paired[key] = None if fit is None else self._at(fit.w, incumbent.iteration + 1)
        return self._paired[key]

    def _exchange_pair(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Exchange the two least missed columns for two that only pay together; if better."""
        price, budget = self.problem.sparsity
        n_movable = np.setdiff1d(incumbent.support, self.problem.keep).size
        is_full = price == 0.0 and incumbent.n_nonzero == budget and n_movable >= 2
        if not is_full or not self.problem.is_plain or run.seconds_left <= 0.0:
            return incumbent
        w = self.shrink(incumbent.w, budget - 2)
        found = self._best_pair(incumbent, w, run)
        return incumbent if found is None else self.settle(found, run)

    def _trial(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """A single change that lowers the true objective though no model says so."""
        key = incumbent.support.tobytes()
        if run.seconds_left <= 0.0 or incumbent.objective <= self.negligible:
            return None
        if key not in self._tried:
            changes = self.models.at(incumbent.w).changes()
            ceiling = incumbent.objective - self.tolerance
            fit = best_fit(self.problem, self.fits, changes, ceiling, run)
            self._tried[key] = None if fit is None else self._at(fit.w, incumbent.iteration + 1)
        return self._tried[key]

    def check(
        self, incumbent: Incumbent, run: Run, most_refits: float = np.inf
    ) -> Incumbent | None:
        """A point one change away that is better; if there is none, the incumbent is settled.

        Unless the time or the work that may be spent on it ends before that is certain.
        """
        if incumbent.is_settled or not self.options.is_checked:
            return None
        key = incumbent.support.tobytes()
        if key not in self._checked:
            if self._given_up.get(key, -1.0) >= most_refits:
                return None
            moves: MoveCheck = self._moves or self.problem.kind.load("moves")(
                self.problem, self.fits
            )
            self._moves = moves
            verdict = moves.check(
                incumbent.w, incumbent.objective, self.tolerance, run, most_refits=most_refits
            )
            if verdict.better is None and not verdict.is_complete and most_refits < np.inf:
                self._given_up[key] = most_refits
                return None
            self._checked[key] = verdict
        verdict = self._checked[key]
        incumbent.is_settled = verdict.is_complete
        if verdict.better is None:
            return None
        found = self._at(verdict.better, incumbent.iteration + 1)
        return found if found.objective < incumbent.objective else None

    def exhaust(self, incumbent: Incumbent, run: Run) -> tuple[Incumbent, bool]:
        """The best of all subsets, where there are few, and whether all were searched."""
        is_open = incumbent.objective > self.negligible or self.problem.is_quadratic
        if not is_open or self.problem.n_units > few_columns.MOST_COLUMNS:
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
        """The best points with at most 0, 1, …, `largest` units, where there are few; else None.

        Where the fits or the time do not suffice, there is none either.
        """
        if not is_for_all_sizes(self.problem):
            return None
        sizes = AllSizes(self.problem, self.fits, largest, self.tolerance, self.negligible)
        return sizes.points() if sizes.search(run) else None

    def walks(
        self,
        best: Incumbent,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier | None = None,
    ) -> Walks:
        """Rounds of kicks."""
        return Kicks(self, run, rng, rounds)

    def kick_round(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool = False
    ) -> Incumbent:
        """Kicks on the local model, then on the point itself; only the true objective counts."""
        if is_narrow and not self.options.is_checked and self._can_come_down():
            if not self.models.at(incumbent.w).tries_swaps:
                incumbent = self._come_down(incumbent, run, rng)
            return self._kick_model(incumbent, run, rng, is_narrow)
        incumbent = self._kick_model(incumbent, run, rng, is_narrow)
        incumbent = self._kick_price(incumbent, run, rng, is_narrow)
        incumbent = self._exchange_pair(incumbent, run)
        model = self.models.at(incumbent.w)
        best, fruitless, patience = incumbent, 0, model.patience(is_narrow)
        for _ in range(model.most_kicks):
            if fruitless == patience:
                break
            found = self._kick(best, run, rng)
            best, fruitless = found, fruitless + 1 if found is best else 0
        # trials cost more than models: only what is better is worth them
        return incumbent if best is incumbent else self.settle(best, run)

    def _kick_model(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool
    ) -> Incumbent:
        """Kicks on the local model, where it has some of its own; settled if better."""
        proposal = self.models.at(incumbent.w).kick_round(run, rng, is_narrow)
        if proposal is None:
            return incumbent
        found = self._polish(proposal, incumbent.iteration)
        is_better = found.objective < incumbent.objective - self.tolerance
        return self.settle(found, run) if is_better else incumbent

    def _kick_price(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool
    ) -> Incumbent:
        """Settle at another price, and from there at the own one; if better.

        A higher price takes out what has come in too early, a lower one brings in what pays only
        together. First from nothing, through higher prices.
        """
        price, budget = self.problem.sparsity
        if price == 0.0 or run.seconds_left <= 0.0:
            return incumbent
        w = self.problem.zero() if is_narrow else incumbent.w
        low, high = np.log(OTHER_PRICES)
        for share in FROM_ABOVE if is_narrow else (np.exp(rng.uniform(low, high)),):
            away = self.for_sparsity(Sparsity(price * float(share), budget))
            w = away.settle(away.start(w), run, can_try=False).w
        back = self.settle(self.start(w), run, can_try=False)
        is_better = back.objective < incumbent.objective - self.tolerance
        return self.settle(back, run) if is_better else incumbent

    def _can_come_down(self) -> bool:
        """Whether all columns are few enough to be fitted and left out one by one."""
        price, budget = self.problem.sparsity
        is_few = budget <= self.problem.n_features <= FEW_ABOVE
        return price == 0.0 and is_few and self.problem.is_plain

    def _come_down(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Settle from what is left of all columns when the least missed goes, again and again.

        Where nobody asks for more, one descent from above is worth many kicks; its fits are those
        of all budgets.
        """
        size, budget = self.problem.n_features, self.problem.sparsity.budget
        if size not in self._above:
            self._above[size] = self.fits.on(np.arange(size, dtype=np.int64)).w
        while size > budget and run.seconds_left > 0.0:
            size, w = size - 1, self._above[size]
            if size not in self._above:
                support = self.models.at(w).shrink(size).support
                self._above[size] = self.fits.on(support, w).w
        if size > budget:
            return incumbent
        found = self.settle(self.start(self._above[size]), run)
        return found if found.objective < incumbent.objective - self.tolerance else incumbent

    def _kick(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Drop a part of the support, exchange it on the model there, and settle; if better."""
        dropped = self.models.at(incumbent.w).drop(rng) if run.seconds_left > 0.0 else None
        if dropped is None:
            return incumbent
        w = incumbent.w.copy()
        w[self.problem.units.columns(dropped)] = 0.0
        start = self._at(w, incumbent.iteration)
        proposal = self.models.at(start.w).refill(dropped, rng)
        if proposal is not None:
            start = self._polish(proposal, incumbent.iteration)
        found = self.settle(start, run, can_try=False)
        is_same = np.array_equal(found.support, incumbent.support)
        self._returns = self._returns + 1 if is_same else 0
        is_better = found.objective < incumbent.objective - self.tolerance
        return found if is_better else incumbent

    def _at(self, w: Floats, iteration: int) -> Incumbent:
        """The true minimizer on the support of w and the kept columns."""
        columns = self.problem.units.columns(self.problem.occupied(w))
        return self._polish(Proposal(columns, w), iteration)

    def _polish(self, proposal: Proposal, iteration: int, ceiling: float = np.inf) -> Incumbent:
        """The true minimizer on a support; or a point above a ceiling, if that is, too."""
        (support, start, intercept), problem = proposal, self.problem
        smooth = ceiling - problem.cost(problem.units.of(support))
        fit = self.fits.minimum(support, start, smooth, intercept)
        held = problem.occupied(fit.w)
        is_allowed = problem.sparsity.allows(held.size)
        objective = fit.value + problem.cost(held) if is_allowed else np.inf
        return Incumbent(fit.w, objective, problem.units.count(fit.w), iteration)


class Kicks(Walks):
    """Rounds of kicks of a local search, the first among few columns."""

    def __init__(
        self, search: LocalSearch, run: Run, rng: np.random.Generator, rounds: int
    ) -> None:
        super().__init__(run, rounds)
        self.search, self.rng = search, rng

    def _make_round(self, best: Incumbent) -> Incumbent:
        return self.search.kick_round(best, self.run, self.rng, is_narrow=self.n_rounds == 0)
