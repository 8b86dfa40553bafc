"""Method "qpm": quadratic penalty, also known as penalty decomposition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    BestSoFar,
    fit_support,
    iterate,
    largest_and_kept,
    lipschitz_estimate,
)
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run
from blockl0.validate import check_flag, check_positive

Floats = NDArray[np.float64]

CG_TOL, CG_STEPS = 1e-4, 100
"""Accuracy and length of an inner solve, which starts where the last one ended."""
CG_ZERO = 1e-150
"""A right-hand side this small is zero: the squares of its entries would underflow."""
SETTLED = 1e-4
"""The penalty grows when an alternation lowers the penalty function by less than this share."""
LARGEST_PENALTY = 1e3
"""In units of L: from there on a step is a gradient step a thousand times too short."""


class PenaltyDecomposition(BestSoFar):
    """x, unconstrained, and z on a budget, drawn together by ½rho·‖x − z‖²."""

    rho: float

    def __init__(
        self,
        problem: Problem,
        start: Floats,
        lipschitz: float,
        *,
        penalty: float,
        growth: float,
        literal: bool = False,
    ) -> None:
        super().__init__(problem, start, literal)
        self.x = self.z = start
        self.lipschitz = lipschitz
        self.rho = penalty * lipschitz
        self.growth = growth
        self._before = np.inf

    def advance(self) -> bool:
        """Fit x for z, threshold z from x; return False when x and z have met."""
        self.x: Floats = self._fit_near(self.z)
        z = np.zeros_like(self.x)
        stay = largest_and_kept(np.abs(self.x), self.problem.sparsity.budget, self.problem.keep)
        z[stay] = self.x[stay]
        if self.literal:
            self.offer(z)
        elif self.iteration == 0 or not np.array_equal(stay, np.flatnonzero(self.z)):
            self.offer(fit_support(self.problem, stay))
        self.z: Floats = z
        gap = self.x - z
        value = self.problem.smooth(self.x) + 0.5 * self.rho * float(gap @ gap)
        if not value < (1.0 - SETTLED) * self._before:
            self.rho *= self.growth
            value = np.inf
        self._before = value
        return self.rho <= LARGEST_PENALTY * self.lipschitz

    def _fit_near(self, z: Floats) -> Floats:
        """Return argmin_x f(x) + ½rho·‖x − z‖² by conjugate gradients, two passes over X a step."""
        from scipy.sparse.linalg import LinearOperator, cg  # no other method waits for it

        problem, design = self.problem, self.problem.design
        weights, n = problem.sample_weight, problem.n_features
        unit = self.lipschitz  # curvature in units of L, whatever the units of X
        shift = (problem.ridge + self.rho) / unit

        def curvature(v: Floats) -> Floats:
            eta = design.matvec(v) / unit
            return design.rmatvec(eta if weights is None else weights * eta) + shift * v

        operator = LinearOperator((n, n), matvec=curvature, dtype=np.float64)  # type: ignore[call-arg]
        right = (self.rho / unit) * z - problem.gradient(np.zeros(n)) / unit
        x, _ = cg(operator, right, x0=self.x, rtol=CG_TOL, atol=CG_ZERO, maxiter=CG_STEPS)
        return x


@method("qpm", losses="quadratic", forms=("budget",))
def solve_qpm(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    penalty: float = 1e-3,
    growth: float = 10**0.5,
    literal: bool = False,
    max_iter: int = 1000,
) -> Result:
    """Alternate on f(x) + ½rho·‖x − z‖², z on the budget, while rho grows until x and z meet.

    x is the solution of a linear system, z the s largest entries of x. What is recorded and
    returned is the best least squares fit on a support of z. Z. Lu and Y. Zhang, "Sparse
    approximation via penalty decomposition methods", SIAM Journal on Optimization 23 (2013).
    Conjugate gradients from the last x need two passes over X per step and no n x n matrix.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss.
    run : Run
    init : ndarray (n,), optional
        Feasible start of z; by default 1e-7·randn, projected, as in the paper.
    rng : Generator
    penalty : float
        The first rho, as a share of the Lipschitz constant L of the gradient.
    growth : float
        Factor of rho, applied whenever alternating has settled; ends at 1000·L.
    literal : bool
        Whether to return the last z as the method was published, not fitted on its support.
    max_iter : int
    """
    penalty = check_positive("penalty", penalty)
    growth = check_positive("growth", growth)
    if growth <= 1.0:
        raise ValueError(f"`growth` must be greater than 1, got {growth:g}.")
    start = starting_point(problem, init, rng)
    lipschitz = lipschitz_estimate(problem, rng)
    method = PenaltyDecomposition(
        problem, start, lipschitz, penalty=penalty, growth=growth,
        literal=check_flag("literal", literal),
    )  # fmt: skip
    return iterate(method, run, max_iter)
