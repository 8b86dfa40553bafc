"""Forward selection with re-fitting, in NumPy: one product with X per column chosen."""

from __future__ import annotations

import numpy as np

REDUNDANT = 1e-10


def forward(X, y, s):
    """Add s times the column that lowers the re-fitted objective most.

    With q the chosen column orthogonalized to those before it and of unit length, u = X'q updates
    the correlations with the residual, c − u q'y, and what is left of the squared norms, d − u²;
    the next column is the one of largest c²/d. O(mn) each.
    """
    corr, norms = X.T @ y, np.einsum("ij,ij->j", X, X)
    left, floor = norms.copy(), np.maximum(REDUNDANT * norms, np.finfo(float).tiny)
    basis, support = np.empty((X.shape[0], s), order="F"), []
    while len(support) < s:
        gain = np.where(left > floor, corr**2 / np.maximum(left, floor), -1.0)
        gain[support] = -1.0
        j = int(np.argmax(gain))
        if gain[j] <= 0.0:
            break
        known, q = basis[:, : len(support)], X[:, j].copy()
        for _ in range(2):  # twice is enough to be orthogonal in floating point
            q -= known @ (known.T @ q)
        q /= np.linalg.norm(q)
        basis[:, len(support)] = q
        u = X.T @ q
        corr -= u * (q @ y)
        left -= u**2
        support.append(j)
    return np.array(support)


METHODS = {"forward": forward}
