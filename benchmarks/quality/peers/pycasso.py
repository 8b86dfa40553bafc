"""pycasso: the MCP path, re-fitted on its supports.

The package ends a path where the fit stagnates, even if a smaller penalty would change it again;
the adapter then goes on with the rest of the penalties.
"""

from __future__ import annotations

import numpy as np
import pycasso

from ._support import best_support, column_norms

LENGTH, RATIO, RESUMES = 200, 0.96, 8


def _mcp(X, y, s):
    largest = float(np.max(np.abs(X.T @ y) / column_norms(X))) / np.sqrt(len(y))
    penalties, coefs = largest * RATIO ** np.arange(LENGTH), []
    for _ in range(RESUMES):
        solver = pycasso.Solver(
            X, y, lambdas=penalties, penalty="mcp", gamma=3, useintercept=False, dfmax=s
        )
        solver.train()
        fitted = solver.coef()["beta"]
        coefs.extend(fitted)
        penalties = penalties[len(fitted) :]
        if not len(penalties) or not len(fitted) or np.count_nonzero(fitted[-1]) > s:
            break
    return best_support(X, y, coefs, s)


METHODS = {"pycasso-mcp": _mcp}
