"""abess: splicing, at one size and along all sizes."""

from __future__ import annotations

import numpy as np
from abess.linear import LinearRegression

from benchopt import BaseSolver


class Solver(BaseSolver):
    """By the loss itself the largest size of a path is the one returned."""

    name = "abess"
    parameters = {"along": ["size", "path"]}
    requirements = ["pip::abess"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_nonzero):
        self.X, self.y, self.n_nonzero = X, y, n_nonzero

    def warm_up(self):
        # what is compiled is compiled before the clock starts
        self.run(None)

    def run(self, _):
        sizes = self.n_nonzero if self.along == "size" else range(1, self.n_nonzero + 1)
        model = LinearRegression(support_size=sizes, fit_intercept=False, thread=1, ic_type="loss")
        self.support = np.flatnonzero(model.fit(self.X, self.y).coef_)

    def get_result(self):
        return {"support": self.support}
