"""Newton's method on a fixed support, whatever the loss: a direction, a length, and when it ends.

Directions are in units of the Hessian's own diagonal, so that neither the units of a column nor a
ridge that weighs on some columns only decide which steps are taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.problem.lazy import lazy

Floats = NDArray[np.float64]
_lapack: Any = lapack

MAX_STEPS = 200
"""Steps of a fit; separable data without ridge need about forty, others five to twenty."""
TOLERANCE = 1e-12
"""A fit ends where a step promises less than this share of the objective, or of F(0)/100."""
ROUNDING = 1e-14
"""Share of the objective that a last step may seem to raise it by."""

HARDLY = 0.05
"""Share of what a step promises to first order below which another kind of step is tried, too."""
GOOD, LEAST_MIX = 0.25, 1e-8
"""Share of the first order that lets the next such step be bolder, and how bold it may become."""

DAMPING = 1e-13
"""Added to the Hessian of unit diagonal: what rounding may take from its least eigenvalue."""
LOST_DIGITS = 1e-9
"""Squared pivot of unit columns below which the Gram matrix has lost too many digits."""
LEAST_VALUE, NOISE = 1e-11, 1e-13
"""Singular value of unit columns, and share of a slope's terms, that count as none."""
FLAT = 1e-20
"""Share of a column's largest curvature below which it has none."""

FAR = 1e3
"""How many times as far from zero as a model's minimum a loss may have its own, for dual bounds:
what rounding leaves of the feasibility of a dual point costs as much as that, without ridge."""

MAX_LENGTHS = 80
"""Lengths of a step that are looked at."""
FLATTER = 0.3
"""Share of the first slope along a step that is small enough to end the search of its length."""
DESCENT = 1e-4
"""Share of what the first slope promises that a step must bring."""
FURTHER = 8.0
"""By how much a length grows, or shrinks, where curvature does not tell a better one."""


class Descent(NamedTuple):
    """Where a descent ended, and whether there is nothing left to do.

    `least` is `value`, or less where it was given up: the objective is nowhere below it.
    """

    v: Floats
    value: float
    least: float
    is_done: bool


class Part(ABC):
    """The smooth part of a problem on some columns A, each in units of its largest curvature.

    A point v is (a,), or (a, C − 1) in contrasts of C classes.

    Attributes
    ----------
    has_majorizer : bool
        Whether a point's `newton_step` can mix in curvatures of quadratics that lie above.
    has_kinks : bool
        Whether a descent may be slow because the samples that bend change from step to step.
    """

    has_majorizer = False
    has_kinks = False

    def __init__(
        self, loss: Any, A: Floats, y: Any, weights: Floats, ridge: Floats, typical: float = 1.0
    ) -> None:
        self.scale = np.sqrt(typical * (weights @ A**2) + ridge)
        self.scale[self.scale == 0.0] = 1.0
        self.A, self.ridge = A / self.scale, ridge / self.scale**2
        self.loss, self.y, self.weights, self.typical = loss, y, weights, typical

    def with_ridge(self, extra: float, n_free: int) -> Any:
        """The same with more ridge, in units of the columns' curvature; not on the first few."""
        other = copy(self)
        other.ridge = self.ridge + extra
        other.ridge[:n_free] = 0.0
        return other

    @lazy
    def at_zero(self) -> float:
        """The objective at v = 0; no ridge changes it."""
        eta = self.predictor(np.zeros(self.shape))
        return float(self.weights @ self.loss.value(eta, self.y))

    @property
    def shape(self) -> tuple[int, ...]:
        """That of a point."""
        return (self.A.shape[1],)

    def enter(self, coefficients: Floats) -> Floats:
        """A point, from coefficients of the columns."""
        return coefficients * self.scale

    def leave(self, v: Floats) -> Floats:
        """The coefficients of a point."""
        return v / self.scale

    def change(self, v: Floats) -> Floats:
        """By how much v changes the predictors, (m,) or (m, C)."""
        return self.A @ v

    def predictor(self, v: Floats) -> Floats:
        """The predictors at v."""
        return self.change(v)

    def begin(self, local: Any, target: float, max_steps: int) -> Descent | None:
        """Steps from a point by a shorter way, as far as it goes; None where there is none."""
        return None

    @abstractmethod
    def at(self, v: Floats, eta: Floats | None = None) -> Local:
        """The point with its value, slope and curvatures; its predictors are found if not given."""


class Local(ABC):
    """A point, what the loss is there, and steps from it; one pass over the samples makes it.

    Attributes
    ----------
    losses : float
        The loss, without the ridge.
    """

    losses: float

    def __init__(self, part: Any, v: Floats, eta: Floats | None) -> None:
        self.part, self.v = part, v
        self.eta: Floats = part.predictor(v) if eta is None else eta

    @lazy
    def value(self) -> float:
        """The objective."""
        return self.losses + 0.5 * float(np.vdot(self.part.ridge * self.v, self.v))

    @property
    @abstractmethod
    def slope(self) -> Floats:
        """The gradient in v."""

    @abstractmethod
    def along(self, change: Floats) -> tuple[float, float]:
        """Slope and curvature of the loss along a change of the predictors."""

    @abstractmethod
    def newton_step(self, mix: float = 0.0) -> Floats:
        """The step to the minimum of the second-order model."""

    @abstractmethod
    def bound(self, step: Floats) -> float:
        """A value that the objective has nowhere on these columns, by duality; or −inf."""

    def is_steady(self, other: Any) -> bool:
        """Whether the curvatures at another point are these: there was no kink on the way."""
        return True

    def move(self, step: Floats) -> Any:
        """The point after a step of nearly the best length; this one where no length helps."""
        part, first = self.part, float(np.vdot(self.slope, step))
        if not (first < 0.0 and np.isfinite(step).all()):
            return self
        change, bend = part.change(step), float(np.vdot(part.ridge * step, step))
        lowest, seen = np.inf, self

        def look(length: float) -> tuple[float, float, float]:
            nonlocal lowest, seen
            there = part.at(self.v + length * step, self.eta + length * change)
            if there.value < lowest:
                lowest, seen = there.value, there
            slope, own = there.along(change)
            pull = float(np.vdot(part.ridge * there.v, step))
            return there.value, slope + pull, own + bend

        length, _ = search_length(look, self.value, first)
        return seen if length > 0.0 else self


def start_of(part: Part, v: Floats) -> Any:
    """A point to start from; zero for one so bad that there might be no way back."""
    there = part.at(v)
    return there if there.value <= part.at_zero or not v.any() else part.at(0.0 * v)


def descend(part: Part, local: Any, target: float, max_steps: int) -> Descent:
    """Newton steps from a point, as long as they help, or until the target is out of reach."""
    begun, mix = part.begin(local, target, max_steps), 1.0
    if begun is not None:
        if begun.is_done:
            return begun
        local = part.at(begun.v)
    for _ in range(max_steps):
        step = local.newton_step()
        size, promised = max(local.value, 0.01 * part.at_zero), -float(np.vdot(local.slope, step))
        if promised <= TOLERANCE * size:
            # known already, it doubles the digits of v, where those of the value are exhausted
            last = part.at(local.v + step)
            if not last.value <= local.value + ROUNDING * size:
                return Descent(local.v, local.value, local.value, True)
            is_steady, least = local.is_steady(last), min(local.value, last.value)
            local = last
            local.value = least
            if is_steady:
                return Descent(local.v, least, least, True)
            continue
        # where the model itself goes below the target, nothing near it can prove the contrary
        if local.value - 0.5 * promised > target and (bound := local.bound(step)) > target:
            return Descent(local.v, local.value, min(local.value, bound), True)
        there = local.move(step)
        if local.value - there.value <= HARDLY * promised and part.has_majorizer:
            step = local.newton_step(mix)
            other = local.move(step)
            is_good = local.value - other.value >= GOOD * -float(np.vdot(local.slope, step))
            mix = max(mix / 8.0, LEAST_MIX) if is_good else min(4.0 * mix, 1.0)
            there = other if other.value < there.value else there
        if not there.value < local.value:
            return Descent(local.v, local.value, local.value, True)
        local = there
    return Descent(local.v, local.value, local.value, False)


def newton_direction(
    H: Floats,
    slope: Floats,
    terms: Callable[[], Floats],
    largest: Floats,
    rooted: Callable[[], Floats],
) -> Floats:
    """−inv(H) slope, with the columns' dependence decided in units of the diagonal of H.

    Parameters
    ----------
    H : ndarray (p, p)
    slope : ndarray (p,)
    terms : callable
        Makes the sums (p,) of the absolute values that a slope is the sum of: its rounding is a
        share of them.
    largest : ndarray (p,)
        The diagonal of H where the loss bends most; where H has next to nothing of it, it is flat.
    rooted : callable
        Makes R with R'R = H, for columns that depend on each other more than H can tell.
    """
    d = np.sqrt(np.maximum(H.diagonal(), FLAT * largest))
    d[d == 0.0] = 1.0
    unit = H / d / d[:, None]
    unit.flat[:: d.size + 1] += DAMPING
    factor, info = _lapack.dpotrf(unit)
    if info == 0 and factor.diagonal().min() ** 2 > LOST_DIGITS:
        return -_lapack.dpotrs(factor, slope / d)[0] / d
    values, axes = np.linalg.svd(np.linalg.qr(rooted() / d, mode="r"))[1:]
    along = axes @ (slope / d)
    # a direction without curvature is followed where there is a slope, not where it is rounding
    is_real = (values > LEAST_VALUE) | (np.abs(along) > NOISE * float(np.linalg.norm(terms() / d)))
    return -axes.T @ np.where(is_real, along / (values**2 + LEAST_VALUE**2), 0.0) / d


def search_length(
    look: Callable[[float], tuple[float, float, float]], here: float, slope: float
) -> tuple[float, float]:
    """(length, value) of a step along which a convex function falls: nearly its minimum.

    `look` gives the value, the slope and the curvature at a length; `here` is the value at 0 and
    `slope` < 0 the slope there. The length is 0 where no value is below `here`. On the flat parts
    of a loss a Newton step may be a million times too long or too short: the length is bracketed
    by the signs of slopes, which are known where differences of values are rounding.
    """
    low, high, length = 0.0, np.inf, 1.0
    best, lowest = 0.0, here
    for _ in range(MAX_LENGTHS):
        value, there, bend = look(length)
        if value < lowest:
            best, lowest = length, value
        is_flatter = abs(there) <= FLATTER * abs(slope)
        if is_flatter and value <= here + DESCENT * length * slope:
            break
        low, high = (length, high) if there < 0.0 else (low, length)
        # far beyond the minimum, as of an exponential, a step of the slope would be a small one
        is_near = bend > 0.0 and abs(there) <= abs(slope)
        following = length - there / bend if is_near else -1.0
        if not low < following < min(high, 10.0 * FURTHER * length):
            following = _between(low, high)
        if following in (low, high, length) or high <= 1e-300 or low >= 1e300:
            break
        length = following
    return best, lowest


def symmetric(lower: Floats) -> Floats:
    """A matrix of which the lower half is given, with zeros above it."""
    whole = lower + lower.T
    whole.flat[:: len(lower) + 1] = lower.diagonal()
    return whole


def weighted_total(weights: Floats, values: Floats) -> Floats:
    """weights'values for values (m, ...) that may be infinite, also where a weight is zero."""
    is_used = weights > 0.0
    return weights @ values if is_used.all() else weights[is_used] @ values[is_used]


def _between(low: float, high: float) -> float:
    """A length inside a bracket, by its order of magnitude where that is not known."""
    if not np.isfinite(high):
        return FURTHER * low
    if low <= 0.0:
        return high / FURTHER
    return float(np.sqrt(low * high)) if high > 4.0 * low else 0.5 * (low + high)
