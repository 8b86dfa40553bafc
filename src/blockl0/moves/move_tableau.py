"""The quadratic around a point as a tableau, from which all moves of coordinates are read off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.data.panels import orthogonal_factors
from blockl0.moves.block_moves import CHUNK, CLEAR, RELATIVE_ROUNDING, PartialMove, chunk_ranges
from blockl0.moves.hidden_moves import unit_columns_beside
from blockl0.problem.orthogonal import EPSILON, project_away
from blockl0.problem.problem import Problem
from blockl0.run import look

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

LEAST_PIVOT = 1e-24
"""Pivot of a column in the span of the support, so that swaps with it can be read off."""


class MoveTableau:
    """The quadratic around w, computed some rows at a time, with columns scaled to unit norm.

    With a re-fitted outside, w is the best point on its support, whose columns are independent.
    Pivots of columns near its span, and all of them if it is nearly dependent itself, come from
    orthogonal projections. Building it costs O(m n s); `rows` costs O(m n) per row outside S, O(n
    s) inside.
    """

    def __init__(self, model: Problem, w: Floats, grad: Floats, members: Indices, refit: bool):
        self.model, self.design, self.weights = model, model.design, model.sample_weight
        self.refit, self.members = refit, members
        self.rounding = RELATIVE_ROUNDING
        norms = np.sqrt(model.design.sq_norms(self.weights) + model.ridge)
        # a zero column must stay zero after scaling, whatever its coefficient
        self.scale = np.where(norms > 0.0, norms, np.finfo(float).tiny ** 0.5)
        self.U = self._products(members)
        self.U[members, np.arange(members.size)] += model.ridge / self.scale[members] ** 2
        v, w_in = grad / self.scale, (w * self.scale)[members]
        pivots = np.where(norms > 0.0, 1.0, 0.0)
        can_drop = ~np.isin(members, model.keep)
        if refit:
            v, pivots = self._sweep(v, w, members, pivots)
        place = np.flatnonzero(can_drop) if refit else np.arange(members.size)
        self._order(v, pivots, members, place, norms)
        drop = np.zeros(self.columns.size)
        if not refit:
            drop[: place.size] = np.where(can_drop, w_in, 0.0)[self.place] * self.unit[: place.size]
        left = np.ones(self.columns.size)
        left[place.size :] = np.maximum(pivots[self.columns[place.size :]], LEAST_PIVOT)
        self.root = PartialMove(
            v[self.columns] / self.unit, drop, left, self.columns, place.size, 0.0,
            model.sparsity.budget - members.size, (), (),
        )  # fmt: skip

    def _sweep(
        self, g: Floats, w: Floats, members: Indices, pivots: Floats
    ) -> tuple[Floats, Floats]:
        """Compute v and the diagonal with S swept, and store K = inv(Q_SS) and W = U K."""
        A, b, scale = self.model.unit_columns(members)
        Q, R = orthogonal_factors(A)
        inverse = np.linalg.inv(R)
        self.K = inverse @ inverse.T
        # regressions on columns at distance d are accurate to the machine precision over d
        self.rounding = max(
            RELATIVE_ROUNDING, 64.0 * EPSILON * float(np.sqrt(self.K.diagonal().max(initial=1.0)))
        )
        self.W = self.U @ self.K
        v = g - self.W @ g[members]
        diag = pivots - np.einsum("ij,ij->i", self.W, self.U)
        outside = pivots > 0.0
        outside[members] = False
        if self.K.diagonal().max(initial=1.0) * CLEAR < 1.0:
            outside &= diag < CLEAR
        residual = b - A @ (w[members] * scale)
        for low in range(0, np.count_nonzero(outside), CHUNK):
            look()
            part = np.flatnonzero(outside)[low : low + CHUNK]
            X, own = unit_columns_beside(self.model, part, A.shape[0])
            rest, shares = project_away(Q, X)
            self.W[part] = (inverse @ shares).T
            diag[part] = np.einsum("ij,ij->j", rest, rest) + own
            v[part] = -(residual @ rest)
        v[members] = -w[members] * self.scale[members]
        diag[members] = self.K.diagonal()
        return v, diag

    def rows(self, low: int, high: int) -> Floats:
        """Compute T[low:high, :] in the order of `columns`, with unit diagonal.

        The rows are all inside S or all outside.
        """
        look()
        a, n_in = self.columns[low:high], self.root.n_in
        if low < n_in:
            place = self.place[low:high]
            T = (self.W if self.refit else self.U)[np.ix_(self.columns, place)].T
            if self.refit:
                T[:, :n_in] = -self.K[np.ix_(place, self.place)]
        else:
            T = self._products(a)[self.columns].T
            if self.refit:
                T = T - self.W[a] @ self.U[self.columns].T
                T[:, :n_in] = self.W[np.ix_(a, self.place)]
        T = T / self.unit[low:high, None] / self.unit
        diagonal = np.arange(low, high)
        T[diagonal - low, diagonal] = -1.0 if self.refit and low < n_in else 1.0
        return T

    def dense(self) -> Floats:
        """Compute the whole tableau (N, N)."""
        chunks = chunk_ranges(self.root.n_in, self.columns.size)
        N = self.columns.size
        return np.vstack([np.empty((0, N)), *(self.rows(low, high) for low, high in chunks)])

    def _products(self, idx: Indices) -> Floats:
        """Compute X' diag(weights) X[:, idx] for unit columns, (n, |idx|)."""
        X = self.design.columns(idx)
        if self.weights is not None:
            X *= self.weights[:, None]
        return self.design.cross(X, slice(None)).T / self.scale[:, None] / self.scale[idx]

    def _order(
        self, v: Floats, diag: Floats, members: Indices, place: Indices, norms: Floats
    ) -> None:
        """Put the most promising coordinates first: cheap removals, then strong additions."""
        unit = np.sqrt(np.maximum(diag, LEAST_PIVOT))
        score = np.abs(v) / unit
        is_out = norms > 0.0
        is_out[members] = False
        out = np.flatnonzero(is_out)
        self.place = place[np.argsort(score[members[place]], kind="stable")]
        out = out[np.argsort(-score[out], kind="stable")]
        self.columns = np.concatenate([members[self.place], out])
        self.unit = unit[self.columns]
