"""Explanations of fitted estimators: `summary`, its table, and `to_sklearn`."""

from __future__ import annotations

import numbers
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from blockl0.certify.levels import objective_at_zero
from blockl0.certify.words import INFERENCE
from blockl0.estimators.binding import Data, rows_of
from blockl0.estimators.half_samples import chosen_again
from blockl0.estimators.reading import (
    crowded,
    determined,
    like_noise,
    opposed_pairs,
    separation,
)
from blockl0.path import solve_path
from blockl0.problem.factors import reduced
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import read_ridge
from blockl0.text import as_text
from blockl0.units import COLUMNS

WIDTH = 88
"""Width of the notes, in characters."""
TITLES = {
    "feature": "feature",
    "coef": "coefficient",
    "per_sd": "per std. dev.",
    "entry": "entry",
    "drop_one": "drop-one loss",
    "again": "chosen again",
}
CELL = "padding: 0.2em 0.8em; text-align: "


@dataclass(frozen=True, eq=False)
class Summary:
    """The selected columns as a table; ``str`` prints it, `to_frame` makes a pandas DataFrame.

    A notebook shows it as HTML.

    Attributes
    ----------
    columns : dict
        "feature" and "coef" (for several classes their norm), and with data: "per_sd", the
        coefficient times the standard deviation of its column; "entry", the size of the smallest
        subset of the path that contains it; "drop_one", the rise of the objective without it, the
        others re-fitted; "again", the share of half-samples that select it.
    heading : str
    notes : tuple of str
    cautions : tuple of str
        Warnings about the interpretation of coefficients.
    index : ndarray of int
        The index of each column in X.
    n_half_samples : int
        Half-samples that could be fitted; "again" is missing if there is none.
    """

    columns: dict[str, NDArray[Any]]
    heading: str
    notes: tuple[str, ...]
    cautions: tuple[str, ...]
    index: NDArray[np.int64]
    n_half_samples: int = 0

    def to_frame(self) -> Any:
        """Convert the table to a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        cells = [[TITLES[name], *self._texts(name)] for name in self.columns]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in zip(*cells, strict=True)
        ]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        notes = [textwrap.fill(note, WIDTH) for note in (*self.notes, *self.cautions)]
        return "\n".join([self.heading, rule, lines[0], rule, *lines[1:], rule, *notes])

    def _repr_html_(self) -> str:
        """Format the table as HTML for notebooks, escaping names from the data."""
        texts = [self._texts(name) for name in self.columns]
        head = "".join(_html_cell("th", TITLES[name], j) for j, name in enumerate(self.columns))
        body = "".join(
            f"<tr>{''.join(_html_cell('td', text, j) for j, text in enumerate(row))}</tr>"
            for row in zip(*texts, strict=True)
        )
        title = "<br>".join(map(escape, self.heading.split("\n")))
        both = (*self.notes, *self.cautions)
        notes = "".join(f"<p style='max-width: 50em'>{escape(note)}</p>" for note in both)
        return (
            f"<div><p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"{notes}</div>"
        )

    def _texts(self, name: str) -> Sequence[str]:
        show = _share if name == "again" else _cell
        return [show(value) for value in self.columns[name]]


def _html_cell(tag: str, text: str, j: int) -> str:
    return f"<{tag} style='{CELL}{'left' if j == 0 else 'right'}'>{escape(text)}</{tag}>"


def _share(value: float) -> str:
    return f"{value:.0%}"


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "kept" if np.isnan(value) else f"{value:.4g}"
    return str(value)


Floats = NDArray[np.float64]

AGAIN = (
    "Chosen again: the share of half-samples of the rows that choose the column among as many; it "
    "measures stability, and is neither a probability that the column matters nor a p-value."
)
NOT_REPEATED = (
    "The choice could not be repeated on half-samples: none of them holds every class, or what "
    "else the loss needs, or there was no time."
)
LENGTHS = "Coefficient: the length of the coefficients of a column over all {what}."


class SummaryMixin:
    """Mixin with `summary` and `to_sklearn` for the linear estimators."""

    coef_: Any
    intercept_: Any
    support_: NDArray[np.int64]

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        n_half_samples: int = 0,
        random_state: Any = None,
    ) -> Summary:
        """Explain the selection; with the training data also the importance of each column.

        Parameters
        ----------
        X, y, sample_weight : optional
            The data of `fit`, for the effects per standard deviation, the order of entry, the
            drop-one losses and the half-samples.
        n_half_samples : int
            Number of half-samples, two per shuffle of the rows, on which the same number of columns
            is selected again by a fast search; the command line and the report use 10.
        random_state : int, RandomState or None
            Seed of the half-samples; by default that of the estimator if it is a number, else 0.

        Returns
        -------
        Summary
            Largest drop-one loss first, or without data the largest coefficient.
        """
        check_is_fitted(self)
        return summarize(self, _names(self), X, y, sample_weight, n_half_samples, random_state)

    def to_sklearn(self) -> Any:
        """Convert to a fitted scikit-learn estimator, for export and for other tools."""
        est: Any = self
        check_is_fitted(est)
        if hasattr(est, "estimator_"):
            return est.estimator_.to_sklearn()
        plain = est._loss().as_sklearn()
        for name in ("coef_", "intercept_", "n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(est, name):
                # NumPy scalars, as in scikit-learn's own fits, on which converters rely
                value = getattr(est, name)
                value = np.float64(value) if isinstance(value, float) else value
                setattr(plain, name, value.copy() if isinstance(value, np.ndarray) else value)
        if hasattr(plain, "_get_loss"):
            # its generalized linear models predict through the link of this loss
            plain._base_loss = plain._get_loss()
        if hasattr(est, "classes_"):
            plain.n_iter_ = np.array([est.n_iter_])
        return plain


def summarize(
    est: Any,
    names: NDArray[Any],
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    n_half_samples: int = 0,
    random_state: Any = None,
) -> Summary:
    """Summarize a fitted estimator like its method `summary`, with given names of the columns."""
    columns: dict[str, Any] = {"feature": names[est.support_], "coef": _sizes(est)}
    notes, cautions, n_repeated = [INFERENCE], [], 0
    if est.coef_.ndim == 2 and len(est.coef_) > 1:
        what = "classes" if hasattr(est, "classes_") else "responses"
        notes.append(LENGTHS.format(what=what))
    if X is not None:
        if y is None and not rows_of(X).has_target:
            raise ValueError("`summary` needs the target `y` of the fit beside `X`.")
        solver = getattr(est, "estimator_", est)
        data = solver._read(X, y, sample_weight, reset=False)
        problem = _judged(est, solver, data)
        columns |= _worth(est, problem, data)
        if n_half_samples and data.y is None:
            raise ValueError("Moments know no single rows: leave `n_half_samples` out.")
        if n_half_samples:
            shares, n_repeated = _again(est, solver, data, n_half_samples, random_state)
            columns |= {} if shares is None else {"again": shares}
            notes.append(NOT_REPEATED if shares is None else AGAIN)
        cautions = _cautions(est, data, names.tolist(), problem)
        cautions += _like_noise(est, problem, columns["drop_one"])
    elif n_half_samples:
        raise ValueError("`n_half_samples` needs the data: give `X` and `y` of the fit.")
    # the largest loss without a column first, or without data the largest coefficient
    order = np.argsort(-columns.get("drop_one", np.abs(columns["coef"])), kind="stable")
    return Summary(
        {name: np.asarray(values)[order] for name, values in columns.items()},
        _heading(est), tuple(notes), tuple(cautions), est.support_[order], n_repeated,
    )  # fmt: skip


def _heading(est: Any) -> str:
    what = "columns" if est.result_.groups is None else "groups"
    ridge = f", ridge {read_ridge(est.ridge_).words}" if est.ridge_ else ""
    return (
        f"{type(est).__name__}: {est.n_nonzero_} of {est.result_.n_units} {what}, "
        f"objective {est.objective_:.6g}{ridge}\n{est.result_.message}"
    )


def _entries(est: Any, problem: Any) -> NDArray[np.int64]:
    """Find the smallest subset of the path that contains each selected column."""
    support = est.support_
    path = getattr(est, "path_", None)
    if path is None:
        sizes = range(max(1, problem.keep.size), est.n_nonzero_)
        points = [(est._price_at(size), size) for size in sizes]
        path = solve_path(problem, points, random_state=0, is_checked=False) if points else ()
    entry, units = np.full(support.size, est.n_nonzero_, dtype=np.int64), problem.units
    for result in reversed([r for r in path if r.n_nonzero <= est.n_nonzero_]):
        entry[np.isin(support, units.columns(units.of(result.support)))] = result.n_nonzero
    return entry


def drop_one(problem: Any, coef: Floats, support: NDArray[np.int64]) -> Floats:
    """Compute how much the objective rises without each column, others re-fitted; NaN if kept.

    Columns of a group leave together. `coef` is the fit, (n,) or (n, n_classes), and the problem's
    budget has room for its support.
    """
    problem = reduced(problem)
    fits = make_fits(problem)
    # from the fit itself: from other starts, a loss like Poisson's may diverge
    w = fits.on(support, problem.from_given(coef)).w
    here = problem.objective(w)
    rises = np.full(support.size, np.nan)
    for unit in np.setdiff1d(problem.units.of(support), problem.keep):
        leaves = np.isin(support, problem.units.members(unit))
        rises[leaves] = problem.objective(fits.on(support[~leaves], w).w) - here
    return rises


def _again(
    est: Any, solver: Any, data: Data, n_samples: int, random_state: Any
) -> tuple[Floats | None, int]:
    """Compute the share of half-samples that select each selected column, and their number."""
    from blockl0.estimators.linear import seed_of  # a circular import otherwise

    given = solver.random_state if random_state is None else random_state
    seed = seed_of(given if isinstance(given, numbers.Integral) or random_state is not None else 0)
    budget = int(est.n_nonzero_)
    again = chosen_again(solver, data, [budget], n_samples, seed)
    return again.shares(budget, est.support_), again.n_samples


def _names(est: Any) -> NDArray[Any]:
    unnamed = np.array([f"x{j}" for j in range(est.n_features_in_)], dtype=object)
    return getattr(est, "feature_names_in_", unnamed)


def _sizes(est: Any) -> Floats:
    """Return the coefficients of the selected columns, or their norms over several classes."""
    coef = np.atleast_2d(est.coef_)[:, est.support_]
    return coef[0] if len(coef) == 1 else np.sqrt(np.sum(coef**2, axis=0))


def _worth(est: Any, problem: Any, data: Data) -> dict[str, Any]:
    """Compute what the data say about every selected column."""
    fit = _as_given(est)
    return {
        "per_sd": _sizes(est) * rows_of(rows_of(data.X).rows_like(est.support_)).spreads,
        "entry": _entries(est, problem),
        "drop_one": drop_one(problem, fit, est.support_),
    }


def _as_given(est: Any) -> Floats:
    """Shape the coefficients as in the problem: (n,), or (n, n_classes)."""
    fit = np.atleast_2d(est.coef_).T
    return fit if fit.shape[1] > 1 else fit[:, 0]


def _judged(est: Any, solver: Any, data: Data) -> Any:
    """Build the problem of the fit, in which the worth of columns is computed.

    Costs of coefficients only affect the selection; the worth of a column is that of its loss.
    """
    problem = solver._problem_for(data).problem
    if solver._price_at(int(est.n_nonzero_)):
        problem = replace(problem, sparsity=problem.sparsity._replace(price=0.0))
    return problem


def _like_noise(est: Any, problem: Any, rises: Floats) -> list[str]:
    """Find chosen groups that hardly explain more than noise."""
    if problem.units is COLUMNS:
        return []
    fit = _as_given(est)
    rest = problem.data_loss(problem.from_given(fit))
    n_left = problem.total_weight * problem.n_outputs - fit[est.support_].size - 1.0
    notes = []
    for unit in problem.units.of(est.support_):
        inside = problem.units.each(est.support_) == unit
        rise, name = float(rises[inside][0]), str(problem.units.labels[unit])
        note = like_noise(name, rise, int(inside.sum()), rest, n_left, problem.loss)
        notes += [] if note is None else [note]
    return notes


def _cautions(est: Any, data: Data, names: list[str], problem: Any) -> list[str]:
    """List warnings about the interpretation of coefficients."""
    chosen = [names[j] for j in est.support_]
    coef = np.atleast_2d(est.coef_)[:, est.support_].T
    groups = est._units(len(names)).each(est.support_)
    X = rows_of(data.X).rows_like(est.support_)
    pairs = opposed_pairs(X, coef, groups)
    notes = [pair.sentence(chosen) for pair in pairs]
    at_zero = objective_at_zero(problem)
    if problem.is_quadratic and coef.shape[1] == 1 and at_zero > 0.0:
        left = est.objective_ / at_zero
        said = determined(chosen, coef[:, 0], rows_of(X).spreads, left, data.X.shape[0])
        notes += [] if said is None else [as_text(said)]
    note = crowded(int(est.n_nonzero_), est.support_.size, data.X.shape[0])
    notes += [] if note is None else [note]
    if data.n_classes and est.support_.size:
        eta = np.asarray(rows_of(data.X).columns(est.support_) @ coef) + np.asarray(est.intercept_)
        codes = np.argmax(eta, axis=1) if eta.shape[1] > 1 else (eta[:, 0] > 0) * 1
        note = separation(float(np.mean(codes == data.y)), read_ridge(est.ridge_))
        notes += [] if note is None else [note]
    return notes
