"""Neighbouring columns that resemble each other: greedy choices mislead."""

from __future__ import annotations

import numpy as np

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Columns with correlation 0.9^|i − j|, 20 of them with coefficients of ±1, standardized."""

    name = "Correlated"
    parameters = {"shape": [(300, 500)], "n_nonzero": [20], "seed": [0, 1]}

    def get_data(self):
        rng, (m, n) = np.random.default_rng(self.seed), self.shape
        X = rng.standard_normal((m, n))
        for j in range(1, n):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1.0 - 0.9**2) * X[:, j]
        w = np.zeros(n)
        w[rng.choice(n, 20, replace=False)] = rng.choice([-1.0, 1.0], 20)
        y = X @ w + 3.0 * rng.standard_normal(m)
        return {"X": np.asfortranarray(X), "y": y, "n_nonzero": self.n_nonzero}
