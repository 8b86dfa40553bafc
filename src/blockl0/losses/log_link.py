"""Losses of a positive mean exp(eta), and what keeps their exponentials from overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.losses.base import Loss, Words, best_intercept

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
    words = Words("deviance", "D²", "D²", constant="its mean", effect=MULTIPLIES)

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
