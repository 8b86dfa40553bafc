"""Method "pgm-lp": the ℓp relaxation with p = ½ by proximal gradient."""

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


def half_threshold(v: Floats, weight: float) -> Floats:
    """Return the global minimizer of ½(w − v)² + weight·√|w|, entry by entry, in closed form.

    Zero for |v| <= 1.5·weight^⅔. Beyond that a stationary point solves, with u = √|w|, the cubic
    u³ − |v|u + ½weight = 0, whose largest root is (Viète) u = 2√(|v|/3)·cos(⅓arccos(−c)) with
    c = ¼weight·(|v|/3)^(−3/2). Z. Xu, X. Chang, F. Xu and H. Zhang, "L1/2 regularization: a
    thresholding representation theory and a fast solver", IEEE Transactions on Neural Networks and
    Learning Systems 23 (2012), where the quadratic has no factor ½.
    """
    if weight == 0.0:
        return v.copy()
    w = np.zeros_like(v)
    large = np.flatnonzero(np.abs(v) > 1.5 * weight ** (2.0 / 3.0))
    third = np.abs(v[large]) / 3.0
    angle = np.arccos(-0.25 * weight * third**-1.5) / 3.0
    w[large] = np.copysign(4.0 * third * np.cos(angle) ** 2, v[large])
    return w


class Half:
    """h(w) = price·Σ√|w_j| over the columns that are not kept."""

    def __init__(self, price: float, keep: Ints) -> None:
        self.price = price
        self.keep = keep

    def value(self, w: Floats) -> float:
        """Return price·Σ√|w_j|."""
        roots = np.sqrt(np.abs(w))
        return self.price * float(roots.sum() - roots[self.keep].sum())

    def prox(self, v: Floats, step: float) -> Floats:
        """Apply half thresholding."""
        w = half_threshold(v, step * self.price)
        w[self.keep] = v[self.keep]
        return w


@method("pgm-lp", losses="bounded", forms=("price",))
def solve_pgm_lp(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
) -> Result:
    """Descend on f(w) + alpha·Σ√|w_j| by iterative half thresholding, Xu et al. (2012).

    As in the paper, alpha is the same number as in the ℓ0 problem, and what the history and the
    result report is the ℓ0 objective f(w) + alpha·‖w‖₀ at the points of this method; it need not
    fall, while f(w) + alpha·Σ√|w_j| does. Nothing is re-fitted. Two passes over X each time.

    Parameters
    ----------
    problem : Problem
        A price; any loss of bounded curvature. Kept columns are not penalized.
    run : Run
    init : ndarray (n,), optional
        Start; by default 1e-7·randn as in the paper.
    rng : Generator
    tol, window, max_iter : float, int, int
        As in `solve_pgm`, but judged by f(w) + alpha·Σ√|w_j|.
    """
    patience = Patience(tol, window)
    w = starting_point(problem, init, rng)
    penalty = Half(problem.sparsity.price, problem.keep)
    method = ProximalGradient(problem, penalty, w, lipschitz_estimate(problem, rng))
    return iterate(method, run, max_iter, patience)
