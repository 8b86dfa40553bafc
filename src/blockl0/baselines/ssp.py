"""Method "ssp": subspace pursuit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    iterate,
    largest,
    largest_and_kept,
)
from blockl0.baselines.pursuit import Pursuit
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run
from blockl0.validate import check_flag

Floats = NDArray[np.float64]


class SubspacePursuit(Pursuit):
    """The fit on a support of `budget` columns, exchanged as a whole while that helps."""

    def __init__(self, problem: Problem, init: Floats | None, normalize: bool) -> None:
        super().__init__(problem, np.zeros(problem.n_features), normalize)
        budget, keep = problem.sparsity.budget, problem.keep
        if init is None:
            first = largest_and_kept(self.correlation(self.w), budget, keep)
        else:
            first = np.union1d(np.flatnonzero(init), keep)
        self.offer(self.refit(first))

    def advance(self) -> bool:
        """Join as many columns as the budget, fit, prune, re-fit; return False if no better."""
        budget = self.problem.sparsity.budget
        joined = np.union1d(np.flatnonzero(self.w), largest(self.correlation(self.w), budget))
        return self.offer(self.refit(self.pruned(self.refit(joined))))


@method("ssp", losses="quadratic", forms=("budget",))
def solve_ssp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
    max_iter: int = 100,
) -> Result:
    """Repeat: join the s columns most correlated with the residual, fit, keep the s largest.

    Stops at the first exchange that does not lower the objective, which therefore always falls.
    W. Dai and O. Milenkovic, "Subspace pursuit for compressive sensing signal reconstruction", IEEE
    Transactions on Information Theory 55 (2009). One pass over X and fits on 2s columns each time.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss.
    run : Run
    init : ndarray (n,), optional
        Its support is the first one; by default the s columns most correlated with y.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Whether columns are compared as if they had length one.
    max_iter : int
    """
    return iterate(
        SubspacePursuit(problem, init, check_flag("normalize", normalize)), run, max_iter
    )
