"""What an estimator says of itself: `summary` and `to_sklearn`."""

from __future__ import annotations

import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from blockl0.certificate.words import INFERENCE
from blockl0.estimators.data import Data
from blockl0.path import solve_path
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import ConstantColumnWarning
from blockl0.problem.reduction import reduced

Floats = NDArray[np.float64]

WIDTH = 88
"""Characters of a line of the notes."""
BOOTSTRAP = (
    "Inclusion is the share of bootstrap samples in which the column is chosen again; it measures "
    "stability, and is neither a probability that the column matters nor a p-value."
)
TITLES = {
    "feature": "feature",
    "coef": "coefficient",
    "entry": "entry",
    "drop_one": "drop-one loss",
    "inclusion": "inclusion",
}


@dataclass(frozen=True, eq=False)
class Summary:
    """The selected columns as a table; ``str`` prints it, `to_frame` makes a pandas DataFrame.

    Attributes
    ----------
    columns : dict
        "feature" and "coef" (for several classes the norm over them), and with data: "entry", the
        size of the smallest subset of the path that holds it; "drop_one", by how much the
        objective rises without it, the others re-fitted; "inclusion", a bootstrap frequency.
    heading, notes : str
    index : ndarray of int
        The number of each column in X.
    """

    columns: dict[str, NDArray[Any]]
    heading: str
    notes: str
    index: NDArray[np.int64]

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        cells = [[TITLES[name], *map(_cell, values)] for name, values in self.columns.items()]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in zip(*cells, strict=True)
        ]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([self.heading, rule, lines[0], rule, *lines[1:], rule, self.notes])


class SummaryMixin:
    """`summary` and `to_sklearn` for the linear estimators."""

    coef_: Any
    intercept_: Any
    support_: NDArray[np.int64]

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        n_bootstrap: int = 0,
        random_state: Any = None,
    ) -> Summary:
        """Explain the selection; with the training data also what each column is worth.

        Parameters
        ----------
        X, y, sample_weight : optional
            The data of `fit`, for the order of entry, the drop-one losses and the bootstrap.
        n_bootstrap : int
            Bootstrap samples on which the selection is repeated, each by a fast search.
        random_state : int, RandomState or None
            Of the bootstrap.

        Returns
        -------
        Summary
            Largest drop-one loss first, or without data the largest coefficient.
        """
        est: Any = self
        check_is_fitted(est)
        names = getattr(
            est, "feature_names_in_", np.array([f"x{j}" for j in range(est.n_features_in_)])
        )
        coef = np.atleast_2d(est.coef_)[:, self.support_]
        coef = coef[0] if len(coef) == 1 else np.sqrt(np.sum(coef**2, axis=0))
        columns: dict[str, Any] = {"feature": names[self.support_], "coef": coef}
        notes = [INFERENCE]
        importance = np.abs(coef)
        if X is not None:
            if y is None:
                raise ValueError("`summary` needs the target `y` of the fit beside `X`.")
            solver = getattr(est, "estimator_", est)
            data = solver._read(X, y, sample_weight, reset=False)
            prepared = solver._problem_for(data)
            columns["entry"] = _entries(est, prepared)
            fit = np.atleast_2d(est.coef_).T
            fit = fit if fit.shape[1] > 1 else fit[:, 0]
            importance = drop_one(prepared.problem, fit, self.support_)
            columns["drop_one"] = importance
            if n_bootstrap:
                columns["inclusion"] = _inclusion(solver, data, n_bootstrap, random_state)
                notes.append(BOOTSTRAP)
        elif n_bootstrap:
            raise ValueError("`n_bootstrap` needs the data: give `X` and `y` of the fit.")
        order = np.argsort(-importance, kind="stable")
        heading = (
            f"{type(self).__name__}: {est.n_nonzero_} of {est.n_features_in_} columns, "
            f"objective {est.objective_:.6g}\n{est.status_.message}"
        )
        return Summary(
            {k: np.asarray(v)[order] for k, v in columns.items()},
            heading,
            "\n".join(textwrap.fill(note, WIDTH) for note in notes),
            self.support_[order],
        )

    def to_sklearn(self) -> Any:
        """The same predictor as a fitted scikit-learn estimator, for export and for other tools."""
        est: Any = self
        check_is_fitted(est)
        if hasattr(est, "estimator_"):
            return est.estimator_.to_sklearn()
        plain = est._loss().as_sklearn()
        for name in ("coef_", "intercept_", "n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(est, name):
                # NumPy scalars too, as scikit-learn's own fits have, which converters rely on
                value = getattr(est, name)
                value = np.float64(value) if isinstance(value, float) else value
                setattr(plain, name, value.copy() if isinstance(value, np.ndarray) else value)
        if hasattr(plain, "_get_loss"):
            # its generalized linear models predict through the link of this
            plain._base_loss = plain._get_loss()
        if hasattr(est, "classes_"):
            plain.n_iter_ = np.array([est.n_iter_])
        return plain


def _entries(est: Any, prepared: Any) -> NDArray[np.int64]:
    """For every selected column the size of the smallest subset of the path that holds it."""
    problem, support = prepared.problem, est.support_
    path = getattr(est, "path_", None)
    if path is None:
        sizes = range(max(1, problem.keep.size), support.size)
        points = [(0.0, size) for size in sizes]
        path = solve_path(problem, points, random_state=0) if points else ()
    entry = np.full(support.size, support.size, dtype=np.int64)
    for result in reversed([r for r in path if r.n_nonzero <= support.size]):
        entry[np.isin(support, result.support)] = result.n_nonzero
    return entry


def drop_one(problem: Any, coef: Floats, support: NDArray[np.int64]) -> Floats:
    """By how much the objective rises without each column, the others re-fitted; NaN if kept.

    `coef` is the fit, (n,) or (n, n_classes), and the problem's budget has room for its support.
    """
    problem = reduced(problem)
    fits = make_fits(problem)
    # from the fit itself: of other starts, a loss like Poisson's may not come back
    w = fits.on(support, problem.from_given(coef)).w
    here = problem.objective(w)
    rises = np.full(support.size, np.nan)
    for i, j in enumerate(support):
        if j not in problem.keep:
            rises[i] = problem.objective(fits.on(np.delete(support, i), w).w) - here
    return rises


def _inclusion(est: Any, data: Data, n_bootstrap: int, random_state: Any) -> Floats:
    """The share of bootstrap samples, as weights, in which each selected column is chosen."""
    X, y, weights = data.X, est._labels(data.y), data.weights
    rng = check_random_state(random_state)
    m, counts = X.shape[0], np.zeros(X.shape[1])
    again: Any = clone(est._plain())
    again.set_params(effort="fast", random_state=0, keep=est._kept(X.shape[1]))
    done = 0
    for _ in range(10 * n_bootstrap):
        draw = np.bincount(rng.randint(0, m, m), minlength=m).astype(np.float64)
        draw = draw if weights is None else draw * weights
        if np.unique(data.y[draw > 0]).size < data.n_classes:
            continue
        with warnings.catch_warnings():
            # a column may well be constant in the rows of a draw
            warnings.simplefilter("ignore", ConstantColumnWarning)
            counts[again.fit(X, y, draw).support_] += 1.0
        done += 1
        if done == n_bootstrap:
            break
    return counts[est.support_] / max(done, 1)


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "kept" if np.isnan(value) else f"{value:.4g}"
    return str(value)
