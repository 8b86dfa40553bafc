"""Losses of positive amounts with a log link: gamma, and Tweedie's between counts and gamma."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.base import entropy_excess
from blockl0.losses.log_link import (
    LARGEST_LOG_MEAN,
    VANISHING,
    LogLink,
    check_nonnegative_target,
    exp_rest,
)
from blockl0.losses.special import xlogy
from blockl0.validate import check_number

Floats = NDArray[np.float64]

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
