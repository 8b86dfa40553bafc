"""Units that the budget counts and the price applies to: columns of X, or groups of them.

Coefficients are w (n,), or (n, C) if a sample has C predictors; a column is then in or out for all
of them at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLAT = 8.0 * float(np.finfo(np.float64).eps)
"""Ranges within this share of the largest entry, 8 to 16 ulps, are rounding of equal numbers."""


class Units(Protocol):
    """Interface of a partition of the columns into units that are chosen as a whole."""

    def number(self, n_features: int) -> int:
        """Count the units of this many columns."""
        ...

    def support(self, w: Floats) -> Ints:
        """Return the units with a nonzero coefficient, ascending."""
        ...

    def count(self, w: Floats) -> int:
        """Count the units with a nonzero coefficient."""
        ...

    def members(self, unit: int) -> Ints:
        """Return the columns of a unit, ascending."""
        ...

    def columns(self, units: Ints) -> Ints:
        """Return all columns of some units, ascending."""
        ...

    def of(self, columns: Ints) -> Ints:
        """Return the units of some columns, ascending, without repeats."""
        ...

    def each(self, columns: Ints) -> Ints:
        """Return the unit of each of some columns."""
        ...

    def take(self, units: Ints) -> Units:
        """Return the units of the columns of some units alone, in this order."""
        ...


class Columns:
    """Units of one column each."""

    def number(self, n_features: int) -> int:
        """Count the columns."""
        return n_features

    def support(self, w: Floats) -> Ints:
        """Return the columns with a nonzero coefficient, ascending."""
        is_in: NDArray[Any] = w if w.ndim == 1 else np.asarray(w.any(axis=1))
        return is_in.nonzero()[0].astype(np.int64, copy=False)

    def count(self, w: Floats) -> int:
        """Count the columns with a nonzero coefficient."""
        return int(np.count_nonzero(w if w.ndim == 1 else w.any(axis=1)))

    def members(self, unit: int) -> Ints:
        """Return the column itself."""
        return np.array([unit], dtype=np.int64)

    def columns(self, units: Ints) -> Ints:
        """Return the units unchanged."""
        return units

    def of(self, columns: Ints) -> Ints:
        """Return the columns unchanged."""
        return columns

    def each(self, columns: Ints) -> Ints:
        """Return the columns unchanged."""
        return columns

    def take(self, units: Ints) -> Columns:
        """Return itself: fewer columns are still columns."""
        return self


COLUMNS = Columns()
"""The default units of a problem."""


def is_rounding(low: Floats, top: Floats) -> NDArray[np.bool_]:
    """Check if numbers within two bounds are equal up to rounding."""
    # of huge entries the range may be infinite, which is no rounding
    with np.errstate(over="ignore", invalid="ignore"):
        spread, largest = top - low, np.maximum(np.abs(top), np.abs(low))
    return (low == top) | (np.isfinite(spread) & (spread <= FLAT * largest))


class Groups:
    """Groups of columns that enter and leave together.

    Parameters
    ----------
    codes : ndarray of int64 (n,)
        The unit of every column, 0, ..., G − 1, each at least once.
    labels : sequence
        Labels of the units.

    Attributes
    ----------
    order : ndarray of int64 (n,)
        The columns by units, ascending in each.
    starts : ndarray of int64 (G + 1,)
        Where each unit starts in that order.
    """

    codes: Ints
    labels: tuple[Hashable, ...]

    def __init__(self, codes: Ints, labels: Sequence[Hashable]) -> None:
        self.codes, self.labels = codes, tuple(labels)
        self.order: Ints = np.argsort(codes, kind="stable").astype(np.int64)
        sizes = np.bincount(codes, minlength=len(self.labels))
        self.starts: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def number(self, n_features: int) -> int:
        """Return G."""
        return len(self.labels)

    def support(self, w: Floats) -> Ints:
        """Return the groups with a nonzero coefficient, ascending."""
        return self.of(COLUMNS.support(w))

    def count(self, w: Floats) -> int:
        """Count the groups with a nonzero coefficient."""
        return self.support(w).size

    def members(self, unit: int) -> Ints:
        """Return the columns of a group, ascending."""
        return self.order[self.starts[unit] : self.starts[unit + 1]]

    def columns(self, units: Ints) -> Ints:
        """Return all columns of some groups, ascending."""
        parts = [self.members(int(unit)) for unit in units]
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))

    def of(self, columns: Ints) -> Ints:
        """Return the groups of some columns, ascending, without repeats."""
        return np.unique(self.codes[columns])

    def each(self, columns: Ints) -> Ints:
        """Return the group of each of some columns."""
        return self.codes[columns]

    def take(self, units: Ints) -> Groups:
        """Return the groups of the columns of some groups alone, in this order."""
        # units are numbered anew, in the order given
        place = np.full(len(self.labels), -1, dtype=np.int64)
        place[units] = np.arange(units.size)
        codes = place[self.codes[self.columns(units)]]
        return Groups(codes, [self.labels[unit] for unit in units])
