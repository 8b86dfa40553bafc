"""The smooth losses, each as value, gradient and curvature in the linear predictor eta = Xw.

A loss is a sum of per-sample terms ℓ(eta_i, y_i). The three functions are elementwise and cost
O(m), so sample weights are applied outside, once, for all of them. A new loss is one class and one
line in `LOSSES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from blockl0.validate import check_choice, check_positive

Floats = NDArray[np.float64]


@runtime_checkable
class Loss(Protocol):
    """What the library needs to know about ℓ(eta, y), convex and differentiable in eta."""

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
        return expit(eta) * expit(-eta)

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

    def check_target(self, y: Floats) -> Floats:
        """Two classes, coded {−1, 1}; {0, 1} is mapped to it."""
        return _as_signs(y, self.name)


LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Squared(), Logistic(), Huber(), SquaredHinge())
}


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
