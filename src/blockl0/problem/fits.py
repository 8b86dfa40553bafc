"""Fits on a support: the only source of coefficients. Models propose, fits dispose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from blockl0.problem.bounded import (
    bounded_least_squares,
    minimize_within,
    no_bound_holds_back,
    within,
)
from blockl0.problem.newton import Fit, least_on_span, minimize_on
from blockl0.problem.orthogonal import (
    DEPENDENT,
    FEW_COLUMNS,
    PRECISION,
    exchange_gain,
    independent_columns,
    is_resolved,
    kept_first,
    least_squares,
    orthonormal,
    project_away,
    smallest_distance,
)
from blockl0.problem.problem import Problem
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_KNOWN = 5000
"""Number of supports whose fits are cached before the cache is cleared."""
NOTHING = 1e-16
"""Share of a value below which the gain of a better intercept is rounding."""
WEAK_PIVOT = 1e-5
"""Normal equations of unit columns are not used if a diagonal entry of their factor is smaller."""


class Fits:
    """Minimizers of the smooth part on given supports, independent of penalty and budget.

    This base class fits the squared loss by an orthogonal factorization.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def on(
        self,
        support: Ints,
        start: Floats | None = None,
        ceiling: float = np.inf,
        intercept: Any = None,
    ) -> Fit:
        """Minimize on a support, or stop at a point that provably stays above a ceiling.

        Parameters
        ----------
        support : ndarray of int64
            Ascending.
        start : ndarray (n,) or (n, C), optional
            Starting point; only its entries on the support are used.
        ceiling : float
            Of the smooth part.
        intercept : float or ndarray (C,), optional
            Intercept at the start; the best one if not given.
        """
        w = self.coef_on(support)
        value = self.problem.smooth(w)
        return Fit(w, value, 0.0, value)

    def minimum(self, support: Ints, *given: Any) -> Fit:
        """Fit like `on`, with a value that equals `Problem.smooth` to the last digit."""
        return self.on(support, *given)

    def coef_on(self, support: Ints) -> Floats:
        """Return only the coefficients of `on`, (n,).

        Orthogonal factorization of the m x |S| columns: accurate where normal equations are not. If
        columns depend on each other, some of them (not kept ones) stay at zero.
        """
        problem, w = self.problem, self.problem.zero()
        if support.size == 0:
            return w
        support, n_kept = kept_first(problem, support)
        A, b, scale = problem.unit_columns(support)
        w[support] = (least_squares(A, b, n_kept).T / scale).T
        return w

    def doubt(self, support: Ints, w: Floats) -> float:
        """Bound how much a different choice among nearly dependent columns could lower the fit w.

        A fit drops columns that depend on others, and which ones is a choice. Infinite if no bound
        is available.
        """
        if COLUMNS.count(w) == support.size:
            return 0.0
        A, b, scale = self.problem.unit_columns(support)
        if smallest_distance(A) > DEPENDENT:
            return 0.0
        none, every = np.full(support.size, np.inf), np.ones(support.size, dtype=np.bool_)
        return sum(
            exchange_gain(A, target, v * scale, -none, none, every)
            for v, target in zip(np.atleast_2d(w[support].T), np.atleast_2d(b.T), strict=True)
        )

    def least_on(self, support: Ints) -> float:
        """Return a lower bound of the smooth part on some columns, for the squared loss.

        Uses all of the columns, however close they are to each other; without bounds.
        """
        A, b, _ = self.problem.unit_columns(support)
        rest = project_away(orthonormal(A, PRECISION), b)[0]
        return 0.5 * float(np.vdot(rest, rest))

    def shortest_on(self, support: Ints) -> Floats:
        """Fit by normal equations, (n,), squared loss only; O(m|S|² + |S|³).

        Zero columns stay out. If the rest is ill-conditioned or singular, the minimum-norm solution
        is found by an orthogonal factorization.
        """
        problem, w = self.problem, self.problem.zero()
        G = problem.design.gram(support, problem.sample_weight)
        is_zero = np.diag(G) == 0.0
        if is_zero.any():
            return self.shortest_on(support[~is_zero])
        if support.size == 0:
            return w
        G.flat[:: support.size + 1] += problem.ridge
        scale = np.sqrt(np.diag(G))
        try:
            factor = cho_factor(G / np.outer(scale, scale), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            factor = None
        # normal equations square distances between columns; a factorization of the columns does not
        if factor is None or np.diag(factor[0]).min() < WEAK_PIVOT:
            A, b, unit = problem.unit_columns(support)
            w[support] = np.linalg.lstsq(A, b, rcond=None)[0] / unit
            return w
        target = problem.y if problem.sample_weight is None else problem.sample_weight * problem.y
        right = problem.design.columns(support).T @ target
        w[support] = cho_solve(factor, right / scale, check_finite=False) / scale
        return w

    def growing(self, n_places: int) -> GrowingFit:
        """Start a fit on a support that will grow to `n_places` columns, squared loss only."""
        return GrowingFit(self.problem, n_places)

    def predictor(self, w: Floats) -> tuple[Floats, Any]:
        """Compute eta = Xw + b with the best intercept b; return both."""
        problem, support = self.problem, COLUMNS.support(w)
        # only columns of the support are read
        eta = problem.linear_on(support, w[support])
        if not problem.has_intercept:
            return eta, np.zeros(w.shape[1]) if w.ndim == 2 else 0.0
        b = self._known_intercept(support, w)
        b = problem.best_intercept(eta) if b is None else b
        return eta + b, b

    def _known_intercept(self, support: Ints, w: Floats) -> Any:
        return None


class NewtonFits(Fits):
    """Fits of other losses, with a cache of supports."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._known: dict[bytes, Fit] = {}
        self._apart: NDArray[np.bool_] | None = None
        self._smooth: dict[bytes, float] = {}

    def on(
        self,
        support: Ints,
        start: Floats | None = None,
        ceiling: float = np.inf,
        intercept: Any = None,
    ) -> Fit:
        """Minimize on a support unless the cache has the minimum, or a bound above the ceiling."""
        key = support.tobytes()
        known = self._known.get(key)
        if known is not None:
            start = self.problem.zero()
            start[support] = known.w
            if known.is_minimum or known.least > ceiling:
                return known._replace(w=start)
            intercept = known.intercept
        # cleared as a whole: supports of an old part of the search hardly come again
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
            self._smooth.clear()
        start = self.problem.zero() if start is None else start
        fit = self._minimize(start, support, ceiling, intercept)
        # only the coefficients on the support: of many columns zeros would fill the memory
        self._known[key] = fit._replace(w=fit.w[support])
        return fit

    def _minimize(self, start: Floats, support: Ints, ceiling: float, intercept: Any) -> Fit:
        """Fit the independent columns; bound all, where others of them might fit better.

        The fit of all columns comes first: where it stays above the ceiling so does every choice
        among them, and most fits of a search do. Columns too close for their products may hide the
        directions of nearly dependent ones, which then have to be looked at.
        """
        problem = self.problem
        fit = minimize_on(problem, start, support, ceiling, intercept)
        if fit.least > ceiling and not fit.is_close:
            return fit._replace(is_minimum=False)
        chosen = self._independent(support)
        if chosen.size < support.size:
            fit = minimize_on(problem, start, chosen, np.inf, intercept)
        # steps that products took may end above the minimum, and other choices may lie below it
        is_least = chosen.size == support.size or is_resolved(problem.unit_columns(support)[0])
        if is_least and not fit.is_close:
            return fit
        return fit._replace(least=min(fit.least, least_on_span(problem, support)))

    def _independent(self, support: Ints) -> Ints:
        """Select the columns to fit: all, if they are among those last seen to be apart."""
        n = self.problem.n_features
        if self._apart is None and n <= FEW_COLUMNS:
            self._apart = self._marked(np.arange(n))
        apart = self._apart
        if apart is None or not apart[support].all():
            self._apart = apart = self._marked(support)
        return support[apart[support]]

    def _marked(self, columns: Ints) -> NDArray[np.bool_]:
        """Mark the largest part of some columns that do not depend on each other, (n,)."""
        marks = np.zeros(self.problem.n_features, dtype=np.bool_)
        marks[independent_columns(self.problem, columns)] = True
        return marks

    def doubt(self, support: Ints, w: Floats) -> float:
        """Bound how much a different choice among nearly dependent columns could lower the fit.

        Zero where no column is dropped that is not exactly a combination of others.
        """
        known = self._known.get(support.tobytes())
        known = self.on(support, w) if known is None else known
        return known.value - known.least if known.is_minimum else 0.0

    def least_on(self, support: Ints) -> float:
        """Return a lower bound of the smooth part on some columns, however close they are."""
        return self.on(support).least

    def coef_on(self, support: Ints) -> Floats:
        """Return only the coefficients of `on`, (n,)."""
        return self.on(support).w

    def minimum(self, support: Ints, *given: Any) -> Fit:
        """Fit like `on`, with a value that equals `Problem.smooth` to the last digit.

        For several outputs the fitted intercepts are as good as those of `Problem.smooth`, which
        take much longer, so the value of the fit is kept.
        """
        fit, key = self.on(support, *given), support.tobytes()
        if not fit.is_minimum or self.problem.n_outputs > 1:
            return fit
        if key not in self._smooth:
            self._smooth[key] = self._smooth_at(fit)
        return fit._replace(value=self._smooth[key])

    def _smooth_at(self, fit: Fit) -> float:
        """Compute `Problem.smooth` up to rounding, starting from the fitted intercept."""
        problem, eta = self.problem, self.problem.linear(fit.w)
        if problem.has_intercept:
            values, slopes, bends = problem.loss.terms(eta + fit.intercept, problem.y)
            slope, bend = problem.weights @ slopes, problem.weights @ bends
            value = problem.weights @ values + 0.5 * problem.ridge * float(fit.w @ fit.w)
            if slope * slope <= 2.0 * bend * NOTHING * value:
                return float(value)
            eta = eta + problem.best_intercept(eta, fit.intercept)
        return problem.smooth_at(fit.w, eta)

    def _known_intercept(self, support: Ints, w: Floats) -> Any:
        known = self._known.get(support.tobytes())
        if known is None or not known.is_minimum or not np.array_equal(known.w, w[support]):
            return None
        return known.intercept


class BoundedFits(Fits):
    """Fits of the squared loss within bounds, by active sets of orthogonal factorizations."""

    def coef_on(self, support: Ints) -> Floats:
        """Return the best coefficients within bounds, (n,) or (n, q), exact where at a bound."""
        problem, w = self.problem, self.problem.zero()
        if support.size == 0:
            return w
        assert problem.bounds is not None
        low, high = problem.bounds[0][support], problem.bounds[1][support]
        A, b, scale = problem.unit_columns(support)
        many = b if b.ndim == 2 else b[:, None]
        V, status = bounded_least_squares(A, many, low * scale, high * scale)
        rows = np.empty_like(V)
        for c in range(V.shape[1]):
            rows[:, c] = within(V[:, c] / scale, status[:, c], low, high)
        w[support] = rows if b.ndim == 2 else rows[:, 0]
        return w

    def doubt(self, support: Ints, w: Floats) -> float:
        """Bound how much any other point within bounds on this support could lie below w.

        Zero if the active set method finished and the slopes of all columns at a bound are known. A
        column that is nearly, but not exactly, a combination of the free ones was never released.
        """
        assert self.problem.bounds is not None
        A, b, scale = self.problem.unit_columns(support)
        low, high = (side[support] * scale for side in self.problem.bounds)
        total = 0.0
        for v, target in zip(np.atleast_2d(w[support].T), np.atleast_2d(b.T), strict=True):
            x = v * scale
            # the active set method was stopped by rounding: nothing is known of this fit
            if not no_bound_holds_back(A, target, low, high, x):
                return np.inf
            total += exchange_gain(A, target, x, low, high, (low < x) & (x < high))
        return total


class BoundedNewtonFits(NewtonFits):
    """Fits of other losses within bounds, with a cache of supports."""

    def _minimize(self, start: Floats, support: Ints, ceiling: float, intercept: Any) -> Fit:
        """Fit a support without some columns, if those that are not at a bound depend on others."""
        problem = self.problem
        assert problem.bounds is not None
        fit = minimize_within(problem, start, support, intercept)
        w, (low, high) = fit.w[support], (side[support] for side in problem.bounds)
        free = support[(low < w) & (w < high)]
        dropped = np.setdiff1d(free, self._independent(free))
        if dropped.size == 0:
            return fit
        rest = np.setdiff1d(support, dropped)
        fit = self._minimize(start, rest, ceiling, intercept)
        if is_resolved(problem.unit_columns(support)[0]):
            return fit
        return fit._replace(least=min(fit.least, least_on_span(problem, support)))


def make_fits(problem: Problem) -> Fits:
    """Create the fits for the problem's kind."""
    return problem.kind.load("fits")(problem)


def least_squares_on(problem: Problem, support: Ints) -> Floats:
    """Return the coefficients of the fit on a support, (n,)."""
    return make_fits(problem).coef_on(support)


REPEAT_BELOW = 0.7
"""Share of its length below which a column is orthogonalized again, as its rounding has grown."""


class GrowingFit:
    """Gram-Schmidt with re-orthogonalization: adding a column and updating w costs O(mk + k²).

    Ridge and weights enter as in the augmented problem with columns (√weight·x_j, √ridge·e_j) and
    target (√weight·y, 0). Only the rows √ridge·e_j of columns in the support can be nonzero, so the
    vectors have length m + (places), not m + n.

    Attributes
    ----------
    coef : ndarray (n,)
        The fit on the support.
    size : int
        Columns in the support.
    latest : ndarray (m,)
        √weight times the newest basis vector: X'latest is the component of every column along it.
    """

    size: int

    def __init__(self, problem: Problem, n_places: int) -> None:
        m, n = problem.design.shape
        if not problem.ridge:
            # no more vectors of length m are independent
            n_places = min(n_places, m)  # more columns than rows are dependent
        self.problem = problem
        self.root: Floats | None = (
            None if problem.sample_weight is None else np.sqrt(problem.sample_weight)
        )
        length = m + n_places if problem.ridge else m
        self._residual = np.zeros(length)
        self._residual[:m] = self._weighted(problem.y)
        self._basis = np.empty((n_places, length))
        self._inverse = np.zeros((n_places, n_places))  # of the triangular factor
        self._support = np.empty(n_places, dtype=np.int64)
        self.size = 0
        self.coef: Floats = np.zeros(n)
        self.latest: Floats = np.zeros(m)

    @property
    def support(self) -> Ints:
        """Columns in the order in which they were added."""
        return self._support[: self.size]

    @property
    def smooth(self) -> float:
        """½‖residual‖² of the augmented problem: loss and ridge together."""
        return 0.5 * float(self._residual @ self._residual)

    @property
    def residual(self) -> Floats:
        """weight·(y − Xw), (m,): X'residual is minus the gradient where w_j = 0."""
        return self._weighted(self._residual[: self.problem.n_samples])

    def add(self, column: int) -> bool:
        """Add a column and refit; return False if it depends on the support."""
        k, m = self.size, self.problem.n_samples
        if k == self._support.size:
            return False
        v = np.zeros_like(self._residual)
        v[:m] = self._weighted(self.problem.design.columns([column])[:, 0])
        if self.problem.ridge:
            v[m + k] = math.sqrt(self.problem.ridge)
        length = math.sqrt(v @ v)
        along = self._orthogonalize(v)
        # once more if much was subtracted: "twice is enough" keeps the basis orthogonal to rounding
        left = math.sqrt(v @ v)
        if left <= REPEAT_BELOW * length:
            along += self._orthogonalize(v)
            left = math.sqrt(v @ v)
        if left <= DEPENDENT * length:
            return False
        v /= left
        self._append(column, v, along, left)
        return True

    def _orthogonalize(self, v: Floats) -> Floats:
        """Subtract Q'Qv from v in place; return Qv."""
        basis = self._basis[: self.size]
        along = basis @ v
        v -= along @ basis
        return along

    def _append(self, column: int, v: Floats, along: Floats, left: float) -> None:
        """Add v to the basis: column = Q'along + left·v."""
        k, inverse = self.size, self._inverse
        self._basis[k] = v
        self._support[k] = column
        # the new column of R⁻¹ maps a step along v to a step of the coefficients
        inverse[:k, k] = (inverse[:k, :k] @ along) / -left
        inverse[k, k] = 1.0 / left
        step = float(v @ self._residual)
        self._residual -= step * v
        coef = self.coef.copy()
        coef[self._support[: k + 1]] += step * inverse[: k + 1, k]
        self.size, self.coef = k + 1, coef
        self.latest = self._weighted(v[: self.problem.n_samples])

    def _weighted(self, vector: Floats) -> Floats:
        return vector if self.root is None else self.root * vector
