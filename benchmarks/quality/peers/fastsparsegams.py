"""fastsparsegams (L0Learn's code): coordinate descent, without and with swaps, on price paths.

"path" lets the package choose the prices, "grid" gives it 200 prices falling by 6 % each, from the
largest that matters. Prices are on the scale of ‖y‖ = 1 and unit columns.
"""

from __future__ import annotations

from functools import partial

import fastsparsegams
import numpy as np

from ._support import best_support, column_norms

GRID, RATIO = 200, 0.94


def _grid(X, y):
    largest = 0.5 * np.max((X.T @ y / (column_norms(X) * np.linalg.norm(y))) ** 2)
    return {
        "lambda_grid": [list(0.99 * largest * RATIO ** np.arange(GRID))],
        "num_lambda": None,
        "num_gamma": None,
    }


def _fit(X, y, s, *, algorithm, grid):
    model = fastsparsegams.fit(
        X,
        y,
        penalty="L0",
        algorithm=algorithm,
        intercept=False,
        screen_size=X.shape[1],
        max_support_size=s,
        **(_grid(X, y) if grid else {}),
    )
    path = model.coeffs[0].tocsc()
    return best_support(X, y, (path[:, [t]].toarray().ravel() for t in range(path.shape[1])), s)


METHODS = {
    f"fastsparsegams-{algorithm.lower()}-{kind}": partial(
        _fit, algorithm=algorithm, grid=kind == "grid"
    )
    for algorithm in ("CD", "CDPSI")
    for kind in ("path", "grid")
}
