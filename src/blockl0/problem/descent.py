"""Newton's method on a fixed support, for any loss: direction, step length, stopping.

Directions are computed in units of the Hessian's diagonal, so neither the units of a column nor a
ridge that applies to some columns only decides which steps are taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.lazy import lazy
from blockl0.run import look

Floats = NDArray[np.float64]
_lapack: Any = lapack

MAX_STEPS = 200
"""Steps per fit; separable data without ridge need about forty, others five to twenty."""
TOLERANCE = 1e-12
"""A fit ends when a step promises less than this share of the objective, or of F(0)/100."""
ROUNDING = 1e-14
"""Share of the objective by which rounding may make the last step appear to raise it."""

HARDLY = 0.05
"""Share of the first-order decrease below which a majorizing step is tried, too."""
GOOD, LEAST_MIX = 0.25, 1e-8
"""Share of the first-order decrease after which less of the majorizer is mixed in, and the least
mix.
"""

DAMPING = 1e-13
"""Added to the Hessian of unit diagonal, for rounding errors in its least eigenvalue."""
LOST_DIGITS = 1e-9
"""Squared pivot of unit columns below which the Gram matrix has lost too many digits."""
LEAST_VALUE, NOISE = 1e-11, 1e-13
"""Singular value of unit columns, and share of a slope's terms, below which both are rounding."""
FLAT = 1e-20
"""Share of a column's largest curvature below which it has none."""

FAR = 1e3
"""For dual bounds: how many times as far from zero as the model's minimum the true one may be.
Rounding leaves a dual point slightly infeasible, which costs this much without ridge.
"""

MAX_LENGTHS = 80
"""Largest number of step lengths to evaluate."""
FLATTER = 0.3
"""Share of the initial slope along a step that ends the search for its length."""
DESCENT = 1e-4
"""Share of the decrease promised by the initial slope that a step must bring."""
FURTHER = 8.0
"""Factor by which a length grows or shrinks where the curvature gives no better one."""


class Descent(NamedTuple):
    """Where a descent ended, and whether nothing is left to gain.

    `least` is a lower bound of the objective: `value` at a minimizer, lower if the descent gave up.
    It may miss directions in which columns are as good as dependent, if they came too close
    (`is_close`) for their products.
    """

    v: Floats
    value: float
    least: float
    is_done: bool
    is_close: bool = False


class SupportLoss(ABC):
    """The smooth part on some columns A, each in units of its largest curvature.

    A point v is (a,), or (a, C − 1) in contrasts of C classes.

    Attributes
    ----------
    has_majorizer : bool
        Whether a point's `newton_step` can mix in the curvature of a quadratic majorizer.
    has_kinks : bool
        Whether descent may be slow because the samples with curvature change from step to step.
    """

    has_majorizer = False
    has_kinks = False
    ridge: Floats
    loss: Any
    y: Any
    weights: Floats
    typical: float

    def __init__(
        self, loss: Any, A: Floats, y: Any, weights: Floats, ridge: Floats, typical: float = 1.0
    ) -> None:
        self.scale: Floats = np.sqrt(typical * (weights @ A**2) + ridge)
        # a zero column stays zero in any unit
        self.scale[self.scale == 0.0] = 1.0
        self.A, self.ridge = A / self.scale, ridge / self.scale**2
        self.loss, self.y, self.weights, self.typical = loss, y, weights, typical

    def with_ridge(self, extra: float, n_free: int) -> Any:
        """Return a copy with more ridge, in units of the columns' curvature.

        The first `n_free` columns stay without ridge.
        """
        other = copy(self)
        other.ridge = self.ridge + extra
        # intercepts are never penalized
        other.ridge[:n_free] = 0.0
        return other

    @lazy
    def at_zero(self) -> float:
        """Objective at v = 0, which no ridge changes."""
        eta = self.predictor(np.zeros(self.shape))
        return float(self.weights @ self.loss.value(eta, self.y))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a point."""
        return (self.A.shape[1],)

    def enter(self, coefficients: Floats) -> Floats:
        """Convert coefficients of the columns into a point."""
        return coefficients * self.scale

    def leave(self, v: Floats) -> Floats:
        """Convert a point into coefficients of the columns."""
        return v / self.scale

    def change(self, v: Floats) -> Floats:
        """Compute the change of the predictors by v, (m,) or (m, C)."""
        return self.A @ v

    def predictor(self, v: Floats) -> Floats:
        """Compute the predictors at v."""
        return self.change(v)

    def begin(self, local: Any, target: float, max_steps: int) -> Descent | None:
        """Take the first steps in compiled code, or return None if there is none for the loss."""
        return None

    @abstractmethod
    def at(self, v: Floats, eta: Floats | None = None) -> Local:
        """Evaluate value, slope and curvatures at v; `eta` are its predictors, if known."""


class Local(ABC):
    """A point, the loss there, and steps from it; made in one pass over the samples.

    Attributes
    ----------
    losses : float
        The loss without the ridge.
    is_close : bool
        Whether a step from here took columns too close to separate in their products.
    """

    losses: float
    is_close = False
    part: Any
    v: Floats

    def __init__(self, part: Any, v: Floats, eta: Floats | None) -> None:
        self.part, self.v = part, v
        self.eta: Floats = part.predictor(v) if eta is None else eta

    @lazy
    def value(self) -> float:
        """Objective."""
        return self.losses + 0.5 * float(np.vdot(self.part.ridge * self.v, self.v))

    @property
    @abstractmethod
    def slope(self) -> Floats:
        """Gradient in v."""

    @abstractmethod
    def along(self, change: Floats) -> tuple[float, float]:
        """Return slope and curvature of the loss along a change of the predictors."""

    @abstractmethod
    def newton_step(self, mix: float = 0.0) -> Floats:
        """Return the step to the minimum of the second-order model."""

    @abstractmethod
    def bound(self, step: Floats) -> float:
        """Return a lower bound of the objective on these columns by duality, or −inf."""

    def is_steady(self, other: Any) -> bool:
        """Return whether curvatures hardly differ at another point: no kink lies between."""
        return True

    def move(self, step: Floats) -> Any:
        """Return the point after a step of nearly the best length; self if no length helps."""
        part, first = self.part, float(np.vdot(self.slope, step))
        # rounding may turn the step of a singular model uphill
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


def start_of(part: SupportLoss, v: Floats) -> Any:
    """Return the point v to start from, or zero if the objective is higher at v."""
    there = part.at(v)
    # a start from another support may lie worse than nothing, and far from the minimum
    return there if there.value <= part.at_zero or not v.any() else part.at(0.0 * v)


def descend(part: SupportLoss, local: Any, target: float, max_steps: int) -> Descent:
    """Take Newton steps while they help, or until the target is provably out of reach."""
    begun, mix, is_close = part.begin(local, target, max_steps), 1.0, False
    if begun is not None:
        # compiled steps end where they meet what they cannot solve, such as a singular model
        if begun.is_done:
            return begun
        local = part.at(begun.v)
    for _ in range(max_steps):
        look()
        step = local.newton_step()
        is_close = is_close or local.is_close
        size, promised = max(local.value, 0.01 * part.at_zero), -float(np.vdot(local.slope, step))
        if promised <= TOLERANCE * size:
            # the last step doubles the correct digits of v when those of the value are exhausted
            last = part.at(local.v + step)
            if not last.value <= local.value + ROUNDING * size:
                return Descent(local.v, local.value, local.value, True, is_close)
            is_steady, least = local.is_steady(last), min(local.value, last.value)
            local = last
            local.value = least
            if is_steady:
                return Descent(local.v, least, least, True, is_close)
            continue
        # if even the model goes below the target, no bound near here can prove the contrary
        if local.value - 0.5 * promised > target and (bound := local.bound(step)) > target:
            least = min(local.value, bound)
            return Descent(local.v, local.value, least, True, is_close)
        there = local.move(step)
        if local.value - there.value <= HARDLY * promised and part.has_majorizer:
            step = local.newton_step(mix)
            other = local.move(step)
            is_good = local.value - other.value >= GOOD * -float(np.vdot(local.slope, step))
            # a good step asks for less of the majorizer next time, as it shortens steps
            mix = max(mix / 8.0, LEAST_MIX) if is_good else min(4.0 * mix, 1.0)
            there = other if other.value < there.value else there
        if not there.value < local.value:
            return Descent(local.v, local.value, local.value, True, is_close)
        local = there
    return Descent(local.v, local.value, local.value, False, is_close)


def newton_direction(
    H: Floats,
    slope: Floats,
    terms: Callable[[], Floats],
    largest: Floats,
    rooted: Callable[[], Floats],
) -> Floats:
    """Return −inv(H) slope; dependence of columns is decided in units of the diagonal of H.

    Parameters
    ----------
    H : ndarray (p, p)
    slope : ndarray (p,)
    terms : callable
        Returns the sums (p,) of the absolute values of the terms of each slope; the rounding error
        of a slope is a share of them.
    largest : ndarray (p,)
        The diagonal of H where the loss has its largest curvature; H is flat where it has next to
        nothing of that.
    rooted : callable
        Returns R with R'R = H, for columns too close to separate in H.
    """
    d = np.sqrt(np.maximum(H.diagonal(), FLAT * largest))
    # flat columns keep their zero rows: the damping below makes them regular
    d[d == 0.0] = 1.0
    unit = H / d / d[:, None]
    unit.flat[:: d.size + 1] += DAMPING
    factor, info = _lapack.dpotrf(unit)
    if info == 0 and factor.diagonal().min() ** 2 > LOST_DIGITS:
        return -_lapack.dpotrs(factor, slope / d)[0] / d
    values, axes = np.linalg.svd(np.linalg.qr(rooted() / d, mode="r"))[1:]
    along = axes @ (slope / d)
    # follow a direction without curvature only if its slope is more than rounding
    is_real = (values > LEAST_VALUE) | (np.abs(along) > NOISE * float(np.linalg.norm(terms() / d)))
    return -axes.T @ np.where(is_real, along / (values**2 + LEAST_VALUE**2), 0.0) / d


def search_length(
    look: Callable[[float], tuple[float, float, float]], here: float, slope: float
) -> tuple[float, float]:
    """Search the step length along which a convex function is nearly least; return (length, value).

    `look` returns value, slope and curvature at a length; `here` is the value at 0 and `slope` < 0
    the slope there. The length is 0 if no value is below `here`. On the flat parts of a loss a
    Newton step may be a million times too long or too short, so the length is bracketed by the
    signs of slopes, which stay accurate where differences of values are rounding.
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
        # far beyond the minimum, as of an exponential, a Newton step on the slope is too short
        is_near = bend > 0.0 and abs(there) <= abs(slope)
        # Newton on the slope, which has digits where differences of values are rounding
        following = length - there / bend if is_near else -1.0
        if not low < following < min(high, 10.0 * FURTHER * length):
            following = _between(low, high)
        if following in (low, high, length) or high <= 1e-300 or low >= 1e300:
            break
        length = following
    return best, lowest


def symmetric(lower: Floats) -> Floats:
    """Return the symmetric matrix of a lower triangle with zeros above."""
    whole = lower + lower.T
    whole.flat[:: len(lower) + 1] = lower.diagonal()
    return whole


def weighted_total(weights: Floats, values: Floats) -> Floats:
    """Compute weights'values for values (m, ...) that may be infinite where a weight is zero."""
    is_used = weights > 0.0
    return weights @ values if is_used.all() else weights[is_used] @ values[is_used]


def _between(low: float, high: float) -> float:
    """Return a length inside a bracket; the geometric mean if it spans orders of magnitude."""
    if not np.isfinite(high):
        return FURTHER * low
    if low <= 0.0:
        return high / FURTHER
    return float(np.sqrt(low * high)) if high > 4.0 * low else 0.5 * (low + high)
