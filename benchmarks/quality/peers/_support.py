"""What several adapters need: scaled columns, and the choice of one support from a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Support = NDArray[np.intp]

CANDIDATES = 10
PATH_RATIO, PATH_LENGTH, BISECTIONS = 0.9, 100, 6


def column_norms(X: Floats) -> Floats:
    """Euclidean norms, 1 for zero columns."""
    norms = np.sqrt(np.einsum("ij,ij->j", X, X))
    norms[norms == 0.0] = 1.0
    return norms


def refitted(X: Floats, y: Floats, support: Support) -> float:
    """½‖y − Xw‖² by least squares on the support."""
    columns = X[:, support]
    w = np.linalg.lstsq(columns, y, rcond=None)[0]
    return 0.5 * float(np.sum((y - columns @ w) ** 2))


def best_support(X: Floats, y: Floats, coefs: Iterable[Floats], s: int) -> Support:
    """The best support, re-fitted, of the ten largest distinct ones with at most s columns."""
    distinct = {tuple(np.flatnonzero(coef)) for coef in coefs}
    usable = sorted((found for found in distinct if 0 < len(found) <= s), key=len, reverse=True)
    if not usable:
        return np.zeros(0, dtype=np.intp)
    supports = [np.array(found, dtype=np.intp) for found in usable[:CANDIDATES]]
    return min(supports, key=lambda support: refitted(X, y, support))


def cheapest_support(X: Floats, y: Floats, coefs: Iterable[Floats], price: float) -> Support:
    """Of the distinct supports, the one with the smallest re-fitted loss and price."""
    distinct = {tuple(np.flatnonzero(coef)) for coef in coefs} | {()}
    supports = [np.array(found, dtype=np.intp) for found in sorted(distinct)]
    return min(supports, key=lambda found: refitted(X, y, found) + price * found.size)


def walk_down(fit: Callable[[float, Floats], Floats], start: float, n: int, s: int) -> list[Floats]:
    """Coefficients along a falling penalty until more than s are nonzero, then bisect the last gap.

    ``fit(penalty, w)`` starts from w. A path alone jumps over sizes; the bisection fills them in.
    """
    w, penalty, coefs = np.zeros(n), start, []
    for _ in range(PATH_LENGTH):
        penalty *= PATH_RATIO
        inner, w = w, fit(penalty, w)
        if np.count_nonzero(w) > s:
            break
        coefs.append(w)
    else:
        return coefs
    low, high = penalty, penalty / PATH_RATIO
    for _ in range(BISECTIONS):
        middle = np.sqrt(low * high)
        w = fit(middle, inner)
        coefs.append(w)
        if np.count_nonzero(w) > s:
            low = middle
        else:
            high, inner = middle, w
        if np.count_nonzero(w) == s:
            break
    return coefs
