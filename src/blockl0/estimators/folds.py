"""Cross-validation along a path: folds, paths fitted without them, and their scores."""

from __future__ import annotations

import numbers
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.parallel import Parallel, delayed

from blockl0.data.design import as_design
from blockl0.errors import warn_caller
from blockl0.estimators.binding import Data, rows_of
from blockl0.estimators.callbacks import FitTask
from blockl0.estimators.reading import auc, lone_rows
from blockl0.path import Path
from blockl0.problem.factors import Factor, factor_parts, is_tall, merged, reduced
from blockl0.problem.fits import make_fits
from blockl0.problem.moments import Moments
from blockl0.problem.preprocess import Prepared, Ridge, standardized
from blockl0.result import Status
from blockl0.run import Timer, limited_by, seconds_left, share_of_time
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Split = tuple[NDArray[np.int64], NDArray[np.int64]]
Tell = Callable[[int, str], Any]
"""Called with the number of folds that are done, and a text about the next one."""

N_FOLDS = 5
"""Default number of folds."""
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Ridges that folds compare beside none, for each row and on standardized columns."""
MOST_SHUFFLED = 10_000_000
"""Rows up to which moments use the same folds as the rows themselves."""


class Factors(NamedTuple):
    """Factors that replace the rows of a split, for fitting and scoring."""

    train: Factor
    test: Factor


class FittedPath(NamedTuple):
    """A path on some rows, and its predictions on others."""

    prepared: Prepared
    path: Path
    shrunk: Sequence[Floats] | None = None

    @property
    def coefs(self) -> Sequence[Floats]:
        """The coefficients at every point: of the path, or with another ridge on its supports."""
        return [result.coef for result in self.path] if self.shrunk is None else self.shrunk

    def with_ridges(self, ridges: Sequence[float]) -> list[FittedPath]:
        """Return the path itself, and its supports re-fitted with each ridge."""
        found = refit(self.prepared, self.path.supports, ridges)
        return [self, *(FittedPath(prepared, self.path, coefs) for prepared, coefs in found)]

    def predictors(self, X: Any) -> list[Floats]:
        """Compute the linear predictor at every point, each (m,), or (m, n_classes)."""
        return [self.predictor(X, coef) for coef in self.coefs]

    def predictor(self, X: Any, coef: Floats) -> Floats:
        """Compute the linear predictor from coefficients of the problem."""
        coef, intercept = self.prepared.invert(coef)
        chosen = COLUMNS.support(coef)
        return np.asarray(rows_of(X).columns(chosen) @ coef[chosen]) + intercept

    def losses(self, data: Data) -> Floats:
        """Compute the mean loss at every point, (p,)."""
        return np.array([self.loss_of(coef, data) for coef in self.coefs])

    def accuracies(self, data: Data) -> Floats:
        """Compute the accuracy at every point, (p,); NaN for numbers."""
        if not data.n_classes:
            return np.full(len(self.path), np.nan)
        etas = self.predictors(data.X)
        codes = [np.argmax(eta, axis=1) if eta.ndim == 2 else (eta > 0) * 1 for eta in etas]
        return np.array([np.average(code == data.y, weights=data.weights) for code in codes])

    def aucs(self, data: Data) -> Floats:
        """Compute the area under the ROC curve at every point, (p,); NaN for numbers."""
        if not data.n_classes:
            return np.full(len(self.path), np.nan)
        return np.array([auc(eta, data.y, data.weights) for eta in self.predictors(data.X)])

    def null_loss(self, data: Data) -> float:
        """Compute the mean loss of the path's intercept alone."""
        return self.loss_of(np.zeros_like(self.path[0].coef), data)

    def loss_of(self, coef: Floats, data: Data) -> float:
        """Compute the weighted mean of the loss from coefficients of the problem."""
        if data.factor is not None:
            return data.factor.mean_loss(*self.prepared.invert(coef))
        values = self.prepared.problem.loss.value(self.predictor(data.X, coef), data.target)
        return float(np.average(values, weights=data.weights))


def ridge_of(at: int, prepared: Prepared) -> float | str:
    """Return a ridge that was compared, counted from one, as the parameter `ridge` of all rows."""
    return Ridge(float(f"{RIDGES[at - 1] * prepared.problem.total_weight:.4g}"), True).given


def refit(
    prepared: Prepared, supports: list[NDArray[np.int64]], ridges: Sequence[float]
) -> Iterator[tuple[Prepared, list[Floats]]]:
    """Yield the problem with each ridge, and the coefficients on the supports under it."""
    total = prepared.problem.total_weight
    unit = standardized(prepared, total) if ridges else prepared
    for ridge in ridges:
        shrunk = replace(unit, problem=replace(unit.problem, ridge=ridge * total))
        fits = make_fits(reduced(shrunk.problem))
        coefs = [shrunk.problem.to_given(fits.on(support).w) for support in supports]
        yield shrunk, coefs


# -- the folds -------------------------------------------------------------------------------------


def make_splits(
    cv: Any, X: Any, y: Any, has_labels: bool, seed: int, **metadata: Any
) -> list[Split]:
    """Make (train, test) row indices of every fold, the same for all estimators and commands.

    A number, by default 5, of folds is shuffled by the seed, since files are often sorted; folds
    are stratified as far as there are enough rows of each label, and the only row of a class is
    always in the fit, never scored. Otherwise as scikit-learn's `check_cv`.
    """
    X = rows_of(X).for_splitter
    splitter: Any = cv
    is_drawn = cv is None or isinstance(cv, numbers.Integral)
    if is_drawn:
        splitter = _shuffled_folds(cv, X.shape[0], y if has_labels else None, seed)
    with warnings.catch_warnings():
        # a class may have fewer rows than folds: some folds then do not score it
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = split_rows(check_cv(splitter, y, classifier=has_labels), X, y, **metadata)
    alone = lone_rows(y) if is_drawn and has_labels else np.empty(0, dtype=np.int64)
    if not alone.size:
        return splits
    if len(y) > alone.size and np.unique(np.delete(y, alone)).size == 1:
        warn_caller(
            f"All rows but {alone.size} are of one class: held-out rows of one class alone do not "
            "tell how many columns predict best; choose them by a criterion, such as 'bic'."
        )
    return [(np.union1d(train, alone), np.setdiff1d(test, alone)) for train, test in splits]


def _shuffled_folds(n_folds: Any, n_rows: int, labels: Any, seed: int) -> Any:
    """Make a shuffling splitter, with as many folds as requested, or as possible."""
    kind, most = KFold, n_rows
    if labels is not None:
        kind, most = StratifiedKFold, int(np.unique(labels, return_counts=True)[1].max())
    n_folds = max(2, min(N_FOLDS, most)) if n_folds is None else int(n_folds)
    return kind(n_folds, shuffle=True, random_state=seed)


def fold_labels(n_folds: int, n_rows: int, seed: int) -> NDArray[np.int16] | None:
    """Compute the fold of every row, as `make_splits` does; None for very many rows.

    `seed` is that of the estimator. Takes two bytes per row, and eight more while running.
    """
    if n_rows > MOST_SHUFFLED:
        return None
    label = np.empty(n_rows, dtype=np.int16)
    rows = np.empty((n_rows, 0))
    for i, (_, test) in enumerate(_shuffled_folds(n_folds, n_rows, None, seed).split(rows)):
        label[test] = i
    return label


def split_rows(splitter: Any, X: Any, y: Any, **metadata: Any) -> list[Split]:
    """Convert the folds of any splitter to (train, test) row indices."""
    rows = np.arange(X.shape[0])
    return [
        (rows[np.asarray(train)], rows[np.asarray(test)])
        for train, test in splitter.split(X, y, **metadata)
    ]


def each_fold(
    work: Callable[..., Any], jobs: list[Any], n_jobs: int | None, tell: Tell | None = None,
    noun: str = "fold",
) -> list[Any]:  # fmt: skip
    """Call `work` with the arguments of every fold, in parallel, in equal shares of the time left.

    `tell` is called before each fold if they follow one another, else once.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, also where it came while threads or processes began, of which joblib makes
        other errors.
    """
    if n_jobs == 1 or (n_jobs is None and tell is not None):
        found = []
        for i, job in enumerate(jobs):
            if tell is not None:
                tell(i, f"{noun} {i + 1} of {len(jobs)}")
            with share_of_time(len(jobs) - i):
                found.append(work(*job))
        return found
    if tell is not None and jobs:
        tell(0, f"{len(jobs)} {noun}s")
    workers: Any = effective_n_jobs(n_jobs)  # type: ignore[arg-type]
    left, n_workers = seconds_left(), min(workers, max(len(jobs), 1))
    calls = [delayed(work)(*given) for given in jobs]
    if left < np.inf:
        # workers know nothing of the limit here
        end, rounds = time.monotonic() + left, -(-len(jobs) // n_workers)
        calls = [
            delayed(_in_share)(end, rounds - i // n_workers, work, *given)
            for i, given in enumerate(jobs)
        ]
    try:
        return list(Parallel(n_jobs=n_jobs)(calls))
    except RuntimeError as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from error
        raise


def _in_share(end: float, n_left: int, work: Callable[..., Any], *given: Any) -> Any:
    """Call `work` in one of `n_left` equal shares of the time to the end."""
    with limited_by(Timer((end - time.monotonic()) / n_left)):
        return work(*given)


def _is_interrupt(error: BaseException | None) -> bool:
    """Check if an error was raised while Ctrl-C was handled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def fold_factors(est: Any, data: Data, splits: list[Split]) -> list[Factors | None]:
    """Compute factors of the rows to fit and to score of every fold in one pass over tall data.

    Rows that no split separates share one factor, and factors of a fold are merged: k folds that
    partition the rows need k. None per fold if the loss is not squared, if factors do not pay, as
    for other kinds of splits, or if a part has no rows.
    """
    if not splits:
        return []
    rows = rows_of(data.X)
    if rows.has_target:
        return [Factors(merged(rest), own) for rest, own in _each_apart(data.X.fold_factors)]
    nothing: list[Factors | None] = [None] * len(splits)
    if not est._loss().is_quadratic or data.target.ndim == 2:
        return nothing
    if rows.is_stored or not is_tall(design := as_design(data.X)):
        return nothing
    label, uses = _told_apart(len(data.y), splits)
    n_merged, n = sum(len(part) for use in uses for part in use), design.shape[1]
    if n_merged * (n + 2) > len(data.y):
        return nothing
    atoms = factor_parts(design, data.target, data.weights, label, int(label.max()) + 1)
    if not all(any(atoms[i].n_rows for i in part) for use in uses for part in use):
        return nothing
    return [Factors(*(merged([atoms[i] for i in part]) for part in use)) for use in uses]


def moment_splits(moments: Moments) -> list[Any]:
    """Return a split per fold of moments, whose rows are not available; refuse a single fold."""
    if moments.n_folds < 2:
        raise ValueError(
            "Cross-validation needs moments of several folds, got one; gather them with "
            "Moments.from_data(…, folds=5), or use a `rule` without folds, such as 'bic'."
        )
    return [(None, None)] * moments.n_folds


def _each_apart(factors: list[Factor]) -> Iterator[tuple[list[Factor], Factor]]:
    """Yield (the others, itself) for each factor."""
    for i, own in enumerate(factors):
        yield factors[:i] + factors[i + 1 :], own


def _told_apart(m: int, splits: list[Split]) -> tuple[NDArray[np.int64], list[Any]]:
    """Label rows by how the splits treat them; return the labels and those of each part.

    If a splitter repeats a row, every row has its own label. O(m) per split.
    """
    label = np.zeros(m, dtype=np.int64)
    for split in splits:
        for part in split:
            count = np.bincount(part, minlength=m)
            if count.max(initial=0) > 1:
                return np.arange(m), list(splits)
            label = 2 * label + count
        # renumber the labels that occur
        label = (np.cumsum(np.bincount(label) > 0) - 1)[label]
    return label, [
        tuple(np.flatnonzero(np.bincount(label[part])) for part in split) for split in splits
    ]


def fit_fold(
    est: Any, data: Data, split: Split, points: Any, seed: int, factors: Factors | None = None
) -> tuple[FittedPath | None, Data]:
    """Fit the path without a fold; return (path or None if it cannot be scored, fold)."""
    train, test = split
    if factors is None:
        rest, fold = data.to_fit(train), data.rows(test)
    elif data.y is None:
        rest, fold = data._replace(factor=factors.train), data._replace(factor=factors.test)
    else:
        rest, fold = data._replace(factor=factors.train), data.rows(test)
        fold = fold._replace(factor=factors.test)
    if fold.is_empty or not rest.can_train(est._loss()):
        return None, fold
    prepared = est._prepare(rest, None, est.alpha or 0.0)
    # only the predictions of a fold's path are used
    path = est._path_of(prepared, points, seed, is_checked=False)
    if path[-1].status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # there is no result to return yet
    return FittedPath(prepared, path), fold


# -- scores ----------------------------------------------------------------------------------------


class FoldScores(NamedTuple):
    """Scores of a fold at every point of the path fitted without it, (p,); NaN if missing.

    `null` is the score of the intercept alone, for the estimator's own scores. `by_ridge` holds the
    scores with every ridge, (ridges, p), of which `scores` are number `ridge`. `has_signal` tells
    whether the path on all rows explains more than chance.
    """

    scores: Floats
    accuracies: Floats
    aucs: Floats
    null: float | Floats
    by_ridge: Floats
    ridge: int = 0
    has_signal: bool = True


def judge_fold(
    est: Any, fitted: FittedPath | None, fold: Data, n_points: int, ridges: Sequence[float] = ()
) -> FoldScores:
    """Score a fold by minus the mean loss, with class weights, by accuracy and by AUC.

    Scores with other ridges are those of the same supports, re-fitted.
    """
    unknown = np.full(n_points, np.nan)
    if fitted is None:
        missing = np.tile(unknown, (1 + len(ridges), 1))
        return FoldScores(unknown, unknown, unknown, float("nan"), missing)
    weighted = fold._replace(weights=est._weigh_classes(fold.y, fold.weights))
    paths = fitted.with_ridges(ridges)
    by_ridge = np.array([_filled(-path.losses(weighted), n_points) for path in paths])
    return FoldScores(
        by_ridge[0],
        _filled(fitted.accuracies(fold), n_points),
        _filled(fitted.aucs(fold), n_points),
        -fitted.null_loss(weighted),
        by_ridge,
    )


def gathered(found: list[FoldScores], n_points: int) -> FoldScores:
    """Collect the scores of all folds, (folds, p) and (folds, ridges, p), and nulls, (folds,)."""
    if not found:
        none = np.empty((0, n_points))
        return FoldScores(none, none, none, np.empty(0), np.empty((0, 1, n_points)))
    columns = [np.array(each) for each in zip(*found, strict=True)]
    return FoldScores(columns[0], columns[1], columns[2], columns[3], columns[4])


def score_fold(
    est: Any,
    data: Data,
    split: Split,
    points: Any,
    seed: int,
    task: FitTask,
    factors: Factors | None = None,
    ridges: Sequence[float] = (),
) -> FoldScores:
    """Compute the scores of a fold at every point of the path fitted without it."""
    if task.is_heard and data.y is not None:
        rest = data.rows(split[0])
        weights = None if data.weights is None else {"sample_weight": rest.weights}
        task.data = {"X": rest.X, "y": est._labels(rest.y), "metadata": weights}
    task.begin()
    fitted, fold = fit_fold(est, data, split, points, seed, factors)
    scores = judge_fold(est, fitted, fold, len(points), ridges)
    if fitted is not None and est.scoring is not None:
        by_ridge = np.array([
            _filled(_scorer_scores(est, path, fold), len(points))
            for path in fitted.with_ridges(ridges)
        ])  # fmt: skip
        unknown = np.full(len(points), np.nan)
        scores = FoldScores(by_ridge[0], unknown, unknown, float("nan"), by_ridge)
    task.end()
    return scores


def _filled(values: Floats, size: int) -> Floats:
    """Pad the values of a path that ended early with NaN."""
    out = np.full(size, np.nan)
    out[: len(values)] = values
    return out


def _scorer_scores(est: Any, fitted: FittedPath, fold: Data) -> Floats:
    """Apply a scorer to the estimators at the points of a path."""
    return np.array([_call_scorer(est, fitted.prepared, coef, fold) for coef in fitted.coefs])


def _call_scorer(est: Any, prepared: Prepared, coef: Floats, fold: Data) -> float:
    attributes = est._attributes(prepared, coef)
    point = est._plain(budget=attributes["n_nonzero_"])
    point.n_features_in_ = fold.X.shape[1]
    if is_classifier(est):
        point.classes_ = est.classes_
    for name, value in attributes.items():
        setattr(point, name, value)
    scorer: Any = check_scoring(point, scoring=est.scoring)
    return float(scorer(point, fold.X, est._labels(fold.y), **(fold.for_scorer or {})))


def takes_weights(scoring: Any) -> bool:
    """Check if a scorer, or the metric inside it, has an argument `sample_weight`."""
    scorer = get_scorer(scoring)
    parameters = signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


def warn_of_folds(scores: Floats, points: Any) -> None:
    """Warn of folds without scores, and of those cut short by time limits."""
    is_scored = np.isfinite(scores)
    used = is_scored.any(axis=1)
    reached = int(is_scored[used].sum(axis=1).min(initial=len(points)))
    if not used.all():
        warn_caller(
            f"{np.count_nonzero(~used)} of {used.size} folds could not be scored and were left "
            "out: the rows outside of them lack a class, or what else the loss needs.",
        )
    if reached < len(points):
        warn_caller(
            f"Not every fold has a score beyond n_nonzero_coefs={points[reached - 1][1]}, by the "
            "time limit or by the scorer; larger ones were not considered.",
            ConvergenceWarning,
        )
