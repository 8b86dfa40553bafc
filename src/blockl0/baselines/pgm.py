"""Method "pgm": proximal gradient with a budget, which is iterative hard thresholding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    Patience,
    iterate,
    largest_and_kept,
    lipschitz_estimate,
)
from blockl0.baselines.proximal_gradient import ProximalGradient
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run

Floats = NDArray[np.float64]


class Budget:
    """h(w) = 0 where ‖w‖₀ <= budget and kept columns are in, else infinity."""

    def __init__(self, problem: Problem) -> None:
        self.budget = problem.sparsity.budget
        self.keep = problem.keep

    def value(self, w: Floats) -> float:
        """Return zero: every point that a method visits is feasible."""
        return 0.0

    def prox(self, v: Floats, step: float) -> Floats:
        """Apply hard thresholding H_s(v): the `budget` largest |v_j| stay, kept columns first."""
        w = np.zeros_like(v)
        stay = largest_and_kept(np.abs(v), self.budget, self.keep)
        w[stay] = v[stay]
        return w


@method("pgm", losses="bounded", forms=("budget",))
def solve_pgm(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
) -> Result:
    """Repeat w ← H_s(w − ∇f(w)/L): the objective never rises, and limits are L-stationary.

    T. Blumensath and M. E. Davies, "Iterative hard thresholding for compressed sensing", Applied
    and Computational Harmonic Analysis 27 (2009); A. Beck and Y. C. Eldar, "Sparsity constrained
    nonlinear optimization", SIAM Journal on Optimization 23 (2013). Two passes over X each time.

    Parameters
    ----------
    problem : Problem
        A budget; any loss of bounded curvature.
    run : Run
        Clock, callback and history.
    init : ndarray (n,), optional
        Feasible start; by default 1e-7·randn, projected, as in the paper.
    rng : Generator
    tol, window : float, int
        Stop when the mean relative decrease over `window` iterations is at most `tol`.
    max_iter : int
    """
    patience = Patience(tol, window)
    w = starting_point(problem, init, rng)
    method = ProximalGradient(problem, Budget(problem), w, lipschitz_estimate(problem, rng))
    return iterate(method, run, max_iter, patience)
