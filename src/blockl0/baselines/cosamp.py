"""Method "cosamp": compressive sampling matching pursuit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    Patience,
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


class CoSaMP(Pursuit):
    """The running approximation, and the best fit on one of its supports."""

    def __init__(self, problem: Problem, init: Floats | None, normalize: bool) -> None:
        zero = np.zeros(problem.n_features)
        super().__init__(problem, zero, normalize)
        self.approximation = zero
        if init is not None:
            self.approximation = init
            self.offer(init)
        self.offer(self.refit(np.union1d(np.flatnonzero(self.approximation), problem.keep)))

    def advance(self) -> bool:
        """Join twice as many columns as the budget, fit, prune; return False if nothing changes."""
        problem, before = self.problem, self.approximation
        proxy = largest(self.correlation(before), 2 * problem.sparsity.budget)
        joined = np.union1d(np.union1d(np.flatnonzero(before), proxy), problem.keep)
        fitted = self.refit(joined)
        support = self.pruned(fitted)
        self.approximation = np.zeros_like(fitted)
        self.approximation[support] = fitted[support]
        self.offer(self.refit(support))
        return not np.array_equal(self.approximation, before)


@method("cosamp", losses="quadratic", forms=("budget",))
def solve_cosamp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    normalize: bool = True,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 100,
) -> Result:
    """Repeat: join the 2s columns most correlated with the residual, fit, keep the s largest.

    The approximation goes on with the pruned coefficients as they are, and may get worse; what is
    recorded and returned is the best least squares fit on a support that it has visited. D. Needell
    and J. A. Tropp, "CoSaMP: iterative signal recovery from incomplete and inaccurate samples",
    Applied and Computational Harmonic Analysis 26 (2009). One pass over X and a fit on up to 3s
    columns each time.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss.
    run : Run
    init : ndarray (n,), optional
        The first approximation; zero by default.
    rng : Generator
        Not used: the method is deterministic.
    normalize : bool
        Whether columns are compared as if they had length one.
    tol, window, max_iter : float, int, int
        As in `solve_pgm`, judged by the best objective so far.
    """
    patience = Patience(tol, window)
    method = CoSaMP(problem, init, check_flag("normalize", normalize))
    return iterate(method, run, max_iter, patience)
