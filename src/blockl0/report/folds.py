"""Cross-validation with the selection repeated in every fold, and the scores along a path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.parallel import Parallel, delayed

from blockl0.losses import get_loss, label_of
from blockl0.model_selection import L0ClassifierCV, L0RegressorCV
from blockl0.preprocess import ConstantColumnWarning
from blockl0.report.plain import compact, ratio
from blockl0.selection import choose_by_score
from blockl0.validate import check_integer

Floats = NDArray[np.float64]
Splits = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class Task:
    """The data and how to fit them."""

    X: Any
    y: NDArray[Any]
    loss: Any
    budgets: Any
    ridge: float | None
    keep: Any
    effort: str | int
    random_state: int
    time_limit: float | None

    @property
    def has_labels(self) -> bool:
        """Whether y are classes."""
        return get_loss(self.loss).takes_labels

    @property
    def loss_name(self) -> str:
        """What the loss is called, with its parameter."""
        return label_of(get_loss(self.loss))

    @property
    def commonest(self) -> float | None:
        """The share of the largest class: what guessing gets right."""
        if not self.has_labels:
            return None
        return round(float(np.unique(self.y, return_counts=True)[1].max() / self.y.size), 6)

    def estimator(self, budgets: Any = None) -> Any:
        """An estimator whose `fit` makes a path, without folds."""
        kind = L0ClassifierCV if self.has_labels else L0RegressorCV
        options: dict[str, Any] = {} if self.ridge is None else {"ridge": self.ridge}
        return kind(
            self.budgets if budgets is None else budgets,
            loss=self.loss,
            keep=self.keep,
            rule="bic",
            effort=self.effort,
            random_state=self.random_state,
            time_limit=self.time_limit,
            **options,
        )

    def fit(self, rows: NDArray[np.int64], budgets: Any = None) -> Any:
        """The path on some rows; one that the time limit has cut is a note of the page."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # in a fold; the columns that are constant in all rows were left out before
            warnings.simplefilter("ignore", ConstantColumnWarning)
            return self.estimator(budgets).fit(self.take(rows), self.y[rows])

    def take(self, rows: NDArray[np.int64]) -> Any:
        """X of some rows."""
        return sp.csc_array(self.X.tocsr()[rows]) if sp.issparse(self.X) else self.X[rows]

    def coded(self, model: Any, rows: NDArray[np.int64]) -> Any:
        """y of some rows as the loss reads it."""
        if not self.has_labels:
            return self.y[rows].astype(np.float64)
        codes = np.searchsorted(model.classes_, self.y[rows])
        return codes if model.classes_.size > 2 else 2.0 * codes - 1.0

    def predictors(self, model: Any, rows: NDArray[np.int64]) -> list[Floats]:
        """The linear predictor at every point of a fitted model's path."""
        X, path = self.take(rows), model.path_
        return [
            np.asarray(X[:, r.support] @ r.coef[r.support]) + path.intercepts[i]
            for i, r in enumerate(path)
        ]

    def losses_along(self, model: Any, rows: NDArray[np.int64]) -> Floats:
        """The mean loss on some rows at every point of the path."""
        target = self.coded(model, rows)
        is_softmax = self.has_labels and model.classes_.size > 2
        value = get_loss("softmax" if is_softmax else self.loss).value
        return np.array([value(eta, target).mean() for eta in self.predictors(model, rows)])

    def accuracy_along(self, model: Any, rows: NDArray[np.int64]) -> Floats | None:
        """The share of some rows whose class is predicted, at every point; None for numbers."""
        if not self.has_labels:
            return None
        right = np.searchsorted(model.classes_, self.y[rows])
        return np.array(
            [
                ((eta > 0) if eta.ndim == 1 else np.argmax(eta, axis=1)).astype(np.int64) == right
                for eta in self.predictors(model, rows)
            ]
        ).mean(axis=1)


@dataclass(frozen=True, eq=False)
class Folds:
    """Losses and accuracies (n_folds, p) on rows that a fold's path has not seen; NaN if none."""

    losses: Floats
    accuracies: Floats
    nulls: Floats
    supports: list[list[NDArray[np.int64]]]

    @property
    def n_scored(self) -> int:
        """Folds that could be scored."""
        return int(np.isfinite(self.nulls).sum())

    def at(self, i: int) -> dict[str, Any] | None:
        """Mean and standard error at a point: of the loss, the share explained, the accuracy."""
        if not self.n_scored or not np.isfinite(self.losses[:, i]).any():
            return None
        column = self.losses[:, [i]]
        _, mean, error = choose_by_score(-column, np.zeros(1, dtype=np.int64), "min")
        null = float(np.nanmean(self.nulls))
        cv = {
            "loss": compact(-mean[0]),
            "loss_se": compact(error[0]),
            "explained": compact(1.0 - ratio(-mean[0], null)),
            "explained_se": compact(ratio(error[0], null)),
        }
        if np.isfinite(self.accuracies[:, i]).any():
            column = self.accuracies[:, [i]]
            _, mean, error = choose_by_score(column, np.zeros(1, dtype=np.int64), "min")
            cv |= {"accuracy": compact(mean[0]), "accuracy_se": compact(error[0])}
        return cv

    def counts(self, i: int, support: NDArray[np.int64]) -> list[int] | None:
        """In how many folds each column of a point is chosen at the same budget."""
        if not self.n_scored:
            return None
        here = [path[i] for path in self.supports if i < len(path)]
        return [int(sum(int(j) in found for found in map(set, here))) for j in support]


def splits_of(cv: Any, X: Any, y: Any, loss: Any, random_state: int) -> Splits:
    """Rows to fit and rows to score, for every fold; none without cross-validation.

    A number is of shuffled folds: files are often sorted. Labels are stratified, in no more folds
    than the rarest class has rows, at least two.
    """
    has_labels = get_loss(loss).takes_labels
    if cv is None:
        return []
    if not hasattr(cv, "split"):
        n_folds = check_integer("cv", cv, low=2, high=X.shape[0], high_name="n_samples")
        if has_labels:
            rarest = int(np.unique(y, return_counts=True)[1].min())
            n_folds = max(2, min(n_folds, rarest))
            if rarest < 2:
                # one row of a class can only be in one part: no fold can score it
                return []
            cv = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
        else:
            cv = KFold(n_folds, shuffle=True, random_state=random_state)
    return list(cv.split(X, y))


def cross_validate(
    task: Task,
    model: Any,
    splits: Splits,
    n_jobs: int | None,
    tell: Callable[[int, str], None],
) -> Folds:
    """Fit the path of `model` again without each fold, and score it there."""
    n_points = len(model.path_)
    budgets = model.path_.n_nonzero_coefs.tolist()
    found: list[Any] = []
    if n_jobs in (None, 1):
        for i, split in enumerate(splits):
            tell(i, f"fold {i + 1} of {len(splits)}")
            found.append(_score_fold(task, model, budgets, *split))
    else:
        tell(0, f"{len(splits)} folds")
        jobs = (delayed(_score_fold)(task, model, budgets, *split) for split in splits)
        found = list(Parallel(n_jobs=n_jobs)(jobs))
    return Folds(
        np.array([_filled(f[0], n_points) for f in found]).reshape(-1, n_points),
        np.array([_filled(f[1], n_points) for f in found]).reshape(-1, n_points),
        np.array([f[2] for f in found]),
        [f[3] for f in found],
    )


def null_loss(task: Task, model: Any, train: Any, test: Any) -> float:
    """The mean loss on `test` of the intercept that `train` gives, without any column."""
    if model.path_.n_nonzero_coefs[0] != 0:
        model = replace(task, keep=None).fit(train, [0])
    return float(task.losses_along(model, test)[0])


def _score_fold(
    task: Task, model: Any, budgets: Sequence[int], train: Any, test: Any
) -> tuple[Floats, Floats | None, float, list[NDArray[np.int64]]]:
    nothing = (np.empty(0), None, float("nan"), [])
    if len(train) == 0 or len(test) == 0:
        return nothing
    # a class that the rest of the data does not know cannot be learned
    if task.has_labels and np.unique(task.y[train]).size < model.classes_.size:
        return nothing
    part = task.fit(train, budgets)
    return (
        task.losses_along(part, test),
        task.accuracy_along(part, test),
        null_loss(task, part, train, test),
        part.path_.supports,
    )


def _filled(values: Floats | None, size: int) -> Floats:
    """Values of a path that may have ended early, with NaN after its end."""
    out = np.full(size, np.nan)
    if values is not None:
        out[: len(values)] = values[:size]
    return out
