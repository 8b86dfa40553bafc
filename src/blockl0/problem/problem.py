"""The problem record, and the objective by which every method is judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.design import Design, as_design, balance, rescaled, unscaled
from blockl0.lazy import lazy
from blockl0.losses import Loss, best_intercept, get_loss
from blockl0.problem.kinds import Kind, kind_of
from blockl0.problem.newton import best_intercepts
from blockl0.problem.orthogonal import independent_positions
from blockl0.run import look
from blockl0.units import COLUMNS, Units
from blockl0.validate import (
    check_bounds,
    check_costs,
    check_groups,
    check_keep,
    check_nonnegative,
    check_sample_weight,
    check_sparsity,
    check_y,
)

Floats = NDArray[np.float64]

AT_ONCE = 4_000_000
"""Entries of X that are copied between two looks at the clock."""
SMALLEST = float(np.finfo(np.float64).tiny)
"""The smallest normal float64, to divide by instead of zero."""


def _no_columns() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Problem:
    """min_w Σ_i weight_i ℓ(x_i'w, y_i) + ½·ridge·‖w‖² + price·‖w‖₀  subject to  ‖w‖₀ ≤ budget.

    If a sample has C predictors, as for the softmax loss or C responses, w is (n, C), and ‖w‖₀
    counts the columns of X with a nonzero coefficient. It counts groups if `units` are groups,
    weighted by `costs` if given. Coefficients stay within `bounds`. Fields are not checked;
    `as_problem` checks and casts user input.

    Attributes
    ----------
    design : Design
        X (m, n).
    y : ndarray (m,) or (m, q)
        Target, in the coding of the loss; several responses for the squared one.
    loss : Loss
    sparsity : Sparsity
    ridge : float
    sample_weight : ndarray (m,) or None
        None means all ones.
    keep : ndarray of int64
        Units that must stay in the support, sorted; ‖w‖₀ counts them even if they are zero.
    has_intercept : bool
        Whether the smooth part is the minimum over an intercept b of f(Xw + b), which is neither
        penalized nor counted. Only for method "refit"; see `blockl0.problem.preprocess`.
    units : Units
        What penalty and budget count.
    bounds : (ndarray (n,), ndarray (n,)) or None
        (low, high) of the coefficients of every column, low ≤ 0 ≤ high, for all outputs.
    costs : ndarray or None
        Cost of every unit as a multiple of the price; None for all ones.
    scale : ndarray (n,) or None
        Factors by which the columns were multiplied, powers of two unless the columns are
        standardized; None for none. All methods work on the scaled columns; `from_given` and
        `to_given` convert coefficients.
    limits : (ndarray (n,), ndarray (n,)) or None
        The bounds of the given columns, where scaling has rounded them.
    shared : dict
        Results computed from the data, shared with problems made from this one by `replace`; see
        `blockl0.problem.factors`.
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
    limits: tuple[Floats, Floats] | None = None
    units: Units = COLUMNS
    bounds: tuple[Floats, Floats] | None = None
    costs: Floats | None = None
    shared: dict[str, Any] = field(default_factory=dict, repr=False)

    @lazy
    def n_samples(self) -> int:
        """Rows of X."""
        return self.design.shape[0]

    @lazy
    def n_features(self) -> int:
        """Columns of X."""
        return self.design.shape[1]

    @lazy
    def n_units(self) -> int:
        """Number of units: columns or groups."""
        return self.units.number(self.n_features)

    def is_kept(self, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which columns belong to units that must stay, (k,)."""
        # searches call this for every support, and most problems keep nothing
        if self.keep.size == 0:
            return np.zeros(columns.size, dtype=np.bool_)
        return np.isin(columns, self.units.columns(self.keep))

    @lazy
    def kind(self) -> Kind:
        """The row of the table of kinds, which has the classes that handle the problem."""
        return kind_of(self)

    @lazy
    def is_plain(self) -> bool:
        """Whether single columns are selected, at one price, without bounds."""
        return self.kind.selection == "columns"

    @lazy
    def is_quadratic(self) -> bool:
        """Whether the smooth part is a quadratic in w, so that block models are exact."""
        return self.loss.is_quadratic

    @lazy
    def n_outputs(self) -> int:
        """Number of predictors per sample."""
        return self.loss.n_outputs

    @lazy
    def weights(self) -> Floats:
        """Sample weights, (m,); do not modify."""
        return np.ones(self.n_samples) if self.sample_weight is None else self.sample_weight

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights over all rows that the design represents."""
        # rows of a factor stand for others, whose weights are not its own
        if self.design.total is not None:
            return self.design.total
        return float(self.n_samples if self.sample_weight is None else self.sample_weight.sum())

    def zero(self) -> Floats:
        """Return w = 0, (n,), or (n, C) for C outputs."""
        n, C = self.n_features, self.n_outputs
        return np.zeros(n if C == 1 else (n, C))

    def smooth(self, w: Floats, eta: Floats | None = None) -> float:
        """Compute Σ_i weight_i ℓ(eta_i, y_i) + ½·ridge·‖w‖²; O(m + n) if eta = Xw is given."""
        eta = self.linear(w) if eta is None else eta
        return self.smooth_at(w, self.predictor(w, eta))

    def smooth_at(self, w: Floats, predictor: Floats) -> float:
        """Compute `smooth` from the predictor with its intercept; O(m + n)."""
        values = self.loss.value(predictor, self.y)
        total = np.add.reduce(values) if self.sample_weight is None else self.sample_weight @ values
        return float(total + 0.5 * self.ridge * np.vdot(w, w) if self.ridge else total)

    @lazy
    def smooth_at_zero(self) -> float:
        """smooth(0), cached."""
        w = self.zero()
        return self.smooth(w, np.zeros((self.n_samples, *w.shape[1:])))

    @lazy
    def sq_norms(self) -> Floats:
        """Squared lengths of the columns, weights and ridge included, (n,); do not modify."""
        return self.design.sq_norms(self.sample_weight) + self.ridge

    @lazy
    def loss_at_zero(self) -> float:
        """Σ_i weight_i ℓ(0, y_i) without an intercept, cached."""
        eta = np.zeros(self.n_samples if self.n_outputs == 1 else (self.n_samples, self.n_outputs))
        return float(self.weights @ self.loss.value(eta, self.y))

    def data_loss(self, w: Floats) -> float:
        """Compute Σ_i weight_i ℓ(eta_i, y_i), without the ridge."""
        return self.smooth(w) - 0.5 * self.ridge * float(np.vdot(w, w))

    def objective(self, w: Floats) -> float:
        """Compute smooth(w) plus the penalty from the data.

        Infinite if w exceeds the budget or violates the bounds.
        """
        # infeasible points cost no pass over X
        held = self.occupied(w)
        if not (self.sparsity.allows(held.size) and self.is_within(w)):
            return np.inf
        return self.smooth_at(w, self.predictor(w, self.linear(w))) + self.cost(held)

    def occupied(self, w: Floats) -> NDArray[np.int64]:
        """Return the units in use: those with a nonzero coefficient and all kept ones.

        A kept unit counts and costs whatever its coefficients.
        """
        chosen = self.units.support(w)
        return np.union1d(chosen, self.keep).astype(np.int64) if self.keep.size else chosen

    def cost(self, units: NDArray[np.int64]) -> float:
        """Return the penalty of some units."""
        if self.costs is None:
            return self.sparsity.cost(units.size)
        return self.sparsity.price * float(self.costs[units].sum())

    def is_within(self, w: Floats) -> bool:
        """Return whether all coefficients are within their bounds."""
        if self.bounds is None:
            return True
        low, high = self.bounds
        rows = w.T  # the last axis runs over the columns
        return bool((rows >= low).all() and (rows <= high).all())

    def gradient(self, w: Floats, eta: Floats | None = None) -> Floats:
        """Compute X'(weight ∘ ∂ℓ/∂eta) + ridge·w, shaped like w.

        One pass over X if eta is given, else two.
        """
        slope = self.loss.gradient(self.predictor(w, eta), self.y)
        if self.sample_weight is not None:
            slope = (self.sample_weight * slope.T).T
        many = slope.ndim == 2
        grad = self.design.cross(slope, slice(None)).T if many else self.design.rmatvec(slope)
        return grad + self.ridge * w if self.ridge else grad

    @lazy
    def gradient_at_zero(self) -> Floats:
        """Gradient at w = 0 and predictor 0, (n,) or (n, C); do not modify."""
        # the slope of squares at zero is −X'y, which the first pass over a large X has computed
        if self.is_quadratic and self.y.ndim == 1:
            products = self.design.known_products(self.y, self.sample_weight)
            if products is not None:
                return -products
        w = self.zero()
        return self.gradient(w, np.zeros((self.n_samples, *w.shape[1:])))

    def unit_columns(self, support: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Return (A, b, scale) with smooth(w) = ½‖b − A(scale ∘ w_S)‖² for the squared loss.

        Columns have length 1, weights and ridge included, so that no decision depends on the user's
        units; zero columns stay zero. A is (m, |S|), or (m + |S|, |S|) with a ridge, and b has as
        many columns as y. Of other losses A tells which columns depend on each other.
        """
        (m, _), k, root, b = self.design.shape, support.size, None, self.y
        if self.sample_weight is not None:
            root = np.sqrt(self.sample_weight)
            b = (b.T * root).T
        A = np.zeros((m + k, k)) if self.ridge else np.empty((m, k), order="F")
        scale, step = np.empty(k), max(AT_ONCE // m, 1)
        # memory that was never touched takes longer than the arithmetic
        for start in range(0, k, step):
            look()
            part = slice(start, start + step)
            some = self.design.columns(support[part])
            some = some if root is None else some * root[:, None]
            lengths = np.sqrt(np.einsum("ij,ij->j", some, some) + self.ridge)
            lengths[lengths == 0.0] = 1.0
            np.divide(some, lengths, out=A[:m, part])
            scale[part] = lengths
        if self.ridge:
            # the ridge is the loss of one more row √ridge·e_j for each column, with target 0
            A[m + np.arange(k), np.arange(k)] = np.sqrt(self.ridge) / scale
            b = np.concatenate([b, np.zeros((k, *b.shape[1:]))])
        return A, b, scale

    def free_columns(self, support: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the columns of a support, (m, a), each contiguous, and their ridges, (a,).

        An intercept adds a first column of ones without ridge.
        """
        n_free = int(self.has_intercept)
        ridge = np.full(n_free + support.size, self.ridge)
        if not n_free:
            return self.design.columns(support), ridge
        A = np.empty((self.n_samples, ridge.size), order="F")
        # by columns, as factorizations read them
        A[:, 0], A[:, 1:], ridge[0] = 1.0, self.design.columns(support), 0.0
        return A, ridge

    def from_given(self, w: Floats) -> Floats:
        """Convert coefficients of the given columns into those of the design's columns."""
        return unscaled(w, self.scale)

    def to_given(self, w: Floats) -> Floats:
        """Convert coefficients of the design's columns into those of the given columns."""
        coef = rescaled(w, self.scale)
        return coef if self.limits is None else np.clip(coef, *self.limits)

    def rescaled_by(self, factors: Floats) -> Problem:
        """Return the same problem in other units, column j multiplied by factors_j; no ridge.

        Factors that are no powers of two round the bounds: outwards, and `to_given` cuts.
        """
        scale = factors if self.scale is None else self.scale * factors
        bounds, limits = self.bounds, self.limits
        if bounds is not None:
            own = 1.0 if self.scale is None else self.scale
            low, high = bounds[0] / factors, bounds[1] / factors
            # the bounds as given are kept once: what is cut later has no rounding of two scalings
            limits = (bounds[0] * own, bounds[1] * own) if limits is None else limits
            bounds = (
                np.nextafter(low, -np.inf, where=low < 0.0, out=low),
                np.nextafter(high, np.inf, where=high > 0.0, out=high),
            )
        return replace(
            self, design=self.design.scaled(factors), scale=scale, bounds=bounds, limits=limits,
            shared={"n_read": self.design.n_read},
        )  # fmt: skip

    def hessian_bound_weights(self) -> Floats | None:
        """Return D (m,) with ∇²smooth ⪯ X' diag(D) X + ridge·I everywhere; None means all ones."""
        bound = self.loss.curvature_bound
        if not np.isfinite(bound):
            raise ValueError(
                f"loss={self.loss.name!r} has unbounded curvature, so there is no global quadratic "
                "majorizer; use a method that works with local curvature."
            )
        if self.sample_weight is None:
            return None if bound == 1.0 else np.full(self.n_samples, bound)
        return bound * self.sample_weight

    def best_intercept(self, eta: Floats, start: float = 0.0) -> Any:
        """Compute argmin_b Σ_i weight_i ℓ(eta_i + b, y_i), a number, or (C,) for C outputs.

        With one output the search begins at `start`.
        """
        if eta.ndim == 2:
            return best_intercepts(self.loss, eta, self.y, self.weights)  # type: ignore[arg-type]
        return best_intercept(self.loss, eta, self.y, self.sample_weight, start)

    def linear(self, w: Floats) -> Floats:
        """Compute Xw, (m,) or (m, C)."""
        if w.ndim == 1:
            return self.design.matvec(w)
        # of several outputs most rows of w are zero, and their columns need not be read
        chosen = COLUMNS.support(w)
        return self.linear_on(chosen, w[chosen])

    def linear_on(self, support: NDArray[np.int64], v: Floats) -> Floats:
        """Compute X_S v, (m,) or (m, C), reading only the columns of the support."""
        if v.ndim == 1:
            return self.design.column_matvec(support, v)
        return self.design.columns(support) @ v

    def predictor(self, w: Floats, eta: Floats | None = None) -> Floats:
        """Compute Xw plus the best intercept, if any; no pass over X if eta = Xw is given."""
        eta = self.linear(w) if eta is None else eta
        return eta + self.best_intercept(eta) if self.has_intercept else eta


def problem_of(
    X: Any, y: Any, *, sample_weight: Any = None, memory_limit: Any = None, **given: Any
) -> Problem:
    """Create the problem for data, or for moments; parameters as for `blockl0.solve`."""
    if type(X) is not np.ndarray:
        # moments stand above this module, as they make problems themselves
        from blockl0.problem.moments import moments_of

        moments = moments_of(X, y, sample_weight, given.get("loss", "squared"))
        if moments is not None:
            return moments.prepared(fit_intercept=False, **given).problem
    if y is None:
        raise TypeError("`y` is missing; only Moments hold the target themselves.")
    return as_problem(X, y, sample_weight=sample_weight, memory_limit=memory_limit, **given)


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
    feature_groups: Any = None,
    bounds: Any = None,
    positive: Any = None,
    costs: Any = None,
    memory_limit: Any = None,
) -> Problem:
    """Check user input, cast it once, and bind it together; parameters as for `blockl0.solve`."""
    loss = get_loss(loss)
    design = as_design(X, memory_limit)
    m, n = design.shape
    units = check_groups(feature_groups, n)
    name = "n_features" if units is COLUMNS else "n_groups"
    sparsity = as_sparsity(n_nonzero_coefs, alpha, units.number(n), name)
    limits = check_bounds(bounds, positive, n)
    costs = check_costs(costs, n, units, alpha)
    sample_weight = check_sample_weight(sample_weight, m)
    target = loss.check_target(check_y(y, m, loss.takes_responses))
    ridge, shared = check_nonnegative("ridge", ridge), {"n_read": design.n_read}
    # only a search with the squared loss begins with products with the target
    design.look(target if loss.is_quadratic and target.ndim == 1 else None, sample_weight)
    # after the first look, which has the lengths that decide about scaling
    design, scale, ridge = balance(design, ridge)
    if limits is not None:
        limits = unscaled(limits[0], scale), unscaled(limits[1], scale)
    kept = check_keep(keep, n, sparsity.budget, units)
    return Problem(
        design=design,
        y=target,
        loss=loss.for_target(target),
        sparsity=sparsity,
        ridge=ridge,
        sample_weight=sample_weight,
        keep=independent(design, kept, sample_weight, ridge, units),
        scale=scale,
        units=units,
        bounds=limits,
        costs=costs,
        shared=shared,
    )


def independent(
    design: Design,
    keep: NDArray[np.int64],
    sample_weight: Floats | None,
    ridge: float,
    units: Units = COLUMNS,
) -> NDArray[np.int64]:
    """Return the units that have a nonzero column independent of the others.

    A kept unit that adds nothing cannot be forced into a support; it is treated as an ordinary
    column or group. See `orthogonal`.
    """
    if keep.size == 0:
        return keep
    # groups are independent if a column of each is, so columns are what is compared
    keep = units.columns(keep)
    X_K = design.columns(keep)
    # a ridge allows columns so small that their squares underflow
    peak = np.abs(X_K).max(axis=0)
    peak[peak == 0.0] = 1.0
    X_K, own = X_K / peak, np.sqrt(ridge) / np.maximum(peak, SMALLEST)
    if sample_weight is not None:
        X_K = X_K * np.sqrt(sample_weight)[:, None]
    norms = np.sqrt(np.einsum("ij,ij->j", X_K, X_K))
    real = norms > 0.0
    if not real.any():
        return keep[real]
    scale = np.hypot(norms, own)[real]
    A = X_K[:, real] / scale
    if ridge:
        A = np.vstack([A, np.diag(own[real] / scale)])
    # a group stays if any of its columns does
    return units.of(keep[real][independent_positions(A)])


class Sparsity(NamedTuple):
    """The paper's h(w): `price`·‖w‖₀ subject to ‖w‖₀ ≤ `budget`.

    The regularized form is a price with ``budget == n_features``, the constrained form a budget
    with ``price == 0``; every combination is allowed.
    """

    price: float
    budget: int

    def cost(self, nnz: int) -> float:
        """Return price · nnz."""
        return self.price * nnz

    def allows(self, nnz: int) -> bool:
        """Return whether nnz is within the budget."""
        return nnz <= self.budget

    def is_feasible(self, w: NDArray[np.float64]) -> bool:
        """Return whether ‖w‖₀ ≤ budget."""
        return self.allows(int(np.count_nonzero(w)))

    def project(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the nearest feasible point: w (n,) with only its `budget` largest |w_j| kept.

        Always a copy. Ties keep the lowest index. O(n log n).
        """
        if self.is_feasible(w):
            return w.copy()
        largest = np.argsort(-np.abs(w), kind="stable")[: self.budget]
        projected = np.zeros_like(w)
        projected[largest] = w[largest]
        return projected


def as_sparsity(
    n_nonzero_coefs: Any, alpha: Any, n_units: int, name: str = "n_features"
) -> Sparsity:
    """Build the record from the public pair (`n_nonzero_coefs`, `alpha`); one is required."""
    return Sparsity(*check_sparsity(n_nonzero_coefs, alpha, n_units, name))
