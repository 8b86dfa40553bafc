"""The quadratic model of a loss at a point, and the search of it: what one local search needs.

With curvatures D at the predictors eta the model is a least-squares problem: weights D, target
eta − slope/D. Of one output it is searched as the squared loss is; of C outputs it has C responses
that share one support, and the gains of moves are sums over the responses. In units of several
columns, or within bounds, it is searched by tables of units; there the squared loss is a model of
itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.gram_rows import GramRows
from blockl0.lazy import lazy
from blockl0.losses import LOSSES, majorizer_curvature
from blockl0.moves.grouped_search import GroupedSearch
from blockl0.moves.tableau import UnitRules
from blockl0.moves.trial_moves import LEAVE, LEAVE_UNCHECKED, Proposal, Trials, safe_curvature
from blockl0.moves.unit_search import UnitSearch
from blockl0.problem.fits import Fits
from blockl0.problem.problem import Problem
from blockl0.run import Run
from blockl0.search.frontier import Frontier
from blockl0.search.pairs import best_pairs
from blockl0.search.quadratic_search import Incumbent, QuadraticSearch, SearchOptions, Tally
from blockl0.search.walks import IndependentWalks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TRIALS = 8
"""Additions, swaps and removals each of several outputs that are worth a re-fit."""
DESCENTS = 3
"""Descents that take the place of a walk where columns enter by random weights."""
CHEAPER = (0.2, 1.0)
"""Share of the price that columns pay when a walk brings them in, between these two."""
LATEST = 4
"""Models that are remembered: rounds ask for that of the incumbent again and again."""


class LeastSquares(NamedTuple):
    """A model as least squares; the intercept has been taken from the target."""

    design: Any
    target: Floats
    weights: Floats
    intercept: Any


class Model(ABC):
    """The model of a problem at w, made when it is first asked for something.

    Attributes
    ----------
    least_curvature : float
        Share of the curvature bound below which a local model would be too flat to be trusted.
    """

    least_curvature = 0.1

    def __init__(self, models: Models, w: Floats, is_global: bool) -> None:
        self.models, self.problem, self.w = models, models.problem, w
        self.is_global = is_global

    def is_at(self, w: Floats, is_global: bool) -> bool:
        """Whether it is the model of this kind at w."""
        return self.is_global is is_global and np.array_equal(self.w, w)

    @property
    def support(self) -> Ints:
        """The units of the point."""
        return self.problem.units.support(self.w)

    @lazy
    def data(self) -> LeastSquares:
        """The model as least squares."""
        problem, eta = self.problem, self.models.fits.predictor(self.w)[0]
        slope, curvature = problem.loss.gradient(eta, problem.y), self._curvature(eta)
        target = eta - (slope.T / curvature).T
        weights = curvature if problem.sample_weight is None else curvature * problem.sample_weight
        b = 0.0
        if problem.has_intercept:
            # centred by the model's own weights: the best intercept does not depend on coefficients
            b = np.average(target, axis=0, weights=weights)
            target = target - b
        asked = target if target.ndim == 1 and problem.is_plain else None
        return LeastSquares(problem.design.recentred(weights, asked), target, weights, b)

    def _curvature(self, eta: Floats) -> Floats:
        """Return the curvatures, (m,): those at eta, safeguarded, or the global bound."""
        loss, y = self.problem.loss, self.problem.y
        if self.is_global:
            return majorizer_curvature(loss, eta, y)
        if np.isfinite(loss.curvature_bound):
            least = self.least_curvature * loss.curvature_bound
            return np.maximum(loss.curvature(eta, y), least)
        # the model must not ask for more than a moderate step of a predictor
        curvature = safe_curvature(loss, eta, y)
        return np.maximum(curvature, 1e-12 * float(curvature.max()) + 1e-300)

    @abstractmethod
    def settle(self, run: Run) -> Proposal:
        """Where the search of the model leads from w."""

    @abstractmethod
    def shrink(self, size: int) -> Proposal:
        """Take out the least missed column, until `size` are left; return the support."""

    @abstractmethod
    def prices(self) -> Floats:
        """Return the change by the best move that brings in each column, (n,); a pass over X."""

    @abstractmethod
    def changes(self) -> Iterator[Proposal]:
        """Single changes of the support that are worth a re-fit, the likeliest ones."""

    @abstractmethod
    def products(self) -> tuple[Floats, Floats]:
        """Compute X'DX with the ridge, and X'Dz, of all columns."""

    def with_pair(self) -> Ints:
        """Exchange the two least missed columns for the two that pay best together."""
        budget, here = self.problem.sparsity.budget, self.support
        if not self.problem.is_plain or budget < 2:
            return here
        rest = here if here.size + 2 <= budget else self.shrink(budget - 2).support
        pairs = best_pairs(*self.products(), rest, 1) if rest.size + 2 <= budget else []
        return np.sort(np.concatenate([rest, *pairs]))

    @abstractmethod
    def walk(
        self, support: Ints, run: Run, rng: np.random.Generator, is_first: bool
    ) -> Iterator[Proposal]:
        """Walk on the model, to supports of about the size of a given one, and yield the ends."""


class QuadraticModel(Model):
    """One response, searched by `QuadraticSearch`."""

    @lazy
    def search(self) -> QuadraticSearch:
        """The search of the model as a problem of its own."""
        design, target, weights, _ = self.data
        model = replace(
            self.problem, design=design, y=target, loss=LOSSES["squared"], sample_weight=weights,
            has_intercept=False,
        )  # fmt: skip
        return QuadraticSearch(model, self.models.options, self.models.tally)

    def _here(self) -> Incumbent:
        """Return the point: a minimizer of the loss on its support is one of the model."""
        if not self.w.any():
            return self.search.start(self.w)
        objective = self.search.problem.objective(self.w)
        return Incumbent(self.w, objective, self.problem.units.count(self.w))

    def settle(self, run: Run) -> Proposal:
        """Where the search of the model leads from w."""
        return self._propose(self.search.settle(self._here(), run).w)

    def shrink(self, size: int) -> Proposal:
        """Take out the least missed column, until `size` are left; return the support."""
        w = self.search.shrink(self.w, size)
        return Proposal(np.flatnonzero(w), w)

    def prices(self) -> Floats:
        """Return the change by the best move that brings in each column, (n,); a pass over X."""
        here = Incumbent(self.w, np.inf, self.problem.units.count(self.w))
        return self.search.prices_at(here).copy()

    def changes(self) -> Iterator[Proposal]:
        """Single changes of the support that are worth a re-fit, the likeliest ones."""
        return self.models.trials.changes(self.w)

    def walk(
        self, support: Ints, run: Run, rng: np.random.Generator, is_first: bool
    ) -> Iterator[Proposal]:
        """Walk from nothing; yield the end, or the support if that is better."""
        here = self.search.fit(support, 0)
        if np.array_equal(self.support, support):
            here = self.search.settle_if_better(self.with_pair(), here, run)
        walks = IndependentWalks(self.search, run, rng, 0, Frontier())
        if not is_first:
            walks.n_rounds, walks.n_each = 1, 1
        yield self._propose(walks.advance(here).w)

    def products(self) -> tuple[Floats, Floats]:
        """Compute X'DX with the ridge, and X'Dz, of all columns."""
        pool = self.search.whole_pool()
        return pool.whole_gram(), -pool.target.T

    def _propose(self, w: Floats) -> Proposal:
        """Propose a point of the model, with its intercept."""
        support = self.problem.units.support(w)
        if not self.problem.has_intercept:
            return Proposal(support, w)
        shift = self.problem.design.shift_from(self.data.design)
        return Proposal(support, w, float(self.data.intercept + shift @ w))


class GroupedModel(Model):
    """Several responses, searched by `GroupedSearch`; walks come by its random weights."""

    least_curvature = 4e-3

    @lazy
    def search(self) -> GroupedSearch:
        """The search of the model."""
        problem, models = self.problem, self.models
        design, target, weights, _ = self.data
        B = design.cross(weights[:, None] * target, slice(None)).T
        models.tally.n_passes += 1
        gram = models.gram(design, weights, self.is_global)
        return GroupedSearch(gram, B, problem.sparsity, problem.keep, models.tolerance)

    def _propose(self, support: Ints) -> Proposal:
        """Propose a support with the model's coefficients and intercepts."""
        w, V = self.problem.zero(), self.search.fit(support)[1]
        w[support] = V
        shift = self.problem.design.shift_from(self.data.design)[support]
        return Proposal(support, w, self.data.intercept + shift @ V)

    def settle(self, run: Run) -> Proposal:
        """Where the search of the model leads from w."""
        return self._propose(self.search.descend(self.support))

    def shrink(self, size: int) -> Proposal:
        """Take out the least missed column, until `size` are left; return the support."""
        return self._propose(self.search.shrink(self.support, size))

    def prices(self) -> Floats:
        """Return the change by the best move that brings in each column, (n,); a pass over X."""
        return self.search.prices(self.support)

    def changes(self) -> Iterator[Proposal]:
        """Single changes of the support that are worth a re-fit, the likeliest ones."""
        return map(self._propose, self.search.likely_moves(self.support, TRIALS))

    def walk(
        self, support: Ints, run: Run, rng: np.random.Generator, is_first: bool
    ) -> Iterator[Proposal]:
        """Descend from w, columns entering by random weights, or first as a pair.

        For a while at a lower price: some columns pay together and none of them alone.
        """
        sparsity, here = self.problem.sparsity, self.support
        gone = np.setdiff1d(support, here)
        if not gone.size:
            # as it is: only the loss tells whether the two are worth their price
            yield self._propose(self.with_pair())
        for _ in range(DESCENTS):
            weight = rng.uniform(0.5, 1.0, self.problem.n_units)
            weight[rng.permutation(gone)[: (gone.size + 1) // 2]] = 0.0
            search = self.search.at(sparsity._replace(price=sparsity.price * rng.uniform(*CHEAPER)))
            yield self._propose(search.descend(here, weight))

    def products(self) -> tuple[Floats, Floats]:
        """Compute X'DX with the ridge, and X'Dz, of all columns."""
        design, _, weights, _ = self.data
        G = design.full_gram(weights)
        G.flat[:: len(G) + 1] += self.problem.ridge
        self.models.tally.n_passes += 1
        return G, self.search.B


class UnitModel(GroupedModel):
    """Groups, bounds, costs or several responses, searched by `UnitSearch`."""

    @property
    def support(self) -> Ints:
        """The units of the point; a kept one has its place, though bounds may hold it at zero."""
        return np.union1d(super().support, self.problem.keep).astype(np.int64)

    @lazy
    def search(self) -> UnitSearch:
        """The search of the model."""
        models = self.models
        design, target, weights, _ = self.data
        weighted = (weights * target.T).T.reshape(len(weights), -1)
        B = np.ascontiguousarray(design.cross(weighted, slice(None)).T)
        models.tally.n_passes += 1
        gram = models.gram(design, weights, self.is_global)
        return UnitSearch(gram, B, UnitRules.of(self.problem), models.tolerance)

    def changes(self) -> Iterator[Proposal]:
        """Single changes of the support that are worth a re-fit, the likeliest ones."""
        return map(self._propose, self.search.likely_moves(self.support, TRIALS))

    def _propose(self, support: Ints) -> Proposal:
        """Units with the model's coefficients and intercepts, all of their columns."""
        problem, w, intercept = self.problem, self.problem.zero(), None
        columns, V = self.search.fit(np.sort(support))
        V = V if w.ndim == 2 else V[:, 0]
        w[columns] = V
        if problem.has_intercept:
            intercept = (
                self.data.intercept + problem.design.shift_from(self.data.design)[columns] @ V
            )
        return Proposal(np.sort(columns), w, intercept)


class Models:
    """The models of one problem, and what they share."""

    def __init__(
        self, problem: Problem, options: SearchOptions, tally: Tally, fits: Fits, tolerance: float
    ) -> None:
        self.problem, self.options, self.tally = problem, options, tally
        self.fits, self.tolerance = fits, tolerance
        self._trials: Trials | None = None
        self._grams: dict[bool, GramRows] = {}
        self._latest: list[Model] = []

    def for_problem(self, problem: Problem) -> Models:
        """Return the models of the same data under another price and budget, as far as shared."""
        other = copy(self)
        other.problem, other._trials, other._latest = problem, None, []
        return other

    def at(self, w: Floats, is_global: bool = False) -> Model:
        """Return the model at w, with its own curvatures or with those of the bound."""
        for i, model in enumerate(self._latest):
            if model.is_at(w, is_global):
                self._latest.append(self._latest.pop(i))
                return model
        model = self.problem.kind.load("model")(self, w, is_global)
        self._latest = [*self._latest[1 - LATEST :], model]
        return self._latest[-1]

    @property
    def trials(self) -> Trials:
        """Trials on the loss itself."""
        if self._trials is None:
            leave = LEAVE if self.options.is_checked else LEAVE_UNCHECKED
            self._trials = Trials(self.problem, self.fits, leave)
        return self._trials

    def gram(self, design: Any, weights: Floats, is_global: bool) -> GramRows:
        """Return the rows of X'DX: those of the bound are kept, others until the next request."""
        gram = self._grams.get(is_global)
        if gram is None or not np.array_equal(gram.weights, weights):
            gram = GramRows(design, weights, self.problem.ridge, self.tally)
            self._grams[is_global] = gram
        return gram
