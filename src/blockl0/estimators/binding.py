"""The parts of a fit: data as an estimator holds them, its problem, and the result taken over.

X is in memory, read in blocks, or moments in the place of rows. For folds and half-samples, and for
programs that do more with an estimator than fit it, such as the command line, which proves a choice
that it has made, or makes a path once for two rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_method_params

from blockl0.data.blocks import Blocks
from blockl0.losses import Loss
from blockl0.problem.factors import Factor
from blockl0.problem.moments import Moments
from blockl0.problem.preprocess import Prepared, count_distinct_rows
from blockl0.result import Result

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class MemoryRows:
    """X in memory, an array or a sparse matrix, and what the other kinds of X answer, too.

    Attributes
    ----------
    is_stored : bool
        Whether X is read in blocks, in passes that several fits share.
    has_target : bool
        Whether y is part of X, whose single rows are not known.
    """

    is_stored = False
    has_target = False

    def __init__(self, X: Any) -> None:
        self.X = X

    def columns(self, idx: Any) -> Any:
        """Take some columns, to multiply with coefficients."""
        return self.X[:, idx]

    def rows_like(self, idx: Ints) -> Any:
        """Take some columns, or rows with the same spreads and correlations."""
        return self.columns(idx)

    def take(self, where: Any) -> Any:
        """Take some rows, as X of the same kind."""
        return sp.csc_array(self.X.tocsr()[where]) if sp.issparse(self.X) else self.X[where]

    def n_distinct(self, enough: int, weights: Floats | None = None) -> int:
        """Count distinct rows of positive weight, up to `enough`."""
        X = self.X
        if weights is not None:
            X = (X.tocsr() if sp.issparse(X) else X)[weights > 0.0]
        return count_distinct_rows(X, enough)

    @property
    def spreads(self) -> Floats:
        """The standard deviation of every column, (n,)."""
        if not sp.issparse(self.X):
            return np.asarray(self.X, dtype=np.float64).std(axis=0)
        mean = np.asarray(self.X.mean(axis=0)).ravel()
        squares = np.asarray(self.X.multiply(self.X).mean(axis=0)).ravel()
        return np.sqrt(np.maximum(squares - mean**2, 0.0))

    @property
    def for_splitter(self) -> Any:
        """X as a splitter takes it."""
        return self.X


class StoredRows(MemoryRows):
    """X read in blocks; a fold is a weight of every row."""

    is_stored = True

    def columns(self, idx: Any) -> Any:
        """Read some columns."""
        return self.X.columns(idx)

    def take(self, where: Any) -> Any:
        """Take some rows, as X of the same kind."""
        return self.X.rows(where)

    def n_distinct(self, enough: int, weights: Floats | None = None) -> int:
        """Count the rows, which would take a pass to compare."""
        return min(self.X.shape[0], enough)

    @property
    def spreads(self) -> Floats:
        """The standard deviation of every column, (n,)."""
        return self.X.spreads

    @property
    def for_splitter(self) -> Any:
        """Rows without entries, of which splitters only look at the number."""
        return np.empty((self.X.shape[0], 0))

    def run(self, tasks: list[Callable[[], Any]]) -> list[Any]:
        """Run tasks side by side, which share passes over X."""
        self.X.n_searches = len(tasks)
        try:
            return self.X.batcher.run(tasks)
        finally:
            self.X.n_searches = 1


class MomentRows(MemoryRows):
    """Moments in the place of rows and target."""

    has_target = True

    def rows_like(self, idx: Ints) -> Any:
        """Make rows with the same spreads and correlations.

        With the factor R of k centred columns above −R, means are zero and products are those of
        all rows.
        """
        R = self.X.factor.triangle.R[1:, 1 + idx]
        return np.vstack([R, -R]) * np.sqrt(len(R) / self.X.total)

    def n_distinct(self, enough: int, weights: Floats | None = None) -> int:
        """Count the rows."""
        return self.X.n_samples

    @property
    def spreads(self) -> Floats:
        """The standard deviation of every column, (n,)."""
        return self.X.spreads


KINDS: tuple[tuple[type, type[MemoryRows]], ...] = ((Moments, MomentRows), (Blocks, StoredRows))
"""How an estimator holds an X of a type; rows in memory otherwise."""


def rows_of(X: Any) -> MemoryRows:
    """Return X as an estimator holds it."""
    return next((kind for stored, kind in KINDS if isinstance(X, stored)), MemoryRows)(X)


class Data(NamedTuple):
    """Rows of X, with y for the splitter (numbers or codes), and the target for the loss.

    `for_scorer` holds metadata of the rows passed to a scorer by name. `factor` replaces the rows
    if the loss is squared and they are many. For `Moments`, given as X, there is only the factor.
    """

    X: Any
    y: Any
    target: Any
    n_classes: int
    weights: Any
    for_scorer: dict[str, Any] | None = None
    factor: Factor | None = None

    def rows(self, where: Any) -> Data:
        """Take some of the rows."""
        X = rows_of(self.X).take(where)
        weights = None if self.weights is None else self.weights[where]
        given = _check_method_params(self.X, self.for_scorer or {}, indices=where)
        return Data(X, self.y[where], self.target[where], self.n_classes, weights, given)

    def to_fit(self, where: Any) -> Data:
        """Take some of the rows for a fit; with X in blocks, by weights of all rows."""
        if not rows_of(self.X).is_stored:
            return self.rows(where)
        weights = np.bincount(where, minlength=len(self.y)).astype(np.float64)
        return self._replace(weights=weights if self.weights is None else weights * self.weights)

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        if self.y is None:
            return 0 if self.factor is None else self.factor.n_rows
        return len(self.y) if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def is_empty(self) -> bool:
        """Whether no row has positive weight."""
        return self.n_rows == 0

    def can_train(self, loss: Loss) -> bool:
        """Check if every class occurs, and the other needs of the loss."""
        if self.is_empty or self.y is None:
            return not self.is_empty
        used = slice(None) if self.weights is None else self.weights > 0.0
        if self.n_classes:
            return np.unique(self.y[used]).size == self.n_classes
        return loss.can_train(self.target[used])


__all__ = [
    "Data", "bind", "loss_of", "plain_estimator", "price_at", "read_data", "take_result",
    "weigh_classes",
]  # fmt: skip


def read_data(est: Any, X: Any, y: Any, sample_weight: Any = None) -> Data:
    """Check and encode data as a fit does, or as the fit did if the estimator is fitted.

    An estimator without a fit remembers the names, the number of columns and the classes.
    """
    return est._read(X, y, sample_weight, reset=not hasattr(est, "coef_"))


def bind(est: Any, data: Data) -> Prepared:
    """Build the problem that an estimator solves for some data, or has solved."""
    return est._problem_for(data)


def take_result(est: Any, result: Result, prepared: Prepared, like: Any = None) -> None:
    """Set the attributes of a fit from a result; its columns and classes are those of `like`."""
    for name in ("n_features_in_", "feature_names_in_", "classes_"):
        if hasattr(like, name):
            setattr(est, name, getattr(like, name))
    est._store(result, prepared)


def plain_estimator(est: Any) -> Any:
    """Return an estimator without cross-validation that selects as many columns; not fitted."""
    return est._plain()


def price_at(est: Any, budget: int) -> float:
    """Return the price that the costs of units multiply beside a budget; zero without costs."""
    return est._price_at(budget)


def weigh_classes(est: Any, data: Data) -> Data:
    """Multiply the sample weights of some data by those of their classes, if there are classes."""
    return data._replace(weights=est._weigh_classes(data.y, data.weights))


def loss_of(est: Any) -> Loss:
    """Return the loss of an estimator, refusing one that it does not take."""
    return est._loss()
