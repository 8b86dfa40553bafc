"""The numbers of the report: a path on all rows, folds, drop-one losses, proofs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockl0.app.report import claims, proof, recipes, words
from blockl0.app.report.about import about
from blockl0.app.report.folds import Folds, ReportTask, cross_validate, splits_of
from blockl0.app.report.listed import Listed, listed
from blockl0.app.report.plain import clean, compact, ratio
from blockl0.blas import one_blas_thread
from blockl0.estimators.coefficient_costs import charge_of
from blockl0.estimators.explain import drop_one
from blockl0.estimators.folds import FittedPath, ridge_of
from blockl0.estimators.half_samples import ChosenAgain, default_half_samples
from blockl0.estimators.reading import (
    crowded,
    determined,
    factors_of,
    like_noise,
    opposed_pairs,
    recalls,
    separation,
    spreads,
)
from blockl0.estimators.structure import bound_arrays, group_labels, positive_columns
from blockl0.losses import get_loss
from blockl0.problem.preprocess import AUTO, read_ridge
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

PAIRS = 3
"""Pairs of columns mentioned per size."""
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
    splits = splits_of(cv, X, y, loss, random_state)
    keep = check_keep_names(keep, names)
    seconds = check_time_limit(time_limit)
    n_halves = default_half_samples(X) if half_samples is None else half_samples
    n_halves = check_integer("half_samples", n_halves, low=0)
    n_paths = 1 + len(splits) + n_halves
    share = None if time_limit is None else seconds / (n_paths + 1)
    structure = _structure(names, feature_groups, bounds, positive) | {"costs": costs}
    structure |= _class_weight(class_weight, loss)
    task = ReportTask(
        X, y, loss, n_nonzero_coefs, ridge, keep, effort, random_state, None, structure
    )
    tell = _teller(progress, n_paths + 2)
    tell(0, "the path on all rows")
    with limited_by(Timer(seconds)):
        with share_of_time(n_paths + 1):
            model = task.fit()
        with share_of_time(1 + (n_halves + 1) / max(len(splits), 1)):
            folds = cross_validate(task, model, splits, n_jobs, lambda i, text: tell(1 + i, text))
            if folds.ridge:
                prepared = model._problem_for(task.data(model))
                task = replace(task, ridge=ridge_of(folds.ridge, prepared))
                model = task.fit()
        with share_of_time(1 + 1 / max(n_halves, 1)):
            n_before = 1 + len(splits)
            again = task.again(model, n_halves, n_jobs, lambda i, text: tell(n_before + i, text))
        facts = _facts(task, model, folds, again, names, target, references)
        tell(n_paths, "losses without each column")
        points = _points(facts)
        tell(n_paths + 1, "proofs")
        choices = _choices(facts)
        start = choices.get(PAIRED, choices["bic"])
        proofs = proof.prove(facts.prepared.problem, model.path_, start)
    data = _assemble(facts, points, choices, start, proofs)
    data["recipes"] = recipes.recipes(facts, source, command, notes, time_limit=share)
    data["about"] = about(
        facts, source, fingerprint, command, notes, time.perf_counter() - started, time_limit
    )
    tell(n_paths + 2, "done")
    return Report(data)


@dataclass(frozen=True, eq=False)
class Facts:
    """Input for the parts of the report.

    `listed` are all units of the problem, columns or groups, and `used` the indices of those that
    are ever chosen.
    """

    task: ReportTask
    model: Any
    folds: Folds
    again: ChosenAgain
    names: list[str]
    target: str
    null: float
    used: NDArray[np.int64]
    prepared: Any
    listed: list[Listed]

    @property
    def has_groups(self) -> bool:
        """Whether several columns are listed as one."""
        return any(self.listed[unit].parts for unit in self.used)

    @property
    def classes(self) -> list[str] | None:
        """Labels as text; None for numbers."""
        labels = getattr(self.model, "classes_", None)
        return None if labels is None else [clean(label) for label in labels]


def _facts(
    task: ReportTask, model: Any, folds: Folds, again: ChosenAgain, names: list[str], target: str,
    references: Mapping[str, str] | None,
) -> Facts:  # fmt: skip
    data = task.data(model)
    prepared = model._problem_for(data)
    # room for every point of the path: the estimator's own budget is that of one of them
    sparsity = Sparsity(0.0, prepared.problem.n_units)
    prepared = replace(prepared, problem=replace(prepared.problem, sparsity=sparsity))
    weights = model._weigh_classes(data.y, data.weights) if data.n_classes else data.weights
    null = FittedPath(prepared, model.path_).null_loss(data._replace(weights=weights))
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


def _teller(progress: Progress | None, total: int) -> Callable[[int, str], None]:
    def tell(done: int, text: str) -> None:
        if progress is not None:
            progress(done, total, text)

    return tell


def _points(facts: Facts) -> list[dict[str, Any]]:
    """Describe per k the columns, their coefficients, the fit, and the worth of each column."""
    path, folds, task = facts.model.path_, facts.folds, facts.task
    place = {int(j): i for i, j in enumerate(facts.used)}
    fitted, rows = FittedPath(facts.prepared, path), task.data(facts.model)
    accuracy, aucs, etas = fitted.accuracies(rows), fitted.aucs(rows), fitted.predictors(rows.X)
    points = []
    for i, result in enumerate(path):
        support, drop = _by_use(facts.prepared.problem, result)
        entries = [facts.listed[unit] for unit in support]
        # a group is represented by any of its columns
        columns = np.array([entry.columns[0] for entry in entries], dtype=np.int64)
        charge = charge_of(facts.prepared.problem, result.coef, float(path.alphas[i]))
        mean_loss = float(path.losses[i] / path.n_samples)
        points.append(
            {
                "k": int(path.n_nonzero_coefs[i]),
                **_of_charges(facts, entries, i),
                "support": [place[int(j)] for j in support],
                "coef": [entry.coefs(result.coef) for entry in entries],
                **_of_groups(facts, entries, result.coef),
                "intercept": compact(np.asarray(path.intercepts[i])),
                "drop": compact(drop / path.n_samples / (facts.null or np.nan)),
                "rise": compact(drop),
                "again": _shares(facts.again, int(path.n_nonzero_coefs[i]), columns),
                "objective": compact(result.objective - charge),
                "loss": compact(mean_loss),
                "explained": compact(1.0 - ratio(mean_loss, facts.null)),
                "accuracy": compact(accuracy[i]),
                **_of_classes(facts, aucs[i], etas[i], rows.y),
                "cv": folds.at(i),
                "status": str(result.status),
                "cautions": _cautions(facts, result, support, drop, accuracy[i], mean_loss),
            }
        )
    return points


def _by_use(problem: Any, result: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (units of a point, rise of the objective without each), most useful first.

    Kept ones have no drop-one loss, and come last.
    """
    rises = drop_one(problem, result.coef, result.support)
    support, first = np.unique(problem.units.each(result.support), return_index=True)
    order = np.argsort(-rises[first], kind="stable")
    return support[order], rises[first][order]


def _of_groups(facts: Facts, entries: list[Listed], coef: Any) -> dict[str, Any]:
    """Return the coefficients inside each group, and its effect on the prediction."""
    if not facts.has_groups:
        return {}
    return {
        "parts": [entry.part_coefs(coef) for entry in entries],
        "effect": [entry.effect(facts.task.X, coef) for entry in entries],
    }


def _of_classes(facts: Facts, auc: float, eta: Floats, codes: Any) -> dict[str, Any]:
    """Return AUC and recalls on the rows of the fit, where there are classes."""
    classes = facts.classes
    if classes is None:
        return {}
    return {"auc": compact(auc), "recall": compact(recalls(eta, codes, len(classes)))}


def _of_charges(facts: Facts, entries: list[Listed], i: int) -> dict[str, Any]:
    """Return the price of a coefficient at a point, and the number of each column or category."""
    if facts.model.costs_ is None:
        return {}
    sizes = [1 + int(facts.model.costs_[entry.columns[0]]) for entry in entries]
    return {"price": compact(facts.model.path_.alphas[i]), "coefficients": sizes}


def _cautions(
    facts: Facts, result: Any, units: NDArray[np.int64], rises: Floats, accuracy: float,
    mean_loss: float,
) -> list[Any]:  # fmt: skip
    """Write warnings about the interpretation of coefficients."""
    coef, support, problem = result.coef, result.support, facts.prepared.problem
    names = [facts.names[j] for j in support]
    groups = problem.units.each(support)
    pairs = opposed_pairs(facts.task.X[:, support], coef[support], groups)
    found: list[Any] = [pair.parts(names) for pair in pairs[:PAIRS]]
    if coef.ndim == 1 and facts.prepared.problem.is_quadratic and support.size:
        X, left = facts.task.X[:, support], ratio(mean_loss, facts.null)
        said = determined(names, coef[support], spreads(X), left, X.shape[0])
        found += [] if said is None else [said]
    n_chosen = np.unique(groups).size
    notes = [crowded(n_chosen, support.size, facts.task.X.shape[0])]
    rest = problem.data_loss(problem.from_given(coef))
    n_left = problem.total_weight * problem.n_outputs - coef[support].size - 1.0
    for unit, rise in zip(units, rises, strict=True):
        size = int(np.count_nonzero(groups == unit))
        name = facts.listed[unit].name
        notes.append(like_noise(name, float(rise), size, rest, n_left, problem.loss))
    notes += [separation(accuracy, read_ridge(facts.model.ridge_))] if support.size else []
    return [*found, *([note] for note in notes if note is not None)]


def _shares(again: ChosenAgain, budget: int, support: NDArray[np.int64]) -> list[float] | None:
    shares = again.shares(budget, support)
    return None if shares is None else compact(shares)


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
        choices[PAIRED] = facts.folds.choose(sizes)
        for rule in ("one_se", "min"):
            choices[rule] = choose_by_score(-facts.folds.losses[:, : len(path)], sizes, rule)[0]
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
    spread = spreads(task.X[:, [entry.columns[0] for entry in used]])
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
        point["certificate"] = claims.certificate(
            found, point, data, names, facts.prepared.problem.ridge > 0.0
        )
        point["words"] = words.of_point(point, data, spoken)
    return data | words.of_report(data, spoken)
