"""Least squares with several responses and one shared support: best moves, support re-fitted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.design import Design
from blockl0.sparsity import Sparsity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOL = 400
"""Columns whose Gram matrix is held; all of them when they are not more than twice as many."""
CHUNK = 4096
"""Columns priced at a time."""
MAX_MOVES, MAX_PRICINGS = 1000, 20
LEAST_PIVOT = 1e-9
"""Of a column's squared norm: below it a column depends on the support."""


class Move(NamedTuple):
    """What the best move changes, its columns (−1 for none)."""

    change: float
    out: int
    into: int


class GroupedSearch:
    """min_V ½ Σ_i w_i ‖z_i − V'x_i‖² + ½·ridge·‖V‖² + price·(nonzero rows), rows ≤ budget.

    Parameters
    ----------
    design : Design
    target : ndarray (m, C)
        The responses z.
    weights : ndarray (m,)
    ridge : float
    sparsity : Sparsity
    keep : ndarray of int64
        Columns that stay.
    tolerance : float
        Smaller improvements are rounding.
    """

    def __init__(
        self,
        design: Design,
        target: Floats,
        weights: Floats,
        ridge: float,
        sparsity: Sparsity,
        keep: Ints,
        tolerance: float,
    ) -> None:
        self.design, self.weights, self.ridge = design, weights, ridge
        self.sparsity, self.keep, self.tolerance = sparsity, keep, tolerance
        weighted = weights[:, None] * target
        self.B = np.column_stack([design.rmatvec(z) for z in weighted.T])
        self.sq_norms = design.sq_norms(weights) + ridge
        self.n_passes = 2
        self._pool: Ints = np.empty(0, dtype=np.int64)
        self._gram: Floats = np.empty((0, 0))

    def descend(self, support: Ints, weight: Floats | None = None) -> Ints:
        """Best additions, removals and swaps over all columns, until none improves.

        Weights scale the gains of columns that enter; those of weight 0 do not.
        """
        weight = np.ones(self.sq_norms.size) if weight is None else weight
        for _ in range(MAX_PRICINGS):
            self._make_pool(support, weight)
            support = self._descend_in_pool(support, weight)
            if self._pool.size == self.sq_norms.size:
                break
            changes = self._price_all(support, weight)
            if not np.any(changes < -self.tolerance):
                break
        return support

    def shrink(self, support: Ints, size: int) -> Ints:
        """Take out the least missed column until `size` are left; kept ones stay."""
        while support.size > size:
            K, V = self._fit(support, self.design.gram(support, self.weights))
            costs = np.sum(V**2, axis=1) / np.diag(K)
            costs[np.isin(support, self.keep)] = np.inf
            if not np.isfinite(costs).any():
                break
            support = np.delete(support, int(np.argmin(costs)))
        return support

    def _make_pool(self, support: Ints, weight: Floats) -> None:
        n = self.sq_norms.size
        if n <= 2 * POOL:
            if self._pool.size < n:
                self._pool, self._gram = np.arange(n), self.design.full_gram(self.weights)
                self.n_passes += 1
            return
        changes = self._price_all(support, weight)
        changes[support] = -np.inf
        best = np.argpartition(changes, POOL + support.size)[: POOL + support.size]
        self._pool = np.sort(best)
        self._gram = self.design.gram(self._pool, self.weights)

    def _descend_in_pool(self, support: Ints, weight: Floats) -> Ints:
        pool, G = self._pool, self._gram
        for _ in range(MAX_MOVES):
            inside = np.searchsorted(pool, support)
            K, V = self._fit(support, G[np.ix_(inside, inside)])
            changes, out = self._price(support, K, V, G[inside], pool, weight)
            best = int(np.argmin(changes))
            move = Move(float(changes[best]), int(out[best]), int(pool[best]))
            leave = self._cheapest_removal(support, K, V)
            move = min(move, leave, key=lambda m: m.change)
            if not move.change < -self.tolerance:
                break
            support = support[support != move.out]
            if move.into >= 0:
                support = np.union1d(support, [move.into]).astype(np.int64)
        return support

    def _cheapest_removal(self, support: Ints, K: Floats, V: Floats) -> Move:
        free = ~np.isin(support, self.keep)
        if self.sparsity.price == 0.0 or not free.any():
            return Move(np.inf, -1, -1)
        costs = np.where(free, 0.5 * np.sum(V**2, axis=1) / np.diag(K), np.inf)
        i = int(np.argmin(costs))
        return Move(float(costs[i]) - self.sparsity.price, int(support[i]), -1)

    def _fit(self, support: Ints, H: Floats) -> tuple[Floats, Floats]:
        """(K, V) with K the inverse Gram matrix of the support, V the coefficients (s, C)."""
        H = H + self.ridge * np.eye(support.size)
        scale = np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0))
        K = np.linalg.pinv(H / scale / scale[:, None], hermitian=True).astype(np.float64)
        K = K / scale / scale[:, None]
        # a column that depends on others has no pivot; it must not divide by zero
        K.flat[:: support.size + 1] = np.maximum(np.diag(K), 1e-300)
        return K, K @ self.B[support]

    def _price(
        self, support: Ints, K: Floats, V: Floats, U: Floats, columns: Ints, weight: Floats
    ) -> tuple[Floats, Ints]:
        """(change, column that leaves) of the best move that brings in each of `columns`.

        With U = X_S'X_j, T = KU, R = B − U'V and M = ‖x_j‖² − U'T an addition gains ‖R_j‖²/2M_j; a
        swap for i loses ‖V_i‖²/2K_ii and gains ‖R_j + T_ij V_i/K_ii‖²/2(M_j + T_ij²/K_ii).
        """
        price, budget = self.sparsity
        sq = self.sq_norms[columns]
        T, R = K @ U, self.B[columns] - U.T @ V
        M = np.maximum(sq - np.einsum("ij,ij->j", U, T), 0.0)
        squares, least = np.sum(R**2, axis=1), LEAST_PIVOT * sq
        gain = 0.5 * squares / np.where(M > least, M, np.inf)
        out = np.full(columns.size, -1, dtype=np.int64)
        change = price - gain * weight[columns]
        if support.size >= budget:
            change[:] = np.inf
        free = np.flatnonzero(~np.isin(support, self.keep))
        if free.size:
            k, t, v = np.diag(K)[free, None], T[free], V[free]
            norms = np.sum(v**2, axis=1)[:, None]
            top = squares + 2.0 * t / k * (v @ R.T) + (t / k) ** 2 * norms
            pivot = M + t**2 / k
            gains = 0.5 * top / np.where(pivot > least, pivot, np.inf)
            swaps = 0.5 * norms / k - gains * weight[columns]
            which = np.argmin(swaps, axis=0)
            best = swaps[which, np.arange(columns.size)]
            is_swap = best < change
            change = np.where(is_swap, best, change)
            out[is_swap] = support[free[which[is_swap]]]
        change[(sq <= 0.0) | (weight[columns] == 0.0) | np.isin(columns, support)] = np.inf
        return change, out

    def _price_all(self, support: Ints, weight: Floats) -> Floats:
        """The change by the best move that brings in each column, (n,); a pass over X."""
        n = self.sq_norms.size
        X_S = self.design.columns(support) * self.weights[:, None]
        K, V = self._fit(support, self.design.gram(support, self.weights))
        changes = np.empty(n)
        for start in range(0, n, CHUNK):
            part = slice(start, min(start + CHUNK, n))
            U, columns = self.design.cross(X_S, part), np.arange(part.start, part.stop)
            changes[part] = self._price(support, K, V, U, columns, weight)[0]
        self.n_passes += 1
        return changes
