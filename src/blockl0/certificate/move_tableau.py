"""The quadratic around a point as one tableau, from which every move of coordinates is read off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate.moves import FLOOR, Node, chunk_ranges
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Tableau:
    """The quadratic around w, formed some rows at a time; columns are scaled to unit norm.

    Building it costs O(m n s); `rows` O(m n) per row outside S, O(n s) inside.
    """

    def __init__(self, problem: Problem, w: Floats, grad: Floats, members: Indices, refit: bool):
        design, self.weights = problem.design, problem.hessian_bound_weights()
        self.design, self.refit = design, refit
        norms = np.sqrt(design.sq_norms(self.weights) + problem.ridge)
        # a zero column must vanish after scaling too, whatever its coefficient
        self.scale = np.where(norms > 0.0, norms, np.finfo(float).tiny ** 0.5)
        self.U = self._products(members)
        self.U[members, np.arange(members.size)] += problem.ridge / self.scale[members] ** 2
        self.K = inverse(self.U[members])
        self.W = self.U @ self.K
        g, w_in = grad / self.scale, (w * self.scale)[members]
        diag = np.where(norms > 0.0, 1.0, 0.0)
        can_drop = ~np.isin(members, problem.keep)
        if refit:
            v = g - self.W @ g[members]
            v[members] = self.K @ g[members] - w_in
            diag -= np.einsum("ij,ij->i", self.W, self.U)
            diag[members] = np.diag(self.K)
        else:
            v = g
        place = np.flatnonzero(can_drop) if refit else np.arange(members.size)
        self._order(v, diag, members, place, norms)
        drop = np.zeros(self.columns.size)
        if not refit:
            drop[: place.size] = np.where(can_drop, w_in, 0.0)[self.place] * self.unit[: place.size]
        room = problem.sparsity.budget - members.size
        self.root = Node(
            v[self.columns] / self.unit, drop, self.columns, place.size, 0.0, room, (), ()
        )

    def rows(self, low: int, high: int) -> Floats:
        """T[low:high, :] in the order of `columns`, unit diagonal; all inside S or all outside."""
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
        """The whole tableau (N, N)."""
        chunks = chunk_ranges(self.root.n_in, self.columns.size)
        N = self.columns.size
        return np.vstack([np.empty((0, N)), *(self.rows(low, high) for low, high in chunks)])

    def _products(self, idx: Indices) -> Floats:
        """X' diag(weights) X[:, idx] for unit columns, (n, |idx|)."""
        X = self.design.columns(idx)
        if self.weights is not None:
            X *= self.weights[:, None]
        return self.design.cross(X, slice(None)).T / self.scale[:, None] / self.scale[idx]

    def _order(
        self, v: Floats, diag: Floats, members: Indices, place: Indices, norms: Floats
    ) -> None:
        """Put the likeliest coordinates first: cheap removals, then strong additions."""
        unit = np.sqrt(np.maximum(diag, FLOOR))
        score = np.abs(v) / unit
        is_out = norms > 0.0
        is_out[members] = False
        out = np.flatnonzero(is_out)
        self.place = place[np.argsort(score[members[place]], kind="stable")]
        out = out[np.argsort(-score[out], kind="stable")]
        self.columns = np.concatenate([members[self.place], out])
        self.unit = unit[self.columns]


def inverse(Q: Floats) -> Floats:
    """The inverse of a unit-diagonal psd matrix; eigenvalues are raised to the floor."""
    values, V = np.linalg.eigh(0.5 * (Q + Q.T))
    return (V / np.maximum(values, FLOOR)) @ V.T
