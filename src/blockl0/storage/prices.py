"""What each of some columns would bring to a fit of least squares, from products with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels

Floats = NDArray[np.float64]

LEAST_PIVOT = 1e-9
"""Of a squared length: with a smaller pivot a column is in the span of the support."""
SMALLEST = 1e-300
"""Keeps a zero column from dividing zero by zero."""


def swap_prices(
    U: Floats, K: Floats, w: Floats, free: NDArray[np.bool_], price: float, sq: Floats
) -> tuple[Floats, Floats]:
    """The change by the best addition or swap that brings in each column, and the pivots, (c,).

    Parameters
    ----------
    U : ndarray (s + 1, c)
        X_S'X for the support S, and the gradient of the columns as the last line.
    K : ndarray (s, s)
        inv(X_S'X_S + ridge).
    w : ndarray (s,)
    free : ndarray of bool (s,)
        Members that may leave.
    price : float
        Of an addition; infinite where there is no room.
    sq : ndarray (c,)
        Squared lengths of the columns, the ridge included.
    """
    U, g = U[:-1], U[-1]
    W = K @ U
    M = np.maximum(sq - np.einsum("ij,ij->j", U, W), 0.0)
    least = LEAST_PIVOT * sq
    change = price - 0.5 * g * g / np.where(M > least, M, np.inf)
    kernels.price_swaps(W, np.diag(K).copy(), w, free, g, M, least + SMALLEST, change)
    change[sq <= 0.0] = np.inf
    return change, M
