"""for no columns."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr, solve_triangular

from blockl0.data.panels import (
    cholesky,
    inverse_squares,
    orthogonal_factors,
    reflected_by,
    reflections,
    triangle,
)
from blockl0.units import COLUMNS

if TYPE_CHECKING:
    from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_lapack: Any = lapack

DEPENDENT = 1e-8
"""Columns are dependent if one of them, scaled to length 1 (with the weights and the ridge of the
problem), is at most this far from the span of the others. No support of a result holds such
columns, and "optimal" refers to all supports without them.
"""
ROUNDED = 1e-13
"""Distance of a unit column from others below which it is an exact combination, up to rounding."""
WRITTEN = 1e-4
"""Distance of a target of length 1 from the span of columns that add up to it, as far as the
rounding of values that somebody has written down explains it."""
CLEAR = 1e-6
"""Least distance of unit columns from others that their products, rounded, can tell."""
FEW_COLUMNS = 32
"""Largest factor for which the mask of the upper triangle is cached."""
OPERATIONS = 8.0
"""Rounding errors per entry accumulated by a fit and its objective, in units of the precision."""
EPSILON = float(np.finfo(np.float64).eps)
TIE_TOLERANCE = 1e-10
"""Share of the objective by which a point must be lower to count as better."""
PRECISION = OPERATIONS * EPSILON
"""Relative rounding error of a unit column's entries."""


def distances(R: Floats) -> Floats:
    """Return the distance of each of k unit columns with factor R (k, k) from all others.

    It is 1/‖e_j' inv(R)‖, accurate to the precision divided by the distance itself. O(k³/3).
    """
    if R.size == 0:
        return np.empty(0)
    # row j of inv(R) is the dual vector of column j, whose length is one over its distance
    try:
        squares = inverse_squares(R.T)
    except np.linalg.LinAlgError:
        return np.zeros(R.shape[0])
    return 1.0 / np.sqrt(squares)


def are_apart(R: Floats, least: float) -> bool:
    """Return whether k > 0 unit columns with factor R are all farther than `least` from the others.

    No distance is below 1/‖inv(R)‖_F, which is cheaper to compute.
    """
    if R.shape[0] <= FEW_COLUMNS:
        inverse, info = _lapack.dtrtri(R)
        # most supports pass this bound, so that the exact distances are hardly ever needed
        if info == 0 and least * math.sqrt(np.vdot(inverse, inverse)) < 1.0:
            return True
    return float(distances(R).min()) > least


def are_told_apart(H: Floats) -> bool:
    """Return whether products H (k, k) of unit columns tell that none depends on others. O(k³)."""
    L = cholesky(np.array(H, order="F"))
    return L is not None and (L.size == 0 or are_apart(L.T, CLEAR))


def reflected(A: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Householder reflections that make A (m, k), m ≥ k > 0, triangular, and R (k, k).

    Calls LAPACK directly: for a few columns most of the time of `numpy.linalg.qr` is overhead.
    """
    k = A.shape[1]
    vectors, scales = reflections(A)
    R = vectors[:k]
    return vectors, scales, R * _upper(k) if k <= FEW_COLUMNS else np.triu(R)


@lru_cache(maxsize=FEW_COLUMNS)
def _upper(k: int) -> Floats:
    """Return a mask of ones on and above the diagonal, (k, k)."""
    return np.triu(np.ones((k, k)))


def smallest_distance(A: Floats) -> float:
    """Return the least distance of a unit column of A (m, k) from the span of the others."""
    if A.shape[1] == 0:
        return 1.0
    if A.shape[0] < A.shape[1]:
        return 0.0
    return float(distances(reflected(A)[2]).min())


def project_away(Q: Floats, X: Floats) -> tuple[Floats, Floats]:
    """Project X on the complement of orthonormal Q; return the rest and Q'X. O(m |Q| c).

    Projects twice: what is left of a column close to the span of Q has the rounding error of the
    whole column, which the second projection removes.
    """
    shares = Q.T @ X
    # the first projection
    rest = X - Q @ shares
    again = Q.T @ rest
    rest -= Q @ again
    return rest, shares + again


def orthonormal(A: Floats, nearest: float = ROUNDED) -> Floats:
    """Return an orthonormal basis of the span of A, without directions that are rounding.

    A fit drops columns that are nearly, but not exactly, combinations of others. Which of them is
    its own choice, so a bound must use all of them.
    """
    if A.shape[1] == 0:
        return A
    lengths = np.linalg.norm(A, axis=0)
    if A.shape[1] == 1:
        return A / lengths if lengths[0] > nearest else A[:, :0]
    # singular values, unlike pivots, miss no direction that lies between columns
    U, values, _ = np.linalg.svd(A, full_matrices=False)
    return U[:, values > nearest * max(1.0, float(values[0]))]


def independent_positions(A: Floats, n_first: int = 0) -> Ints:
    """Select a large set of independent unit columns of A (m, k), ascending.

    It contains the first `n_first`, which must be independent; the others are added in the order of
    a pivoted QR factorization.
    """
    first, rest = np.arange(n_first), A[:, n_first:]
    if n_first:
        rest = project_away(orthogonal_factors(A[:, :n_first])[0], rest)[0]
    found: Any = qr(rest, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(found[1].diagonal())
    others = n_first + found[2][: diagonal.size][diagonal > DEPENDENT]
    chosen = np.concatenate([first, others]).astype(np.int64)
    # a pivot bounds the distance to the columns before it only, not to those after it
    while chosen.size > n_first and smallest_distance(A[:, chosen]) <= DEPENDENT:
        chosen = chosen[:-1]
    return np.sort(chosen)


def kept_first(problem: Problem, support: Ints) -> tuple[Ints, int]:
    """Order a support so that no fit drops its first columns; return it and their number.

    Those are the kept columns; of a kept group, which may depend on each other, none.
    """
    is_kept = problem.is_kept(support)
    if not is_kept.any():
        return support, 0
    n_kept = int(np.count_nonzero(is_kept)) if problem.units is COLUMNS else 0
    return np.concatenate([support[is_kept], support[~is_kept]]), n_kept


def independent_columns(problem: Problem, support: Ints) -> Ints:
    """Select columns of a support that do not depend on each other, ascending, kept ones first.

    These are the columns that every fit uses. Nearly always all of them, which a ridge or their
    products tell at half the cost of a Newton step: O(m|S|²/2 + |S|³).
    """
    if support.size == 0 or problem.ridge >= problem.shared.get("apart", np.inf):
        return support
    H = problem.design.gram(support, problem.sample_weight)
    squares = H.diagonal()
    if problem.ridge > DEPENDENT**2 * squares.max(initial=0.0):
        return support
    lengths = np.sqrt(squares + problem.ridge)
    if lengths.all():
        H = H + np.diag(np.full(support.size, problem.ridge)) if problem.ridge else H
        if are_told_apart(H / lengths / lengths[:, None]):
            if support.size == problem.n_features:
                problem.shared["apart"] = problem.ridge
            return support
    ordered, n_kept = kept_first(problem, support)
    return np.sort(ordered[independent_positions(problem.unit_columns(ordered)[0], n_kept)])


def is_resolved(A: Floats) -> bool:
    """Return whether the unit columns that a fit of A (m, k) drops are exact combinations.

    A column between dependent and exact leaves a choice which one to keep, and another choice may
    fit better: then a fit on more columns is no bound for one on fewer.
    """
    if smallest_distance(A) > DEPENDENT:
        return True
    chosen = independent_positions(A)
    rest = project_away(orthogonal_factors(A[:, chosen])[0], np.delete(A, chosen, axis=1))[0]
    lengths = np.linalg.norm(rest, axis=0)
    return not ((lengths > ROUNDED) & (lengths <= DEPENDENT)).any()


def exchange_gain(
    A: Floats, b: Floats, x: Floats, low: Floats, high: Floats, is_free: Bools
) -> float:
    """Bound the decrease of ½‖b − Ax‖² by exchanging a dropped column for another.

    For unit columns A (m, k) and the best x of the free ones, as far as these are independent. A
    dropped column is a combination of them, with shares t, plus a rest e. If it replaces one of
    them its coefficient is x_j/t_j, which gains that times e'r. Within bounds it may move until it
    reaches its own bound, or another column reaches its; then those free columns are replaced.

    Infinite if no bound is known: if e is longer than rounding explains, or if several columns may
    enter at once, as their coefficients are large when their shares are nearly parallel.
    """
    free = np.flatnonzero(is_free)
    chosen = free[independent_positions(A[:, free])] if free.size else free
    others = np.setdiff1d(np.flatnonzero(low < high), chosen)
    Q, R = orthogonal_factors(A[:, chosen])
    rest, shares = project_away(Q, A[:, others])
    lengths = np.linalg.norm(rest, axis=0)
    if ((lengths > ROUNDED) & (lengths <= DEPENDENT)).any():
        return np.inf
    is_near = (lengths > PRECISION) & (lengths <= ROUNDED)
    if not is_near.any():
        return 0.0
    if is_near.sum() > 1:
        return np.inf
    near, e = others[is_near], rest[:, is_near]
    T = np.abs(solve_triangular(R, shares[:, is_near], check_finite=False))
    sides = np.abs(x[chosen] - [np.zeros(chosen.size), low[chosen], high[chosen]])
    sizes = np.where(np.isfinite(sides), sides, 0.0).max(axis=0, initial=0.0)
    # the remaining free columns must not depend on the entering one
    may_leave = T * distances(R)[:, None] > DEPENDENT
    reach = np.divide(sizes[:, None], T, out=np.zeros_like(T), where=may_leave)
    own = high[near] - low[near]
    reach = np.where(np.isfinite(own), own, reach.max(axis=0, initial=0.0))
    # the residual as it should be: what rounding left of it along the free columns is no gain
    r = project_away(Q, b - A @ x)[0]
    return float((reach * np.abs(r @ e) + 0.5 * (reach * lengths[is_near]) ** 2).sum())


def least_squares(A: Floats, b: Floats, n_first: int = 0) -> Floats:
    """Solve argmin ‖b − Av‖ for unit columns A (m, k); some dependent columns stay zero.

    The first `n_first` columns are never dropped. Each column of b (m, q) is solved separately.
    """
    m, k = A.shape
    if m >= k > 0:
        vectors, scales, R = reflected(A)
        # the common case: no column has to be dropped
        if are_apart(R, DEPENDENT):
            turned = reflected_by(vectors, scales, b.reshape(m, -1))
            return _lapack.dtrtrs(R, turned[:k].reshape(k, *b.shape[1:]))[0]
    chosen = independent_positions(A, n_first)
    v = np.zeros((A.shape[1], *b.shape[1:]))
    if chosen.size:
        Q, R = orthogonal_factors(A[:, chosen])
        v[chosen] = solve_triangular(R, Q.T @ b, check_finite=False)
    return v


def rounding_of(problem: Problem, w: Floats, smooth: float | None = None) -> float:
    """Return the rounding error of an objective: smaller differences mean nothing.

    A relative change ε of the entries moves the residual by δ = ε(‖y‖ + Σ|w_j|‖x_j‖), so a loss of
    ½δ² cannot be distinguished from zero; and any loss ½‖r‖² is known to ε‖y‖‖r‖ at best. Squared
    loss only; pass the smooth part at w if it is known.
    """
    support = COLUMNS.support(w)
    lengths = np.sqrt(problem.sq_norms[support])
    at_zero = problem.loss_at_zero if problem.has_intercept else problem.smooth_at_zero
    length = math.sqrt(2.0 * at_zero)
    sizes = np.abs(w[support]) if w.ndim == 1 else np.linalg.norm(w[support], axis=1)
    delta = PRECISION * (length + float(sizes @ lengths))
    rest = math.sqrt(2.0 * (problem.smooth(w) if smooth is None else max(smooth, 0.0)))
    return PRECISION * length * rest + 0.5 * delta * delta


def tolerance_at(problem: Problem, w: Floats, objective: float | None = None) -> float:
    """Return by how much a point must be lower than w to count as better, squared loss only.

    `objective` is that of w, if known.
    """
    objective = problem.objective(w) if objective is None else objective
    smooth = objective - problem.cost(problem.occupied(w))
    return TIE_TOLERANCE * objective + rounding_of(problem, w, smooth)


class UnitLengthColumns:
    """All columns of a squared-loss problem, weighted, ridge included, of length 1.

    A tall matrix is reduced to a triangular factor once, so later operations cost O(n) rows.

    Attributes
    ----------
    Z : ndarray (r, n)
        Unit columns; zero columns stay zero.
    b : ndarray (r,)
        The target, of length 1 unless it is zero.
    """

    b: Floats

    def __init__(self, problem: Problem) -> None:
        A, b, _ = problem.unit_columns(np.arange(problem.n_features))
        length = float(np.linalg.norm(b))
        b = b / length if length > 0.0 else b
        if A.shape[0] > A.shape[1] + 1:
            R = triangle(np.column_stack([A, b]))
            A, b = np.ascontiguousarray(R[:, :-1]), R[:, -1].copy()
        self.Z, self.b = A, b

    def are_independent(self, support: Ints) -> bool:
        """Return whether no column of a support depends on the others."""
        return smallest_distance(self.Z[:, support]) > DEPENDENT

    def loss(self, support: Ints) -> float:
        """Return ½‖r‖² of the fit on a support, for a target of length 1."""
        if support.size == 0:
            return 0.5 * float(self.b @ self.b)
        Q = orthogonal_factors(self.Z[:, support])[0]
        r = self.b - Q @ (Q.T @ self.b)
        return 0.5 * float(r @ r)

    def without(self, forced: Ints, columns: Ints) -> tuple[Floats, Floats]:
        """Project columns and target off the forced columns; return (r, c) and (r,)."""
        Z, b = self.Z[:, columns], self.b
        if forced.size == 0:
            return Z, b
        Q = orthogonal_factors(self.Z[:, forced])[0]
        return project_away(Q, Z)[0], project_away(Q, b)[0]
