"""`L0Regressor`, for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from blockl0.blas import one_blas_thread
from blockl0.estimators.callbacks import with_callbacks
from blockl0.estimators.linear import REGRESSION, L0Linear
from blockl0.problem.moments import Moments

Floats = NDArray[np.float64]


def _can_go_on(self: Any) -> bool:
    return self._goes_on and self._fact("is_quadratic")


class L0Regressor(RegressorMixin, L0Linear):
    """Linear regression on the best few columns, with an intercept that is not penalized.

    Minimizes Σ_i weight_i ℓ(x_i'w + b, y_i) + ½·ridge·‖w‖² + alpha·‖w‖₀ over w and b subject to
    ‖w‖₀ ≤ n_nonzero_coefs, as `blockl0.solve` does. The squared loss is
    ½(y − x'w − b)², summed: scikit-learn's 1/(2m) scaling corresponds to alpha/m and ridge/m.
    The units of the columns matter only to a ridge that is given as a number.

    To select columns in a pipeline use `BestSubsetSelector`: scikit-learn's `SelectFromModel`
    drops coefficients below their mean unless given ``threshold=1e-12``. With scikit-learn 1.9,
    `set_callbacks` shows the rounds of the search, as in ``model.set_callbacks(ProgressBar())``.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Largest number of columns. If neither this nor `alpha` is given, 10, but at most the number
        of columns and half the number of distinct rows; `L0RegressorCV` chooses it from the data.
    alpha : float, optional
        Price of a column, in units of the objective. Alone, or with `n_nonzero_coefs`.
    ridge : float or "standardized:NUMBER", default="auto"
        Weight of half the squared norm of the coefficients. "standardized:0.5" is a ridge of 0.5 on
        columns divided by their standard deviations, so that their units do not matter; the
        coefficients are still those of the columns as given. "auto" is none for numbers, and
        "standardized:1" for labels.
    loss : "squared" (default), "huber", "poisson", "gamma", "tweedie" or a Loss
        "poisson" (counts), "gamma" (positive amounts) and "tweedie" (amounts with many zeros)
        predict exp(x'w + b). A parameter is given as in ``"huber:0.5"``, or with the object, as in
        ``Huber(delta=0.5)``; custom losses are objects as well.
    fit_intercept : bool, default=True
        Constant columns, up to 8 units in the last place, then get no coefficient; a
        `ConstantColumnWarning` names them.
    keep : array-like, optional
        Columns that always stay, as indices, names or a mask; they count towards the budget.
    feature_groups : array-like (n,), list of lists or dict, optional
        A label for every column; columns with the same label enter and leave together, and the
        budget counts groups. Or the columns of each group, by index or name, as {label: columns}.
        See `blockl0.groups_of` for those of an encoder.
    bounds : (low, high) or dict, optional
        Bounds on coefficients, numbers or arrays, with low <= 0 <= high; or
        {column: (low, high)}, with None for no bound.
    positive : bool or array-like, optional
        True, or the columns, as indices, names or a mask, whose coefficients may not be negative.
    costs : array-like (n,) or dict, optional
        Cost of each column or group in units of `alpha`; or {column or label: cost}, others
        costing 1. A budget beside `alpha` counts all alike.
    method : "refit" (default) or "exact"
        "exact" continues until the subset is proven optimal or `time_limit` is reached:
        ``result_.gap`` is the proven gap. Losses other than "squared", and more columns than rows,
        need a `ridge`; without one a `ConvergenceWarning` says that no bound exists.
    effort : "fast", "balanced" (default), "thorough" or int
        Effort of method "refit".
    time_limit : float, optional
        Seconds, after which the best subset so far is returned.
    random_state : int, RandomState, Generator or None
        Same seed, same answer.
    verbose : int or bool, default=0
        Log progress every `verbose` seconds.
    n_jobs : int, optional
        Threads of method "refit", −1 for all cores; by default two if `effort` is more than
        "balanced". The result does not depend on it.

    Attributes
    ----------
    coef_ : ndarray (n,), or (q, n) for q responses
    intercept_ : float, or ndarray (q,)
    support_ : ndarray of int
        The selected columns.
    n_nonzero_ : int
        Number of selected columns, or groups if there are any.
    groups_ : tuple
        The labels of the selected groups, if there are any.
    ridge_ : float or str
        The ridge used, as accepted by `ridge`.
    objective_ : float
        The objective at the solution.
    certificate_ : Certificate or None
        How strong a local minimum it is proven to be.
    status_ : Status
        Why the search stopped; ``status_.message`` says it in words.
    result_ : Result
        The result of `blockl0.solve`, with `lower_bound` and `gap` if a bound is known.
    n_iter_ : int
    history_ : History
    moments_ : Moments
        Moments of all rows, after `partial_fit`.
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
    _goes_on = True

    @with_callbacks
    @one_blas_thread()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> L0Regressor:
        """Fit to X (n_samples, n_features), dense or sparse, and y (n_samples,).

        Several responses (n_samples, q) of the squared loss share one support. `blockl0.Moments`
        replace all three.
        """
        self.__dict__.pop("moments_", None)  # of the rows of an earlier fit
        self._fit(X, y, sample_weight)
        return self

    @available_if(_can_go_on)
    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> L0Regressor:
        """Update the fit with further rows; squared loss only.

        Only `Moments` of the rows are kept, as `moments_`; the result equals that of a fit to all
        rows at once. Rows without weight are ignored. A call of `fit` starts afresh.
        """
        moments = getattr(self, "moments_", None)
        is_first = moments is None
        moments = Moments() if moments is None else moments.copy()
        if is_first:
            moments.check_for(self._loss(), self.fit_intercept)
        data = self._read(X, y, None, reset=is_first)
        moments.update(data.X, data.target, sample_weight)
        names = getattr(self, "feature_names_in_", None)
        moments.feature_names = None if names is None else tuple(map(str, names))
        if moments.n_samples > 0:  # otherwise there is nothing to fit yet
            self._fit(moments, None, None)
        self.moments_ = moments
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the mean for every row of X: x'w + b, or its exponential with a log link."""
        return self._loss().mean(self._predictor(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute R²; with a log link D², the explained share of the deviance."""
        return self._loss().score(self._predictor(X), y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.target_tags is not None:
            tags.target_tags.positive_only = self._fact("has_positive_target")
            tags.target_tags.multi_output = self._fact("takes_responses")
        return tags
