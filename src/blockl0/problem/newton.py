"""Newton's method on a fixed support: the true minimizer of a smooth loss there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.losses import Loss, majorizer_curvature
from blockl0.problem.descent import (
    FAR,
    MAX_STEPS,
    Descent,
    Local,
    Part,
    descend,
    newton_direction,
    start_of,
    weighted_total,
)
from blockl0.problem.lazy import lazy
from blockl0.problem.problem import Problem
from blockl0.problem.softmax_newton import SoftmaxPart, begin_mixed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_STEPS = 30
"""Steps after which a fit that goes on is made a path of fits, each the start of the next one."""
EXTRA_RIDGES = 10.0 ** -np.arange(1.0, 15.0)
"""The ridges added along that path, of unit columns: where few samples bend a loss with kinks, as
of separable classes with next to no ridge, those that do hardly change from each to the next."""
HALVES = np.array([[0.5], [-0.5]])
"""The predictors of two classes, whose difference is that of the logistic loss."""
STEADY = 1e-3
"""Share of the largest curvature that a last step may change: beyond it there was a kink."""


class Fit(NamedTuple):
    """A point with a given support: its smooth part, its intercept, and how far it might fall.

    `least` is `value` at a minimizer, and less where a fit was given up. Of several outputs there
    are as many intercepts.
    """

    w: Floats
    value: float
    intercept: Any
    least: float


def minimize_on(
    problem: Problem,
    w: Floats,
    support: Ints,
    target: float = np.inf,
    intercept: Any = None,
) -> Fit:
    """Minimize the smooth part over w with the given support, from w, by Newton's method.

    It starts from the given intercept, or from the best one. It ends where the squared Newton
    decrement g' inv(H) g, which is twice what is left to gain to second order and does not depend
    on units, is below 1e-12 of the objective or of F(0)/100, and one more step, without a kink of
    the loss on its way, is made; or where no step lowers the objective in floating point. Once
    duality proves that `target` is out of reach, the point is given up as it is.

    O(m|S|² + |S|³) a step, of C classes O(m|S|²C² + |S|³C³). Never ends above its start on that
    support. On separable data without ridge the minimizer is at infinity, and the loss is below
    1e-13 of F(0) where it ends.
    """
    if support.size == 0:
        return fit_nothing(problem)
    A, ridge = problem.free_columns(support)
    start, n_free, many = w[support], int(problem.has_intercept), w.ndim == 2
    if n_free:
        if intercept is None:
            intercept = np.zeros(w.shape[1]) if many else problem.best_intercept(A[:, 1:] @ start)
        start = np.concatenate([np.reshape(intercept, (1, *w.shape[1:])), start])
    kind: Any = SoftmaxPart if many else Restricted
    part = kind(problem.loss, A, problem.y, problem.weights, ridge)
    part.at_zero = problem.loss_at_zero
    found = _descend(part, start_of(part, part.enter(start)), target, n_free)
    coefficients = part.leave(found.v)
    point = np.zeros_like(w)
    point[support] = coefficients[n_free:]
    free = coefficients[0] if n_free else np.zeros(w.shape[1:])
    return Fit(point, found.value, free if many else float(free), found.least)


def _descend(part: Part, start: Any, target: float, n_free: int) -> Descent:
    """The descent from a point; one that takes long on kinks goes along a path of ridges."""
    if not part.has_kinks:
        return descend(part, start, target, MAX_STEPS)
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


class Restricted(Part):
    """A loss of one predictor on some columns, that of the intercept first."""

    has_kinks = True  # of some losses; others hardly ever take that long

    def __init__(self, loss: Loss, A: Floats, y: Floats, weights: Floats, ridge: Floats) -> None:
        self.has_majorizer = bool(np.isfinite(loss.curvature_bound))
        typical = loss.curvature_bound if self.has_majorizer else 1.0
        super().__init__(loss, A, y, weights, ridge, typical)

    def begin(self, local: Any, target: float, max_steps: int) -> Descent | None:
        """The steps of the logistic loss by compiled code, as the softmax loss of two classes."""
        if not self.loss.is_softmax_of_two:
            return None
        is_second = (self.y < 0.0).astype(np.int64)
        return begin_mixed(self, HALVES, is_second, self.ridge, local, target, max_steps)

    def at(self, v: Floats, eta: Floats | None = None) -> Bent:
        """The point with its value, slope and curvatures."""
        return Bent(self, v, eta)


class Bent(Local):
    """A point of a loss of one predictor, with a curvature for each sample."""

    def __init__(self, part: Restricted, v: Floats, eta: Floats | None = None) -> None:
        super().__init__(part, v, eta)
        values, self.dual, self.curvature = part.loss.terms(self.eta, part.y)
        self.losses = float(part.weights @ values)

    @lazy
    def slope(self) -> Floats:
        """The gradient in v."""
        part = self.part
        return part.A.T @ (part.weights * self.dual) + part.ridge * self.v

    def along(self, change: Floats) -> tuple[float, float]:
        """Slope and curvature of the loss along a change of the predictors."""
        weighted = self.part.weights * change
        return float(weighted @ self.dual), float((weighted * change) @ self.curvature)

    def newton_step(self, mix: float = 0.0) -> Floats:
        """The step to the minimum of the second-order model.

        Where few samples bend it is too long: then some of the curvature of quadratics that touch
        here and lie above is mixed in.
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
            rows = part.A * np.sqrt(bends)[:, None]
            return np.vstack([rows, np.diag(np.sqrt(part.ridge))])

        return newton_direction(H, self.slope, terms, np.ones(self.v.size), rooted)

    def is_steady(self, other: Bent) -> bool:
        """Whether the curvatures at another point are these: there was no kink on the way."""
        largest = max(self.part.typical, float(self.curvature.max()))
        return bool(np.abs(other.curvature - self.curvature).max() <= STEADY * largest)

    def bound(self, step: Floats) -> float:
        """A value that the objective has nowhere on these columns, by duality; or −inf.

        u + D·A·step is feasible in the dual, with ridge and without, if H·step = −slope: the dual
        of the second-order model. Where it leaves the domain of the conjugate it says nothing.
        """
        part = self.part
        conjugate = getattr(part.loss, "conjugate", None)
        if conjugate is None:
            return -np.inf
        dual, v = self.dual + self.curvature * part.change(step), self.v + step
        left = part.A.T @ (part.weights * dual) + part.ridge * v
        value = -weighted_total(part.weights, conjugate(dual, part.y)) - 0.5 * (part.ridge * v @ v)
        return float(value - FAR * np.abs(left) @ np.abs(v))


def fit_nothing(problem: Problem) -> Fit:
    """The point without columns: the intercept alone."""
    zero = problem.zero()
    eta = np.zeros((problem.n_samples, *zero.shape[1:]))
    b = problem.best_intercept(eta) if problem.has_intercept else 0.0 * zero[:1].sum(axis=0)
    value = problem.smooth(zero, eta)
    return Fit(zero, value, b if zero.ndim == 2 else float(b), value)
