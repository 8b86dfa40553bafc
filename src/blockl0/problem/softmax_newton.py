"""Newton's method for the softmax loss on given columns, in contrasts of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.lazy import lazy
from blockl0.losses.base import Loss, plain_array
from blockl0.losses.softmax import (
    class_pairs,
    contrasts,
    slope_and_bend,
    softmax_hessian,
    softmax_terms,
)
from blockl0.problem.descent import (
    FAR,
    MAX_STEPS,
    Descent,
    Local,
    SupportLoss,
    descend,
    newton_direction,
    start_of,
    weighted_total,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LITTLE = 1e7
"""Multiplications per step up to which compiled loops are faster than array operations."""
SHARPER = 8.0
"""Factor between successive softness levels when intercepts are fitted."""
DIRECT_STEPS, NEGLIGIBLE = 12, 1e-9
"""Steps tried for intercepts without smoothing, and the bound on their remaining share of the loss;
the actual share is about its square, as the last Newton steps converge quadratically.
"""


class SoftmaxPart(SupportLoss):
    """The softmax loss on some columns, the intercept first; points are (a, C − 1)."""

    ridge: Floats
    offset: Floats | float

    def __init__(
        self, loss: Loss, A: Floats, y: Ints, weights: Floats, ridge: Floats,
        offset: Floats | float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(loss, A, y, weights, ridge)
        self.ridge, self.offset = self.ridge[:, None], offset
        self.Q = contrasts(loss.n_outputs)

    @lazy
    def at_zero(self) -> float:
        """Objective at v = 0, which no ridge changes."""
        if np.ndim(self.offset) == 0:
            return float(self.weights.sum() * np.log(self.loss.n_outputs))
        return float(self.weights @ self.loss.value(self.offset, self.y))

    def enter(self, coefficients: Floats) -> Floats:
        """Convert coefficients (a, C) of the columns into a point."""
        return (coefficients @ self.Q) * self.scale[:, None]

    def leave(self, v: Floats) -> Floats:
        """Convert a point into coefficients (a, C); their rows sum to zero."""
        return (v / self.scale[:, None]) @ self.Q.T

    def change(self, v: Floats) -> Floats:
        """Compute A v Q', (m, C), each class contiguous, so that sums over few classes are fast."""
        return (self.Q @ (self.A @ v).T).T

    def predictor(self, v: Floats) -> Floats:
        """Compute the predictors at v."""
        return self.offset + self.change(v)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a point."""
        return (self.A.shape[1], self.Q.shape[1])

    def at(self, v: Floats, eta: Floats | None = None) -> Mixed:
        """Evaluate value, slope and curvatures at v."""
        return Mixed(self, v, eta)

    def begin(self, local: Mixed, target: float, max_steps: int) -> Descent | None:
        """Take the first steps in compiled code if each of them is small."""
        if np.ndim(self.offset) and target < np.inf:
            return None
        return begin_mixed(self, self.Q, self.y, self.ridge[:, 0], local, target, max_steps)


def begin_mixed(
    part: SupportLoss, Q: Floats, y: Any, ridge: Floats, local: Local, target: float, max_steps: int
) -> Descent | None:
    """Take steps of the softmax loss in compiled code; return None if they are large.

    Parameters
    ----------
    part : SupportLoss
        With columns A, (m, a).
    Q : ndarray (C, q)
        Maps contrasts to predictors of the classes, as those of `local` are if it has one per
        sample.
    y : ndarray of int (m,)
        The class of each sample.
    ridge : ndarray (a,)
    local : Local
        The starting point.
    target : float
        The descent is given up once it cannot reach this value.
    max_steps : int
    """
    (m, a), (n_classes, q) = part.A.shape, Q.shape
    if m * (a * n_classes) ** 2 > LITTLE:
        return None
    from blockl0 import kernels  # imported here, as only a search needs the compiler

    mixture = kernels.Mixture(
        np.ascontiguousarray(part.A.T), plain_array(y, np.int64), plain_array(part.weights),
        np.ascontiguousarray(ridge), Q,
        np.empty((2, 3, n_classes, m)), np.empty((n_classes, m)), np.empty((2, m)),
        np.empty((a * q, a * q)), np.empty((5, a * q)),
    )  # fmt: skip
    mixture.states[kernels.HERE, kernels.ETA] = (
        local.eta.T if local.eta.ndim == 2 else Q * local.eta
    )
    mixture.points[kernels.HERE] = local.v.ravel()
    why, value, least = kernels.mix(mixture, part.at_zero, target, max_steps)
    v = mixture.points[kernels.HERE].reshape(local.v.shape)
    return Descent(v, value, least, why != kernels.HANDED_OVER)


class Mixed(Local):
    """A point of the softmax loss, with the class probabilities of each sample."""

    dual: Floats

    def __init__(self, part: SoftmaxPart, v: Floats, eta: Floats | None = None) -> None:
        super().__init__(part, v, eta)
        self.P, self.dual, values = softmax_terms(self.eta, part.y)
        self.losses: float = float(part.weights @ values)

    @lazy
    def slope(self) -> Floats:
        """Gradient in v."""
        part = self.part
        return (part.A.T @ (part.weights * self.dual.T).T) @ part.Q + part.ridge * self.v

    def along(self, change: Floats) -> tuple[float, float]:
        """Return slope and curvature of the loss along a change of the predictors."""
        return slope_and_bend(self.P, self.dual, self.part.weights, change)

    def newton_step(self, mix: float = 0.0) -> Floats:
        """Return the step to the minimum of the second-order model, (a, C − 1)."""
        part, A, ridge = self.part, self.part.A, self.part.ridge
        H = softmax_hessian(A, self.P, part.weights, ridge[:, 0])

        def terms() -> Floats:
            sizes = np.abs(A).T @ np.abs(part.weights[:, None] * self.dual) @ np.abs(part.Q)
            return (sizes + np.abs(ridge * self.v)).ravel()

        def rooted() -> Floats:
            self.is_close = True
            rows = [
                np.einsum("ij,k->ijk", A * np.sqrt(part.weights * bends)[:, None], contrast)
                for bends, contrast in class_pairs(self.P)
            ]
            diagonal = np.diag(np.sqrt(np.repeat(ridge[:, 0], self.v.shape[1])))
            return np.vstack([*(block.reshape(len(A), -1) for block in rows), diagonal])

        step = newton_direction(H, self.slope.ravel(), terms, np.ones(len(H)), rooted)
        return step.reshape(self.v.shape)

    def bound(self, step: Floats) -> float:
        """Return a lower bound of the objective on these columns by duality, or −inf.

        Adding (diag(p) − pp') of the change to the slope gives a dual feasible point.
        """
        part, P, v = self.part, self.P, self.v + step
        change = part.change(step)
        dual = self.dual + P * (change - np.sum(P * change, axis=1, keepdims=True))
        own = np.sum(dual * part.offset, axis=1) - part.loss.conjugate(dual, part.y)
        left = part.A.T @ (part.weights[:, None] * dual) @ part.Q + part.ridge * v
        value = weighted_total(part.weights, own) - 0.5 * np.vdot(part.ridge * v, v)
        return float(value - FAR * np.vdot(np.abs(left), np.abs(v)))


def best_intercepts(loss: Loss, eta: Floats, y: Ints, weights: Floats) -> Floats:
    """Compute argmin_b of the softmax loss at eta + 1b', (C,), summing to zero.

    For eta = 0 the class shares give it. With large predictors the loss is a sum of maxima, and
    Newton's method sees one face of it at a time: unless a few steps suffice, the loss is smoothed
    by dividing all predictors, first by much, then by less and less.
    """
    if not eta.any():
        shares = np.bincount(y, weights, eta.shape[1])
        if shares.min() > 0.0:
            logs = np.log(shares)
            return logs - logs.mean()
    b, ones = np.zeros((1, eta.shape[1])), np.ones((len(eta), 1))
    softness = max(float(np.ptp(eta, axis=1).max(initial=0.0)), 1.0)
    part = SoftmaxPart(loss, ones, y, weights, np.zeros(1), np.asfortranarray(eta))
    there = part.at(descend(part, part.at(np.zeros(part.shape)), np.inf, DIRECT_STEPS).v)
    # a convex function falls by at most its slope times the distance to its minimum
    if np.linalg.norm(there.slope) * softness * float(part.scale[0]) <= NEGLIGIBLE * there.value:
        return part.leave(there.v)[0]
    while True:
        offset = np.asfortranarray(eta / softness)
        part = SoftmaxPart(loss, ones, y, weights, np.zeros(1), offset)
        v = start_of(part, part.enter(b / softness))
        b = softness * part.leave(descend(part, v, np.inf, MAX_STEPS).v)
        if softness == 1.0:
            return b[0]
        softness = max(softness / SHARPER, 1.0)
