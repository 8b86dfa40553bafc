"""skglm: MCP and L0.5 paths with warm starts, re-fitted on their supports.

Columns are scaled to norm √m and y likewise, the scale at which the penalties are meant.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from skglm.datafits import Quadratic
from skglm.penalties import L0_5, MCPenalty
from skglm.solvers import AndersonCD

from ._support import best_support, column_norms, walk_down


def _mcp(alpha):
    return MCPenalty(alpha, gamma=3.0)


def path(X, y, s, *, penalty):
    """Coefficients along the path, to more than s nonzeros."""
    m, n = X.shape
    scaled = np.asfortranarray(X * (np.sqrt(m) / column_norms(X)))
    target = y * (np.sqrt(m) / np.linalg.norm(y))
    solver = AndersonCD(fit_intercept=False, ws_strategy="fixpoint", warm_start=True)

    def fit(alpha, w):
        return solver.solve(scaled, target, Quadratic(), penalty(alpha), w.copy(), scaled @ w)[0]

    largest = float(np.max(np.abs(scaled.T @ target))) / m
    start = largest if penalty is _mcp else (largest / 1.5) ** 1.5
    return walk_down(fit, start, n, s)


def _path(X, y, s, *, penalty):
    return best_support(X, y, path(X, y, s, penalty=penalty), s)


METHODS = {"skglm-mcp": partial(_path, penalty=_mcp), "skglm-l05": partial(_path, penalty=L0_5)}
