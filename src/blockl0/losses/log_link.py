"""Losses of a positive mean exp(eta), and what keeps their exponentials from overflow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.base import (
    SMALLEST,
    Loss,
    Words,
    best_intercept,
    entropy_excess,
    fused_terms,
    xlogy,
)
from blockl0.validate import check_number

Floats = NDArray[np.float64]

LARGEST_LOG_MEAN = 300.0
"""Predictors from which exponentials continue linearly: their sums stay far from overflow."""
VANISHING = 20.0
"""A log mean so far below that of the target goes to minus infinity."""
NEAR_ZERO = 0.02
"""Predictors up to which exp(u) − 1 − u is a series, whose ninth power is rounding."""
MULTIPLIES = "One unit more multiplies the expected {} by e to the coefficient."


class LogLink(Loss):
    """The base of losses whose mean is exp(eta): half a deviance, zero where the mean is y."""

    is_nonnegative = True
    needs_ridge = True
    has_positive_target = True
    words: Words = Words("deviance", "D²", "D²", constant="its mean", effect=MULTIPLIES)

    def mean(self, eta: Floats) -> Floats:
        """Return exp(eta), neither infinite nor zero, which no deviance allows."""
        return np.exp(np.clip(eta, -LARGEST_LOG_MEAN, LARGEST_LOG_MEAN))

    def can_train(self, y: Floats) -> bool:
        """Return whether there is a positive number: without one the best mean is zero."""
        return bool(np.any(y > 0.0))

    def diverges(self, eta: Floats, y: Floats) -> bool:
        """Return whether a mean far below that of the target goes to zero."""
        return self.needs_ridge and bool(np.any(eta < np.log(np.mean(y)) - VANISHING))

    def score(self, eta: Floats, y: Any, sample_weight: Any = None) -> float:
        """Return D², the share of the deviance of the best constant that is explained."""
        from sklearn.utils import check_consistent_length, column_or_1d

        check_consistent_length(eta, y, sample_weight)
        target = self.check_target(column_or_1d(y, dtype=np.float64))
        weights = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight)
        left = float(weights @ self.value(eta, target))
        if np.ptp(target[weights > 0.0]) == 0.0:
            return float(left == 0.0)  # of a constant target, as of R²
        constant = best_intercept(self, np.zeros(len(target)), target, weights)
        return 1.0 - left / float(weights @ self.value(np.full(len(target), constant), target))


def check_nonnegative_target(loss: Loss, y: Floats) -> Floats:
    """Check a target of nonnegative numbers that are not all zero."""
    if y.min() < 0.0:
        i = int(np.argmax(y < 0.0))
        raise ValueError(f"loss={loss.name!r} needs nonnegative `y`, got {y[i]:g} in position {i}.")
    if not y.any():
        raise ValueError(
            f"loss={loss.name!r} needs a positive value in `y`, got only zeros; "
            "the best rate is then zero, whatever the features."
        )
    return y


def exp_rest(u: Floats) -> Floats:
    """Return exp(u) − 1 − u, of full accuracy near zero too."""
    near = np.clip(u, -NEAR_ZERO, NEAR_ZERO)
    series = 1.0 + near / 7.0 * (1.0 + near / 8.0)
    for k in (6.0, 5.0, 4.0, 3.0):
        series = 1.0 + near / k * series
    return np.where(np.abs(u) < NEAR_ZERO, 0.5 * near**2 * series, np.expm1(u) - u)


MAX_ROOT_STEPS, ROOT_TOLERANCE = 60, 4e-16
"""Newton steps towards a root, and the relative change below which it is found."""


@dataclass(frozen=True)
class Tweedie(LogLink):
    """y·exp(−a·eta)/a + exp(b·eta)/b − y^b/(ab) with a = power − 1, b = 2 − power.

    Half the deviance of the mean exp(eta) where the variance is proportional to mean^power: amounts
    of which many are zero for 1 < power < 2, as rain or claims; Poisson's loss for 1 and the gamma
    loss for 2. Other powers are refused: with a log link their loss is not convex.

    Its curvature is unbounded, as Poisson's: methods that need a global majorizer refuse it. Where
    an exponential passes exp(300) it goes on linearly.

    Parameters
    ----------
    power : float, default=1.5
        From 1 to 2.
    """

    power: float = 1.5
    name = "tweedie"
    has_scale = True

    def __post_init__(self) -> None:
        power = check_number("power", self.power)
        if not 1.0 <= power <= 2.0:
            raise ValueError(
                f"`power` must be between 1 (Poisson) and 2 (gamma), got {power:g}; for other "
                "powers the loss with a log link is not convex."
            )

    @property
    def _rates(self) -> tuple[float, float]:
        """Return (a, b), which sum to one."""
        return self.power - 1.0, 2.0 - self.power

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return y^b (rest(−au)/a + rest(bu)/b), u = eta − log y, rest(t) = exp(t) − 1 − t."""
        (a, b), (log_y, size) = self._rates, self._size(y)
        u, down, up = eta - log_y, 0.0, 0.0
        # in this form no large numbers cancel; a rate of zero has no part
        if a > 0.0:
            down = _scaled_rest(-a * u, size, log_y - a * eta) / a
        if b > 0.0:
            up = _scaled_rest(b * u, size, b * eta) / b
            return np.where(y > 0.0, down + up, _exp_line(b * eta) / b)
        return np.where(y > 0.0, down, 0.0)

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """Return exp(b·eta) − y·exp(−a·eta)."""
        (a, b), (log_y, size) = self._rates, self._size(y)
        down, up = self._exponentials(eta, y)
        # the difference of nearly equal numbers, from what they have in common
        u = np.clip(eta - log_y, -1.0, 1.0)
        near = size * (np.expm1(b * u) - np.expm1(-a * u))
        return np.where((y > 0.0) & (np.abs(eta - log_y) < 1.0), near, up - down)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return b·exp(b·eta) + a·y·exp(−a·eta)."""
        (a, b), (down, up) = self._rates, self._exponentials(eta, y)
        return b * up + a * down

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """Return u·eta − ℓ(eta, y) at the eta of slope u, by Newton's method if 1 < power < 2."""
        (a, b), (log_y, size) = self._rates, self._size(y)
        if b == 0.0:
            q = 1.0 - u
            is_inside = (q >= 0.0) & (q <= np.exp(LARGEST_LOG_MEAN))
            q = np.where(is_inside, q, 1.0)
            return np.where(is_inside, xlogy(q, q) - q + 1.0 + (1.0 - q) * log_y, np.inf)
        if a == 0.0:
            q = u + y
            is_inside = (q >= 0.0) & (q <= np.exp(LARGEST_LOG_MEAN))
            q = np.where(is_inside, q, 1.0)
            return np.where(is_inside, xlogy(q, q) - xlogy(y, y) - u, np.inf)
        positive = log_y + _slope_root(u / np.where(y > 0.0, size, 1.0), a, b)
        eta = np.where(y > 0.0, positive, np.log(np.where(u > 0.0, u, 1.0)) / b)
        is_inside = ((y > 0.0) | (u > 0.0)) & (b * eta <= LARGEST_LOG_MEAN)
        is_inside &= (y == 0.0) | (log_y - a * eta <= LARGEST_LOG_MEAN)
        eta = np.where(is_inside, eta, 0.0)
        outside = np.where((y == 0.0) & (u == 0.0), 0.0, np.inf)
        return np.where(is_inside, u * eta - self.value(eta, y), outside)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """Return a share of the curvature, as Poisson's; the more, the more alike a and b are."""
        # the third derivative is at most rate = max(a, b) times the second, h: so
        # ℓ(eta + t) ≥ ℓ + ut + h·rest(−rate·|t|)/rate², whose conjugate is h/rate² times the
        # entropy that `entropy_excess` is about
        return self.curvature(eta, y) / entropy_excess(max(self._rates) * reach)

    def check_target(self, y: Floats) -> Floats:
        """Check a target of nonnegative numbers, not all zero; positive ones for power 2."""
        if self.power == 2.0 and y.min() <= 0.0:
            i = int(np.argmax(y <= 0.0))
            raise ValueError(
                f"loss={self.name!r} needs positive `y`, got {y[i]:g} in position {i}; amounts of "
                "which some are zero are for loss='tweedie'."
            )
        return check_nonnegative_target(self, y)

    def diverges(self, eta: Floats, y: Floats) -> bool:
        """Return whether a mean goes to zero; it cannot where y must be positive."""
        b = self._rates[1]
        return b > 0.0 and bool(np.any(eta < np.log(np.mean(y)) - VANISHING / b))

    def as_sklearn(self) -> Any:
        """Return scikit-learn's Tweedie regression."""
        from sklearn.linear_model import TweedieRegressor

        return TweedieRegressor(power=self.power, link="log")

    def _size(self, y: Floats) -> tuple[Floats, Floats]:
        """Return (log y, y^b), and (0, 0) where y is zero."""
        log_y = np.log(np.where(y > 0.0, y, 1.0))
        return log_y, np.where(y > 0.0, np.exp(self._rates[1] * log_y), 0.0)

    def _exponentials(self, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return (y·exp(−a·eta), exp(b·eta)), no larger than exp(300)."""
        (a, b), (log_y, _) = self._rates, self._size(y)
        down = np.exp(np.minimum(log_y - a * eta, LARGEST_LOG_MEAN))
        return np.where(y > 0.0, down, 0.0), np.exp(np.minimum(b * eta, LARGEST_LOG_MEAN))


@dataclass(frozen=True)
class Gamma(Tweedie):
    """y·exp(−eta) + eta − log(y) − 1: half the gamma deviance of positive y with mean exp(eta).

    For amounts whose standard deviation is proportional to their mean.
    """

    power: float = field(default=2.0, init=False, repr=False)
    name = "gamma"
    needs_ridge = False

    def as_sklearn(self) -> Any:
        """Return scikit-learn's gamma regression."""
        from sklearn.linear_model import GammaRegressor

        return GammaRegressor()


def _exp_line(t: Floats) -> Floats:
    """Return exp(t), linear beyond 300."""
    beyond = np.maximum(t - LARGEST_LOG_MEAN, 0.0)
    return np.exp(np.minimum(t, LARGEST_LOG_MEAN)) * (1.0 + beyond)


def _scaled_rest(t: Floats, size: Floats, exponent: Floats) -> Floats:
    """Compute size (exp(t) − 1 − t) where size·exp(t) = exp(exponent), linear beyond 300."""
    # `size` may be tiny and exp(t) huge: far from zero their product is taken as one
    return np.where(
        t <= 1.0, size * exp_rest(np.minimum(t, 1.0)), _exp_line(exponent) - size * (1.0 + t)
    )


def _slope_root(t: Floats, a: float, b: float) -> Floats:
    """Return u with exp(bu) − exp(−au) = t, for positive a and b.

    For t ≥ 0 it is the zero of bu − log(t + exp(−au)), increasing and concave: Newton's method
    comes from below after one step, and converges. For t < 0 the two exponentials change places.
    """
    sign, t = np.where(t < 0.0, -1.0, 1.0), np.abs(t)
    falling, rising = np.where(sign > 0.0, a, b), np.where(sign > 0.0, b, a)
    u = np.log1p(t) / rising
    for _ in range(MAX_ROOT_STEPS):
        small = np.exp(-falling * u)
        step = (rising * u - np.log(t + small)) / (rising + falling * small / (t + small))
        # a long step back may pass zero, which is below the root
        before, u = u, np.maximum(u - step, 0.0)
        if np.all(np.abs(u - before) <= ROOT_TOLERANCE * (1.0 + u)):
            break
    return sign * u


@dataclass(frozen=True)
class Poisson(LogLink):
    """exp(eta) − y·eta + y·log(y) − y: half the deviance of counts with mean exp(eta).

    Its curvature exp(eta) is unbounded, so there is no global majorizer: methods that need one
    refuse it, and method "refit" takes safeguarded steps. Above eta = 300 it goes on linearly.
    """

    name = "poisson"

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return exp(eta) − y·eta + y·log(y) − y, which is never negative."""
        # y (exp(u) − 1 − u) with u = eta − log y: no large numbers that cancel
        is_count = y > 0.0
        u = np.minimum(eta, LARGEST_LOG_MEAN) - np.log(np.where(is_count, y, 1.0))
        value = np.where(is_count, y * exp_rest(u), np.exp(u))
        beyond = np.maximum(eta - LARGEST_LOG_MEAN, 0.0)
        return value + beyond * self.gradient(eta, y)

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """Return exp(eta) − y."""
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN)) - y

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return exp(eta)."""
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN))

    def terms(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return all three, from one exponential."""
        from blockl0 import kernels  # only a search needs the compiler

        if type(self) is not Poisson:
            return super().terms(eta, y)
        means = np.exp(np.minimum(eta, LARGEST_LOG_MEAN))
        return fused_terms(kernels.poisson_terms, eta, y, means, np.log(np.maximum(y, SMALLEST)))

    def first_intercept(
        self, eta: Floats, y: Floats, weights: Floats | None = None, start: float = 0.0
    ) -> float:
        """Return log Σ weight·y − log Σ weight·exp(eta), the best one, unless means overflow."""
        top = float(eta.max())
        means = np.exp(eta - top)
        both = (y.sum(), means.sum()) if weights is None else (weights @ y, weights @ means)
        if not (both[0] > 0.0 and np.isfinite(top)):
            return start
        return float(np.log(both[0]) - np.log(both[1]) - top)

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """Return q log q − q − y log y + y with q = u + y ≥ 0."""
        mean = u + y
        is_inside = (mean >= 0.0) & (mean <= np.exp(LARGEST_LOG_MEAN))
        mean = np.where(is_inside, mean, 1.0)
        return np.where(is_inside, xlogy(mean, mean) - xlogy(y, y) - u, np.inf)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """Return a share of the curvature, which bounds the relative entropy in reach."""
        return self.curvature(eta, y) / entropy_excess(reach)

    def check_target(self, y: Floats) -> Floats:
        """Check a target of counts, or other nonnegative numbers, not all zero."""
        return check_nonnegative_target(self, y)

    def as_sklearn(self) -> Any:
        """Return scikit-learn's Poisson regression."""
        from sklearn.linear_model import PoissonRegressor

        return PoissonRegressor()
