"""Method "pgm-l1": the convex relaxation by proximal gradient."""

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
Ints = NDArray[np.int64]


class L1:
    """h(w) = price·Σ|w_j| over the columns that are not kept."""

    def __init__(self, price: float, keep: Ints) -> None:
        self.price = price
        self.keep = keep

    def value(self, w: Floats) -> float:
        """Return price·Σ|w_j|."""
        return self.price * float(np.abs(w).sum() - np.abs(w[self.keep]).sum())

    def prox(self, v: Floats, step: float) -> Floats:
        """Apply soft thresholding: sign(v)·max(|v| − step·price, 0)."""
        bar = step * self.price
        w = v - np.clip(v, -bar, bar)
        w[self.keep] = v[self.keep]
        return w


@method("pgm-l1", losses="bounded", forms=("price",))
def solve_pgm_l1(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
) -> Result:
    """Minimize f(w) + alpha·‖w‖₁ by iterative soft thresholding.

    As in the paper, alpha is the same number as in the ℓ0 problem, and what the history and the
    result report is the ℓ0 objective f(w) + alpha·‖w‖₀ at the points of this method; it need not
    fall, while f(w) + alpha·‖w‖₁ does. Nothing is re-fitted. I. Daubechies, M. Defrise and C. De
    Mol, "An iterative thresholding algorithm for linear inverse problems with a sparsity
    constraint", Communications on Pure and Applied Mathematics 57 (2004). Two passes over X each
    time.

    Parameters
    ----------
    problem : Problem
        A price; any loss of bounded curvature. Kept columns are not penalized.
    run : Run
    init : ndarray (n,), optional
        Start; by default 1e-7·randn as in the paper.
    rng : Generator
    tol, window, max_iter : float, int, int
        As in `solve_pgm`, but judged by f(w) + alpha·‖w‖₁.
    """
    patience = Patience(tol, window)
    w = starting_point(problem, init, rng)
    penalty = L1(problem.sparsity.price, problem.keep)
    method = ProximalGradient(problem, penalty, w, lipschitz_estimate(problem, rng))
    return iterate(method, run, max_iter, patience)
