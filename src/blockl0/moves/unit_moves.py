"""Every single addition, removal and swap of units, re-fitted on the true objective.

For the squared loss, projections bound the gain of every move, and only promising ones are fitted.
For other losses all are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from blockl0.lazy import lazy
from blockl0.moves.single_moves import CLEAR, MOST_WORK, STEPS, Verdict
from blockl0.moves.unit_projections import UnitProjections
from blockl0.problem.fits import Fits
from blockl0.problem.problem import Problem
from blockl0.run import Run, look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNRESOLVED = (
    "some columns are nearly, and not wholly, combinations of others, and which of them a fit "
    "leaves out may make a difference"
)
"""Reason for uncertainty although all re-fits were made."""


class UnitMoves:
    """The check of one problem.

    Attributes
    ----------
    n_tried : int
        Moves excluded or re-fitted by the last check.
    """

    def __init__(self, problem: Problem, fits: Fits) -> None:
        self.problem, self.fits = problem, fits
        self.n_directions = problem.loss.n_directions
        self.n_tried = 0

    @lazy
    def _projections(self) -> UnitProjections:
        """Projections of the columns, for the squared loss."""
        return UnitProjections(self.problem)

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

        As `SingleMoves.check`, with changes of units.
        """
        problem = self.problem
        units = problem.occupied(w) if units is None else units
        ceiling, work, n_fitted, self.n_tried = objective - tolerance, 0.0, 0, 0
        is_certain = self._is_certain(units, w, objective, ceiling)
        suspects = self._suspects if problem.is_quadratic else self._all
        for after in suspects(w, units, ceiling, swaps):
            columns, cost = problem.units.columns(after), problem.cost(after)
            n_fitted += 1
            work += STEPS * problem.n_samples * (columns.size * self.n_directions) ** 2
            look()
            is_late = run is not None and run.seconds_left <= 0.0
            if is_late or work > MOST_WORK or n_fitted > most_refits:
                return Verdict(None, False)
            fit = self.fits.minimum(columns, w, ceiling - cost)
            # units that are zero within their bounds cost nothing, unless they are kept
            held = problem.occupied(fit.w)
            there = fit.value + problem.cost(held)
            if there < ceiling and problem.sparsity.allows(held.size):
                return Verdict(fit.w, False)
            is_certain = is_certain and self._is_certain(after, fit.w, there, ceiling)
        return Verdict(
            None, is_certain, is_certain and n_fitted <= CLEAR * self.n_tried, UNRESOLVED
        )

    def _is_certain(self, units: Ints, w: Floats, objective: float, ceiling: float) -> bool:
        """Check that no point on some units is below a ceiling, given their fit w.

        A fit leaves out columns that are nearly combinations of others; leaving out other ones may
        be better.
        """
        columns = self.problem.units.columns(units)
        doubt = self.fits.doubt(columns, w)
        if doubt == 0.0 or objective - doubt >= ceiling:
            return True
        return self.fits.least_on(columns) + self.problem.cost(units) >= ceiling

    def _all(self, w: Floats, units: Ints, ceiling: float, swaps: bool) -> Iterator[Ints]:
        """Yield the units after every move, removals first."""
        problem, (price, budget) = self.problem, self.problem.sparsity
        others = np.setdiff1d(np.arange(problem.n_units), units)
        movable, has_room = np.setdiff1d(units, problem.keep), units.size < budget
        if price > 0.0:
            for unit in movable:
                yield units[units != unit]
        bases = [units] if has_room else []
        if swaps and (price > 0.0 or not has_room):
            bases += [units[units != unit] for unit in movable]
        self.n_tried = len(bases) * others.size + movable.size
        for base in bases:
            for unit in others:
                yield np.sort(np.append(base, unit))

    def _suspects(self, w: Floats, units: Ints, ceiling: float, swaps: bool) -> Iterator[Ints]:
        """Yield the units after every move not excluded by projections, most promising first."""
        columns = self.problem.units.columns(units)
        fit = self.fits.minimum(columns, w)
        support = self._projections.support(units, fit.w)
        if support is None:
            yield from self._all(w, units, ceiling, swaps)
            return
        changes = self._projections.changes(support)
        suspects = changes.lower_bounds(swaps)
        self.n_tried = suspects.size
        at = np.flatnonzero(suspects < ceiling - fit.value - self.problem.cost(units))
        for i in at[np.argsort(suspects[at], kind="stable")]:
            yield changes.after(int(i))
