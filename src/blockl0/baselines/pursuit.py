"""Shared by the pursuits that exchange whole sets of columns: SSP, CoSaMP and ROMP."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.baselines.common import BestSoFar, column_lengths, fit_support, largest_and_kept
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Pursuit(BestSoFar):
    """The best fit on a budget so far, with the vocabulary of the pursuits.

    Correlations and coefficients are those of columns of length one, which the definitions of all
    three methods assume, or with ``normalize=False`` of the columns as they are.
    """

    def __init__(self, problem: Problem, w: Floats, normalize: bool) -> None:
        super().__init__(problem, w)
        self.scale = column_lengths(problem) if normalize else np.ones(problem.n_features)

    def correlation(self, w: Floats) -> Floats:
        """Return |x_j'(y − Xw) − ridge·w_j|, (n,); one or two passes over X."""
        return np.abs(self.problem.gradient(w)) / self.scale

    def pruned(self, w: Floats) -> Ints:
        """Return the `budget` largest coefficients, kept columns among them."""
        problem = self.problem
        return largest_and_kept(np.abs(w) * self.scale, problem.sparsity.budget, problem.keep)

    def refit(self, support: Ints) -> Floats:
        """Return the fit on a support."""
        return fit_support(self.problem, support)
