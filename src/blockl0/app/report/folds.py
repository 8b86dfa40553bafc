"""What the report fits: a path on all rows, its folds, and half-samples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from blockl0.app.report.words import compact, ratio
from blockl0.estimators.binding import Data, read_data
from blockl0.estimators.cv import L0ClassifierCV, L0RegressorCV
from blockl0.estimators.folds import Split, Tell, make_splits
from blockl0.estimators.half_samples import ChosenAgain, chosen_again
from blockl0.estimators.linear import seed_of
from blockl0.estimators.linear_cv import fit_path
from blockl0.estimators.reading import guess_share
from blockl0.losses import get_loss, label_of
from blockl0.problem.preprocess import ConstantColumnWarning
from blockl0.run import share_of_time
from blockl0.selection import PAIRED, choose_by_score
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
        return round(guess_share(self.y), 6) if self.has_labels else None

    def estimator(self, rule: str = "bic", **more: Any) -> Any:
        """Return an estimator that chooses a point of a path by a rule."""
        kind = L0ClassifierCV if self.has_labels else L0RegressorCV
        return kind(
            self.budgets, loss=self.loss, keep=self.keep, rule=rule, effort=self.effort,
            random_state=self.random_state, time_limit=self.time_limit, ridge=self.ridge,
            **self.structure, **more,
        )  # fmt: skip

    def splits(self, cv: Any) -> list[Split]:
        """Return rows to fit and rows to score for every fold; none without cross-validation."""
        if cv is None:
            return []
        if not hasattr(cv, "split"):
            n_rows = self.X.shape[0]
            cv = check_integer("cv", cv, low=2, high=n_rows, high_name="n_samples")
        return make_splits(cv, self.X, self.y, self.has_labels, seed_of(self.random_state))

    def data(self, model: Any) -> Data:
        """Return the rows as the folds of a fitted model see them."""
        return read_data(model, self.X, self.y)

    def fit(
        self, splits: list[Split], n_shares: float, n_jobs: int | None, tell: Tell
    ) -> tuple[ReportTask, Any]:
        """Fit a path, and choose from it by folds; return (task with the ridge chosen, model).

        The path takes one of so many shares of the time left, and every fold another one. Where the
        time limit cuts it, or folds cannot be scored, the page has a note instead of a warning.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # columns that are constant in all rows were left out before
            warnings.simplefilter("ignore", ConstantColumnWarning)
            first = self.estimator()
            with share_of_time(n_shares):
                path = fit_path(first, self.X, self.y)
            data, loss = self.data(first), get_loss(self.loss)
            # folds none of which has all classes have no score to choose by
            if not any(data.to_fit(rows).can_train(loss) for rows, _ in splits):
                return self, first
            warnings.simplefilter("ignore")  # all but the folds was warned of above
            model = self.estimator(PAIRED, cv=splits, n_jobs=n_jobs)
            with share_of_time((n_shares - 1.0) / len(splits)):
                fit_path(model, self.X, self.y, path, tell)
        is_same = model.ridge_ == first.ridge_
        return self if is_same else replace(self, ridge=model.ridge_), model

    def again(self, model: Any, n_samples: int, n_jobs: int | None, tell: Tell) -> ChosenAgain:
        """Select columns on half-samples at every size of a fitted path."""
        budgets = [int(budget) for budget in model.path_.n_nonzero_coefs]
        data, seed = self.data(model), seed_of(self.random_state)
        return chosen_again(model, data, budgets, n_samples, seed, n_jobs=n_jobs, tell=tell)


@dataclass(frozen=True, eq=False)
class Folds:
    """Scores of a fitted model on held-out rows, (n_folds, p); NaN if missing."""

    model: Any
    n_folds: int

    @property
    def losses(self) -> Floats:
        """Mean losses; of no fold if there is none to score."""
        return -getattr(self.model, "cv_scores_", np.empty((0, len(self.model.path_))))

    @property
    def is_scored(self) -> NDArray[np.bool_]:
        """Which folds have a score at all."""
        found: Any = np.isfinite(self.losses).any(axis=1)
        return found

    @property
    def n_scored(self) -> int:
        """Number of folds that could be scored."""
        return int(self.is_scored.sum())

    def at(self, i: int) -> dict[str, Any] | None:
        """Compute mean and standard error at a point: loss, explained share, accuracy."""
        if not np.isfinite(self.losses[:, i]).any():
            return None
        loss, error = _mean_at(-self.losses, i)
        null = -float(np.nanmean(self.model.cv_null_scores_))
        cv = {
            "loss": compact(-loss),
            "loss_se": compact(error),
            "explained": compact(1.0 - ratio(-loss, null)),
            "explained_se": compact(ratio(error, null)),
        }
        for name, attribute in (("accuracy", "cv_accuracies_"), ("auc", "cv_aucs_")):
            scores = getattr(self.model, attribute, None)
            if scores is not None and np.isfinite(scores[:, i]).any():
                mean, error = _mean_at(scores, i)
                cv |= {name: compact(mean), f"{name}_se": compact(error)}
        return cv


def _mean_at(scores: Floats, i: int) -> tuple[float, float]:
    """Return the mean of a column of scores, and its standard error."""
    _, mean, error = choose_by_score(scores[:, [i]], np.zeros(1, dtype=np.int64), "min")
    return float(mean[0]), float(error[0])
