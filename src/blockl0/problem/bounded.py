"""Fits on a support within bounds on the coefficients, by active sets.

As for free fits, Gram matrices propose and orthogonal factorizations of the columns decide. Losses
other than squared are minimized by second-order models, each within the bounds.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.data.panels import orthogonal_factors, products, triangle
from blockl0.losses import majorizer_curvature
from blockl0.problem.descent import (
    DESCENT,
    HARDLY,
    LOST_DIGITS,
    MAX_STEPS,
    NOISE,
    ROUNDING,
    TOLERANCE,
    newton_direction,
)
from blockl0.problem.newton import Bent, Fit, Restricted, fit_nothing
from blockl0.problem.orthogonal import (
    DEPENDENT,
    EPSILON,
    OPERATIONS,
    distances,
    independent_positions,
    project_away,
)
from blockl0.problem.problem import Problem
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

FLATTEST = 1e-10
"""Least curvature of a model of unit columns, so that it has a minimum."""
HALVINGS = 40
"""Number of times a step is halved before it is given up."""


def bounded_minimum(
    H: Floats, B: Floats, low: Floats, high: Floats, start: Floats | None = None
) -> tuple[Floats, Ints]:
    """Solve argmin_V ½ tr V'HV − tr B'V with low ≤ V ≤ high, one column of B (k, q) at a time.

    Starts from `start` within the bounds, zero by default. Each change of the active set costs
    O(k³). Also returns the status of every coefficient: `kernels.FREE`, `AT_LOW`, `AT_HIGH`, or
    `FROZEN` if its column depends on others.
    """
    k = len(H)
    # with a unit diagonal dependence is decided alike whatever the units of the columns
    diagonal = H.diagonal()
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    unit = np.ascontiguousarray(H / scale / scale[:, None])
    low, high = low * scale, high * scale
    # memory of the kernel, allocated once for all responses
    index, L, goal = np.empty(k, dtype=np.int64), np.empty((k, k)), np.empty(k)
    V = np.zeros_like(B) if start is None else start.copy()
    status = np.empty(B.shape, dtype=np.int64)
    for c in range(B.shape[1]):
        look()
        x = np.clip(V[:, c] * scale, low, high)
        where = np.full(k, kernels.FREE, dtype=np.int64)
        where[x <= low], where[x >= high] = kernels.AT_LOW, kernels.AT_HIGH
        kernels.bounded_quadratic(unit, B[:, c] / scale, low, high, x, where, index, L, goal)
        V[:, c], status[:, c] = x / scale, where
    return V, status


class Descending(Protocol):
    """A convex quadratic, minimized over a changing set of free coefficients."""

    def step(self, x: Floats, free: Ints) -> Floats:
        """Return the step from x to the minimum over the free coefficients.

        Directions lost in rounding are left at zero.
        """
        ...

    def pulls(self, x: Floats, free: Ints, held: Ints) -> Floats:
        """Return how strongly each fixed coefficient is pulled upwards at x; 0 for rounding."""
        ...


class BoundedSquares:
    """½‖b − Ax‖² with unit columns A, by orthogonal factorizations of the free ones.

    If free columns depend on each other, some of them stay where they are, as in `least_squares`.
    """

    b: Floats
    roundings: float

    def __init__(self, A: Floats, b: Floats, roundings: float = OPERATIONS) -> None:
        self.A, self.b, self.roundings = A, b, roundings
        self._length = float(np.linalg.norm(b))
        self._key, self._known = b"", (A[:, :0], np.empty((0, 0)), np.empty(0, dtype=np.int64))

    def _factors(self, free: Ints) -> tuple[Floats, Floats, Ints]:
        """Return (Q, R, columns) for the independent ones among some columns."""
        if free.tobytes() != self._key:
            chosen, (Q, R) = free, orthogonal_factors(self.A[:, free])
            # dependent columns have no unique step: the fit stays on an independent set of them
            if len(R) < free.size or distances(R).min(initial=1.0) <= DEPENDENT:
                chosen = free[independent_positions(self.A[:, free])]
                Q, R = orthogonal_factors(self.A[:, chosen])
            self._key, self._known = free.tobytes(), (Q, R, chosen)
        return self._known

    def step(self, x: Floats, free: Ints) -> Floats:
        """Return the least squares step of the free columns."""
        Q, R, chosen = self._factors(free)
        found = np.zeros(x.size)
        if chosen.size:
            found[chosen] = _lapack.dtrtrs(R, Q.T @ (self.b - self.A @ x))[0]
        return found

    def pulls(self, x: Floats, free: Ints, held: Ints) -> Floats:
        """Return the signed square root of what each fixed column would gain by itself.

        Only its component orthogonal to the free columns counts; a dependent column gains nothing.
        """
        Q = self._factors(free)[0]
        r = project_away(Q, self.b - self.A @ x)[0]
        rest = project_away(Q, self.A[:, held])[0]
        lengths = np.linalg.norm(rest, axis=0)
        # the direction of a remainder is known to the precision divided by its length
        # an infinite length makes the pull of a dependent column zero
        lengths = np.where(lengths > DEPENDENT, lengths, np.inf)
        sizes = self._length + float(np.abs(x).sum()) + np.linalg.norm(r) / lengths
        found = (r @ rest) / lengths
        return np.where(np.abs(found) > self.roundings * EPSILON * sizes, found, 0.0)


class SecondOrder:
    """½x'Hx + slope'x with H = B'B, for columns too close for the products in H."""

    first: Floats
    terms: Floats

    def __init__(self, B: Floats, slope: Floats, terms: Floats) -> None:
        self.B, self.H, self.first, self.terms = B, B.T @ B, slope, terms

    def step(self, x: Floats, free: Ints) -> Floats:
        """Return the Newton step of the free coefficients."""
        found = np.zeros(x.size)
        if free.size:
            found[free] = newton_direction(
                self.H[np.ix_(free, free)], self._slope(x)[free], lambda: self.terms[free],
                np.ones(free.size), lambda: self.B[:, free],
            )  # fmt: skip
        return found

    def pulls(self, x: Floats, free: Ints, held: Ints) -> Floats:
        """Return the negative slopes, with zero for rounding."""
        slope = self._slope(x)[held]
        return np.where(np.abs(slope) > NOISE * self.terms[held], -slope, 0.0)

    def _slope(self, x: Floats) -> Floats:
        return self.first + self.B.T @ (self.B @ x)


def descend_within(
    function: Descending, low: Floats, high: Floats, x: Floats, status: Ints
) -> tuple[Floats, Ints]:
    """Minimize a quadratic within bounds from a feasible point; return it and its status.

    Primal active set method: move to the minimum over the free coefficients as far as the bounds
    allow, then release the bound with the strongest pull. The value never rises, up to rounding.
    """
    x, status = x.copy(), np.where(status == kernels.FROZEN, kernels.FREE, status)
    # each round fixes or frees a coefficient; more rounds than that are a cycle of rounding
    for _ in range(20 * x.size + 20):
        look()
        free = np.flatnonzero(status == kernels.FREE)
        goal = x + function.step(x, free)
        is_over = (goal < low) | (goal > high)
        is_over[status != kernels.FREE] = False
        if is_over.any():
            over = np.flatnonzero(is_over)
            side = np.where(goal[over] < low[over], low[over], high[over])
            shares = (side - x[over]) / (goal[over] - x[over])
            # the first bound on the way; all others are still met there
            at = int(np.argmin(shares))
            x[free] = np.clip(x + shares[at] * (goal - x), low, high)[free]
            hit = over[at]
            x[hit] = side[at]
            status[hit] = kernels.AT_LOW if goal[hit] < low[hit] else kernels.AT_HIGH
            continue
        x = goal
        held = np.flatnonzero((status != kernels.FREE) & (low < high))
        pulls = function.pulls(x, free, held)
        pulls = np.where(status[held] == kernels.AT_LOW, pulls, -pulls)
        if not (pulls > 0.0).any():
            break
        # one at a time: after its step the pulls of the others may vanish
        status[held[np.argmax(pulls)]] = kernels.FREE
    return x, status


def bounded_least_squares(A: Floats, B: Floats, low: Floats, high: Floats) -> tuple[Floats, Ints]:
    """Solve argmin ‖B − AV‖ with low ≤ V ≤ high for unit columns A (m, k); also return the status.

    Each column of B (m, q) starts from the solution of the normal equations.
    """
    k = A.shape[1]
    # the triangle has as many rows as columns, so that the rounds below do not cost O(m)
    R = triangle(np.column_stack([A, B]))
    A, B = R[:, :k], R[:, k:]
    V, status = bounded_minimum(products(A), A.T @ B, low, high)
    for c in range(B.shape[1]):
        function = BoundedSquares(A, B[:, c])
        V[:, c], status[:, c] = descend_within(function, low, high, V[:, c], status[:, c])
    return V, status


def no_bound_holds_back(A: Floats, b: Floats, low: Floats, high: Floats, x: Floats) -> bool:
    """Return whether x could end an active set method: no coefficient gains by leaving its bound.

    Allows for more rounding than `bounded_least_squares`, as columns are not reduced here.
    """
    is_free = (low < x) & (x < high)
    held = np.flatnonzero(~is_free & (low < high))
    pulls = BoundedSquares(A, b, 4.0 * OPERATIONS).pulls(x, np.flatnonzero(is_free), held)
    return not (np.where(x[held] <= low[held], pulls, -pulls) > 0.0).any()


def within(w: Floats, status: Ints, low: Floats, high: Floats) -> Floats:
    """Put coefficients at a bound exactly there, and clip the others."""
    w = np.where(status == kernels.AT_LOW, low, np.where(status == kernels.AT_HIGH, high, w))
    return np.clip(w, low, high)


def minimize_within(problem: Problem, w: Floats, support: Ints, intercept: float | None) -> Fit:
    """Minimize the smooth part over w with the given support within the bounds, from w.

    Takes Newton steps whose quadratic models are minimized within the bounds, shortened until they
    help; stops as `minimize_on` does. O(m|S|² + |S|³) per step and change of the active set.
    """
    if support.size == 0:
        return fit_nothing(problem)
    assert problem.bounds is not None
    A, n_free = problem.design.columns(support), int(problem.has_intercept)
    low, high = problem.bounds[0][support], problem.bounds[1][support]
    start = np.clip(w[support], low, high)
    if n_free:
        # the intercept is a first column without bounds and ridge
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
    """Take steps within limits while they lower the objective."""
    for _ in range(MAX_STEPS):
        look()
        step = _step(local, limits, 0.0)
        size, promised = max(local.value, 0.01 * part.at_zero), -float(local.slope @ step)
        if promised <= TOLERANCE * size:
            last = part.at(np.clip(local.v + step, *limits))
            return last if last.value <= local.value + ROUNDING * size else local
        there = _shortened(part, local, step, limits)
        if local.value - there.value <= HARDLY * promised and part.has_majorizer:
            other = _shortened(part, local, _step(local, limits, 1.0), limits)
            there = other if other.value < there.value else there
        # in floating point no step helps: this is the minimum to the last digits
        if not there.value < local.value:
            return local
        local = there
    return local


def _step(local: Bent, limits: tuple[Floats, Floats], mix: float) -> Floats:
    """Return the step to the minimum of the second-order model within limits.

    As in `Bent.newton_step`, a share `mix` of the curvature of a majorizer may be added.
    """
    part, curvature = local.part, local.curvature
    if mix > 0.0:
        curvature = curvature + mix * majorizer_curvature(part.loss, local.eta, part.y)
    bends = part.weights * curvature
    H = (part.A * bends[:, None]).T @ part.A
    H.flat[:: local.v.size + 1] += part.ridge
    is_close = not _has_digits(H)
    # a flat direction would let the model run to a bound, or to infinity
    H.flat[:: local.v.size + 1] += FLATTEST * part.typical
    low, high = limits[0] - local.v, limits[1] - local.v
    step, status = bounded_minimum(H, -local.slope[:, None], low, high)
    # products have enough digits; else the step is corrected on the rows themselves
    if not is_close:
        return step[:, 0]
    rooted = np.vstack([part.A * np.sqrt(bends)[:, None], np.diag(np.sqrt(part.ridge))])
    terms = np.abs(part.A).T @ np.abs(part.weights * local.dual) + np.abs(part.ridge * local.v)
    R = triangle(rooted)
    function = SecondOrder(R, local.slope, terms)
    return descend_within(function, low, high, step[:, 0], status[:, 0])[0]


def _has_digits(H: Floats) -> bool:
    """Return whether the Gram matrix still separates the columns: all pivots exceed rounding."""
    diagonal = H.diagonal()
    if not (diagonal > 0.0).all():
        return False
    scale = np.sqrt(diagonal)
    factor, info = _lapack.dpotrf(H / scale / scale[:, None])
    return bool(info == 0 and factor.diagonal().min() ** 2 > LOST_DIGITS)


def _shortened(part: Restricted, local: Bent, step: Floats, limits: tuple[Floats, Floats]) -> Bent:
    """Return the point after a step, halved until it yields a share of the decrease it promises."""
    slope, length = float(local.slope @ step), 1.0
    for _ in range(HALVINGS):
        there = part.at(np.clip(local.v + length * step, *limits))
        if there.value <= local.value + DESCENT * length * slope:
            return there
        length *= 0.5
    return local
