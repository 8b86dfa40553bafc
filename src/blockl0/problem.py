"""The problem record: what goes with what, and the objective that every method is judged by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from blockl0.design import Design, as_design
from blockl0.losses import Loss, best_intercept, get_loss
from blockl0.scaling import balance, rescaled, unscaled
from blockl0.sparsity import Sparsity, as_sparsity
from blockl0.validate import check_keep, check_nonnegative, check_sample_weight, check_y

Floats = NDArray[np.float64]

FULL_RANK = 1e-8
"""Diagonal of the triangular factor of unit columns above which they count as independent."""
SMALLEST = float(np.finfo(np.float64).tiny)
"""The smallest float64 of full precision, to divide by instead of zero."""


def _no_columns() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Problem:
    """min_w Σ_i weight_i ℓ(x_i'w, y_i) + ½·ridge·‖w‖² + price·‖w‖₀  subject to  ‖w‖₀ ≤ budget.

    Fields are taken as they are; `as_problem` checks and casts user input.

    Attributes
    ----------
    design : Design
        X (m, n).
    y : ndarray (m,)
        Target, in the coding of the loss.
    loss : Loss
    sparsity : Sparsity
    ridge : float
    sample_weight : ndarray (m,) or None
        None means all ones.
    keep : ndarray of int64
        Columns that must stay in the support, sorted.
    has_intercept : bool
        Whether the smooth part is the minimum over an intercept b of f(Xw + b), which is not
        penalized and not counted. Method "refit" knows it; see `blockl0.preprocess`.
    scale : ndarray (n,) or None
        Powers of two by which the columns were multiplied; None for none. All methods work with
        the scaled ones; `from_given` and `to_given` convert coefficients.
    """

    design: Design
    y: Floats
    loss: Loss
    sparsity: Sparsity
    ridge: float = 0.0
    sample_weight: Floats | None = None
    keep: NDArray[np.int64] = field(default_factory=_no_columns)
    has_intercept: bool = False
    scale: Floats | None = None

    @property
    def n_samples(self) -> int:
        """Rows of X."""
        return self.design.shape[0]

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.design.shape[1]

    @property
    def is_quadratic(self) -> bool:
        """Whether the smooth part is a quadratic in w, so that block models are exact."""
        return self.loss.name == "squared"

    def smooth(self, w: Floats, eta: Floats | None = None) -> float:
        """Σ_i weight_i ℓ(eta_i, y_i) + ½·ridge·‖w‖²; O(m + n) when eta = Xw is given."""
        values = self.loss.value(self.predictor(w, eta), self.y)
        total = values.sum() if self.sample_weight is None else self.sample_weight @ values
        return float(total + 0.5 * self.ridge * (w @ w))

    def data_loss(self, w: Floats) -> float:
        """Σ_i weight_i ℓ(eta_i, y_i), without the ridge."""
        return self.smooth(w) - 0.5 * self.ridge * float(w @ w)

    def objective(self, w: Floats) -> float:
        """smooth(w) + price·‖w‖₀, recomputed from the data; infinite when ‖w‖₀ > budget."""
        if not self.sparsity.is_feasible(w):
            return np.inf
        return self.smooth(w) + self.sparsity.cost(int(np.count_nonzero(w)))

    def gradient(self, w: Floats, eta: Floats | None = None) -> Floats:
        """X'(weight ∘ ∂ℓ/∂eta) + ridge·w, (n,); one pass over X when eta is given, else two."""
        slope = self.loss.gradient(self.predictor(w, eta), self.y)
        if self.sample_weight is not None:
            slope = self.sample_weight * slope
        grad = self.design.rmatvec(slope)
        return grad + self.ridge * w if self.ridge else grad

    def fit_on(self, support: NDArray[np.int64]) -> Floats:
        """The minimizer of a quadratic smooth part on a support, (n,), by least squares.

        Orthogonal factorization of the m x |S| columns: accurate where normal equations are not.
        """
        w = np.zeros(self.n_features)
        if support.size == 0:
            return w
        X_S, y = self.design.columns(support), self.y
        if self.sample_weight is not None:
            root = np.sqrt(self.sample_weight)
            X_S, y = X_S * root[:, None], y * root
        # unit columns: the rank decision must not depend on the user's units
        scale = np.sqrt(np.einsum("ij,ij->j", X_S, X_S) + self.ridge)
        scale[scale == 0.0] = 1.0
        X_S = X_S / scale
        if self.ridge:
            X_S = np.vstack([X_S, np.diag(np.sqrt(self.ridge) / scale)])
            y = np.concatenate([y, np.zeros(support.size)])
        w[support] = _least_squares(X_S, y) / scale
        return w

    def from_given(self, w: Floats) -> Floats:
        """Turn coefficients of the columns as given into those of the design's columns."""
        return unscaled(w, self.scale)

    def to_given(self, w: Floats) -> Floats:
        """Turn coefficients of the design's columns into those of the columns as given."""
        return rescaled(w, self.scale)

    def hessian_bound_weights(self) -> Floats | None:
        """D (m,) with ∇²smooth ⪯ X' diag(D) X + ridge·I everywhere; None stands for all ones."""
        bound = self.loss.curvature_bound
        if not np.isfinite(bound):
            raise ValueError(
                f"loss={self.loss.name!r} has unbounded curvature, so there is no global quadratic "
                "majorizer; use a method that works with local curvature."
            )
        if self.sample_weight is None:
            return None if bound == 1.0 else np.full(self.n_samples, bound)
        return bound * self.sample_weight

    def best_intercept(self, eta: Floats) -> float:
        """argmin_b Σ_i weight_i ℓ(eta_i + b, y_i)."""
        return best_intercept(self.loss, eta, self.y, self.sample_weight)

    def predictor(self, w: Floats, eta: Floats | None = None) -> Floats:
        """Xw, with the best intercept where there is one; no pass when eta = Xw is given."""
        eta = self.design.matvec(w) if eta is None else eta
        return eta + self.best_intercept(eta) if self.has_intercept else eta


def _least_squares(A: Floats, b: Floats) -> Floats:
    """argmin ‖b − Av‖ for A with unit columns, the shortest one where it is not unique."""
    Q, R = np.linalg.qr(A)
    if A.shape[0] >= A.shape[1] and np.abs(R.diagonal()).min(initial=1.0) > FULL_RANK:
        return solve_triangular(R, Q.T @ b, check_finite=False)
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0], dtype=np.float64)


def as_problem(
    X: Any,
    y: Any,
    *,
    n_nonzero_coefs: Any = None,
    alpha: Any = None,
    ridge: Any = 0.0,
    loss: Any = "squared",
    sample_weight: Any = None,
    keep: Any = None,
) -> Problem:
    """Check user input, cast it once, and bind it together; parameters as in `blockl0.solve`."""
    loss = get_loss(loss)
    design = as_design(X)
    m, n = design.shape
    sparsity = as_sparsity(n_nonzero_coefs, alpha, n)
    design, scale, ridge = balance(design, check_nonnegative("ridge", ridge))
    sample_weight = check_sample_weight(sample_weight, m)
    return Problem(
        design=design,
        y=loss.check_target(check_y(y, m)),
        loss=loss,
        sparsity=sparsity,
        ridge=ridge,
        sample_weight=sample_weight,
        keep=independent(design, check_keep(keep, n, sparsity.budget), sample_weight, ridge),
        scale=scale,
    )


def independent(
    design: Design, keep: NDArray[np.int64], sample_weight: Floats | None, ridge: float
) -> NDArray[np.int64]:
    """Of some columns those that are not zero and, without ridge, not combinations of others.

    A kept column that adds nothing cannot be held in a support: it is an ordinary one.
    """
    if keep.size == 0:
        return keep
    X_K = design.columns(keep)
    # with a ridge columns may be so small that their squares vanish
    X_K = X_K / np.maximum(np.abs(X_K).max(axis=0), SMALLEST)
    if sample_weight is not None:
        X_K = X_K * np.sqrt(sample_weight)[:, None]
    norms = np.sqrt(np.einsum("ij,ij->j", X_K, X_K))
    keep, X_K = keep[norms > 0.0], X_K[:, norms > 0.0] / norms[norms > 0.0]
    if ridge > 0.0 or keep.size == 0:
        return keep
    found: Any = qr(X_K, mode="economic", pivoting=True)
    R, order = found[1:]
    diagonal = np.abs(R.diagonal())
    return np.sort(keep[order[: diagonal.size][diagonal > FULL_RANK]])
