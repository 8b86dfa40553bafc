"""The best coefficients on a support within bounds: an active set on small matrices.

A loss that is no quadratic is minimized by second-order models, each within the bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.losses import majorizer_curvature
from blockl0.problem.descent import DESCENT, HARDLY, MAX_STEPS, ROUNDING, TOLERANCE
from blockl0.problem.newton import Bent, Fit, Restricted, fit_nothing
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLATTEST = 1e-10
"""Of unit columns: the curvature that a model has at least, so that it has a minimum."""
HALVINGS = 40
"""Times that a step is halved before it is given up."""


def bounded_minimum(
    H: Floats, B: Floats, low: Floats, high: Floats, start: Floats | None = None
) -> tuple[Floats, Ints]:
    """argmin_V ½ tr V'HV − tr B'V with low ≤ V ≤ high, for B (k, q) column by column.

    From a start within the bounds, zero by default. O(k³) for every change of the active set. With
    it comes where every coefficient is, `kernels.FREE`, `AT_LOW`, `AT_HIGH`, or `FROZEN` where its
    column depends on others.
    """
    k = len(H)
    diagonal = H.diagonal()
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit = np.ascontiguousarray(H / scale / scale[:, None])
    low, high = low * scale, high * scale
    index, L, goal = np.empty(k, dtype=np.int64), np.empty((k, k)), np.empty(k)
    V = np.zeros_like(B) if start is None else start.copy()
    status = np.empty(B.shape, dtype=np.int64)
    for c in range(B.shape[1]):
        x = np.clip(V[:, c] * scale, low, high)
        where = np.full(k, kernels.FREE, dtype=np.int64)
        where[x <= low], where[x >= high] = kernels.AT_LOW, kernels.AT_HIGH
        kernels.bounded_quadratic(unit, B[:, c] / scale, low, high, x, where, index, L, goal)
        V[:, c], status[:, c] = x / scale, where
    return V, status


def within(w: Floats, status: Ints, low: Floats, high: Floats) -> Floats:
    """Coefficients with those at a bound exactly there, and no others beyond one."""
    w = np.where(status == kernels.AT_LOW, low, np.where(status == kernels.AT_HIGH, high, w))
    return np.clip(w, low, high)


def minimize_within(problem: Problem, w: Floats, support: Ints, intercept: float | None) -> Fit:
    """Minimize the smooth part over w with the given support within the bounds, from w.

    Newton steps whose quadratic models are minimized within the bounds, each as long as it helps;
    it ends as `minimize_on` does. O(m|S|² + |S|³) a step and change of the active set.
    """
    if support.size == 0:
        return fit_nothing(problem)
    assert problem.bounds is not None
    A, n_free = problem.design.columns(support), int(problem.has_intercept)
    low, high = problem.bounds[0][support], problem.bounds[1][support]
    start = np.clip(w[support], low, high)
    if n_free:
        b = problem.best_intercept(A @ start) if intercept is None else intercept
        start = np.concatenate([[b], start])
        A = np.column_stack([np.ones(problem.n_samples), A])
        low, high = np.append(-np.inf, low), np.append(np.inf, high)
    ridge = np.full(A.shape[1], problem.ridge)
    ridge[:n_free] = 0.0
    part = Restricted(problem.loss, A, problem.y, problem.weights, ridge)
    limits = low * part.scale, high * part.scale
    found = _descend(part, part.at(np.clip(part.enter(start), *limits)), limits)
    status = np.full(found.v.size, kernels.FREE)
    status[found.v <= limits[0]], status[found.v >= limits[1]] = kernels.AT_LOW, kernels.AT_HIGH
    coefficients = within(part.leave(found.v), status, low, high)
    point = np.zeros_like(w)
    point[support] = coefficients[n_free:]
    free = float(coefficients[0]) if n_free else 0.0
    return Fit(point, found.value, free, found.value)


def _descend(part: Restricted, local: Bent, limits: tuple[Floats, Floats]) -> Bent:
    """Steps from a point within limits, as long as they help."""
    for _ in range(MAX_STEPS):
        step = _step(local, limits, 0.0)
        size, promised = max(local.value, 0.01 * part.at_zero), -float(local.slope @ step)
        if promised <= TOLERANCE * size:
            last = part.at(np.clip(local.v + step, *limits))
            return last if last.value <= local.value + ROUNDING * size else local
        there = _shortened(part, local, step, limits)
        if local.value - there.value <= HARDLY * promised and part.has_majorizer:
            other = _shortened(part, local, _step(local, limits, 1.0), limits)
            there = other if other.value < there.value else there
        if not there.value < local.value:
            return local
        local = there
    return local


def _step(local: Bent, limits: tuple[Floats, Floats], mix: float) -> Floats:
    """The step to the minimum of the second-order model within limits.

    As in `Bent.newton_step`, some of the curvature of quadratics that lie above may be mixed in.
    """
    part, curvature = local.part, local.curvature
    if mix > 0.0:
        curvature = curvature + mix * majorizer_curvature(part.loss, local.eta, part.y)
    H = (part.A * (part.weights * curvature)[:, None]).T @ part.A
    H.flat[:: local.v.size + 1] += part.ridge + FLATTEST * part.typical
    low, high = limits[0] - local.v, limits[1] - local.v
    return bounded_minimum(H, -local.slope[:, None], low, high)[0][:, 0]


def _shortened(part: Restricted, local: Bent, step: Floats, limits: tuple[Floats, Floats]) -> Bent:
    """The point after a step, or after as much of it as brings a share of what it promises."""
    slope, length = float(local.slope @ step), 1.0
    for _ in range(HALVINGS):
        there = part.at(np.clip(local.v + length * step, *limits))
        if there.value <= local.value + DESCENT * length * slope:
            return there
        length *= 0.5
    return local
