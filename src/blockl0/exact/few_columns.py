"""All subsets of few columns or groups, on the loss itself, for every loss and structure.

From above, by leaps and bounds: a subset is no better than any set T that contains it, so that if
the columns I must be included, everything between I and T costs at least f(T) + price·|I|. A set is
pruned with all of its subsets once its fit, or a dual bound on the way, exceeds the best point.
From below, one by one, if there are few supports of the allowed size.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.errors import OutOfTime
from blockl0.exact.watch import UNIT, Watch
from blockl0.problem.fits import Fits, make_fits
from blockl0.problem.newton import Fit
from blockl0.problem.orthogonal import rounding_of, tolerance_at
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

MOST_COLUMNS, FEW = 20, 12
"""Columns up to which subsets are searched from above; and up to which this must be complete."""
MOST_WORK, LESS_WORK = 3e9, 2e8
"""Multiplications before the search from above gives up, for up to FEW columns and for more."""
MOST_SUPPORTS = 5000
"""Supports up to which they are fitted one by one."""
STEPS, FIT = 2, 1e6
"""Newton steps counted per fit, most being pruned after one, and its cost beside multiplications.
"""
RELATIVE_TOLERANCE = 1e-11
"""Relative to F(0): smaller improvements are rounding."""
MOST_PRODUCTS, CLEAR_PIVOT, CLEAR = 2000, 1e-3, 1e-7
"""Screening supports by products: most columns, smallest pivot of unit columns, and margin in F(0).
"""


def n_supports(problem: Problem) -> int:
    """Count the supports to choose from, up to `MOST_SUPPORTS`; with a price, of all sizes."""
    n_free, room = problem.n_units - problem.keep.size, problem.sparsity.budget - problem.keep.size
    most = max(min(room, n_free), 0)
    sizes = range(most + 1) if problem.sparsity.price > 0.0 else [most]
    n_found = 0
    for size in sizes:
        # of thousands of columns these are numbers of thousands of digits
        n_found += comb(n_free, size)
        if n_found > MOST_SUPPORTS:
            break
    return n_found


def may_enumerate(problem: Problem) -> bool:
    """Check if all subsets may be searched."""
    return problem.n_units <= MOST_COLUMNS or n_supports(problem) <= MOST_SUPPORTS


def best_of_all(
    problem: Problem, best: Incumbent, watch: Watch, slack: float = np.inf
) -> tuple[Incumbent, bool]:
    """Return the best of all subsets, given a start, and whether all were searched.

    Searches from above if there are few columns, and from below if that gives up. Improvements
    within the slack or rounding do not count.
    """
    tolerance = min(RELATIVE_TOLERANCE * problem.smooth_at_zero, slack)
    subsets = Subsets(problem, make_fits(problem), best.w, best.objective, tolerance)
    try:
        if problem.n_units <= MOST_COLUMNS:
            subsets.search(watch)
        else:
            subsets.is_complete = False
        if not subsets.is_complete:
            subsets.search_each(watch)
    except OutOfTime:
        subsets.is_complete = False
    if subsets.objective < best.objective:
        w = subsets.best
        best = Incumbent(w, problem.objective(w), problem.units.count(w), best.iteration)
    return best, subsets.is_complete


class Subsets:
    """The search of all subsets, from a starting point.

    Attributes
    ----------
    best : ndarray (n,) or (n, C)
        The best point so far.
    is_complete : bool
        Whether no remaining subset can be better by more than the tolerance.
    """

    def __init__(
        self, problem: Problem, fits: Fits, w: Floats, objective: float, tolerance: float
    ) -> None:
        self.problem, self.fits, self._most_tolerance = problem, fits, tolerance
        self._take(w, objective)
        self.is_complete = True
        self._doubtful: list[Ints] = []

    def _take(self, w: Floats, objective: float) -> None:
        """Continue from a point; fits of squares are compared to the accuracy of the data."""
        self.best, self.objective, self.tolerance = w, objective, self._most_tolerance
        if self.problem.is_quadratic:
            self.tolerance = min(self.tolerance, rounding_of(self.problem, w))

    # from above ----------------------------------------------------------------------------------

    def search(self, watch: Watch) -> None:
        """Search all subsets, or as many as work and time allow."""
        problem = self.problem
        most = MOST_WORK if problem.n_features <= FEW else LESS_WORK
        self._outer, self._watch = watch, Watch(watch, most / UNIT)
        squares = problem.design.sq_norms(problem.sample_weight)
        real = problem.units.of(np.flatnonzero(squares))
        everything = np.union1d(real, problem.keep).astype(np.int64)
        fit = self._fit(everything, self.best, problem.keep)
        if fit is None:
            return
        rows = np.atleast_2d(fit.T).T
        weight = np.einsum("ij,ij->i", rows, rows) * squares
        sizes = np.array([weight[problem.units.members(int(unit))].sum() for unit in real])
        # removing the most important first puts most of the remaining sets out of reach
        order = real[np.argsort(-sizes, kind="stable")]
        free = order[~np.isin(order, problem.keep)]
        self._split(everything, free, fit)

    def _split(self, chosen: Ints, free: Ints, w: Floats) -> None:
        """Search the subsets of the units `chosen` that lack at least one of the free ones."""
        n_in = chosen.size - free.size
        for i, j in enumerate(free):
            if n_in + i > self.problem.sparsity.budget:
                return
            if self._watch() or self._outer():
                self.is_complete = False
                return
            rest = chosen[chosen != j]
            if n_in + i == self.problem.sparsity.budget:
                # no other may be included
                rest = rest[~np.isin(rest, free[i + 1 :])]
            # included units only matter for their price
            inside = np.setdiff1d(rest, free[i + 1 :]) if self.problem.sparsity.price else rest[:0]
            there = self._fit(rest, w, inside)
            if there is not None and rest.size > n_in + i:
                self._split(rest, free[i + 1 :], there)

    def _fit(self, chosen: Ints, start: Floats, inside: Ints) -> Floats | None:
        """Fit a set, which may be a better point; None if no subset with `inside` is."""
        problem, (price, budget) = self.problem, self.problem.sparsity
        ceiling = self.objective - self.tolerance - problem.cost(inside)
        support = problem.units.columns(chosen)
        self._count(support.size)
        fit = self.fits.on(support, start, ceiling)
        held = problem.occupied(fit.w)
        objective = fit.value + problem.cost(held)
        if held.size <= budget and objective < self.objective - self.tolerance:
            self._take(fit.w, objective)
        is_choice = chosen.size <= budget
        if self._is_certain(support, fit, problem.cost(inside)):
            is_open = fit.least < ceiling and not (price == 0.0 and is_choice)
            return fit.w if is_open else None
        # which columns a fit drops is a choice among subsets, except in groups or at bounds
        self._doubtful.append(chosen)
        self.is_complete &= not is_choice or (problem.units is COLUMNS and problem.bounds is None)
        return fit.w

    def _count(self, size: int) -> None:
        """Count the work of a fit on so many columns."""
        work = FIT + STEPS * self.problem.n_samples * (size * self.problem.loss.n_directions) ** 2
        self._watch.spend(work)
        self._outer.spend(work)

    def _is_certain(self, support: Ints, fit: Fit, cost: float) -> bool:
        """Check that no subset can be better if the fit on its columns is not."""
        doubt = self.fits.doubt(support, fit.w)
        if doubt == 0.0:
            return True
        is_quadratic = self.problem.is_quadratic
        tolerance = tolerance_at(self.problem, self.best) if is_quadratic else self.tolerance
        least = self.objective - tolerance - cost
        return fit.value - doubt >= least or self.fits.least_on(support) >= least

    # from below ----------------------------------------------------------------------------------

    def search_each(self, watch: Watch) -> None:
        """Fit all supports one by one, if they are few and the work suffices."""
        self.is_complete = n_supports(self.problem) <= MOST_SUPPORTS
        if not self.is_complete:
            return
        self._outer, self._watch = watch, Watch()
        self._doubtful.clear()
        products = self._products()
        for chosen in chain(self._supports(), self._choices()):
            if watch():
                self.is_complete = False
                return
            support = self.problem.units.columns(chosen)
            if products is None or not self._is_clearly_worse(products, support, chosen):
                self._fit(chosen, self.best, chosen)

    def _choices(self) -> Iterator[Ints]:
        """Yield the smaller supports of those whose fit had to drop columns, if not yet seen."""
        seen: set[bytes] = set()
        while self._doubtful and self.problem.sparsity.price == 0.0:
            chosen = self._doubtful.pop()
            for j in np.setdiff1d(chosen, self.problem.keep):
                rest = chosen[chosen != j]
                if rest.tobytes() not in seen:
                    seen.add(rest.tobytes())
                    yield rest

    def _supports(self) -> Iterator[Ints]:
        """Yield supports, largest first; without a price smaller ones are no better."""
        problem = self.problem
        squares = problem.design.sq_norms(problem.sample_weight)
        real = problem.units.of(np.flatnonzero(squares))
        free = np.setdiff1d(real, problem.keep)
        most = min(problem.sparsity.budget - problem.keep.size, free.size)
        for size in range(most, -1 if problem.sparsity.price > 0.0 else most - 1, -1):
            for chosen in combinations(free.tolist(), size):
                yield np.union1d(problem.keep, np.array(chosen, dtype=np.int64))

    def _products(self) -> tuple[Floats, Floats] | None:
        """Compute H and c of unit columns, with ½v'Hv − c'v the squared loss relative to zero."""
        problem, n = self.problem, self.problem.n_features
        if not problem.is_quadratic or n > MOST_PRODUCTS:
            return None
        self._outer.spend(problem.n_samples * float(n) ** 2)
        A, b, _ = problem.unit_columns(np.arange(n))
        return A.T @ A, A.T @ (b if b.ndim == 2 else b[:, None])

    def _is_clearly_worse(
        self, products: tuple[Floats, Floats], support: Ints, chosen: Ints
    ) -> bool:
        """Check if products alone show that a support is worse than the best point.

        They are trusted only if the columns are far from dependent; bounds raise the value.
        """
        H, c = products
        self._outer.spend(float(support.size) ** 3 / 6.0)
        L, info = _lapack.dpotrf(H[np.ix_(support, support)], lower=1, clean=1)
        if info != 0 or np.diag(L).min(initial=1.0) < CLEAR_PIVOT:
            return False
        at_zero = self.problem.smooth_at_zero
        gained = _lapack.dtrtrs(L, c[support], lower=1)[0] if support.size else c[:0]
        least = at_zero - 0.5 * float(np.vdot(gained, gained)) + self.problem.cost(chosen)
        return least > self.objective + CLEAR * at_zero
