"""Two columns at once: what pays together and not alone, read off a quadratic model.

Of two columns that are nearly alike, the difference may carry the signal while neither does: a
suppressor. At a price such a pair is never entered column by column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLEAR = 1e-6
"""Determinant of a pair of unit columns below which the two are one."""


def best_pairs(G: Floats, B: Floats, support: Ints, count: int) -> list[Ints]:
    """Pairs outside a support that lower a quadratic most when both join it, the best first.

    With K = inv(G_SS), what the support leaves of the others is M = G − G_US K G_SU and
    R = B − G_US K B_S; a pair gains ½ Σ_c (R_ic² M_jj − 2 R_ic R_jc M_ij + R_jc² M_ii) / det.
    O(n²(s + C)) for n columns.

    Parameters
    ----------
    G : ndarray (n, n)
        X' diag(weights) X + ridge·I.
    B : ndarray (n, C)
        X' diag(weights) z.
    support : ndarray of int64
    count : int
    """
    K = np.linalg.pinv(G[np.ix_(support, support)], hermitian=True)
    W = K @ G[support]
    M, R = G - G[:, support] @ W, B - W.T @ B[support]
    own = M.diagonal()
    is_free = own > CLEAR * np.maximum(G.diagonal(), 1e-300)
    is_free[support] = False
    free = np.flatnonzero(is_free)
    if free.size < 2:
        return []
    # in units of what is left of each column
    scale = np.sqrt(own[free])
    T, R = M[np.ix_(free, free)] / scale / scale[:, None], R[free] / scale[:, None]
    determinant = 1.0 - T**2
    squares = np.einsum("ic,ic->i", R, R)
    gains = squares[:, None] + squares - 2.0 * T * (R @ R.T)
    gains = np.where(determinant > CLEAR, gains / np.maximum(determinant, CLEAR), -np.inf)
    gains[np.tril_indices(free.size)] = -np.inf
    flat = gains.ravel()
    best = np.argpartition(-flat, min(count, flat.size) - 1)[:count]
    best = best[np.argsort(-flat[best], kind="stable")]
    return [free[[k // free.size, k % free.size]] for k in best if np.isfinite(flat[k])]
