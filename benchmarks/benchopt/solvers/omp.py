"""Orthogonal matching pursuit by scikit-learn, on unit columns."""

from __future__ import annotations

import numpy as np
from benchmark_utils.supports import column_norms
from sklearn.linear_model import OrthogonalMatchingPursuit

from benchopt import BaseSolver


class Solver(BaseSolver):
    """Greedy: the column with the largest inner product, again and again."""

    name = "OMP"
    requirements = ["scikit-learn"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_nonzero):
        self.X, self.y, self.n_nonzero = X, y, n_nonzero

    def warm_up(self):
        # what is compiled is compiled before the clock starts
        self.run(None)

    def run(self, _):
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=self.n_nonzero, fit_intercept=False)
        self.support = np.flatnonzero(model.fit(self.X / column_norms(self.X), self.y).coef_)

    def get_result(self):
        return {"support": self.support}
