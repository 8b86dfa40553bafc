"""Shared by the linear estimators: input, solve, attributes, linear predictor."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils import check_random_state as check_sklearn_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_is_fitted,
    validate_data,
)

from blockl0.data.blocks import stored
from blockl0.data.dask_arrays import chosen_columns, is_partitioned
from blockl0.data.design import Dense, Design, by_column
from blockl0.errors import warn_caller
from blockl0.estimators.binding import Data, rows_of
from blockl0.estimators.callbacks import CallbackSupportMixin, fit_task
from blockl0.estimators.documentation import Documented
from blockl0.estimators.explain import SummaryMixin
from blockl0.estimators.structure import (
    bound_arrays,
    group_labels,
    positive_columns,
    unit_costs,
)
from blockl0.losses import Loss, get_loss, label_of, names_of
from blockl0.problem.moments import Moments, tall_moments
from blockl0.problem.preprocess import (
    AUTO,
    ConstantColumnWarning,
    Prepared,
    Ridge,
    apply,
    as_ridge,
    drop_unweighted,
    standardized,
)
from blockl0.problem.problem import as_problem
from blockl0.result import Result
from blockl0.solve import solve_problem
from blockl0.text import listing
from blockl0.units import COLUMNS, Units
from blockl0.validate import (
    check_choice,
    check_column_entries,
    check_groups,
    check_keep,
    check_keep_names,
    check_target_numbers,
    check_text_columns,
    check_X,
)

Floats = NDArray[np.float64]

DEFAULT_BUDGET = 10
"""Default budget if neither `n_nonzero_coefs` nor `alpha` is given, unless there are fewer columns.
"""
SEARCHES = ("refit", "exact")
"""Methods of `solve` for a single fit."""
REGRESSION, CLASSIFICATION = names_of(takes_labels=False), names_of(takes_labels=True)
"""Names of losses."""


def _single(y: Any) -> Any:
    """Convert a single column to a vector, with scikit-learn's warning; keep several responses."""
    return column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


def seed_of(random_state: Any) -> int:
    """Derive an integer from a seed, a generator or None, always the same for a given seed."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if type(random_state) is int:
        return _number_of(random_state)
    return int(check_sklearn_random_state(random_state).randint(2**31 - 1))


@lru_cache
def _number_of(seed: int) -> int:
    """Return the first number of scikit-learn's generator, whose state is slow to make."""
    return int(check_sklearn_random_state(seed).randint(2**31 - 1))


class L0Linear(Documented, CallbackSupportMixin, SummaryMixin, BaseEstimator):
    """Base class of the estimators: input, solve, attributes, linear predictor."""

    _losses: tuple[str, ...] = REGRESSION
    _targets: tuple[str, ...] = ("numbers",)
    _most_by_default = DEFAULT_BUDGET
    coef_: Any
    intercept_: Any
    support_: NDArray[np.int64]
    n_nonzero_: int
    classes_: NDArray[Any]

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        alpha: float | None = None,
        ridge: float | str = AUTO,
        loss: Any = "squared",
        fit_intercept: bool = True,
        keep: Any = None,
        feature_groups: Any = None,
        bounds: Any = None,
        positive: Any = None,
        costs: Any = None,
        method: str = "refit",
        effort: str | int = "balanced",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.alpha = alpha
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.keep = keep
        self.feature_groups = feature_groups
        self.bounds = bounds
        self.positive = positive
        self.costs = costs
        self.method = method
        self.effort = effort
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    # input -----------------------------------------------------------------------------------

    def _read_X(self, X: Any, *, used: Any = None, **options: Any) -> Any:
        """Validate X, or (X, y) if `y` is given, refusing NaN and infinity by column name.

        Checks only the `used` columns, if given.
        """
        check_text_columns(X)
        read = self._read_plain(X, **options)
        if read is None:
            read = validate_data(
                self, X, accept_sparse="csc", dtype=np.float64, order="F", ensure_all_finite=False,
                **options,
            )  # fmt: skip
        names = getattr(self, "feature_names_in_", None)
        check_column_entries(read[0] if "y" in options else read, names, used)
        return read

    def _read_plain(self, X: Any, reset: bool = True, y: Any = None, **options: Any) -> Any:
        """Return X, or (X, y), if they are plain arrays that scikit-learn would accept; else None.

        Its own validation gives the same result, but takes longer on small tables than all other
        checks. All other input returns None, so that it raises its own errors.
        """
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.size:
            return None
        if not reset and (hasattr(self, "feature_names_in_") or len(X.T) != self.n_features_in_):
            return None
        if "y_numeric" in options:
            is_plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "iuf"
            if not is_plain or len(y) != len(X) or not np.isfinite(y).all():
                return None
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        return (by_column(X), y) if "y_numeric" in options else by_column(X)

    def _read_blocks(
        self, X: Design, y: Any, y_numeric: bool, multi_output: bool, reset: bool
    ) -> tuple[Design, Any]:
        """Check (X, y) for X read in blocks, whose entries are checked at the first pass."""
        y = _check_y(y, multi_output=multi_output, y_numeric=y_numeric, estimator=self)
        check_consistent_length(X, y)
        self._check_width(X, reset)
        return X, y

    def _check_width(self, X: Design, reset: bool) -> None:
        """Record the number of columns, or refuse one that differs from the fit."""
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )

    def _read_weights(self, sample_weight: Any, X: Any) -> Floats | None:
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _code_target(self, y: Any) -> tuple[Floats, int]:
        """Encode y for the loss; return it with the number of classes (0 for a regression)."""
        return y, 0

    def _loss(self) -> Loss:
        """Return the loss, given by name or as an object, of a kind that the estimator takes."""
        loss = get_loss(self.loss, self._losses)
        kind = "labels" if loss.takes_labels else "numbers"
        if kind not in self._targets or loss.n_outputs != 1:
            raise ValueError(
                f"{type(self).__name__} takes a `loss` of {' or '.join(self._targets)}, got "
                f"{loss.name!r}, which is one of {kind}; by name: {', '.join(self._losses)}."
            )
        return loss

    def _loss_name(self) -> str:
        return label_of(self._loss())

    def _fact(self, name: str) -> bool:
        """Return a fact of the loss, False while the loss is not valid."""
        try:
            return bool(getattr(self._loss(), name))
        except (TypeError, ValueError):
            return False

    def _kept(self, n_features: int) -> NDArray[np.int64]:
        """Return the indices of kept columns, ascending, however they are given."""
        names = getattr(self, "feature_names_in_", None)
        return check_keep(check_keep_names(self.keep, names), n_features, n_features)

    def _structure(self, n_features: int) -> dict[str, Any]:
        """Convert groups, bounds and costs, however given, to the form for `as_problem`."""
        names = getattr(self, "feature_names_in_", None)
        groups = group_labels(self.feature_groups, names, n_features)
        return {
            "feature_groups": groups,
            "bounds": bound_arrays(self.bounds, names, n_features),
            "positive": positive_columns(self.positive, names, n_features),
            "costs": unit_costs(self.costs, names, n_features, groups is not None),
        }

    def _units(self, n_features: int) -> Units:
        """Return the units that a budget counts."""
        names = getattr(self, "feature_names_in_", None)
        return check_groups(group_labels(self.feature_groups, names, n_features), n_features)

    def _n_kept(self, n_features: int) -> int:
        """Count kept columns, or groups with a kept column."""
        return self._units(n_features).of(self._kept(n_features)).size

    # the problem -----------------------------------------------------------------------------

    def _default_budget(self, X: Any, n_kept: int, weights: Any = None) -> int:
        """Compute the default budget: 10, or less if there are few columns or rows."""
        n_rows = rows_of(X).n_distinct(2 * self._most_by_default, weights)
        n_units = self._units(X.shape[1]).number(X.shape[1])
        return min(n_units, max(1, n_kept, min(self._most_by_default, n_rows // 2)))

    def _read(self, X: Any, y: Any, sample_weight: Any = None, reset: bool = True) -> Data:
        """Check and encode the data, for a fit; otherwise as in the fit, changing nothing."""
        # a plain array is neither moments nor anything that is read in parts
        is_plain = type(X) is np.ndarray
        if not is_plain and rows_of(X).has_target:
            return self._read_moments(X, y, sample_weight)
        if not is_plain:
            moments = tall_moments(X, y, sample_weight, self._loss(), **self._drawn_folds())
            if moments is not None:
                return self._read_moments(moments, None, None)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; only "
                "Moments hold it themselves."
            )
        is_numeric = "numbers" in self._targets
        several = is_numeric and self._fact("takes_responses")
        X = X if is_plain else stored(X)
        read = self._read_blocks if rows_of(X).is_stored else self._read_X
        X, y = read(X, y=y, y_numeric=is_numeric, multi_output=several, reset=reset)
        y = _single(y) if several else y
        y = self._read_target(y, reset)
        weights = self._read_weights(sample_weight, X)
        target, n_classes = self._code_target(y)
        if reset:
            self._set_class_weights(y, weights)
        return Data(X, y, target, n_classes, weights)

    def _read_moments(self, moments: Moments, y: Any, sample_weight: Any) -> Data:
        """Return the data of moments, for a fit."""
        moments.check_alone(y, sample_weight)
        moments.check_for(self._loss(), self.fit_intercept)
        self.n_features_in_: Any = moments.n_features
        self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        if moments.feature_names is not None:
            self.feature_names_in_: NDArray[Any] = np.array(moments.feature_names, dtype=object)
        return Data(moments, None, None, 0, None, factor=moments.factor)

    def _drawn_folds(self) -> dict[str, Any]:
        """Return the number of folds for partitions of rows, and the seed."""
        return {}

    def _read_target(self, y: Any, reset: bool) -> Any:
        """Return numbers, or codes of the labels."""
        return check_target_numbers(y)

    def _problem_for(self, data: Data) -> Prepared:
        """Build the problem that the estimator solves, or has solved, for some data."""
        return self._prepare(data, *self._chosen_sparsity())

    def _prepare(self, data: Data, budget: Any, alpha: Any) -> Prepared:
        """Build the problem for the data and a sparsity, with its intercept."""
        ridge, n = self._ridge(), data.X.shape[1]
        X, y, weights = data.X, data.target, data.weights
        if data.factor is None:
            if data.n_classes:
                weights = self._weigh_classes(data.y, weights)
            X, y, weights = drop_unweighted(X, y, weights)
            self._check_classes(y, data.n_classes)
        if budget is None and alpha is None:
            budget = self._default_budget(X, self._n_kept(n))
        given = {
            "n_nonzero_coefs": budget, "alpha": alpha, "keep": self._kept(n),
            "ridge": 0.0 if ridge.per_spread else ridge.value,
            "loss": self._loss().for_classes(data.n_classes), **self._structure(n),
        }  # fmt: skip
        if data.factor is not None:
            prepared = data.factor.prepared(self.fit_intercept, **given)
        else:
            # an array has been checked, with the names of its columns
            X = Dense(X) if isinstance(X, np.ndarray) and X.size else X
            problem = as_problem(X, y, sample_weight=weights, **given)
            prepared = apply(problem, self.fit_intercept)
        return standardized(prepared, ridge.value) if ridge.per_spread else prepared

    def _ridge(self) -> Ridge:
        """Return the ridge, a number or in units of the columns' spreads."""
        return as_ridge(self.ridge, self._loss())

    def _set_class_weights(self, codes: Any, weights: Floats | None) -> None:
        """Compute the weight of the samples of each class, if there are classes."""

    def _weigh_classes(self, codes: Any, weights: Floats | None) -> Floats | None:
        """Multiply sample weights by those of the classes 0, 1, …"""
        return weights

    def _check_classes(self, y: Any, n_classes: int) -> None:
        """Refuse a class without a sample of positive weight: its intercept would be infinite."""
        if not n_classes:
            return
        seen = np.unique(y)
        if seen.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but the data (of "
                "positive weight) contain only one class."
            )
        if n_classes > seen.size:
            absent = self.classes_.tolist()[np.setdiff1d(np.arange(n_classes), seen)[0]]
            raise ValueError(
                f"{type(self).__name__} needs samples of every class, but class "
                f"{absent!r} has none of positive weight; leave its rows out."
            )

    def _chosen_sparsity(self) -> tuple[Any, Any]:
        return self.n_nonzero_coefs, self.alpha

    def _price_at(self, budget: int) -> float:
        """Return the price that `costs` multiply beside a budget; zero without costs."""
        is_charged = self.costs is not None and self.n_nonzero_coefs is not None
        return float(self.alpha or 0.0) if is_charged else 0.0

    def _plain(self) -> Any:
        """Return an estimator without cross-validation that selects as many columns."""
        return self

    def _seed(self) -> int:
        return seed_of(self.random_state)

    def _row_seed(self, seed: int) -> int:
        """Return the seed for drawing rows: that of the fit, or that of 0, so that fits agree."""
        return seed_of(0) if self.random_state is None else seed

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._loss()
        check_choice("method", self.method, SEARCHES)
        data = self._read(X, y, sample_weight)
        options = {}
        if self.method == "refit":
            options = {"effort": self.effort, "n_jobs": self.n_jobs}
        with fit_task(self, data.X, self._labels(data.y), data.weights) as task:
            prepared = self._problem_for(data)
            zero = prepared.problem.zero()
            with task.rounds(lambda w: self._attributes(prepared, w), zero) as callback:
                result = solve_problem(
                    prepared.problem, self.method, random_state=self._seed(),
                    time_limit=self.time_limit, callback=callback, verbose=self.verbose, **options,
                )  # fmt: skip
            self._store(result, prepared)
        # what supports an optimum is not about is no failure: `result_` and `summary` say it
        if result.note is not None and not result.near_dependent:
            warn_caller(result.note, ConvergenceWarning)
        self._warn_of_constants(prepared)
        if self._ridge().value == 0.0:
            self._warn_if_separable(data.X, data.y)

    def _labels(self, y: Any) -> Any:
        """Convert codes back to y as the user gave it."""
        return self.classes_[y] if hasattr(self, "classes_") else y

    def _attributes(self, prepared: Prepared, w: Floats) -> dict[str, Any]:
        """Return the attributes of the estimator at a point of the search, to predict with."""
        coef, intercept = prepared.invert(w)
        n_nonzero, chosen = prepared.problem.units.count(coef), COLUMNS.support(coef)
        coef, intercept = self._shape(coef, intercept)
        return {
            "coef_": coef, "intercept_": intercept, "support_": chosen, "n_nonzero_": n_nonzero,
        }  # fmt: skip

    def _store(self, result: Result, prepared: Prepared) -> None:
        for name, value in self._attributes(prepared, result.coef).items():
            setattr(self, name, value)
        self.result_ = result
        self.__dict__.pop("groups_", None)  # from an earlier fit
        if result.groups is not None:
            self.groups_: Any = result.groups
        self.ridge_: float | str = self._ridge().given
        self.objective_: float = result.objective
        self.certificate_: Any = result.certificate
        self.status_: Any = result.status
        self.n_iter_: int = max(1, result.n_iter)
        self.history_: Any = result.history

    def _shape(self, coef: Floats, intercept: Any) -> tuple[Floats, Any]:
        """Shape the attributes as in scikit-learn: (q, n) for q responses."""
        return coef.T, intercept

    def _warn_of_constants(self, prepared: Prepared) -> None:
        """Warn of columns made redundant by the intercept; zero columns are not worth a warning."""
        design = prepared.centred
        if design is None or not design.is_constant.any():
            return
        names = getattr(self, "feature_names_in_", None)
        found = np.flatnonzero(design.is_constant)
        listed = listing([f"x{j}" if names is None else str(names[j]) for j in found])
        what = f"Columns {listed} are" if found.size > 1 else f"Column {listed} is"
        warn_caller(
            f"{what} constant, up to the rounding of float64: the intercept "
            f"takes {'their' if found.size > 1 else 'its'} place, and the coefficient is 0.",
            ConstantColumnWarning,
        )

    def _warn_if_separable(self, X: Any, y: Any) -> None:
        """Warn if coefficients diverge, which a ridge prevents."""
        loss = self._loss()
        if not loss.needs_ridge:
            return
        eta = rows_of(X).columns(self.support_) @ self.coef_.T[self.support_] + self.intercept_
        if loss.diverges(eta, y):
            warn_caller(
                "The selected columns separate the data: without ridge the coefficients go to "
                f"infinity, and were stopped at a predictor of {np.abs(eta).max():.3g}. Set a "
                "small `ridge`, for example 'standardized:1'.",
                ConvergenceWarning,
            )

    # prediction ------------------------------------------------------------------------------

    def _predictor(self, X: Any) -> Floats:
        check_is_fitted(self)
        # only the chosen columns are checked, so that others may hold anything
        chosen = self.support_
        if is_partitioned(X):
            self._check_width(X, reset=False)
            names = getattr(self, "feature_names_in_", None)
            part = chosen_columns(X, chosen, names)
            part = check_X(part) if chosen.size else part
            return np.asarray(part @ self.coef_.T[chosen]) + self.intercept_
        X = stored(X)
        if rows_of(X).is_stored:
            self._check_width(X, reset=False)
            part = check_X(X.columns(chosen)) if chosen.size else X.columns([])
        else:
            part = self._read_X(X, used=chosen, reset=False)[:, chosen]
        return np.asarray(part @ self.coef_.T[chosen]) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
