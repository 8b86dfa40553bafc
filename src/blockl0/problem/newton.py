"""Newton's method on a fixed support, for smooth losses of one or several outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.lazy import lazy
from blockl0.losses import Loss, majorizer_curvature
from blockl0.losses.base import plain_array
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
    TOLERANCE,
    Descent,
    Local,
    SupportLoss,
    descend,
    newton_direction,
    start_of,
    weighted_total,
)
from blockl0.problem.orthogonal import EPSILON, OPERATIONS, ROUNDED

if TYPE_CHECKING:
    from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_STEPS = 30
"""Steps after which an unfinished fit switches to a path of fits, each starting from the last."""
EXTRA_RIDGES = 10.0 ** -np.arange(1.0, 15.0)
"""Ridges added along that path, for unit columns. Where few samples have curvature, as with kinks
or for separable classes almost without ridge, which samples these are hardly changes between
neighbouring ridges.
"""
HALVES = np.array([[0.5], [-0.5]])
"""Contrast of two classes; the difference of their predictors is that of the logistic loss."""
STEADY = 1e-3
"""Share of the largest curvature that may change in a last step; more means a kink."""


class Fit(NamedTuple):
    """A fit on a support: its smooth value, intercept, and a lower bound.

    `least` bounds all points on the support. It is `value` at the minimizer of all columns, and
    lower where the fit was given up, which is no minimum then, or dropped columns that nearly
    depend on others, of which another choice may fit better. It may be too high where columns came
    too close for their products (`is_close`). Several outputs have one intercept each.
    """

    w: Floats
    value: float
    intercept: Any
    least: float
    is_minimum: bool = True
    is_close: bool = False


def minimize_on(
    problem: Problem,
    w: Floats,
    support: Ints,
    target: float = np.inf,
    intercept: Any = None,
) -> Fit:
    """Minimize the smooth part over w with the given support, from w, by Newton's method.

    It starts from the given intercept, or from the best one. It stops when the squared Newton
    decrement g' inv(H) g, which is twice the gain left to second order and independent of units, is
    below 1e-12 of the objective or of F(0)/100, after one more step without a kink of the loss on
    the way; or when no step lowers the objective in floating point. If duality proves that `target`
    is out of reach, the current point is returned.

    O(m|S|² + |S|³) per step, O(m|S|²C² + |S|³C³) for C classes. The result is never above the start
    on that support. On separable data without ridge the minimizer is at infinity, and the loss is
    below 1e-13 of F(0) at the end.
    """
    if support.size == 0:
        return fit_nothing(problem)
    A, ridge = problem.free_columns(support)
    start, n_free, many = w[support], int(problem.has_intercept), w.ndim == 2
    if n_free:
        if intercept is None:
            intercept = np.zeros(w.shape[1]) if many else problem.best_intercept(A[:, 1:] @ start)
        # the intercept is the first coefficient, of a column of ones
        start = np.concatenate([np.reshape(intercept, (1, *w.shape[1:])), start])
    part = _part(problem, A, ridge)
    found = _descend(part, start_of(part, part.enter(start)), target, n_free)
    coefficients = part.leave(found.v)
    point = np.zeros_like(w)
    point[support] = coefficients[n_free:]
    free = coefficients[0] if n_free else np.zeros(w.shape[1:])
    free = free if many else float(free)
    is_minimum = found.least == found.value
    return Fit(point, found.value, free, found.least, is_minimum, found.is_close)


def least_on_span(problem: Problem, support: Ints) -> float:
    """Return a lower bound of the smooth part on all columns of a support, however close.

    A fit on an orthonormal basis of their span, without ridge. The basis is as uncertain as the
    rounding of the columns makes it, which counts to first order. O(m|S|²) and a fit.
    """
    unit, _, scale = problem.unit_columns(support)
    _, values, V = np.linalg.svd(unit, full_matrices=False)
    is_real = values > ROUNDED / np.sqrt(support.size)
    A, _ = problem.free_columns(support)
    n_free = int(problem.has_intercept)
    basis = A[:, n_free:] @ (V[is_real] / scale).T / values[is_real]
    A = np.asfortranarray(np.hstack([A[:, :n_free], basis]))
    part = _part(problem, A, np.zeros(A.shape[1]))
    found = _descend(part, part.at(np.zeros(part.shape)), np.inf, n_free)
    sizes = np.abs(part.leave(found.v))[n_free:].reshape(len(basis.T), -1).sum(axis=1)
    slopes = (np.sqrt(problem.weights) * part.at(found.v).dual.T).T
    doubt = float(np.linalg.norm(slopes) * (sizes @ (OPERATIONS * EPSILON / values[is_real])))
    return found.least - TOLERANCE * abs(found.least) - 2.0 * doubt


def _part(problem: Problem, A: Floats, ridge: Floats) -> Any:
    """Return the smooth part on some columns, the intercept first."""
    kind: Any = SoftmaxPart if problem.n_outputs > 1 else Restricted
    part = kind(problem.loss, A, problem.y, problem.weights, ridge)
    # known already, and the same on every support
    part.at_zero = problem.loss_at_zero
    return part


def _descend(part: SupportLoss, start: Any, target: float, n_free: int) -> Descent:
    """Descend from a point; if kinks make that slow, follow a path of decreasing ridges."""
    if not part.has_kinks:
        return descend(part, start, target, MAX_STEPS)
    # most fits end within these steps, so that the path of ridges is for the few that do not
    found = descend(part, start, target, FIRST_STEPS)
    if found.is_done:
        return found
    v = start.v
    for extra in EXTRA_RIDGES:
        softer = part.with_ridge(extra, n_free)
        v = descend(softer, softer.at(v), np.inf, FIRST_STEPS).v
    again = descend(part, part.at(v), target, MAX_STEPS)
    if again.value <= found.value:
        return again
    return descend(part, part.at(found.v), target, MAX_STEPS)


class Restricted(SupportLoss):
    """A loss of one predictor on some columns, the intercept first."""

    has_kinks = True  # true of some losses; the others hardly ever take that long

    def __init__(self, loss: Loss, A: Floats, y: Floats, weights: Floats, ridge: Floats) -> None:
        self.has_majorizer: bool = bool(np.isfinite(loss.curvature_bound))
        typical = loss.curvature_bound if self.has_majorizer else 1.0
        super().__init__(loss, A, y, weights, ridge, typical)

    def begin(self, local: Any, target: float, max_steps: int) -> Descent | None:
        """Take the first steps of the logistic loss in compiled code, as softmax of two classes."""
        # compiled steps exist for that loss alone; two classes have ±eta/2 as their predictors
        if not self.loss.is_softmax_of_two:
            return None
        is_second = (self.y < 0.0).astype(np.int64)
        return begin_mixed(self, HALVES, is_second, self.ridge, local, target, max_steps)

    def at(self, v: Floats, eta: Floats | None = None) -> Bent:
        """Evaluate value, slope and curvatures at v."""
        return Bent(self, v, eta)


class Bent(Local):
    """A point of a loss of one predictor, with a curvature for each sample."""

    dual: Floats
    curvature: Floats

    def __init__(self, part: Restricted, v: Floats, eta: Floats | None = None) -> None:
        super().__init__(part, v, eta)
        values, self.dual, self.curvature = part.loss.terms(self.eta, part.y)
        self.losses: float = float(part.weights @ values)

    @lazy
    def slope(self) -> Floats:
        """Gradient in v."""
        part = self.part
        return part.A.T @ (part.weights * self.dual) + part.ridge * self.v

    def along(self, change: Floats) -> tuple[float, float]:
        """Return slope and curvature of the loss along a change of the predictors."""
        weighted = self.part.weights * change
        return float(weighted @ self.dual), float((weighted * change) @ self.curvature)

    def newton_step(self, mix: float = 0.0) -> Floats:
        """Return the step to the minimum of the second-order model.

        The step is too long where few samples have curvature; `mix` then adds a share of the
        curvature of a quadratic majorizer.
        """
        part, curvature = self.part, self.curvature
        if mix > 0.0:
            curvature = curvature + mix * majorizer_curvature(part.loss, self.eta, part.y)
        bends = part.weights * curvature
        H = (part.A * bends[:, None]).T @ part.A
        H.flat[:: self.v.size + 1] += part.ridge

        def terms() -> Floats:
            sizes = np.abs(part.A).T @ np.abs(part.weights * self.dual)
            return sizes + np.abs(part.ridge * self.v)

        def rooted() -> Floats:
            self.is_close = True
            rows = part.A * np.sqrt(bends)[:, None]
            return np.vstack([rows, np.diag(np.sqrt(part.ridge))])

        return newton_direction(H, self.slope, terms, np.ones(self.v.size), rooted)

    def is_steady(self, other: Bent) -> bool:
        """Return whether curvatures hardly differ at another point: no kink lies between."""
        largest = max(self.part.typical, float(self.curvature.max()))
        return bool(np.abs(other.curvature - self.curvature).max() <= STEADY * largest)

    def bound(self, step: Floats) -> float:
        """Return a lower bound of the objective on these columns by duality, or −inf.

        u + D·A·step is dual feasible, with ridge and without, if H·step = −slope: it solves the
        dual of the second-order model. Outside the domain of the conjugate the bound is void.
        """
        part = self.part
        # a loss of the user may have none: then no bound is known, and the fit goes on
        conjugate = getattr(part.loss, "conjugate", None)
        if conjugate is None:
            return -np.inf
        dual, v = self.dual + self.curvature * part.change(step), self.v + step
        # what is left of the slope is rounding, or a dual point that is not feasible without ridge
        left = part.A.T @ (part.weights * dual) + part.ridge * v
        value = -weighted_total(part.weights, conjugate(dual, part.y)) - 0.5 * (part.ridge * v @ v)
        return float(value - FAR * np.abs(left) @ np.abs(v))


def fit_nothing(problem: Problem) -> Fit:
    """Return the point without columns: only the intercept is fitted."""
    zero = problem.zero()
    eta = np.zeros((problem.n_samples, *zero.shape[1:]))
    b = problem.best_intercept(eta) if problem.has_intercept else 0.0 * zero[:1].sum(axis=0)
    value = problem.smooth(zero, eta)
    return Fit(zero, value, b if zero.ndim == 2 else float(b), value)


# -- the softmax loss, in contrasts of the classes -------------------------------------------------

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
