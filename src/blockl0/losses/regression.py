"""Losses of numbers: least squares and Huber."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.base import Loss, Words
from blockl0.validate import check_positive

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Squared(Loss):
    """½ (y − eta)²: least squares, summed as in the paper and not divided by the sample count."""

    name = "squared"
    is_nonnegative: ClassVar[bool] = True
    is_quadratic: ClassVar[bool] = True
    shifts_with_target: ClassVar[bool] = True
    has_scale = True
    words: ClassVar[Words] = Words(
        "variance", "R²", total="half the squared error", constant="its mean"
    )
    curvature_bound: ClassVar[float] = 1.0
    takes_responses: ClassVar[bool] = True

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
    is_nonnegative: ClassVar[bool] = True
    is_quadratic: ClassVar[bool] = True
    shifts_with_target: ClassVar[bool] = True
    takes_responses: ClassVar[bool] = True

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
    is_nonnegative: ClassVar[bool] = True
    shifts_with_target: ClassVar[bool] = True
    has_scale = True
    words: ClassVar[Words] = Words("Huber loss", "share of the Huber loss explained")
    curvature_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_positive("delta", self.delta)

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return c (r − ½ c) with c = clip(r, ±delta)."""
        residual = y - eta
        clipped = np.clip(residual, -self.delta, self.delta)
        # one formula for both parts, without a branch per sample
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
