"""X as estimators hold it: rows in memory, rows read in blocks, or moments in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockl0.data.blocks import Blocks
from blockl0.problem.moments import Moments
from blockl0.problem.preprocess import count_distinct_rows

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
