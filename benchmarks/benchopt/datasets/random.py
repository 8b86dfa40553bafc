"""Independent Gaussian columns with a dense signal and much noise: hard for every heuristic."""

from __future__ import annotations

import numpy as np

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """y = Xw + 10·noise, w with 100 Gaussian entries."""

    name = "Random"
    parameters = {
        "shape": [(256, 1024)],
        "n_nonzero": [20, 50],
        "seed": [0, 1],
    }

    def get_data(self):
        rng, (m, n) = np.random.default_rng(self.seed), self.shape
        X, w = rng.standard_normal((m, n)), np.zeros(n)
        chosen = rng.choice(n, 100, replace=False)
        w[chosen] = rng.standard_normal(100)
        y = X @ w + 10.0 * rng.standard_normal(m)
        return {"X": np.asfortranarray(X), "y": y, "n_nonzero": self.n_nonzero}
