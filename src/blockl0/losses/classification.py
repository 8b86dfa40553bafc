"""Losses of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.base import EPSILON, SMALLEST, Loss, Words, entropy_excess, expit, fused_terms
from blockl0.losses.softmax import Softmax

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(−y·eta)) with y in {−1, 1}, computed without overflow for any eta."""

    name = "logistic"
    is_nonnegative = True
    takes_labels = True
    takes_many_classes = True
    needs_ridge = True
    has_probabilities = True
    words: ClassVar[Words] = Words(
        "log loss",
        "share of the log loss explained",
        "accuracy",
        odds=" (it adds to the log odds)",
    )
    curvature_bound: ClassVar[float] = 0.25

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return log(1 + exp(−y·eta))."""
        return np.logaddexp(0.0, -y * eta)

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """Return −y / (1 + exp(y·eta))."""
        return -y * expit(-y * eta)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return p (1 − p) with p = 1 / (1 + exp(−eta))."""
        # of the rarer class, whose probability keeps its digits
        rarer = expit(-np.abs(eta))
        return rarer * (1.0 - rarer)

    @property
    def is_softmax_of_two(self) -> bool:  # type: ignore[override]
        """Return whether the softmax of two classes is this loss: not if a subclass changed it."""
        return type(self) is Logistic

    def terms(self, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return all three, from one exponential."""
        from blockl0 import kernels  # only a search needs the compiler

        if not self.is_softmax_of_two:
            return super().terms(eta, y)
        small = np.exp(-np.abs(eta))
        return fused_terms(kernels.logistic_terms, eta, y, small, np.log1p(small))

    def majorizer(self, eta: Floats, y: Floats) -> Floats:
        """Return tanh(½ eta) / (2 eta): a quadratic that touches at ±eta and lies above, ≤ ¼."""
        half = np.maximum(np.abs(0.5 * eta), 1e-8)
        return 0.25 * np.tanh(half) / half

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """Return p log p + (1 − p) log(1 − p) with p = −y·u in [0, 1]."""
        p = -y * u
        result = p * np.log(np.maximum(p, SMALLEST))
        result += (1.0 - p) * np.log1p(-np.minimum(p, 1.0 - 0.5 * EPSILON))
        result[~((p >= 0.0) & (p <= 1.0))] = np.inf
        return result

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """Return a share of the curvature, which bounds the relative entropy in reach."""
        return self.curvature(eta, y) / entropy_excess(reach)

    def check_target(self, y: Floats) -> Floats:
        """Check a target of two classes; map {0, 1} to {−1, 1}."""
        return _as_signs(y, self.name)

    def mean(self, eta: Floats) -> Floats:
        """Return 1 / (1 + exp(−eta))."""
        return expit(eta)

    def for_classes(self, n_classes: int) -> Loss:
        """Return the softmax loss for more than two."""
        return Softmax() if n_classes > 2 else self

    def probabilities(self, eta: Floats) -> Floats:
        """Return the probabilities of both classes, each accurate near zero."""
        return np.column_stack([expit(-eta), expit(eta)])

    def as_sklearn(self) -> Any:
        """Return scikit-learn's logistic regression."""
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """½ max(0, 1 − y·eta)² with y in {−1, 1}: the smooth support vector machine."""

    name = "squared_hinge"
    is_nonnegative = True
    takes_labels = True
    words: ClassVar[Words] = Words(
        "squared hinge loss", "share of the hinge loss explained", "accuracy"
    )
    curvature_bound: ClassVar[float] = 1.0

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return ½ max(0, 1 − y·eta)²."""
        return 0.5 * np.maximum(0.0, 1.0 - y * eta) ** 2

    def gradient(self, eta: Floats, y: Floats) -> Floats:
        """Return −y max(0, 1 − y·eta)."""
        return -y * np.maximum(0.0, 1.0 - y * eta)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Return one where y·eta < 1, else zero."""
        return (y * eta < 1.0).astype(np.float64)

    def conjugate(self, u: Floats, y: Floats) -> Floats:
        """Return ½ h² − h with h = −y·u ≥ 0."""
        h = -y * u
        return np.where(h >= 0.0, h * (0.5 * h - 1.0), np.inf)

    def dual_curvature(self, eta: Floats, y: Floats, reach: float) -> Floats:
        """Return less than one where the margin might be reached."""
        return np.clip((1.0 - y * eta) / reach, 0.0, 1.0)

    def check_target(self, y: Floats) -> Floats:
        """Check a target of two classes; map {0, 1} to {−1, 1}."""
        return _as_signs(y, self.name)


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
