"""The unpenalized intercept, handled exactly: implicit centring by `apply`, undone by `invert`.

For the squared loss the best intercept is the weighted mean of the residual, so centring X and y by
weighted means removes it from the problem. For other losses `Problem.has_intercept` minimizes over
the intercept inside the objective, and every local model is centred by its own weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockl0.data.block import centre
from blockl0.data.centred import centred
from blockl0.data.design import Design
from blockl0.losses import Loss
from blockl0.problem.problem import Problem, independent
from blockl0.validate import check_nonnegative

Floats = NDArray[np.float64]

SPLIT = 2.0**27 + 1.0
"""Factor that splits a float64 into halves whose products are exact."""
FIRST_ROWS = 256
"""Rows in the first chunk when distinct rows are counted."""


class ConstantColumnWarning(UserWarning):
    """A column is constant up to rounding, so the intercept makes it redundant."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem after intercept handling, with what is needed to undo it.

    The problem has no intercept, or one inside its objective. `shift_y` are the numbers subtracted
    from y in turn, arrays (q,) for several responses; `centred` is the design with its `means` and
    `rests` if there is an intercept.
    """

    problem: Problem
    shift_y: tuple[Any, ...] = ()
    centred: Any = None

    def invert(self, w: Floats) -> tuple[Floats, Any]:
        """Return (coef, intercept) for the user's data, of the same shape as w.

        The intercept is rounded only once, as it is the difference of numbers that may be much
        larger.
        """
        problem, design = self.problem, self.centred
        if design is None:
            return w, np.zeros(w.shape[1]) if w.ndim == 2 else 0.0
        coef, w = w.copy(), problem.from_given(w)
        # a constant column is part of the intercept
        coef[design.is_flat] = w[design.is_flat] = 0.0
        best: Any = problem.best_intercept(problem.linear(w)) if problem.has_intercept else 0.0
        if w.ndim == 2:
            terms = (np.broadcast_to(best, w.shape[1]), *self.shift_y)
            each = [_intercept(design, v, *own) for v, *own in zip(w.T, *terms, strict=True)]
            return coef, np.array(each)
        return coef, _intercept(design, w, best, *self.shift_y)


def apply(problem: Problem, fit_intercept: bool = True) -> Prepared:
    """Add an unpenalized intercept to a problem; its objective is then minimized over it."""
    if not fit_intercept:
        return Prepared(problem)
    weights = problem.sample_weight
    design = centred(problem.design, weights)
    # a kept column may be constant, which the intercept makes redundant
    keep = independent(design, problem.keep, weights, problem.ridge, problem.units)
    y, shifts, has_intercept = problem.y, (), True
    # what the intercept absorbs costs digits of the residuals if it stays in y
    if problem.loss.shifts_with_target:
        y, shifts = _shift(y, weights, problem.is_quadratic)
        has_intercept = not problem.is_quadratic
    problem = replace(problem, keep=keep, design=design, y=y, has_intercept=has_intercept)
    return Prepared(problem, shifts, design)


def standardized(prepared: Prepared, ridge: float) -> Prepared:
    """Give a problem without ridge one in units of its columns: ½·ridge·Σ_j (spread_j w_j)².

    The columns are divided by their spreads: standard deviations where there is an intercept, root
    mean squares without one. A sparse X stays sparse. O(mn).
    """
    problem = prepared.problem
    spread = np.sqrt(problem.design.sq_norms(problem.sample_weight) / problem.total_weight)
    # constant columns keep their unit: any would do
    problem = problem.rescaled_by(1.0 / np.where(spread > 0.0, spread, 1.0))
    problem = replace(problem, ridge=ridge)
    return replace(
        prepared, problem=problem, centred=None if prepared.centred is None else problem.design
    )


def _shift(y: Floats, weights: Floats | None, is_quadratic: bool) -> tuple[Floats, tuple[Any, ...]]:
    """Subtract from the target what an intercept absorbs; return also the shifts."""
    if y.ndim == 2:
        each = [_shift(response, weights, is_quadratic) for response in y.T]
        shifts = tuple(np.array(own) for own in zip(*(own for _, own in each), strict=True))
        return np.column_stack([response for response, _ in each]), shifts
    if not is_quadratic:
        # outliers, for which a robust loss is chosen, must not cost the other values digits
        middle = float(np.median(y))
        return y - middle, (middle,)
    y, mean, rest = centre(y, weights)
    return y, (mean, rest)


def _intercept(design: Any, w: Floats, *terms: float) -> float:
    """Compute Σ terms − Σ_j mean_j w_j as if exactly, rounded once."""
    support = w.nonzero()[0]
    v, rests = w[support], design.rests[support]
    products = exact_products(design.means[support], v)
    if rests.any():
        products += exact_products(rests, v)
    return math.fsum([*terms, *(-product for product in products)])


def exact_products(a: Floats, b: Floats) -> list[float]:
    """Return numbers whose exact sum is Σ_j a_j b_j: rounded products and rounding errors.

    Dekker's algorithm, in pure Python: for few numbers calls of NumPy take longer.
    """
    found: list[float] = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        p, (x_high, x_low), (y_high, y_low) = x * y, _halves(x), _halves(y)
        e = ((x_high * y_high - p) + x_high * y_low + x_low * y_high) + x_low * y_low
        # beyond the range of the splitting, above 1e300, the error term is dropped
        found += (p, e) if math.isfinite(e) else (p,)
    return found


def _halves(a: float) -> tuple[float, float]:
    """Split a into two numbers of 26 bits, by Veltkamp's method."""
    high = SPLIT * a - (SPLIT * a - a)
    return high, a - high


def drop_unweighted(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Remove rows of weight zero; return the arguments themselves if there are none.

    X in blocks is returned as it is, as its rows of weight zero contribute nothing.
    """
    if sample_weight is None or np.all(sample_weight > 0.0) or isinstance(X, Design):
        return X, y, sample_weight
    rows = np.flatnonzero(sample_weight)
    return (X.tocsr()[rows] if sp.issparse(X) else X[rows]), y[rows], sample_weight[rows]


def count_distinct_rows(X: Any, enough: int) -> int:
    """Count the distinct rows of X, up to `enough`.

    Rows are compared by a random combination of their entries, O(entries) for all of them. Rows of
    X in blocks, which would take a pass, are assumed to differ.
    """
    if isinstance(X, Design):
        return min(X.shape[0], enough)
    rows = X.tocsr() if sp.issparse(X) else X
    mix = np.random.default_rng(0).standard_normal(X.shape[1])
    seen = np.empty(0)
    step = max(enough, FIRST_ROWS)
    for start in range(0, X.shape[0], step):
        part = rows[start : start + step]
        # huge entries may overflow and make rows look equal, which is rare
        with np.errstate(over="ignore", invalid="ignore"):
            seen = np.union1d(seen, np.nan_to_num(_combine(part, mix)))
        if seen.size >= enough:
            break
        step *= 2
    return min(seen.size, enough)


def _combine(rows: Any, mix: Floats) -> Floats:
    """Compute Σ_j row_j mix_j with the same bits for equal rows, whatever the rows around them."""
    if not sp.issparse(rows):
        return (rows * mix).sum(axis=1)
    terms = rows.data * mix[rows.indices]
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(row, terms, rows.shape[0]).astype(np.float64)


AUTO = "auto"
"""The default: none for numbers; for labels `FOR_LABELS` per standardized column."""
FOR_LABELS = 1.0
"""As strong as the default of scikit-learn's logistic regression on standardized columns."""
STANDARDIZED = "standardized:"
"""Prefix of a ridge in units of spreads."""


class Ridge(NamedTuple):
    """½·value·Σ_j (s_j w_j)², where s_j is the spread of column j, or one.

    The spread is the standard deviation, or without an intercept the root mean square, so that the
    answer does not depend on the units of the columns.
    """

    value: float
    per_spread: bool = False

    @property
    def given(self) -> float | str:
        """The value of the parameter `ridge` that means the same."""
        return f"{STANDARDIZED}{self.value!r}" if self.per_spread else self.value

    @property
    def words(self) -> str:
        """The ridge as text."""
        return f"{self.value:g}{' per standardized column' if self.per_spread else ''}"


def as_ridge(given: Any, loss: Loss) -> Ridge:
    """Read the parameter `ridge`: "auto", a number, or "standardized:" and a number."""
    if isinstance(given, str) and given == AUTO:
        return Ridge(FOR_LABELS, True) if loss.takes_labels else Ridge(0.0)
    return read_ridge(given)


def read_ridge(given: Any) -> Ridge:
    """Read a number, or "standardized:" and a number."""
    if not isinstance(given, str):
        return Ridge(check_nonnegative("ridge", given))
    kind, _, number = given.rpartition(":")
    try:
        value = float(number) if f"{kind}:" == STANDARDIZED else None
    except ValueError:
        value = None
    if value is None:
        raise ValueError(
            f"`ridge` must be a number, {AUTO!r}, or a number in units of the columns' spreads, as "
            f"in '{STANDARDIZED}0.1', got {given!r}."
        )
    value = check_nonnegative("ridge", value)
    return Ridge(value, value > 0.0)
