"""What each of some columns would bring to fits of least squares, from products with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = tuple[Floats, Floats, NDArray[np.bool_]]
"""Of a fit: K = inv(X_S'X_S + ridge), (s, s); its coefficients, (s,); and what may leave, (s,)."""

LEAST_PIVOT = 1e-9
"""Of a squared length: with a smaller pivot a column is in the span of the support."""
SMALLEST = 1e-300
"""Keeps a zero column from dividing zero by zero."""


def prices_at(U: Floats, tables: tuple[Table, ...], sq: Floats) -> Floats:
    """Gains by additions, changes by the best swaps, and pivots, at each of some fits, (k, 3, c).

    Parameters
    ----------
    U : ndarray (Σ(s + 1), c)
        For every fit X_S'X, and below it the gradient of the columns.
    tables : tuple of Table
    sq : ndarray (c,)
        Squared lengths of the columns, the ridge included.
    """
    answer, at = np.empty((len(tables), 3, sq.size)), 0
    for (K, w, free), place in zip(tables, answer, strict=True):
        place[:] = _prices(U[at : at + w.size], K, w, U[at + w.size], sq, free)
        at += w.size + 1
    return answer


def _prices(
    U: Floats, K: Floats, w: Floats, g: Floats, sq: Floats, free: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Gains, swaps and pivots of some columns; U = X_S' X_part, (s, c)."""
    from blockl0 import (
        kernels,  # with the compiler, which a table that is refused does not wait for
    )

    W = K @ U
    M = np.maximum(sq - np.einsum("ij,ij->j", U, W), 0.0)
    least, is_zero = LEAST_PIVOT * sq, sq <= 0.0
    gains = 0.5 * g * g / np.where(M > least, M, np.inf)
    swaps = np.full(sq.size, np.inf)
    kernels.price_swaps(W, np.diag(K).copy(), w, free, g, M, least + SMALLEST, swaps)
    gains[is_zero], swaps[is_zero] = -np.inf, np.inf
    return gains, swaps, M
