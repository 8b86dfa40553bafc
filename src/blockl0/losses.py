"""The smooth losses, each as value, gradient and curvature in the linear predictor eta = Xw.

A loss is a sum of per-sample terms ℓ(eta_i, y_i). The three functions are elementwise and cost
O(m), so sample weights are applied outside, once, for all of them. A new loss is one class and one
line in `LOSSES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

from blockl0.validate import check_choice, check_positive

Floats = NDArray[np.float64]

LARGEST_LOG_MEAN = 300.0
"""Where the Poisson loss goes on linearly: its sums stay far from overflow."""
MAX_INTERCEPT_STEPS, INTERCEPT_TOLERANCE = 200, 1e-14
"""Steps towards the best intercept, and the share of the absolute slopes that counts as zero."""
NEAR_ZERO = 0.02
"""Where exp(u) − 1 − u is summed as a series, whose ninth power is rounding."""
ENTROPY_STEPS = 12
"""Bisections towards the least excess of an entropy; each leaves a valid one."""
FAR_INTERCEPT = 30.0
"""Beyond this, and twice the largest predictor, a flat loss is flat for good."""


@runtime_checkable
class Loss(Protocol):
    """What the library needs to know about ℓ(eta, y), convex and differentiable in eta.

    A loss may also have `majorizer(eta, y)`, see `majorizer_curvature`, and for proofs by duality
    `conjugate(u, y)`, sup_eta u·eta − ℓ(eta, y), infinite where there is none, and
    `dual_curvature(eta, y, reach)`, numbers D with ℓ*(u + Dz) ≤ ℓ*(u) + eta·Dz + ½Dz² for the slope
    u at eta and all |z| ≤ reach. Without these two, single changes of a support are all re-fitted.
    """

    @property
    def name(self) -> str:
        """The name users give."""
        ...

    @property
    def curvature_bound(self) -> float:
        """sup of ∂²ℓ/∂eta² over eta and y; infinity if there is none."""
        ...

    def value(self, eta: Floats, y: Floats) -> Floats:
        """ℓ(eta_i, y_i) per sample, (m,)."""
        ...

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """∂ℓ/∂eta per sample, (m,)."""
        ...

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """∂²ℓ/∂eta² per sample, (m,); at a kink of the gradient, one of its one-sided values."""
        ...

    def check_target(self, y: Floats) -> Floats:
        """Return y in the coding that the loss works with, or say what is wrong with it."""
        ...


@dataclass(frozen=True)
class Squared:
    """½ (y − eta)²: least squares, summed as in the paper and not divided by the sample count."""

    name = "squared"
    curvature_bound = 1.0

    def value(self, eta: Floats, y: Floats) -> Floats:
        """½ (y − eta)²."""
        return 0.5 * (y - eta) ** 2

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """eta − y."""
        return eta - y

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """One, everywhere."""
        return np.ones_like(eta)

    def check_target(self, y: Floats) -> Floats:
        """Any finite target will do."""
        return y


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(−y·eta)) with y in {−1, 1}, computed without overflow for any eta."""

    name = "logistic"
    curvature_bound = 0.25

    def value(self, eta: Floats, y: Floats) -> Floats:
        """log(1 + exp(−y·eta))."""
        return np.logaddexp(0.0, -y * eta)

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """−y / (1 + exp(y·eta))."""
        return -y * expit(-y * eta)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """p (1 − p) with p = 1 / (1 + exp(−eta))."""
        rarer = expit(-np.abs(eta))
        return rarer * (1.0 - rarer)

    def majorizer(self, eta: Floats, y: Floats) -> Floats:
        """tanh(½ eta) / (2 eta): a quadratic that touches at ±eta and lies above, ≤ ¼."""
        half = np.maximum(np.abs(0.5 * eta), 1e-8)
        return 0.25 * np.tanh(half) / half

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """p log p + (1 − p) log(1 − p) with p = −y·u in [0, 1]."""
        p = -y * u
        is_inside = (p >= 0.0) & (p <= 1.0)
        p = np.where(is_inside, p, 0.5)
        return np.where(is_inside, xlogy(p, p) + xlog1py(1.0 - p, -p), np.inf)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """A share of the curvature: relative entropy hardly exceeds its second-order term."""
        return self.curvature(eta, y) / entropy_excess(reach)

    def check_target(self, y: Floats) -> Floats:
        """Two classes, coded {−1, 1}; {0, 1} is mapped to it."""
        return _as_signs(y, self.name)


@dataclass(frozen=True)
class Huber:
    """½ r² for |r| ≤ delta, else delta·|r| − ½ delta², with r = y − eta: robust regression."""

    delta: float = 1.35
    name = "huber"
    curvature_bound = 1.0

    def __post_init__(self) -> None:
        check_positive("delta", self.delta)

    def value(self, eta: Floats, y: Floats) -> Floats:
        """With c = clip(r, ±delta): c (r − ½ c)."""
        residual = y - eta
        clipped = np.clip(residual, -self.delta, self.delta)
        return clipped * (residual - 0.5 * clipped)

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """clip(eta − y, ±delta)."""
        return np.clip(eta - y, -self.delta, self.delta)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """One where |y − eta| ≤ delta, else zero."""
        return (np.abs(y - eta) <= self.delta).astype(np.float64)

    def majorizer(self, eta: Floats, y: Floats) -> Floats:
        """min(1, delta / |y − eta|): a quadratic that touches at eta and lies above."""
        return self.delta / np.maximum(self.delta, np.abs(y - eta))

    @property
    def unit(self) -> float:
        """A moderate change of a predictor."""
        return self.delta

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """u·y + ½ u² for |u| ≤ delta."""
        return np.where(np.abs(u) <= self.delta, u * (y + 0.5 * u), np.inf)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """Less than one where a residual might leave the quadratic part."""
        return np.clip((self.delta - np.abs(y - eta)) / reach, 0.0, 1.0)

    def check_target(self, y: Floats) -> Floats:
        """Any finite target will do."""
        return y


@dataclass(frozen=True)
class SquaredHinge:
    """½ max(0, 1 − y·eta)² with y in {−1, 1}: the smooth support vector machine."""

    name = "squared_hinge"
    curvature_bound = 1.0

    def value(self, eta: Floats, y: Floats) -> Floats:
        """½ max(0, 1 − y·eta)²."""
        return 0.5 * np.maximum(0.0, 1.0 - y * eta) ** 2

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """−y max(0, 1 − y·eta)."""
        return -y * np.maximum(0.0, 1.0 - y * eta)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """One where y·eta < 1, else zero."""
        return (y * eta < 1.0).astype(np.float64)

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """½ h² − h with h = −y·u ≥ 0."""
        h = -y * u
        return np.where(h >= 0.0, h * (0.5 * h - 1.0), np.inf)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """Less than one where the margin might be reached."""
        return np.clip((1.0 - y * eta) / reach, 0.0, 1.0)

    def check_target(self, y: Floats) -> Floats:
        """Two classes, coded {−1, 1}; {0, 1} is mapped to it."""
        return _as_signs(y, self.name)


@dataclass(frozen=True)
class Poisson:
    """exp(eta) − y·eta + y·log(y) − y: half the deviance of counts with mean exp(eta).

    Its curvature exp(eta) is unbounded, so there is no global majorizer: methods that need one
    refuse it, and method "refit" takes safeguarded steps. Above eta = 300 it goes on linearly.
    """

    name = "poisson"
    curvature_bound = np.inf

    def value(self, eta: Floats, y: Floats) -> Floats:
        """exp(eta) − y·eta + y·log(y) − y, which is never negative."""
        # y (exp(u) − 1 − u) with u = eta − log y: no large numbers that cancel
        is_count = y > 0.0
        u = np.minimum(eta, LARGEST_LOG_MEAN) - np.log(np.where(is_count, y, 1.0))
        value = np.where(is_count, y * _exp_rest(u), np.exp(u))
        beyond = np.maximum(eta - LARGEST_LOG_MEAN, 0.0)
        return value + beyond * self.gradient(eta, y)

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """exp(eta) − y."""
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN)) - y

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """exp(eta)."""
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN))

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """q log q − q − y log y + y with q = u + y ≥ 0."""
        mean = u + y
        is_inside = (mean >= 0.0) & (mean <= np.exp(LARGEST_LOG_MEAN))
        mean = np.where(is_inside, mean, 1.0)
        return np.where(is_inside, xlogy(mean, mean) - xlogy(y, y) - u, np.inf)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """A share of the curvature: relative entropy hardly exceeds its second-order term."""
        return self.curvature(eta, y) / entropy_excess(reach)

    def check_target(self, y: Floats) -> Floats:
        """Counts, or other nonnegative numbers, not all zero."""
        if y.min() < 0.0:
            i = int(np.argmax(y < 0.0))
            raise ValueError(
                f"loss={self.name!r} needs nonnegative `y`, got {y[i]:g} in position {i}."
            )
        if not y.any():
            raise ValueError(
                f"loss={self.name!r} needs a positive value in `y`, got only zeros; "
                "the best rate is then zero, whatever the features."
            )
        return y


LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Squared(), Logistic(), Huber(), SquaredHinge(), Poisson())
}


@cache
def entropy_excess(reach: float) -> float:
    """c with KL(q | p) ≤ ½ Σ p z²/c for q = p (1 + z/c) and all |z| ≤ reach.

    (1 + s) log(1 + s) − s ≤ (1 − r) log(1 − r) + r =: ½ r² e(r) for |s| ≤ r ≤ 1, since the second
    derivative 1/(1 + s) is at most 1/(1 − |s|); so every c ≥ e(reach/c), reach will do.
    """
    low, c = 1.0, max(2.0, reach)
    for _ in range(ENTROPY_STEPS):
        middle = 0.5 * (low + c)
        r = reach / middle
        is_valid = r < 1.0 and (1.0 - r) * np.log1p(-r) + r <= 0.5 * r**2 * middle
        low, c = (low, middle) if is_valid else (middle, c)
    return c


def majorizer_curvature(loss: Loss, eta: Floats, y: Floats) -> Floats:
    """Curvatures of quadratics that touch ℓ at eta with its slope and lie above it everywhere.

    Those of the loss's own `majorizer(eta, y)` where it has one, else the bound.
    """
    tight = getattr(loss, "majorizer", None)
    return np.full_like(eta, loss.curvature_bound) if tight is None else tight(eta, y)


def best_intercept(loss: Loss, eta: Floats, y: Floats, weights: Floats | None = None) -> float:
    """argmin_b Σ_i weights_i ℓ(eta_i + b, y_i): Newton's method inside a bracket, O(m) a step.

    Where the minimum is at infinity, as for one class only, the answer is where it is nearly flat.
    """

    def total(values: Floats) -> float:
        return float(values.sum() if weights is None else weights @ values)

    if loss.name == "squared":
        return float(np.average(y - eta, weights=weights))
    b, low, high, reach = 0.0, -np.inf, np.inf, 1.0
    first = total(np.abs(loss.gradient(eta, y)))
    far = FAR_INTERCEPT + 2.0 * float(np.abs(eta).max())
    for _ in range(MAX_INTERCEPT_STEPS):
        slopes = loss.gradient(eta + b, y)
        slope = total(slopes)
        is_lost = abs(b) > far and abs(slope) <= INTERCEPT_TOLERANCE * first
        if is_lost or abs(slope) <= INTERCEPT_TOLERANCE * total(np.abs(slopes)):
            break
        low, high = (low, b) if slope > 0.0 else (b, high)
        bend = total(loss.curvature(eta + b, y))
        step = -slope / bend if bend * reach > abs(slope) else -np.copysign(reach, slope)
        reach *= 2.0
        there = b + step
        if not low < there < high:
            there = 0.5 * (low + high)
        if there in (b, low, high):
            break
        b = there
    return b


def _exp_rest(u: Floats) -> Floats:
    """exp(u) − 1 − u, of full accuracy near zero too."""
    near = np.clip(u, -NEAR_ZERO, NEAR_ZERO)
    series = 1.0 + near / 7.0 * (1.0 + near / 8.0)
    for k in (6.0, 5.0, 4.0, 3.0):
        series = 1.0 + near / k * series
    return np.where(np.abs(u) < NEAR_ZERO, 0.5 * near**2 * series, np.expm1(u) - u)


def get_loss(loss: Any) -> Loss:
    """The loss of that name, or the loss itself when an instance is given."""
    if not isinstance(loss, str | type) and isinstance(loss, Loss):
        return loss
    return LOSSES[check_choice("loss", loss, LOSSES)]


def _as_signs(y: Floats, name: str) -> Floats:
    """Map {0, 1} to {−1, 1}; refuse anything but two classes in one of these codings."""
    classes = np.unique(y)
    if np.isin(classes, (-1.0, 1.0)).all():
        return y
    if np.isin(classes, (0.0, 1.0)).all():
        return 2.0 * y - 1.0
    seen = ", ".join(f"{value:g}" for value in classes[:5]) + (", ..." if len(classes) > 5 else "")
    raise ValueError(
        f"loss={name!r} needs `y` in {{-1, 1}} ({{0, 1}} is accepted and mapped), got {seen}."
    )
