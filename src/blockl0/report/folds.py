"""The folds of the report: the selection repeated in each, losses and accuracies along the path."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from blockl0.estimators.cv import L0ClassifierCV, L0RegressorCV
from blockl0.estimators.data import Data
from blockl0.estimators.folds import (
    Split,
    each_fold,
    fit_fold,
    fold_factors,
    shuffled_folds,
    split_rows,
)
from blockl0.losses import get_loss, label_of
from blockl0.problem.preprocess import ConstantColumnWarning
from blockl0.report.plain import compact, ratio
from blockl0.selection import choose_by_score
from blockl0.validate import check_integer

Floats = NDArray[np.float64]


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

    def estimator(self) -> Any:
        """An estimator whose `fit` makes a path, without folds."""
        kind = L0ClassifierCV if self.has_labels else L0RegressorCV
        options: dict[str, Any] = {} if self.ridge is None else {"ridge": self.ridge}
        return kind(
            self.budgets,
            loss=self.loss,
            keep=self.keep,
            rule="bic",
            effort=self.effort,
            random_state=self.random_state,
            time_limit=self.time_limit,
            **options,
        )

    def fit(self) -> Any:
        """The path on all rows; one that the time limit has cut is a note of the page."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # the columns that are constant in all rows were left out before
            warnings.simplefilter("ignore", ConstantColumnWarning)
            return self.estimator().fit(self.X, self.y)

    def data(self, model: Any) -> Data:
        """The rows as the folds of a fitted model see them."""
        return model._read(self.X, self.y, reset=False)


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


def splits_of(cv: Any, X: Any, y: Any, loss: Any, random_state: int) -> list[Split]:
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
            if rarest < 2:
                # one row of a class can only be in one part: no fold can score it
                return []
            n_folds = max(2, min(n_folds, rarest))
        cv = shuffled_folds(n_folds, has_labels, random_state)
    return split_rows(cv, X, y)


def cross_validate(
    task: Task,
    model: Any,
    splits: list[Split],
    n_jobs: int | None,
    tell: Callable[[int, str], None],
) -> Folds:
    """Fit the path of `model` again without each fold, and score it there."""
    n_points, data, seed = len(model.path_), task.data(model), model._seed()
    points = [(0.0, int(budget)) for budget in model.path_.n_nonzero_coefs]
    factors = fold_factors(model, data, splits)
    jobs = [
        (model, data, split, points, seed, part)
        for split, part in zip(splits, factors, strict=True)
    ]
    found: list[Any] = []
    if n_jobs in (None, 1):
        for i, job in enumerate(jobs):
            tell(i, f"fold {i + 1} of {len(splits)}")
            found.append(_score_fold(*job))
    else:
        tell(0, f"{len(splits)} folds")
        found = each_fold(_score_fold, jobs, n_jobs)
    return Folds(
        np.array([_filled(f[0], n_points) for f in found]).reshape(-1, n_points),
        np.array([_filled(f[1], n_points) for f in found]).reshape(-1, n_points),
        np.array([f[2] for f in found]),
        [f[3] for f in found],
    )


def _score_fold(
    model: Any, data: Data, split: Split, points: Any, seed: int, factors: Any
) -> tuple[Floats, Floats, float, list[NDArray[np.int64]]]:
    fitted, fold = fit_fold(model, data, split, points, seed, factors)
    if fitted is None:
        return np.empty(0), np.empty(0), float("nan"), []
    return (
        fitted.losses(fold), fitted.accuracies(fold), fitted.null_loss(fold), fitted.path.supports,
    )  # fmt: skip


def _filled(values: Floats, size: int) -> Floats:
    """Values of a path that may have ended early, with NaN after its end."""
    out = np.full(size, np.nan)
    out[: len(values)] = values
    return out
