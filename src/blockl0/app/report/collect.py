"""The numbers of the report: a path on all rows, folds, drop-one losses, proofs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockl0.app.report import proof, recipes, words
from blockl0.app.report.folds import Folds, ReportTask
from blockl0.app.report.points import Facts, describe_points, listed
from blockl0.app.report.words import clean, compact
from blockl0.blas import one_blas_thread
from blockl0.estimators.binding import bind, rows_of, weigh_classes
from blockl0.estimators.folds import FittedPath
from blockl0.estimators.half_samples import ChosenAgain, default_half_samples
from blockl0.estimators.reading import (
    factors_of,
)
from blockl0.estimators.structure import bound_arrays, group_labels, positive_columns
from blockl0.losses import get_loss
from blockl0.problem.preprocess import AUTO
from blockl0.problem.problem import Sparsity
from blockl0.run import Timer, limited_by, share_of_time
from blockl0.selection import CRITERIA, PAIRED, best_point, choose_by_score
from blockl0.text import listing
from blockl0.validate import (
    as_numeric,
    check_column_entries,
    check_integer,
    check_keep_names,
    check_time_limit,
)

FORMAT = 3
"""Version of `Report.to_dict`."""

Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], Any]


@dataclass(frozen=True, eq=False)
class Report:
    """Contents of a report made by `make_report`.

    Attributes
    ----------
    data : dict
        Everything on the page, ready for JSON.
    """

    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the embedded data; numbers have six significant digits, missing ones are None."""
        return self.data

    def to_html(self) -> str:
        """Return one self-contained page: no server, no network, no other file."""
        from blockl0.app.report.page import render

        return render(self.data)


@one_blas_thread()
def make_report(
    X: Any,
    y: Any,
    *,
    feature_names: Sequence[str] | None = None,
    target: str = "y",
    loss: Any = "squared",
    n_nonzero_coefs: Any = None,
    ridge: float | str = AUTO,
    keep: Any = None,
    feature_groups: Any = None,
    references: Mapping[str, str] | None = None,
    bounds: Any = None,
    positive: Any = None,
    costs: str | None = "coefficients",
    class_weight: Any = None,
    cv: Any = 5,
    effort: str | int = "fast",
    random_state: int = 0,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    half_samples: int | None = None,
    source: str | None = None,
    fingerprint: str | None = None,
    notes: Sequence[str] = (),
    command: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Fit for every number of columns up to K, cross-validate, prove what can be, and explain it.

    Parameters
    ----------
    X : array-like, DataFrame or sparse (n_samples, n_features)
    y : array-like (n_samples,)
        Numbers, or labels for losses of labels, as "logistic" and "squared_hinge".
    feature_names : sequence of str, optional
        By default the columns of a DataFrame, else x0, x1, …
    target : str
        What to call y.
    loss : str or Loss, default="squared"
        As in `L0Regressor` and `L0Classifier`, with the parameter as in "huber:0.5"; "logistic"
        with more than two classes is the softmax loss.
    n_nonzero_coefs : int or sequence of int, optional
        The largest number of columns K, or all numbers to try; the default is `L0RegressorCV`'s.
    ridge : float or "standardized:NUMBER", default="auto"
        As in `L0Regressor`.
    keep : array-like, optional
        Columns that always stay, as numbers, names or a mask.
    feature_groups, bounds, positive : optional
        As in `L0Regressor`, columns by number or name. A group is shown as one, under its label,
        with its columns below; the label and "=" before the name of a column are left out there.
    costs : "coefficients" (default) or None
        Whether groups pay for their coefficients, as in `L0RegressorCV`.
    class_weight : dict, "balanced" or None
        As in `L0Classifier`, for labels.
    references : dict, optional
        {label, or name of a column: value} that the columns of a category are compared with.
    cv : int, splitter or None
        Folds; a number is of the folds of `L0RegressorCV`: shuffled by `random_state`, stratified
        for labels. None leaves them out.
    effort, random_state
        As in `L0RegressorCV`.
    time_limit : float, optional
        Seconds for all of it: the path, each fold, each half-sample and the proofs get equal
        shares.
    n_jobs : int, optional
        Number of folds to run in parallel.
    half_samples : int, optional
        Halves of the rows on which the choice is repeated, as by `summary`: 10 by default, none of
        more than 20 million entries.
    source, fingerprint, command : str, optional
        Where the data came from, what identifies them, and the command line that was given.
    notes : sequence of str
        What was done to the data before.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before every step and at the end.

    Returns
    -------
    Report

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from blockl0.app.report import make_report
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> report = make_report(X, y, target="progression", n_nonzero_coefs=6)
    >>> report.to_dict()["points"][2]["k"], "</html>" in report.to_html()
    (2, True)
    """
    started = time.perf_counter()
    X, y, names = _read(X, y, feature_names)
    _check_numbers(y, loss)
    keep = check_keep_names(keep, names)
    seconds = check_time_limit(time_limit)
    n_halves = default_half_samples(X) if half_samples is None else half_samples
    n_halves = check_integer("half_samples", n_halves, low=0)
    structure = _structure(names, feature_groups, bounds, positive) | {"costs": costs}
    structure |= _class_weight(class_weight, loss)
    task = ReportTask(
        X, y, loss, n_nonzero_coefs, ridge, keep, effort, random_state, None, structure
    )
    splits = task.splits(cv)
    n_paths = 1 + len(splits) + n_halves
    share = None if time_limit is None else seconds / (n_paths + 1)

    def tell(done: int, text: str) -> None:
        if progress is not None:
            progress(done, n_paths + 2, text)

    tell(0, "the path on all rows")
    with limited_by(Timer(seconds)):
        task, model = task.fit(splits, n_paths + 1, n_jobs, lambda i, text: tell(1 + i, text))
        with share_of_time(1 + 1 / max(n_halves, 1)):
            n_before = 1 + len(splits)
            again = task.again(model, n_halves, n_jobs, lambda i, text: tell(n_before + i, text))
        folds = Folds(model, len(splits))
        facts = _facts(task, model, folds, again, names, target, references)
        tell(n_paths, "losses without each column")
        points = describe_points(facts)
        tell(n_paths + 1, "proofs")
        choices = _choices(facts)
        start = choices.get(PAIRED, choices["bic"])
        proofs = proof.prove(facts.prepared.problem, model.path_, start)
    data = _assemble(facts, points, choices, start, proofs)
    data["recipes"] = recipes.recipes(facts, source, command, notes, time_limit=share)
    data["about"] = recipes.about(
        facts, source, fingerprint, command, notes, time.perf_counter() - started, time_limit
    )
    tell(n_paths + 2, "done")
    return Report(data)


def _facts(
    task: ReportTask, model: Any, folds: Folds, again: ChosenAgain, names: list[str], target: str,
    references: Mapping[str, str] | None,
) -> Facts:  # fmt: skip
    data = task.data(model)
    prepared = bind(model, data)
    # room for every point of the path: the estimator's own budget is that of one of them
    sparsity = Sparsity(0.0, prepared.problem.n_units)
    prepared = replace(prepared, problem=replace(prepared.problem, sparsity=sparsity))
    null = FittedPath(prepared, model.path_).null_loss(weigh_classes(model, data))
    chosen = np.concatenate([np.empty(0, dtype=np.int64), *model.path_.supports])
    units = prepared.problem.units
    return Facts(
        task, model, folds, again, names, clean(target), null, units.of(np.unique(chosen)),
        prepared, listed(units, names, references),
    )  # fmt: skip


def _class_weight(class_weight: Any, loss: Any) -> dict[str, Any]:
    """Return class weights as the estimators of labels take them."""
    if class_weight is None:
        return {}
    if not get_loss(loss).takes_labels:
        raise ValueError(
            f"`class_weight` is for labels, got {class_weight!r} with loss={loss!r}, which is for "
            "numbers."
        )
    return {"class_weight": class_weight}


def _structure(names: list[str], feature_groups: Any, bounds: Any, positive: Any) -> dict[str, Any]:
    """Convert groups and bounds to the form for an X without names."""
    n = len(names)
    return {
        "feature_groups": group_labels(feature_groups, names, n),
        "bounds": bound_arrays(bounds, names, n),
        "positive": positive_columns(positive, names, n),
    }


def _read(X: Any, y: Any, feature_names: Any) -> tuple[Any, Any, list[str]]:
    """Return X as float64, dense or CSC, y as an array, and the names as text."""
    if feature_names is None and hasattr(X, "columns"):
        feature_names = list(X.columns)
    if sp.issparse(X):
        X = sp.csc_array(X).astype(np.float64)
    else:
        X = np.asfortranarray(as_numeric(X, "X"), dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"`X` must be a matrix (n_samples, n_features), got shape {X.shape}.")
    names = [f"x{j}" for j in range(X.shape[1])] if feature_names is None else list(feature_names)
    if len(names) != X.shape[1]:
        raise ValueError(
            f"`feature_names` must hold one name per column of X ({X.shape[1]}), got {len(names)}."
        )
    names = [clean(name) for name in names]
    check_column_entries(X, names)
    return X, np.asarray(y).ravel() if np.ndim(y) == 2 else np.asarray(y), names


def _check_numbers(y: NDArray[Any], loss: Any) -> None:
    """Refuse labels if the loss needs numbers."""
    if get_loss(loss).takes_labels or y.dtype.kind in "biuf":
        return
    try:
        y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`y` must hold numbers for loss={loss!r}, got {str(y[0])!r}; for labels use "
            "loss='logistic'."
        ) from None


def _bounds_text(facts: Facts) -> str | None:
    """Describe bounds on coefficients; None if there are none."""
    bounds = facts.prepared.problem.bounds
    if bounds is None:
        return None
    low, high = (np.ravel(side) for side in bounds)
    if np.all(low == 0.0) and np.all(high == np.inf):
        return "No coefficient may be negative"
    held = np.flatnonzero((low > -np.inf) | (high < np.inf))
    return f"Bounds were given for the coefficients of {listing([facts.names[j] for j in held])}"


def _choices(facts: Facts) -> dict[str, int]:
    """Return the point chosen by each rule."""
    path, choices = facts.model.path_, {}
    sizes = path.n_nonzero if facts.model.costs_ is None else path.n_coefficients
    if facts.folds.n_scored:
        choices[PAIRED] = facts.model.best_index_
        for rule in ("one_se", "min"):
            choices[rule] = choose_by_score(-facts.folds.losses, sizes, rule)[0]
    return choices | {name: best_point(name, path) for name in CRITERIA}


def _assemble(
    facts: Facts,
    points: list[dict[str, Any]],
    choices: dict[str, int],
    start: int,
    proofs: list[proof.ProofStatus],
) -> dict[str, Any]:
    """Assemble everything, with the sentences that the page shows."""
    task, path = facts.task, facts.model.path_
    used = [facts.listed[unit] for unit in facts.used]
    spread = rows_of(task.X[:, [entry.columns[0] for entry in used]]).spreads
    known = set(facts.names)
    data: dict[str, Any] = {
        "format": FORMAT,
        "target": facts.target,
        "loss": task.loss_name,
        "rows": int(task.X.shape[0]),
        "columns": len(facts.listed),
        "classes": facts.classes,
        "features": [entry.name.strip() or f"(column {entry.columns[0]})" for entry in used],
        "numbers": [int(entry.columns[0]) for entry in used],
        "parts": [entry.parts or None for entry in used],
        "references": [entry.reference for entry in used],
        "kept": [i for i, j in enumerate(facts.used) if j in facts.prepared.problem.keep],
        "spread": compact(spread),
        "factors": [list(factors_of(entry.name, known)) for entry in used],
        "bounds": _bounds_text(facts),
        "null": compact(facts.null),
        "guess": task.commonest,
        "folds": facts.folds.n_scored,
        "half_samples": facts.again.n_samples,
        "points": points,
        "criteria": {name: compact(path.criterion(name)) for name in CRITERIA},
        "choices": choices,
        "start": start,
    }
    spoken = get_loss(task.loss).words
    names = [entry.name for entry in facts.listed]
    for point, found in zip(points, proofs, strict=True):
        point["certificate"] = proof.certificate(
            found, point, data, names, facts.prepared.problem.ridge > 0.0
        )
        point["words"] = words.of_point(point, data, spoken)
    return data | words.of_report(data, spoken)
