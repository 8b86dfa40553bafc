"""Least squares on a support that grows one column at a time, by an orthonormal basis.

Ridge and weights enter as in the augmented problem with columns (√weight·x_j, √ridge·e_j) and
target (√weight·y, 0). Only the rows √ridge·e_j of columns in the support can be nonzero, so the
vectors have length m + (places), not m + n.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.orthogonal import DEPENDENT
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REPEAT_BELOW = 0.7
"""Share of its length below which a column is orthogonalized again, as its rounding has grown."""


class GrowingFit:
    """Gram-Schmidt with re-orthogonalization: adding a column and updating w costs O(mk + k²).

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
