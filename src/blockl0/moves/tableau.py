"""A support of a quadratic, re-fitted, and the worth of every single change of it.

The same array is computed in four ways, which differ in how they hold the support: swept, for
speed; block by block, for any units, bounds and responses; orthogonal, for rounding bounds; and in
one pass over X, for any storage. What reads it, reads `Changes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.problem.descent import symmetric
from blockl0.problem.orthogonal import EPSILON
from blockl0.problem.problem import Problem, Sparsity
from blockl0.units import Units

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_lapack: Any = lapack

CLEAR = 1e-6
"""Relative pivots above this may be computed from products of columns.

Pivots below it, of columns nearly dependent on each other or on the support, need projections.
"""
READING = 64.0 * EPSILON
"""Rounding of the sum of what a change costs and gains, relative to its terms."""


def clear_inverse(H: Floats, least: float) -> Floats | None:
    """Invert a Gram matrix; None if a pivot, of columns of length one, is at most `least`.

    What counts as dependent must not depend on the units of the columns. O(k³).
    """
    if H.size == 0:
        return H
    diagonal = H.diagonal()
    if not diagonal.min() > 0.0:
        return None
    scale = np.sqrt(diagonal)
    factor, info = _lapack.dpotrf(H / scale / scale[:, None], lower=1)
    if info != 0 or not factor.diagonal().min() ** 2 > least:
        return None
    K = symmetric(_lapack.dpotri(factor, lower=1)[0])
    return np.ascontiguousarray(K / scale / scale[:, None])


class Changes(NamedTuple):
    """The change of the objective by every single addition, removal and swap.

    A swap is a removal followed by an entry: its change is `costs` + `prices` − `gains`.

    Attributes
    ----------
    units : ndarray of int64 (s,)
        The support, ascending.
    entering : ndarray of int64 (c,)
        The units that may enter; those of the support among them cannot.
    leaving : ndarray of int64 (b,)
        The unit that leaves, −1 for none: the rows of `gains`.
    costs : ndarray (b,)
        The cost of its removal, less its price.
    gains : ndarray (b, c)
        The gain of a unit that then enters; minus infinity for those that cannot.
    prices : ndarray (c,)
        The price of each entering unit.
    removals : ndarray (s,)
        Changes by removal alone; infinite for kept units, and where there is no price.
    errors : ndarray (b,)
        What rounding may have added to the costs; gains are as large as rounding permits.
    doubts : ndarray of bool (b, c)
        Whether only the data can decide.
    """

    units: Ints
    entering: Ints
    leaving: Ints
    costs: Floats
    gains: Floats
    prices: Floats
    removals: Floats
    errors: Floats
    doubts: Bools

    def entries(self, weight: Floats | float = 1.0) -> Floats:
        """Compute the changes by entries, (b, c), with gains scaled by weights."""
        with np.errstate(invalid="ignore"):
            change = self.costs[:, None] + self.prices - self.gains * weight
        return np.where(np.isfinite(self.gains) & (np.asarray(weight) > 0.0), change, np.inf)

    def best_entries(self, weight: Floats | float = 1.0) -> Floats:
        """Return the change by the best addition or swap that brings in each unit, (c,)."""
        return self.entries(weight).min(axis=0, initial=np.inf)

    def lower_bounds(self, swaps: bool = True) -> Floats:
        """Bound the changes of all moves from below; −inf where only the data can decide.

        Entries are numbered row by row, then removals, as `after` takes them.
        """
        entries = self.entries()
        size = np.abs(self.costs)[:, None] + np.abs(self.gains)
        with np.errstate(invalid="ignore"):
            entries = entries - READING * np.where(np.isfinite(size), size, 0.0)
        entries -= self.errors[:, None]
        entries[self.doubts] = -np.inf
        if not swaps:
            entries[self.leaving >= 0] = np.inf
        is_known = np.isfinite(self.removals)
        removals = self.removals - READING * np.where(is_known, np.abs(self.removals), 0.0)
        left = self.leaving[self.leaving >= 0]
        removals[np.searchsorted(self.units, left)] -= self.errors[self.leaving >= 0]
        return np.concatenate([entries.ravel(), removals])

    def after(self, at: int) -> Ints:
        """Return the units after a move: entries are numbered row by row, then removals."""
        if at >= self.gains.size:
            return np.delete(self.units, at - self.gains.size)
        b, i = divmod(at, self.entering.size)
        unit, rest = self.entering[i], self.units[self.units != self.leaving[b]]
        return np.insert(rest, int(np.searchsorted(rest, unit)), unit)


class Tableau(Protocol):
    """A support of least squares with ridge, price, bounds and units, re-fitted by every move."""

    @property
    def units(self) -> Ints:
        """The support, ascending."""
        ...

    @property
    def value(self) -> float:
        """The least loss on the support, less that of the empty one; prices do not count."""
        ...

    def load(self, units: Ints) -> None:
        """Start afresh from a support."""
        ...

    def changes(self, entering: Ints | None = None) -> Changes:
        """Compute the change by every addition, removal and swap; of all units, or some."""
        ...


class UnitRules(NamedTuple):
    """What is counted, at which price and within which bounds."""

    units: Units
    n_units: int
    sparsity: Sparsity
    costs: Floats
    bounds: tuple[Floats, Floats] | None
    is_kept: Bools

    @classmethod
    def of(cls, problem: Problem) -> UnitRules:
        """Extract the rules of a problem."""
        n, costs = problem.n_units, problem.costs
        is_kept = np.zeros(n, dtype=np.bool_)
        is_kept[problem.keep] = True
        costs = np.ones(n) if costs is None else costs
        return cls(problem.units, n, problem.sparsity, costs, problem.bounds, is_kept)

    def take(self, chosen: Ints) -> UnitRules:
        """Restrict the rules to some units."""
        columns, bounds = self.units.columns(chosen), self.bounds
        bounds = None if bounds is None else (bounds[0][columns], bounds[1][columns])
        return UnitRules(
            self.units.take(chosen), chosen.size, self.sparsity, self.costs[chosen], bounds,
            self.is_kept[chosen],
        )  # fmt: skip

    def cost(self, units: Ints) -> float:
        """Compute the price of some units."""
        return self.sparsity.price * float(self.costs[units].sum())

    def leaving(self, units: Ints) -> tuple[bool, Ints]:
        """Return (whether an addition has room, the positions of members whose removal matters).

        With room and no price, a swap never beats the addition it contains.
        """
        has_room = units.size < self.sparsity.budget
        if has_room and self.sparsity.price == 0.0:
            return True, np.empty(0, dtype=np.int64)
        return has_room, np.flatnonzero(~self.is_kept[units])

    def changes(
        self, units: Ints, entering: Ints, leaving: Ints, costs: Floats, gains: Floats,
        doubts: Bools, errors: Floats,
    ) -> Changes:  # fmt: skip
        """Complete a table (b, c) by prices and removals; `costs` and rows are as in `Changes`.

        Costs are those of the loss alone. Entries of the members themselves are ruled out.
        """
        price, is_removal = self.sparsity.price, leaving >= 0
        fixed = costs.copy()
        fixed[is_removal] -= price * self.costs[leaving[is_removal]]
        removals = np.full(units.size, np.inf)
        if price > 0.0:
            removals[np.searchsorted(units, leaving[is_removal])] = fixed[is_removal]
        # a member that "enters" after its own removal is no change
        inside = np.isin(entering, units)
        gains[:, inside], doubts[:, inside] = -np.inf, False
        prices = price * self.costs[entering]
        return Changes(units, entering, leaving, fixed, gains, prices, removals, errors, doubts)

    def layout(self) -> kernels.UnitLayout:
        """Lay out the columns of the units, and the places of their blocks."""
        parts = [self.units.members(unit) for unit in range(self.n_units)]
        sizes = np.array([part.size for part in parts], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64)
        return kernels.UnitLayout(np.concatenate(parts), starts, places)
