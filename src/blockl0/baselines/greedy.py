"""Greedy methods that move one column at a time: "omp", "gp", "forward", "sparse-simplex"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    ROUNDING,
    column_lengths,
    fit_support,
    iterate,
)
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run
from blockl0.validate import check_flag, check_nonnegative

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class MatchingPursuit:
    """Columns enter one by one, kept ones first; what enters next is for `choose` to say."""

    w: Floats
    n_nonzero: int
    iteration: int

    def __init__(self, problem: Problem, normalize: bool = True) -> None:
        self.problem = problem
        self.fit: Any = make_fits(problem).growing(problem.sparsity.budget)
        self.lengths: Floats = column_lengths(problem)
        self.normalize = normalize
        self.smallest: Any = ROUNDING * np.sqrt(2.0 * self.fit.smooth)
        self.is_closed: NDArray[np.bool_] = np.zeros(problem.n_features, dtype=np.bool_)
        self.w, self.n_nonzero, self.iteration = self.fit.coef, 0, 0
        for column in problem.keep:
            self.add(int(column))

    @property
    def objective(self) -> float:
        """Return ½‖residual‖², ridge included."""
        return self.fit.smooth

    @property
    def merit(self) -> float:
        """Return the objective."""
        return self.fit.smooth

    def add(self, column: int) -> bool:
        """Add a column, never to be tried again; return False if it depends on the support."""
        self.is_closed[column] = True
        entered = self.fit.add(column)
        self.w, self.n_nonzero = self.fit.coef, int(np.count_nonzero(self.fit.coef))
        return entered

    def choose(self) -> int | None:
        """Return the column with the largest |x_j'r|/‖x_j‖, or |x_j'r|; None if all are zero."""
        correlation = self.problem.design.rmatvec(self.fit.residual)
        np.abs(correlation, out=correlation)
        correlation[self.is_closed] = 0.0
        best = int((correlation / self.lengths if self.normalize else correlation).argmax())
        return best if correlation[best] > self.smallest * self.lengths[best] else None

    def advance(self) -> bool:
        """Add the best column; return False if the budget is used up or nothing correlates."""
        while self.fit.size < self.problem.sparsity.budget:
            column = self.choose()
            if column is None:
                return False
            if self.add(column):
                return self.fit.size < self.problem.sparsity.budget
        return False


@method("omp", losses="quadratic", forms=("budget",), start=False)
def solve_omp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
) -> Result:
    """Repeat: add the column most correlated with the residual, and re-fit all.

    Y. C. Pati, R. Rezaiifar and P. S. Krishnaprasad, "Orthogonal matching pursuit", Asilomar
    Conference (1993); J. A. Tropp and A. C. Gilbert, "Signal recovery from random measurements via
    orthogonal matching pursuit", IEEE Transactions on Information Theory 53 (2007). One pass over X
    and O(mk) per column, by a growing orthonormal basis.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns enter first.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Compare |x_j'r|/‖x_j‖, as for columns of length one, which the definition assumes; False
        compares |x_j'r| as scikit-learn does.
    """
    return iterate(MatchingPursuit(problem, check_flag("normalize", normalize)), run)


# -- gradient pursuit ------------------------------------------------------------------------------


class GradientPursuit:
    """Columns enter one by one; instead of a fit a gradient step on the support, of best length."""

    iteration: int
    w: Floats
    objective: float

    def __init__(self, problem: Problem, normalize: bool) -> None:
        self.problem = problem
        self.lengths: Floats = column_lengths(problem) if normalize else np.ones(problem.n_features)
        self.support: list[int] = list(map(int, problem.keep))
        self.iteration, self.n_nonzero = 0, 0
        self._take(fit_support(problem, problem.keep))
        self.smallest: Any = ROUNDING * np.sqrt(2.0 * problem.smooth(np.zeros(problem.n_features)))

    @property
    def merit(self) -> float:
        """Return the objective."""
        return self.objective

    def _take(self, w: Floats) -> None:
        self.w, self.objective = w, self.problem.objective(w)
        self.n_nonzero: int = int(np.count_nonzero(w))

    def advance(self) -> bool:
        """Add a column and step; at the end of the budget fit, and return False."""
        problem, gradient = self.problem, self.problem.gradient(self.w)
        scores = np.abs(gradient) / self.lengths
        scores[self.support] = 0.0
        best = int(scores.argmax())
        has_room = len(self.support) < problem.sparsity.budget
        if not has_room or scores[best] <= self.smallest:
            # the published method ends with its last step; its support deserves the fit
            fitted = fit_support(problem, np.array(sorted(self.support), dtype=np.int64))
            if problem.objective(fitted) < self.objective:
                self._take(fitted)
            return False
        self.support.append(best)
        step = np.zeros_like(self.w)
        step[self.support] = -gradient[self.support]
        eta = problem.design.matvec(step)
        weighted = eta if problem.sample_weight is None else problem.sample_weight * eta
        curvature = float(eta @ weighted) + problem.ridge * float(step @ step)
        self._take(self.w + float(step @ step) / curvature * step)
        return True


@method("gp", losses="quadratic", forms=("budget",), start=False)
def solve_gp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
) -> Result:
    """Repeat: add the column most correlated with the residual, and step along the gradient.

    T. Blumensath and M. E. Davies, "Gradient pursuits", IEEE Transactions on Signal Processing 56
    (2008). A step of the best length on the support in place of a fit: two passes over X a column.
    The last support is fitted.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns are in from the start.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Whether columns are compared as if they had length one.
    """
    return iterate(GradientPursuit(problem, check_flag("normalize", normalize)), run)


# -- the sparse-simplex methods --------------------------------------------------------------------


class SparseSimplex:
    """A point that is improved by the best step of one coordinate, or exchange of two.

    While the budget is not full every coordinate may step. Once it is, the best step within the
    support competes with the best exchange: one coordinate goes to zero and another takes its best
    value, all others as they are. The greedy method looks at all exchanges, the partial one at that
    of the smallest coefficient for the largest gradient.
    """

    problem: Problem
    is_partial: bool
    tol: float
    w: Floats
    objective: float

    def __init__(self, problem: Problem, w: Floats, is_partial: bool, tol: float) -> None:
        self.problem, self.is_partial, self.tol = problem, is_partial, tol
        self.curvature: Floats = problem.design.sq_norms(problem.sample_weight) + problem.ridge
        self.half_inverse: Floats = 0.5 / np.where(self.curvature > 0.0, self.curvature, np.inf)
        self.is_kept: NDArray[np.bool_] = np.isin(np.arange(problem.n_features), problem.keep)
        self.iteration = 0
        self._take(w)

    @property
    def merit(self) -> float:
        """Return the objective."""
        return self.objective

    def _take(self, w: Floats) -> None:
        self.w, self.objective = w, self.problem.objective(w)
        self.gradient: Floats = self.problem.gradient(w)
        self.n_nonzero: int = int(np.count_nonzero(w))

    def advance(self) -> bool:
        """Make the best step or exchange; where they bring little, fit the support."""
        w, gradient = self.w, self.gradient
        gains = self.half_inverse * gradient**2
        is_full = self.n_nonzero >= self.problem.sparsity.budget
        if is_full:
            gains[w == 0.0] = 0.0
        into, out = int(gains.argmax()), -1
        gain = gains[into]
        if is_full:
            other, leaving, entering = self._best_exchange()
            if other > gain:
                gain, out, into = other, leaving, entering
        if gain <= self.tol * self.objective:
            return self._fit()
        moved, slope = w.copy(), gradient[into]
        if out >= 0:
            slope -= self._products(np.array([out]))[into, 0] * w[out]
            moved[out] = 0.0
        moved[into] -= slope * 2.0 * self.half_inverse[into]
        self._take(moved)
        return True

    def _fit(self) -> bool:
        """Fit the support, to which coordinate steps converge; return whether that brings much."""
        fitted = fit_support(self.problem, np.flatnonzero((self.w != 0.0) | self.is_kept))
        before = self.objective
        if self.problem.objective(fitted) < before:
            self._take(fitted)
        return before - self.objective > self.tol * before

    def _best_exchange(self) -> tuple[float, int, int]:
        """Return gain, leaving and entering coordinate of the best exchange looked at."""
        w, gradient = self.w, self.gradient
        leaving = np.flatnonzero((w != 0.0) & ~self.is_kept)
        if self.is_partial and leaving.size:
            leaving = leaving[[np.abs(w[leaving]).argmin()]]
        if leaving.size == 0 or self.n_nonzero == w.size:
            return 0.0, -1, -1
        # to zero: F changes by −g_i w_i + ½Q_ii w_i², and every other slope by −Q_ij w_i
        lost = w[leaving] * (0.5 * self.curvature[leaving] * w[leaving] - gradient[leaving])
        slopes = gradient[:, None] - self._products(leaving) * w[leaving]
        gains = self.half_inverse[:, None] * slopes**2 - lost
        gains[w != 0.0] = -np.inf
        if self.is_partial:
            gains[
                np.arange(w.size) != np.where(w == 0.0, np.abs(gradient), -1.0).argmax()
            ] = -np.inf
        entering, which = np.unravel_index(int(gains.argmax()), gains.shape)
        return float(gains[entering, which]), int(leaving[which]), int(entering)

    def _products(self, columns: Ints) -> Floats:
        """Return X' diag(weights) X[:, columns], (n, |columns|)."""
        X = self.problem.design.columns(columns)
        if self.problem.sample_weight is not None:
            X = self.problem.sample_weight[:, None] * X
        return self.problem.design.cross(X, slice(None)).T


@method("sparse-simplex", losses="quadratic", forms=("budget",))
def solve_sparse_simplex(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    partial: bool = False,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Result:
    """Repeat: the best step of one coordinate, or at a full budget the best exchange of two.

    A. Beck and Y. C. Eldar, "Sparsity constrained nonlinear optimization: optimality conditions and
    algorithms", SIAM Journal on Optimization 23 (2013): the coordinate-wise method with which the
    paper's abstract compares. Its limits are coordinate-wise optimal: block-1 stationary, and no
    exchange of two improves them with the others fixed. Two passes over X a step, and O(m·n·s) for
    all exchanges.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss.
    run : Run
    init : ndarray (n,), optional
        Feasible start; by default 1e-7·randn, projected.
    rng : Generator
    partial : bool
        Whether only the exchange of the smallest coefficient for the largest gradient is looked at.
    tol : float
        Steps that bring at most this share of the objective end the run, after a fit of the
        support, to which they converge.
    max_iter : int
    """
    partial, tol = check_flag("partial", partial), check_nonnegative("tol", tol)
    start = starting_point(problem, init, rng)
    return iterate(SparseSimplex(problem, start, partial, tol), run, max_iter)


# -- forward selection, also known as orthogonal least squares -------------------------------------


NEARLY_DEPENDENT = 1e-10
"""Smallest share of a column's squared length outside the span at which it may enter: less could
not be told from rounding."""


class ForwardSelection(MatchingPursuit):
    """Matching pursuit with every column measured by its part outside the span of the support."""

    outside: Floats

    def __init__(self, problem: Problem) -> None:
        # squared lengths outside the span, as shares of the columns' own
        self.outside = np.ones(problem.n_features)
        super().__init__(problem)

    def add(self, column: int) -> bool:
        """Add a column and remove its direction from all others."""
        if not super().add(column):
            return False
        along = self.problem.design.rmatvec(self.fit.latest) / self.lengths
        self.outside -= along**2
        self.is_closed |= self.outside <= NEARLY_DEPENDENT
        return True

    def choose(self) -> int | None:
        """Return the column with the largest gain (x_j'r)²/2‖x_j outside the span‖²."""
        correlation = self.problem.design.rmatvec(self.fit.residual) / self.lengths
        outside = np.where(self.is_closed, np.inf, self.outside)
        score = np.abs(correlation) / np.sqrt(outside)
        best = int(np.argmax(score))
        return best if score[best] > self.smallest else None


@method("forward", losses="quadratic", forms=("budget",), start=False)
def solve_forward(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
) -> Result:
    """Repeat: let the column enter that lowers the objective most after re-fitting all.

    S. Chen, S. A. Billings and W. Luo, "Orthogonal least squares methods and their application to
    non-linear system identification", International Journal of Control 50 (1989). The gain of every
    column is known exactly from its correlation with the residual and from its length outside the
    span of the support, which is updated as the span grows: two passes over X and O(mk) per column.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns enter first.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    """
    return iterate(ForwardSelection(problem), run)
