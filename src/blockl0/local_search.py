"""The search of method "refit" for other losses, through their local quadratic models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blockl0.losses import LOSSES, majorizer_curvature
from blockl0.newton import Fits
from blockl0.preprocess import Centered
from blockl0.problem import Problem
from blockl0.quadratic_search import (
    RELATIVE_TOLERANCE,
    Incumbent,
    QuadraticSearch,
    SearchOptions,
    Tally,
)
from blockl0.run import Run
from blockl0.single_moves import SingleMoves, Verdict
from blockl0.sparsity import Sparsity
from blockl0.trial_moves import Trials, safe_curvature

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_MODELS = 50
"""Local models of a loss before its search is given up; each lowers the objective."""
LEAST_CURVATURE = 1e-3
"""Share of the curvature bound below which a local model would be too flat to be trusted."""
NEGLIGIBLE = 1e-7
"""Share of the loss at zero that counts as none: of separable classes it falls for ever."""


class LocalSearch:
    """Other losses: search the quadratic model at the incumbent, polish on the true objective.

    At w the model is a weighted squared loss: weights D, the curvatures of the loss at eta = Xw,
    and target eta − slope/D. A support that does not lower the true objective is rejected; then the
    global majorizer, whose minimizer always does, has the last word where there is one.
    """

    def __init__(
        self,
        problem: Problem,
        options: SearchOptions,
        tally: Tally | None = None,
        fits: Fits | None = None,
    ) -> None:
        self.problem = problem
        self.options = options
        self.tally = Tally() if tally is None else tally
        self.fits = Fits(problem) if fits is None else fits
        self._trials: Trials | None = None
        self._moves: SingleMoves | None = None
        self._checked: dict[bytes, Verdict] = {}
        self.settled: set[bytes] = set()
        self.searched: set[bytes] = set()
        # not of the incumbent's objective: on separable data that goes to zero
        at_zero = problem.smooth(np.zeros(problem.n_features))
        self.tolerance, self.negligible = RELATIVE_TOLERANCE * at_zero, NEGLIGIBLE * at_zero

    def for_sparsity(self, sparsity: Sparsity) -> LocalSearch:
        """The search of the same data under another price and budget."""
        problem = replace(self.problem, sparsity=sparsity)
        return LocalSearch(problem, self.options, self.tally, self.fits)

    def scatter(self, rng: np.random.Generator) -> Incumbent:
        """A start elsewhere, on the model at zero."""
        zero = np.zeros(self.problem.n_features)
        found = QuadraticSearch(self._model(zero), self.options, self.tally).scatter(rng)
        return self._polish(found.w, found.support, 0)

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column of the model at w until `size` are left."""
        reduced = QuadraticSearch(self._model(w), self.options, self.tally).shrink(w, size)
        return self.fits.on(reduced, np.flatnonzero(reduced)).w

    def start(self, w: Floats) -> Incumbent:
        """The true minimizer on the support of w and the kept columns."""
        support = np.union1d(np.flatnonzero(w), self.problem.keep).astype(np.int64)
        return self._polish(w, support, 0)

    def settle(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, can_try: bool = True
    ) -> Incumbent:
        """Model, search, polish, until neither a model nor a trial of moves finds better."""
        is_global, done = False, self.settled if can_try else self.settled | self.searched
        for _ in range(MAX_MODELS):
            key = incumbent.support.tobytes()
            # kicks often fall back to where they came from: nothing is left to find there
            if run.seconds_left <= 0.0 or key in done or incumbent.objective <= self.negligible:
                break
            search, here = self._model_search(incumbent, is_global)
            found = search.settle(here, run, rng)
            found = self._polish(found.w, found.support, incumbent.iteration + 1)
            if found.objective < incumbent.objective - self.tolerance:
                incumbent, is_global = found, False
            elif not is_global and np.isfinite(self.problem.loss.curvature_bound):
                is_global = True
            elif can_try and (w := self._trial(incumbent, run)) is not None:
                support, is_global = np.flatnonzero(w), False
                incumbent = self._polish(w, support, incumbent.iteration + 1)
            else:
                (self.settled if can_try else self.searched).add(key)
                break
        return incumbent

    def _trial(self, incumbent: Incumbent, run: Run) -> Floats | None:
        """A single change that lowers the true objective though no model says so."""
        if self._trials is None:
            self._trials = Trials(self.problem, self.fits)
        return self._trials.best(incumbent.w, incumbent.objective, self.tolerance, run)

    def check(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """A point one change away that is better; if there is none, the incumbent is settled.

        Unless the time or the work that may be spent on it ends before that is certain.
        """
        key = incumbent.support.tobytes()
        if key not in self._checked:
            if self._moves is None:
                self._moves = SingleMoves(self.problem, self.fits)
            moves = self._moves
            verdict = moves.check(incumbent.w, incumbent.objective, self.tolerance, run)
            self._checked[key] = verdict
        verdict = self._checked[key]
        incumbent.is_settled = verdict.is_complete
        if verdict.better is None:
            return None
        support = np.flatnonzero(verdict.better)
        found = self._polish(verdict.better, support, incumbent.iteration + 1)
        return found if found.objective < incumbent.objective else None

    def kick_round(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool = False
    ) -> Incumbent:
        """Kicks on the local model, then on the point itself; only the true objective counts."""
        search, here = self._model_search(incumbent)
        found = search.kick_round(search.settle(here, run, rng), run, rng, is_narrow)
        found = self._polish(found.w, found.support, incumbent.iteration)
        if found.objective < incumbent.objective - self.tolerance:
            incumbent = self.settle(found, run, rng)
        return self._kick(incumbent, run, rng)

    def _kick(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Drop a part of the support, exchange it on the model there, and settle; if better."""
        movable = np.setdiff1d(incumbent.support, self.problem.keep)
        if movable.size == 0 or run.seconds_left <= 0.0:
            return incumbent
        n_drop = max(1, int(movable.size * rng.uniform(0.1, 0.7)))
        w = incumbent.w.copy()
        w[rng.choice(movable, n_drop, replace=False)] = 0.0
        start = self._polish(w, np.flatnonzero(w), incumbent.iteration)
        found = self.settle(start, run, rng, can_try=False)
        if not found.objective < incumbent.objective - self.tolerance:
            return incumbent
        # trials cost more than models: only what is better is worth them
        return self.settle(found, run, rng)

    def _model_search(
        self, incumbent: Incumbent, is_global: bool = False
    ) -> tuple[QuadraticSearch, Incumbent]:
        """The search of the model at an incumbent, and that point in it.

        A minimizer of the loss on its support is one of the model, too.
        """
        model = self._model(incumbent.w, is_global)
        search = QuadraticSearch(model, self.options, self.tally)
        if incumbent.n_nonzero == 0:
            return search, search.start(incumbent.w)
        return search, replace(incumbent, objective=model.objective(incumbent.w))

    def _model(self, w: Floats, is_global: bool = False) -> Problem:
        problem = self.problem
        eta = self.fits.predictor(w)[0]
        slope, curvature = problem.loss.gradient(eta, problem.y), self._curvature(eta, is_global)
        target = eta - slope / curvature
        weights = curvature if problem.sample_weight is None else curvature * problem.sample_weight
        design = problem.design
        if isinstance(design, Centered):
            # the model's own weights: its best intercept is then zero, whatever the coefficients
            design, target = design.recentred(weights), target - np.average(target, weights=weights)
        return replace(
            problem, design=design, y=target, loss=LOSSES["squared"], sample_weight=weights,
            has_intercept=False,
        )  # fmt: skip

    def _curvature(self, eta: Floats, is_global: bool) -> Floats:
        """The curvatures of a model: those at eta, safeguarded, or the global bound."""
        loss, y = self.problem.loss, self.problem.y
        if is_global:
            return majorizer_curvature(loss, eta, y)
        curvature = loss.curvature(eta, y)
        if np.isfinite(loss.curvature_bound):
            return np.maximum(curvature, LEAST_CURVATURE * loss.curvature_bound)
        # the model must not ask for more than a moderate step of a predictor
        curvature = safe_curvature(loss, eta, y)
        return np.maximum(curvature, 1e-12 * float(curvature.max()) + 1e-300)

    def _polish(self, w: Floats, support: Ints, iteration: int) -> Incumbent:
        """The true minimizer on a support, from w."""
        fit, sparsity = self.fits.minimum(w, support), self.problem.sparsity
        n_nonzero = int(np.count_nonzero(fit.w))
        objective = fit.value + sparsity.cost(n_nonzero) if n_nonzero <= sparsity.budget else np.inf
        return Incumbent(fit.w, objective, n_nonzero, iteration)
