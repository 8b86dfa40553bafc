"""A pool's tableau in single precision: half the bytes to read and write at every move."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.moves.pool import Pool

Ints = NDArray[np.int64]

MAX_DRIFT = 1e-4
"""Of a pivot, for a column of length one, before the table is made anew from the pool."""
LEAST_PIVOT = 1e-3
"""Of a column of length one: below it rounding is a part of what its entry seems to bring."""
LEAST_PRICE = 1e-6
"""In units of the table, of which the best single column is worth half: gradients at lower prices
are too close to their rounding."""


class SingleTable:
    """A tableau of columns of length one, and of a target in such units that gains are below one.

    Lengths and units change no gain but by the factor `unit`, so that walks are the same, and
    neither large nor small data leave the range of single precision.

    Parameters
    ----------
    pool : Pool
        All of its Gram matrix is known. It must come to each support that a walk begins at.
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
        """Come to where the pool is."""
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
    """Twice what the best single column gains."""
    safe = np.where(pool.sq_norms > 0.0, pool.sq_norms, np.inf)
    return float(np.max(np.square(pool.target).sum(axis=0) / safe))
