"""What the parts of the verifier share: its refusals, the problem, and how data are read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

RIGHT = 1e-9
"""Share of the objective, here and at zero, to which the one that is claimed must be right."""
CLOSE, FIX, SPLIT = 0, 1, 2
"""What a record does with the last open node."""
FLAT = 16.0 * float(np.finfo(np.float64).eps)
"""Share of its numbers to which a column is one number, but for rounding."""

MODERATE, LEAST_CURVATURE = 1e60, 1e-140
"""Lengths that are neither longer nor, other than zero, shorter than its inverse have squares that
are right to rounding. What underflows in b²/2d, less than 1e-307, is then nothing beside the
rounding of a sum of squares, 1e-16 times 1e-120 at least, that each bound allows for."""


class ProofError(ValueError):
    """A proof is refused; the message says why."""


class Verified(NamedTuple):
    """What a proof proves: no admissible support has an objective below the lower bound.

    Fractions if they were computed exactly, else floating-point numbers.

    Attributes
    ----------
    lower_bound, objective : float or Fraction
        The objective is that of the coefficients in the file.
    gap : float or Fraction
        Share of the objective that the lower bound is below it.
    at_zero : float or Fraction
        Loss of all coefficients zero, beside which gaps are seen.
    allowance : float or Fraction
        What the lower bound would be higher by, at most, without allowances for rounding.
    """

    lower_bound: Any
    objective: Any
    gap: Any
    at_zero: Any
    allowance: Any


class Task(NamedTuple):
    """What is minimized, besides the loss."""

    price: float
    ridge: float
    budget: int
    keep: Any


def require(holds: Any, reason: str) -> None:
    """Refuse a proof unless something holds."""
    if not holds:
        raise ProofError(reason)


def require_stated(claim: Any, best: Any, at_zero: Any) -> None:
    """Refuse a proof about other data: the objective of its coefficients is another one here."""
    best, at_zero, stated = float(best), float(at_zero), float(claim["objective"])
    is_right = abs(best - stated) <= RIGHT * (abs(best) + at_zero)
    require(is_right, f"The objective is {best:.12g}, not {stated:.12g} as claimed.")


def require_moderate(A: Any, norms: Any, ridge: float, at_zero: float) -> None:
    """Refuse numbers whose squares over- or underflow: columns, ridge, and the loss at zero."""
    squares = norms[A.any(axis=0)] ** 2
    sizes = np.concatenate([squares, [x for x in (ridge, at_zero) if x != 0.0]])
    is_moderate = bool(((sizes > MODERATE**-2) & (sizes < MODERATE**2)).all())
    require(is_moderate, "Columns, ridge or target are beyond what is proven here: scale them.")


def columns_of(numbers: Any, n_features: int) -> Any:
    """Convert numbers of columns, refused unless they ascend and are there."""
    columns = np.array(numbers)
    require(columns.size == 0 or columns.dtype.kind == "i", "Columns are no whole numbers.")
    columns = columns.astype(int)
    is_within = columns.size == 0 or (0 <= columns[0] and columns[-1] < n_features)
    is_ascending = columns.ndim == 1 and is_within and bool((np.diff(columns) > 0).all())
    require(is_ascending, "Columns are not ascending, or not there.")
    return columns


def dense(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Convert X, y and weights to dense arrays, without the rows of weight zero."""
    X, y = X.toarray() if hasattr(X, "toarray") else np.asarray(X), np.asarray(y, float)
    weights = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, float)
    require((weights >= 0.0).all(), "Weights are negative.")
    counts = weights > 0.0
    X, y, weights = np.array(X[counts], float, order="F"), y[counts], weights[counts]
    are_finite = np.isfinite(X.sum()) and np.isfinite([*y, *weights, weights.sum()]).all()
    require(are_finite, "The data, or the sum of the weights, are not finite.")
    return X, y, weights


def centred(X: Any, weights: Any) -> Any:
    """Subtract the means of X or y, three times, as the first ones are rounded.

    The intercept makes up for whatever is subtracted from a column. Columns that are constant but
    for rounding become zero.
    """
    least = FLAT * abs(X).max(axis=0)
    for _ in range(3):
        X = X - weights @ X / weights.sum()
    return X * (abs(X).max(axis=0) > least)
