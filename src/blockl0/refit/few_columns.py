"""All subsets of few columns, on the loss itself: leaps and bounds.

A subset is no better than any set T that contains it: with the columns I certainly in, everything
between I and T costs at least f(T) + price·|I|. So a set of columns is left out of the search with
all of its subsets as soon as its fit, or a dual bound on the way there, is above the best point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.fits import Fits
from blockl0.problem.newton import Fit
from blockl0.problem.orthogonal import rounding_of, tie_at
from blockl0.problem.problem import Problem
from blockl0.run import Run
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_COLUMNS, FEW = 20, 12
"""Columns up to which all subsets are searched, and of which all are, if need be."""
MOST_WORK, LESS_WORK = 3e9, 2e8
"""Multiplications of the fits, about a second, after which it is given up, and of more columns."""
STEPS, FIT = 2, 1e6
"""Newton steps that a fit is counted as, most being given up after one, and what it costs beside
its multiplications."""


class Subsets:
    """The search of all subsets, from a point.

    Attributes
    ----------
    best : ndarray (n,) or (n, C)
        The best point so far.
    is_complete : bool
        Whether no subset is left that could be better by more than the tolerance.
    """

    def __init__(
        self, problem: Problem, fits: Fits, w: Floats, objective: float, tolerance: float
    ) -> None:
        self.problem, self.fits, self._most_tolerance = problem, fits, tolerance
        self._take(w, objective)
        self.is_complete = True
        self._work, self._most = 0.0, MOST_WORK if problem.n_features <= FEW else LESS_WORK

    def _take(self, w: Floats, objective: float) -> None:
        """Go on from a point; fits of squares are as exact as the data, and are compared so."""
        self.best, self.objective, self.tolerance = w, objective, self._most_tolerance
        if self.problem.is_quadratic:
            self.tolerance = min(self.tolerance, rounding_of(self.problem, w))

    def search(self, run: Run) -> None:
        """Look at all subsets, or at as many as the work or the time allow."""
        problem = self.problem
        squares = problem.design.sq_norms(problem.sample_weight)
        real = problem.units.of(np.flatnonzero(squares))
        everything = np.union1d(real, problem.keep).astype(np.int64)
        fit = self._fit(everything, self.best, problem.keep)
        if fit is None:
            return
        rows = np.atleast_2d(fit.T).T
        weight = np.einsum("ij,ij->i", rows, rows) * squares
        sizes = np.array([weight[problem.units.members(int(unit))].sum() for unit in real])
        # what is left out first should be missed most: then most of what is left is out of reach
        order = real[np.argsort(-sizes, kind="stable")]
        free = order[~np.isin(order, problem.keep)]
        self._split(everything, free, fit, run)

    def _split(self, chosen: Ints, free: Ints, w: Floats, run: Run) -> None:
        """The subsets of the units `chosen` that lack one of the free ones at least."""
        n_in = chosen.size - free.size
        for i, j in enumerate(free):
            if n_in + i > self.problem.sparsity.budget:
                return
            if self._work > self._most or run.seconds_left <= 0.0:
                self.is_complete = False
                return
            rest = chosen[chosen != j]
            if n_in + i == self.problem.sparsity.budget:
                # nothing else may be in
                rest = rest[~np.isin(rest, free[i + 1 :])]
            # what is certainly in matters for its price alone
            inside = np.setdiff1d(rest, free[i + 1 :]) if self.problem.sparsity.price else rest[:0]
            there = self._fit(rest, w, inside)
            if there is not None and rest.size > n_in + i:
                self._split(rest, free[i + 1 :], there, run)

    def _fit(self, chosen: Ints, start: Floats, inside: Ints) -> Floats | None:
        """The fit on a set, which may be better; None where no subset with `inside` is."""
        problem, (price, budget) = self.problem, self.problem.sparsity
        ceiling = self.objective - self.tolerance - problem.cost(inside)
        support = problem.units.columns(chosen)
        n_unknown = support.size * problem.loss.n_directions
        self._work += FIT + STEPS * problem.n_samples * n_unknown**2
        fit = self.fits.on(support, start, ceiling)
        held = problem.held(fit.w)
        objective = fit.value + problem.cost(held)
        if held.size <= budget and objective < self.objective - self.tolerance:
            self._take(fit.w, objective)
        is_choice = chosen.size <= budget
        if self._is_certain(support, fit, problem.cost(inside)):
            is_open = fit.least < ceiling and not (price == 0.0 and is_choice)
            return fit.w if is_open else None
        # which columns a fit leaves out is a choice among subsets, unless they are in groups, or
        # stay at bounds
        self.is_complete &= not is_choice or (problem.units is COLUMNS and problem.bounds is None)
        return fit.w

    def _is_certain(self, support: Ints, fit: Fit, cost: float) -> bool:
        """Whether no subset is better if a fit on its columns is not, which may leave some out."""
        doubt = self.fits.doubt(support, fit.w)
        if doubt == 0.0:
            return True
        least = self.objective - tie_at(self.problem, self.best) - cost
        return fit.value - doubt >= least or self.fits.least_on(support) >= least
