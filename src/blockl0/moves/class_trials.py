"""Swaps of one column for another, tried on the softmax loss itself.

A model with one curvature for each sample ranks columns of several classes poorly where classes are
nearly separated. So every column is taken out, the rest fitted, and those that enter are ranked by
the second-order model there, with the matrices of curvatures of the classes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from blockl0.moves.dual_bounds import FittedSupport
from blockl0.moves.softmax_bounds import SoftmaxModel
from blockl0.moves.trial_moves import Proposal
from blockl0.problem.fits import Fits
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENTER = 3
"""Candidates to re-fit for each column that leaves."""
SCREENED = 24
"""Columns in the model with matrices of curvatures, screened one by one by the model with one
curvature for each sample.
"""
NARROW = 1e-3
"""Change of a predictor for which the curvatures of the model hold: it is the second-order one."""


class ClassTrials:
    """The likeliest swaps of a support; O(m n C) for each column that leaves."""

    problem: Problem
    fits: Fits

    def __init__(self, problem: Problem, fits: Fits) -> None:
        self.problem, self.fits = problem, fits
        self.usable: NDArray[np.bool_] = problem.design.sq_norms(problem.sample_weight) > 0.0

    def swaps(self, w: Floats, leaving: Ints) -> Iterator[Proposal]:
        """Propose supports, worth a re-fit, with another column in place of one of `leaving`."""
        support, chosen = self.problem.units.support(w), self.usable.copy()
        chosen[support] = False
        outside = np.flatnonzero(chosen)
        for j in leaving if outside.size else ():
            rest = support[support != j]
            for i in self._likeliest(rest, w, outside):
                there = np.sort(np.append(rest, i))
                yield Proposal(there, self._start, self._intercept)

    def _likeliest(self, rest: Ints, w: Floats, outside: Ints) -> Ints:
        """Find the columns that gain most when added to `rest`, by the model at its fit."""
        fit = self.fits.on(rest, w)
        self._start, self._intercept = fit.w, fit.intercept
        if outside.size <= ENTER:
            return outside
        eta = self.problem.linear_on(rest, fit.w[rest]) + fit.intercept
        outside = self._steepest(eta, outside)
        base = FittedSupport(rest, fit.w, fit.intercept, fit.value, eta, 0.0, -1)
        model = SoftmaxModel(self.problem, base, NARROW)
        if model.K is None:
            return outside[:ENTER]
        is_free, gains, _, _ = model.minima(self.problem.design.columns(outside))
        return outside[np.argsort(np.where(is_free, -gains, 0.0), kind="stable")[:ENTER]]

    def _steepest(self, eta: Floats, outside: Ints) -> Ints:
        """Return the columns that gain most by one curvature for each sample, the steepest first.

        This ranks columns by themselves, the others fixed, in one pass over X.
        """
        problem, whole = self.problem, slice(0, self.problem.n_features)
        slopes = (problem.weights * problem.loss.gradient(eta, problem.y).T).T
        G = problem.design.cross(slopes, whole)[:, outside]
        bends = problem.weights * problem.loss.curvature(eta, problem.y)
        squares = problem.design.sq_norms(bends)[outside] + problem.ridge
        gains = np.einsum("cj,cj->j", G, G) / np.where(squares > 0.0, squares, np.inf)
        return outside[np.argsort(-gains, kind="stable")[:SCREENED]]
