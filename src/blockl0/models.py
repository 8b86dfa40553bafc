"""The quadratic model of a loss at a point, and the search of it.

With curvatures D at the predictors eta the model is a least-squares problem: weights D, target
eta − slope/D. Of one output it is searched as the squared loss is; of C outputs it has C responses
that share one support, and the gains of moves are sums over the responses.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.fits import Fits
from blockl0.grouped_search import GramRows, GroupedSearch
from blockl0.losses import LOSSES, majorizer_curvature
from blockl0.problem import Problem
from blockl0.quadratic_search import Incumbent, QuadraticSearch, SearchOptions, Tally
from blockl0.run import Run
from blockl0.trial_moves import Proposal, Trials, safe_curvature

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TRIALS = 8
"""Additions, swaps and removals each of several outputs that are worth a re-fit."""


class Data(NamedTuple):
    """The least-squares problem of a model: design, target and weights, and the intercept.

    Without an intercept that is zero.
    """

    design: Any
    target: Floats
    weights: Floats
    intercept: Any


class Models:
    """The models of one problem, one output; a search of each by `QuadraticSearch`.

    Attributes
    ----------
    kicks, first_kicks : int
        Kicks of the loss itself in a round, and in the first one.
    least_curvature : float
        Share of the curvature bound below which a local model would be too flat to be trusted.
    """

    kicks, first_kicks = 1, 1
    least_curvature = 1e-3

    def __init__(
        self, problem: Problem, options: SearchOptions, tally: Tally, fits: Fits, tolerance: float
    ) -> None:
        self.problem, self.options, self.tally, self.fits = problem, options, tally, fits
        self.tolerance = tolerance
        self._trials: Trials | None = None

    def for_problem(self, problem: Problem) -> Models:
        """The models of the same data under another price and budget; they share what they can."""
        other = copy(self)
        other.problem, other._trials = problem, None
        return other

    def data(self, w: Floats, is_global: bool) -> Data:
        """The least-squares problem at w."""
        problem, eta = self.problem, self.fits.predictor(w)[0]
        slope, curvature = problem.loss.gradient(eta, problem.y), self._curvature(eta, is_global)
        target = eta - (slope.T / curvature).T
        weights = curvature if problem.sample_weight is None else curvature * problem.sample_weight
        if not problem.has_intercept:
            return Data(problem.design, target, weights, np.zeros(w.shape[1:]))
        # the model's own weights: its best intercept is then that of the target
        b = np.average(target, axis=0, weights=weights)
        return Data(problem.design.recentred(weights), target - b, weights, b)

    def _curvature(self, eta: Floats, is_global: bool) -> Floats:
        """The curvatures of a model, (m,): those at eta, safeguarded, or the global bound."""
        loss, y = self.problem.loss, self.problem.y
        if is_global:
            return majorizer_curvature(loss, eta, y)
        if np.isfinite(loss.curvature_bound):
            least = self.least_curvature * loss.curvature_bound
            return np.maximum(loss.curvature(eta, y), least)
        # the model must not ask for more than a moderate step of a predictor
        curvature = safe_curvature(loss, eta, y)
        return np.maximum(curvature, 1e-12 * float(curvature.max()) + 1e-300)

    def at(self, w: Floats, is_global: bool = False) -> Any:
        """The model at w."""
        data = self.data(w, is_global)
        model = replace(
            self.problem, design=data.design, y=data.target, loss=LOSSES["squared"],
            sample_weight=data.weights, has_intercept=False,
        )  # fmt: skip
        return QuadraticModel(QuadraticSearch(model, self.options, self.tally), w)

    def kick_round(
        self, w: Floats, run: Run, rng: np.random.Generator, is_narrow: bool
    ) -> Proposal | None:
        """Where kicks on the model at w lead; None where it has none of its own."""
        return self.at(w).kick_round(run, rng, is_narrow)

    def refill(self, w: Floats, dropped: Ints, rng: np.random.Generator) -> Proposal | None:
        """Another support in place of columns that were dropped; None to settle from w."""
        return None

    def changes(self, w: Floats) -> Iterator[Proposal]:
        """Single changes of the support of w that are worth a re-fit."""
        if self._trials is None:
            self._trials = Trials(self.problem, self.fits)
        return self._trials.changes(w)


class QuadraticModel:
    """A model of one response."""

    def __init__(self, search: QuadraticSearch, w: Floats) -> None:
        self.search, self.w = search, w

    @property
    def _here(self) -> Incumbent:
        """The point in the model: a minimizer of the loss on its support is one of the model."""
        n_nonzero = int(np.count_nonzero(self.w))
        if n_nonzero == 0:
            return self.search.start(self.w)
        return Incumbent(self.w, self.search.problem.objective(self.w), n_nonzero)

    def settle(self, run: Run, rng: np.random.Generator) -> Proposal:
        """Where the search of the model leads from the point."""
        found = self.search.settle(self._here, run, rng)
        return Proposal(found.support, found.w)

    def kick_round(self, run: Run, rng: np.random.Generator, is_narrow: bool) -> Proposal:
        """Where kicks on the model lead."""
        here = self.search.settle(self._here, run, rng)
        found = self.search.kick_round(here, run, rng, is_narrow)
        return Proposal(found.support, found.w)

    def scatter(self, rng: np.random.Generator) -> Proposal:
        """A start elsewhere."""
        found = self.search.scatter(rng)
        return Proposal(found.support, found.w)

    def shrink(self, size: int) -> Proposal:
        """The support without its least missed columns, until `size` are left."""
        w = self.search.shrink(self.w, size)
        return Proposal(np.flatnonzero(w), w)

    def prices(self) -> Floats:
        """The change by the best move that brings in each column, (n,); a pass over X."""
        n_nonzero = int(np.count_nonzero(self.w))
        return self.search.prices_at(Incumbent(self.w, np.inf, n_nonzero)).copy()


class GroupedModels(Models):
    """The models of several outputs, searched by `GroupedSearch`.

    What is known of X'DX is kept: that of the bound for good, that of a local model until another
    is asked for.
    """

    kicks, first_kicks = 2, 4
    least_curvature = 4e-3

    def __init__(
        self, problem: Problem, options: SearchOptions, tally: Tally, fits: Fits, tolerance: float
    ) -> None:
        super().__init__(problem, options, tally, fits, tolerance)
        self._grams: dict[bool, GramRows] = {}

    def at(self, w: Floats, is_global: bool = False) -> GroupedModel:
        """The model at w."""
        problem, data = self.problem, self.data(w, is_global)
        gram = self._grams.get(is_global)
        if gram is None or not np.array_equal(gram.weights, data.weights):
            gram = GramRows(data.design, data.weights, problem.ridge, self.tally)
            self._grams[is_global] = gram
        B = data.design.cross(data.weights[:, None] * data.target, slice(None)).T
        self.tally.n_passes += 1
        search = GroupedSearch(gram, B, problem.sparsity, problem.keep, self.tolerance)
        shift = problem.design.shift_from(data.design)
        return GroupedModel(search, problem.units.support(w), data.intercept, shift)

    def kick_round(
        self, w: Floats, run: Run, rng: np.random.Generator, is_narrow: bool
    ) -> Proposal | None:
        """Where kicks on the model at w lead; None where it has none of its own."""
        return None

    def refill(self, w: Floats, dropped: Ints, rng: np.random.Generator) -> Proposal | None:
        """Another support in place of columns that were dropped; None to settle from w."""
        return self.at(w).refill(dropped, rng)

    def changes(self, w: Floats) -> Iterator[Proposal]:
        """Single changes of the support of w that are worth a re-fit."""
        return self.at(w).likely_moves()


class GroupedModel:
    """A model of several responses, and what turns its coefficients into a start."""

    def __init__(
        self, search: GroupedSearch, support: Ints, intercept: Floats, shift: Floats
    ) -> None:
        self.search, self.support, self.intercept, self.shift = search, support, intercept, shift

    def _propose(self, support: Ints) -> Proposal:
        V = self.search.fit(support)[1]
        w = np.zeros(self.search.B.shape)
        w[support] = V
        return Proposal(support, w, self.intercept + self.shift[support] @ V)

    def settle(self, run: Run, rng: np.random.Generator) -> Proposal:
        """Where the search of the model leads from the point."""
        return self._propose(self.search.descend(self.support))

    def refill(self, dropped: Ints, rng: np.random.Generator) -> Proposal:
        """Another support in place of columns that were dropped, without half of these."""
        weight = rng.uniform(0.5, 1.0, len(self.search.B))
        weight[dropped[: (dropped.size + 1) // 2]] = 0.0
        return self._propose(self.search.descend(self.support, weight))

    def scatter(self, rng: np.random.Generator) -> Proposal:
        """A start elsewhere: additions ranked by gains times random numbers."""
        weight = rng.uniform(0.0, 1.0, len(self.search.B))
        return self._propose(self.search.descend(self.search.keep, weight))

    def shrink(self, size: int) -> Proposal:
        """The support without its least missed columns, until `size` are left."""
        return self._propose(self.search.shrink(self.support, size))

    def prices(self) -> Floats:
        """The change by the best move that brings in each column, (n,); a pass over X."""
        return self.search.prices(self.support)

    def likely_moves(self) -> Iterator[Proposal]:
        """Supports a single change away, the likeliest first of each kind."""
        return map(self._propose, self.search.likely_moves(self.support, TRIALS))


def make_models(
    problem: Problem, options: SearchOptions, tally: Tally, fits: Fits, tolerance: float
) -> Models:
    """The models of the problem's loss."""
    kind = GroupedModels if problem.n_outputs > 1 else Models
    return kind(problem, options, tally, fits, tolerance)
