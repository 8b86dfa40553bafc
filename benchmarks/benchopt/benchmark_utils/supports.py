"""The loss on a support, and the best support of a path of coefficients."""

from __future__ import annotations

import numpy as np


def column_norms(X):
    """‖x_j‖, one for columns of zeros."""
    norms = np.linalg.norm(X, axis=0)
    return np.where(norms > 0.0, norms, 1.0)


def loss_on(X, y, support):
    """½‖y − Xw‖² at the least-squares fit on a support."""
    columns = X[:, support]
    w = np.linalg.lstsq(columns / column_norms(columns), y, rcond=None)[0]
    return 0.5 * float(np.sum((y - columns / column_norms(columns) @ w) ** 2))


def best_support(X, y, coefs, n_nonzero):
    """Of the supports of some coefficients with at most `n_nonzero` columns that of least loss."""
    supports = {tuple(np.flatnonzero(w)) for w in coefs}
    allowed = [list(s) for s in supports if 0 < len(s) <= n_nonzero]
    return np.array(min(allowed, key=lambda s: loss_on(X, y, s), default=[]), dtype=np.int64)
