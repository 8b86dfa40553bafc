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

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.descent import FAR, weighted_total
from blockl0.design import Csc, Dense, Design
from blockl0.preprocess import Centered
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

REACHES = (2.0, 0.5)
"""Changes of a predictor, in units of the loss, for which the bounds of a pass hold."""
CLOSE_REACHES = (0.1, 1.0)
"""The same for single columns, whose dual points may leave it, as long as they are feasible."""
CLOSELY = 60
"""What the conjugates of a column's dual point cost, in multiplications a sample."""
LEAST_PIVOT = 1e-8
"""Share of a squared norm below which a column depends on others, and nothing is said of it."""
ALIKE, TOGETHER = 0.7, 16
"""Share of their mean that the least curvature of bases in one pass has, and how many there are."""
ROUNDING = 1e-6
"""Share of a gain that a pivot which has lost eight digits may be wrong by, with room."""


class Base(NamedTuple):
    """A fit on some columns, and what one more must gain to improve a search's point.

    The predictor `eta` includes the intercept; `left` is the column that was taken out of the
    support of that point, −1 for none.
    """

    support: Ints
    w: Floats
    intercept: Any
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

    def groups(self, bases: list[Base]) -> Iterator[list[Base]]:
        """Bases whose curvatures are alike, so that their least is not much less than each."""
        group: list[Base] = []
        least, total = np.zeros(0), 0.0
        for base in sorted(bases, key=lambda base: base.needed):
            own = self._curvature(base, REACHES[0] * self.unit)
            both, sums = np.minimum(least, own) if group else own, total + float(own.sum())
            is_unlike = bool(group) and both.sum() * (len(group) + 1) < ALIKE * sums
            if is_unlike or len(group) == TOGETHER:
                yield group
                group, both, sums = [], own, float(own.sum())
            group, least, total = [*group, base], both, sums
        if group:
            yield group

    def candidates(self, support: Ints, bases: list[Base]) -> list[Ints]:
        """For each base, the columns outside the support that passes over X do not exclude.

        A base is the support or has one column less. A few passes, each for changes of predictors
        up to another reach, as long as they cost less than looking at what is left closely; each
        takes O(mns), and O(n) for each base. Columns of zeros are left out.
        """
        outside = self.largest > 0.0
        outside[support] = False
        left = np.tile(outside, (len(bases), 1))
        if self.is_known:
            a_pass = outside.size * (support.size + 1 + len(bases))
            for reach in REACHES:
                if np.count_nonzero(left) * (support.size + 1 + CLOSELY) <= a_pass:
                    break
                for part, is_out in self._excluded(support, bases, reach * self.unit):
                    left[:, part] &= ~is_out
        return [np.flatnonzero(row) for row in left]

    def _excluded(
        self, support: Ints, bases: list[Base], reach: float
    ) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Parts of the columns with whether each cannot improve each base; one pass over X."""
        problem, (A, ridge) = self.problem, self._columns(support)
        h = np.minimum.reduce([self._curvature(base, reach) for base in bases])
        K = _inverse(A, h, ridge)
        if K is None:
            return
        slopes = [self.loss.gradient(base.eta, problem.y) * self.weights for base in bases]
        V = np.column_stack([A * h[:, None], *slopes])
        squares, tallest = problem.design.sq_norms(h) + problem.ridge, np.abs(A).max(axis=0)
        # the slopes at a fit are next to nothing, but not nothing
        rests = [
            A.T @ slope + ridge * self._coefficients(base, support)
            for slope, base in zip(slopes, bases, strict=True)
        ]
        p, n, chunk = A.shape[1], problem.n_features, problem.design.chunk
        for start in range(0, n, chunk):
            part = slice(start, min(start + chunk, n))
            U = problem.design.cross(V, part)
            W = K @ U[:p]
            M = squares[part] - np.einsum("ij,ij->j", U[:p], W)
            widths = self.largest[part] + tallest @ np.abs(W)
            is_out = [
                _cannot_gain(
                    base.needed, reach, rest, g, squares[part], tallest,
                    *_without(K, U[:p], W, M, widths, tallest, self._position(base, support)),
                )
                for base, rest, g in zip(bases, rests, U[p:], strict=True)
            ]  # fmt: skip
            yield part, np.array(is_out)

    def _position(self, base: Base, support: Ints) -> int:
        """Where the column that left is among the coordinates, −1 for none."""
        if base.left < 0:
            return -1
        return int(self.problem.has_intercept) + int(np.searchsorted(support, base.left))

    def closer(self, base: Base, columns: Ints) -> Ints:
        """Of some columns those that their own dual points do not exclude; O(m(s + 1)) each."""
        A, ridge = self._columns(base.support)
        if not self.is_known:
            return columns
        for reach in CLOSE_REACHES:
            h = self._curvature(base, reach * self.unit)
            K = _inverse(A, h, ridge)
            if K is not None and columns.size:
                columns = columns[self._lower(base, columns, A, ridge, h, K) < -base.needed]
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
        bends = np.divide(h, self.weights, out=np.zeros_like(h), where=self.weights > 0.0)
        dual = u[:, None] + bends[:, None] * Z
        value = -weighted_total(self.weights, self.loss.conjugate(dual, y[:, None]))  # type: ignore[attr-defined]
        value -= 0.5 * (ridge @ V**2 + problem.ridge * steps**2)
        weighted = self.weights[:, None] * dual
        own = np.einsum("ij,ij->j", X, weighted) + problem.ridge * steps
        value -= FAR * np.abs(own * steps)
        value -= FAR * np.sum(np.abs((A.T @ weighted + ridge[:, None] * V) * V), axis=0)
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


def _without(
    K: Floats, U: Floats, W: Floats, M: Floats, widths: Floats, tallest: Floats, q: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """(K, U, M, widths) of a model without coordinate q, from those with it; as they are for −1."""
    if q < 0:
        return K, U, M, widths
    less = np.outer(K[q], K[q]) / K[q, q]
    wider = float(tallest @ np.abs(K[q])) / K[q, q] * np.abs(W[q])
    return K - less, U, M + W[q] ** 2 / K[q, q], widths + wider


def _cannot_gain(
    needed: float, reach: float, rest: Floats, g: Floats, squares: Floats, tallest: Floats,
    K: Floats, U: Floats, M: Floats, widths: Floats,
) -> NDArray[np.bool_]:  # fmt: skip
    """Whether the model gains less than needed by each column, and its minimum is within reach."""
    shift = K @ rest
    is_free = M > LEAST_PIVOT * squares
    steps = (g - shift @ U) / np.where(is_free, M, 1.0)
    gains = 0.5 * steps**2 * M + 0.5 * float(rest @ shift)
    moves = np.abs(steps) * widths + float(tallest @ np.abs(shift))
    return is_free & (gains <= (1.0 - ROUNDING) * needed) & (moves <= reach)


def _inverse(A: Floats, h: Floats, ridge: Floats) -> Floats | None:
    """inv(A' diag(h) A + ridge), None where columns depend on each other too much to say."""
    H = (A * h[:, None]).T @ A
    H.flat[:: ridge.size + 1] += ridge
    return inverse_of(H)


def inverse_of(H: Floats) -> Floats | None:
    """inv(H) of a Hessian, None where its columns depend on each other too much to say."""
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
