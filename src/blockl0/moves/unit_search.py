"""Descents by the best moves of units: additions, removals and swaps, support re-fitted."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from blockl0.data.gram_rows import BATCH
from blockl0.moves.grouped_search import MAX_MOVES, MAX_PRICINGS, POOL, WHOLE
from blockl0.moves.tableau import Changes
from blockl0.moves.unit_table import UnitFit, UnitTable
from blockl0.problem.problem import Sparsity
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_FITS = 30
"""Moves that are fitted within their bounds before a descent takes the best of them."""


class UnitSearch(UnitTable):
    """`UnitTable` with descents: the search of one model."""

    def at(self, sparsity: Sparsity) -> UnitSearch:
        """Return the same search under another price and budget."""
        other = copy(self)
        other.rules = self.rules._replace(sparsity=sparsity)
        return other

    def descend(self, units: Ints, weight: Floats | None = None) -> Ints:
        """Best additions, removals and swaps over all units, until none improves.

        Weights scale the gains of units that enter; those of weight 0 do not.
        """
        weight = np.ones(self.rules.n_units) if weight is None else weight
        if len(self.B) <= WHOLE:
            return self._descend(units, weight)
        for _ in range(MAX_PRICINGS):
            prices = self.prices(units, weight)
            if not np.any(prices < -self.tolerance):
                break
            inside, pool = self._pool(units, prices)
            found = pool[inside._descend(np.searchsorted(pool, units), weight[pool])]
            if np.array_equal(found, units):
                break
            units = found
        return units

    def _pool(self, units: Ints, prices: Floats) -> tuple[UnitSearch, Ints]:
        """Return the search of the units with the best prices, and of those of a support."""
        prices = prices.copy()
        prices[units] = -np.inf
        size = min(POOL + units.size, prices.size)
        pool = np.sort(np.argpartition(prices, size - 1)[:size])
        columns = self.rules.units.columns(pool)
        rules = self.rules.take(pool)
        return UnitSearch(self.gram.take(columns), self.B[columns], rules, self.tolerance), pool

    def _descend(self, units: Ints, weight: Floats) -> Ints:
        base: UnitFit | None = self.base(np.sort(units))
        found = base
        for _ in range(MAX_MOVES):
            look()
            base = found
            found = self._step(base, weight)
            if found is None:
                break
        return base.units

    def _step(self, base: UnitFit, weight: Floats) -> UnitFit | None:
        """Return the base after the best move; None where none improves."""
        changes = self.changes(base)
        best, here = None, base.value + self.rules.cost(base.units)
        lowest = here - self.tolerance
        for n_fits, (change, units) in enumerate(self._promising(changes, weight)):
            if here + change >= lowest or n_fits == MOST_FITS:
                break
            there = self.base(units, base)
            value = there.value + self.rules.cost(units)
            if value < lowest:
                best, lowest = there, value
                # without bounds the table is the truth, and weights decide what is next
                if self.rules.bounds is None:
                    break
        return best

    def _promising(
        self, changes: Changes, weight: Floats | float = 1.0
    ) -> Iterator[tuple[float, Ints]]:
        """Yield the promising moves, the best first, each with the units after it."""
        entries = changes.entries(weight)
        flat = np.concatenate([entries.ravel(), changes.removals])
        at = np.flatnonzero(flat < -self.tolerance)
        at = at[np.argsort(flat[at], kind="stable")]
        if at.size and at[0] < entries.size:
            self._make_likely(entries.min(axis=0))
        for i in at:
            yield float(flat[i]), changes.after(int(i))

    def _make_likely(self, change: Floats) -> None:
        """Make the rows of the units with the best changes, unless the best is known."""
        members = self.rules.units.members
        if all(self.gram.is_known(int(j)) for j in members(int(np.argmin(change)))):
            return
        best = np.argpartition(change, min(BATCH, change.size) - 1)[:BATCH]
        self.gram.rows(self.rules.units.columns(best[np.isfinite(change[best])]))

    def shrink(self, units: Ints, size: int) -> Ints:
        """Take out the least missed unit until `size` are left; kept ones stay."""
        while units.size > size:
            look()
            table = self._table(base := self.base(np.sort(units)), self._rows(base))
            movable = np.flatnonzero(~self.rules.is_kept[base.units])
            if movable.size == 0:
                break
            costs = self._exchanges(table, movable, has_room=False)[0]
            units = np.delete(base.units, movable[int(np.argmin(costs))])
        return units

    def likely_moves(self, units: Ints, count: int) -> Iterator[Ints]:
        """Supports a single addition, removal or swap away, the likeliest few of each."""
        changes = self.changes(self.base(np.sort(units)))
        entries = changes.entries()
        kinds = [np.flatnonzero(changes.leaving < 0), np.flatnonzero(changes.leaving >= 0)]
        for rows in kinds:
            if not rows.size:
                continue
            which = rows[np.argmin(entries[rows], axis=0)]
            lowest = entries[which, np.arange(which.size)]
            for unit in np.argsort(lowest, kind="stable")[:count]:
                if np.isfinite(lowest[unit]):
                    yield changes.after(int(which[unit]) * which.size + int(unit))
        for i in np.argsort(changes.removals, kind="stable")[:count]:
            if np.isfinite(changes.removals[i]):
                yield np.delete(changes.units, i)

    def prices(self, units: Ints, weight: Floats | float = 1.0) -> Floats:
        """Return the change by the best move that brings in each unit, (units,)."""
        changes = self.changes(self.base(np.sort(units)))
        self.gram.tally.n_passes += 1
        return changes.best_entries(weight)
