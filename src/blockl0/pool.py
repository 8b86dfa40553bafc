"""A pool of columns with its swept tableau: where method "refit" searches between passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.block_search import improve_block, new_tree
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_MOVES = 10_000
"""Moves of one descent; a bound against rounding that feigns progress."""


class Pool:
    """Least squares on a support inside the pool, re-fitted by every move.

    Sweeping the Gram matrix H of the pool, bordered by c = −X'y, on the support S leaves the Schur
    complement M and the gradient outside S, −inv(H_SS) and −w_S inside, and the regressions
    inv(H_SS) H_SU in the mixed part: all moves are priced by reading entries, and making one is a
    sweep, O(p²).

    Attributes
    ----------
    columns : ndarray (p,)
        The pool, ascending.
    inside : ndarray of bool (p,)
        Which of its columns are in the support.
    value : float
        Smooth minimum on the support, less the constant ½‖y‖².
    """

    def __init__(self, problem: Problem, columns: Ints, target: Floats) -> None:
        self.columns = columns
        self.sparsity = problem.sparsity
        self.H = np.ascontiguousarray(problem.design.gram(columns, problem.sample_weight))
        self.H.flat[:: columns.size + 1] += problem.ridge
        self.c = target
        # columns with smaller pivots are in the span of the support
        self.floor = kernels.PIVOT_FLOOR * np.diag(self.H)
        self.kept = np.isin(columns, problem.keep)
        self.tolerance = 0.0
        self._open = np.zeros(columns.size, dtype=np.bool_)
        self._trees: dict[int, kernels.Tree] = {}
        self.load(np.empty(0, dtype=np.int64))

    @property
    def support(self) -> Ints:
        """The columns of X in the support, ascending."""
        return self.columns[self.inside]

    @property
    def objective(self) -> float:
        """value + price·|S|."""
        return self.value + self.sparsity.cost(int(np.count_nonzero(self.inside)))

    def load(self, support: Ints) -> None:
        """Start afresh from a support (columns of X in the pool), O(|S| p²)."""
        self.A, self.b = self.H.copy(), self.c.copy()
        self.inside = np.zeros(self.columns.size, dtype=np.bool_)
        self.value = 0.0
        positions = np.searchsorted(self.columns, support)
        # kept columns first: of two dependent ones the other is left out
        for j in positions[np.argsort(~self.kept[positions], kind="stable")]:
            if self.A[j, j] > self.floor[j]:
                self.toggle(j)

    def toggle(self, j: int) -> None:
        """Add the pool's j-th column to the support, or take it out."""
        self.value += kernels.toggle(self.A, self.b, self.inside, j)

    def save(self) -> tuple[Floats, Floats, NDArray[np.bool_], float]:
        """A copy of the state, for `restore`."""
        return self.A.copy(), self.b.copy(), self.inside.copy(), self.value

    def restore(self, state: tuple[Floats, Floats, NDArray[np.bool_], float]) -> None:
        """Return to a saved state."""
        A, b, inside, self.value = state
        self.A[:], self.b[:], self.inside[:] = A, b, inside

    def descend(self, barred: NDArray[np.bool_] | None = None) -> None:
        """Best addition, removal or swap, until none improves; `barred` columns do not enter."""
        price, budget = self.sparsity
        self.value += kernels.descend(
            self.A, self.b, self.inside, self.kept, self._open if barred is None else barred,
            self.floor, price, budget, self.tolerance, MAX_MOVES,
        )  # fmt: skip

    def search_block(self, block: Ints) -> bool:
        """Search a block of the pool exactly, the support outside it re-fitted; True if improved.

        The block's part of the tableau, swept out of the support inside that small matrix, is the
        Schur complement with the rest of the support eliminated.
        """
        price, budget = self.sparsity
        H, c = np.ascontiguousarray(self.A[np.ix_(block, block)]), self.b[block]
        inside = self.inside[block]
        current = np.where(inside, -c, 0.0)
        small = inside.copy()
        for j in np.flatnonzero(inside):
            kernels.toggle(H, c, small, j)
        room = budget - int(np.count_nonzero(self.inside)) + int(np.count_nonzero(inside))
        k = block.size
        tree = self._trees.setdefault(k, new_tree(k, k + 1))
        z = improve_block(tree, H, c, price, min(k, room), current, self.kept[block])
        if z is None:
            return False
        before = self.objective
        state = self.save()
        # removals first: a support never exceeds the budget, and pivots stay away from zero
        for leaving in (True, False):
            for i, j in enumerate(block):
                if inside[i] == leaving and (z[i] != 0.0) != leaving:
                    if not leaving and self.A[j, j] <= self.floor[j]:
                        continue
                    self.toggle(j)
        if self.objective < before - self.tolerance:
            return True
        self.restore(state)
        return False

    def drop_costs(self) -> Floats:
        """By how much taking out each column raises the minimum, (p,); inf where not possible."""
        diagonal = np.diag(self.A)
        costs = np.full(self.b.size, np.inf)
        free = self.inside & ~self.kept
        costs[free] = -0.5 * self.b[free] ** 2 / diagonal[free]
        return costs

    def add_gains(self) -> Floats:
        """By how much adding each column lowers the minimum, (p,); −inf where not possible."""
        diagonal = np.diag(self.A)
        gains = np.full(self.b.size, -np.inf)
        free = ~self.inside & (diagonal > self.floor)
        gains[free] = 0.5 * self.b[free] ** 2 / diagonal[free]
        return gains
