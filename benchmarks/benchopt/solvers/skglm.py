"""skglm: a path of MCP penalties with warm starts, re-fitted on its supports."""

from __future__ import annotations

import numpy as np
from benchmark_utils.supports import best_support, column_norms
from skglm.datafits import Quadratic
from skglm.penalties import MCPenalty
from skglm.solvers import AndersonCD

from benchopt import BaseSolver


class Solver(BaseSolver):
    """Columns and y are scaled to norm √m, the scale at which the penalty is meant."""

    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_nonzero):
        self.X, self.y, self.n_nonzero = X, y, n_nonzero

    def warm_up(self):
        # what is compiled is compiled before the clock starts
        self.run(None)

    def run(self, _):
        self.support = best_support(self.X, self.y, self.path(), self.n_nonzero)

    def path(self):
        """Coefficients along falling penalties, till there are more nonzeros than asked for."""
        m, n = self.X.shape
        X = np.asfortranarray(self.X * (np.sqrt(m) / column_norms(self.X)))
        y = self.y * (np.sqrt(m) / np.linalg.norm(self.y))
        solver = AndersonCD(fit_intercept=False, ws_strategy="fixpoint", warm_start=True)
        alpha, w = float(np.max(np.abs(X.T @ y))) / m, np.zeros(n)
        for _ in range(200):
            alpha *= 0.95
            penalty = MCPenalty(alpha, gamma=3.0)
            w = solver.solve(X, y, Quadratic(), penalty, w.copy(), X @ w)[0]
            if np.count_nonzero(w) > self.n_nonzero:
                return
            yield w

    def get_result(self):
        return {"support": self.support}
