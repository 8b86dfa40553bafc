"""Method "exact": the block search with the whole problem as its block: the global optimum."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from blockl0.block_search import NODE_LIMIT
from blockl0.exact.search import ExactSearch, Incumbent
from blockl0.methods import METHODS, method
from blockl0.problem.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.validate import check_integer

Floats = NDArray[np.float64]

LARGEST = 1000
"""Columns up to which an exact search is tried; its memory grows with their square."""
SLICE_SECONDS = 0.02
"""Aim for the time between two looks at the clock."""
FIRST_NODES, MOST_NODES = 8, 1_000_000
"""Nodes before the first look at the clock, and between two looks at most."""
HEURISTIC_EFFORT = 1
"""Rounds of kicks that method "refit" spends on the first incumbent."""


@method("exact", losses="quadratic", most_columns=LARGEST)
def solve_exact(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    node_limit: int = 100 * NODE_LIMIT,
) -> Result:
    """Branch and bound over all supports, from the incumbent of method "refit" to the proof.

    The proof is about supports whose columns do not depend on each other;
    `blockl0.problem.orthogonal` says what that means.

    Parameters
    ----------
    problem : Problem
        Squared loss, at most 1000 columns.
    run : Run
        Its time limit is honoured; the result then carries the lower bound reached.
    init : ndarray (n,), optional
        Start of the heuristic.
    rng : Generator
        For the heuristic; the search itself is deterministic.
    node_limit : int
        Nodes after which the search stops without a proof.
    """
    node_limit = check_integer("node_limit", node_limit, low=1)
    first = METHODS["refit"].solve(problem, run.part(), init=init, rng=rng, effort=HEURISTIC_EFFORT)
    if first.status is Status.OPTIMAL:
        # few columns: the heuristic is a complete search already
        w = problem.from_given(first.coef)
        said = run.record(Incumbent(w, first.objective, first.n_nonzero), first.lower_bound)
        status = said if said is Status.STOPPED else first.status
        return run.result(w, status, first.n_iter, first.lower_bound)
    search = ExactSearch(problem, first.support, run)
    status, quota = None, FIRST_NODES
    try:
        status = run.record(search.incumbent, search.bound)
        if first.status is Status.INTERRUPTED:
            status = Status.INTERRUPTED
        while status is None:
            started, before = time.perf_counter(), search.incumbent.iteration
            search.advance(min(quota, node_limit - before))
            status = run.record(search.incumbent, search.bound)
            if search.finished:
                status = Status.OPTIMAL
            elif status is None and search.incumbent.iteration >= node_limit:
                status = Status.NODE_LIMIT
            quota = _next_quota(quota, search.incumbent.iteration - before, started)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    best = search.incumbent
    return run.result(best.w, status, best.iteration, search.bound)


def _next_quota(quota: int, n_made: int, started: float) -> int:
    """Nodes of the next slice; a slice that a doubt cut short tells nothing about longer ones."""
    pace = SLICE_SECONDS / max(time.perf_counter() - started, 1e-6)
    if n_made < quota:
        return max(1, int(quota * min(pace, 1.0)))
    return min(max(1, int(quota * min(max(pace, 0.1), 2.0))), MOST_NODES)
