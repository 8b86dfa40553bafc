"""Every single addition, removal and swap of units, re-fitted on the true objective.

Of the squared loss a table of units says what a move could be worth at most, and only those that
might improve are fitted. Of other losses all are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate.single_moves import CLEAR, MOST_WORK, STEPS, Verdict
from blockl0.certificate.unit_table import Changes, Rules, UnitTable
from blockl0.incumbent import Tally
from blockl0.problem.fits import Fits
from blockl0.problem.gram_rows import GramRows
from blockl0.problem.lazy import lazy
from blockl0.problem.problem import Problem
from blockl0.run import Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

READING = 1e-8
"""Rounding of a change that is read off a table, relative to what it adds up."""


class UnitMoves:
    """The check of one problem.

    Attributes
    ----------
    n_tried : int
        Moves that the last check has excluded or re-fitted.
    """

    def __init__(self, problem: Problem, fits: Fits) -> None:
        self.problem, self.fits = problem, fits
        self.n_directions = problem.loss.n_directions
        self.n_tried = 0

    @lazy
    def _table(self) -> UnitTable:
        """The table of the squared loss."""
        problem, weights = self.problem, self.problem.weights
        gram = GramRows(problem.design, weights, problem.ridge, Tally())
        weighted = (weights * problem.y.T).T.reshape(len(weights), -1)
        B = np.ascontiguousarray(problem.design.cross(weighted, slice(None)).T)
        return UnitTable(gram, B, Rules.of(problem), 0.0)

    def check(
        self,
        w: Floats,
        objective: float,
        tolerance: float,
        run: Run | None = None,
        swaps: bool = True,
        most_refits: float = np.inf,
    ) -> Verdict:
        """Look for a single change of w that lowers the objective by more than the tolerance.

        As `SingleMoves.check`; the changes are those of units.
        """
        problem = self.problem
        units = np.union1d(problem.units.support(w), problem.keep).astype(np.int64)
        ceiling, work, n_fitted, self.n_tried = objective - tolerance, 0.0, 0, 0
        suspects = self._suspects if problem.is_quadratic else self._all
        for after in suspects(w, units, ceiling, swaps):
            columns, cost = problem.units.columns(after), problem.cost(after)
            n_fitted += 1
            work += STEPS * problem.n_samples * (columns.size * self.n_directions) ** 2
            is_late = run is not None and run.seconds_left <= 0.0
            if is_late or work > MOST_WORK or n_fitted > most_refits:
                return Verdict(None, False)
            fit = self.fits.minimum(columns, w, ceiling - cost)
            # what is zero within its bounds is not paid for
            chosen = problem.units.support(fit.w)
            if fit.value + problem.cost(chosen) < ceiling and problem.sparsity.allows(chosen.size):
                return Verdict(fit.w, False)
        return Verdict(None, True, n_fitted <= CLEAR * self.n_tried)

    def _all(self, w: Floats, units: Ints, ceiling: float, swaps: bool) -> Iterator[Ints]:
        """The units after every move, removals first."""
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
        """The units after every move that the table does not exclude, the likeliest first."""
        table = self._table
        base = table.base(units)
        columns = self.problem.units.columns(units)
        here = self.fits.minimum(columns, w).value + self.problem.cost(units)
        changes = table.changes(base)
        limit = ceiling - here
        suspects = self._limits(changes, swaps)
        self.n_tried = suspects.size
        at = np.flatnonzero(suspects < limit)
        for i in at[np.argsort(suspects[at], kind="stable")]:
            yield changes.after(int(i))

    def _limits(self, changes: Changes, swaps: bool) -> Floats:
        """What the moves may change at best; nothing is known where only the data can tell."""
        entries = changes.entries()
        size = np.abs(changes.fixed)[:, None] + np.abs(changes.gains)
        with np.errstate(invalid="ignore"):
            entries = np.where(np.isfinite(entries), entries - READING * size, entries)
        entries[changes.doubts] = -np.inf
        if not swaps:
            entries[changes.out >= 0] = np.inf
        removals = changes.removals - READING * np.where(
            np.isfinite(changes.removals), np.abs(changes.removals), 0.0
        )
        return np.concatenate([entries.ravel(), removals])
