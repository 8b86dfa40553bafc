"""Mergeable factors of [1 X y] of parts of the rows, and problems on them.

For the squared loss a factor replaces its rows: fitting on them, and scoring a fit on other rows,
needs nothing else. Factors merge by a QR factorization of one below the other. So k-fold
cross-validation reads the data once: one factor per fold, the others merged to fit, its own to
score. Half-samples drawn as unions of random parts work in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.design_base import Design
from blockl0.problem.preprocess import Prepared, exact_products
from blockl0.problem.problem import as_problem
from blockl0.problem.reduction import Factored, Triangle, many_rows
from blockl0.units import is_rounding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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

    def __init__(self, shift: Floats) -> None:
        self.shift = shift
        self.triangle = Triangle(shift.size + 1)
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

    def __init__(self, factor: Factor) -> None:
        R = factor.triangle.R
        self.is_flat = is_rounding(factor.low, factor.high)
        self.is_constant = self.is_flat & (factor.high != 0.0)
        self.means, self.rests = factor.shift[:-1], R[0, 1:-1] / R[0, 0]
        super().__init__(
            np.where(self.is_flat, 0.0, R[1:, 1:-1]), factor.n_rows, total=factor.total
        )

    def scaled(self, scale: Floats) -> FactoredRows:
        """Return X diag(scale), centred alike; exact for powers of two."""
        other: Any = super().scaled(scale)
        other.means, other.rests = self.means * scale, self.rests * scale
        return other


def factor_parts(
    design: Design, y: Floats, weights: Floats | None, label: Ints, n_parts: int
) -> list[Factor]:
    """Factor the rows of each label 0, …, n_parts − 1; other rows are ignored. O(m n²)."""
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
