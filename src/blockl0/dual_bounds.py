"""Columns that cannot improve a fit, excluded by duality: lower bounds on re-fitted losses.

Let u be the slopes of the loss at the fit on columns B, and D numbers with
ℓ*(u + Dz) ≤ ℓ*(u) + eta·Dz + ½Dz² for |z| ≤ reach (`dual_curvature`). The quadratic model with
curvatures D has a minimum on B and one more column i, and the predictors z that lead there. If
|z| ≤ reach, u + Dz is feasible in the dual of the loss on B + i, and its value is at least the
minimum of the model: so the model bounds the re-fitted loss from below, and adding i gains at most
g_i²/2M_i, with M_i what the columns B leave of the squared norm of i. What holds for D holds for
less: with the least D of several sets B, one pass over X bounds the gains of every column for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.design import Csc, Dense, Design
from blockl0.preprocess import Centered
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

REACH = 1.0
"""Change of a predictor, in units of the loss, for which the bounds of a whole pass hold."""
REACHES = (0.5, 2.0, 6.0)
"""The same for single columns, one after the other."""
LEAST_PIVOT = 1e-8
"""Share of a squared norm below which a column depends on others, and nothing is said of it."""
CHUNK_ENTRIES = 1 << 18
"""Predictors that are made at a time."""


class Base(NamedTuple):
    """A fit on some columns, and what one more must gain to improve a search's point.

    The predictor `eta` includes the intercept; `left` is the column that was taken out of the
    support of that point, −1 for none.
    """

    support: Ints
    w: Floats
    intercept: float
    value: float
    eta: Floats
    needed: float
    left: int


class DualBounds:
    """Which columns might improve a fit, for a loss with a `conjugate` and a `dual_curvature`."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.loss = problem, problem.loss
        ones = np.ones(problem.n_samples)
        self.weights = ones if problem.sample_weight is None else problem.sample_weight
        self.unit = float(getattr(self.loss, "unit", 1.0))
        self.is_known = hasattr(self.loss, "conjugate") and hasattr(self.loss, "dual_curvature")
        self._largest: Floats | None = None

    @property
    def largest(self) -> Floats:
        """The largest absolute entry of every column, (n,)."""
        if self._largest is None:
            self._largest = largest_entries(self.problem.design)
        return self._largest

    def outside(self, support: Ints) -> Ints:
        """The columns that are neither in the support nor zero."""
        chosen = self.largest > 0.0
        chosen[support] = False
        return np.flatnonzero(chosen)

    def candidates(self, support: Ints, bases: list[Base]) -> list[Ints]:
        """For each base, the columns of `outside` that one pass over X does not exclude.

        A base is the support or has one column less. O(mns), and O(n) for each base.
        """
        problem, reach = self.problem, REACH * self.unit
        outside = self.outside(support)
        h = np.minimum.reduce([self._curvature(base, reach) for base in bases])
        A, ridge = self._columns(support)
        K = _inverse(A, h, ridge)
        if not self.is_known or K is None:
            return [outside] * len(bases)
        p = A.shape[1]
        slopes = [self.loss.gradient(base.eta, problem.y) * self.weights for base in bases]
        V = np.column_stack([A * h[:, None], *slopes])
        U = problem.design.cross(V, slice(0, problem.n_features))[:, outside]
        squares = (problem.design.sq_norms(h) + problem.ridge)[outside]
        W = K @ U[:p]
        M = squares - np.einsum("ij,ij->j", U[:p], W)
        tallest = np.abs(A).max(axis=0)
        widths = self.largest[outside] + tallest @ np.abs(W)
        found = []
        for base, slope, g in zip(bases, slopes, U[p:], strict=True):
            left = A.T @ slope + ridge * self._coefficients(base, support)
            pivots, width, K_b = M, widths, K
            if base.left >= 0:
                # the model without a column, from the one with it
                q = p - support.size + int(np.searchsorted(support, base.left))
                left[q] = 0.0
                K_b = K - np.outer(K[q], K[q]) / K[q, q]
                pivots = M + W[q] ** 2 / K[q, q]
                width = widths + (tallest @ np.abs(K[q])) * np.abs(W[q]) / K[q, q]
            # the fit's own slopes are next to nothing, but not nothing
            shift = K_b @ left
            is_free = pivots > LEAST_PIVOT * squares
            steps = (g - shift @ U[:p]) / np.where(is_free, pivots, 1.0)
            gains = 0.5 * steps**2 * pivots + 0.5 * float(left @ shift)
            moves = np.abs(steps) * width + float(tallest @ np.abs(shift))
            is_out = is_free & (gains <= base.needed) & (moves <= reach)
            found.append(outside[~is_out])
        return found

    def closer(self, base: Base, columns: Ints) -> Ints:
        """Of some columns those that their own dual points do not exclude; O(m(s + 1)) each."""
        A, ridge = self._columns(base.support)
        if not self.is_known:
            return columns
        chunk = max(1, CHUNK_ENTRIES // max(A.shape[0], 1))
        for reach in REACHES:
            h = self._curvature(base, reach * self.unit)
            K = _inverse(A, h, ridge)
            if K is None:
                continue
            parts = [columns[i : i + chunk] for i in range(0, columns.size, chunk)]
            kept = [part[self._lower(base, part, A, ridge, h, K) < -base.needed] for part in parts]
            columns = np.concatenate(kept) if kept else columns
        return columns

    def _lower(
        self, base: Base, columns: Ints, A: Floats, ridge: Floats, h: Floats, K: Floats
    ) -> Floats:
        """Lower bounds on the change of the loss by adding each column; −inf for none."""
        problem, y = self.problem, self.problem.y
        X, u = problem.design.columns(columns), self.loss.gradient(base.eta, y)
        v = self._coefficients(base, base.support)
        hX = X * h[:, None]
        U, squares = A.T @ hX, np.einsum("ij,ij->j", X, hX) + problem.ridge
        W = K @ U
        M = squares - np.einsum("ij,ij->j", U, W)
        left = A.T @ (self.weights * u) + ridge * v
        shift = K @ left
        is_free = M > LEAST_PIVOT * squares
        slope = X.T @ (self.weights * u) - shift @ U
        steps = np.where(is_free, -slope / np.where(is_free, M, 1.0), 0.0)
        # predictors and coefficients of the model's minimum, then its dual point and its value
        Z = (X - A @ W) * steps - (A @ shift)[:, None]
        V = (v - shift)[:, None] - W * steps
        dual = u[:, None] + (h / self.weights)[:, None] * Z
        value = -self.weights @ self.loss.conjugate(dual, y[:, None])
        value -= 0.5 * (ridge @ V**2 + problem.ridge * steps**2)
        return np.where(is_free, value - base.value, -np.inf)

    def _curvature(self, base: Base, reach: float) -> Floats:
        if not self.is_known:
            return np.zeros(self.problem.n_samples)
        return self.weights * self.loss.dual_curvature(base.eta, self.problem.y, reach)  # type: ignore[attr-defined]

    def _columns(self, support: Ints) -> tuple[Floats, Floats]:
        """The columns of a support behind that of the intercept, and the ridge of each."""
        A, n_free = self.problem.design.columns(support), int(self.problem.has_intercept)
        if n_free:
            A = np.column_stack([np.ones(self.problem.n_samples), A])
        ridge = np.full(A.shape[1], self.problem.ridge)
        ridge[:n_free] = 0.0
        return A, ridge

    def _coefficients(self, base: Base, support: Ints) -> Floats:
        v = base.w[support]
        return np.concatenate([[base.intercept], v]) if self.problem.has_intercept else v


def _inverse(A: Floats, h: Floats, ridge: Floats) -> Floats | None:
    """inv(A' diag(h) A + ridge), None where columns depend on each other too much to say."""
    H = (A * h[:, None]).T @ A
    H.flat[:: ridge.size + 1] += ridge
    if H.size == 0:
        return H
    scale = np.sqrt(H.diagonal())
    if not scale.min() > 0.0:
        return None
    factor, info = _lapack.dpotrf(H / scale / scale[:, None], lower=1)
    if info != 0 or not factor.diagonal().min() ** 2 > LEAST_PIVOT:
        return None
    lower = np.tril(_lapack.dpotri(factor, lower=1)[0])
    return (lower + np.tril(lower, -1).T) / scale / scale[:, None]


def largest_entries(design: Design) -> Floats:
    """max_i |x_ij| for every column j, (n,), or a little more; one pass over X."""
    means = design.means if isinstance(design, Centered) else 0.0
    base: Any = design.base if isinstance(design, Centered) else design
    if isinstance(base, Dense):
        highest, lowest = base.X.max(axis=0), base.X.min(axis=0)
    elif isinstance(base, Csc):
        highest = np.ravel(base.matrix.max(axis=0).toarray())
        lowest = np.ravel(base.matrix.min(axis=0).toarray())
    else:
        n, chunk = base.shape[1], base.chunk
        parts = [base.columns(np.arange(i, min(i + chunk, n))) for i in range(0, n, chunk)]
        highest = np.concatenate([part.max(axis=0) for part in parts])
        lowest = np.concatenate([part.min(axis=0) for part in parts])
    found = np.maximum(highest - means, means - lowest)
    # a constant column is the intercept's
    return np.where(design.is_flat, 0.0, found) if isinstance(design, Centered) else found
