"""Proximal gradient, plain and accelerated, with four penalties: six methods of the comparison.

Minimized is F(w) = f(w) + h(w) with f the smooth part of the problem and h given by its value and
its proximal operator: a budget ("pgm", "apgm"), price·‖w‖₀ ("pgm-l0", "apgm-l0"), price·‖w‖₁
("pgm-l1") or price·Σ√|w_j| ("pgm-lp"). An iteration costs two passes over X and one proximal
operator. Every loss of bounded curvature.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import (
    Patience,
    iterate,
    largest_and_kept,
    lipschitz_estimate,
)
from blockl0.dec.decomposition import starting_point
from blockl0.methods import method
from blockl0.problem.problem import Problem
from blockl0.result import Result
from blockl0.run import Run

Floats = NDArray[np.float64]

ENOUGH_DECREASE = 1e-4
"""An accelerated step must lower F by this share of ½L‖step‖², or a plain one is made."""

TINY_STEP = 1e-7
"""Share of ‖w‖ below which the curvature along a step is not judged: it would be rounding."""
GROWTH = 1.01
"""L becomes this times a curvature that exceeds it."""


class Penalty(Protocol):
    """The part h that is not smooth."""

    def value(self, w: Floats) -> float:
        """Return h(w); a budget that is respected costs nothing."""
        ...

    def prox(self, v: Floats, step: float) -> Floats:
        """Return a global minimizer of ½‖w − v‖² + step·h(w), a fresh array."""
        ...


class ProximalGradient:
    """w ← prox(w − ∇f(w)/L): F never rises, and limits are L-stationary.

    L starts as the estimate of the power iteration. Each step d verifies ‖Xd‖²_D + ridge·‖d‖² <=
    L‖d‖², which makes the quadratic model an upper bound there, and L grows where it fails; so
    descent does not rest on the estimate.

    Attributes
    ----------
    w, eta : ndarray (n,), (m,)
        The point and Xw.
    smooth : float
        f(w).
    lipschitz : float
        L.
    """

    w: Floats
    eta: Floats

    def __init__(self, problem: Problem, penalty: Penalty, w: Floats, lipschitz: float) -> None:
        self.problem = problem
        self.penalty = penalty
        self.lipschitz = lipschitz
        self.weights: Floats | None = problem.hessian_bound_weights()
        self.iteration = 0
        self._move(w, problem.design.matvec(w))

    @property
    def objective(self) -> float:
        """Return f(w) + price·‖w‖₀, whatever h is; kept columns at zero are paid for, too."""
        return self.smooth + self.problem.cost(self.problem.occupied(self.w))

    @property
    def merit(self) -> float:
        """Return F(w) = f(w) + h(w)."""
        return self.smooth + self.penalty.value(self.w)

    def advance(self) -> bool:
        """Make a step; False when w is a fixed point."""
        before = self.w
        self._move(*self.step_from(before, self.eta))
        return not np.array_equal(before, self.w)

    def step_from(self, v: Floats, eta: Floats) -> tuple[Floats, Floats]:
        """Return prox(v − ∇f(v)/L) and its linear predictor, given eta = Xv."""
        gradient = self.problem.gradient(v, eta)
        while True:
            w = self.penalty.prox(v - gradient / self.lipschitz, 1.0 / self.lipschitz)
            eta_w = self.problem.design.matvec(w)
            step, eta_step = w - v, eta_w - eta
            length = float(step @ step)
            if length <= TINY_STEP**2 * float(v @ v):
                return w, eta_w
            curvature = self._square(eta_step) / length + self.problem.ridge
            if curvature <= self.lipschitz:
                return w, eta_w
            self.lipschitz: float = GROWTH * curvature

    def _square(self, eta: Floats) -> float:
        """Return ‖eta‖²_D."""
        return float(eta @ eta if self.weights is None else self.weights @ eta**2)

    def _move(self, w: Floats, eta: Floats) -> None:
        self.w, self.eta = w, eta
        self.smooth: float = self.problem.smooth(w, eta)
        self.n_nonzero: int = int(np.count_nonzero(w))


class AcceleratedProximalGradient(ProximalGradient):
    """w ← prox(v − ∇f(v)/L) at the extrapolated v = w + β(w − w_before), Beck & Teboulle (2009).

    h need not be convex, so an extrapolated step counts only if it lowers F enough; otherwise the
    plain step from w is made and the momentum starts afresh (Li & Lin, "Accelerated proximal
    gradient methods for nonconvex programming", 2015; O'Donoghue & Candès, "Adaptive restart for
    accelerated gradient schemes", 2015). So F never rises, and limits are L-stationary here too.
    """

    def __init__(self, problem: Problem, penalty: Penalty, w: Floats, lipschitz: float) -> None:
        super().__init__(problem, penalty, w, lipschitz)
        self._before, self._eta_before = self.w, self.eta
        self._t = 1.0

    def advance(self) -> bool:
        """Make an extrapolated step, or a plain one; False when w is a fixed point."""
        w, eta = self.w, self.eta
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self._t**2))
        beta = (self._t - 1.0) / t
        moved = self.step_from(w + beta * (w - self._before), eta + beta * (eta - self._eta_before))
        if beta > 0.0 and not self._is_descent(*moved):
            t, moved = 1.0, self.step_from(w, eta)
        # standing still after a real extrapolation may be chance; after a plain step it is not
        stood_still = np.array_equal(self._before, w)
        self._move(*moved)
        self._before, self._eta_before, self._t = w, eta, t
        return not (stood_still and np.array_equal(w, self.w))

    def _is_descent(self, w: Floats, eta: Floats) -> bool:
        step = w - self.w
        enough = 0.5 * ENOUGH_DECREASE * self.lipschitz * float(step @ step)
        return self.problem.smooth(w, eta) + self.penalty.value(w) <= self.merit - enough


# -- with a budget: iterative hard thresholding ----------------------------------------------------


class Budget:
    """h(w) = 0 where ‖w‖₀ <= budget and kept columns are in, else infinity."""

    def __init__(self, problem: Problem) -> None:
        self.budget: int = problem.sparsity.budget
        self.keep: Ints = problem.keep

    def value(self, w: Floats) -> float:
        """Return zero: every point that a method visits is feasible."""
        return 0.0

    def prox(self, v: Floats, step: float) -> Floats:
        """Apply hard thresholding H_s(v): the `budget` largest |v_j| stay, kept columns first."""
        w = np.zeros_like(v)
        stay = largest_and_kept(np.abs(v), self.budget, self.keep)
        w[stay] = v[stay]
        return w


def _descend(
    make: Callable[[Floats, float], ProximalGradient],
    problem: Problem,
    run: Run,
    init: Floats | None,
    rng: np.random.Generator,
    patience: Patience,
    max_iter: int,
) -> Result:
    """Run ``make(w, L)`` from the paper's starting point; the six methods differ only in that."""
    # the start is drawn before the power iteration: with one seed, methods of one form start alike
    w = starting_point(problem, init, rng)
    return iterate(make(w, lipschitz_estimate(problem, rng)), run, max_iter, patience)


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
    make = functools.partial(ProximalGradient, problem, Budget(problem))
    return _descend(make, problem, run, init, rng, Patience(tol, window), max_iter)


# -- with a price per nonzero ----------------------------------------------------------------------


class L0Penalty:
    """h(w) = price·‖w‖₀; kept columns are paid for but never thresholded."""

    def __init__(self, problem: Problem) -> None:
        self.price: float = problem.sparsity.price
        self.keep: Ints = problem.keep

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
    make = functools.partial(ProximalGradient, problem, L0Penalty(problem))
    return _descend(make, problem, run, init, rng, Patience(tol, window), max_iter)


# -- with the convex relaxation of the price -------------------------------------------------------


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
    make = functools.partial(ProximalGradient, problem, L1(problem.sparsity.price, problem.keep))
    return _descend(make, problem, run, init, rng, Patience(tol, window), max_iter)


# -- with the ℓp relaxation, p = ½ -----------------------------------------------------------------


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
    make = functools.partial(ProximalGradient, problem, Half(problem.sparsity.price, problem.keep))
    return _descend(make, problem, run, init, rng, Patience(tol, window), max_iter)


# -- accelerated -----------------------------------------------------------------------------------


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
    make = functools.partial(AcceleratedProximalGradient, problem, Budget(problem))
    return _descend(make, problem, run, init, rng, Patience(tol, window), max_iter)


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
    make = functools.partial(AcceleratedProximalGradient, problem, L0Penalty(problem))
    return _descend(make, problem, run, init, rng, Patience(tol, window), max_iter)
