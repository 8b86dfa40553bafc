"""The worth of all changes of a support by orthogonal projections, with rounding errors.

Pivots from Gram matrices lose all digits if columns nearly depend on each other. Here they come
from the columns: with orthonormal Q that span a support and z_J that span a unit J, both with
weights and ridge, J gains ½ ρ_J' M_JJ⁺ ρ_J with ρ_J = z_J'r and M_JJ = I − (Q'z_J)'(Q'z_J).
Removing a unit also removes directions U of Q, which costs ½‖U'Q'(fit)‖², and adds the shares along
U to ρ_J and M_JJ. Every number comes with its rounding error, which grows with the inverse of
distances rather than their square.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.data.panels import orthogonal_factors
from blockl0.lazy import lazy
from blockl0.moves.tableau import Changes, UnitRules
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import (
    DEPENDENT,
    EPSILON,
    OPERATIONS,
    ROUNDED,
    distances,
    independent_positions,
    is_resolved,
    orthonormal,
    project_away,
)
from blockl0.problem.problem import Problem
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CHUNK, KNOWN = 2**21, 2**25
"""Entries of columns computed at a time; and entries in total up to which they are cached."""
CLOSE = 1e-6
"""Squared distance from a support below which it is computed from the columns, not from shares."""


class UnitBases(NamedTuple):
    """Orthonormal columns of some units.

    Attributes
    ----------
    units : ndarray of int64
    layout : kernels.UnitLayout
    Z : ndarray (m, N)
        Their rows of the data.
    below : list of ndarray (·, d)
        For each unit its rows of the ridge, which no other unit shares.
    low, high : ndarray (N,)
        Bounds on the coefficients of one-column units; infinite for others.
    """

    units: Ints
    layout: kernels.UnitLayout
    Z: Floats
    below: list[Floats]
    low: Floats
    high: Floats


class Support(NamedTuple):
    """A fitted support.

    Attributes
    ----------
    units : ndarray of int64
    owner : ndarray of int64 (k,)
        The unit of each of its columns.
    Q : ndarray (r, s)
        Orthonormal, spans the columns.
    A : ndarray (s, k)
        The columns in these coordinates.
    inverse : ndarray (k, k), or None
        That of A, if the columns are independent.
    z : ndarray (k, q)
        Their coefficients.
    rest : ndarray (r, q)
        The residual.
    value : float
        The loss there, less that of no unit.
    slack_gain : ndarray (k,)
        Contribution of the bound multipliers of each column.
    rounding, error : float
        Rounding error of projections of unit columns, and of slopes.
    is_resolved : bool
        Whether all columns that the fit had to drop are exact combinations of the others. If not,
        no bound is valid for supersets.
    """

    units: Ints
    owner: Ints
    Q: Floats
    A: Floats
    inverse: Floats | None
    z: Floats
    rest: Floats
    value: float
    slack_gain: Floats
    rounding: float
    error: float
    is_resolved: bool


class Leaving(NamedTuple):
    """Directions U (s, l) that a support loses with a unit, and the fit's share P along them.

    `is_known`: every column that the reduced fit drops is an exact linear combination of the rest
    (a column redundant with the unit need not be redundant without it).
    """

    unit: int
    U: Floats
    P: Floats
    cost: float
    error: float
    is_known: bool = True


class ProjectedTableau:
    """A support of the squared loss, by orthogonal projections; see `Tableau`.

    Changes are bounds from below, of which the data may decide. O(m n s) for all units.
    """

    problem: Problem
    rules: UnitRules

    def __init__(self, problem: Problem) -> None:
        self.problem, self.rules = problem, UnitRules.of(problem)

    # -- columns -----------------------------------------------------------------------------------

    @lazy
    def _known(self) -> list[UnitBases]:
        return list(self._made(np.arange(self.rules.n_units)))

    def _chunks(self, entering: Ints | None) -> Iterator[UnitBases]:
        problem = self.problem
        if entering is not None:
            return self._made(entering)
        if problem.n_samples * problem.n_features <= KNOWN:
            return iter(self._known)
        return self._made(np.arange(self.rules.n_units))

    def _made(self, units: Ints) -> Iterator[UnitBases]:
        """Yield some units, a chunk at a time."""
        problem = self.problem
        members = [problem.units.members(int(unit)) for unit in units]
        sizes = np.cumsum([part.size for part in members])
        most = max(1, CHUNK // problem.n_samples)
        where = (sizes - 1) // most
        for part in np.split(np.arange(units.size), np.flatnonzero(np.diff(where)) + 1):
            look()
            if part.size:
                yield self._chunk(units[part], [members[i] for i in part])

    def _chunk(self, units: Ints, members: list[Ints]) -> UnitBases:
        m, ridge = self.problem.n_samples, self.problem.ridge
        X, own, scale = unit_columns_outside(self.problem, np.concatenate(members))
        sizes = np.array([part.size for part in members], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        # single columns are their own bases: nothing is copied or stacked
        if not ridge and (sizes == 1).all() and (scale > 0.0).all():
            parts, Z, nothing = [], X, np.empty((0, 1))
            below, ranks = [nothing] * units.size, sizes
        else:
            parts = [X[:, a:b] for a, b in pairwise(starts.tolist())]
            self._make_bases(parts, X, own, scale, starts)
            Z = np.hstack([part[:m] for part in parts])
            below = [part[m:] for part in parts]
            ranks = np.array([part.shape[1] for part in parts], dtype=np.int64)
        layout, low, high = self._limits(ranks, members, scale[starts[:-1]])
        return UnitBases(units, layout, np.ascontiguousarray(Z), below, low, high)

    def _make_bases(
        self, parts: list[Floats], X: Floats, own: Floats, scale: Floats, starts: Ints
    ) -> None:
        """Replace the columns of every unit by orthonormal ones, with their rows of the ridge."""
        sizes, ridge = np.diff(starts), self.problem.ridge
        for i in np.flatnonzero(sizes == 1):
            a = starts[i]
            parts[i] = parts[i] if scale[a] > 0.0 else parts[i][:, :0]
            if ridge:
                parts[i] = np.vstack([parts[i], own[None, a : a + 1]])
        for size in np.unique(sizes[sizes > 1]):
            at = np.flatnonzero(sizes == size)
            columns = starts[at][:, None] + np.arange(size)
            stack = np.moveaxis(X[:, columns], 0, 1)
            if ridge:
                stack = np.concatenate([stack, own[columns][:, :, None] * np.eye(size)], axis=1)
            for i, basis in zip(at, _bases(stack), strict=True):
                parts[i] = basis

    def _limits(
        self, ranks: Ints, members: list[Ints], scale: Floats
    ) -> tuple[kernels.UnitLayout, Floats, Floats]:
        """Lay out the columns of units, with bounds for one-column units."""
        ends = np.concatenate([[0], np.cumsum(ranks)]).astype(np.int64)
        places = np.concatenate([[0], np.cumsum(ranks**2)]).astype(np.int64)
        N = int(ends[-1])
        layout = kernels.UnitLayout(np.arange(N, dtype=np.int64), ends, places)
        low, high = np.full(N, -np.inf), np.full(N, np.inf)
        if self.rules.bounds is not None:
            for i, columns in enumerate(members):
                if columns.size == 1 and ranks[i] == 1:
                    low[ends[i]] = self.rules.bounds[0][columns[0]] * scale[i]
                    high[ends[i]] = self.rules.bounds[1][columns[0]] * scale[i]
        return layout, low, high

    # -- supports ----------------------------------------------------------------------------------

    @property
    def units(self) -> Ints:
        """The support, ascending."""
        return self.support.units

    @property
    def value(self) -> float:
        """The least loss on the support, less that of the empty one."""
        return self.support.value

    def load(self, units: Ints, w: Floats | None = None) -> None:
        """Start afresh from a support, of which w is the fit if it is known."""
        problem = self.problem
        members = [problem.units.members(int(unit)) for unit in units]
        columns = np.concatenate([np.empty(0, dtype=np.int64), *members])
        if w is None:
            w = make_fits(problem).minimum(np.sort(columns)).w
        owner = np.repeat(units, [part.size for part in members])
        A, b, scale = problem.unit_columns(columns)
        b = b.reshape(len(b), -1)
        z = (w[columns].T * scale).T.reshape(columns.size, b.shape[1])
        Q, R, is_whole = _span(A)
        nearest = float(distances(R).min(initial=1.0))
        inverse: Any = np.linalg.inv(R) if is_whole else None
        rest = b - A @ z
        value = 0.5 * float(np.vdot(rest, rest) - np.vdot(b, b))
        # within bounds the residual keeps slopes along columns, which removals may gain
        slack_gain = np.maximum((A.T @ rest) * z, 0.0).sum(axis=1)
        if self.rules.bounds is None:
            rest, slack_gain = project_away(Q, rest)[0], np.zeros(columns.size)
        size = float(np.linalg.norm(b)) + float(np.linalg.norm(z, axis=1).sum())
        precision = OPERATIONS * EPSILON
        self.support: Support = Support(
            units, owner, Q, Q.T @ A, inverse, z, rest, value,
            slack_gain, precision / max(nearest, EPSILON), precision * size,
            is_whole or is_resolved(A),
        )  # fmt: skip

    def _leaving(self, unit: int) -> Leaving:
        """Describe the removal of a unit."""
        look()
        support, is_known = self.support, True
        own = support.owner == unit
        others, s = support.A[:, ~own], support.Q.shape[1]
        if support.inverse is not None:
            # rows of the inverse are orthogonal to the columns of all other units
            U = support.inverse[own].T
            U = U / np.linalg.norm(U) if U.shape[1] == 1 else np.linalg.qr(U)[0]
        elif others.shape[1] == 0:
            U = np.eye(s)
        else:
            is_known = is_resolved(others)
            basis = independent_positions(others)
            whole: Any = np.linalg.qr(others[:, basis], mode="complete")[0]
            U = whole[:, basis.size :]
        P = U.T @ (support.A[:, own] @ support.z[own])
        length = float(np.linalg.norm(P))
        cost = 0.5 * length * length + float(support.slack_gain[own].sum())
        error = support.error * (length + support.error) + support.rounding * length * length
        return Leaving(unit, U, P, cost, error, is_known)

    # -- moves -------------------------------------------------------------------------------------

    def changes(self, entering: Ints | None = None) -> Changes:
        """Bound the change by every single addition, removal and swap, with rounding errors."""
        rules, support = self.rules, self.support
        s, q = support.Q.shape[1], support.z.shape[1]
        has_room, leaving = rules.leaving(support.units)
        moves: list[Leaving] = []
        if has_room:
            moves.append(Leaving(-1, np.empty((s, 0)), np.empty((0, q)), 0.0, 0.0))
        moves += [self._leaving(int(unit)) for unit in support.units[leaving]]
        found = [self._enter(moves, chunk) for chunk in self._chunks(entering)]
        gains = np.hstack([np.zeros((len(moves), 0)), *(gains for gains, _ in found)])
        doubts = np.hstack(
            [np.zeros((len(moves), 0), dtype=np.bool_), *(some for _, some in found)]
        )
        is_known = np.array([move.is_known for move in moves], dtype=np.bool_)
        is_known &= support.is_resolved
        # where a fit has to choose among columns, gains of another choice may be larger
        doubts[~is_known] = True
        out = np.array([move.unit for move in moves], dtype=np.int64)
        costs = np.array([move.cost for move in moves])
        errors = np.array([move.error for move in moves])
        entering = np.arange(rules.n_units) if entering is None else entering
        changes = rules.changes(support.units, entering, out, costs, gains, doubts, errors)
        if rules.sparsity.price > 0.0:
            # only a fit can decide what a support is worth that drops other columns
            lost = out[~is_known & (out >= 0)]
            changes.removals[np.searchsorted(support.units, lost)] = -np.inf
        return changes

    def _enter(self, moves: list[Leaving], chunk: UnitBases) -> tuple[Floats, Bools]:
        """Compute (gains, doubts) of the units of a chunk after every removal."""
        look()
        support, layout, Z = self.support, chunk.layout, chunk.Z
        m, q = self.problem.n_samples, support.z.shape[1]
        gains = np.zeros((len(moves), chunk.units.size))
        doubts = np.zeros(gains.shape, dtype=np.bool_)
        if Z.shape[1] == 0:
            return gains, doubts
        shares = np.ascontiguousarray(Z.T @ support.Q[:m])
        slopes = np.ascontiguousarray(Z.T @ support.rest[:m])
        own = _unit_blocks(layout)
        M = np.empty_like(own)
        kernels.unit_pivots(layout, shares, shares, own, M)
        largest = int(np.diff(layout.starts).max())
        # rounding of a pivot, and of the shares along removed directions
        rounding = (4.0 * support.rounding + EPSILON * (shares.shape[1] + 8.0)) * largest
        is_outside = ~np.isin(chunk.units, support.units)
        near = NearUnits(self, chunk)
        for b, move in enumerate(moves):
            look()
            n_left = move.U.shape[1]
            T = np.ascontiguousarray(shares @ move.U)
            error = 2.0 * support.error + support.rounding * float(np.linalg.norm(move.P))
            work = np.empty((largest + n_left + q + 1, largest))
            kernels.unit_gains(
                layout, own, M, slopes, T, np.arange(n_left), np.eye(n_left),
                np.ascontiguousarray(move.P), chunk.low, chunk.high, 1e-3 * CLOSE, rounding, error,
                work, gains[b], doubts[b],
            )  # fmt: skip
            # pivots by differences of squares have lost too many digits there
            some = np.flatnonzero(doubts[b] & is_outside)
            gains[b, some] = near.gains(some, slopes, T, move.P, error)
            doubts[b] = ~np.isfinite(gains[b])
        return gains, doubts


class NearUnits:
    """The units of a chunk that are close to a support: their residuals, from the columns."""

    problem: Problem
    support: Support
    chunk: UnitBases

    def __init__(self, tableau: ProjectedTableau, chunk: UnitBases) -> None:
        self.problem, self.support, self.chunk = tableau.problem, tableau.support, chunk
        self.sizes: Ints = np.diff(chunk.layout.starts)
        # by position in the chunk: a length for one column, a triangular factor for several
        self._lengths = np.full(chunk.units.size, np.nan)
        self._factors: dict[int, Floats] = {}

    def gains(self, some: Ints, slopes: Floats, T: Floats, P: Floats, error: float) -> Floats:
        """Bound the gains of units at some positions, with shares T along removed directions."""
        starts, found = self.chunk.layout.starts, np.empty(some.size)
        is_single = self.sizes[some] == 1
        single = some[is_single]
        if single.size:
            at = starts[single]
            along = np.linalg.norm(slopes[at] + T[at] @ P, axis=1)
            lengths = np.hypot(self._rest_lengths(single), np.linalg.norm(T[at], axis=1))
            found[is_single] = self._gains_along(lengths, along, error)
        for i in np.flatnonzero(~is_single):
            unit = int(some[i])
            at = slice(starts[unit], starts[unit + 1])
            W = np.vstack([self._factor(unit), T[at].T])
            values, vectors = np.linalg.svd(W)[1:]
            values = np.append(values, np.zeros(len(vectors) - values.size))
            along = np.linalg.norm(vectors @ (slopes[at] + T[at] @ P), axis=1)
            found[i] = self._gains_along(values, along, error).sum()
        return found

    def _gains_along(self, lengths: Floats, along: Floats, error: float) -> Floats:
        """Bound the gains along directions of these lengths; infinite if only a fit can decide.

        A direction that is a combination of the support gains nothing, unless bounds restrict it. A
        direction closer to the span than its accuracy is undecided.
        """
        rounding = self.support.rounding
        is_open = lengths <= max(DEPENDENT, 4.0 * rounding)
        safe = np.where(is_open, 1.0, lengths - rounding)
        gains = np.where(is_open, np.inf, 0.5 * ((along + error) / safe) ** 2)
        # an exact combination, and no slope along it
        gains[(lengths <= ROUNDED) & (along <= error)] = 0.0
        if self.problem.is_plain:
            # supports of dependent columns are none
            gains[lengths <= 0.5 * DEPENDENT] = 0.0
        return gains

    def _rest_lengths(self, single: Ints) -> Floats:
        """Return the distances of one-column units from the support."""
        new = single[np.isnan(self._lengths[single])]
        if new.size:
            rest = self._rest(self.chunk.layout.starts[new])
            own = [float(np.vdot(self.chunk.below[i], self.chunk.below[i])) for i in new]
            self._lengths[new] = np.sqrt(np.einsum("ij,ij->j", rest, rest) + np.array(own))
        return self._lengths[single]

    def _factor(self, unit: int) -> Floats:
        """Return a triangular factor of what the support leaves of a unit's columns."""
        if unit not in self._factors:
            starts = self.chunk.layout.starts
            rest = self._rest(np.arange(starts[unit], starts[unit + 1]))
            R: Any = np.linalg.qr(np.vstack([rest, self.chunk.below[unit]]), mode="r")
            self._factors[unit] = R
        return self._factors[unit]

    def _rest(self, columns: Ints) -> Floats:
        """Project columns of the chunk off the support."""
        Q, Z = self.support.Q, self.chunk.Z[:, columns]
        return project_away(Q, np.vstack([Z, np.zeros((len(Q) - len(Z), columns.size))]))[0]


def unit_columns_outside(problem: Problem, columns: Ints) -> tuple[Floats, Floats, Floats]:
    """Return unit columns (m, c), their entries in rows of the ridge of their own, and scales.

    Zero columns stay zero.
    """
    X = problem.design.columns(columns)
    if problem.sample_weight is not None:
        X = X * np.sqrt(problem.sample_weight)[:, None]
    scale = np.sqrt(np.einsum("ij,ij->j", X, X) + problem.ridge)
    safe = np.where(scale > 0.0, scale, 1.0)
    return X / safe, np.sqrt(problem.ridge) / safe, scale


def _span(A: Floats) -> tuple[Floats, Floats, bool]:
    """Return factors Q, R of independent unit columns of A, and whether these are all of them."""
    if A.shape[0] >= A.shape[1]:
        Q, R = orthogonal_factors(A)
        if distances(R).min(initial=1.0) > DEPENDENT:
            return Q, R, True
    basis = independent_positions(A)
    return *orthogonal_factors(A[:, basis]), basis.size == A.shape[1]


def _unit_blocks(layout: kernels.UnitLayout) -> Floats:
    """Return the identity of every unit, one after the other."""
    sizes, blocks = np.diff(layout.starts), np.zeros(layout.places[-1])
    inside = layout.order - np.repeat(layout.starts[:-1], sizes)
    blocks[np.repeat(layout.places[:-1], sizes) + inside * np.repeat(sizes + 1, sizes)] = 1.0
    return blocks


def _bases(stack: Floats) -> list[Floats]:
    """Return orthonormal columns that span those of each matrix of a stack (g, m, d)."""
    if stack.shape[1] < stack.shape[2]:
        return [orthonormal(A) for A in stack]
    Q, R = np.linalg.qr(stack)
    with np.errstate(divide="ignore"):
        least = np.abs(np.diagonal(R, axis1=1, axis2=2)).min(axis=1)
    return [
        q if low > DEPENDENT and distances(r).min() > DEPENDENT else orthonormal(A)
        for q, r, low, A in zip(Q, R, least, stack, strict=True)
    ]
