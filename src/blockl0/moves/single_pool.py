"""A pool's tableau in single precision: half the bytes to read and write at every move."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.moves.pool import Pool

Ints = NDArray[np.int64]

MAX_DRIFT = 1e-4
"""Drift of a pivot, for a column of length one, beyond which the pool gives a new table."""
LEAST_PIVOT = 1e-3
"""Smallest pivot of a column of length one: below it, its gain is partly rounding."""
LEAST_PRICE = 1e-6
"""Smallest price, in units of the table (the best single column is worth one half): at lower ones
gradients are too close to their rounding."""


class SingleTable:
    """A tableau of columns of length one, and of a target in such units that gains are below one.

    Scaling divides every gain by the same `unit`, so walks do not change, and neither large nor
    small data leave the range of single precision.

    Parameters
    ----------
    pool : Pool
        Its whole Gram matrix is known. It must be at the support at which a walk begins.
    """

    pool: Pool
    unit: float

    def __init__(self, pool: Pool) -> None:
        p = pool.columns.size
        self.pool, self.unit = pool, unit_of(pool)
        self._lengths = np.where(pool.sq_norms > 0.0, np.sqrt(pool.sq_norms), 1.0)
        rows: Any = np.empty(pool.table.rows.shape, dtype=np.float32)
        border: Any = np.zeros_like(pool.table.border, dtype=np.float32)
        gram: Any = pool.unit_gram()
        border[kernels.LEAST] = LEAST_PIVOT
        self.table = kernels.SweptArrays(
            gram=gram, known=pool.table.known, kept=pool.table.kept, rows=rows, border=border,
            slot=np.empty(p, dtype=np.int64), member=np.empty_like(pool.table.member),
            value=np.zeros(4),
        )  # fmt: skip
        self.take()

    def take(self) -> None:
        """Copy the support and the tableau of the pool."""
        table, source, size = self.table, self.pool.table, self.pool.size
        members = source.member[:size]
        # columns inside the support are coefficients, which are the longer the shorter the column
        factors = 1.0 / self._lengths
        factors[members] = self._lengths[members]
        np.multiply(
            source.rows[:size] * self._lengths[members][:, None], factors, out=table.rows[:size],
            casting="same_kind",
        )  # fmt: skip
        table.border[kernels.EDGE] = source.border[kernels.EDGE] * factors / np.sqrt(self.unit)
        table.border[kernels.PIVOT] = source.border[kernels.PIVOT] * factors**2
        table.slot[:], table.member[:size], table.member[-1] = source.slot, members, size
        table.value[:] = self.pool.value / self.unit, 0.0, 0.0, 0.0

    @property
    def support(self) -> Ints:
        """The columns of X in the support, ascending."""
        members = self.table.member[: self.table.member[-1]]
        return np.sort(self.pool.columns[members])


def unit_of(pool: Pool) -> float:
    """Return twice the gain of the best single column."""
    safe = np.where(pool.sq_norms > 0.0, pool.sq_norms, np.inf)
    return float(np.max(np.square(pool.target).sum(axis=0) / safe))
