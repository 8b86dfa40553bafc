"""Least squares in units of several columns, with bounds and unit costs: the value of all moves.

On a support S with inverse K of its Gram matrix, coefficients V and slopes R outside, an entering
unit J gains ½ tr R_J' M_JJ⁺ R_J, with M_JJ = G_JJ − U_J'KU_J; a leaving unit I costs ½ tr V_I'
inv(K_II) V_I; a swap is a removal followed by an entry in the resulting table.

With bounds V is the best point within them, and the linear terms are corrected by the multipliers
of the active bounds, so that V is the free minimizer on S. This is the Lagrangian, which is nowhere
above the loss within the bounds, so its moves bound the true ones. Moves are therefore fitted in
that order until one is better than the bounds of the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.data.gram_rows import LEAST_PIVOT, GramRows
from blockl0.lazy import lazy
from blockl0.moves.tableau import Changes, UnitRules, clear_inverse
from blockl0.problem.bounded import bounded_minimum
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_lapack: Any = lapack

NOTHING, NO_BLOCK = np.empty(0, dtype=np.int64), np.empty((0, 0))
TIED = 1e-7
"""Share of a unit column explained by others, below which it does not depend on them."""


class UnitFit(NamedTuple):
    """A support with its coefficients.

    Attributes
    ----------
    units : ndarray of int64
    columns : ndarray of int64
        All their columns, by units.
    owner : ndarray of int64, as `columns`
        The unit of each.
    V : ndarray (columns, q)
    value : float
        The loss there, less that of the empty support.
    basis : ndarray of int64
        Positions of independent columns among `columns`.
    K : ndarray
        The inverse of the Gram matrix of these.
    pull : ndarray (columns, q)
        The linear terms for which V is the free minimizer.
    excess : ndarray, as `units`
        Cost of removal beyond the free loss, since multipliers of the unit no longer count.
    """

    units: Ints
    columns: Ints
    owner: Ints
    V: Floats
    value: float
    basis: Ints
    K: Floats
    pull: Floats
    excess: Floats

    @property
    def is_whole(self) -> bool:
        """Whether all columns are independent."""
        return self.basis.size == self.columns.size


class ColumnTable(NamedTuple):
    """Facts about all columns given a base: shares T = UK (n, basis), slopes R (n, q), blocks M."""

    base: UnitFit
    T: Floats
    R: Floats
    M: Floats


class UnitTable:
    """min_V ½ Σ_i w_i ‖z_i − V'x_i‖² + ½·ridge·‖V‖² + the prices of the units in V.

    Parameters
    ----------
    gram : GramRows
        X' diag(w) X + ridge·I.
    B : ndarray (n, q)
        X' diag(w) z.
    rules : UnitRules
    tolerance : float
        Smaller improvements are rounding.
    """

    gram: GramRows
    rules: UnitRules
    tolerance: float

    def __init__(self, gram: GramRows, B: Floats, rules: UnitRules, tolerance: float) -> None:
        self.gram, self.B, self.rules, self.tolerance = gram, B, rules, tolerance
        self._layout = rules.layout()

    @lazy
    def own(self) -> Floats:
        """The blocks G_JJ of all units, concatenated."""
        order, starts, places = self._layout
        own = np.empty(places[-1])
        for unit in range(self.rules.n_units):
            look()
            members = order[starts[unit] : starts[unit + 1]]
            single = members.size == 1
            block = self.gram.diagonal[members] if single else self.gram.block(members)
            own[places[unit] : places[unit + 1]] = block.ravel()
        return own

    # -- supports ----------------------------------------------------------------------------------

    def base(self, units: Ints, start: UnitFit | None = None) -> UnitFit:
        """Fit the support of some units, with bounds from a starting one."""
        rules = self.rules
        parts = [rules.units.members(int(unit)) for unit in units]
        owner = np.repeat(units, [part.size for part in parts])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        H, B = self.gram.rows(columns)[:, columns], self.B[columns]
        if rules.bounds is None:
            basis, K = independent_inverse(H)
            V = np.zeros_like(B)
            V[basis] = K @ B[basis]
            none = np.zeros(units.size)
            return UnitFit(units, columns, owner, V, -0.5 * float(np.vdot(B, V)), basis, K, B, none)
        limits = rules.bounds[0][columns], rules.bounds[1][columns]
        V = bounded_minimum(H, B, *limits, self._from(start, columns))[0]
        pull = H @ V
        slack_gain = np.maximum((B - pull) * V, 0.0).sum(axis=1)
        excess = np.array([slack_gain[owner == unit].sum() for unit in units])
        value = float(np.vdot(V, 0.5 * pull - B))
        basis, K = independent_inverse(H)
        return UnitFit(units, columns, owner, V, value, basis, K, pull, excess)

    def _from(self, start: UnitFit | None, columns: Ints) -> Floats:
        """Return the coefficients of a base on some columns, zero for new ones."""
        V = np.zeros((columns.size, self.B.shape[1]))
        if start is not None:
            whole = np.zeros_like(self.B)
            whole[start.columns] = start.V
            V[:] = whole[columns]
        return V

    def fit(self, units: Ints) -> tuple[Ints, Floats]:
        """Return the columns of some units, and their coefficients."""
        base = self.base(units)
        return base.columns, base.V

    # -- moves -------------------------------------------------------------------------------------

    def changes(self, base: UnitFit) -> Changes:
        """Bound the change by every single addition, removal and swap from below."""
        has_room, leaving = self.rules.leaving(base.units)
        table = self._table(base, self._rows(base))
        costs, gains, doubts = self._exchanges(table, leaving, has_room)
        out = np.concatenate([np.full(int(has_room), -1), base.units[leaving]]).astype(np.int64)
        entering, errors = np.arange(self.rules.n_units), np.zeros(out.size)
        return self.rules.changes(base.units, entering, out, costs, gains, doubts, errors)

    def _exchanges(
        self, table: ColumnTable, leaving: Ints, has_room: bool
    ) -> tuple[Floats, Floats, Bools]:
        """Compute (costs, gains, doubts) of entries after each removal.

        If there is room, entries without a removal come first. `leaving` are positions among the
        units of the base.
        """
        base, first = table.base, int(has_room)
        n, q = self.B.shape
        costs = np.zeros(first + leaving.size)
        gains = np.empty((costs.size, self.rules.n_units))
        doubts = np.empty(gains.shape, dtype=np.bool_)
        if has_room:
            gains[0], doubts[0] = self._gains(table)
        tied = self._tied(table) if leaving.size else set()
        of_basis = base.owner[base.basis]
        parts = [np.flatnonzero(of_basis == base.units[i]) for i in leaving]
        at = np.concatenate([NOTHING, *parts])
        ends = np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)
        low, high = self.rules.bounds or (np.full(n, -np.inf), np.full(n, np.inf))
        largest = int(np.diff(self._layout.starts).max())
        work = np.empty((2 * largest + q + 1, largest))
        kernels.unit_exchanges(
            self._layout, self.own, table.M, table.R, table.T, base.K,
            np.ascontiguousarray(base.V[base.basis]), at, ends, low, high, LEAST_PIVOT,
            np.empty((largest, largest)), np.empty((largest, q)), work, costs[first:],
            gains[first:], doubts[first:],
        )  # fmt: skip
        for b, i in enumerate(leaving.tolist(), start=first):
            if int(base.units[i]) in tied:
                costs[b], (gains[b], doubts[b]) = self._leave_tied(base, i)
        costs[first:] += base.excess[leaving]
        return costs, gains, doubts

    def _rows(self, base: UnitFit) -> Floats:
        """Return the rows of the support's columns, (n, columns)."""
        return np.ascontiguousarray(self.gram.rows(base.columns).T)

    def _table(self, base: UnitFit, U: Floats) -> ColumnTable:
        """Compute the table of a base from its rows, O(ns²)."""
        part = U if base.is_whole else np.ascontiguousarray(U[:, base.basis])
        T, M = part @ base.K, np.empty_like(self.own)
        kernels.unit_pivots(self._layout, part, T, self.own, M)
        return ColumnTable(base, T, self.B - U @ base.V, M)

    def _leave_tied(self, base: UnitFit, i: int) -> tuple[float, tuple[Floats, Bools]]:
        """Compute the cost of removing a unit that others depend on, and the gains afterwards."""
        rest = self._without(base, int(base.units[i]))
        cost = 0.5 * float(np.vdot(base.pull, base.V)) + rest.value
        # slopes of the Lagrangian are those of the loss outside the support
        return max(cost, 0.0), self._gains(self._table(rest, self._rows(rest)))

    def _tied(self, table: ColumnTable) -> set[int]:
        """Find the units that columns of other units depend on."""
        base = table.base
        if base.is_whole:
            return set()
        if self.rules.bounds is not None:
            return set(base.units.tolist())
        idle = np.setdiff1d(np.arange(base.columns.size), base.basis)
        sizes = np.sqrt(self.gram.diagonal[base.columns])
        shares = np.abs(table.T[base.columns[idle]]) * sizes[base.basis]
        is_tied = shares > TIED * sizes[idle][:, None]
        is_tied &= base.owner[idle][:, None] != base.owner[base.basis]
        return set(base.owner[base.basis[is_tied.any(axis=0)]].tolist())

    def _without(self, base: UnitFit, unit: int) -> UnitFit:
        """Remove a unit from a base, with the same linear terms and without bounds."""
        rest = base.owner != unit
        columns, pull = base.columns[rest], base.pull[rest]
        basis, K = independent_inverse(self.gram.rows(columns)[:, columns])
        V = np.zeros_like(pull)
        V[basis] = K @ pull[basis]
        return base._replace(
            units=base.units[base.units != unit], columns=columns, owner=base.owner[rest], V=V,
            value=-0.5 * float(np.vdot(pull, V)), basis=basis, K=K, pull=pull,
        )  # fmt: skip

    def _gains(self, table: ColumnTable) -> tuple[Floats, Bools]:
        """Compute (gains, doubts) of every entering unit when none leaves."""
        n, q = self.B.shape
        low, high = self.rules.bounds or (np.full(n, -np.inf), np.full(n, np.inf))
        largest = int(np.diff(self._layout.starts).max())
        work = np.empty((largest + q + 1, largest))
        gains = np.empty(self.rules.n_units)
        doubts = np.empty(gains.size, dtype=np.bool_)
        kernels.unit_gains(
            self._layout, self.own, table.M, table.R, table.T, NOTHING, NO_BLOCK,
            np.empty((0, q)), low, high, LEAST_PIVOT, 0.0, 0.0, work, gains, doubts,
        )  # fmt: skip
        return gains, doubts


def independent_inverse(H: Floats) -> tuple[Ints, Floats]:
    """Return (positions of independent columns, the inverse of their Gram matrix).

    Uses a Cholesky factorization that pivots on the farthest column, relative to the diagonal.
    """
    if H.size == 0:
        return np.empty(0, dtype=np.int64), np.empty((0, 0))
    K = clear_inverse(H, LEAST_PIVOT)
    if K is not None:
        return np.arange(len(H)), K
    scale = np.sqrt(np.where(H.diagonal() > 0.0, H.diagonal(), 1.0))
    _, pivots, rank, _ = _lapack.dpstrf(H / scale / scale[:, None], tol=LEAST_PIVOT, lower=1)
    basis = np.sort(pivots[:rank] - 1)
    K = clear_inverse(H[np.ix_(basis, basis)], 0.0)
    assert K is not None, "columns of a pivoted factorization are independent"
    return basis, K
