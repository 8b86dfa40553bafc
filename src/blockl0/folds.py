"""The folds of a cross-validation along a path: what they share, and the scores of one."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring

from blockl0.callbacks import Task
from blockl0.linear import CALLER
from blockl0.losses import Loss
from blockl0.preprocess import Prepared
from blockl0.result import Status

Floats = NDArray[np.float64]


class Data(NamedTuple):
    """What the folds share: y as the splitter sees it, the target as the loss does."""

    X: Any
    y: Any
    target: Any
    n_classes: int
    weights: Any

    def rows(self, where: Any) -> Data:
        """Some of the rows."""
        X = sp.csc_array(self.X.tocsr()[where]) if sp.issparse(self.X) else self.X[where]
        weights = None if self.weights is None else self.weights[where]
        return Data(X, self.y[where], self.target[where], self.n_classes, weights)

    @property
    def is_empty(self) -> bool:
        """Whether no row counts."""
        return len(self.y) == 0 or (self.weights is not None and not self.weights.any())

    def can_train(self, loss: Loss) -> bool:
        """Whether every class is there, and what else the loss needs."""
        if self.is_empty:
            return False
        used = slice(None) if self.weights is None else self.weights > 0.0
        if self.n_classes:
            return np.unique(self.y[used]).size == self.n_classes
        return loss.can_train(self.target[used])


def score_fold(
    est: Any, data: Data, train: Any, test: Any, points: Any, seed: int, task: Task
) -> Floats:
    """The scores of a fold at every point of the path fitted without it, (p,); NaN if none."""
    scores = np.full(len(points), np.nan)
    rest, fold = data.rows(train), data.rows(test)
    metadata = None if rest.weights is None else {"sample_weight": rest.weights}
    task.data = {"X": rest.X, "y": est._labels(rest.y), "metadata": metadata}
    task.begin()
    if not fold.is_empty and rest.can_train(est._loss()):
        prepared = est._prepare(
            rest.X, rest.target, rest.weights, data.n_classes, None, est.alpha or 0.0
        )
        path = est._path_of(prepared, points, seed)
        if path[-1].status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # there is no answer yet that could be returned
        for i, result in enumerate(path):
            scores[i] = _score_point(est, prepared, result.coef, fold)
    task.end()
    return scores


def _score_point(est: Any, prepared: Prepared, w: Floats, fold: Data) -> float:
    coef, intercept = prepared.invert(w)
    if est.scoring is not None:
        return _call_scorer(est, coef, intercept, fold)
    eta = fold.X @ coef + intercept
    values = prepared.problem.loss.value(eta, fold.target)
    return -float(np.average(values, weights=est._weigh_classes(fold.y, fold.weights)))


def _call_scorer(est: Any, coef: Floats, intercept: Any, fold: Data) -> float:
    """A scorer's verdict on the estimator that a point of the path makes."""
    chosen = np.flatnonzero(coef if coef.ndim == 1 else coef.any(axis=1))
    point = est._plain(budget=int(chosen.size))
    point.n_features_in_ = fold.X.shape[1]
    if is_classifier(est):
        point.classes_ = est.classes_
    point.coef_, point.intercept_ = point._shape(coef, intercept)
    point.support_, point.n_nonzero_ = chosen, int(chosen.size)
    scorer: Any = check_scoring(point, scoring=est.scoring)
    weights = {"sample_weight": fold.weights} if fold.weights is not None else {}
    if weights and not _takes_weights(scorer):
        weights = {}
    return float(scorer(point, fold.X, est._labels(fold.y), **weights))


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer, or the metric inside it, has an argument `sample_weight`."""
    parameters = signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


def warn_of_folds(scores: Floats, points: Any) -> None:
    """Say which folds have no scores, and where time limits have cut others."""
    is_scored = np.isfinite(scores)
    used = is_scored.any(axis=1)
    reached = int(is_scored[used].sum(axis=1).min(initial=len(points)))
    if not used.all():
        warnings.warn(
            f"{np.count_nonzero(~used)} of {used.size} folds could not be scored and were left "
            "out; `cv_scores_` holds NaN for them.",
            stacklevel=CALLER + 2,
        )
    if reached < len(points):
        warnings.warn(
            f"Not every fold has a score beyond n_nonzero_coefs={points[reached - 1][1]}, by the "
            "time limit or by the scorer; larger ones were not considered.",
            ConvergenceWarning,
            stacklevel=CALLER + 2,
        )
