"""Shared by the baselines: checks, driver, stopping rule, and the Lipschitz constant.

A method is an object with a feasible point, a merit, and `advance`; `iterate` runs it.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.validate import check_integer, check_nonnegative

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POWER_STEPS, POWER_TOL = 60, 1e-3
"""Most steps of the power iteration, and the relative change at which it ends."""
POWER_MARGIN = 1.02
"""Safety factor: the power iteration underestimates the largest eigenvalue slightly."""
ROUNDING = 1e-13
"""Relative to ‖y‖, smaller correlations with the residual are rounding."""


# -- the driver ------------------------------------------------------------------------------------


class IterativeMethod(Protocol):
    """A method under way, at a feasible point."""

    w: Floats
    n_nonzero: int
    iteration: int

    @property
    def objective(self) -> float:
        """Return the ℓ0 objective at w."""
        ...

    @property
    def merit(self) -> float:
        """Return what the method decreases, by which its progress is judged."""
        ...

    def advance(self) -> bool:
        """Make an iteration; False when there will be nothing left to do."""
        ...


class Patience:
    """The paper's stopping rule: the mean relative decrease over `window` iterations <= `tol`."""

    def __init__(self, tol: Any, window: Any) -> None:
        self.tol: float = check_nonnegative("tol", tol)
        self.window: int = check_integer("window", window, low=1)
        self._decreases: deque[float] = deque(maxlen=self.window)
        self._last: float | None = None

    def is_over(self, merit: float) -> bool:
        """Add the merit after one more iteration (first: at the start); return True to stop."""
        if self._last is not None:
            fall = self._last - merit
            self._decreases.append(fall / abs(self._last) if self._last else 0.0)
        self._last = merit
        full = len(self._decreases) == self.window
        return full and sum(self._decreases) <= self.tol * self.window


def iterate(
    method: IterativeMethod, run: Run, max_iter: Any = None, patience: Patience | None = None
) -> Result:
    """Advance until the method is done, patience or iterations run out, or the run is stopped."""
    most = np.inf if max_iter is None else check_integer("max_iter", max_iter, low=1)
    stop: Status | None = None
    try:
        stop = run.record(method)
        if patience is not None:
            patience.is_over(method.merit)
        while stop is None and method.iteration < most:
            goes_on = method.advance()
            method.iteration += 1
            stop = run.record(method)
            if patience is not None and patience.is_over(method.merit):
                goes_on = False
            if stop is None and not goes_on:
                stop = Status.CONVERGED
    except KeyboardInterrupt as end:
        stop = run.status_of(end)
    return run.result(method.w, stop or Status.MAX_ITER, method.iteration)


class BestSoFar:
    """The best fit among the supports that a method has visited; never gets worse.

    Unless the method is taken literally, as it was published: then its point is the last one, and
    not fitted again, so that the objective may rise.

    Attributes
    ----------
    w : ndarray (n,)
    objective : float
    n_nonzero : int
    iteration : int
    """

    problem: Problem
    literal: bool
    w: Floats
    objective: float
    n_nonzero: int

    def __init__(self, problem: Problem, w: Floats, literal: bool = False) -> None:
        self.problem, self.literal = problem, literal
        self.iteration = 0
        self._take(w, problem.objective(w))

    @property
    def merit(self) -> float:
        """Return the objective."""
        return self.objective

    def offer(self, w: Floats) -> bool:
        """Replace the point by w if that is better, or anyway; return whether it is better."""
        objective = self.problem.objective(w)
        is_better = objective < self.objective
        if is_better or self.literal:
            self._take(w, objective)
        return is_better

    def _take(self, w: Floats, objective: float) -> None:
        self.w, self.objective, self.n_nonzero = w, objective, int(np.count_nonzero(w))


# -- selection -------------------------------------------------------------------------------------


def largest(scores: Floats, k: int) -> Ints:
    """Return the positions of the k largest positive scores, ascending; first of ties. O(n)."""
    k = min(k, scores.size)
    if k <= 0:
        return np.empty(0, dtype=np.int64)
    bar = max(np.partition(scores, scores.size - k)[scores.size - k], 0.0)
    above = np.flatnonzero(scores > bar)
    if bar == 0.0 or above.size == k:
        return above
    ties = np.flatnonzero(scores == bar)[: k - above.size]
    return np.sort(np.concatenate([above, ties]))


def largest_and_kept(scores: Floats, k: int, keep: Ints) -> Ints:
    """Return the kept columns and the best-scored others, k in all, ascending."""
    if keep.size == 0:
        return largest(scores, k)
    others = scores.copy()
    others[keep] = 0.0
    return np.union1d(keep, largest(others, k - keep.size))


def fit_support(problem: Problem, support: Ints) -> Floats:
    """Return the least squares fit on a support, (n,), the shortest one, as the papers have it."""
    return make_fits(problem).shortest_on(support)


def column_lengths(problem: Problem) -> Floats:
    """Return √(Σ_i weight_i x_ij² + ridge) for every column, (n,); one in place of zero."""
    lengths = np.sqrt(problem.design.sq_norms(problem.sample_weight) + problem.ridge)
    lengths[lengths == 0.0] = 1.0
    return lengths


# -- the Lipschitz constant ------------------------------------------------------------------------


def lipschitz_estimate(problem: Problem, rng: np.random.Generator) -> float:
    """Estimate the largest eigenvalue of X' diag(D) X + ridge·I by power iteration.

    Two passes over X per step. The estimate carries a margin but is no proven bound: users must
    check each step, see `ProximalGradient`. One for a problem without any curvature.
    """
    weights = problem.hessian_bound_weights()
    root = None if weights is None else np.sqrt(weights)
    v = rng.standard_normal(problem.n_features)
    length, before = float(np.linalg.norm(v)), 0.0
    sigma = 0.0
    for _ in range(POWER_STEPS):
        # u = D^½ X v / ‖·‖ and v = X' D^½ u: normalized on both sides, so that squares of
        # eigenvalues never appear
        u = problem.design.matvec(v / length)
        u = u if root is None else root * u
        size = float(np.linalg.norm(u))
        if size == 0.0:
            break
        u /= size
        v = problem.design.rmatvec(u if root is None else root * u)
        length = sigma = float(np.linalg.norm(v))
        if sigma - before <= POWER_TOL * sigma:
            break
        before = sigma
    return POWER_MARGIN * sigma**2 + problem.ridge or 1.0
