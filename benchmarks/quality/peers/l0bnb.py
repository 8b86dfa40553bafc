"""l0bnb: branch and bound for a price, along falling prices within a time limit."""

from __future__ import annotations

import time

import numpy as np
from l0bnb import BNBTree

from ._support import best_support, column_norms

SECONDS, PRICES, RATIO, BIG_M = 5.0, 40, 0.8, 1.5


def _path(X, y, s):
    """Solve for falling prices, each from the last point, until s is exceeded or time is up."""
    ends = time.perf_counter() + SECONDS
    scaled, target = X / column_norms(X), y / np.linalg.norm(y)
    corr = scaled.T @ target
    first = int(np.argmax(np.abs(corr)))
    w = np.zeros(X.shape[1])
    w[first] = corr[first]
    price, coefs = 0.5 * corr[first] ** 2, [w]
    for remaining in range(PRICES, 0, -1):
        price *= RATIO
        left = ends - time.perf_counter()
        if left <= 0.0:
            break
        solution = BNBTree(scaled, target).solve(
            price,
            0.0,
            BIG_M * float(np.max(np.abs(w))),
            warm_start=w,
            time_limit=max(left / remaining, min(left, 0.2 * SECONDS)),
        )
        w = np.asarray(solution.beta)
        coefs.append(w)
        if np.count_nonzero(w) > s or not np.any(w):
            break
    return best_support(X, y, coefs, s)


METHODS = {"l0bnb": _path}
