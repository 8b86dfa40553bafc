"""The best point of a search so far, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(eq=False)
class Incumbent:
    """The best point so far, in the form that `Run.record` expects.

    A search stores what it learns about a point here, so that it need not recognize points later.

    Attributes
    ----------
    w : ndarray (n,), or (n, C) for C predictors per sample
    objective : float
    n_nonzero : int
    iteration : int
    prices : ndarray (n,) or None
        For every column the change of the objective by the best addition or swap that brings it in,
        if computed.
    doubtful : ndarray of int64 or None
        The columns whose entry changes are only rounding.
    is_settled : bool
        Whether it is known that no addition, removal or swap improves.
    is_proven : bool
        Whether it is known that nothing improves.
    """

    w: Floats
    objective: float
    n_nonzero: int
    iteration: int = 0
    prices: Floats | None = None
    doubtful: Ints | None = None
    is_settled: bool = False
    is_proven: bool = False

    @classmethod
    def at(cls, problem: Any, w: Floats, iteration: int = 0) -> Incumbent:
        """Make an incumbent, with its objective computed from the data."""
        return cls(w, problem.objective(w), problem.units.count(w), iteration)

    @property
    def support(self) -> Ints:
        """The columns with a nonzero coefficient."""
        return COLUMNS.support(self.w)


@dataclass
class Tally:
    """Full passes over X so far (a pool of all columns is one), and the largest drift."""

    n_passes: int = 0
    drift: float = 0.0

    def take(self, other: Tally) -> None:
        """Add the counts of another tally, and reset it."""
        self.n_passes, other.n_passes = self.n_passes + other.n_passes, 0
        self.drift = max(self.drift, other.drift)
