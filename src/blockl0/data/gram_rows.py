"""Rows of the Gram matrix of X, computed on demand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.data.design import Design
from blockl0.run import Tally, look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BATCH = 8
"""Rows computed together: multiplying with a few vectors costs hardly more than with one."""
LEAST_PIVOT = 1e-9
"""Share of a column's squared norm below which it depends on the support."""


class GramRows:
    """The rows of X' diag(weights) X + ridge·I, computed on demand.

    Attributes
    ----------
    diagonal : ndarray (n,)
    """

    design: Design
    weights: Floats
    ridge: float
    tally: Tally

    def __init__(self, design: Design, weights: Floats, ridge: float, tally: Tally) -> None:
        self.design, self.weights, self.ridge, self.tally = design, weights, ridge, tally
        self.diagonal: Floats = design.sq_norms(weights) + ridge
        tally.n_passes += 1
        self._rows: Floats = np.empty((4 * BATCH, self.diagonal.size))
        self._place = np.full(self.diagonal.size, -1, dtype=np.int64)
        self._count = 0

    def rows(self, columns: Ints) -> Floats:
        """Return a copy of the rows of these columns, (k, n)."""
        missing = columns[self._place[columns] < 0]
        if missing.size:
            self._make(missing)
        return self._rows[self._place[columns]]

    def is_known(self, column: int) -> bool:
        """Return whether the row of a column has been computed."""
        return bool(self._place[column] >= 0)

    def make_likely(self, column: int, gains: Floats) -> None:
        """Compute the row of a column, and those with the largest gains, unless it is known."""
        if self.is_known(column):
            return
        gains = np.where(self._place >= 0, -np.inf, gains)
        gains[column] = np.inf
        best = np.argpartition(-gains, min(BATCH, gains.size) - 1)[:BATCH]
        self._make(best[gains[best] > -np.inf])

    def block(self, columns: Ints) -> Floats:
        """Return the submatrix of some columns, (k, k)."""
        G = self.design.gram(columns, self.weights)
        # with the ridge, and the same digits wherever the diagonal is used
        G.flat[:: columns.size + 1] = self.diagonal[columns]
        return G

    def cross(self, columns: Ints, part: slice) -> Floats:
        """Compute part of the rows of these columns, (k, c), without storing it."""
        V = self.design.columns(columns) * self.weights[:, None]
        U = self.design.cross(V, part)
        where = np.flatnonzero((columns >= part.start) & (columns < part.stop))
        U[where, columns[where] - part.start] = self.diagonal[columns[where]]
        return U

    def take(self, columns: Ints) -> GramRows:
        """Return the same for a subset of the columns."""
        return GramRows(self.design.take(columns), self.weights, self.ridge, Tally())

    def _make(self, columns: Ints) -> None:
        look()
        start, stop = self._count, self._count + columns.size
        # doubled, so that copying costs no more than the rows themselves
        if stop > len(self._rows):
            n = self.diagonal.size
            grown = np.empty((min(max(stop, 2 * len(self._rows)), n), n))
            grown[:start] = self._rows[:start]
            self._rows = grown
        self._rows[start:stop] = self.cross(columns, slice(0, self.diagonal.size))
        self._place[columns] = np.arange(start, stop)
        self._count = stop
        self.tally.n_passes += 1
