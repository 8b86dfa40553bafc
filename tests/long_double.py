"""The truth of small structured least squares in long double, by enumeration.

Every choice of columns that do not depend on each other (each, scaled to length 1, further than
`apart` from the span of the others) is fitted by Gram-Schmidt; within bounds, beside every choice
of bounds at which the others stay.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

LONG = np.longdouble
PRECISION = 8 * np.finfo(float).eps


def gram_schmidt(A):
    """(Q, inv(R)) of columns, orthogonalized three times; None where one vanishes."""
    k = A.shape[1]
    Q, R = np.zeros(A.shape, LONG), np.zeros((k, k), LONG)
    for j in range(k):
        v = A[:, j].copy()
        for _ in range(3):
            share = Q[:, :j].T @ v
            v, R[:j, j] = v - Q[:, :j] @ share, R[:j, j] + share
        R[j, j] = np.sqrt(v @ v)
        if R[j, j] == 0:
            return None
        Q[:, j] = v / R[j, j]
    inverse = np.zeros((k, k), LONG)
    for j in range(k):
        inverse[j, j] = 1 / R[j, j]
        for i in range(j - 1, -1, -1):
            inverse[i, j] = -(R[i, i + 1 : j + 1] @ inverse[i + 1 : j + 1, j]) / R[i, i]
    return Q, inverse


def best_on(X, y, columns, low, high, apart):
    """(loss, rounding) of the best admissible point on some columns, for one response."""
    X, y = X.astype(LONG), y.astype(LONG)
    norms = np.sqrt((X * X).sum(axis=0))
    best = (0.5 * y @ y, 0.0)
    for size in range(len(columns) + 1):
        for free in map(list, combinations(columns, size)):
            if (norms[free] == 0).any() or (low[free] == high[free]).any():
                continue
            found = gram_schmidt(X[:, free] / norms[free])
            if found is None or (size and 1 / np.sqrt((found[1] ** 2).sum(1)).max() <= apart):
                continue
            rest = [j for j in columns if j not in free]
            sides = [{0.0, low[j], high[j]} for j in rest]
            for at in product(*([s for s in side if np.isfinite(s)] for side in sides)):
                best = min(best, point(X, y, norms, free, found, rest, at, low, high))
    return best


def point(X, y, norms, free, found, rest, at, low, high):
    """(loss, rounding) of the fit of free columns beside others at bounds; infinite if outside."""
    Q, inverse = found
    target = y - X[:, rest] @ np.array(at, LONG)
    v = inverse @ (Q.T @ target)
    v = v + inverse @ (Q.T @ (target - X[:, free] / norms[free] @ v))
    w = v / norms[free]
    if not ((low[free] <= w) & (w <= high[free])).all():
        return np.inf, 0.0
    r = target - X[:, free] @ w
    reach = np.sqrt(y @ y) + np.abs(v).sum() + np.abs(np.array(at)) @ norms[rest]
    delta, length = PRECISION * float(reach), float(np.sqrt(r @ r))
    return 0.5 * r @ r, delta * length + delta * delta


def lowest(X, y, groups, budget, low, high, apart=2e-8):
    """(loss, rounding) of the best choice of `budget` groups."""
    found = []
    for chosen in combinations(sorted(set(groups)), budget):
        columns = [j for j, group in enumerate(groups) if group in chosen]
        found.append(best_on(X, y, columns, low, high, apart))
    return min(found)
