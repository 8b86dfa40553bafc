"""fastsparsegams for a price: 60 prices falling to it, each from the last point, all re-fitted.

Prices are on the scale of ‖y‖ = 1 and unit columns.
"""

from __future__ import annotations

from functools import partial

import fastsparsegams
import numpy as np

from ._support import cheapest_support, column_norms

GRID = 60


def _fit(X, y, price, *, algorithm):
    size = float(y @ y)
    largest = 0.5 * np.max((X.T @ y / column_norms(X)) ** 2)
    prices = np.geomspace(max(largest, 2.0 * price), price, GRID)
    model = fastsparsegams.fit(
        X,
        y,
        penalty="L0",
        algorithm=algorithm,
        intercept=False,
        screen_size=X.shape[1],
        max_support_size=min(X.shape),
        lambda_grid=[list(prices / size)],
        num_lambda=None,
        num_gamma=None,
    )
    path = model.coeffs[0].tocsc()
    coefs = (path[:, [t]].toarray().ravel() for t in range(path.shape[1]))
    return cheapest_support(X, y, coefs, price)


METHODS = {
    f"fastsparsegams-{algorithm.lower()}-prices": partial(_fit, algorithm=algorithm)
    for algorithm in ("CD", "CDPSI")
}
