"""The unpenalized intercept, done exactly: columns centred implicitly, by apply and invert.

For the squared loss the best intercept is the weighted mean of the residual, so centring X and y
by weighted means removes it from the problem. For other losses `Problem.has_intercept` takes the
minimum over the intercept inside the objective, and every local model is centred by its own
weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockl0.design import Csc, Design
from blockl0.problem import Problem, independent

Floats = NDArray[np.float64]

FLAT = 1e-12
"""A column whose spread is below this share of its mean is a constant: the intercept's."""
CHUNK_BYTES = 8 << 20
"""Entries of a dense X that are centred at a time for products of them."""
FIRST_ROWS = 256
"""Rows that are looked at first where different ones are counted."""
NORM_BYTES = 1 << 20
"""The same for their squares: what stays in cache is read and written there."""


class Centered:
    """X − 1·means' for a stored X, which is neither changed, copied nor densified.

    Constant columns become exactly zero. Costs are those of the stored design.

    Parameters
    ----------
    base : Design
        X as it is stored.
    weights : ndarray (m,), optional
        Of the means that are taken away; None for equal ones.
    is_flat : ndarray of bool (n,), optional
        The constant columns, where they are known already.
    """

    def __init__(
        self,
        base: Design,
        weights: Floats | None = None,
        is_flat: NDArray[np.bool_] | None = None,
    ) -> None:
        m, n = base.shape
        self.base = base
        self.chunk = base.chunk
        ones = np.ones(m) if weights is None else weights
        total = float(ones.sum())
        self.means: Floats = base.rmatvec(ones) / total
        if is_flat is None:
            self.is_flat = np.zeros(n, dtype=np.bool_)
            self.is_flat = self.sq_norms(weights) <= total * (FLAT * self.means) ** 2
        else:
            self.is_flat = is_flat

    def recentred(self, weights: Floats) -> Centered:
        """The same X with means of other weights taken away."""
        return Centered(self.base, weights, self.is_flat)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        return self.base.shape

    @property
    def nbytes(self) -> int:
        """Bytes held by the stored entries."""
        return self.base.nbytes

    def matvec(self, w: Floats) -> Floats:
        """X w − means'w, (m,)."""
        w = np.where(self.is_flat, 0.0, w)
        return self.base.matvec(w) - float(self.means @ w)

    def rmatvec(self, r: Floats) -> Floats:
        """X' r − means·Σr, (n,)."""
        return np.where(self.is_flat, 0.0, self.base.rmatvec(r) - self.means * float(r.sum()))

    def columns(self, idx: Any) -> Floats:
        """The centred X[:, idx] as a new dense Fortran-ordered array (m, k)."""
        idx = np.asarray(idx, dtype=np.intp)
        X_B = self.base.columns(idx)
        X_B -= self.means[idx]
        X_B[:, self.is_flat[idx]] = 0.0
        return X_B

    def column_matvec(self, idx: Any, v: Floats) -> Floats:
        """X[:, idx] v − means'v, (m,)."""
        idx = np.asarray(idx, dtype=np.intp)
        v = np.where(self.is_flat[idx], 0.0, v)
        return self.base.column_matvec(idx, v) - float(self.means[idx] @ v)

    def take(self, idx: Any) -> Centered:
        """X[:, idx] as a design of its own, centred alike."""
        idx = np.asarray(idx, dtype=np.intp)
        part = object.__new__(Centered)
        part.chunk = self.chunk
        part.base, part.means, part.is_flat = (
            self.base.take(idx),
            self.means[idx],
            self.is_flat[idx],
        )
        return part

    def cross(self, V: Floats, part: slice) -> Floats:
        """V' (X − 1·means')[:, part] for V (m, k), (k, c)."""
        U = self.base.cross(V, part) - np.outer(V.sum(axis=0), self.means[part])
        U[:, self.is_flat[part]] = 0.0
        return U

    def gram(self, idx: Any, weights: Floats | None = None) -> Floats:
        """X_B' diag(weights) X_B of the centred columns B = idx, (k, k)."""
        X_B = self.columns(idx)
        if weights is None:
            return X_B.T @ X_B
        X_B *= np.sqrt(weights)[:, None]
        return X_B.T @ X_B

    def full_gram(self, weights: Floats | None = None) -> Floats:
        """X' diag(weights) X of the centred X, dense (n, n); some columns at a time."""
        m, n = self.shape
        G = np.empty((n, n), order="F")
        step = _chunk(m)
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            V = self.columns(np.arange(part.start, part.stop))
            V = V if weights is None else V * weights[:, None]
            G[part] = self.cross(V, slice(None))
        return 0.5 * (G + G.T)

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Σ_i weights_i (x_ij − mean_j)² for every column j, (n,), without cancellation."""
        m, n = self.shape
        w = np.ones(m) if weights is None else weights
        if isinstance(self.base, Csc):
            data, rows = self.base.data, self.base.indices
            column = np.repeat(np.arange(n), np.diff(self.base.indptr))
            norms = np.bincount(column, w[rows] * (data - self.means[column]) ** 2, n)
            # the entries that are not stored are −mean
            left = np.maximum(w.sum() - np.bincount(column, w[rows], n), 0.0)
            norms = norms + left * self.means**2
        else:
            norms, step = np.empty(n), _chunk(m, NORM_BYTES)
            for start in range(0, n, step):
                part = np.arange(start, min(start + step, n))
                X_B = self.base.columns(part)
                X_B -= self.means[part]
                X_B *= X_B
                norms[part] = w @ X_B
        return np.where(self.is_flat, 0.0, norms)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem without intercept, or with one inside its objective, and the way back."""

    problem: Any
    mean_y: float = 0.0

    def invert(self, w: Floats) -> tuple[Floats, Any]:
        """(coef, intercept) for the data as the user gave them, of the shape that w has."""
        problem, design = self.problem, self.problem.design
        if not isinstance(design, Centered):
            return w, np.zeros(w.shape[1]) if w.ndim == 2 else 0.0
        w = w.copy()
        w[design.is_flat] = 0.0
        if w.ndim == 2:
            support = np.flatnonzero(w.any(axis=1))
            intercepts = problem.best_intercepts(design.columns(support) @ w[support])
            return w, intercepts - design.means @ w
        intercept = self.mean_y
        if problem.has_intercept:
            intercept = problem.best_intercept(design.matvec(w))
        return w, float(intercept - design.means @ w)


def apply(problem: Any, fit_intercept: bool = True) -> Prepared:
    """Give a problem an unpenalized intercept; its objective is then the minimum over it, too."""
    if not fit_intercept:
        return Prepared(problem)
    weights = problem.sample_weight
    design = Centered(problem.design, weights)
    # a kept column may be the intercept's
    keep = independent(design, problem.keep, weights, problem.ridge)
    problem = replace(problem, keep=keep)
    if not (isinstance(problem, Problem) and problem.is_quadratic):
        return Prepared(replace(problem, design=design, has_intercept=True))
    mean_y = float(np.average(problem.y, weights=weights))
    return Prepared(replace(problem, design=design, y=problem.y - mean_y), mean_y)


def drop_unweighted(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Leave out rows of weight zero; what is given is returned as it is when there are none."""
    if sample_weight is None or np.all(sample_weight > 0.0):
        return X, y, sample_weight
    rows = np.flatnonzero(sample_weight)
    return (X.tocsr()[rows] if sp.issparse(X) else X[rows]), y[rows], sample_weight[rows]


def count_distinct_rows(X: Any, enough: int) -> int:
    """How many different rows X has, counted no further than `enough`.

    Rows are told apart by a random combination of their entries, O(entries) for all of them.
    """
    rows = X.tocsr() if sp.issparse(X) else X
    mix = np.random.default_rng(0).standard_normal(X.shape[1])
    seen = np.empty(0)
    step = max(enough, FIRST_ROWS)
    for start in range(0, X.shape[0], step):
        part = rows[start : start + step]
        # huge entries may overflow: a row is then like others of that kind, which is rare
        with np.errstate(over="ignore", invalid="ignore"):
            seen = np.union1d(seen, np.nan_to_num(_combine(part, mix)))
        if seen.size >= enough:
            break
        step *= 2
    return min(seen.size, enough)


def _combine(rows: Any, mix: Floats) -> Floats:
    """Σ_j row_j mix_j, the same bits for equal rows, whatever stands around them."""
    if not sp.issparse(rows):
        return (rows * mix).sum(axis=1)
    terms = rows.data * mix[rows.indices]
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(row, terms, rows.shape[0]).astype(np.float64)


def _chunk(m: int, size: int = CHUNK_BYTES) -> int:
    return max(1, size // (8 * m))
