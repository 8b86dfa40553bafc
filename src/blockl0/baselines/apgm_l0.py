"""Method "apgm-l0": accelerated proximal gradient with a price per nonzero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import Patience, iterate, lipschitz_estimate
from blockl0.baselines.pgm_l0 import L0Penalty
from blockl0.baselines.proximal_gradient import AcceleratedProximalGradient
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run

Floats = NDArray[np.float64]


@method("apgm-l0", losses="bounded", forms=("price",))
def solve_apgm_l0(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
) -> Result:
    """Run "pgm-l0" at extrapolated points, with a plain step where that does not descend.

    Sources as for `solve_apgm`. The objective never rises. Two passes over X each time, four where
    the momentum starts afresh.

    Parameters
    ----------
    problem : Problem
        A price; any loss of bounded curvature.
    run : Run
    init : ndarray (n,), optional
        Start; by default 1e-7·randn as in the paper.
    rng : Generator
    tol, window, max_iter : float, int, int
        As in `solve_pgm`.
    """
    patience = Patience(tol, window)
    w = starting_point(problem, init, rng)
    lipschitz = lipschitz_estimate(problem, rng)
    method = AcceleratedProximalGradient(problem, L0Penalty(problem), w, lipschitz)
    return iterate(method, run, max_iter, patience)
