"""The parts of a fit: data as an estimator reads them, its problem, and the result taken over.

For folds and half-samples, and for programs that do more with an estimator than fit it, such as the
command line, which proves a choice that it has made, or makes a path once for two rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_method_params

from blockl0.estimators.rows import rows_of
from blockl0.losses import Loss
from blockl0.problem.factors import Factor
from blockl0.problem.preprocess import Prepared
from blockl0.result import Result


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


def take_result(est: Any, result: Result, prepared: Prepared) -> None:
    """Set the attributes of a fit from a result of its problem."""
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
