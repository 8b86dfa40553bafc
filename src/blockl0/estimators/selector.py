"""`BestSubsetSelector`, column selection as a step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from blockl0.blas import one_blas_thread
from blockl0.estimators.callbacks import fit_task, with_callbacks
from blockl0.estimators.classifier import L0Classifier
from blockl0.estimators.documentation import shares_entries
from blockl0.estimators.linear import CLASSIFICATION, REGRESSION, L0Linear
from blockl0.estimators.regressor import L0Regressor
from blockl0.problem.preprocess import AUTO

Floats = NDArray[np.float64]

COPIED = (
    "coef_", "intercept_", "support_", "n_nonzero_", "objective_", "certificate_", "status_",
    "n_iter_", "history_", "result_", "groups_", "ridge_",
)  # fmt: skip
"""Attributes of its model that a selector also has."""


@shares_entries(L0Regressor)
class BestSubsetSelector(SelectorMixin, L0Linear):
    """Select the best few columns, as a transformer.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        As in `L0Regressor`, or for labels as in `L0Classifier`.
    class_weight : None (default), "balanced" or dict
        For labels, as in `L0Classifier`.
    n_nonzero_coefs, alpha, ridge, fit_intercept, keep, feature_groups, bounds, positive, costs
        As in `L0Regressor`.
    method, effort, time_limit, random_state, verbose, n_jobs
        As in `L0Regressor`.

    Attributes
    ----------
    estimator_ : L0Regressor or L0Classifier
        The fitted model.
    support_, n_nonzero_, objective_, certificate_, status_, result_, n_iter_, history_, ridge_
        Its attributes, as in `L0Regressor`; `get_support` gives a mask.
    coef_ : ndarray
    intercept_ : float or ndarray

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
        ridge: float | str = AUTO,
        loss: Any = "squared",
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
            keep=keep, feature_groups=feature_groups, bounds=bounds, positive=positive,
            costs=costs, method=method, effort=effort, time_limit=time_limit,
            random_state=random_state, verbose=verbose, n_jobs=n_jobs,
        )  # fmt: skip
        self.class_weight = class_weight

    @with_callbacks
    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetSelector:
        """Select the columns of X that predict y best."""
        is_labels = self._loss().takes_labels
        kind = L0Classifier if is_labels else L0Regressor
        several = not is_labels and self._fact("takes_responses")
        self._read_X(X, y=y, y_numeric=not is_labels, multi_output=several)
        given = self.get_params(deep=False)
        if not is_labels and given.pop("class_weight") is not None:
            raise ValueError(
                f"`class_weight` is for labels, got {self.class_weight!r} with "
                f"loss={self._loss_name()!r}, which is for numbers; use `sample_weight`."
            )
        self.estimator_: L0Classifier | L0Regressor = kind(**given)
        with fit_task(self, X, y, sample_weight, n_parts=1) as task:
            with task.part("model", 0).around(self.estimator_):
                self.estimator_.fit(X, y, sample_weight)
            self.__dict__.pop("groups_", None)  # from an earlier fit
            for name in COPIED:
                if hasattr(self.estimator_, name):
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
        tags.target_tags.multi_output = self._fact("takes_responses")
        return tags
