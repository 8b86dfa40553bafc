"""Estimators that choose the number of columns: cross-validation and information criteria."""

from __future__ import annotations

from typing import Any

from blockl0.estimators.classifier import L0Classifier
from blockl0.estimators.documentation import shares_entries
from blockl0.estimators.linear_cv import L0LinearCV
from blockl0.estimators.regressor import L0Regressor
from blockl0.problem.preprocess import AUTO
from blockl0.selection import PAIRED

__all__ = ["L0ClassifierCV", "L0RegressorCV"]


@shares_entries(L0Regressor)
class L0RegressorCV(L0LinearCV, L0Regressor):
    """`L0Regressor` that chooses the number of columns along a path.

    Parameters
    ----------
    n_nonzero_coefs : int or sequence of int, optional
        The budgets 0..K, or those given. By default K is 20, but at most the number of columns and
        half the number of distinct rows.
    alpha, ridge, loss, fit_intercept, keep, feature_groups, bounds, positive, random_state, verbose
        As in `L0Regressor`.
    costs : "coefficients", optional
        For groups of several columns: budgets still count groups, and each coefficient of a group
        beyond its first is charged the price of a coefficient in the criterion of the rule, or in
        BIC for rules with folds. Large groups of noise then have no advantage. By default groups
        are not charged. For other costs with a grid of prices use `l0_path` or `GridSearchCV`.
    cv : int, splitter or iterable, optional
        A number, by default 5, of folds shuffled with `random_state`, or with seed 0 if it is None:
        the same folds as on the command line. Others as in scikit-learn; `fit` takes `groups` for
        splitters that need them.
    scoring : str or callable, optional
        Higher is better. By default minus the mean loss on the fold. A callable gets an estimator,
        X as an array or sparse matrix, y, and weights if it takes `sample_weight` (with
        scikit-learn's metadata routing: if it has requested them).
    rule : "paired_se" (default), "one_se", "min", "aic", "bic", "ebic" or "gic"
        "paired_se" takes nothing unless EBIC on all rows finds more than chance; then the ridge
        that predicts best (squared loss, `ridge="auto"`, no `scoring`), and the fewest columns
        within a quarter of the standard error of the difference of the best score with it.
        "one_se" takes the fewest columns within one standard error of the best mean score, "min"
        the best mean score. The others are information criteria of `Path.criterion`, without folds;
        sample weights then count samples.
    effort : "fast" (default), "balanced", "thorough" or int
        Effort for every point of every path.
    time_limit : float, optional
        Seconds for each path. A warning names the sizes that not all of them reached.
    n_jobs : int, optional
        Number of folds to run in parallel.

    Attributes
    ----------
    path_ : Path
        The path on all data, with every budget; `alphas` are the prices of a coefficient.
    costs_ : ndarray (n_features,) or None
        Number of coefficients of each column's group beyond the first, where they are charged.
    best_n_nonzero_coefs_ : int
        The chosen budget.
    best_index_ : int
        Its index in the path.
    best_score_ : float
        Its mean score.
    cv_scores_ : ndarray (n_folds, p)
        Out-of-fold scores; NaN for folds that could not be scored.
    mean_scores_, se_scores_ : ndarray (p,)
        Means over the folds, and their standard errors.
    cv_null_scores_ : ndarray (n_folds,)
        Scores of the intercept alone; ``1 - mean_scores_ / cv_null_scores_.mean()`` is the
        explained share of the loss on held-out rows. Only without `scoring`.
    n_passes_ : int
        Passes over X for all paths together, if it is read in blocks of columns.
    coef_, intercept_, support_, n_nonzero_, objective_, certificate_, status_, n_iter_, history_
        For the chosen point, as in `L0Regressor`.
    ridge_ : float or str
        The ridge used, as accepted by `ridge`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from blockl0 import L0RegressorCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> L0RegressorCV(rule="bic", random_state=0).fit(X, y).best_n_nonzero_coefs_
    5
    """

    def __init__(
        self,
        n_nonzero_coefs: Any = None,
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
        cv: Any = None,
        scoring: Any = None,
        rule: str = PAIRED,
        effort: str | int = "fast",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_nonzero_coefs, alpha=alpha, ridge=ridge, loss=loss, fit_intercept=fit_intercept,
            keep=keep, feature_groups=feature_groups, bounds=bounds, positive=positive, costs=costs,
            effort=effort, time_limit=time_limit, random_state=random_state,
            verbose=verbose, cv=cv, scoring=scoring, rule=rule, n_jobs=n_jobs,
        )  # fmt: skip


@shares_entries(L0RegressorCV, L0Classifier)
class L0ClassifierCV(L0LinearCV, L0Classifier):
    """`L0Classifier` that chooses the number of columns along a path.

    Parameters
    ----------
    n_nonzero_coefs, costs, scoring, rule, effort, time_limit, n_jobs
        As in `L0RegressorCV`.
    cv : int, splitter or iterable, optional
        As in `L0RegressorCV`; shuffled folds are stratified.
    class_weight : dict, "balanced" or None
        As in `L0Classifier`; "balanced" uses the classes of all data, also in the folds.
    alpha, ridge, loss, fit_intercept, keep, feature_groups, bounds, positive, random_state, verbose
        As in `L0Classifier`.

    Attributes
    ----------
    path_, best_n_nonzero_coefs_, best_index_, best_score_, cv_scores_, mean_scores_, se_scores_
        As in `L0RegressorCV`.
    cv_null_scores_, costs_ : ndarray
        As in `L0RegressorCV`.
    cv_accuracies_ : ndarray (n_folds, p)
        Accuracies on held-out rows. Only without `scoring`.
    cv_aucs_ : ndarray (n_folds, p)
        Areas under the ROC curve on held-out rows, for several classes the mean of each against
        the rest; NaN where a fold has rows of one class only. Only without `scoring`.
    guess_accuracy_ : float
        The accuracy of always guessing the most frequent class.
    classes_, coef_, intercept_, support_, n_nonzero_, objective_, certificate_, status_, n_iter_
        For the chosen point, as in `L0Classifier`.
    class_weight_ : ndarray or None
        Weight of the samples of each class.
    history_ : History
    ridge_ : float or str
        The ridge used, as accepted by `ridge`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from blockl0 import L0ClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> L0ClassifierCV(rule="bic", random_state=0).fit(X, y).best_n_nonzero_coefs_
    2
    """

    def __init__(
        self,
        n_nonzero_coefs: Any = None,
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
        cv: Any = None,
        scoring: Any = None,
        rule: str = PAIRED,
        effort: str | int = "fast",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_nonzero_coefs, alpha=alpha, ridge=ridge, loss=loss, class_weight=class_weight,
            fit_intercept=fit_intercept, keep=keep, feature_groups=feature_groups, bounds=bounds,
            positive=positive, costs=costs, effort=effort, time_limit=time_limit,
            random_state=random_state, verbose=verbose, cv=cv, scoring=scoring, rule=rule,
            n_jobs=n_jobs,
        )  # fmt: skip
