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
