"""Triangular factors that replace the rows of a least squares problem.

For any orthogonal Q the residuals of QX, Qy are as long as those of X, y. With Q from a QR
factorization of [X y], rows times √weight, only n + 1 rows of [QX Qy] are nonzero: with the squared
loss, a problem on these has the same smooth part for every w, and a search of it costs as much as
one on n + 1 rows. Unlike the products X'X, a factor keeps distances between columns, not their
squares, so dependence is decided as well as from X. So tall data are `reduced` for a search; its
answer is computed from the data again, coefficients by `refined`, the objective by `Run.result`.

Factors merge by a QR factorization of one below the other. So k-fold cross-validation reads the
data once: one `Factor` of [1 X y] per fold, the others merged to fit, its own to score.
Half-samples drawn as unions of random parts work in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from blockl0.data.design import Dense, Design
from blockl0.data.panels import triangle
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import DEPENDENT, distances
from blockl0.problem.preprocess import Prepared, exact_products
from blockl0.problem.problem import Problem, as_problem
from blockl0.run import Run, current_clock, look, timed_by
from blockl0.units import COLUMNS, is_rounding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


TALL = 4.0
"""Rows per column from which data are reduced."""
LEAST_ROWS = 1000
"""Rows below which a reduction saves no noticeable time."""
CHUNK_BYTES = 1 << 20
"""Bytes of rows factored at a time, so that they stay in cache."""
LEAST_CHUNK = 256
"""Minimum number of rows per chunk."""
BLOCK = 32
"""Block size of the Householder reflections."""
MANY, MOST_BYTES = 4, 1 << 25
"""Rows per column from which products are tried, and the most bytes of such a chunk."""
APART = 1.0 / 32.0
"""Products are accurate if every unit column of a chunk is at least this far from the others."""
RETRY = 16
"""Chunks for which products are not tried after one whose columns were too close."""
SHORT = 1e-100
"""Length below which squares may have underflowed."""
CLOSE = 1e-5
"""Distance of a unit column from others below which semi-normal equations lose digits."""


class Triangle:
    """The triangular factor R of a matrix given in chunks of rows; R'R is its Gram matrix.

    Each addition is a QR factorization of R with the new rows below it, by Householder reflections,
    so R is as accurate as a factor of all rows at once; a zero column stays zero. A reflection
    costs O(rows · n), a chunk O(rows · n²).

    Attributes
    ----------
    R : ndarray (n, n)
        Upper triangular.
    """

    def __init__(self, n_columns: int) -> None:
        self.R: Floats = np.zeros((n_columns, n_columns), order="F")
        # additions left for which products are not tried
        self._n_without = 0

    def add(self, rows: Floats, n_triangular: int = 0) -> None:
        """Add rows, a Fortran-ordered array (k, n), which is overwritten.

        The last `n_triangular` of them may be an upper triangle.
        """
        # LAPACK refuses blocks wider than the triangle
        block = min(BLOCK, self.R.shape[0])
        self.R, _, _, info = _lapack.dtpqrt(
            n_triangular, block, self.R, rows, overwrite_a=1, overwrite_b=1
        )
        assert info == 0

    def add_many(self, rows: Floats) -> None:
        """Add rows like `add`, through their Gram matrix if that loses next to nothing.

        Products square distances. If every column of a chunk, scaled to length 1, is at least
        `APART` from the others, that costs two or three of sixteen digits in the worst direction,
        and the triangle of a chunk costs a third of a QR factorization.
        """
        k, n = rows.shape
        root = None
        if k >= MANY * n and self._n_without == 0:
            root = _root_of_products(rows)
            self._n_without = 0 if root is not None else RETRY
        # chunks are alike: after one whose columns are too close products are not tried for a while
        self._n_without = max(0, self._n_without - 1)
        if root is None:
            self.add(rows)
        else:
            self.add(root, n)

    def merge(self, other: Triangle) -> None:
        """Add all rows that another triangle represents."""
        self.add(other.R.copy(order="F"))


def _root_of_products(rows: Floats) -> Floats | None:
    """Return the triangle R with R'R = A'A for rows A (k, n); None if its columns are too close."""
    G = _blas.dsyrk(1.0, rows, trans=1)
    lengths = np.sqrt(G.diagonal())
    empty = np.flatnonzero(lengths < SHORT)
    # short, but not zero: its squares have underflowed, and only a QR factorization sees it
    if empty.size and rows[:, empty].any():
        return None
    scale = np.where(lengths < SHORT, 1.0, lengths)
    G /= scale
    G /= scale[:, None]
    # an empty column counts as far from all others here and is zeroed below
    G[empty, empty] = 1.0
    R, info = _lapack.dpotrf(G, overwrite_a=1)
    if info != 0 or distances(R).min() < APART:
        return None
    R[empty, empty] = 0.0
    R *= scale
    return R


def chunk_rows(n_columns: int) -> int:
    """Return the number of rows to factor at a time."""
    return max(LEAST_CHUNK, CHUNK_BYTES // (8 * max(n_columns, 1)))


def many_rows(n_columns: int, n_parts: int = 1) -> int:
    """Return the number of rows per chunk if there are many, so that products pay in each fold."""
    most = MOST_BYTES // (8 * max(n_columns, 1))
    return max(chunk_rows(n_columns), min(2 * MANY * n_columns * n_parts, most))


def factor_rows(design: Design, y: Floats, weights: Floats | None) -> Triangle:
    """Factor [X y], rows times √weight, with looks at the clock.

    X is read once, in chunks of rows, and never copied as a whole; y may have several columns. O(m
    n²).
    """
    n = design.shape[1]
    q = 1 if y.ndim == 1 else y.shape[1]
    triangle, start = Triangle(n + q), 0
    for X_part in design.row_chunks(chunk_rows(n + q)):
        look()
        rows = slice(start, start + X_part.shape[0])
        block = np.empty((X_part.shape[0], n + q), order="F")
        block[:, :n], block[:, n:] = X_part, y[rows].reshape(-1, q)
        if weights is not None:
            block *= np.sqrt(weights[rows])[:, None]
        triangle.add(block)
        start = rows.stop
    return triangle


class Factored(Dense):
    """A triangular factor R used as the design in place of a tall X.

    Error bounds allow for `rounding` errors per row. It is scaled so that they allow for as much as
    they would for all rows of X: a proof on the factor then holds for X, and passes a verifier that
    reads X.
    """

    def __init__(
        self, R: Floats, n_rows: int, rounding: float = 1.0, total: float | None = None
    ) -> None:
        super().__init__(R)
        self.total, self._rows = total, (n_rows, rounding)
        self.rounding: float = rounding * max(1.0, (n_rows + 16.0) / (R.shape[0] + 16.0))

    def scaled(self, scale: Floats) -> Factored:
        """Return R diag(scale), which stands for the same rows; exact for powers of two."""
        return Factored(self.X * scale, *self._rows, self.total)


# -- parts of the rows -----------------------------------------------------------------------------


class Factor:
    """The triangular factor of [1 X−shift y−shift_y], rows times √weight.

    Without its first row and column it is a factor of the centred data. The shift is close to the
    means; it is subtracted first so that no entry is rounded relative to its mean.

    Parameters
    ----------
    shift : ndarray (n + 1,)
        Of the columns and of the target; factors can only be merged if it is the same.

    Attributes
    ----------
    triangle : Triangle
        (n + 2, n + 2).
    low, high : ndarray (n,)
        The smallest and the largest entry of every column.
    n_rows : int
        Rows of positive weight.
    """

    low: Floats
    high: Floats
    n_rows: int

    def __init__(self, shift: Floats) -> None:
        self.shift = shift
        self.triangle: Triangle = Triangle(shift.size + 1)
        self.low, self.high = np.full(shift.size - 1, np.inf), np.full(shift.size - 1, -np.inf)
        self.n_rows = 0

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.triangle.R[0, 0] ** 2)

    def add(self, X: Floats, y: Floats, weights: Floats | None = None) -> None:
        """Add rows, X dense (k, n); rows of zero weight are skipped. O(k n²)."""
        if weights is not None and not np.all(weights > 0.0):
            used = weights > 0.0
            X, y, weights = X[used], y[used], weights[used]
        if y.size == 0:
            return
        self._widen(X.min(axis=0), X.max(axis=0))
        block = np.empty((y.size, self.shift.size + 1), order="F")
        block[:, 0] = 1.0
        # entries less their rough mean have the digits of their spread
        np.subtract(X, self.shift[:-1], out=block[:, 1:-1])
        block[:, -1] = y - self.shift[-1]
        if weights is not None:
            block *= np.sqrt(weights)[:, None]
        self.triangle.add_many(block)
        self.n_rows += y.size

    def _widen(self, low: Floats, high: Floats) -> None:
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)

    def merge(self, other: Factor) -> None:
        """Add the rows of another factor with the same shift; O(n³)."""
        if not np.array_equal(self.shift, other.shift):
            raise ValueError("Factors are merged where they have the same `shift`.")
        self.triangle.merge(other.triangle)
        self._widen(other.low, other.high)
        self.n_rows += other.n_rows

    def shifted(self, shift: Floats) -> Factor:
        """Return the factor of the same rows with another shift; only the first row differs.

        As accurate as the original if the two shifts are close, or the rows are close to both.
        """
        other = copy(self)
        other.shift, other.triangle = shift, copy(self.triangle)
        other.triangle.R = R = self.triangle.R.copy(order="F")
        R[0, 1:] += R[0, 0] * (self.shift - shift)
        return other

    def prepared(self, fit_intercept: bool = True, **given: Any) -> Prepared:
        """Return the problem on the rows of the factor, like `preprocess.apply`.

        Other parameters are those of `as_problem`.
        """
        R = self.triangle.R
        if not fit_intercept:
            X = R[:, 1:-1] + np.outer(R[:, 0], self.shift[:-1])
            design = Factored(X, self.n_rows, total=self.total)
            return Prepared(as_problem(design, R[:, -1] + R[:, 0] * self.shift[-1], **given))
        design = FactoredRows(self)
        problem = as_problem(design, R[1:, -1].copy(), **given)
        shift_y = float(self.shift[-1]), float(R[0, -1] / R[0, 0])
        return Prepared(problem, shift_y, problem.design)

    def mean_loss(self, coef: Floats, intercept: float) -> float:
        """Return the weighted mean of ½(y − x'w − b)² over the rows; O(n |support|)."""
        R, support = self.triangle.R, np.flatnonzero(coef)
        w = coef[support]
        products = exact_products(self.shift[support], w)
        terms = [float(self.shift[-1]), -intercept, *(-product for product in products)]
        r = R[:, 0] * math.fsum(terms) + R[:, -1] - R[:, 1 + support] @ w
        return 0.5 * float(r @ r) / self.total


class FactoredRows(Factored):
    """The centred columns of a factor of [1 X y], with the means that are taken away.

    Attributes
    ----------
    means, rests : ndarray (n,)
        Their sums are the means.
    is_constant, is_flat : ndarray of bool (n,)
        As of `Centered`.
    """

    is_flat: NDArray[np.bool_]
    is_constant: NDArray[np.bool_]
    means: Floats
    rests: Floats

    def __init__(self, factor: Factor, scale: Floats | None = None) -> None:
        R, own = factor.triangle.R, np.ones(factor.low.size) if scale is None else scale
        self.factor, self._scale = factor, own
        self.is_flat = is_rounding(factor.low, factor.high)
        self.is_constant = self.is_flat & (factor.high != 0.0)
        self.means, self.rests = factor.shift[:-1] * own, R[0, 1:-1] / R[0, 0] * own
        centred = np.where(self.is_flat, 0.0, R[1:, 1:-1]) * own
        super().__init__(centred, factor.n_rows, total=factor.total)

    def scaled(self, scale: Floats) -> FactoredRows:
        """Return X diag(scale), centred alike; exact for powers of two."""
        return FactoredRows(self.factor, self._scale * scale)


def factor_parts(
    design: Design, y: Floats, weights: Floats | None, label: Ints, n_parts: int
) -> list[Factor]:
    """Factor the rows of each label 0, …, n_parts − 1; other rows are ignored. O(m n²)."""
    # one shift for all parts, without which they could not be merged
    shift = np.append(design.rmatvec(np.ones(y.size)) / y.size, y.mean())
    factors, step = [], many_rows(shift.size + 1)
    for part in range(n_parts):
        factor, rows, start = Factor(shift), np.flatnonzero(label == part), 0
        for X in design.row_chunks(step, rows):
            here = rows[start : start + len(X)]
            factor.add(X, y[here], None if weights is None else weights[here])
            start += len(X)
        factors.append(factor)
    return factors


def merged(factors: Iterable[Factor]) -> Factor:
    """Return one factor of the rows of several; the inputs are not changed."""
    first, *others = factors
    whole = Factor(first.shift)
    for factor in (first, *others):
        whole.merge(factor)
    return whole


_lapack: Any = lapack
_blas: Any = blas


# -- tall data ------------------------------------------------------------------------------------


def is_tall(design: Design) -> bool:
    """Return whether X has so many more rows than columns that factoring pays."""
    m, n = design.shape
    return m >= LEAST_ROWS and m >= TALL * n and 0 < n <= design.most_factored


def reduced(problem: Problem, run: Run | None = None) -> Problem:
    """Return the same problem on n + 1 rows if it is tall, else the problem itself.

    Coefficients, penalty, budget, ridge and kept columns mean the same; the smooth part is equal up
    to rounding. The factor is computed once and shared by all copies that `dataclasses.replace`
    makes with the same X, y and weights. If the time limit is reached or Ctrl-C is pressed first,
    the problem is returned as it is, and the run has no time left.
    """
    if not problem.is_quadratic or not is_tall(problem.design):
        return problem
    small = _known(problem)
    if small is None:
        triangle = _factored(problem, run)
        if triangle is None:
            return problem
        n, many = problem.n_features, problem.y.ndim == 2
        design = Factored(triangle.R[:, :n], problem.n_samples, problem.design.rounding)
        given = problem.design, problem.y, problem.sample_weight
        y = np.ascontiguousarray(triangle.R[:, n:]) if many else triangle.R[:, n].copy()
        problem.shared["reduced"] = given, design, y
        small = _known(problem)
        assert small is not None
    return small


def _factored(problem: Problem, run: Run | None) -> Triangle | None:
    """Factor the data of a problem; None if the run has to end first."""
    try:
        with timed_by(current_clock() if run is None else run):
            return factor_rows(problem.design, problem.y, problem.sample_weight)
    except KeyboardInterrupt as stop:
        if run is None:
            raise
        run.interrupt(stop)
        return None


def _known(problem: Problem) -> Problem | None:
    """Return the reduced problem if the stored factor was made from these very arrays."""
    if "reduced" not in problem.shared:
        return None
    given, design, y = problem.shared["reduced"]
    here = problem.design, problem.y, problem.sample_weight
    if any(a is not b for a, b in zip(given, here, strict=True)):
        return None
    return replace(problem, design=design, y=y, sample_weight=None, shared={})


def refined(problem: Problem, w: Floats) -> Floats:
    """Refine a fit on the factor to the accuracy of a fit on all rows.

    A factor carries the rounding error of all n columns, a fit on k of them only their own. One
    step of corrected semi-normal equations, with the gradient from the data and the step from the
    factor, makes up for it in O(mk). The step squares distances: columns close to each other are
    first made orthogonal row by row, in O(mk²). Without a factor, w is returned unchanged.
    """
    small = _known(problem)
    if small is None:
        return w
    support = COLUMNS.support(w)
    if support.size == 0:
        return w
    if problem.bounds is not None:
        # coefficients at a bound stay there, and the data decide which these are
        return make_fits(problem).coef_on(support)
    A, _, scale = small.unit_columns(support)
    R = triangle(A)
    # dependent columns have no unique coefficients to refine
    nearest = distances(R).min()
    if nearest <= DEPENDENT:
        return w
    X_S, v, w = problem.design.columns(support), w[support], w.copy()
    rest = problem.y - X_S @ v
    rest = rest if problem.sample_weight is None else (problem.sample_weight * rest.T).T
    # undo the scaling to unit columns
    inverse = _lapack.dtrtri(R)[0] / scale[:, None]
    if nearest < CLOSE:
        slope = _shares(X_S, inverse, rest) - inverse.T @ (problem.ridge * v)
    else:
        slope = inverse.T @ (X_S.T @ rest - problem.ridge * v)
    w[support] = v + inverse @ slope
    return w


def _shares(A: Floats, inverse: Floats, b: Floats) -> Floats:
    """Compute (A inv(R))'b for columns A (m, k) that inv(R) makes orthogonal.

    Each row of A inv(R) has a relative rounding error of the precision over the distance between
    columns, as in a QR factorization of A. Computing inv(R')(A'b) instead would amplify the
    rounding error of the whole of A'b by that factor.
    """
    found, step = np.zeros((inverse.shape[0], *b.shape[1:])), chunk_rows(inverse.shape[0])
    for start in range(0, A.shape[0], step):
        rows = slice(start, start + step)
        found += (A[rows] @ inverse).T @ b[rows]
    return found
