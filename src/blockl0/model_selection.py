"""Estimators that choose the number of columns: cross-validation and information criteria."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from blockl0.estimators import L0Classifier, L0Linear, L0Regressor
from blockl0.multinomial import softmax_loss
from blockl0.path import Path, solve_path
from blockl0.preprocess import Prepared
from blockl0.selection import CRITERIA, RULES, best_point, choose_by_score
from blockl0.validate import check_choice, check_keep_names, check_path

Floats = NDArray[np.float64]

DEFAULT_LARGEST = 20
"""The largest budget of a path where none is given."""


class L0LinearCV(L0Linear):
    """What the two share: the grid, the folds, the choice, the refit."""

    _most_by_default = DEFAULT_LARGEST
    cv: Any
    scoring: Any
    rule: str
    n_jobs: Any

    def _fit_path(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        check_choice("rule", self.rule, (*RULES, *CRITERIA))
        weights = self._read_weights(sample_weight, X)
        target, n_classes = self._code_target(y)
        points = self._points(X, weights)
        seed = self._seed()
        prepared = self._prepare(X, target, weights, n_classes, None, self.alpha or 0.0)
        if self.rule in RULES:
            splitter: Any = check_cv(self.cv, y, classifier=is_classifier(self))
            # split before the long part: a wrong splitter is refused at once
            splits = list(splitter.split(X, y, groups))
            jobs = (
                delayed(_score_fold)(self, X, y, target, n_classes, weights, *split, points, seed)
                for split in splits
            )
            scores = np.array(Parallel(n_jobs=self.n_jobs)(jobs))
        path = self._path_of(prepared, points, seed)
        if self.rule in RULES:
            scores = scores[:, : len(path)]
            chosen, mean, error = choose_by_score(scores, path.n_nonzero, self.rule)
            if not np.isfinite(scores).all(axis=1).all():
                warnings.warn(
                    "Some folds could not be scored at every point of the path and were left out "
                    "there; `cv_scores_` holds NaN for them.",
                    stacklevel=3,
                )
            self.cv_scores_, self.mean_scores_, self.se_scores_ = scores, mean, error
            self.best_score_ = float(mean[chosen])
        else:
            chosen = best_point(self.rule, path)
        self._keep_path(path, prepared, chosen)

    def _points(self, X: Any, weights: Any) -> list[tuple[float, int]]:
        """(price, budget) along the path: 0..K for a number K, or the budgets given."""
        keep = check_keep_names(self.keep, getattr(self, "feature_names_in_", None))
        n_kept = (
            0 if keep is None else int(np.size(np.flatnonzero(keep) if _is_mask(keep) else keep))
        )
        budgets = self.n_nonzero_coefs
        if budgets is None:
            used = X if weights is None else (X.tocsr() if sp.issparse(X) else X)[weights > 0.0]
            budgets = self._default_budget(used, n_kept)
        if np.ndim(budgets) == 0:
            # one check of type and size for numbers and lists
            top = check_path(budgets, None, 0.0, X.shape[1], 0)[-1][1]
            budgets = range(n_kept, top + 1)
        return check_path(budgets, None, self.alpha or 0.0, X.shape[1], n_kept)

    def _path_of(self, prepared: Prepared, points: Any, seed: int) -> Path:
        return solve_path(
            prepared.problem, points, random_state=seed, time_limit=self.time_limit,
            verbose=self.verbose, effort=self.effort,
        )  # fmt: skip

    def _keep_path(self, path: Path, prepared: Prepared, chosen: int) -> None:
        names = getattr(self, "feature_names_in_", None)
        self.path_ = replace(
            path,
            intercepts=np.array([prepared.invert(result.coef)[1] for result in path]),
            feature_names=None if names is None else tuple(map(str, names)),
        )
        self.best_index_ = chosen
        self.best_n_nonzero_coefs_ = int(path.n_nonzero_coefs[chosen])
        self._store(path[chosen], prepared)

    def _chosen_sparsity(self) -> tuple[Any, Any]:
        return self.best_n_nonzero_coefs_, self.alpha

    def _plain(self, budget: int | None = None) -> Any:
        kind = L0Classifier if is_classifier(self) else L0Regressor
        given = self.get_params(deep=False)
        common = {name: given[name] for name in kind().get_params() if name in given}
        common["n_nonzero_coefs"] = self.best_n_nonzero_coefs_ if budget is None else budget
        return kind(**common)


def _score_fold(
    est: Any, X: Any, y: Any, target: Any, n_classes: int, weights: Any, train: Any, test: Any,
    points: list[tuple[float, int]], seed: int,
) -> Floats:  # fmt: skip
    """The scores of a fold at every point of the path fitted without it, (p,); NaN if none."""
    scores = np.full(len(points), np.nan)
    rows = X.tocsr() if sp.issparse(X) else X
    w_train, w_test = (None, None) if weights is None else (weights[train], weights[test])
    in_use = train if w_train is None else train[w_train > 0.0]
    is_empty = len(test) == 0 or (w_test is not None and not w_test.any()) or len(in_use) == 0
    # a class that the rest of the data does not know cannot be learned
    if is_empty or (n_classes and np.unique(y[in_use]).size < n_classes):
        return scores
    prepared = est._prepare(rows[train], target[train], w_train, n_classes, None, est.alpha or 0.0)
    path = est._path_of(prepared, points, seed)
    X_test = sp.csc_array(rows[test]) if sp.issparse(X) else rows[test]
    for i, result in enumerate(path):
        coef, intercept = prepared.invert(result.coef)
        if est.scoring is None:
            eta = X_test @ coef + intercept
            values = (
                softmax_loss(eta, target[test])
                if n_classes > 2
                else prepared.problem.loss.value(eta, target[test])
            )
            scores[i] = -np.average(values, weights=w_test)
        else:
            scores[i] = _call_scorer(est, coef, intercept, X_test, y[test], w_test)
    return scores


def _call_scorer(est: Any, coef: Floats, intercept: Any, X: Any, y: Any, weights: Any) -> float:
    """A scorer's verdict on the estimator that a point of the path makes."""
    chosen = np.flatnonzero(coef if coef.ndim == 1 else coef.any(axis=1))
    point = est._plain(budget=int(chosen.size))
    point.n_features_in_ = X.shape[1]
    if is_classifier(est):
        point.classes_ = est.classes_
        y = est.classes_[y]
    point.coef_, point.intercept_ = point._shape(coef, intercept)
    point.support_, point.n_nonzero_ = chosen, int(chosen.size)
    scorer: Any = check_scoring(point, scoring=est.scoring)
    return float(
        scorer(point, X, y) if weights is None else scorer(point, X, y, sample_weight=weights)
    )


def _is_mask(keep: Any) -> bool:
    return np.asarray(keep).dtype.kind == "b"


class L0RegressorCV(L0LinearCV, L0Regressor):
    """`L0Regressor` that chooses the number of columns along a path.

    Parameters
    ----------
    n_nonzero_coefs : int or sequence of int, optional
        The budgets 0..K, or those given. By default K is 20, but no more than there are columns, or
        half as many as distinct rows.
    alpha, ridge, loss, fit_intercept, keep, random_state, verbose
        As in `L0Regressor`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default. `fit` takes `groups` for splitters that need them.
    scoring : str or callable, optional
        The higher the better. By default minus the mean loss on the fold.
    rule : "min" (default), "one_se", "aic", "bic", "ebic" or "gic"
        The best mean score; or the fewest columns whose mean score is within one standard error of
        it; or an information criterion of `Path.criterion`, without folds.
    effort : "fast" (default), "balanced", "thorough" or int
        Of every point of every path.
    time_limit : float, optional
        Seconds for each of the paths.
    n_jobs : int, optional
        Folds at a time.

    Attributes
    ----------
    path_ : Path
        On all data, with every budget.
    best_n_nonzero_coefs_, best_index_ : int
        The chosen budget, and its place in the path.
    best_score_ : float
    cv_scores_ : ndarray (n_folds, p)
        Out-of-fold scores; NaN for folds that could not be scored.
    mean_scores_, se_scores_ : ndarray (p,)
    coef_, intercept_, support_, n_nonzero_, objective_, certificate_, status_, n_iter_
        Of the chosen point, as in `L0Regressor`.

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
        ridge: float = 0.0,
        loss: Any = "squared",
        fit_intercept: bool = True,
        keep: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "min",
        effort: str | int = "fast",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_nonzero_coefs, alpha=alpha, ridge=ridge, loss=loss, fit_intercept=fit_intercept,
            keep=keep, effort=effort, time_limit=time_limit, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> L0RegressorCV:
        """Fit the path to the folds and to all data, and keep the best point."""
        self._loss_name()
        X, y = self._read_X(X, y=y, y_numeric=True)
        self._fit_path(X, np.asarray(y, dtype=np.float64), sample_weight, groups)
        return self


class L0ClassifierCV(L0LinearCV, L0Classifier):
    """`L0Classifier` that chooses the number of columns along a path.

    Parameters
    ----------
    n_nonzero_coefs, cv, scoring, rule, effort, time_limit, n_jobs
        As in `L0RegressorCV`; folds are stratified.
    alpha, ridge, loss, fit_intercept, keep, random_state, verbose
        As in `L0Classifier`.

    Attributes
    ----------
    path_, best_n_nonzero_coefs_, best_index_, best_score_, cv_scores_, mean_scores_, se_scores_
        As in `L0RegressorCV`.
    classes_, coef_, intercept_, support_, n_nonzero_, objective_, certificate_, status_, n_iter_
        Of the chosen point, as in `L0Classifier`.

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
        ridge: float = 1e-3,
        loss: Any = "logistic",
        fit_intercept: bool = True,
        keep: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "min",
        effort: str | int = "fast",
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int | bool = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_nonzero_coefs, alpha=alpha, ridge=ridge, loss=loss, fit_intercept=fit_intercept,
            keep=keep, effort=effort, time_limit=time_limit, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> L0ClassifierCV:
        """Fit the path to the folds and to all data, and keep the best point."""
        self._loss_name()
        X, y = self._read_X(X, y=y)
        self._fit_path(X, self._read_labels(y), sample_weight, groups)
        return self
