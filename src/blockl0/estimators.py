"""scikit-learn estimators: thin shells around `preprocess.apply`, method "refit" and `invert`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from blockl0.callbacks import fit_task, with_callbacks
from blockl0.docstrings import shares_entries
from blockl0.linear import CLASSIFICATION, REGRESSION, L0Linear
from blockl0.losses import LOSSES

Floats = NDArray[np.float64]


class L0Regressor(RegressorMixin, L0Linear):
    """Linear regression on the best few columns, with an intercept that is not penalized.

    Minimizes Σ_i weight_i ℓ(x_i'w + b, y_i) + ½·ridge·‖w‖² + alpha·‖w‖₀ over w and b subject to
    ‖w‖₀ ≤ n_nonzero_coefs, by method "refit" of `blockl0.solve`. The squared loss is
    ½(y − x'w − b)², summed: scikit-learn's 1/(2m) scaling corresponds to alpha/m and ridge/m.
    Columns are not scaled; with ridge = 0 their units do not matter.

    As a step that selects columns use `BestSubsetSelector`: scikit-learn's `SelectFromModel` drops
    coefficients below their mean unless it is given ``threshold=1e-12``. With scikit-learn 1.9,
    `set_callbacks` shows the rounds of the search, as ``model.set_callbacks(ProgressBar())``.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        At most so many columns. When neither this nor `alpha` is given, 10, but no more than there
        are columns, or half as many as distinct rows; `L0RegressorCV` chooses it from the data.
    alpha : float, optional
        Price of a column, in units of the objective. Alone, or with `n_nonzero_coefs`.
    ridge : float, default=0.0
        Weight of half the squared norm of the coefficients.
    loss : "squared" (default), "huber", "poisson", "gamma", "tweedie" or a Loss
        "poisson", for counts, "gamma", for positive amounts, and "tweedie", for amounts of which
        many are zero, predict exp(x'w + b). A parameter is given as in ``"huber:0.5"``, or with the
        object, as ``Huber(delta=0.5)``; a loss of one's own is an object as well.
    fit_intercept : bool, default=True
        A column that is constant, up to 8 units in the last place, then gets no coefficient; a
        `ConstantColumnWarning` names it.
    keep : array-like, optional
        Columns that always stay, as numbers, names or a mask; they count towards the budget.
    effort : "fast", "balanced" (default), "thorough" or int
        How long to look for better subsets.
    time_limit : float, optional
        Seconds; the best subset so far is then taken.
    random_state : int, RandomState, Generator or None
        Same seed, same answer.
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

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L0Regressor:
        """Fit to X (n_samples, n_features), dense or sparse, and y (n_samples,)."""
        self._loss()
        X, y = self._read_X(X, y=y, y_numeric=True)
        self._fit(X, np.asarray(y, dtype=np.float64), sample_weight)
        return self

    def predict(self, X: Any) -> Floats:
        """The mean for every row of X: x'w + b, or its exponential for losses with a log link."""
        return self._loss().mean(self._predictor(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²; with a log link D², the share of the deviance that is explained."""
        return self._loss().score(self._predictor(X), y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.target_tags is not None:
            tags.target_tags.positive_only = self._fact("has_positive_target")
        return tags


def _has_probabilities(self: Any) -> bool:
    return self._fact("has_probabilities")


@shares_entries(L0Regressor)
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
    loss : "logistic" (default), "squared_hinge" or a Loss
        The squared hinge is for two classes, and has no `predict_proba`.
    class_weight : None (default), "balanced" or dict
        What the samples of a class count, on top of their sample weights: one, as much in sum for
        every class, or as given by label, one for labels that are not there.

    Attributes
    ----------
    classes_ : ndarray
    class_weight_ : ndarray (n_classes,)
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
    _targets = ("labels",)

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        alpha: float | None = None,
        ridge: float = 1e-3,
        loss: Any = "logistic",
        class_weight: Any = None,
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
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L0Classifier:
        """Fit to X (n_samples, n_features), dense or sparse, and labels y (n_samples,)."""
        self._loss()
        X, y = self._read_X(X, y=y)
        self._fit(X, self._read_labels(y), sample_weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = self._fact("takes_many_classes")
        return tags

    def _read_labels(self, y: Any) -> Any:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the "
                f"data contain only one class: {self.classes_[0]!r}."
            )
        if self.classes_.size > 2 and not self._loss().takes_many_classes:
            raise ValueError(
                f"Only binary classification is supported by loss={self._loss_name()!r}, got "
                f"{self.classes_.size} classes; use loss='logistic', which becomes the softmax "
                "loss, or OneVsRestClassifier."
            )
        return codes

    def _code_target(self, y: Any) -> tuple[Floats, int]:
        n_classes = self.classes_.size
        return (y if n_classes > 2 else 2.0 * y - 1.0), n_classes

    def _set_class_weights(self, codes: Any, weights: Floats | None) -> None:
        labels, n_classes = self.classes_, self.classes_.size
        found = compute_class_weight(self.class_weight, classes=labels, y=labels[codes])
        if self.class_weight is not None and weights is not None:
            self._check_classes(codes[weights > 0.0], n_classes)
            if not isinstance(self.class_weight, dict):
                # as if every sample were there as often as its weight says
                found = weights.sum() / (n_classes * np.bincount(codes, weights))
        if np.min(found) < 0.0 or not np.isfinite(found).all():
            raise ValueError(
                f"`class_weight` must hold nonnegative numbers, got {self.class_weight!r}."
            )
        self.class_weight_ = found

    def _weigh_classes(self, codes: Any, weights: Floats | None) -> Floats | None:
        if self.class_weight is None:
            return weights
        own = self.class_weight_[codes]
        return own if weights is None else weights * own

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
        if eta.ndim == 2:
            return LOSSES["softmax"].mean(eta)
        return self._loss().probabilities(eta)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


LABELS_RIDGE = 1e-3
"""Of a selector for labels."""
COPIED = (
    "coef_", "intercept_", "support_", "n_nonzero_", "objective_", "certificate_", "status_",
    "n_iter_", "history_", "result_",
)  # fmt: skip
"""Attributes of its model that a selector has, too."""


@shares_entries(L0Regressor)
class BestSubsetSelector(SelectorMixin, L0Linear):
    """Select the best few columns, as a transformer.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        As in `L0Regressor`, or for labels as in `L0Classifier`.
    class_weight : None (default), "balanced" or dict
        For labels, as in `L0Classifier`.
    ridge : float, optional
        By default 0, and 1e-3 for labels, which a few columns often separate.
    n_nonzero_coefs, alpha, fit_intercept, keep, effort, time_limit, random_state, verbose
        As in `L0Regressor`.

    Attributes
    ----------
    estimator_ : L0Regressor or L0Classifier
        The fitted model.
    support_, n_nonzero_, objective_, certificate_, status_, n_iter_, history_, coef_, intercept_
        Its attributes, as in `L0Regressor`; `get_support` gives a mask.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from blockl0 import BestSubsetSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> BestSubsetSelector(n_nonzero_coefs=3, random_state=0).fit_transform(X, y).shape
    (442, 3)
    """

    _losses = (*REGRESSION, *CLASSIFICATION)
    _targets = ("numbers", "labels")
    n_features_in_: int

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        alpha: float | None = None,
        ridge: float | None = None,
        loss: Any = "squared",
        class_weight: Any = None,
        fit_intercept: bool = True,
        keep: Any = None,
        effort: str | int = "balanced",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            n_nonzero_coefs, alpha=alpha, loss=loss, fit_intercept=fit_intercept, keep=keep,
            effort=effort, time_limit=time_limit, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.ridge: Any = ridge
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetSelector:
        """Find the columns of X that predict y."""
        is_labels = self._loss().takes_labels
        kind = L0Classifier if is_labels else L0Regressor
        self._read_X(X, y=y, y_numeric=not is_labels)
        given = self.get_params(deep=False)
        if not is_labels and given.pop("class_weight") is not None:
            raise ValueError(
                f"`class_weight` is for labels, got {self.class_weight!r} with "
                f"loss={self._loss_name()!r}, which is for numbers; use `sample_weight`."
            )
        if given["ridge"] is None:
            given["ridge"] = LABELS_RIDGE if is_labels else 0.0
        self.estimator_ = kind(**given)
        with fit_task(self, X, y, sample_weight, n_parts=1) as task:
            with task.part("model", 0).around(self.estimator_):
                self.estimator_.fit(X, y, sample_weight)
            for name in COPIED:
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
