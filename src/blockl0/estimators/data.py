"""The data of a fit, as the loss, the splitter and the scorer see them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_method_params

from blockl0.losses import Loss
from blockl0.problem.blocks import Blocks
from blockl0.problem.design_base import Design
from blockl0.problem.factors import Factor


def columns_of(X: Any, idx: Any) -> Any:
    """Some columns of X, an array, a sparse matrix or a design."""
    return X.columns(idx) if isinstance(X, Design) else X[:, idx]


class Data(NamedTuple):
    """Rows of X: y as the splitter sees it, numbers or codes, and the target as the loss does.

    `for_scorer` holds metadata of the rows that a scorer is given by name, and `factor` stands for
    the rows where the loss is the squared one and they are many. Of `Moments`, which are then X,
    there is only the factor.
    """

    X: Any
    y: Any
    target: Any
    n_classes: int
    weights: Any
    for_scorer: dict[str, Any] | None = None
    factor: Factor | None = None

    def rows(self, where: Any) -> Data:
        """Some of the rows."""
        if isinstance(self.X, Blocks):
            X = self.X.rows(where)
        else:
            X = sp.csc_array(self.X.tocsr()[where]) if sp.issparse(self.X) else self.X[where]
        weights = None if self.weights is None else self.weights[where]
        given = _check_method_params(self.X, self.for_scorer or {}, indices=where)
        return Data(X, self.y[where], self.target[where], self.n_classes, weights, given)

    def to_fit(self, where: Any) -> Data:
        """Some of the rows, for a fit; of X in blocks of columns by weights of all rows."""
        if not isinstance(self.X, Blocks):
            return self.rows(where)
        weights = np.bincount(where, minlength=len(self.y)).astype(np.float64)
        return self._replace(weights=weights if self.weights is None else weights * self.weights)

    @property
    def is_empty(self) -> bool:
        """Whether no row counts."""
        if self.y is None:
            return self.factor is None or self.factor.n_rows == 0
        return len(self.y) == 0 or (self.weights is not None and not self.weights.any())

    def can_train(self, loss: Loss) -> bool:
        """Whether every class is there, and what else the loss needs."""
        if self.is_empty or self.y is None:
            return not self.is_empty
        used = slice(None) if self.weights is None else self.weights > 0.0
        if self.n_classes:
            return np.unique(self.y[used]).size == self.n_classes
        return loss.can_train(self.target[used])
