"""Method "apgm": accelerated proximal gradient with a budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import Patience, iterate, lipschitz_estimate
from blockl0.baselines.pgm import Budget
from blockl0.baselines.proximal_gradient import AcceleratedProximalGradient
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run

Floats = NDArray[np.float64]


@method("apgm", losses="bounded", forms=("budget",))
def solve_apgm(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
) -> Result:
    """Threshold at extrapolated points, with a plain step where that does not descend.

    A. Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems", SIAM Journal on Imaging Sciences 2 (2009); the safeguard is described with
    `AcceleratedProximalGradient`. The objective never rises. Two passes over X each time, four
    where the momentum starts afresh.

    Parameters
    ----------
    problem : Problem
        A budget; any loss of bounded curvature.
    run : Run
    init : ndarray (n,), optional
        Feasible start; by default 1e-7·randn, projected, as in the paper.
    rng : Generator
    tol, window, max_iter : float, int, int
        As in `solve_pgm`.
    """
    patience = Patience(tol, window)
    w = starting_point(problem, init, rng)
    lipschitz = lipschitz_estimate(problem, rng)
    method = AcceleratedProximalGradient(problem, Budget(problem), w, lipschitz)
    return iterate(method, run, max_iter, patience)
