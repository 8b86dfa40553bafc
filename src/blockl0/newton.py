"""Newton's method on a fixed support: the true minimizer of a smooth loss there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.problem import Problem

Floats = NDArray[np.float64]
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


def newton_on(problem: Problem, w: Floats, support: NDArray[np.int64]) -> Floats:
    """The minimizer of the smooth part with the given support, from w."""
    return minimize_on(problem, w, support)[0]


def minimize_on(
    problem: Problem, w: Floats, support: NDArray[np.int64], target: float = np.inf
) -> tuple[Floats, float]:
    """Minimize the smooth part over w with the given support, from w; damped by halving.

    Returns the point and the smooth part there. Once twice what a step promises does not reach
    `target`, the point is given up as it is.

    Where no part of a Newton step helps, as on the flat parts of a loss, a step on the global
    majorizer does.

    O(m|S|² + |S|³) a step. Never ends above its start on that support. On separable data the
    minimizer is at infinity; the steps are bounded in number.
    """
    point = np.zeros_like(w)
    if support.size == 0:
        return point, problem.smooth(point)
    X_S, n_free = problem.design.columns(support), 0
    v = w[support]
    if problem.has_intercept:
        # a coordinate of its own, without ridge; the objective finds it again by itself
        X_S, n_free = np.column_stack([np.ones(problem.n_samples), X_S]), 1
        v = np.concatenate([[problem.best_intercept(X_S[:, 1:] @ v)], v])
    sample_weight = 1.0 if problem.sample_weight is None else problem.sample_weight
    # unit columns: damping and rank decisions must not depend on the user's units
    scale = np.sqrt(np.einsum("i,ij,ij->j", sample_weight * np.ones(len(X_S)), X_S, X_S))
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
        flattest = max(float(H.diagonal().max()), least)
        H.flat[:: v.size + 1] += DAMPING * flattest
        factor, info = _lapack.dpotrf(H)
        if info == 0:
            return -_lapack.dpotrs(factor, slope)[0]
        return np.asarray(-np.linalg.lstsq(H, slope, rcond=None)[0])

    def shorten(step: Floats) -> tuple[Floats, float]:
        for length in LENGTHS:
            if (there := value(v + length * step)) < here:
                return v + length * step, there
        return v, here

    bound = problem.loss.curvature_bound
    majorizer = sample_weight * bound * np.ones(problem.n_samples)
    # of the largest curvature a column can have: a flat loss must not make a step infinite
    least = float(majorizer.max()) if np.isfinite(bound) else 1e-300
    here, at_zero = value(v), value(0.0 * v)
    for _ in range(MAX_STEPS):
        eta = X_S @ v
        slope = X_S.T @ (sample_weight * problem.loss.gradient(eta, problem.y)) + ridge * v
        step = newton_step(slope, sample_weight * problem.loss.curvature(eta, problem.y))
        size = max(here, 0.01 * at_zero)
        if -float(slope @ step) <= TOLERANCE * size:
            # known already, it doubles the digits of v, where those of the value are exhausted
            v = v + step if value(v + step) <= here + ROUNDING * size else v
            break
        if here + float(slope @ step) > target:
            break
        before = here
        v, here = shorten(step)
        if not here < before and np.isfinite(bound):
            v, here = shorten(newton_step(slope, majorizer))
        if not here < before:
            break
    point[support] = (v / scale)[n_free:]
    return point, here
