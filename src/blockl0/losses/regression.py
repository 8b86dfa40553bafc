"""Losses of numbers: least squares, Huber, counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.base import SMALLEST, Loss, Words, entropy_excess, fused_terms
from blockl0.losses.log_link import (
    LARGEST_LOG_MEAN,
    LogLink,
    check_nonnegative_target,
    exp_rest,
)
from blockl0.losses.special import xlogy
from blockl0.validate import check_positive

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Squared(Loss):
    """½ (y − eta)²: least squares, summed as in the paper and not divided by the sample count."""

    name = "squared"
    is_nonnegative = True
    is_quadratic = True
    shifts_with_target = True
    has_scale = True
    words = Words("variance", "R²", total="half the squared error", constant="its mean")
    curvature_bound = 1.0
    takes_responses = True

    def __init_subclass__(cls) -> None:
        # what a subclass changes is not known: it is a quadratic only if it says so
        cls.is_quadratic = cls.__dict__.get("is_quadratic", False)
        cls.shifts_with_target = cls.__dict__.get("shifts_with_target", False)
        cls.is_nonnegative = cls.__dict__.get("is_nonnegative", False)
        cls.takes_responses = cls.__dict__.get("takes_responses", False)

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return ½ (y − eta)²."""
        return 0.5 * (y - eta) ** 2

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """Return eta − y."""
        return eta - y

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return one, everywhere."""
        return np.ones_like(eta)

    def check_target(self, y: Floats) -> Floats:
        """Accept any finite target."""
        return y

    def for_target(self, y: Floats) -> Loss:
        """Return the loss itself, or that of several responses."""
        return Responses(y.shape[1]) if y.ndim == 2 and self.takes_responses else self


@dataclass(frozen=True)
class Responses(Squared):
    """½ ‖y_i − eta_i‖² of q responses: least squares of each, with one support for all."""

    n_outputs: int = 2
    is_nonnegative = True
    is_quadratic = True
    shifts_with_target = True
    takes_responses = True

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return ½ ‖y − eta‖² of the responses of each sample, (m,)."""
        rest = y - eta
        return 0.5 * np.einsum("ij,ij->i", rest, rest)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return one, everywhere, for all responses, (m,)."""
        return np.ones(len(eta))


@dataclass(frozen=True)
class Huber(Loss):
    """½ r² for |r| ≤ delta, else delta·|r| − ½ delta², with r = y − eta: robust regression."""

    delta: float = 1.35
    name = "huber"
    is_nonnegative = True
    shifts_with_target = True
    has_scale = True
    words = Words("Huber loss", "share of the Huber loss explained")
    curvature_bound = 1.0

    def __post_init__(self) -> None:
        check_positive("delta", self.delta)

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return c (r − ½ c) with c = clip(r, ±delta)."""
        residual = y - eta
        clipped = np.clip(residual, -self.delta, self.delta)
        return clipped * (residual - 0.5 * clipped)

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """Return clip(eta − y, ±delta)."""
        return np.clip(eta - y, -self.delta, self.delta)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return one where |y − eta| ≤ delta, else zero."""
        return (np.abs(y - eta) <= self.delta).astype(np.float64)

    def majorizer(self, eta: Floats, y: Floats) -> Floats:
        """Return min(1, delta / |y − eta|): a quadratic that touches at eta and lies above."""
        return self.delta / np.maximum(self.delta, np.abs(y - eta))

    @property
    def unit(self) -> float:
        """Return a moderate change of a predictor."""
        return self.delta

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """Return u·y + ½ u² for |u| ≤ delta."""
        return np.where(np.abs(u) <= self.delta, u * (y + 0.5 * u), np.inf)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """Return less than one where a residual might leave the quadratic part."""
        return np.clip((self.delta - np.abs(y - eta)) / reach, 0.0, 1.0)

    def check_target(self, y: Floats) -> Floats:
        """Accept any finite target."""
        return y


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
