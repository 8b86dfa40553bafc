"""The search of method "refit" for several classes, through models of grouped least squares.

The Hessian in a predictor, diag(p) − pp', is at most ½(I − 11'/C) (Böhning): with that bound, or
with its own mean curvature in its place, a step is a least-squares problem of C responses that
share one support, and the gains of moves are sums over responses.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.grouped_search import GramRows, GroupedSearch
from blockl0.local_search import NEGLIGIBLE
from blockl0.multinomial import MultinomialProblem, as_rows, rows_of
from blockl0.multinomial_moves import MultinomialMoves
from blockl0.preprocess import Centered
from blockl0.quadratic_search import RELATIVE_TOLERANCE, Incumbent, SearchOptions, Tally
from blockl0.run import Run
from blockl0.single_moves import Verdict
from blockl0.softmax import minimize_softmax, probabilities
from blockl0.sparsity import Sparsity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BOHNING = 0.5
"""The bound on the curvature in a predictor, on differences between classes."""
LEAST_CURVATURE = 2e-3
"""Curvature below which a local model would be too flat to be trusted."""
MAX_MODELS, KICKS, FIRST_KICKS = 30, 2, 4
"""Models of a settling, kicks of a round, and of the first one, which is all of effort "fast"."""
TRIALS = 8
"""Additions, swaps and removals each that are tried on the true loss before a search ends."""
POOL, POOL_FACTOR = 200, 10
"""Columns among which kicks move: this many, or so many supports if that is more."""
KNOWN_PREDICTORS = 16
"""Supports whose predictors are remembered, (m, C) each."""


class Model(NamedTuple):
    """Grouped least squares at a point, and what turns its coefficients into a start."""

    search: GroupedSearch
    intercepts: Floats
    shift: Floats | None

    def start(self, support: Ints) -> tuple[Floats, Floats]:
        """(coefficients on a support (s, C), intercepts (C,)) of the model."""
        V = self.search.fit(support)[1]
        if self.shift is None:
            return V, self.intercepts
        return V, self.intercepts + self.shift[support] @ V


class MultinomialSearch:
    """Search a model of grouped least squares, polish on the true objective, keep what is better.

    The interface is that of the other searches of method "refit".
    """

    def __init__(
        self, problem: MultinomialProblem, options: SearchOptions, tally: Tally | None = None
    ) -> None:
        self.problem = problem
        self.options = options
        zero = np.zeros((problem.n_features, problem.n_classes))
        at_zero = problem.value(problem.predictor(zero))
        self.tolerance, self.negligible = RELATIVE_TOLERANCE * at_zero, NEGLIGIBLE * at_zero
        self.tally = Tally() if tally is None else tally
        # what is known of a support, its predictors too, is not computed again
        self._eta: dict[tuple[int, ...], Floats] = {}
        self._polished: dict[tuple[int, ...], Incumbent] = {}
        self._settled: dict[tuple[int, ...], Incumbent] = {}
        self._tried: set[tuple[int, ...]] = set()
        self._checked: dict[tuple[int, ...], Verdict] = {}
        self._bound: list[GramRows] = []
        self._local: tuple[tuple[int, ...], GramRows] | None = None
        self._pool: tuple[tuple[int, ...], Ints, MultinomialSearch] | None = None

    def for_sparsity(self, sparsity: Sparsity) -> MultinomialSearch:
        """The search of the same data under another price and budget."""
        other = copy(self)
        other.problem = replace(self.problem, sparsity=sparsity)
        other._settled, other._tried, other._checked, other._pool = {}, set(), {}, None
        if sparsity.price != self.problem.sparsity.price:
            # a fit on a support does not depend on the budget
            other._polished = {}
        return other

    def start(self, w: Floats) -> Incumbent:
        """The minimizer on the rows of w and the kept columns."""
        W = as_rows(w, self.problem.n_classes)
        support = np.union1d(rows_of(W), self.problem.keep).astype(np.int64)
        return self.polish(support, 0, W[support])

    def scatter(self, rng: np.random.Generator) -> Incumbent:
        """A start elsewhere: additions ranked by gains times random numbers."""
        zero = np.zeros((self.problem.n_features, self.problem.n_classes))
        model = self._model(zero)
        support = model.search.descend(self.problem.keep, rng.uniform(0.0, 1.0, len(zero)))
        return self.polish(support, 0, *model.start(support))

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column of the model at w until `size` are left."""
        model = self._model(w)
        support = model.search.shrink(rows_of(w), size)
        return self.polish(support, 0, *model.start(support)).w

    def settle(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Model, search, polish; and at the end the likeliest single moves, on the true loss."""
        for _ in range(MAX_MODELS):
            incumbent = self._settle(incumbent, run)
            found = self._trial(incumbent, run)
            if found is None:
                break
            incumbent = found
        return incumbent

    def check(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """A point one change away that is better; if there is none, the incumbent is settled.

        Unless the time or the work that may be spent on it ends before that is certain.
        """
        key = tuple(rows_of(incumbent.w).tolist())
        if key not in self._checked:
            moves = MultinomialMoves(self)
            self._checked[key] = moves.check(incumbent.w, incumbent.objective, self.tolerance, run)
        verdict = self._checked[key]
        incumbent.is_settled = verdict.is_complete
        if verdict.better is None:
            return None
        support = rows_of(verdict.better)
        found = self.polish(support, incumbent.iteration + 1, verdict.better[support])
        return found if found.objective < incumbent.objective else None

    def _trial(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """A point one move away that is better though no model says so; each is tried once."""
        support = rows_of(incumbent.w)
        key = tuple(support.tolist())
        if key in self._tried or run.seconds_left <= 0.0:
            return None
        self._tried.add(key)
        best, model = incumbent, self._model(incumbent.w)
        for there in model.search.likely_moves(support, TRIALS):
            if run.seconds_left <= 0.0:
                break
            ceiling = best.objective
            found = self.polish(there, incumbent.iteration + 1, *model.start(there), ceiling)
            if found.objective < best.objective - self.tolerance:
                best = found
        return None if best is incumbent else best

    def _settle(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Model, search, polish, until neither the local nor the global model finds better."""
        is_global, seen = False, []
        for _ in range(MAX_MODELS):
            if run.seconds_left <= 0.0:
                return incumbent
            support = rows_of(incumbent.w)
            key = tuple(support.tolist())
            if key in self._settled:
                incumbent = replace(self._settled[key], iteration=incumbent.iteration)
                break
            seen.append(key)
            model = self._model(incumbent.w, is_global)
            support = model.search.descend(support)
            found = self.polish(
                support, incumbent.iteration + 1, *model.start(support), incumbent.objective
            )
            if found.objective < incumbent.objective - self.tolerance:
                incumbent, is_global = found, False
            elif is_global:
                break
            else:
                is_global = True
        self._settled.update(dict.fromkeys(seen, incumbent))
        return incumbent

    def kick_round(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool = False
    ) -> Incumbent:
        """Kicks among the columns with the best prices; what is better settles among all."""
        pool, inside = self._inside(incumbent)
        best = here = replace(incumbent, w=incumbent.w[pool])
        for _ in range(FIRST_KICKS if is_narrow else KICKS):
            best = inside._kick(best, run, rng)
        if not best.objective < here.objective:
            return incumbent
        W = np.zeros_like(incumbent.w)
        W[pool] = best.w
        return self.settle(replace(best, w=W), run, rng)

    def _inside(self, incumbent: Incumbent) -> tuple[Ints, MultinomialSearch]:
        """The columns of a pool around a point, ascending, and the search of them."""
        problem, support = self.problem, rows_of(incumbent.w)
        key = tuple(support.tolist())
        if self._pool is None or self._pool[0] != key:
            size = max(POOL, POOL_FACTOR * support.size)
            if size >= problem.n_features:
                return np.arange(problem.n_features), self
            prices = self._model(incumbent.w).search.prices(support)
            prices[np.union1d(support, problem.keep)] = -np.inf
            pool = np.sort(np.argpartition(prices, size)[:size])
            keep = np.searchsorted(pool, problem.keep)
            part = replace(problem, design=problem.design.take(pool), keep=keep)
            self._pool = key, pool, MultinomialSearch(part, self.options, self.tally)
        return self._pool[1:]

    def _kick(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Drop a part of the support, refill without half of it, settle; keep what is better."""
        support = rows_of(incumbent.w)
        movable = np.setdiff1d(support, self.problem.keep)
        if movable.size == 0 or run.seconds_left <= 0.0:
            return incumbent
        dropped = rng.permutation(movable)[: max(1, int(movable.size * rng.uniform(0.1, 0.6)))]
        rest = np.setdiff1d(support, dropped)
        here = self.polish(rest, incumbent.iteration, incumbent.w[rest])
        weight = rng.uniform(0.5, 1.0, self.problem.n_features)
        weight[dropped[: (dropped.size + 1) // 2]] = 0.0
        model = self._model(here.w)
        support = model.search.descend(rest, weight)
        found = self.polish(support, incumbent.iteration, *model.start(support))
        found = self._settle(found, run)
        return found if found.objective < incumbent.objective - self.tolerance else incumbent

    def _model(self, W: Floats, is_global: bool = False) -> Model:
        """Least squares with C responses: curvature d_i, targets eta + (Y − P)/d."""
        problem, key = self.problem, tuple(rows_of(W).tolist())
        eta = self._eta.get(key)
        if eta is None:
            eta = problem.predictor(as_rows(W, problem.n_classes))
        P = probabilities(eta)
        curvature = np.full(problem.n_samples, BOHNING)
        if not is_global:
            # the trace of diag(p) − pp', spread over C − 1 directions
            curvature = (1.0 - np.sum(P**2, axis=1)) / (problem.n_classes - 1)
            curvature = np.clip(curvature, LEAST_CURVATURE, BOHNING)
        P[np.arange(problem.n_samples), problem.y] -= 1.0
        target, weights = eta - P / curvature[:, None], problem.weights * curvature
        gram = self._gram(key, weights, is_global)
        intercepts, shift = np.zeros(problem.n_classes), None
        if isinstance(problem.design, Centered) and isinstance(gram.design, Centered):
            intercepts = np.average(target, axis=0, weights=weights)
            shift = problem.design.shift_from(gram.design)
            target = target - intercepts
        B = gram.design.cross(weights[:, None] * target, slice(None)).T
        self.tally.n_passes += 1
        search = GroupedSearch(gram, B, problem.sparsity, problem.keep, self.tolerance)
        return Model(search, intercepts, shift)

    def _gram(self, key: tuple[int, ...], weights: Floats, is_global: bool) -> GramRows:
        """The Gram matrix of a model: that of the bound is one for all, a local one is kept."""
        if is_global and self._bound:
            return self._bound[0]
        if not is_global and self._local is not None and self._local[0] == key:
            return self._local[1]
        design = self.problem.design
        if isinstance(design, Centered):
            design = design.recentred(weights)
        gram = GramRows(design, weights, self.problem.ridge, self.tally)
        if is_global:
            self._bound.append(gram)
        else:
            self._local = key, gram
        return gram

    def polish(
        self,
        support: Ints,
        iteration: int,
        start: Floats,
        intercepts: Floats | float = 0.0,
        ceiling: float = np.inf,
    ) -> Incumbent:
        """The true minimizer on a support, found once; or a point above a ceiling, if it is too."""
        key = tuple(support.tolist())
        if key in self._polished:
            return replace(self._polished[key], iteration=iteration)
        problem = self.problem
        A, n_free = problem.design.columns(support), int(problem.has_intercept)
        if n_free:
            A = np.column_stack([np.ones(problem.n_samples), A])
            start = np.vstack([np.zeros(problem.n_classes) + intercepts, start])
        ridge = np.full(A.shape[1], problem.ridge)
        ridge[:n_free] = 0.0
        smooth = ceiling - problem.sparsity.cost(support.size)
        V = minimize_softmax(A, problem.y, problem.weights, ridge, start, ceiling=smooth)
        eta = A @ V
        found = np.zeros((problem.n_features, problem.n_classes))
        found[support] = V[n_free:]
        n_nonzero = rows_of(found).size
        objective = problem.value(eta) + 0.5 * problem.ridge * float(np.sum(found**2))
        point = Incumbent(found, objective + problem.sparsity.cost(n_nonzero), n_nonzero, iteration)
        if point.objective <= ceiling:
            self._polished[key] = point
            if len(self._eta) == KNOWN_PREDICTORS:
                self._eta.pop(next(iter(self._eta)))
            self._eta[tuple(rows_of(found).tolist())] = eta
        return point
