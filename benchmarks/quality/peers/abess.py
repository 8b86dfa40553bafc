"""abess: splicing, at one size, with as many exchanges as columns, and along all sizes to s."""

from __future__ import annotations

import numpy as np
from abess.linear import LinearRegression


def _fit(X, y, sizes, **options):
    model = LinearRegression(support_size=sizes, fit_intercept=False, thread=1, **options)
    try:
        return np.flatnonzero(model.fit(X, y).coef_)
    except OverflowError:  # it refuses zero columns: leave them out
        nonzero = np.flatnonzero(X.any(axis=0))
        return nonzero[np.flatnonzero(model.fit(X[:, nonzero], y).coef_)]


METHODS = {
    "abess-default": lambda X, y, s: _fit(X, y, s),
    "abess-exchange": lambda X, y, s: _fit(X, y, s, exchange_num=s),
    # warm starts from size to size; by the loss itself the largest size is the one returned
    "abess-path": lambda X, y, s: _fit(X, y, range(1, s + 1), ic_type="loss"),
}
