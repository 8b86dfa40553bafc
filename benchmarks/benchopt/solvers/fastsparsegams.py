"""fastsparsegams, L0Learn's code: coordinate descent, without and with swaps, on prices."""

from __future__ import annotations

import fastsparsegams
from benchmark_utils.supports import best_support

from benchopt import BaseSolver


class Solver(BaseSolver):
    """The package chooses the prices; all columns are looked at, and supports are re-fitted."""

    name = "fastsparsegams"
    parameters = {"algorithm": ["CD", "CDPSI"]}
    requirements = ["pip::fastsparsegams"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_nonzero):
        self.X, self.y, self.n_nonzero = X, y, n_nonzero

    def warm_up(self):
        # what is compiled is compiled before the clock starts
        self.run(None)

    def run(self, _):
        model = fastsparsegams.fit(
            self.X,
            self.y,
            penalty="L0",
            algorithm=self.algorithm,
            intercept=False,
            screen_size=self.X.shape[1],
            max_support_size=self.n_nonzero,
        )
        path = model.coeffs[0].tocsc()
        coefs = (path[:, [t]].toarray().ravel() for t in range(path.shape[1]))
        self.support = best_support(self.X, self.y, coefs, self.n_nonzero)

    def get_result(self):
        return {"support": self.support}
