"""Method "pgm-l0": proximal gradient with a price per nonzero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import Patience, iterate, lipschitz_estimate
from blockl0.baselines.proximal_gradient import ProximalGradient
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run

Floats = NDArray[np.float64]


class L0Penalty:
    """h(w) = price·‖w‖₀; kept columns are paid for but never thresholded."""

    def __init__(self, problem: Problem) -> None:
        self.price = problem.sparsity.price
        self.keep = problem.keep

    def value(self, w: Floats) -> float:
        """Return price·‖w‖₀, and the price of kept columns at zero."""
        return self.price * (np.count_nonzero(w) + np.count_nonzero(w[self.keep] == 0.0))

    def prox(self, v: Floats, step: float) -> Floats:
        """Apply hard thresholding at √(2·step·price); zero on the threshold, a tie."""
        w = np.where(np.abs(v) > np.sqrt(2.0 * step * self.price), v, 0.0)
        w[self.keep] = v[self.keep]
        return w


@method("pgm-l0", losses="bounded", forms=("price",))
def solve_pgm_l0(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
) -> Result:
    """Repeat: a gradient step, then zero for every |w_j| <= √(2·price/L).

    The objective never rises, and limits are L-stationary. T. Blumensath and M. E. Davies,
    "Iterative thresholding for sparse approximations", Journal of Fourier Analysis and
    Applications 14 (2008). Two passes over X each time.

    Parameters
    ----------
    problem : Problem
        A price; any loss of bounded curvature.
    run : Run
    init : ndarray (n,), optional
        Start; by default 1e-7·randn as in the paper, all of whose entries are nonzero and paid for.
    rng : Generator
    tol, window, max_iter : float, int, int
        As in `solve_pgm`.
    """
    patience = Patience(tol, window)
    w = starting_point(problem, init, rng)
    method = ProximalGradient(problem, L0Penalty(problem), w, lipschitz_estimate(problem, rng))
    return iterate(method, run, max_iter, patience)
