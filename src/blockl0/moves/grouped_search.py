"""Least squares with several responses and one shared support: best moves, support re-fitted."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.data.gram_rows import LEAST_PIVOT, GramRows
from blockl0.problem.descent import symmetric
from blockl0.problem.problem import Sparsity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

WHOLE, POOL = 8192, 1024
"""Columns up to which all are searched at once; of more, so many with the best prices."""
CHUNK = 4096
"""Columns priced at a time."""
MAX_MOVES, MAX_PRICINGS = 1000, 20


class Move(NamedTuple):
    """What the best move changes, its columns (−1 for none)."""

    change: float
    out: int
    into: int


NO_MOVE = Move(np.inf, -1, -1)


class GroupedSearch:
    """min_V ½ Σ_i w_i ‖z_i − V'x_i‖² + ½·ridge·‖V‖² + price·(nonzero rows), rows ≤ budget.

    Parameters
    ----------
    gram : GramRows
        X' diag(w) X + ridge·I.
    B : ndarray (n, C)
        X' diag(w) z.
    sparsity : Sparsity
    keep : ndarray of int64
        Columns that stay.
    tolerance : float
        Smaller improvements are rounding.
    """

    gram: GramRows
    sparsity: Sparsity
    tolerance: float

    def __init__(
        self, gram: GramRows, B: Floats, sparsity: Sparsity, keep: Ints, tolerance: float
    ) -> None:
        self.gram, self.B, self.sparsity, self.tolerance = gram, B, sparsity, tolerance
        self.keep = keep
        self._is_kept = np.zeros(len(B), dtype=np.bool_)
        self._is_kept[keep] = True
        # where the last descent among all columns ended, and what its cheapest move would cost
        self.end: tuple[Ints, float] | None = None

    def at(self, sparsity: Sparsity) -> GroupedSearch:
        """Return the same search under another price and budget."""
        other = copy(self)
        other.sparsity = sparsity
        return other

    def descend(self, support: Ints, weight: Floats | None = None) -> Ints:
        """Best additions, removals and swaps over all columns, until none improves.

        Weights scale the gains of columns that enter; those of weight 0 do not.
        """
        n = len(self.B)
        weight = np.ones(n) if weight is None else weight
        if n <= WHOLE:
            return self._descend(support, weight)
        for _ in range(MAX_PRICINGS):
            prices = self.prices(support, weight)
            if not np.any(prices < -self.tolerance):
                break
            prices[support] = -np.inf
            pool = np.sort(np.argpartition(prices, POOL + support.size)[: POOL + support.size])
            inside = GroupedSearch(
                self.gram.take(pool), self.B[pool], self.sparsity,
                np.searchsorted(pool, self.keep), self.tolerance,
            )  # fmt: skip
            support = pool[inside._descend(np.searchsorted(pool, support), weight[pool])]
        return support

    def shrink(self, support: Ints, size: int) -> Ints:
        """Take out the least missed column until `size` are left; kept ones stay."""
        while support.size > size:
            costs = self._drop_costs(support, *self.fit(support))
            if not np.isfinite(costs).any():
                break
            support = np.delete(support, int(np.argmin(costs)))
        return support

    def fit(self, support: Ints, H: Floats | None = None) -> tuple[Floats, Floats]:
        """(K, V) with K the inverse of the Gram matrix H of the support, V the coefficients."""
        K = _inverse(self.gram.block(support) if H is None else H)
        return K, K @ self.B[support]

    def _descend(self, support: Ints, weight: Floats) -> Ints:
        for _ in range(MAX_MOVES):
            U = self.gram.rows(support)
            K, V = self.fit(support, U[:, support])
            leave = self._cheapest_removal(support, K, V)
            enter = self._best_entry(support, K, V, U, weight)
            move = min(enter, leave, key=lambda m: m.change)
            if not move.change < -self.tolerance:
                self.end = support, float(move.change)
                break
            support = support[support != move.out]
            if move.into >= 0:
                at = int(np.searchsorted(support, move.into))
                support = np.insert(support, at, move.into)
        return support

    def _best_entry(self, support: Ints, K: Floats, V: Floats, U: Floats, weight: Floats) -> Move:
        """Return the best addition or swap."""
        change, out = self._price(support, K, V, U, slice(0, len(self.B)), weight)
        best = int(np.argmin(change))
        if change[best] < -self.tolerance:
            self.gram.make_likely(best, -change)
        return Move(float(change[best]), int(out[best]), best)

    def _drop_costs(self, support: Ints, K: Floats, V: Floats) -> Floats:
        """By how much taking out each column raises the minimum; infinite for kept ones."""
        costs = 0.5 * np.einsum("ij,ij->i", V, V) / K.diagonal()
        costs[self._is_kept[support]] = np.inf
        return costs

    def _cheapest_removal(self, support: Ints, K: Floats, V: Floats) -> Move:
        if self.sparsity.price == 0.0 or support.size == 0:
            return NO_MOVE
        costs = self._drop_costs(support, K, V)
        i = int(np.argmin(costs))
        return Move(float(costs[i]) - self.sparsity.price, int(support[i]), -1)

    def _price(
        self, support: Ints, K: Floats, V: Floats, U: Floats, part: slice, weight: Floats
    ) -> tuple[Floats, Ints]:
        """(change, column that leaves) of the best move that brings in each column of a part."""
        adding, swapping, out = self._price_apart(support, K, V, U, part, weight)
        is_swap = swapping < adding
        return np.where(is_swap, swapping, adding), np.where(is_swap, out, -1)

    def _price_apart(
        self, support: Ints, K: Floats, V: Floats, U: Floats, part: slice, weight: Floats
    ) -> tuple[Floats, Floats, Ints]:
        """(change by adding, change by the best swap, column that it takes out), per column.

        With U = X_S'X_j, T = KU, R = B − U'V and M = ‖x_j‖² − U'T an addition gains ‖R_j‖²/2M_j; a
        swap for i loses ‖V_i‖²/2K_ii and gains ‖R_j + T_ij V_i/K_ii‖²/2(M_j + T_ij²/K_ii).
        """
        price, budget = self.sparsity
        sq, weight = self.gram.diagonal[part], weight[part]
        T, R = K @ U, self.B[part].T - V.T @ U
        M = np.maximum(sq - np.einsum("ij,ij->j", U, T), 0.0)
        squares, least = np.einsum("cj,cj->j", R, R), LEAST_PIVOT * sq
        adding = np.full(sq.size, np.inf)
        if support.size < budget:
            adding = price - 0.5 * squares / np.where(M > least, M, np.inf) * weight
        swapping, out = np.full(sq.size, np.inf), np.full(sq.size, -1, dtype=np.int64)
        free = np.flatnonzero(~self._is_kept[support])
        if free.size:
            is_all = free.size == support.size
            t, v, k = (T, V, K.diagonal()) if is_all else (T[free], V[free], K.diagonal()[free])
            norms = np.einsum("ij,ij->i", v, v)
            # ‖R_j + t v/k‖², then the changes, in place: these are the large arrays
            ratio = t / k[:, None]
            changes = (2.0 * v) @ R
            changes += ratio * norms[:, None]
            changes *= ratio
            changes += squares
            pivots = t * ratio
            pivots += M
            pivots[pivots <= least] = np.inf
            changes /= pivots
            changes *= -0.5 * weight
            changes += (0.5 * norms / k)[:, None]
            which = np.argmin(changes, axis=0)
            swapping, out = changes[which, np.arange(sq.size)], support[free[which]]
        barred = (sq <= 0.0) | (weight == 0.0)
        barred[support[(support >= part.start) & (support < part.stop)] - part.start] = True
        adding[barred] = swapping[barred] = np.inf
        return adding, swapping, out

    def likely_moves(self, support: Ints, count: int) -> Iterator[Ints]:
        """Supports a single addition, removal or swap away, the likeliest few of each."""
        K, V = self.fit(support)
        U, part = self.gram.cross(support, slice(0, len(self.B))), slice(0, len(self.B))
        adding, swapping, out = self._price_apart(support, K, V, U, part, np.ones(len(self.B)))
        for j in np.argsort(adding, kind="stable")[:count]:
            if adding[j] < np.inf:
                yield np.sort(np.append(support, j))
        for j in np.argsort(swapping, kind="stable")[:count]:
            if swapping[j] < np.inf:
                yield np.sort(np.append(support[support != out[j]], j))
        if self.sparsity.price > 0.0:
            costs = self._drop_costs(support, K, V)
            for i in np.argsort(costs, kind="stable")[:count]:
                if costs[i] < np.inf:
                    yield np.delete(support, i)

    def least_missed(self, support: Ints, count: int) -> Ints:
        """Columns of the support whose removal costs least, the least first; no kept ones."""
        costs = self._drop_costs(support, *self.fit(support))
        order = np.argsort(costs, kind="stable")[:count]
        return support[order[costs[order] < np.inf]]

    def prices(self, support: Ints, weight: Floats | None = None) -> Floats:
        """Return the change by the best move that brings in each column, (n,); a pass over X."""
        n = len(self.B)
        weight = np.ones(n) if weight is None else weight
        K, V = self.fit(support)
        changes = np.empty(n)
        for start in range(0, n, CHUNK):
            part = slice(start, min(start + CHUNK, n))
            U = self.gram.cross(support, part)
            changes[part] = self._price(support, K, V, U, part, weight)[0]
        self.gram.tally.n_passes += 1
        return changes


def _inverse(H: Floats) -> Floats:
    """inv(H) of a Gram matrix, the pseudo-inverse where columns depend on each other."""
    if H.size == 0:
        return H
    diagonal = H.diagonal()
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    R = H / scale / scale[:, None]
    factor, info = _lapack.dpotrf(R, lower=1)
    if info == 0 and factor.diagonal().min(initial=1.0) ** 2 > LEAST_PIVOT:
        K = symmetric(_lapack.dpotri(factor, lower=1)[0])
    else:
        K = np.linalg.pinv(R, hermitian=True).astype(np.float64)
        # a column that depends on others has no pivot; it must not divide by zero
        K.flat[:: len(K) + 1] = np.maximum(K.diagonal(), 1e-300)
    return K / scale / scale[:, None]
