"""Global optimality, level n of the hierarchy, for every loss.

The loss itself is searched, never a model of it. The first better point found refutes a point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.certify.levels import Better, PointUnderTest
from blockl0.errors import OutOfReachError, OutOfTime
from blockl0.exact import Stages, may_bound, no_bound, obstacle
from blockl0.exact.few_columns import best_of_all, may_enumerate
from blockl0.exact.method import MEMORY
from blockl0.exact.watch import Watch
from blockl0.problem.fits import make_fits
from blockl0.problem.kinds import LEAST_SQUARES
from blockl0.run import Incumbent, current_clock

Indices = NDArray[np.int64]

WORK = 30.0
"""Work limit of a proof, in units of 1e9 multiplications: as for other complete certificates."""
NODES = 50
"""Nodes between checks for a better point."""


def improve_globally(point: PointUnderTest, level: int) -> Better | None:
    """Find a better point; None if it is proven that there is none.

    Raises
    ------
    OutOfReachError
        Where no bound exists, or the proof would take too long.
    """
    problem = point.problem
    members = problem.units.columns(point.members)
    start = Incumbent.at(problem, make_fits(problem).minimum(members, point.w).w)
    better, watch = _confirmed(point, start), Watch(current_clock(), WORK)
    if better is not None:
        return better
    if may_enumerate(problem) and problem.kind is not LEAST_SQUARES:
        start, is_all = best_of_all(problem, start, watch, point.slack)
        better = _confirmed(point, start)
        if better is not None or is_all:
            return better
    if not may_bound(problem):
        raise OutOfReachError(f"`level`={level}: {_without_bound(point)}")
    search = Stages(problem, start, watch, 0.0, MEMORY)
    while better is None:
        # a search may find something before its first node
        better = _confirmed(point, search.incumbent)
        if search.is_finished or search.is_stuck or watch.is_spent:
            break
        if watch():
            raise OutOfTime
        search.advance(NODES)
    if better is not None:
        return better
    # a proof coarser than the tolerance does not count
    if search.is_optimal and search.tolerance <= point.slack:
        return None
    raise OutOfReachError(_why(point, search, level))


def _confirmed(point: PointUnderTest, found: Incumbent) -> Better | None:
    if not found.objective < point.objective - point.slack:
        return None
    return point.confirm(point.problem.units.support(found.w - point.w), found.w)


def _why(point: PointUnderTest, search: Stages, level: int) -> str:
    """Say why a search has not proven anything."""
    if search.reason is not None:
        return f"`level`={level}: {no_bound(point.problem, point.w, search.reason)}"
    best = search.incumbent.objective
    if search.is_optimal:
        return (
            f"`level`={level} is proven to {search.tolerance:.1g}, beside an objective of "
            f"{best:.3g}, only, which is coarser than `tol`; raise it."
        )
    return (
        f"`level`={level} is out of reach: after {WORK:g}e9 multiplications a gap of "
        f"{(best - search.bound) / abs(best):.2%} is left; ask for a lower level, or for "
        "method='exact' of `solve` with more time."
    )


def _without_bound(point: PointUnderTest) -> str:
    problem = point.problem
    reason = obstacle(problem)
    if problem.n_outputs > 1 or not problem.is_plain or reason is None:
        return (
            f"no bound is known for loss={problem.loss.name!r}, and there are too many subsets to "
            "fit them all; ask for a lower level."
        )
    return no_bound(problem, point.w, reason)
