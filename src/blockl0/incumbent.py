"""The best point of a search so far, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Walk(NamedTuple):
    """Where a walk on a pool of columns has come to, and what it set out from."""

    support: Ints
    columns: Ints
    state: Any

    def is_from(self, support: Ints, columns: Ints) -> bool:
        """Whether it set out from this support, on a pool of these columns."""
        return np.array_equal(self.support, support) and np.array_equal(self.columns, columns)


@dataclass(eq=False)
class Incumbent:
    """The best point so far, in the shape `Run.record` wants.

    What a search learns of the point stays with it: a search keeps nothing that it would have to
    recognize a point by.

    Attributes
    ----------
    w : ndarray (n,), or (n, C) for C predictors of a sample
    objective : float
    n_nonzero : int
    iteration : int
    prices : ndarray (n,) or None
        For every column, the change of the objective by the best addition or swap that brings it
        in, once the point has been priced.
    doubtful : ndarray of int64 or None
        The columns whose prices are only rounding.
    is_settled : bool
        Whether it is known that no addition, removal or swap improves.
    is_proven : bool
        Whether it is known that nothing at all does.
    walk : Walk or None
        Where a search that walks away from the point has come to.
    frontier : Frontier or None
        The best supports by size that the search has met around the point.
    """

    w: Floats
    objective: float
    n_nonzero: int
    iteration: int = 0
    prices: Floats | None = None
    doubtful: Ints | None = None
    is_settled: bool = False
    is_proven: bool = False
    walk: Walk | None = None
    frontier: Any = None

    @classmethod
    def at(cls, problem: Any, w: Floats, iteration: int = 0) -> Incumbent:
        """A point with its objective from the data."""
        return cls(w, problem.objective(w), problem.units.count(w), iteration)

    @property
    def support(self) -> Ints:
        """The columns with a nonzero coefficient."""
        return COLUMNS.support(self.w)


@dataclass
class Tally:
    """Full passes over X so far (a pool of all columns is one), and the largest drift seen."""

    n_passes: int = 0
    drift: float = 0.0

    def take(self, other: Tally) -> None:
        """Add what another has counted, which begins anew."""
        self.n_passes, other.n_passes = self.n_passes + other.n_passes, 0
        self.drift = max(self.drift, other.drift)
