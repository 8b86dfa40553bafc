"""skscope: SCOPE (splicing for any objective) with NumPy value and gradient."""

from __future__ import annotations

import numpy as np
from skscope import ScopeSolver


def _scope(X, y, s):
    def value(w):
        return 0.5 * float(np.sum((y - X @ w) ** 2))

    def gradient(w):
        return X.T @ (X @ w - y)

    solver = ScopeSolver(X.shape[1], s)
    return np.flatnonzero(solver.solve(value, gradient=gradient, jit=False))


METHODS = {"skscope-scope": _scope}
