"""scikit-learn estimators: thin shells around `preprocess.apply`, method "refit" and `invert`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import check_random_state as check_sklearn_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from blockl0.design import as_design
from blockl0.explain import SummaryMixin
from blockl0.losses import LARGEST_LOG_MEAN, get_loss
from blockl0.multinomial import MultinomialProblem, MultinomialSearch, probabilities
from blockl0.newton import newton_on
from blockl0.preprocess import Prepared, apply, count_distinct_rows, drop_unweighted
from blockl0.problem import as_problem
from blockl0.refit import refit_options, solve_refit
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.sparsity import as_sparsity
from blockl0.validate import (
    check_choice,
    check_column_entries,
    check_keep,
    check_keep_names,
    check_nonnegative,
    check_time_limit,
    check_verbose,
)

Floats = NDArray[np.float64]

DEFAULT_BUDGET = 10
"""Nonzeros where neither `n_nonzero_coefs` nor `alpha` is given and there are as many columns."""
REGRESSION = ("squared", "huber", "poisson")
CLASSIFICATION = ("logistic", "squared_hinge")
EXTREME, VANISHING = 30.0, -20.0
"""A logistic predictor beyond the one in magnitude, or a log rate below the other, diverges."""


class L0Linear(SummaryMixin, BaseEstimator):
    """What the estimators share: input, the solve, the attributes, the linear predictor."""

    _losses: tuple[str, ...] = REGRESSION
    _most_by_default = DEFAULT_BUDGET

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        alpha: float | None = None,
        ridge: float = 0.0,
        loss: Any = "squared",
        fit_intercept: bool = True,
        keep: Any = None,
        effort: str | int = "balanced",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.alpha = alpha
        self.ridge = ridge
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.keep = keep
        self.effort = effort
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose

    # input -----------------------------------------------------------------------------------

    def _read_X(self, X: Any, **options: Any) -> Any:
        """X, or (X, y) if `y` is given, validated; NaN and infinity refused by column name."""
        read = validate_data(
            self, X, accept_sparse="csc", dtype=np.float64, order="F", ensure_all_finite=False,
            **options,
        )  # fmt: skip
        names = getattr(self, "feature_names_in_", None)
        check_column_entries(read[0] if "y" in options else read, names)
        return read

    def _read_weights(self, sample_weight: Any, X: Any) -> Floats | None:
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _code_target(self, y: Any) -> tuple[Floats, int]:
        """y in the coding of the loss, and the number of classes (0 for a regression)."""
        return y, 0

    def _loss_name(self) -> str:
        name = self.loss if isinstance(self.loss, str) else getattr(self.loss, "name", self.loss)
        return check_choice("loss", name, self._losses)

    # the problem -----------------------------------------------------------------------------

    def _default_budget(self, X: Any, n_kept: int) -> int:
        """10, less for few columns or rows, so that the default never interpolates."""
        n_rows = count_distinct_rows(X, 2 * self._most_by_default)
        return min(X.shape[1], max(1, n_kept, min(self._most_by_default, n_rows // 2)))

    def _prepare(
        self, X: Any, y: Any, weights: Any, n_classes: int, budget: Any, alpha: Any
    ) -> Prepared:
        """The problem for X, y and a sparsity, with its intercept."""
        X, y, weights = drop_unweighted(X, y, weights)
        if n_classes and np.unique(y).size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but the data (of "
                "positive weight) contain only one class."
            )
        keep = check_keep_names(self.keep, getattr(self, "feature_names_in_", None))
        if budget is None and alpha is None:
            budget = self._default_budget(X, 0 if keep is None else np.size(keep))
        if n_classes > 2:
            sparsity = as_sparsity(budget, alpha, X.shape[1])
            problem: Any = MultinomialProblem(
                as_design(X), y.astype(np.int64), n_classes, sparsity,
                check_nonnegative("ridge", self.ridge), weights,
                check_keep(keep, X.shape[1], sparsity.budget),
            )  # fmt: skip
        else:
            problem = as_problem(
                X, y, n_nonzero_coefs=budget, alpha=alpha, ridge=self.ridge,
                loss=get_loss(self.loss), sample_weight=weights, keep=keep,
            )  # fmt: skip
        return apply(problem, self.fit_intercept)

    def _chosen_sparsity(self) -> tuple[Any, Any]:
        return self.n_nonzero_coefs, self.alpha

    def _plain(self) -> Any:
        """An estimator without cross-validation that selects as many columns."""
        return self

    def _seed(self) -> Any:
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(2**31))
        return int(check_sklearn_random_state(self.random_state).randint(2**31 - 1))

    def _solve(self, prepared: Prepared) -> Result:
        problem = prepared.problem
        price, budget = problem.sparsity
        run = Run(
            problem, check_time_limit(self.time_limit), None, {"method": "refit"},
            check_verbose(self.verbose),
        )  # fmt: skip
        rng = np.random.default_rng(self._seed())
        if price > 0.0 or budget < problem.n_features:
            return solve_refit(problem, run, rng=rng, effort=self.effort)
        # with room for all columns at no price there is nothing to choose, only to fit
        return run.result(_fit_all(problem), Status.CONVERGED, 1)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        weights = self._read_weights(sample_weight, X)
        target, n_classes = self._code_target(y)
        prepared = self._prepare(X, target, weights, n_classes, self.n_nonzero_coefs, self.alpha)
        self._store(self._solve(prepared), prepared)
        if self.ridge == 0.0:
            self._warn_if_separable(X)

    def _store(self, result: Result, prepared: Prepared) -> None:
        coef, intercept = prepared.invert(result.coef)
        chosen = coef if coef.ndim == 1 else coef.any(axis=1)
        self.coef_, self.intercept_ = self._shape(coef, intercept)
        self.support_ = np.flatnonzero(chosen)
        self.n_nonzero_ = int(self.support_.size)
        self.objective_ = result.objective
        self.certificate_ = result.certificate
        self.status_ = result.status
        self.n_iter_ = max(1, result.n_iter)
        self.history_ = result.history

    def _shape(self, coef: Floats, intercept: Any) -> tuple[Floats, Any]:
        return coef, intercept

    def _warn_if_separable(self, X: Any) -> None:
        """Say so where coefficients go to infinity, which a ridge prevents."""
        if self._loss_name() not in ("logistic", "poisson"):
            return
        eta = X[:, self.support_] @ self.coef_.T[self.support_] + self.intercept_
        lost = np.abs(eta) > EXTREME if self._loss_name() == "logistic" else eta < VANISHING
        if np.any(lost):
            warnings.warn(
                "The selected columns separate the data: without ridge the coefficients go to "
                f"infinity, and were stopped at a predictor of {np.abs(eta).max():.3g}. Set a "
                "small `ridge`, for example 1e-3.",
                ConvergenceWarning,
                stacklevel=4,
            )

    # prediction ------------------------------------------------------------------------------

    def _predictor(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = self._read_X(X, reset=False)
        # only the chosen columns are read
        part = X[:, self.support_]
        return np.asarray(part @ self.coef_.T[self.support_]) + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class L0Regressor(RegressorMixin, L0Linear):
    """Linear regression on the best few columns, with an intercept that is not penalized.

    Minimizes Σ_i weight_i ℓ(x_i'w + b, y_i) + ½·ridge·‖w‖² + alpha·‖w‖₀ over w and b subject to
    ‖w‖₀ ≤ n_nonzero_coefs, by method "refit" of `blockl0.solve`. The squared loss is
    ½(y − x'w − b)², summed: scikit-learn's 1/(2m) scaling corresponds to alpha/m and ridge/m.
    Columns are not scaled; with ridge = 0 their units do not matter.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        At most so many columns. When neither this nor `alpha` is given, 10, but no more than there
        are columns, or half as many as distinct rows; `L0RegressorCV` chooses it from the data.
    alpha : float, optional
        Price of a column, in units of the objective. Alone, or with `n_nonzero_coefs`.
    ridge : float, default=0.0
    loss : "squared" (default), "huber", "poisson" or a Loss, as ``Huber(delta=0.5)``
        "poisson" predicts exp(x'w + b) for counts.
    fit_intercept : bool, default=True
    keep : array-like, optional
        Columns that always stay, as numbers, names or a mask; they count towards the budget.
    effort : "fast", "balanced" (default), "thorough" or int
        How long to look for better subsets.
    time_limit : float, optional
        Seconds; the best subset so far is then taken.
    random_state : int, RandomState, Generator or None
    verbose : int or bool, default=0
        Log progress every so many seconds.

    Attributes
    ----------
    coef_ : ndarray (n,)
    intercept_ : float
    support_ : ndarray of int
        The selected columns.
    n_nonzero_ : int
    objective_ : float
        What was minimized, at the answer.
    certificate_ : Certificate or None
        How strong a local minimum it is proven to be.
    status_ : Status
        Why the search stopped; ``status_.message`` says it in words.
    n_iter_ : int
    history_ : History
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from blockl0 import L0Regressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = L0Regressor(n_nonzero_coefs=3, random_state=0).fit(X, y)
    >>> model.feature_names_in_[model.support_].tolist()
    ['bmi', 'bp', 's5']
    """

    _losses = REGRESSION

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L0Regressor:
        """Fit to X (n_samples, n_features), dense or sparse, and y (n_samples,)."""
        self._loss_name()
        X, y = self._read_X(X, y=y, y_numeric=True)
        self._fit(X, np.asarray(y, dtype=np.float64), sample_weight)
        return self

    def predict(self, X: Any) -> Floats:
        """x'w + b for every row of X; its exponential for the Poisson loss."""
        eta = self._predictor(X)
        return np.exp(np.minimum(eta, LARGEST_LOG_MEAN)) if self._loss_name() == "poisson" else eta

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²; for the Poisson loss D², the share of the deviance that is explained."""
        if self._loss_name() != "poisson":
            return super().score(X, y, sample_weight)
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.target_tags is not None and self.loss == "poisson":
            tags.target_tags.positive_only = True
        return tags


def _fit_all(problem: Any) -> Floats:
    """The fit on all columns, the shortest one where it is not unique."""
    everything = np.arange(problem.n_features)
    if isinstance(problem, MultinomialProblem):
        zero = np.zeros((problem.n_features, problem.n_classes))
        return MultinomialSearch(problem, refit_options()[0]).polish(zero, everything, 0).w
    if problem.is_quadratic:
        return problem.fit_on(everything)
    return newton_on(problem, np.zeros(problem.n_features), everything)


def _has_probabilities(self: Any) -> bool:
    return bool(self.loss == "logistic")


class L0Classifier(ClassifierMixin, L0Linear):
    """Linear classification on the best few columns.

    Two classes: Σ_i weight_i ℓ(x_i'w + b, y_i) + ½·ridge·‖w‖² + alpha·‖w‖₀ with the logistic or the
    squared hinge loss. More classes: the softmax loss with one coefficient per class, a column in
    or out for all of them at once; `alpha` and `n_nonzero_coefs` count columns.

    Parameters
    ----------
    n_nonzero_coefs, alpha, fit_intercept, keep, effort, time_limit, random_state, verbose
        As in `L0Regressor`.
    ridge : float, default=1e-3
        Not zero, since a few columns often separate the classes, and the coefficients are then
        infinite without it. Zero is allowed; a warning says when it would have mattered.
    loss : "logistic" (default) or "squared_hinge"
        The squared hinge is for two classes, and has no `predict_proba`.

    Attributes
    ----------
    classes_ : ndarray
    coef_ : ndarray (1, n), or (n_classes, n)
    intercept_ : ndarray (1,), or (n_classes,)
    support_, n_nonzero_, objective_, certificate_, status_, n_iter_, history_
        As in `L0Regressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from blockl0 import L0Classifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = L0Classifier(n_nonzero_coefs=3, effort="fast", random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    """

    _losses = CLASSIFICATION

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        alpha: float | None = None,
        ridge: float = 1e-3,
        loss: Any = "logistic",
        fit_intercept: bool = True,
        keep: Any = None,
        effort: str | int = "balanced",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            n_nonzero_coefs, alpha=alpha, ridge=ridge, loss=loss, fit_intercept=fit_intercept,
            keep=keep, effort=effort, time_limit=time_limit, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L0Classifier:
        """Fit to X (n_samples, n_features), dense or sparse, and labels y (n_samples,)."""
        self._loss_name()
        X, y = self._read_X(X, y=y)
        self._fit(X, self._read_labels(y), sample_weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = self.loss == "logistic"
        return tags

    def _read_labels(self, y: Any) -> Any:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the "
                f"data contain only one class: {self.classes_[0]!r}."
            )
        if self.classes_.size > 2 and self._loss_name() != "logistic":
            raise ValueError(
                f"Only binary classification is supported by loss={self.loss!r}, got "
                f"{self.classes_.size} classes; use loss='logistic', which becomes the softmax "
                "loss, or OneVsRestClassifier."
            )
        return codes

    def _code_target(self, y: Any) -> tuple[Floats, int]:
        n_classes = self.classes_.size
        return (y if n_classes > 2 else 2.0 * y - 1.0), n_classes

    def _shape(self, coef: Floats, intercept: Any) -> tuple[Floats, Any]:
        return np.atleast_2d(coef.T), np.atleast_1d(intercept)

    def decision_function(self, X: Any) -> Floats:
        """x'w + b: (n_samples,) for two classes, (n_samples, n_classes) for more."""
        eta = self._predictor(X)
        return eta.ravel() if eta.shape[1] == 1 else eta

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of every row of X."""
        eta = self.decision_function(X)
        codes = (eta > 0).astype(np.intp) if eta.ndim == 1 else np.argmax(eta, axis=1)
        return self.classes_[codes]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, (n_samples, n_classes)."""
        eta = self.decision_function(X)
        return probabilities(eta) if eta.ndim == 2 else np.column_stack([expit(-eta), expit(eta)])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class BestSubsetSelector(SelectorMixin, L0Linear):
    """Select the best few columns, as a transformer.

    Parameters
    ----------
    loss : "squared" (default), "huber", "poisson", "logistic" or "squared_hinge"
        The last two for labels.
    n_nonzero_coefs, alpha, ridge, fit_intercept, keep, effort, time_limit, random_state, verbose
        As in `L0Regressor`.

    Attributes
    ----------
    estimator_ : L0Regressor or L0Classifier
        The fitted model.
    support_, n_nonzero_, objective_, certificate_, status_, n_iter_, coef_, intercept_
        Its attributes; `get_support` gives a mask.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from blockl0 import BestSubsetSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> BestSubsetSelector(n_nonzero_coefs=3, random_state=0).fit_transform(X, y).shape
    (442, 3)
    """

    _losses = (*REGRESSION, *CLASSIFICATION)
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetSelector:
        """Find the columns of X that predict y."""
        is_labels = self._loss_name() in CLASSIFICATION
        kind = L0Classifier if is_labels else L0Regressor
        self._read_X(X, y=y, y_numeric=not is_labels)
        self.estimator_ = kind(**self.get_params()).fit(X, y, sample_weight)
        names = ("coef_", "intercept_", "support_", "n_nonzero_", "objective_", "certificate_")
        for name in (*names, "status_", "n_iter_", "history_"):
            setattr(self, name, getattr(self.estimator_, name))
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.support_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
