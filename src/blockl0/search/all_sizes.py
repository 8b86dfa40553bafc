"""The best subset of every size of few units, on the loss itself: leaps and bounds for a path.

A set T of units costs no more than any of its subsets. So among the subsets of T that contain the
units I certainly in, the sizes |I|..|T| may be improved only where f(T) is below the best point
of that size; and a unit that T misses much, its subsets miss at least as much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.fits import Fits
from blockl0.problem.newton import Fit
from blockl0.problem.problem import Problem
from blockl0.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_UNITS, MOST_FITS = 12, 1500
"""Units up to which all subsets are searched, and fits after which that is given up."""
MOST_WORK = 1e6
"""Multiplications of a Newton step on all columns, beyond which a search point by point, which
makes fewer fits, is quicker."""


def is_for_all_sizes(problem: Problem) -> bool:
    """Whether there are few units with little work for each subset."""
    n_unknown = problem.n_features * problem.loss.n_directions
    is_small = problem.n_units <= MOST_UNITS and problem.n_samples * n_unknown**2 <= MOST_WORK
    return is_small and not problem.is_quadratic


class AllSizes:
    """The search of all subsets, for the best one of each size.

    Parameters
    ----------
    problem : Problem
        Without a price; its budget does not matter.
    fits : Fits
    largest : int
        The largest size that is asked for.
    tolerance, negligible : float
        Differences that are rounding, and a value below which there is nothing left to gain.

    Attributes
    ----------
    values : ndarray (U + 1,)
        The lowest smooth part with at most so many of the U units.
    fits_of : list of Fit
        The points, of which one may be that of a smaller size.
    """

    def __init__(
        self, problem: Problem, fits: Fits, largest: int, tolerance: float, negligible: float
    ) -> None:
        self.problem, self.fits, self.largest = problem, fits, largest
        self.tolerance, self.negligible = tolerance, negligible
        n_sizes = problem.n_units + 1
        self.values = np.full(n_sizes, np.inf)
        self.fits_of: list[Fit | None] = [None] * n_sizes
        self._n_fits = 0

    def search(self, run: Run) -> bool:
        """Look at all subsets; False where the fits or the time do not suffice."""
        problem = self.problem
        squares = problem.design.sq_norms(problem.sample_weight)
        real = problem.units.of(np.flatnonzero(squares))
        chosen = np.union1d(real, problem.keep).astype(np.int64)
        free = np.setdiff1d(chosen, problem.keep)
        whole = self._fit(chosen, None, np.inf)
        self._come_down(chosen, free, whole, run)
        self._split(chosen, free, np.full(free.size, -np.inf), whole, run)
        return not self._is_over(run)

    def points(self) -> list[Floats]:
        """Return the best of at most 0, 1, …, `largest` units; nothing where some are kept."""
        zero = self.problem.zero()
        return [zero if fit is None else fit.w for fit in self.fits_of[: self.largest + 1]]

    def _is_over(self, run: Run) -> bool:
        return self._n_fits > MOST_FITS or run.seconds_left <= 0.0

    def _ceiling(self, size: int) -> float:
        """Return the ceiling of a subset: below it is better than the best of that size."""
        is_open = size <= self.largest and self.values[size] > self.negligible
        return self.values[size] - self.tolerance if is_open else -np.inf

    def _come_down(self, chosen: Ints, free: Ints, fit: Fit, run: Run) -> None:
        """Leave the least missed unit out, one by one: the first point of every size."""
        while free.size and not self._is_over(run):
            ceiling, best, gone = np.inf, fit, free[0]
            for j in free:
                found = self._fit(chosen[chosen != j], fit, ceiling)
                if found.value < ceiling:
                    ceiling, best, gone = found.value, found, j
            chosen, free, fit = chosen[chosen != gone], free[free != gone], best

    def _split(self, chosen: Ints, free: Ints, least: Floats, fit: Fit, run: Run) -> None:
        """Yield the subsets of `chosen` that lack at least one of the free units.

        `least` are lower bounds of the minimum without each of these, `fit` is that on `chosen`.
        """
        n_in, least = chosen.size - free.size, least.copy()
        found: list[Fit | None] = [None] * free.size
        for i, j in enumerate(free):
            if self._is_over(run):
                return
            if least[i] < self._ceiling(n_in):
                there = self._fit(chosen[chosen != j], fit, self._ceiling(n_in))
                found[i], least[i] = there, there.least
        # what is missed most is left out first: then it is in, wherever else something is left out
        order = np.argsort(-least, kind="stable")
        for i, at in enumerate(order):
            there, rest = found[at], order[i + 1 :]
            if there is not None and rest.size and least[at] < self._ceiling(n_in + i):
                subset = chosen[chosen != free[at]]
                self._split(subset, free[rest], least[rest], there, run)

    def _fit(self, chosen: Ints, start: Fit | None, ceiling: float) -> Fit:
        """Fit a set of units, or return a point above the ceiling if the fit is, too."""
        self._n_fits += 1
        columns = self.problem.units.columns(chosen)
        if start is None:
            fit = self.fits.on(columns)
        else:
            fit = self.fits.on(columns, start.w, ceiling, start.intercept)
        size = chosen.size
        while fit.value < self.values[size] - self.tolerance or self.fits_of[size] is None:
            self.values[size], self.fits_of[size] = fit.value, fit
            size += 1
            if size == self.values.size:
                break
        return fit
