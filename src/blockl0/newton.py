"""Newton's method on a fixed support: the true minimizer of a smooth loss there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.problem import Problem

Floats = NDArray[np.float64]

MAX_STEPS = 50
TOLERANCE = 1e-12
"""Stop when a step promises less than this share of the objective."""
DAMPING = 1e-10
"""Share of the largest diagonal added to the Hessian: dependent columns, flat losses."""


def newton_on(problem: Problem, w: Floats, support: NDArray[np.int64]) -> Floats:
    """Minimize the smooth part over w with the given support, from w; damped by halving.

    O(m|S|² + |S|³) a step. Never ends above its start on that support. On separable data the
    minimizer is at infinity; the steps are bounded in number.
    """
    point = np.zeros_like(w)
    if support.size == 0:
        return point
    X_S = problem.design.columns(support)
    sample_weight = 1.0 if problem.sample_weight is None else problem.sample_weight
    v = w[support].copy()

    def value(v: Floats) -> float:
        loss = sample_weight * problem.loss.value(X_S @ v, problem.y)
        return float(loss.sum() + 0.5 * problem.ridge * (v @ v))

    here = value(v)
    for _ in range(MAX_STEPS):
        eta = X_S @ v
        gradient = X_S.T @ (sample_weight * problem.loss.gradient(eta, problem.y))
        gradient += problem.ridge * v
        weights = sample_weight * problem.loss.curvature(eta, problem.y)
        H = (X_S * weights[:, None]).T @ X_S
        H.flat[:: v.size + 1] += problem.ridge
        H.flat[:: v.size + 1] += DAMPING * max(float(H.diagonal().max()), 1e-300)
        step = -np.linalg.lstsq(H, gradient, rcond=None)[0]
        promise = -float(gradient @ step)
        if promise <= TOLERANCE * abs(here):
            break
        length = 1.0
        while length > 1e-8 and not (there := value(v + length * step)) < here:
            length *= 0.5
        if length <= 1e-8:
            break
        v, here = v + length * step, there
    point[support] = v
    return point
