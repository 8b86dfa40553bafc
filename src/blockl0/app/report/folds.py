"""The folds of the report: losses and accuracies along the path on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from blockl0.app.report.plain import compact, ratio
from blockl0.estimators.binding import Data
from blockl0.estimators.cv import L0ClassifierCV, L0RegressorCV
from blockl0.estimators.folds import (
    FoldScores,
    Split,
    each_fold,
    fit_fold,
    fold_factors,
    judge_fold,
    make_splits,
    stacked,
)
from blockl0.estimators.half_samples import ChosenAgain, chosen_again
from blockl0.estimators.linear import seed_of
from blockl0.estimators.reading import guess_share
from blockl0.losses import get_loss, label_of
from blockl0.problem.preprocess import ConstantColumnWarning
from blockl0.run import share_of_time
from blockl0.selection import Comparison, choose_by_score, has_signal
from blockl0.validate import check_integer

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReportTask:
    """The data and how to fit them."""

    X: Any
    y: NDArray[Any]
    loss: Any
    budgets: Any
    ridge: float | str
    keep: Any
    effort: str | int
    random_state: int
    time_limit: float | None
    structure: dict[str, Any] = field(default_factory=dict)

    @property
    def has_labels(self) -> bool:
        """Whether y are classes."""
        return get_loss(self.loss).takes_labels

    @property
    def loss_name(self) -> str:
        """Name of the loss, with its parameter."""
        return label_of(get_loss(self.loss))

    @property
    def commonest(self) -> float | None:
        """Share of the largest class: the accuracy of guessing."""
        if not self.has_labels:
            return None
        return round(guess_share(self.y), 6)

    def estimator(self) -> Any:
        """Return an estimator whose `fit` makes a path, without folds."""
        kind = L0ClassifierCV if self.has_labels else L0RegressorCV
        return kind(
            self.budgets,
            loss=self.loss,
            keep=self.keep,
            rule="bic",
            effort=self.effort,
            random_state=self.random_state,
            time_limit=self.time_limit,
            ridge=self.ridge,
            **self.structure,
        )

    def fit(self) -> Any:
        """Fit the path on all rows; if the time limit cuts it, the page has a note."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # columns that are constant in all rows were left out before
            warnings.simplefilter("ignore", ConstantColumnWarning)
            return self.estimator().fit(self.X, self.y)

    def again(
        self, model: Any, n_samples: int, n_jobs: int | None, tell: Callable[[int, str], None]
    ) -> ChosenAgain:
        """Select columns on half-samples at every size of a fitted path."""
        budgets = [int(budget) for budget in model.path_.n_nonzero_coefs]
        data, seed = self.data(model), seed_of(self.random_state)
        return chosen_again(model, data, budgets, n_samples, seed, n_jobs=n_jobs, tell=tell)

    def data(self, model: Any) -> Data:
        """Return the rows as the folds of a fitted model see them."""
        return model._read(self.X, self.y, reset=False)


@dataclass(frozen=True, eq=False)
class Folds:
    """Losses and accuracies (n_folds, p) on held-out rows; NaN if missing."""

    losses: Floats
    accuracies: Floats
    aucs: Floats
    nulls: Floats
    by_ridge: Floats
    ridge: int
    has_signal: bool

    def choose(self, sizes: NDArray[np.int64]) -> int:
        """Choose a point by the rule "paired_se", the path having so many columns."""
        if not self.has_signal:
            return 0
        return Comparison(self.by_ridge[:, :, : sizes.size]).point(self.ridge, sizes)

    @property
    def n_scored(self) -> int:
        """Number of folds that could be scored."""
        return int(np.isfinite(self.nulls).sum())

    def at(self, i: int) -> dict[str, Any] | None:
        """Compute mean and standard error at a point: loss, explained share, accuracy."""
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
        for name, scores in (("accuracy", self.accuracies), ("auc", self.aucs)):
            if np.isfinite(scores[:, i]).any():
                column = scores[:, [i]]
                _, mean, error = choose_by_score(column, np.zeros(1, dtype=np.int64), "min")
                cv |= {name: compact(mean[0]), f"{name}_se": compact(error[0])}
        return cv


def splits_of(cv: Any, X: Any, y: Any, loss: Any, random_state: int) -> list[Split]:
    """Return rows to fit and rows to score for every fold; none without cross-validation."""
    if cv is None:
        return []
    if not hasattr(cv, "split"):
        cv = check_integer("cv", cv, low=2, high=X.shape[0], high_name="n_samples")
    return make_splits(cv, X, y, get_loss(loss).takes_labels, seed_of(random_state))


def cross_validate(
    task: ReportTask,
    model: Any,
    splits: list[Split],
    n_jobs: int | None,
    tell: Callable[[int, str], None],
) -> Folds:
    """Fit the path of `model` again without each fold, and score it there."""
    n_points, data, seed = len(model.path_), task.data(model), model._seed()
    path = model.path_
    points = list(zip(path.alphas.tolist(), path.n_nonzero_coefs.tolist(), strict=True))
    factors = fold_factors(model, data, splits)
    ridges = model._ridges(data)
    jobs = [
        (model, data, split, points, seed, part, ridges)
        for split, part in zip(splits, factors, strict=True)
    ]
    found: list[FoldScores] = []
    if n_jobs in (None, 1):
        for i, job in enumerate(jobs):
            tell(i, f"fold {i + 1} of {len(splits)}")
            with share_of_time(len(jobs) - i):
                found.append(_score_fold(*job))
    else:
        tell(0, f"{len(splits)} folds")
        found = each_fold(_score_fold, jobs, n_jobs)
    by_ridge = stacked(found, n_points)
    is_scored = bool(np.isfinite(by_ridge).any())
    is_open = is_scored and (
        not model._has_null(data, points)
        or has_signal(path, model._loss(), data.n_rows, by_ridge[:, 0])
    )
    ridge = Comparison(by_ridge).ridge if is_open else 0
    return Folds(
        -by_ridge[:, ridge],
        np.array([fold.accuracies for fold in found]).reshape(-1, n_points),
        np.array([fold.aucs for fold in found]).reshape(-1, n_points),
        -np.array([fold.null for fold in found]),
        by_ridge, ridge, is_open,
    )  # fmt: skip


def _score_fold(
    model: Any, data: Data, split: Split, points: Any, seed: int, factors: Any, ridges: Any
) -> FoldScores:
    fitted, fold = fit_fold(model, data, split, points, seed, factors)
    return judge_fold(model, fitted, fold, len(points), ridges)
