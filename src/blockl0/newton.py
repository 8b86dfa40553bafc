"""Newton's method on a fixed support: the true minimizer of a smooth loss there."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.descent import (
    FAR,
    MAX_STEPS,
    ROUNDING,
    TOLERANCE,
    newton_direction,
    search_length,
    weighted_total,
)
from blockl0.losses import majorizer_curvature
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_STEPS = 30
"""Steps after which a fit that goes on is made a path of fits, each the start of the next one."""
EXTRA_RIDGES = 10.0 ** -np.arange(1.0, 15.0)
"""The ridges added along that path, of unit columns: where few samples bend a loss with kinks, as
of separable classes with next to no ridge, those that do hardly change from each to the next."""
HARDLY = 0.05
"""Share of what a step promises to first order below which another kind of step is tried, too."""
GOOD, LEAST_MIX = 0.25, 1e-8
"""Share of the first order that lets the next such step be bolder, and how bold it may become."""
STEADY = 1e-3
"""Share of the largest curvature that a last step may change: beyond it there was a kink."""
MOST_KNOWN = 5000
"""Supports whose minimizers are remembered before all of them are forgotten."""


class Fit(NamedTuple):
    """A point with a given support: its smooth part, its intercept, and how far it might fall.

    `least` is `value` at a minimizer, and less where a fit was given up.
    """

    w: Floats
    value: float
    intercept: float
    least: float


class Fits:
    """The minimizers on supports, each found once: they depend on neither price nor budget."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[bytes, Fit] = {}
        self._smooth: dict[bytes, float] = {}

    def on(
        self, w: Floats, support: Ints, target: float = np.inf, intercept: float | None = None
    ) -> Fit:
        """`minimize_on`, unless it is known that it ends there, or does not reach the target."""
        key = support.tobytes()
        known = self._known.get(key)
        if known is not None:
            whole = known._replace(w=np.zeros(self.problem.n_features))
            whole.w[support] = known.w
            if known.least == known.value or known.least > target:
                return whole
            w, intercept = whole.w, known.intercept
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
            self._smooth.clear()
        fit = minimize_on(self.problem, w, support, target, intercept)
        self._known[key] = fit._replace(w=fit.w[support])
        return fit

    def minimum(self, w: Floats, support: Ints) -> Fit:
        """`on`, with a value that is that of `Problem.smooth` to the last digit."""
        fit, key = self.on(w, support), support.tobytes()
        if key not in self._smooth:
            self._smooth[key] = self.problem.smooth(fit.w)
        return fit._replace(value=self._smooth[key])

    def predictor(self, w: Floats) -> tuple[Floats, float]:
        """eta = Xw + b with the best intercept b, and b."""
        problem, support = self.problem, np.flatnonzero(w)
        eta = problem.design.column_matvec(support, w[support])
        if not problem.has_intercept:
            return eta, 0.0
        known = self._known.get(support.tobytes())
        if known is not None and known.least == known.value and np.all(known.w == w[support]):
            return eta + known.intercept, known.intercept
        b = problem.best_intercept(eta)
        return eta + b, b


def newton_on(problem: Problem, w: Floats, support: Ints) -> Floats:
    """The minimizer of the smooth part with the given support, from w."""
    return minimize_on(problem, w, support).w


def minimize_on(
    problem: Problem,
    w: Floats,
    support: Ints,
    target: float = np.inf,
    intercept: float | None = None,
) -> Fit:
    """Minimize the smooth part over w with the given support, from w, by Newton's method.

    It starts from the given intercept, or from the best one. It ends where the squared Newton
    decrement g' inv(H) g, which is twice what is left to gain to second order and does not depend
    on units, is below 1e-12 of the objective or of F(0)/100, and one more step, without a kink of
    the loss on its way, is made; or where no step lowers the objective in floating point. Once
    duality proves that `target` is out of reach, the point is given up as it is.

    O(m|S|² + |S|³) a step. Never ends above its start on that support. On separable data without
    ridge the minimizer is at infinity, and the loss is below 1e-13 of F(0) where it ends.
    """
    if support.size == 0:
        return _fit_nothing(problem)
    part = Restricted(problem, support)
    v = part.start(w[support], intercept)
    if not part.value(v) <= part.value(0.0 * v):
        v = 0.0 * v  # a start so bad that there might be no way back
    found = _descend(part, v, target, FIRST_STEPS)
    if not found.is_done:
        for extra in EXTRA_RIDGES:
            v = _descend(part.with_ridge(extra), v, np.inf, FIRST_STEPS).v
        again = _descend(part, v, target, MAX_STEPS)
        found = again if again.value <= found.value else _descend(part, found.v, target, MAX_STEPS)
    coefficients, b = part.finish(found.v)
    point = np.zeros_like(w)
    point[support] = coefficients
    return Fit(point, found.value, b, min(found.value, found.least))


class Descent(NamedTuple):
    """Where a descent ended; `least` as in `Fit`, and whether there is nothing left to do."""

    v: Floats
    value: float
    least: float
    is_done: bool


def _descend(part: Restricted, v: Floats, target: float, max_steps: int) -> Descent:
    """Newton steps from v, as long as they help."""
    here, at_zero, mix = part.value(v), part.value(0.0 * v), 1.0
    for _ in range(max_steps):
        local = part.at(v)
        step = local.newton_step()
        size, promised = max(here, 0.01 * at_zero), -float(local.slope @ step)
        if promised <= TOLERANCE * size:
            # known already, it doubles the digits of v, where those of the value are exhausted
            last = part.value(v + step)
            if not last <= here + ROUNDING * size:
                return Descent(v, here, here, True)
            is_steady = local.is_steady(step)
            v, here = v + step, min(here, last)
            if is_steady:
                return Descent(v, here, here, True)
            continue
        if np.isfinite(target) and (bound := local.bound(step)) > target:
            return Descent(v, here, bound, True)
        there, lower = local.move(step, here)
        if here - lower <= HARDLY * promised and np.isfinite(part.loss.curvature_bound):
            step = local.newton_step(mix)
            other = local.move(step, here)
            is_good = here - other[1] >= GOOD * -float(local.slope @ step)
            mix = max(mix / 8.0, LEAST_MIX) if is_good else min(4.0 * mix, 1.0)
            there, lower = other if other[1] < lower else (there, lower)
        if not lower < here:
            return Descent(v, here, here, True)
        v, here = there, lower
    return Descent(v, here, here, False)


class Restricted:
    """The smooth part on some columns, each in units of its largest curvature.

    The intercept, where there is one, is the first coordinate, without ridge.
    """

    def __init__(self, problem: Problem, support: Ints) -> None:
        A, self.n_free = problem.design.columns(support), int(problem.has_intercept)
        if self.n_free:
            A = np.column_stack([np.ones(problem.n_samples), A])
        self.problem, self.loss, self.y = problem, problem.loss, problem.y
        ones = np.ones(problem.n_samples)
        self.weights = ones if problem.sample_weight is None else problem.sample_weight
        ridge = np.full(A.shape[1], problem.ridge)
        ridge[: self.n_free] = 0.0
        bound = self.loss.curvature_bound
        self.typical = bound if np.isfinite(bound) else 1.0
        self.scale = np.sqrt(self.typical * (self.weights @ A**2) + ridge)
        self.scale[self.scale == 0.0] = 1.0
        self.A, self.ridge = A / self.scale, ridge / self.scale**2

    def with_ridge(self, extra: float) -> Restricted:
        """The same with more ridge, in units of the columns' curvature; not on the intercept."""
        other = copy(self)
        other.ridge = self.ridge + extra
        other.ridge[: self.n_free] = 0.0
        return other

    def start(self, coefficients: Floats, intercept: float | None) -> Floats:
        """A point in units of its own, from coefficients and an intercept, or the best one."""
        if not self.n_free:
            return coefficients * self.scale
        if intercept is None:
            eta = self.A[:, 1:] @ (coefficients * self.scale[1:])
            intercept = self.problem.best_intercept(eta)
        return np.concatenate([[intercept], coefficients]) * self.scale

    def finish(self, v: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept of a point."""
        v = v / self.scale
        return v[self.n_free :], float(v[0]) if self.n_free else 0.0

    def value(self, v: Floats) -> float:
        """The objective."""
        losses = self.weights @ self.loss.value(self.A @ v, self.y)
        return float(losses + 0.5 * (self.ridge * v @ v))

    def at(self, v: Floats) -> Local:
        """The point with its slope and curvatures."""
        return Local(self, v)


class Local:
    """A point, the slope there, and steps from it."""

    def __init__(self, part: Restricted, v: Floats) -> None:
        self.part, self.v = part, v
        self.eta = part.A @ v
        self.dual = part.loss.gradient(self.eta, part.y)
        self.curvature = part.loss.curvature(self.eta, part.y)
        self.slope = part.A.T @ (part.weights * self.dual) + part.ridge * v

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
        terms = np.abs(part.A).T @ np.abs(part.weights * self.dual) + np.abs(part.ridge * self.v)

        def rooted() -> Floats:
            rows = part.A * np.sqrt(bends)[:, None]
            return np.vstack([rows, np.diag(np.sqrt(part.ridge))])

        return newton_direction(H, self.slope, terms, np.ones(self.v.size), rooted)

    def is_steady(self, step: Floats) -> bool:
        """Whether a step leaves the curvatures as they are: there was no kink on its way."""
        part = self.part
        there = part.loss.curvature(part.A @ (self.v + step), part.y)
        largest = max(part.typical, float(self.curvature.max()))
        return bool(np.abs(there - self.curvature).max() <= STEADY * largest)

    def move(self, step: Floats, here: float) -> tuple[Floats, float]:
        """(point, value) after a step of nearly the best length."""
        part, loss, y = self.part, self.part.loss, self.part.y
        change = part.A @ step
        first = float(self.slope @ step)
        if not (first < 0.0 and np.isfinite(step).all()):
            return self.v, here

        def look(length: float) -> tuple[float, float, float]:
            eta, v = self.eta + length * change, self.v + length * step
            value = part.weights @ loss.value(eta, y) + 0.5 * (part.ridge * v @ v)
            slope = (part.weights * loss.gradient(eta, y)) @ change + part.ridge * v @ step
            bend = part.weights @ (loss.curvature(eta, y) * change**2)
            return float(value), float(slope), float(bend + part.ridge * step @ step)

        length, lowest = search_length(look, here, first)
        return self.v + length * step, lowest

    def bound(self, step: Floats) -> float:
        """A value that the objective has nowhere on these columns, by duality; or −inf.

        u + D·A·step is feasible in the dual, with ridge and without, if H·step = −slope: the dual
        of the second-order model. Where it leaves the domain of the conjugate it says nothing.
        """
        part = self.part
        conjugate = getattr(part.loss, "conjugate", None)
        if conjugate is None:
            return -np.inf
        dual, v = self.dual + self.curvature * (part.A @ step), self.v + step
        left = part.A.T @ (part.weights * dual) + part.ridge * v
        value = -weighted_total(part.weights, conjugate(dual, part.y)) - 0.5 * (part.ridge * v @ v)
        return float(value - FAR * np.abs(left) @ np.abs(v))


def _fit_nothing(problem: Problem) -> Fit:
    """The point without columns: the intercept alone."""
    eta, zero = np.zeros(problem.n_samples), np.zeros(problem.n_features)
    value = problem.smooth(zero, eta)
    return Fit(zero, value, problem.best_intercept(eta) if problem.has_intercept else 0.0, value)
