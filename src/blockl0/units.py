"""What the budget counts and the price is paid for: columns of X.

Coefficients are w (n,), or (n, C) where a sample has C predictors; a column is then in or out for
all of them at once.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLAT = 8.0 * float(np.finfo(np.float64).eps)
"""A range within this share of the largest entry, 8 to 16 ulps, is rounding of equal numbers."""


class Units(Protocol):
    """A partition of the columns into what is chosen as a whole."""

    def support(self, w: Floats) -> Ints:
        """The units with a nonzero coefficient, ascending."""
        ...

    def count(self, w: Floats) -> int:
        """How many these are."""
        ...

    def members(self, unit: int) -> Ints:
        """The columns of a unit, ascending."""
        ...


class Columns:
    """Each column by itself."""

    def support(self, w: Floats) -> Ints:
        """The columns with a nonzero coefficient, ascending."""
        return np.flatnonzero(w if w.ndim == 1 else w.any(axis=1)).astype(np.int64, copy=False)

    def count(self, w: Floats) -> int:
        """How many these are."""
        return int(np.count_nonzero(w if w.ndim == 1 else w.any(axis=1)))

    def members(self, unit: int) -> Ints:
        """The column itself."""
        return np.array([unit], dtype=np.int64)


COLUMNS = Columns()
"""The units of every problem that names no others."""


def is_rounding(low: Floats, top: Floats) -> NDArray[np.bool_]:
    """Whether numbers between two bounds are one, up to its rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread, largest = top - low, np.maximum(np.abs(top), np.abs(low))
    return (low == top) | (np.isfinite(spread) & (spread <= FLAT * largest))
