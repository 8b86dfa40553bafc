"""The other losses of a proof: values, slopes, and tangents with an intercept that may be any.

The tangent of Σ_i ℓ(η_i) at any predictor η is a lower bound: with slopes s_i = ℓ'(η_i),

    Σ_i ℓ(x_i'v + β) ≥ Σ_i [ℓ(η_i) − s_i η_i] + s'Xv + β Σ_i s_i,

where |β| is at most a box, beyond which no intercept could matter. The curvature is the ridge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blockl0.verify.base import ProofError, centred, require

EPSILON = float(np.finfo(np.float64).eps)
FARTHEST = 2.0**20
"""Intercepts are sought up to this; none beyond could matter in a bound."""
LABELS, LOG_LINKS = ("logistic", "squared_hinge"), ("poisson", "gamma", "tweedie")
PARAMETERS: Any = dict(logistic=0.0, squared_hinge=0.0, poisson=1.0, gamma=2.0)
"""Of losses without a choice of one: counts and amounts are Tweedie's."""
SQUARED, OTHERS = "squared", (*PARAMETERS, "huber", "tweedie")
"""The loss of `check.Squares`, and those of this file."""


class GeneralLoss:
    """A loss of the data: A, lengths of its columns, and tangents, as `check.Squares` has them.

    Parameters
    ----------
    name : str
    parameter : float or None
        Of losses that have one.
    X, y, weights : ndarray
        Weights are positive.
    has_intercept : bool
    """

    name: str
    parameter: float
    weights: Any
    has_intercept: bool

    def __init__(
        self, name: str, parameter: Any, X: Any, y: Any, weights: Any, has_intercept: bool
    ) -> None:
        require(name in OTHERS, f"Loss {name} is unknown.")
        self.name, self.parameter = name, float(PARAMETERS.get(name, parameter))
        self.y, self.weights, self.has_intercept, self.box = y, weights, has_intercept, 0.0
        self.log_y = np.zeros(y.size)
        self._check_target()
        self.X = centred(X, weights) if has_intercept else X
        self.A = np.sqrt(weights)[:, None] * self.X
        self.norms: Any = np.linalg.norm(self.A, axis=0)

    def _check_target(self) -> None:
        """Refuse targets and parameters for which the loss is not convex, or negative."""
        if self.name in LABELS:
            self.y: Any = np.where(self.y == 0.0, -1.0, self.y)
            require(np.isin(self.y, (-1.0, 1.0)).all(), "Labels are -1 and 1, or 0 and 1.")
        elif self.name in LOG_LINKS:
            least = self.y.min() if self.parameter < 2.0 else self.y.min() - 1e-300
            require(1.0 <= self.parameter <= 2.0 and least >= 0.0, "Target or power is wrong.")
            self.log_y: Any = np.log(np.where(self.y > 0.0, self.y, 1.0))
        else:
            require(self.parameter > 0.0, "The loss has no such parameter.")

    def tangent(self, w: Any) -> tuple[float, float, float, Any, float]:
        """Return loss(w); c and u with loss(v) ≥ c + u'Av; errors of c and of a_j'u over ‖a_j‖.

        The predictor may be any, so that its own rounding does not matter. Slopes are known to a
        few ε of what they are made of.
        """
        weights, eta = self.weights, self._predictor(w)
        value, slope, size = self._at(eta)
        size, far = size + abs(slope), 1.0 + abs(eta) + abs(self.log_y) + self.box
        blur = EPSILON * (eta.size + np.count_nonzero(w) + 16.0)
        constant = float(weights @ value - (weights * slope) @ eta)
        constant -= self.box * abs(weights @ slope)
        doubt = blur * float(weights @ (abs(value) + size * far))
        error = blur * float(np.sqrt(weights @ size**2))
        return float(weights @ value), constant, doubt, np.sqrt(weights) * slope, error

    def bound_intercepts(self, ceiling: float, ridge: float) -> None:
        """Find a box that holds the best intercept of every point as good as the ceiling.

        As losses are not negative, its ½·ridge·‖v‖² is at most the ceiling, which limits |x_i'v|;
        as slopes increase, so does their sum.
        """
        if not self.has_intercept:
            return
        reach = 1.01 * np.linalg.norm(self.X, axis=1) * np.sqrt(2.0 * ceiling / ridge)
        require((reach < FARTHEST**4).all(), "There is no bound on the intercept.")
        farthest = 300.0 if self.name in LOG_LINKS else np.inf  # exponentials stay finite
        for box in 2.0 ** np.arange(100):
            up = self._slope(np.minimum(box - reach, farthest))
            if up > 0.0 > self._slope(np.maximum(reach - box, -farthest)):
                self.box: float = float(box)
                return
        raise ProofError("There is no bound on the intercept.")

    def _at(self, eta: Any) -> Any:
        """Return values, slopes, and the sizes to which the rounding of slopes is relative."""
        y, r, t, parameter = self.y, eta - self.y, eta * self.y, self.parameter
        if self.name not in (*LABELS, *LOG_LINKS):
            slope = np.clip(r, -parameter, parameter)
            return slope * (r - 0.5 * slope), slope, abs(slope)
        if self.name in LABELS[:1]:
            small = np.exp(-abs(t))
            share = np.where(t > 0.0, small, 1.0) / (1.0 + small)
            return np.logaddexp(0.0, -t), -y * share, share
        if self.name in LABELS:
            short = np.maximum(0.0, 1.0 - t)
            return 0.5 * short**2, -y * short, short
        a, b, log_y = parameter - 1.0, 2.0 - parameter, self.log_y
        u, down, up = eta - log_y, y * np.exp(-a * eta), np.exp(b * eta)
        rests = sum((np.expm1(c * u) - c * u) / abs(c) for c in (-a, b) if c != 0.0)
        value = np.where(y > 0.0, np.exp(b * log_y) * rests, up / b if b else 0.0)
        return value, up - down, (up + down) * (1.0 + abs(eta) + abs(log_y))

    def _slope(self, eta: Any) -> float:
        """Return the slope of the loss in the intercept, less what may be rounding."""
        _, slope, size = self.weights * self._at(eta)
        slopes, sizes = np.nan_to_num([slope, size + abs(slope)], posinf=1e200, neginf=-1e200)
        doubt = EPSILON * (eta.size + 16.0) * sizes.sum()
        return float(np.sign(slopes.sum()) * max(abs(slopes.sum()) - doubt, 0.0))

    def _predictor(self, w: Any) -> Any:
        """Return Xw + b, for an intercept b that is about the best one, by bisection."""
        at, intercept = np.flatnonzero(w), 0.0
        eta = self.A[:, at] @ w[at] / np.sqrt(self.weights)
        for step in FARTHEST * 0.5 ** np.arange(1, 90 * self.has_intercept):
            slope = self._slope(eta + intercept)
            if slope == 0.0:  # to rounding
                break
            intercept -= step * np.sign(slope)
        return eta + intercept
