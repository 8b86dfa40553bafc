"""Bounds for units and bounded coefficients, for any loss with one predictor, with a ridge.

As in `exact.data` the tangent of the loss at a predictor is a bound, with b = −X'u for slopes u. A
column within bounds counts sup bv − ½·ridge·v² over these, and a unit the sum over its columns less
its price. Every predictor gives a valid bound; a good one comes from the perspective relaxation, by
quadratic models of the loss, each minimized unit by unit.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.exact.bounds import EPSILON, Node, Relaxed, Tangent
from blockl0.exact.data import FLATTEST, LEAF_STEPS, TERM, DataBounds
from blockl0.exact.unit_levels import best_level, effective, first_level
from blockl0.exact.watch import DENSE, NEVER, Watch
from blockl0.problem.bounded import bounded_minimum
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MODELS, SWEEPS, HALVINGS = 3, 8, 6
"""Quadratic models of the loss per level, passes over each, and halvings of a step."""
ENOUGH = 1e-7
"""Relative gain of a model that justifies another one."""


class UnitColumns(NamedTuple):
    """The columns of some units, unit by unit.

    Attributes
    ----------
    columns : ndarray of int64 (N,)
    starts : ndarray of int64 (units + 1,)
    A : ndarray (m, N)
    low, high : ndarray (N,)
    """

    columns: Ints
    starts: Ints
    A: Floats
    low: Floats
    high: Floats

    def sums(self, entries: Floats) -> Floats:
        """Sum over the columns of each unit."""
        return np.add.reduceat(np.append(entries, 0.0), self.starts[:-1])


class UnitDataBounds(DataBounds):
    """Bounds of nodes in units, from passes over their columns.

    Parameters
    ----------
    problem : Problem
        With a ridge and one output.
    ceiling, watch
        As in `DataBounds`.
    """

    def __init__(self, problem: Problem, ceiling: float, watch: Watch = NEVER) -> None:
        super().__init__(problem, ceiling, watch)
        costs = np.ones(problem.n_units) if problem.costs is None else problem.costs
        self.prices = self.price * costs
        self._last = problem.zero()

    def _part(self, units: Ints) -> UnitColumns:
        """Collect the columns of some units, with their places and bounds."""
        problem = self.problem
        members = [problem.units.members(int(unit)) for unit in units]
        sizes = np.array([part.size for part in members], dtype=np.int64)
        columns = np.concatenate([np.empty(0, dtype=np.int64), *members])
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        n = problem.n_features
        low, high = problem.bounds or (np.full(n, -np.inf), np.full(n, np.inf))
        A = np.ascontiguousarray(problem.design.columns(columns))
        return UnitColumns(columns, starts, A, low[columns], high[columns])

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Solve the perspective relaxation, at levels of memberships that use up the room."""
        units, n_in = np.concatenate([node.included, node.free]), node.included.size
        part, room = self._part(units), self.budget - n_in
        is_in, price = np.arange(units.size) < n_in, self.prices[units]
        v, z = self._last[part.columns], np.zeros(units.size)

        def descend(mu: float) -> float:
            v[:], z[:] = self._descended(part, v, is_in, price + mu)
            return float(z[n_in:].sum())

        def prove() -> Relaxed:
            return self._bound(part, units, n_in, room, v)

        def keep() -> None:
            node.z, node.w = z[n_in:].copy(), np.sqrt(part.sums(v * v))
            self._last[part.columns] = v

        def first() -> float:
            slope = self._terms(self._predictor(part, v))[1] @ part.A
            gains = 0.5 * part.sums(slope * slope)[n_in:] / self.ridge
            return first_level(gains, room, abs(cutoff))

        return best_level(node, room, cutoff, descend, prove, keep, first)

    def _predictor(self, part: UnitColumns, v: Floats) -> Floats:
        """Compute Xv, plus the best intercept if there is one."""
        eta = part.A @ v
        return eta + self.problem.best_intercept(eta) if self.problem.has_intercept else eta

    def _value(self, part: UnitColumns, v: Floats, is_in: Bools, level: Floats) -> float:
        """Evaluate the relaxed objective if a membership costs `level`."""
        self.watch.spend(float(part.A.size) + TERM * len(part.A))
        losses = self._terms(self._predictor(part, v))[0]
        squares, root = self.ridge * part.sums(v * v), np.sqrt(2.0 * level)
        sizes = np.sqrt(squares)
        free = np.where(sizes >= root, 0.5 * squares + level, sizes * root)
        return float(losses.sum() + np.where(is_in, 0.5 * squares, free).sum())

    def _unit_model(self, part: UnitColumns, v: Floats) -> tuple[Floats, Floats]:
        """Compute (G, c) such that ½v'Gv − c'v models the loss near a point, without the ridge."""
        self.watch.spend(float(part.A.size) * (DENSE * part.columns.size + 4.0))
        eta = self._predictor(part, v)
        _, slope, bend = self._terms(eta)
        bend = np.maximum(bend, FLATTEST * bend.max(initial=1e-300))
        G = (part.A * bend[:, None]).T @ part.A
        own, total = part.A.T @ bend, float(bend.sum())
        if self.problem.has_intercept:
            G -= np.outer(own, own / total)
        # the slope at v is that of the loss with its best intercept
        return np.ascontiguousarray(G), G @ v - slope @ part.A

    def _descended(
        self, part: UnitColumns, v: Floats, is_in: Bools, level: Floats
    ) -> tuple[Floats, Floats]:
        """Minimize a few models of the loss in turn; return (v, memberships)."""
        here, z = self._value(part, v, is_in, level), np.zeros(is_in.size)
        for _ in range(MODELS):
            G, c = self._unit_model(part, v)
            steep = _steepest(G, part.starts)
            there, g, work = v.copy(), c - G @ v, np.empty(v.size)
            self.watch.spend(SWEEPS * float(v.size) ** 2)
            for _ in range(SWEEPS):
                kernels.sweep_model(
                    G, steep, self.ridge, part.starts, is_in, level, part.low, part.high, there, g,
                    z, work,
                )  # fmt: skip
            found, value = self._line_to(part, v, there, here, is_in, level)
            is_done = not value < here - ENOUGH * abs(here)
            v, here = (found, value) if value < here else (v, here)
            if is_done or self.watch():
                break
        sizes = np.sqrt(self.ridge * part.sums(v * v))
        root = np.sqrt(2.0 * level)
        is_whole = is_in | ((sizes >= root) & (sizes > 0.0))
        return v, np.where(is_whole, 1.0, sizes / np.maximum(root, 1e-300))

    def _line_to(
        self, part: UnitColumns, v: Floats, there: Floats, here: float, is_in: Bools, level: Floats
    ) -> tuple[Floats, float]:
        """Halve the step back from `there` until it is lower; return the point and its value."""
        found, value = there, self._value(part, there, is_in, level)
        for _ in range(HALVINGS):
            if value < here:
                break
            found = 0.5 * (v + found)
            value = self._value(part, found, is_in, level)
        return found, value

    def _bound(self, part: UnitColumns, units: Ints, n_in: int, room: int, v: Floats) -> Relaxed:
        """Derive the bound of the tangent at v, less all possible rounding.

        The root of a unit's gain changes by no more than the norm of the change of its slopes.
        """
        tangent = self._tangent(part.columns, self._predictor(part, v), part.A)
        gains = effective(tangent.b, tangent.d, part.low, part.high) ** 2
        # sums of this many squares, each rounded a few times
        most = float(np.diff(part.starts).max(initial=0))
        norms = np.sqrt(part.sums(gains)) * (1.0 + EPSILON * (most + 8.0))
        error = np.sqrt(part.sums(tangent.error**2))
        base = tangent.base + float(self.prices[units[:n_in]].sum())
        found = Tangent(base, norms, np.full(units.size, self.ridge), error, tangent.allowance)
        return found.prove(n_in, room, self.prices[units[n_in:]], base)

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Bound one support near its fit w, (n,), taking a few more steps."""
        part, best = self._part(support), -np.inf
        v = w[part.columns]
        for _ in range(LEAF_STEPS):
            found = self._bound(part, support, support.size, 0, v).bound
            if not found > best:
                break
            best = found
            if best >= cutoff:
                break
            G, c = self._unit_model(part, v)
            G.flat[:: v.size + 1] += self.ridge
            v = bounded_minimum(G, c[:, None], part.low, part.high, v[:, None])[0][:, 0]
        return best


def _steepest(G: Floats, starts: Ints) -> Floats:
    """Bound the largest eigenvalue of every unit's block, away from zero."""
    blocks = [G[a:b, a:b] for a, b in pairwise(starts.tolist())]
    found = np.array([float(np.linalg.norm(block)) for block in blocks])
    return np.maximum(found, 1e-12 * found.max(initial=0.0) + 1e-300)
