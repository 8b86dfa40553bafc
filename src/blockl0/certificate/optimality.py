"""Global optimality, level n of the hierarchy: the point against all others, for every loss.

It is the loss itself that is searched here, never a model of it. A point is refuted by the first
better one that the search comes upon.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate.point import Better, PointUnderTest
from blockl0.errors import OutOfReachError
from blockl0.exact import Stages, may_prove, no_bound, obstacle
from blockl0.exact.method import MEMORY
from blockl0.exact.watch import Watch
from blockl0.incumbent import Incumbent
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem

Indices = NDArray[np.int64]

WORK = 30.0
"""For a proof, in units of 1e9 multiplications: as long as other complete certificates may take."""
NODES = 50
"""Between two looks at what was found."""
ENUMERATED = 1000
"""Supports that are fitted one by one where no bound exists."""


def improve_globally(point: PointUnderTest, level: int) -> Better | None:
    """A better point; None when it is proven that there is none.

    Raises
    ------
    OutOfReachError
        Where no bound exists, or the proof would take too long.
    """
    problem = point.problem
    if not may_prove(problem):
        return _enumerate(point, level)
    members = problem.units.columns(point.members)
    start = Incumbent.at(problem, make_fits(problem).minimum(members, point.w).w)
    better, watch = _confirmed(point, start), Watch(work_limit=WORK)
    if better is not None:
        return better
    search = Stages(problem, start, watch, 0.0, MEMORY)
    while better is None:
        # a search may find something before its first node
        better = _confirmed(point, search.incumbent)
        if search.is_finished or search.is_stuck or watch.is_spent:
            break
        search.advance(NODES)
    if better is not None:
        return better
    # a proof that is coarser than the tolerance is none here
    if search.is_optimal and search.tie <= point.slack:
        return None
    raise OutOfReachError(_why(point, search, level))


def _confirmed(point: PointUnderTest, found: Incumbent) -> Better | None:
    if not found.objective < point.objective - point.slack:
        return None
    return point.confirm(point.problem.units.support(found.w - point.w), found.w)


def _why(point: PointUnderTest, search: Stages, level: int) -> str:
    """Why a search has not proven anything."""
    if search.reason is not None:
        return f"`level`={level}: {no_bound(point.problem, point.w, search.reason)}"
    best = search.incumbent.objective
    if search.is_optimal:
        return (
            f"`level`={level} is proven to {search.tie:.1g}, beside an objective of {best:.3g}, "
            "only, which is coarser than `tol`; raise it."
        )
    return (
        f"`level`={level} is out of reach: after {WORK:g}e9 multiplications a gap of "
        f"{(best - search.bound) / abs(best):.2%} is left; ask for a lower level, or for "
        "method='exact' of `solve` with more time."
    )


# -- where no bound exists -------------------------------------------------------------------------


def _enumerate(point: PointUnderTest, level: int) -> Better | None:
    """Fit all supports, if they are few."""
    problem = point.problem
    n_free = problem.n_units - problem.keep.size
    most = min(problem.sparsity.budget - problem.keep.size, n_free)
    if sum(comb(n_free, k) for k in range(most + 1)) > ENUMERATED:
        raise OutOfReachError(f"`level`={level}: {_without_bound(point)}")
    fits = make_fits(problem)
    for support in _supports(problem, most):
        columns = problem.units.columns(support)
        better = _confirmed(point, Incumbent.at(problem, fits.minimum(columns).w))
        if better is not None:
            return better
    return None


def _supports(problem: Problem, most: int) -> Iterator[Indices]:
    """The largest first, as smaller ones are only better by their price."""
    free = np.setdiff1d(np.arange(problem.n_units), problem.keep)
    for k in range(most, -1, -1):
        for chosen in combinations(free.tolist(), k):
            yield np.union1d(problem.keep, np.array(chosen, dtype=np.int64))


def _without_bound(point: PointUnderTest) -> str:
    problem = point.problem
    reason = obstacle(problem)
    if problem.n_outputs > 1 or not problem.is_plain or reason is None:
        return (
            f"no bound is known for loss={problem.loss.name!r}, and there are too many subsets to "
            "fit them all; ask for a lower level."
        )
    return no_bound(problem, point.w, reason)
