"""The point under test, and improvements on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.certify.levels import TOL, slack
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Better(NamedTuple):
    """A feasible point with a lower objective, and the columns that show it."""

    block: tuple[int, ...]
    coef: Floats
    objective: float


class PointUnderTest:
    """A point with its units, including kept ones, its objective, and the slack of comparisons."""

    def __init__(self, problem: Problem, w: Floats, tol: float = TOL) -> None:
        self.problem, self.w, self.tol = problem, w, tol
        self.objective = problem.objective(w)
        self.members: Indices = problem.occupied(w)
        self.slack = slack(self.objective, problem.smooth(problem.zero()), tol)

    def confirm(self, block: NDArray[np.integer], z: Floats) -> Better | None:
        """Return the better point if it is better on the data by more than the slack."""
        objective = self.problem.objective(z)
        if not objective < self.objective - self.slack:
            return None
        return Better(tuple(sorted(int(j) for j in block)), z, objective)

    def on(self, problem: Problem, better: Better | None) -> tuple[PointUnderTest, Better | None]:
        """Re-evaluate the point and its improvement on the full data.

        An improvement that vanishes there was rounding error.
        """
        if problem is self.problem:
            return self, better
        there = PointUnderTest(problem, self.w, self.tol)
        return there, None if better is None else there.confirm(np.array(better.block), better.coef)
