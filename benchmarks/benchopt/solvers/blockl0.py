"""blockl0, at each of its efforts."""

from __future__ import annotations

from benchopt import BaseSolver
from blockl0 import solve


class Solver(BaseSolver):
    """Supports re-fitted at every step: walks, pricing."""

    name = "blockl0"
    parameters = {"effort": ["fast", "balanced", "thorough"]}
    requirements = ["pip::blockl0"]
    sampling_strategy = "run_once"

    def set_objective(self, X, y, n_nonzero):
        self.X, self.y, self.n_nonzero = X, y, n_nonzero

    def warm_up(self):
        # what is compiled is compiled before the clock starts
        self.run(None)

    def run(self, _):
        budget = self.n_nonzero
        self.support = solve(
            self.X, self.y, n_nonzero_coefs=budget, effort=self.effort, random_state=0
        ).support

    def get_result(self):
        return {"support": self.support}
