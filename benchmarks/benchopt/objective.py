"""Best subset: min ½‖y − Xw‖² subject to at most k nonzeros, as a benchopt objective."""

from __future__ import annotations

import numpy as np
from benchmark_utils.supports import loss_on

from benchopt import BaseObjective


class Objective(BaseObjective):
    """Every solver's support is judged alike: least squares on it, and nothing beyond k columns."""

    name = "Best subset"
    min_benchopt_version = "1.6"
    requirements = ["numpy"]
    sampling_strategy = "run_once"

    def set_data(self, X, y, n_nonzero):
        self.X, self.y, self.n_nonzero = X, y, n_nonzero

    def evaluate_result(self, support):
        if len(support) > self.n_nonzero:
            return {"value": np.inf, "n_nonzero": len(support)}
        return {"value": loss_on(self.X, self.y, support), "n_nonzero": len(support)}

    def get_one_result(self):
        return {"support": np.arange(1)}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "n_nonzero": self.n_nonzero}
