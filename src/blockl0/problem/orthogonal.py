"""What the columns themselves say, by orthogonal factorizations: dependence, fits, rounding.

The products X'X square the distances between columns, so that they cannot tell 1e-8 from nothing.
Here is the one place that decides what "dependent" means; whatever a search reads off products is
only a proposal until it has been judged here.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr, solve_triangular

from blockl0.units import COLUMNS

if TYPE_CHECKING:
    from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_lapack: Any = lapack

DEPENDENT = 1e-8
"""Columns depend on each other when one of them, scaled to length 1 (with the weights and the ridge
of the problem), is at most this far from the span of the others. No support of a result holds such
columns, and "optimal" is said of all supports that hold none."""
ROUNDED = 1e-13
"""Distance of a unit column from others below which it is a combination of these, to rounding."""
FEW_COLUMNS = 32
"""Columns of a factor up to which it pays to remember what is above its diagonal."""
REFLECTED_AT_ONCE = 32
"""Columns that LAPACK may take together; it asks for so much memory for each of them."""
OPERATIONS = 8.0
"""Roundings of one entry that a fit and its objective accumulate, in units of the precision."""
EPSILON = float(np.finfo(np.float64).eps)
TIE = 1e-10
"""Share of the objective by which a point must be better to count; less is rounding."""
PRECISION = OPERATIONS * EPSILON
"""Of the length of a unit column: what rounding of its entries may move it by."""


def distances(R: Floats) -> Floats:
    """Of each of k unit columns with triangular factor R (k, k), the distance from all others.

    It is 1/‖e_j' inv(R)‖, accurate to the precision over the distance itself. O(k³/3).
    """
    if R.size == 0:
        return np.empty(0)
    inverse, info = _lapack.dtrtri(R)
    if info != 0:
        return np.zeros(R.shape[0])
    with np.errstate(over="ignore"):
        return 1.0 / np.sqrt(np.einsum("ij,ij->i", inverse, inverse))


def are_apart(R: Floats, least: float) -> bool:
    """Whether each of k > 0 unit columns with triangular factor R is farther from all others.

    None is nearer than one over the length of all of inv(R), which is quicker to say.
    """
    inverse, info = _lapack.dtrtri(R)
    if info == 0 and least * math.sqrt(np.vdot(inverse, inverse)) < 1.0:
        return True
    return float(distances(R).min()) > least


def reflected(A: Floats) -> tuple[Floats, Floats, Floats]:
    """Reflections that make A (m, k), m ≥ k > 0, triangular, as LAPACK keeps them, and R (k, k).

    By LAPACK itself: for a few columns most of the time of `numpy.linalg.qr` goes around it.
    """
    k = A.shape[1]
    reflections, scales, _, info = _lapack.dgeqrf(A, lwork=REFLECTED_AT_ONCE * k)
    assert info == 0
    R = reflections[:k]
    return reflections, scales, R * _upper(k) if k <= FEW_COLUMNS else np.triu(R)


@lru_cache(maxsize=FEW_COLUMNS)
def _upper(k: int) -> Floats:
    """Ones on and above the diagonal, (k, k)."""
    return np.triu(np.ones((k, k)))


def smallest_distance(A: Floats) -> float:
    """The least distance of a unit column of A (m, k) from the span of the others; 1 for none."""
    if A.shape[1] == 0:
        return 1.0
    if A.shape[0] < A.shape[1]:
        return 0.0
    return float(distances(reflected(A)[2]).min())


def project_away(Q: Floats, X: Floats) -> tuple[Floats, Floats]:
    """(X less its projection on orthonormal columns Q, the shares Q'X of it), O(m |Q| c).

    Twice, since what is left of a column near the span of Q has the rounding of the whole column;
    the second time that rounding is projected away, too.
    """
    shares = Q.T @ X
    rest = X - Q @ shares
    again = Q.T @ rest
    rest -= Q @ again
    return rest, shares + again


def orthonormal(A: Floats, nearest: float = ROUNDED) -> Floats:
    """Orthonormal columns that span those of A, but for directions that are nearer than rounding.

    A fit leaves out columns that are nearly, and not wholly, combinations of others; which of them
    is its own affair, and so a bound is that of all.
    """
    if A.shape[1] == 0:
        return A
    lengths = np.linalg.norm(A, axis=0)
    if A.shape[1] == 1:
        return A / lengths if lengths[0] > nearest else A[:, :0]
    U, values, _ = np.linalg.svd(A, full_matrices=False)
    return U[:, values > nearest * max(1.0, float(values[0]))]


def independent_positions(A: Floats, n_first: int = 0) -> Ints:
    """A large set of unit columns of A (m, k) that do not depend on each other, ascending.

    The first `n_first`, which must be independent, are in it; the others join the farthest first.
    """
    first, rest = np.arange(n_first), A[:, n_first:]
    if n_first:
        rest = project_away(np.linalg.qr(A[:, :n_first])[0], rest)[0]
    found: Any = qr(rest, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(found[1].diagonal())
    others = n_first + found[2][: diagonal.size][diagonal > DEPENDENT]
    chosen = np.concatenate([first, others]).astype(np.int64)
    while chosen.size > n_first and smallest_distance(A[:, chosen]) <= DEPENDENT:
        chosen = chosen[:-1]
    return np.sort(chosen)


def is_resolved(A: Floats) -> bool:
    """Whether unit columns of A (m, k) that a fit leaves out are combinations of those it keeps.

    Between that and independence there is a choice which of them to keep, and another one may be
    better: the fit on more columns is then no bound of that on fewer.
    """
    if smallest_distance(A) > DEPENDENT:
        return True
    chosen = independent_positions(A)
    rest = project_away(np.linalg.qr(A[:, chosen])[0], np.delete(A, chosen, axis=1))[0]
    lengths = np.linalg.norm(rest, axis=0)
    return not ((lengths > ROUNDED) & (lengths <= DEPENDENT)).any()


def exchange_gain(
    A: Floats, b: Floats, x: Floats, low: Floats, high: Floats, is_free: Bools
) -> float:
    """What ½‖b − Ax‖² may fall by when a column that x leaves out takes the place of another.

    For unit columns A (m, k) and the best x of those that are free, as far as these are
    independent. A column that is left out is a combination of them, with shares t, and a rest e.
    Where it takes the place of one of them its coefficient is x_j/t_j, which gains that times e'r.
    Within bounds it may move until it comes to its own, or another one to its; then those free
    columns leave their places.

    Infinite where nothing is known: where e is longer than rounding makes it, or where several
    columns may come at once, whose coefficients are large if their shares are nearly parallel.
    """
    free = np.flatnonzero(is_free)
    chosen = free[independent_positions(A[:, free])] if free.size else free
    others = np.setdiff1d(np.flatnonzero(low < high), chosen)
    Q, R = np.linalg.qr(A[:, chosen])
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
    # what is left of the free ones must not depend on the one that comes
    may_leave = T * distances(R)[:, None] > DEPENDENT
    reach = np.divide(sizes[:, None], T, out=np.zeros_like(T), where=may_leave)
    own = high[near] - low[near]
    reach = np.where(np.isfinite(own), own, reach.max(axis=0, initial=0.0))
    r = project_away(Q, b - A @ x)[0]
    return float((reach * np.abs(r @ e) + 0.5 * (reach * lengths[is_near]) ** 2).sum())


def least_squares(A: Floats, b: Floats, n_first: int = 0) -> Floats:
    """argmin ‖b − Av‖ for unit columns A (m, k); of columns that depend on others some stay zero.

    The first `n_first` columns are not among those. Of b (m, q) each column has its own.
    """
    m, k = A.shape
    if m >= k > 0:
        reflections, scales, R = reflected(A)
        if are_apart(R, DEPENDENT):
            many = b.reshape(m, -1)
            room = REFLECTED_AT_ONCE * max(k, many.shape[1])
            turned, _, info = _lapack.dormqr("L", "T", reflections, scales, many, room)
            assert info == 0
            return _lapack.dtrtrs(R, turned[:k].reshape(k, *b.shape[1:]))[0]
    chosen = independent_positions(A, n_first)
    v = np.zeros((A.shape[1], *b.shape[1:]))
    if chosen.size:
        Q, R = np.linalg.qr(A[:, chosen])
        v[chosen] = solve_triangular(R, Q.T @ b, check_finite=False)
    return v


def rounding_of(problem: Problem, w: Floats, smooth: float | None = None) -> float:
    """What rounding of the data leaves of an objective: below it there is nothing to be told.

    A relative change ε of the entries moves the residual by δ = ε(‖y‖ + Σ|w_j|‖x_j‖), so that a
    loss of ½δ² is none; and any loss ½‖r‖² is known to ε‖y‖‖r‖ at best. Squared loss only; the
    smooth part at w may be known.
    """
    support = COLUMNS.support(w)
    lengths = np.sqrt(problem.sq_norms[support])
    at_zero = problem.loss_at_zero if problem.has_intercept else problem.smooth_at_zero
    length = math.sqrt(2.0 * at_zero)
    sizes = np.abs(w[support]) if w.ndim == 1 else np.linalg.norm(w[support], axis=1)
    delta = PRECISION * (length + float(sizes @ lengths))
    rest = math.sqrt(2.0 * (problem.smooth(w) if smooth is None else max(smooth, 0.0)))
    return PRECISION * length * rest + 0.5 * delta * delta


def tie_at(problem: Problem, w: Floats, objective: float | None = None) -> float:
    """By how much another point must be lower than w to be better, for the squared loss.

    Where the objective at w is known, it is not made again.
    """
    objective = problem.objective(w) if objective is None else objective
    smooth = objective - problem.cost(problem.held(w))
    return TIE * objective + rounding_of(problem, w, smooth)


class Columns:
    """All columns of a problem with the squared loss, weighted, ridge included, of length 1.

    A tall matrix is reduced to a triangular factor once, so that what follows costs O(n) rows.

    Attributes
    ----------
    Z : ndarray (r, n)
        Unit columns; zero columns stay zero.
    b : ndarray (r,)
        The target, of length 1 unless it is zero.
    """

    def __init__(self, problem: Problem) -> None:
        A, b, _ = problem.unit_columns(np.arange(problem.n_features))
        length = float(np.linalg.norm(b))
        b = b / length if length > 0.0 else b
        if A.shape[0] > A.shape[1] + 1:
            R: Any = np.linalg.qr(np.column_stack([A, b]), mode="r")
            A, b = np.ascontiguousarray(R[:, :-1]), R[:, -1].copy()
        self.Z, self.b = A, b

    def are_independent(self, support: Ints) -> bool:
        """Whether no column of a support depends on the others."""
        return smallest_distance(self.Z[:, support]) > DEPENDENT

    def loss(self, support: Ints) -> float:
        """½‖r‖² of the fit on a support, for a target of length 1."""
        if support.size == 0:
            return 0.5 * float(self.b @ self.b)
        Q = np.linalg.qr(self.Z[:, support])[0]
        r = self.b - Q @ (Q.T @ self.b)
        return 0.5 * float(r @ r)

    def without(self, forced: Ints, columns: Ints) -> tuple[Floats, Floats]:
        """(columns, target) less their projections on the forced columns, (r, c) and (r,)."""
        Z, b = self.Z[:, columns], self.b
        if forced.size == 0:
            return Z, b
        Q = np.linalg.qr(self.Z[:, forced])[0]
        return project_away(Q, Z)[0], project_away(Q, b)[0]
