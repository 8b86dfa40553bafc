"""`L0Classifier`, for labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from blockl0.blas import one_blas_thread
from blockl0.estimators.callbacks import with_callbacks
from blockl0.estimators.documentation import shares_entries
from blockl0.estimators.linear import CLASSIFICATION, L0Linear
from blockl0.estimators.regressor import L0Regressor
from blockl0.problem.preprocess import AUTO

Floats = NDArray[np.float64]


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
    n_nonzero_coefs, alpha, fit_intercept, keep, feature_groups, bounds, positive, costs, effort
        As in `L0Regressor`; bounds are for two classes.
    time_limit, random_state, verbose, n_jobs
        As in `L0Regressor`.
    method : "refit" (default) or "exact"
        "exact" is for two classes, and continues until the subset is proven optimal or `time_limit`
        is reached: ``result_.gap`` is the proven gap. It is faster the larger the `ridge`; without
        one a `ConvergenceWarning` says that no bound exists.
    ridge : float or "standardized:NUMBER", default="auto"
        As in `L0Regressor`; "auto" is "standardized:1". Not zero by default, since a few columns
        often separate the classes, and the coefficients are then infinite without a ridge. Zero is
        allowed; a warning says when this happens.
    loss : "logistic" (default), "squared_hinge" or a Loss
        The squared hinge is for two classes, and has no `predict_proba`.
    class_weight : None (default), "balanced" or dict
        Weight of the samples of a class, multiplied with their sample weights: one, the same total
        for every class, or as given by label.

    Attributes
    ----------
    classes_ : ndarray
    class_weight_ : ndarray (n_classes,)
    coef_ : ndarray (1, n), or (n_classes, n)
    intercept_ : ndarray (1,), or (n_classes,)
    support_, n_nonzero_, objective_, certificate_, status_, result_, n_iter_, history_, ridge_
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
    classes_: NDArray[Any]

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        alpha: float | None = None,
        ridge: float | str = AUTO,
        loss: Any = "logistic",
        class_weight: Any = None,
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
        super().__init__(
            n_nonzero_coefs, alpha=alpha, ridge=ridge, loss=loss, fit_intercept=fit_intercept,
            keep=keep, feature_groups=feature_groups, bounds=bounds, positive=positive, costs=costs,
            method=method, effort=effort, time_limit=time_limit, random_state=random_state,
            verbose=verbose, n_jobs=n_jobs,
        )  # fmt: skip
        self.class_weight = class_weight

    @with_callbacks
    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L0Classifier:
        """Fit to X (n_samples, n_features), dense or sparse, and labels y (n_samples,)."""
        self._fit(X, y, sample_weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = self._fact("takes_many_classes")
        return tags

    def _read_target(self, y: Any, reset: bool) -> Any:
        if not reset:
            unknown = np.setdiff1d(y, self.classes_)
            if unknown.size:
                raise ValueError(
                    f"`y` must hold the classes of the fit, got {unknown[0]!r}; they are "
                    f"{', '.join(map(repr, self.classes_.tolist()))}."
                )
            return np.searchsorted(self.classes_, y)
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
        given = self.class_weight
        is_balanced = isinstance(given, str) and given == "balanced"
        if not (given is None or is_balanced or isinstance(given, dict)):
            raise ValueError(
                f"`class_weight` must be None, 'balanced' or a dict of labels, got {given!r}."
            )
        found = compute_class_weight(self.class_weight, classes=labels, y=labels[codes])
        if self.class_weight is not None and weights is not None:
            self._check_classes(codes[weights > 0.0], n_classes)
            if not isinstance(self.class_weight, dict):
                # as if every sample occurred as often as its weight says
                found = weights.sum() / (n_classes * np.bincount(codes, weights))
        if np.min(found) < 0.0 or not np.isfinite(found).all():
            raise ValueError(
                f"`class_weight` must hold nonnegative numbers, got {self.class_weight!r}."
            )
        self.class_weight_: Any = found

    def _weigh_classes(self, codes: Any, weights: Floats | None) -> Floats | None:
        if self.class_weight is None:
            return weights
        own = self.class_weight_[codes]
        return own if weights is None else weights * own

    def _shape(self, coef: Floats, intercept: Any) -> tuple[Floats, Any]:
        return np.atleast_2d(coef.T), np.atleast_1d(intercept)

    def decision_function(self, X: Any) -> Floats:
        """Compute x'w + b: (n_samples,) for two classes, (n_samples, n_classes) for more."""
        eta = self._predictor(X)
        return eta.ravel() if eta.shape[1] == 1 else eta

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most likely class of every row of X."""
        eta = self.decision_function(X)
        codes = (eta > 0).astype(np.intp) if eta.ndim == 1 else np.argmax(eta, axis=1)
        return self.classes_[codes]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Predict probabilities of the classes, (n_samples, n_classes)."""
        eta = self.decision_function(X)
        return self._loss().for_classes(self.classes_.size).probabilities(eta)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Predict logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
