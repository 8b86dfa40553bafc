"""The softmax loss of several classes, a column in or out for all of them at once.

min_W Σ_i weight_i (log Σ_c exp(eta_ic) − eta_iy) + ½·ridge·‖W‖² + price·(nonzero rows of W), with
eta = XW + 1b'.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.design import Design
from blockl0.scaling import rescaled, unscaled
from blockl0.softmax import minimize_softmax, softmax_loss
from blockl0.sparsity import Sparsity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHARPER = 8.0
"""By how much large predictors are divided less, from one fit of intercepts to the next."""


@dataclass(frozen=True, eq=False)
class MultinomialProblem:
    """The problem record of several classes; fields as in `Problem`, and y holds classes 0..C−1."""

    design: Design
    y: Ints
    n_classes: int
    sparsity: Sparsity
    ridge: float = 0.0
    sample_weight: Floats | None = None
    keep: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    has_intercept: bool = False
    scale: Floats | None = None
    loss: Any = field(
        default_factory=lambda: SimpleNamespace(name="softmax", n_outputs=2, is_quadratic=False)
    )

    @property
    def n_samples(self) -> int:
        """Rows of X."""
        return self.design.shape[0]

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.design.shape[1]

    @property
    def weights(self) -> Floats:
        """Sample weights, (m,)."""
        return np.ones(self.n_samples) if self.sample_weight is None else self.sample_weight

    def from_given(self, W: Floats) -> Floats:
        """As `Problem.from_given`."""
        return unscaled(W, self.scale)

    def to_given(self, W: Floats) -> Floats:
        """As `Problem.to_given`."""
        return rescaled(W, self.scale)

    def predictor(self, W: Floats) -> Floats:
        """eta = XW + 1b' (m, C) with the best intercepts b."""
        support = rows_of(W)
        eta = self.design.columns(support) @ W[support]
        return eta + self.best_intercepts(eta) if self.has_intercept else eta

    def best_intercepts(self, eta: Floats) -> Floats:
        """argmin_b of the loss at eta + 1b', (C,), summing to zero.

        Of large predictors the loss is a sum of maxima, of which Newton's method sees one face at a
        time: it is rounded off first, by dividing all predictors, then less and less.
        """
        b, ones = np.zeros((1, self.n_classes)), np.ones((self.n_samples, 1))
        softness = max(float(np.ptp(eta, axis=1).max(initial=0.0)), 1.0)
        while True:
            b = softness * minimize_softmax(
                ones, self.y, self.weights, np.zeros(1), b / softness, eta / softness
            )
            if softness == 1.0:
                return b[0]
            softness = max(softness / SHARPER, 1.0)

    def value(self, eta: Floats) -> float:
        """Σ_i weight_i (log Σ_c exp(eta_ic) − eta_iy)."""
        return float(self.weights @ softmax_loss(eta, self.y))

    def data_loss(self, W: Floats) -> float:
        """The loss at W, without the ridge."""
        return self.value(self.predictor(as_rows(W, self.n_classes)))

    def objective(self, W: Floats) -> float:
        """Loss + ½·ridge·‖W‖² + price·(nonzero rows); infinite beyond the budget."""
        n_nonzero = rows_of(W).size
        if n_nonzero > self.sparsity.budget:
            return np.inf
        return (
            self.data_loss(W)
            + 0.5 * self.ridge * float(np.sum(W**2))
            + self.sparsity.cost(n_nonzero)
        )


def rows_of(W: Floats) -> Ints:
    """The nonzero rows of W (n, C), ascending."""
    return np.flatnonzero(W if W.ndim == 1 else W.any(axis=1)).astype(np.int64)


def as_rows(w: Floats, n_classes: int) -> Floats:
    """W (n, C); the zero vector (n,) stands for zero rows."""
    return w if w.ndim == 2 else np.zeros((w.size, n_classes))
