"""The parts of a fit: data as an estimator reads them, its problem, and the result taken over.

For programs that do more with an estimator than fit it, such as the command line, which proves a
choice that it has made, or makes a path once for two rules.
"""

from __future__ import annotations

from typing import Any

from blockl0.estimators.data import Data
from blockl0.losses import Loss
from blockl0.problem.preprocess import Prepared
from blockl0.result import Result

__all__ = ["Data", "bind", "loss_of", "plain_estimator", "price_at", "read_data", "take_result"]


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


def loss_of(est: Any) -> Loss:
    """Return the loss of an estimator, refusing one that it does not take."""
    return est._loss()
