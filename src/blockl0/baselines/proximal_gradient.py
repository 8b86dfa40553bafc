"""The proximal gradient step and its accelerated form, for every loss of bounded curvature.

Minimized is F(w) = f(w) + h(w) with f the smooth part of the problem and h given by its value and
its proximal operator. An iteration costs two passes over X and one proximal operator.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import Problem

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

    def __init__(self, problem: Problem, penalty: Penalty, w: Floats, lipschitz: float) -> None:
        self.problem = problem
        self.penalty = penalty
        self.lipschitz = lipschitz
        self.weights = problem.hessian_bound_weights()
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
            self.lipschitz = GROWTH * curvature

    def _square(self, eta: Floats) -> float:
        """Return ‖eta‖²_D."""
        return float(eta @ eta if self.weights is None else self.weights @ eta**2)

    def _move(self, w: Floats, eta: Floats) -> None:
        self.w, self.eta = w, eta
        self.smooth = self.problem.smooth(w, eta)
        self.n_nonzero = int(np.count_nonzero(w))


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
