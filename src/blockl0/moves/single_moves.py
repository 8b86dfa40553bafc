"""Every single addition, removal and swap of a support, re-fitted on the true objective.

Models of a loss propose moves; this is the final check. Columns that cannot improve are excluded by
lower bounds (`dual_bounds`), the others re-fitted until their bound or value decides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.moves.dual_bounds import CHUNK_ENTRIES, DualBounds, FittedSupport
from blockl0.moves.rough_bases import rough_bases
from blockl0.moves.softmax_bounds import SoftmaxBounds
from blockl0.problem.fits import Fits
from blockl0.problem.problem import Problem
from blockl0.run import Run, look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_WORK = 3e10
"""Multiplications before a check gives up, about ten seconds."""
CLEAR = 0.005
"""A verdict is clear if at most this share of the changes needed a closer look."""
STEPS = 4
"""Newton steps counted per re-fit: most end after one or two."""
AT_ONCE = 16
"""Re-fits per base made immediately; further ones wait."""


class Verdict(NamedTuple):
    """A better point, or whether no single change improves.

    Attributes
    ----------
    better : ndarray or None
    is_complete : bool
        Whether it is certain that no single change improves.
    is_clear : bool
        Whether almost every change was excluded by a cheap pass.
    why : str
        Reason for an incomplete check, used in messages.
    cheapest_change : float
        Estimated cost of the cheapest change, if passes excluded all of them.
    """

    better: Floats | None
    is_complete: bool
    is_clear: bool = False
    why: str = "the re-fits would take too long"
    cheapest_change: float = 0.0


class SingleMoves:
    """The check of one problem, which caches facts about columns between points.

    Attributes
    ----------
    n_tried : int
        Swaps excluded or re-fitted by the last check.
    """

    def __init__(self, problem: Problem, fits: Fits) -> None:
        self.problem, self.fits = problem, fits
        # directions in which the predictors of a sample can differ
        self.n_directions = problem.loss.n_directions
        self.work, self.most_work = 0.0, MOST_WORK
        kind = SoftmaxBounds if problem.n_outputs > 1 else DualBounds
        self.bounds = kind(problem)

    def check(
        self,
        w: Floats,
        objective: float,
        tolerance: float,
        run: Run | None = None,
        swaps: bool = True,
        most_refits: float = np.inf,
        units: Ints | None = None,
    ) -> Verdict:
        """Look for a single change of w that lowers the objective by more than the tolerance.

        With s columns in the support, and a price or a used-up budget, these are (s + 1)(n − s) + s
        changes. With room and no price, a swap never beats the addition it contains. Without swaps
        they are n. The check gives up after `most_refits` re-fits that bounds did not spare. The
        support is that of w, unless `units` are given, of which w is the fit.
        """
        problem = self.problem
        support = problem.occupied(w) if units is None else units
        price, budget = problem.sparsity
        ceiling = objective - tolerance
        has_room, self.work, self.n_tried = support.size < budget, 0.0, 0
        self._refits_left, self._n_close, self.bounds.cheapest_change = most_refits, 0, np.inf
        # postponed re-fits: if there are too many, not even the first is worth making
        self._later, self._planned = [], 0.0
        predictor, bases = self.fits.predictor(w), []
        self._intercept = predictor[1]
        if has_room:
            bases.append(self._base(w, support, ceiling, -1))
        leaving = np.setdiff1d(support, problem.keep)
        leaving = leaving if price > 0.0 or not has_room else leaving[:0]
        n_bases, left = len(bases) + leaving.size, {}
        if swaps and not (has_room or price > 0.0) and self.bounds.is_rough_worth(support):
            left = self._roughly(w, support, leaving, predictor, ceiling)
        for j in leaving:
            if self._is_over(run):
                return Verdict(None, False)
            columns = left.get(int(j))
            if columns is not None and columns.size == 0:
                continue
            base = self._base(w, support[support != j], ceiling, int(j))
            if base.value + price * base.support.size < ceiling:
                return Verdict(base.w, False)
            if columns is None:
                bases.append(base)
                continue
            verdict = self._enter_some(base, columns, ceiling, run)
            if verdict.better is not None or not verdict.is_complete:
                return verdict
        if not swaps:
            bases = [base for base in bases if base.left < 0]
        for some in self.bounds.groups(bases):
            verdict = self._enter(support, some, ceiling, run)
            if verdict.better is not None or not verdict.is_complete:
                return verdict
        self._planned = 0.0
        for base, columns in self._later:
            verdict = self._refit_all(base, columns, ceiling, run)
            if verdict.better is not None or not verdict.is_complete:
                return verdict
        n_changes = n_bases * (problem.n_features - support.size)
        least = 0.0 if self._n_close else max(self.bounds.cheapest_change - tolerance, 0.0)
        return Verdict(None, True, self._n_close <= CLEAR * n_changes, cheapest_change=least)

    def _roughly(
        self, w: Floats, support: Ints, leaving: Ints, predictor: Any, ceiling: float
    ) -> dict[int, Ints]:
        """Find the columns left to try in place of each leaving one, by one shared pass.

        Needs no fits: approximate ones suffice for columns whose removal is expensive.
        """
        self.work += self.bounds.pass_cost(support, leaving.size)
        bases = rough_bases(self.problem, w, support, leaving, predictor, ceiling)
        found = {base.left: some for base, some in self.bounds.roughly(support, bases)}
        n_others = self.problem.n_features - support.size
        self.n_tried += n_others * sum(some.size == 0 for some in found.values())
        return found

    def _base(self, w: Floats, support: Ints, ceiling: float, left: int) -> FittedSupport:
        """Fit a support, and compute the gain that an entering column needs."""
        price = self.problem.sparsity.price
        # the intercept of w is about as good a start as the best one for fixed coefficients
        fit = self.fits.minimum(support, w, np.inf, self._intercept)
        eta = self.problem.linear_on(support, fit.w[support]) + fit.intercept
        needed = fit.value + price * (support.size + 1) - ceiling
        return FittedSupport(support, fit.w, fit.intercept, fit.value, eta, needed, left)

    def _enter(
        self, support: Ints, bases: list[FittedSupport], ceiling: float, run: Run | None
    ) -> Verdict:
        """Look for a column that improves one of some bases, first by a shared pass."""
        self.work += self.bounds.pass_cost(support, len(bases))
        if self._is_over(run):
            return Verdict(None, False)
        for base, columns in zip(bases, self.bounds.candidates(support, bases), strict=True):
            verdict = self._enter_some(base, columns, ceiling, run)
            if verdict.better is not None or not verdict.is_complete:
                return verdict
        return Verdict(None, True)

    def _enter_some(
        self, base: FittedSupport, columns: Ints, ceiling: float, run: Run | None
    ) -> Verdict:
        """Look closely for a column that improves a base."""
        for start in range(0, columns.size, self._chunk):
            some = columns[start : start + self._chunk]
            self._n_close += some.size
            self.work += some.size * self.bounds.closer_cost(base.support)
            if self._is_over(run):
                return Verdict(None, False)
            open_ = self._put_off(base, self.bounds.closer(base, some))
            verdict = self._refit_all(base, open_, ceiling, run)
            if verdict.better is not None or not verdict.is_complete:
                return verdict
        if base.left >= 0:
            self.n_tried += self.problem.n_features - base.support.size - 1
        return Verdict(None, True)

    def _put_off(self, base: FittedSupport, columns: Ints) -> Ints:
        """Select the columns to re-fit immediately; postpone others until their number is known.

        Those that certainly improve come first.
        """
        if np.isfinite(self._refits_left) or columns.size <= AT_ONCE:
            return columns
        self._later.append((base, columns[AT_ONCE:]))
        self._planned += (columns.size - AT_ONCE) * self._cost(base.support.size + 1)
        return columns[:AT_ONCE]

    def _refit_all(
        self, base: FittedSupport, columns: Ints, ceiling: float, run: Run | None
    ) -> Verdict:
        """Look for a column whose re-fit improves."""
        for i in columns:
            if self._is_over(run):
                return Verdict(None, False)
            better = self._refit(base, int(i), ceiling)
            if better is not None:
                return Verdict(better, False)
        return Verdict(None, True)

    @property
    def _chunk(self) -> int:
        return max(1, CHUNK_ENTRIES // (self.problem.n_samples * self.problem.n_outputs))

    def _refit(self, base: FittedSupport, column: int, ceiling: float) -> Floats | None:
        """Fit with one more column; return the point if it improves."""
        there = np.sort(np.append(base.support, column))
        self._refits_left -= 1
        self.work += self._cost(there.size)
        cost = self.problem.sparsity.price * there.size
        fit = self.fits.on(there, base.w, ceiling - cost, base.intercept)
        return fit.w if fit.value + cost < ceiling else None

    def _cost(self, size: int) -> float:
        """Estimate the work of a re-fit with so many columns."""
        unknowns = float(size * self.n_directions)
        return STEPS * (self.problem.n_samples + unknowns / 3.0) * unknowns**2

    def _is_over(self, run: Run | None) -> bool:
        look()
        is_late = run is not None and run.seconds_left <= 0.0
        return is_late or self.work + self._planned > self.most_work or self._refits_left < 0
