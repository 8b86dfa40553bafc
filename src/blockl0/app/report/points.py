"""The points of a path as the page shows them: columns, coefficients, fit, and cautions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.app.report.folds import Folds, ReportTask
from blockl0.app.report.words import clean, compact, ratio
from blockl0.estimators.binding import rows_of
from blockl0.estimators.coefficient_costs import charge_of
from blockl0.estimators.explain import drop_one
from blockl0.estimators.folds import FittedPath
from blockl0.estimators.half_samples import ChosenAgain
from blockl0.estimators.reading import (
    crowded,
    determined,
    like_noise,
    opposed_pairs,
    recalls,
    separation,
)
from blockl0.problem.preprocess import read_ridge

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PAIRS = 3
"""Pairs of columns mentioned per size."""


class Listed(NamedTuple):
    """A unit of the problem as shown on the page.

    Attributes
    ----------
    name : str
    columns : ndarray of int
        Columns of X.
    parts : list of str
        Names of its columns below its own; empty for a single column.
    reference : str or None
        The level that the others are compared with.
    """

    name: str
    columns: Ints
    parts: list[str]
    reference: str | None

    def coefs(self, coef: Floats) -> Any:
        """Return its coefficients: a number, or one per class; None for a group."""
        return None if self.parts else compact(coef[self.columns[0]])

    def part_coefs(self, coef: Floats) -> list[Any] | None:
        """Return the coefficients of each column of a group; None for a single column."""
        return compact(coef[self.columns]) if self.parts else None

    def effect(self, X: Any, coef: Floats) -> float | None:
        """Compute the standard deviation of a group's contribution, over all classes."""
        if not self.parts:
            return None
        added = np.asarray(X[:, self.columns] @ coef[self.columns])
        return compact(np.sqrt(np.sum(np.var(added, axis=0))))


def listed(units: Any, names: list[str], references: Mapping[str, str] | None) -> list[Listed]:
    """List every unit of a problem, using the names of the columns of X."""
    known = {} if references is None else {str(k): str(v) for k, v in references.items()}
    found = []
    for unit in range(units.number(len(names))):
        columns = units.members(unit)
        name = names[int(columns[0])]
        parts: list[str] = []
        if columns.size > 1:
            name = str(units.labels[unit])
            parts = [names[int(j)].removeprefix(f"{name}=") for j in columns]
        found.append(Listed(name, columns, parts, known.get(name)))
    return found


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


def describe_points(facts: Facts) -> list[dict[str, Any]]:
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
        said = determined(names, coef[support], rows_of(X).spreads, left, X.shape[0])
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
