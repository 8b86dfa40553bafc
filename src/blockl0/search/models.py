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
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.gram_rows import GramRows
from blockl0.lazy import lazy
from blockl0.losses import LOSSES, majorizer_curvature
from blockl0.moves.class_trials import ClassTrials
from blockl0.moves.grouped_search import GroupedSearch
from blockl0.moves.pricing import stands_alone
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
from blockl0.search.whole_model import MOST_COLUMNS, WholeModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TRIALS = 8
"""Additions, swaps and removals each of several outputs that are worth a re-fit."""
KICKS, FIRST_KICKS, PAIRS = 2, 6, 12
"""Kicks of several outputs in a row without improvement that end a round; and the first one, where
it is one for so many pairs of columns if that is more."""
DROPPED = (0.1, 0.7)
"""Share of the support that a kick takes out, between these two."""
FEW_DROPPED, SHARE_DROPPED = 3, 0.2
"""The same of every other kick of several outputs: at most so many, or at most such a share."""
GROWING = 0.5
"""Share of the kicks at a price that take nothing out."""
CHEAPER = (0.2, 1.0)
"""Share of the price that columns pay when a kick brings them in, between these two."""

PAIRS_TRIED = 4
"""Pairs of columns that are worth a re-fit."""
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
    most_kicks : int
        Kicks of the loss itself in a round, at most.
    least_curvature : float
        Share of the curvature bound below which a local model would be too flat to be trusted.
    tries_swaps : bool
        Whether `changes` of a search that is not checked take out every likely column in turn.
    """

    most_kicks = 1
    least_curvature = 1e-3
    tries_swaps = False

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
        """The curvatures, (m,): those at eta, safeguarded, or the global bound."""
        loss, y = self.problem.loss, self.problem.y
        if self.is_global:
            return majorizer_curvature(loss, eta, y)
        if np.isfinite(loss.curvature_bound):
            least = self.least_curvature * loss.curvature_bound
            return np.maximum(loss.curvature(eta, y), least)
        # the model must not ask for more than a moderate step of a predictor
        curvature = safe_curvature(loss, eta, y)
        return np.maximum(curvature, 1e-12 * float(curvature.max()) + 1e-300)

    def pairs(self) -> Iterator[Proposal]:
        """The support with two more columns each, of pairs that pay together if any do."""
        design, target, weights, _ = self.data
        n, support = self.problem.n_features, self.support
        G = design.full_gram(weights)
        G.flat[:: n + 1] += self.problem.ridge
        weighted = (weights * target.T).T.reshape(len(weights), -1)
        self.models.tally.n_passes += 1
        for pair in best_pairs(G, design.cross(weighted, slice(None)).T, support, PAIRS_TRIED):
            yield Proposal(np.sort(np.concatenate([support, pair])), self.w)

    def is_alone(self) -> bool:
        """Whether nothing near the point is nearly as good in the model, see `stands_alone`."""
        return False

    def is_alone_by(self, least: float) -> bool:
        """The same, where the cheapest change is known to raise the loss by `least`."""
        problem = self.problem
        if least <= 0.0 or not problem.is_plain:
            return False
        total = problem.total_weight
        return stands_alone(problem, total, self.support, self._residual(), least)

    def _residual(self) -> float:
        """What least squares has left: its target is the predictor less slope/curvature."""
        problem, eta = self.problem, self.models.fits.predictor(self.w)[0]
        slope = problem.loss.gradient(eta, problem.y).reshape(len(eta), -1)
        squares = np.einsum("ij,ij->i", slope, slope) / self._curvature(eta)
        return 0.5 * float(problem.weights @ squares)

    def ends_alone(self) -> bool:
        """Whether nothing is nearly as good, in the model, as where its search has ended."""
        return False

    @abstractmethod
    def settle(self, run: Run) -> Proposal:
        """Where the search of the model leads from w."""

    @abstractmethod
    def shrink(self, size: int) -> Proposal:
        """The support without its least missed columns, until `size` are left."""

    @abstractmethod
    def prices(self) -> Floats:
        """The change by the best move that brings in each column, (n,); a pass over X."""

    @abstractmethod
    def changes(self) -> Iterator[Proposal]:
        """Single changes of the support that are worth a re-fit, the likeliest ones."""

    def kick_round(self, run: Run, rng: np.random.Generator, is_narrow: bool) -> Proposal | None:
        """Where kicks on the model lead; None where it has none of its own."""
        return None

    def patience(self, is_narrow: bool) -> int:
        """Kicks of the loss itself in a row without improvement that end a round."""
        return 1

    def drop(self, rng: np.random.Generator) -> Ints | None:
        """The columns that a kick takes out of the support; None where it can take none."""
        movable = np.setdiff1d(self.support, self.problem.keep)
        if movable.size == 0:
            return None
        return rng.choice(movable, self._n_dropped(movable.size, rng), replace=False)

    def _n_dropped(self, n_movable: int, rng: np.random.Generator) -> int:
        """How many columns of those that may go a kick takes out."""
        return max(1, int(n_movable * rng.uniform(*DROPPED)))

    def refill(self, dropped: Ints, rng: np.random.Generator) -> Proposal | None:
        """Other columns in place of those that were dropped; None to settle from w."""
        return None


class QuadraticModel(Model):
    """One response, searched by `QuadraticSearch`."""

    _end: Incumbent | None = None

    @lazy
    def best(self) -> Floats | None:
        """Its best point of all, where there are few columns; else None."""
        problem = self.problem
        if problem.n_features > MOST_COLUMNS:
            return None
        design, target, weights, _ = self.data
        self.models.tally.n_passes += 1
        return WholeModel(design, target, weights, problem.ridge).best(
            self.w, problem.sparsity, problem.is_kept(np.arange(problem.n_features))
        )

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
        """The point in the model: a minimizer of the loss on its support is one of the model."""
        if not self.w.any():
            return self.search.start(self.w)
        objective = self.search.problem.objective(self.w)
        return Incumbent(self.w, objective, self.problem.units.count(self.w))

    def _settled(self, run: Run) -> Incumbent:
        """Where the search of the model leads from w; found once, unless the time is over."""
        if self._end is None:
            end = self.search.settle(self._here(), run)
            if run.seconds_left <= 0.0:
                return end
            self._end = end
        return replace(self._end)

    def is_alone(self) -> bool:
        """Whether nothing near the point is nearly as good in the model, see `stands_alone`."""
        search, here, support = self.search, self._end, self.support
        if here is None or not np.array_equal(here.support, support):
            here = Incumbent(self.w, search.problem.objective(self.w), support.size)
        least = float(search.prices_at(here).min())
        total = self.problem.total_weight
        return stands_alone(search.problem, total, support, here.objective, least)

    def ends_alone(self) -> bool:
        """Whether nothing is nearly as good, in the model, as where its search has ended."""
        return self._end is not None and self.search.is_alone(self._end)

    def settle(self, run: Run) -> Proposal:
        """Where the search of the model leads from w: to its best point, where that is known."""
        if self.best is not None:
            return self._propose(self.best)
        return self._propose(self._settled(run).w)

    def shrink(self, size: int) -> Proposal:
        """The support without its least missed columns, until `size` are left."""
        w = self.search.shrink(self.w, size)
        return Proposal(np.flatnonzero(w), w)

    def prices(self) -> Floats:
        """The change by the best move that brings in each column, (n,); a pass over X."""
        here = Incumbent(self.w, np.inf, self.problem.units.count(self.w))
        return self.search.prices_at(here).copy()

    def changes(self) -> Iterator[Proposal]:
        """Single changes of the support that are worth a re-fit, the likeliest ones."""
        return self.models.trials.changes(self.w)

    def kick_round(self, run: Run, rng: np.random.Generator, is_narrow: bool) -> Proposal | None:
        """Where a walk on the model leads; nowhere from its best point."""
        if self.best is not None:
            return None
        walks = IndependentWalks(self.search, run, rng, 0, Frontier())
        # the first round is short, and among few columns
        walks.n_rounds = 0 if is_narrow else 1
        return self._propose(walks.advance(self._settled(run)).w)

    def _propose(self, w: Floats) -> Proposal:
        """A point of the model, with its intercept."""
        support = self.problem.units.support(w)
        if not self.problem.has_intercept:
            return Proposal(support, w)
        shift = self.problem.design.shift_from(self.data.design)
        return Proposal(support, w, float(self.data.intercept + shift @ w))


class GroupedModel(Model):
    """Several responses, searched by `GroupedSearch`; kicks come by its random weights."""

    most_kicks = 60
    least_curvature = 4e-3
    tries_swaps = True

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
        """A support with the model's coefficients and intercepts."""
        w, V = self.problem.zero(), self.search.fit(support)[1]
        w[support] = V
        shift = self.problem.design.shift_from(self.data.design)[support]
        return Proposal(support, w, self.data.intercept + shift @ V)

    def is_alone(self) -> bool:
        """Whether nothing near the point is nearly as good in the model, see `stands_alone`."""
        problem, least = self.problem, float(self.search.prices(self.support).min())
        return stands_alone(problem, problem.total_weight, self.support, self._residual(), least)

    def ends_alone(self) -> bool:
        """Whether nothing is nearly as good, in the model, as where its search has ended."""
        end, least = self.search.end or (None, 0.0)
        if end is None:
            return False
        _, target, weights, _ = self.data
        total = float(weights @ np.einsum("ij,ij->i", target, target))
        objective = 0.5 * (total - float(np.vdot(self.search.B[end], self.search.fit(end)[1])))
        return stands_alone(self.problem, self.problem.total_weight, end, objective, least)

    def settle(self, run: Run) -> Proposal:
        """Where the search of the model leads from w."""
        return self._propose(self.search.descend(self.support))

    def shrink(self, size: int) -> Proposal:
        """The support without its least missed columns, until `size` are left."""
        return self._propose(self.search.shrink(self.support, size))

    def prices(self) -> Floats:
        """The change by the best move that brings in each column, (n,); a pass over X."""
        return self.search.prices(self.support)

    def changes(self) -> Iterator[Proposal]:
        """Single changes of the support that are worth a re-fit, the likeliest ones.

        Where no check follows, swaps are tried on the loss itself, too.
        """
        yield from map(self._propose, self.search.likely_moves(self.support, TRIALS))
        if not self.models.options.is_checked:
            leaving = self.search.least_missed(self.support, LEAVE)
            yield from self.models.class_trials.swaps(self.w, leaving)

    def patience(self, is_narrow: bool) -> int:
        """Kicks in a row without improvement that end a round; the first one is all of "fast"."""
        n_pairs = comb(self.support.size, 2)
        return max(FIRST_KICKS, n_pairs // PAIRS) if is_narrow else KICKS

    def drop(self, rng: np.random.Generator) -> Ints | None:
        """The columns that a kick takes out; at a price every other kick only brings some in."""
        price, budget = self.problem.sparsity
        can_grow = price > 0.0 and self.support.size < budget
        if can_grow and rng.random() < GROWING:
            return np.empty(0, dtype=np.int64)
        dropped = super().drop(rng)
        return np.empty(0, dtype=np.int64) if dropped is None and can_grow else dropped

    def _n_dropped(self, n_movable: int, rng: np.random.Generator) -> int:
        """How many columns a kick takes out: every other time few, which large supports need."""
        if rng.random() < 0.5:
            return super()._n_dropped(n_movable, rng)
        most = max(FEW_DROPPED, int(SHARE_DROPPED * n_movable))
        return int(rng.integers(1, min(most, n_movable) + 1))

    def refill(self, dropped: Ints, rng: np.random.Generator) -> Proposal | None:
        """Other columns in place of those that were dropped, without half of these."""
        weight = rng.uniform(0.5, 1.0, self.problem.n_units)
        weight[dropped[: (dropped.size + 1) // 2]] = 0.0
        sparsity = self.problem.sparsity
        # for a while at a lower price: some columns pay together and none of them alone
        search = self.search.at(sparsity._replace(price=sparsity.price * rng.uniform(*CHEAPER)))
        return self._propose(search.descend(self.support, weight))


class UnitModel(GroupedModel):
    """Groups, bounds, costs or several responses, searched by `UnitSearch`."""

    @property
    def support(self) -> Ints:
        """The units of the point; a kept one has its place, though bounds may hold it at zero."""
        return np.union1d(super().support, self.problem.keep).astype(np.int64)

    @lazy
    def data(self) -> LeastSquares:
        """The model as least squares: of the squared loss itself, wherever the point is."""
        problem = self.problem
        if problem.is_quadratic:
            return LeastSquares(problem.design, problem.y, problem.weights, 0.0)
        return super().data

    @lazy
    def search(self) -> UnitSearch:
        """The search of the model; there is but one for the squared loss."""
        models = self.models
        if self.problem.is_quadratic and models.search is not None:
            return models.search
        design, target, weights, _ = self.data
        weighted = (weights * target.T).T.reshape(len(weights), -1)
        B = np.ascontiguousarray(design.cross(weighted, slice(None)).T)
        models.tally.n_passes += 1
        gram = models.gram(design, weights, self.is_global)
        models.search = UnitSearch(gram, B, UnitRules.of(self.problem), models.tolerance)
        return models.search

    def is_alone(self) -> bool:
        """Not told of units: several of them together may be better, and kicks find them."""
        return False

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
        # that of the squared loss in units, which is the same at all points
        self.search: UnitSearch | None = None
        self._trials: Trials | None = None
        self._class_trials: ClassTrials | None = None
        self._grams: dict[bool, GramRows] = {}
        self._latest: list[Model] = []

    def for_problem(self, problem: Problem) -> Models:
        """The models of the same data under another price and budget; they share what they can."""
        other = copy(self)
        other.problem, other._trials, other._latest = problem, None, []
        other.search = None if self.search is None else self.search.at(problem.sparsity)
        return other

    def at(self, w: Floats, is_global: bool = False) -> Model:
        """The model at w, with its own curvatures or with those of the bound."""
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

    @property
    def class_trials(self) -> ClassTrials:
        """Trials of several outputs on the loss itself; they depend on neither price nor budget."""
        if self._class_trials is None:
            self._class_trials = ClassTrials(self.problem, self.fits)
        return self._class_trials

    def gram(self, design: Any, weights: Floats, is_global: bool) -> GramRows:
        """The rows of X'DX: those of the bound are known for good, others until the next ask."""
        gram = self._grams.get(is_global)
        if gram is None or not np.array_equal(gram.weights, weights):
            gram = GramRows(design, weights, self.problem.ridge, self.tally)
            self._grams[is_global] = gram
        return gram
