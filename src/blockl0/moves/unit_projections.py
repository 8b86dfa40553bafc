"""Upper bounds on the gain of single changes of units, from orthogonal projections of the columns.

Like `unit_table`, but for the final check: with orthonormal columns Q that span a support and z_J
that span a unit J, both with weights and ridge, J gains ½ ρ_J' M_JJ⁺ ρ_J with ρ_J = z_J'r and M_JJ
= I − (Q'z_J)'(Q'z_J). Removing a unit also removes directions U of Q, which costs ½‖U'Q'(fit)‖²,
and adds the shares along U to ρ_J and M_JJ. Every number comes with its rounding error, which grows
with the inverse of distances rather than their square.
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
    z : ndarray (k, q)
        Their coefficients.
    rest : ndarray (r, q)
        The residual.
    slack_gain : ndarray (k,)
        Contribution of the bound multipliers of each column.
    rounding, error : float
        Rounding error of projections of unit columns, and of slopes.
    """

    units: Ints
    owner: Ints
    Q: Floats
    A: Floats
    z: Floats
    rest: Floats
    slack_gain: Floats
    rounding: float
    error: float


class Leaving(NamedTuple):
    """Directions U (s, l) that a support loses with a unit, and the fit's share P along them.

    `is_known`: every column that the reduced fit drops is an exact linear combination of the rest
    (a column redundant beside the unit need not be redundant without it).
    """

    unit: int
    U: Floats
    P: Floats
    cost: float
    error: float
    is_known: bool = True


class UnitProjections:
    """The columns of a problem with the squared loss, unit by unit."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.rules = problem, UnitRules.of(problem)

    # -- columns -----------------------------------------------------------------------------------

    @lazy
    def _known(self) -> list[UnitBases]:
        return list(self._made())

    def _chunks(self) -> Iterator[UnitBases]:
        problem = self.problem
        is_small = problem.n_samples * problem.n_features <= KNOWN
        return iter(self._known) if is_small else self._made()

    def _made(self) -> Iterator[UnitBases]:
        """Yield all units, some at a time."""
        problem = self.problem
        members = [problem.units.members(unit) for unit in range(self.rules.n_units)]
        sizes = np.cumsum([part.size for part in members])
        most = max(1, CHUNK // problem.n_samples)
        where = (sizes - 1) // most
        for part in np.split(np.arange(len(members)), np.flatnonzero(np.diff(where)) + 1):
            look()
            yield self._chunk(part, [members[unit] for unit in part])

    def _chunk(self, units: Ints, members: list[Ints]) -> UnitBases:
        problem, m = self.problem, self.problem.n_samples
        X = problem.design.columns(np.concatenate(members))
        if problem.sample_weight is not None:
            X = X * np.sqrt(problem.sample_weight)[:, None]
        scale = np.sqrt(np.einsum("ij,ij->j", X, X) + problem.ridge)
        X = X / np.where(scale > 0.0, scale, 1.0)
        if problem.ridge:
            own = np.sqrt(problem.ridge) / scale
        sizes = np.array([part.size for part in members], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        parts: list[Floats] = [X[:, a:b] for a, b in pairwise(starts.tolist())]
        for i in np.flatnonzero(sizes == 1):
            a = starts[i]
            parts[i] = parts[i] if scale[a] > 0.0 else parts[i][:, :0]
            if problem.ridge:
                parts[i] = np.vstack([parts[i], own[None, a : a + 1]])
        for size in np.unique(sizes[sizes > 1]):
            at = np.flatnonzero(sizes == size)
            columns = starts[at][:, None] + np.arange(size)
            stack = np.moveaxis(X[:, columns], 0, 1)
            if problem.ridge:
                stack = np.concatenate([stack, own[columns][:, :, None] * np.eye(size)], axis=1)
            for i, basis in zip(at, _bases(stack), strict=True):
                parts[i] = basis
        layout, low, high = self._limits(parts, members, scale[starts[:-1]])
        Z = np.ascontiguousarray(np.hstack([part[:m] for part in parts]))
        return UnitBases(units, layout, Z, [part[m:] for part in parts], low, high)

    def _limits(
        self, parts: list[Floats], members: list[Ints], scale: Floats
    ) -> tuple[kernels.UnitLayout, Floats, Floats]:
        """Lay out the columns of units, with bounds for one-column units."""
        sizes = np.array([part.shape[1] for part in parts], dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64)
        N = int(ends[-1])
        layout = kernels.UnitLayout(np.arange(N, dtype=np.int64), ends, places)
        low, high = np.full(N, -np.inf), np.full(N, np.inf)
        if self.rules.bounds is not None:
            for i, columns in enumerate(members):
                if columns.size == 1 and sizes[i] == 1:
                    low[ends[i]] = self.rules.bounds[0][columns[0]] * scale[i]
                    high[ends[i]] = self.rules.bounds[1][columns[0]] * scale[i]
        return layout, low, high

    # -- supports ----------------------------------------------------------------------------------

    def support(self, units: Ints, w: Floats) -> Support | None:
        """Describe the support of some units with fit w.

        Return None if the fit had to drop a column that is not an exact combination of the others;
        no bound is then valid for supersets.
        """
        problem = self.problem
        members = [problem.units.members(int(unit)) for unit in units]
        columns = np.concatenate([np.empty(0, dtype=np.int64), *members])
        owner = np.repeat(units, [part.size for part in members])
        A, b, scale = problem.unit_columns(columns)
        b = b.reshape(len(b), -1)
        z = (w[columns].T * scale).T.reshape(columns.size, b.shape[1])
        if not is_resolved(A):
            return None
        basis = independent_positions(A) if columns.size else columns
        Q, R = orthogonal_factors(A[:, basis])
        nearest = float(distances(R).min(initial=1.0))
        rest = b - A @ z
        slack_gain = np.maximum((A.T @ rest) * z, 0.0).sum(axis=1)
        if self.rules.bounds is None:
            rest, slack_gain = project_away(Q, rest)[0], np.zeros(columns.size)
        size = float(np.linalg.norm(b)) + float(np.linalg.norm(z, axis=1).sum())
        precision = OPERATIONS * EPSILON
        return Support(
            units, owner, Q, Q.T @ A, z, rest, slack_gain, precision / max(nearest, EPSILON),
            precision * size,
        )  # fmt: skip

    def _leaving(self, support: Support, unit: int) -> Leaving:
        """Describe the removal of a unit."""
        look()
        own = support.owner == unit
        others, s, is_known = support.A[:, ~own], support.Q.shape[1], True
        if others.shape[1] == 0:
            U = np.eye(s)
        else:
            is_known = is_resolved(others)
            basis = independent_positions(others)
            whole: Any = np.linalg.qr(others[:, basis], mode="complete")[0]
            U = whole[:, basis.size :]
        P = U.T @ (support.A[:, own] @ support.z[own])
        length = float(np.linalg.norm(P))
        cost = 0.5 * length * length + float(support.slack_gain[own].sum())
        return Leaving(unit, U, P, cost, support.error * (length + support.error), is_known)

    # -- moves -------------------------------------------------------------------------------------

    def changes(self, support: Support) -> Changes:
        """Bound the change by every single addition, removal and swap, with rounding errors."""
        rules, units = self.rules, support.units
        s, q = support.Q.shape[1], support.z.shape[1]
        has_room, leaving = rules.leaving(units)
        moves: list[Leaving] = []
        if has_room:
            moves.append(Leaving(-1, np.empty((s, 0)), np.empty((0, q)), 0.0, 0.0))
        moves += [self._leaving(support, int(unit)) for unit in units[leaving]]
        gains = np.zeros((len(moves), rules.n_units))
        doubts = np.zeros(gains.shape, dtype=np.bool_)
        for chunk in self._chunks():
            self._enter(support, moves, chunk, gains, doubts)
        is_known = np.array([move.is_known for move in moves], dtype=np.bool_)
        doubts[~is_known] = True
        out = np.array([move.unit for move in moves], dtype=np.int64)
        costs = np.array([move.cost for move in moves])
        errors = np.array([move.error for move in moves])
        found = rules.changes(
            units, np.arange(rules.n_units), out, costs, gains, doubts, errors
        )  # fmt: skip
        if rules.sparsity.price > 0.0:
            # only a fit can decide what a support is worth that drops other columns
            found.removals[np.searchsorted(units, out[~is_known])] = -np.inf
        return found

    def _enter(
        self, support: Support, moves: list[Leaving], chunk: UnitBases, gains: Floats, doubts: Bools
    ) -> None:
        """Compute the gains of the units of a chunk after every removal."""
        look()
        m, q = self.problem.n_samples, support.z.shape[1]
        layout, Z = chunk.layout, chunk.Z
        if Z.shape[1] == 0:
            return
        shares = np.ascontiguousarray(Z.T @ support.Q[:m])
        slopes = np.ascontiguousarray(Z.T @ support.rest[:m])
        sizes = np.diff(layout.starts)
        own = np.concatenate([np.eye(size).ravel() for size in sizes])
        M = np.empty_like(own)
        kernels.unit_pivots(layout, shares, shares, own, M)
        largest = int(sizes.max())
        # rounding of a pivot, and of the shares along removed directions
        rounding = (4.0 * support.rounding + EPSILON * (shares.shape[1] + 8.0)) * largest
        is_near: dict[int, Floats] = {}
        for b, move in enumerate(moves):
            look()
            n_left = move.U.shape[1]
            T = np.ascontiguousarray(shares @ move.U)
            error = 2.0 * support.error + support.rounding * float(np.linalg.norm(move.P))
            work = np.empty((largest + n_left + q + 1, largest))
            found, doubt = np.empty(sizes.size), np.empty(sizes.size, dtype=np.bool_)
            kernels.unit_gains(
                layout, own, M, slopes, T, np.arange(n_left), np.eye(n_left),
                np.ascontiguousarray(move.P), chunk.low, chunk.high, 1e-3 * CLOSE, rounding, error,
                work, found, doubt,
            )  # fmt: skip
            for i in np.flatnonzero(doubt):
                unit = int(chunk.units[i])
                if unit in support.units:
                    continue
                if unit not in is_near:
                    is_near[unit] = self._beside(support, chunk, int(i))
                at = slice(layout.starts[i], layout.starts[i + 1])
                rho = slopes[at] + T[at] @ move.P
                W = np.vstack([is_near[unit], T[at].T])
                found[i] = _gain_closely(W, rho, support.rounding, error)
            gains[b, chunk.units] = found
            doubts[b, chunk.units] = ~np.isfinite(found)

    def _beside(self, support: Support, chunk: UnitBases, i: int) -> Floats:
        """Compute a triangular factor of the residual of a unit's columns on a support."""
        m, layout = self.problem.n_samples, chunk.layout
        Z = chunk.Z[:, layout.starts[i] : layout.starts[i + 1]]
        extended = np.vstack([Z, np.zeros((support.Q.shape[0] - m, Z.shape[1]))])
        rest = np.vstack([project_away(support.Q, extended)[0], chunk.below[i]])
        R: Any = np.linalg.qr(rest, mode="r")
        return R


def _gain_closely(W: Floats, rho: Floats, rounding: float, error: float) -> float:
    """Bound ½ρ'(W'W)⁺ρ where W is nearly singular; infinite if only a fit can decide.

    A direction that is a combination of the support gains nothing, unless bounds restrict it. A
    direction closer to the span than its accuracy is undecided.
    """
    values, vectors = np.linalg.svd(W)[1:]
    values = np.append(values, np.zeros(len(vectors) - values.size))
    along = np.linalg.norm(vectors @ rho, axis=1)
    is_nothing = (values <= ROUNDED) & (along <= error)
    values, along = values[~is_nothing], along[~is_nothing]
    if (values <= max(DEPENDENT, 4.0 * rounding)).any():
        return np.inf
    return float(0.5 * np.sum(((along + error) / (values - rounding)) ** 2))


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
