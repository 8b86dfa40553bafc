"""The swept tableau: least squares on a support with everything needed to change the support.

Sweeping the Gram matrix H, bordered by c, on the support S leaves the Schur complement M = H/H_SS
and the gradient g outside S, −inv(H_SS) and −w_S inside, and the regressions W = inv(H_SS) H_SU in
the mixed part. So additions, removals and swaps, all with the support re-fitted, are priced by
reading entries, and carrying one out is a rank-one update, O(n²).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PIVOT_FLOOR = 1e-10
"""Relative to the diagonal: columns with smaller pivots are in the span of the support."""


class Tableau:
    """min over w on the support of ½w'Hw + c'w, for a support that changes one column at a time.

    Attributes
    ----------
    in_support : ndarray of bool (n,)
    value : float
        The minimum on the present support.
    """

    def __init__(self, H: Floats, c: Floats) -> None:
        self.A = np.array(H)
        self.b = np.array(c)
        self.floor = PIVOT_FLOOR * np.diag(H)
        self.in_support = np.zeros(c.size, dtype=np.bool_)
        self.value = 0.0

    @property
    def support(self) -> NDArray[np.int64]:
        """The columns in the support, ascending."""
        return np.flatnonzero(self.in_support)

    def toggle(self, j: int) -> None:
        """Add column j to the support or take it out: one sweep, O(n²)."""
        pivot, v, head = self.A[j, j], self.A[j].copy(), self.b[j]
        sign = -1.0 if self.in_support[j] else 1.0
        self.A -= np.outer(v, v / pivot)
        self.b -= v * (head / pivot)
        self.A[j] = self.A[:, j] = sign * v / pivot
        self.A[j, j] = -1.0 / pivot
        self.b[j] = sign * head / pivot
        self.value -= 0.5 * head * head / pivot
        self.in_support[j] = not self.in_support[j]

    def add_gains(self) -> Floats:
        """By how much adding each column lowers the value, (n,); −inf where it cannot be added."""
        diagonal = np.diag(self.A)
        free = ~self.in_support & (diagonal > self.floor)
        gains = np.full(self.b.size, -np.inf)
        gains[free] = 0.5 * self.b[free] ** 2 / diagonal[free]
        return gains

    def drop_costs(self) -> Floats:
        """By how much taking each column out raises the value, (n,); inf outside the support."""
        costs = np.full(self.b.size, np.inf)
        support = self.support
        costs[support] = 0.5 * self.b[support] ** 2 / -self.A[support, support]
        return costs

    def best_swap(self, kept: NDArray[np.bool_]) -> tuple[float, int, int]:
        """The change of value, the column that enters and the one that leaves, of the best swap.

        With u = X_S'x_i, W = inv(H_SS) u and K = inv(H_SS), dropping j changes the gradient of i to
        g_i − W_ij w_j/K_jj and its pivot to M_ii + W_ij²/K_jj. O(n·|S|).
        """
        support = np.flatnonzero(self.in_support & ~kept)
        outside = np.flatnonzero(~self.in_support & (np.diag(self.A) > self.floor))
        if support.size == 0 or outside.size == 0:
            return np.inf, -1, -1
        K = -self.A[support, support]
        w = -self.b[support]
        W = self.A[np.ix_(outside, support)]
        slope = self.b[outside, None] - W * (w / K)
        pivot = self.A[outside, outside][:, None] + W * W / K
        change = 0.5 * w * w / K - 0.5 * slope * slope / pivot
        best = int(np.argmin(change))
        i, j = divmod(best, support.size)
        return float(change[i, j]), int(outside[i]), int(support[j])


def descend(
    H: Floats,
    c: Floats,
    price: float,
    budget: int,
    start: NDArray[np.int64],
    kept: NDArray[np.bool_],
) -> Tableau:
    """Add, drop and swap columns, the best move each time, until no single move improves.

    The answer is 1-swap stationary with the support re-fitted. Greedy forward selection when
    started from nothing.
    """
    tableau = Tableau(H, c)
    for j in start:
        if np.diag(tableau.A)[j] > tableau.floor[j]:
            tableau.toggle(int(j))
    tolerance = 1e-10 * max(abs(tableau.value), abs(float(c @ c)) / max(float(np.trace(H)), 1e-300))
    while True:
        gains, costs = tableau.add_gains(), tableau.drop_costs()
        costs[kept] = np.inf
        j, i = int(np.argmin(costs)), int(np.argmax(gains))
        if tableau.support.size < budget and gains[i] > price + tolerance:
            tableau.toggle(i)
        elif costs[j] < price - tolerance:
            tableau.toggle(j)
        else:
            change, i, j = tableau.best_swap(kept)
            if not change < -tolerance:
                return tableau
            tableau.toggle(j)
            tableau.toggle(i)
