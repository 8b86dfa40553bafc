"""Method "forward": forward selection, also known as orthogonal least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    iterate,
)
from blockl0.baselines.omp import MatchingPursuit
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run

Floats = NDArray[np.float64]

NEARLY_DEPENDENT = 1e-10
"""Smallest share of a column's squared length outside the span at which it may enter: less could
not be told from rounding."""


class ForwardSelection(MatchingPursuit):
    """Matching pursuit with every column measured by its part outside the span of the support."""

    def __init__(self, problem: Problem) -> None:
        # squared lengths outside the span, as shares of the columns' own
        self.outside = np.ones(problem.n_features)
        super().__init__(problem)

    def add(self, column: int) -> bool:
        """Add a column and remove its direction from all others."""
        if not super().add(column):
            return False
        along = self.problem.design.rmatvec(self.fit.latest) / self.lengths
        self.outside -= along**2
        self.is_closed |= self.outside <= NEARLY_DEPENDENT
        return True

    def choose(self) -> int | None:
        """Return the column with the largest gain (x_j'r)²/2‖x_j outside the span‖²."""
        correlation = self.problem.design.rmatvec(self.fit.residual) / self.lengths
        outside = np.where(self.is_closed, np.inf, self.outside)
        score = np.abs(correlation) / np.sqrt(outside)
        best = int(np.argmax(score))
        return best if score[best] > self.smallest else None


@method("forward", losses="quadratic", forms=("budget",), start=False)
def solve_forward(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
) -> Result:
    """Repeat: let the column enter that lowers the objective most after re-fitting all.

    S. Chen, S. A. Billings and W. Luo, "Orthogonal least squares methods and their application to
    non-linear system identification", International Journal of Control 50 (1989). The gain of every
    column is known exactly from its correlation with the residual and from its length outside the
    span of the support, which is updated as the span grows: two passes over X and O(mk) per column.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns enter first.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    """
    return iterate(ForwardSelection(problem), run)
