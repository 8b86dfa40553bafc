"""OKRidge: its beam search of width 50, which a negative time limit returns before branching."""

from __future__ import annotations

import numpy as np
from okridge.tree import BNBTree

from benchopt import BaseSolver


class Solver(BaseSolver):
    """The eigenvalues that its tree computes first are part of its time, as for its users."""

    name = "OKRidge"
    # it does not declare `requests`, which it imports
    requirements = ["pip::okridge", "pip::requests"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_nonzero):
        self.X, self.y, self.n_nonzero = X, y, n_nonzero

    def warm_up(self):
        # what is compiled is compiled before the clock starts
        self.run(None)

    def run(self, _):
        # the ridge only keeps columns of zeros from dividing by zero
        ridge = 1e-8 * float(np.mean(np.einsum("ij,ij->j", self.X, self.X)))
        tree = BNBTree(X=self.X, y=self.y, lambda2=ridge)
        self.support = np.flatnonzero(tree.solve(k=self.n_nonzero, time_limit=-1)[1])

    def get_result(self):
        return {"support": self.support}
