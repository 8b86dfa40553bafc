"""Method "cvx-l1": a path of convex ℓ1 problems, each cut to the budget and re-fitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    BestSoFar,
    Patience,
    fit_support,
    iterate,
    largest_and_kept,
    lipschitz_estimate,
)
from blockl0.baselines.proximal_gradient import L1, ProximalGradient
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run
from blockl0.validate import check_integer, check_nonnegative

Floats = NDArray[np.float64]

ALPHAS = tuple(2.0**power for power in range(-10, 11, 2))
"""The paper's sweep."""


class L1Path(BestSoFar):
    """The best fit on a support cut out of an ℓ1 solution; prices fall, starts are warm."""

    relaxed: Floats
    lipschitz: float

    def __init__(
        self,
        problem: Problem,
        run: Run,
        start: Floats,
        lipschitz: float,
        *,
        alphas: Sequence[float],
        patience: Patience,
        max_iter: int,
    ) -> None:
        super().__init__(problem, start)
        self.run = run
        self.relaxed = start
        self.lipschitz = lipschitz
        self.alphas: list[float] = sorted(alphas, reverse=True)
        self.patience = patience
        self.max_iter = max_iter

    def advance(self) -> bool:
        """Solve the ℓ1 problem at the next price, threshold, re-fit; False after the last."""
        problem = self.problem
        penalty = L1(self.alphas[self.iteration], problem.keep)
        method = ProximalGradient(problem, penalty, self.relaxed, self.lipschitz)
        patience = Patience(self.patience.tol, self.patience.window)
        patience.is_over(method.merit)
        for _ in range(self.max_iter):
            goes_on = method.advance()
            if not goes_on or patience.is_over(method.merit) or self.run.seconds_left <= 0.0:
                break
        self.relaxed, self.lipschitz = method.w, method.lipschitz
        budget, keep = problem.sparsity.budget, problem.keep
        self.offer(fit_support(problem, largest_and_kept(np.abs(method.w), budget, keep)))
        return self.iteration + 1 < len(self.alphas)


@method("cvx-l1", losses="quadratic", forms=("budget",))
def solve_cvx_l1(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    alphas: Sequence[float] = ALPHAS,
    tol: float = 1e-5,
    window: int = 50,
    max_iter: int = 1000,
) -> Result:
    """Solve for each price with ‖w‖₁, keep the s largest |w_j|, re-fit; take the best.

    The convex approximation as the paper compares with it (E. J. Candès and T. Tao, "Decoding by
    linear programming", IEEE Transactions on Information Theory 51 (2005)), solved by proximal
    gradient from the largest price down. An iteration is one price.

    Parameters
    ----------
    problem : Problem
        A budget; squared loss. Kept columns are not penalized.
    run : Run
    init : ndarray (n,), optional
        Feasible start; by default 1e-7·randn, projected, as in the paper.
    rng : Generator
    alphas : sequence of float
        ℓ1 prices in the units of the objective; by default the paper's 2^-10, 2^-8, ..., 2^10.
    tol, window, max_iter : float, int, int
        As in `solve_pgm`, for each price.
    """
    if np.ndim(alphas) != 1:
        raise TypeError(f"`alphas` must be a sequence of prices, got {alphas!r}.")
    prices = [check_nonnegative("alphas", alpha) for alpha in alphas]
    if not prices:
        raise ValueError("`alphas` must hold at least one price, got none.")
    patience, max_iter = Patience(tol, window), check_integer("max_iter", max_iter, low=1)
    start = starting_point(problem, init, rng)
    lipschitz = lipschitz_estimate(problem, rng)
    method = L1Path(
        problem, run, start, lipschitz, alphas=prices, patience=patience, max_iter=max_iter
    )
    return iterate(method, run)
