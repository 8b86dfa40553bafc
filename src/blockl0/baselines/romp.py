"""Method "romp": regularized orthogonal matching pursuit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    ROUNDING,
    iterate,
    largest,
)
from blockl0.baselines.pursuit import Pursuit
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run
from blockl0.validate import check_flag

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def comparable_group(scores: Floats) -> Ints:
    """Return the group of largest Σscore² in which no score exceeds twice another.

    Such a group is a run of the scores in descending order that starts at some score and takes all
    that are at least half of it. O(k log k).
    """
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    energy = np.concatenate([[0.0], np.cumsum(falling**2)])
    ends = np.searchsorted(-falling, -0.5 * falling, side="right")
    starts = np.arange(scores.size)
    best = int(np.argmax(energy[ends] - energy[starts]))
    return np.sort(order[best : ends[best]])


class RegularizedPursuit(Pursuit):
    """The fit on a set of up to 3s columns, and the best one on s of them."""

    def __init__(self, problem: Problem, normalize: bool) -> None:
        super().__init__(problem, np.zeros(problem.n_features), normalize)
        self.joined: Ints = problem.keep
        self.fitted = self.refit(self.joined)
        self.offer(self.fitted)
        self.smallest = ROUNDING * np.sqrt(2.0 * problem.smooth(np.zeros(problem.n_features)))

    def advance(self) -> bool:
        """Join a comparable group among the s best; return False from 2s columns on."""
        budget = self.problem.sparsity.budget
        scores = self.correlation(self.fitted)
        scores[self.joined] = 0.0
        scores[scores <= self.smallest] = 0.0
        candidates = largest(scores, budget)
        if candidates.size == 0:
            return False
        group = candidates[comparable_group(scores[candidates])]
        self.joined = np.union1d(self.joined, group)
        self.fitted = self.refit(self.joined)
        self.offer(self.refit(self.pruned(self.fitted)))
        return self.joined.size < 2 * budget


@method("romp", losses="quadratic", forms=("budget",), start=False)
def solve_romp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
) -> Result:
    """Repeat: add a comparable group of the s columns most correlated with the residual.

    D. Needell and R. Vershynin, "Signal recovery from incomplete and inaccurate measurements via
    regularized orthogonal matching pursuit", IEEE Journal of Selected Topics in Signal Processing 4
    (2010). The definition collects at least 2s columns; what is recorded and returned is the best
    least squares fit on the s largest coefficients of an iteration. One pass over X and a fit on up
    to 3s columns each time.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns are in from the start.
    run : Run
    init : None
        The method starts at zero.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Whether columns are compared as if they had length one.
    """
    return iterate(RegularizedPursuit(problem, check_flag("normalize", normalize)), run)
