"""Newton's method on a fixed support: the true minimizer of a smooth loss there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.losses import majorizer_curvature
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

MAX_STEPS = 50
TOLERANCE = 1e-12
"""Stop when a step promises less than this share of the objective, or of a hundredth of F(0)."""
ROUNDING = 1e-14
"""Share of the objective that a last step may seem to raise it by."""
DAMPING = 1e-10
"""Share of the largest diagonal added to the Hessian: dependent columns, flat losses."""
LENGTHS = 0.5 ** np.arange(27)
"""Shares of a step that are tried, the longest first."""


DOUBT = 2.0
"""What a step promises to first order, times this: a fit is given up that needs more than that."""
HARDLY = 0.05
"""Share of what a step promises to first order below which another kind of step is tried, too."""
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
    """Minimize the smooth part over w with the given support, from w; damped by halving.

    It starts from the given intercept, or from the best one. Once several times what a step
    promises does not reach `target`, the point is given up as it is.

    Where hardly a part of a Newton step helps, as on the flat parts of a loss, a step on the
    majorizer that touches there does.

    O(m|S|² + |S|³) a step. Never ends above its start on that support. On separable data the
    minimizer is at infinity; the steps are bounded in number.
    """
    if support.size == 0:
        return _fit_nothing(problem)
    X_S, n_free = problem.design.columns(support), 0
    v = w[support]
    if problem.has_intercept:
        # a coordinate of its own, without ridge; the objective finds it again by itself
        X_S, n_free = np.column_stack([np.ones(problem.n_samples), X_S]), 1
        b = problem.best_intercept(X_S[:, 1:] @ v) if intercept is None else intercept
        v = np.concatenate([[b], v])
    sample_weight = 1.0 if problem.sample_weight is None else problem.sample_weight
    # unit columns: damping and rank decisions must not depend on the user's units
    scale = np.sqrt((sample_weight * np.ones(problem.n_samples)) @ X_S**2)
    scale[scale == 0.0] = 1.0
    X_S = X_S / scale
    ridge = problem.ridge / scale**2
    ridge[:n_free] = 0.0
    v = v * scale

    def value(v: Floats) -> float:
        loss = sample_weight * problem.loss.value(X_S @ v, problem.y)
        return float(loss.sum() + 0.5 * (ridge * v @ v))

    def newton_step(slope: Floats, weights: Floats) -> Floats:
        H = (X_S * weights[:, None]).T @ X_S
        H.flat[:: v.size + 1] += ridge
        H.flat[:: v.size + 1] += DAMPING * max(float(H.diagonal().max()), flattest)
        factor, info = _lapack.dpotrf(H)
        if info == 0:
            return -_lapack.dpotrs(factor, slope)[0]
        return np.asarray(-np.linalg.lstsq(H, slope, rcond=None)[0], dtype=np.float64)

    def shorten(step: Floats) -> tuple[Floats, float]:
        for length in LENGTHS:
            if (there := value(v + length * step)) < here:
                return v + length * step, there
        return v, here

    bound = problem.loss.curvature_bound
    # of the largest curvature a column can have: a flat loss must not make a step infinite
    flattest = float(np.max(sample_weight)) * bound if np.isfinite(bound) else 1e-300
    here, at_zero, least = value(v), value(0.0 * v), np.inf
    if not here <= at_zero:
        v, here = 0.0 * v, at_zero  # a start so bad that there might be no way back
    for _ in range(MAX_STEPS):
        eta = X_S @ v
        slope = X_S.T @ (sample_weight * problem.loss.gradient(eta, problem.y)) + ridge * v
        step = newton_step(slope, sample_weight * problem.loss.curvature(eta, problem.y))
        size, promised = max(here, 0.01 * at_zero), -float(slope @ step)
        if promised <= TOLERANCE * size:
            # known already, it doubles the digits of v, where those of the value are exhausted
            v = v + step if value(v + step) <= here + ROUNDING * size else v
            break
        if here - DOUBT * promised > target:
            least = here - DOUBT * promised
            break
        there, lower = shorten(step)
        if here - lower <= HARDLY * promised and np.isfinite(bound):
            bends = majorizer_curvature(problem.loss, eta, problem.y)
            other = shorten(newton_step(slope, sample_weight * bends))
            there, lower = other if other[1] < lower else (there, lower)
        if not lower < here:
            break
        v, here = there, lower
    v = v / scale
    point = np.zeros_like(w)
    point[support] = v[n_free:]
    return Fit(point, here, float(v[0]) if n_free else 0.0, min(here, least))


def _fit_nothing(problem: Problem) -> Fit:
    """The point without columns: the intercept alone."""
    eta, zero = np.zeros(problem.n_samples), np.zeros(problem.n_features)
    value = problem.smooth(zero, eta)
    return Fit(zero, value, problem.best_intercept(eta) if problem.has_intercept else 0.0, value)
