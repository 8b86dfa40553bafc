"""The data of a fit, as seen by the loss, the splitter and the scorer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_method_params

from blockl0.data.blocks import Blocks
from blockl0.data.design import Design
from blockl0.losses import Loss
from blockl0.problem.factors import Factor


def columns_of(X: Any, idx: Any) -> Any:
    """Take some columns of X: an array, a sparse matrix or a design."""
    return X.columns(idx) if isinstance(X, Design) else X[:, idx]


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
        if isinstance(self.X, Blocks):
            X = self.X.rows(where)
        else:
            X = sp.csc_array(self.X.tocsr()[where]) if sp.issparse(self.X) else self.X[where]
        weights = None if self.weights is None else self.weights[where]
        given = _check_method_params(self.X, self.for_scorer or {}, indices=where)
        return Data(X, self.y[where], self.target[where], self.n_classes, weights, given)

    def to_fit(self, where: Any) -> Data:
        """Take some of the rows for a fit; with X in blocks, by weights of all rows."""
        if not isinstance(self.X, Blocks):
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
