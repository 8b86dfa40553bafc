"""Method "exact": the global optimum with a proof, or the best point with a true gap."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.block_search import NODE_LIMIT
from blockl0.exact.proof import Proof, ProofRecorder
from blockl0.exact.stages import Stages
from blockl0.files import check_free
from blockl0.incumbent import Incumbent
from blockl0.methods import METHODS, method
from blockl0.problem.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.validate import check_integer, check_nonnegative, check_positive
from blockl0.verify import ProofError

Floats = NDArray[np.float64]

SLICE_SECONDS = 0.02
"""Aim for the time between two looks at the clock."""
FIRST_NODES, MOST_NODES = 8, 1_000_000
"""Nodes before the first look at the clock, and between two looks at most."""
HEURISTIC_EFFORT = 1
"""Rounds of kicks that method "refit" spends on the first incumbent."""
MEMORY = 4e9
"""Bytes that products of columns and waiting nodes take at most."""


@method("exact")
def solve_exact(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    gap: float = 0.0,
    node_limit: int = 100 * NODE_LIMIT,
    memory_limit: float = MEMORY,
    proof: Any = None,
) -> Result:
    """Branch and bound over all supports, from the incumbent of method "refit" to the proof.

    Problems of few columns are searched on tableaus, `ExactSearch`; what that does not settle soon,
    larger problems and other losses on nodes with convex bounds, `ProofTree`.

    Parameters
    ----------
    problem : Problem
        Without a ridge there are bounds for the squared loss only, and only where X has no more
        columns than rows.
    run : Run
        Its time limit is honoured; the result then carries the lower bound reached.
    init : ndarray (n,), optional
        Start of the heuristic.
    rng : Generator
        For the heuristic; the search itself is deterministic.
    gap : float
        Relative gap, (objective − bound)/objective, at which to stop; 0 is to rounding.
    node_limit : int
        Nodes after which the search stops without a proof.
    memory_limit : float
        Bytes.
    proof : str, Path or bool, optional
        A file for a proof that `blockl0.verify` can check, which is replaced if it exists; True for
        `Result.proof` alone. The tableaus, which leave no such proof, are then not used.
    """
    node_limit = check_integer("node_limit", node_limit, low=1)
    gap, memory_limit = check_nonnegative("gap", gap), check_positive("memory_limit", memory_limit)
    recorder = _recorder(problem, proof, memory_limit)
    first = METHODS["refit"].solve(problem, run.part(), init=init, rng=rng, effort=HEURISTIC_EFFORT)
    if first.status is Status.OPTIMAL and recorder is None:
        # few columns: the heuristic is a complete search already
        w = problem.from_given(first.coef)
        said = run.record(Incumbent(w, first.objective, first.n_nonzero), first.lower_bound)
        status = said if said is Status.STOPPED else first.status
        return run.result(w, status, first.n_iter, first.lower_bound)
    search = Stages(problem, _incumbent(problem, first), run, gap, memory_limit, recorder)
    status, quota = None, FIRST_NODES
    try:
        status = run.record(search.incumbent, search.bound)
        if first.status is Status.INTERRUPTED:
            status = Status.INTERRUPTED
        while status is None and not search.is_stuck:
            started, before = time.perf_counter(), search.incumbent.iteration
            search.advance(min(quota, node_limit - before))
            best = search.incumbent
            status = run.record(best, search.bound)
            if search.is_finished:
                status = Status.OPTIMAL
            elif status is None and best.iteration >= node_limit:
                status = Status.NODE_LIMIT
            quota = _next_quota(quota, best.iteration - before, started)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    best = search.incumbent
    if status is None:
        assert search.reason is not None
        status = Status.NO_BOUND
        run.warn_once(no_bound(problem, best.w, search.reason))
    made = None if recorder is None else _proof(recorder, run, best.w, search.bound, proof)
    return run.result(best.w, status, best.iteration, search.bound, proof=made)


def _proof(recorder: ProofRecorder, run: Run, w: Floats, bound: float, proof: Any) -> Proof | None:
    """The proof, written where it is asked for; none where it does not pass the verifier."""
    try:
        made = recorder.proof(w, bound)
    except ProofError as error:
        run.warn_once(f"There is no proof: the one recorded does not pass the verifier. {error}")
        return None
    if not isinstance(proof, bool):
        made.save(proof, force=True)
    return made


def _recorder(problem: Problem, proof: Any, memory_limit: float) -> ProofRecorder | None:
    """What keeps the proof, where one is asked for; a file must be possible there."""
    if proof is None or proof is False:
        return None
    if proof is not True:
        if not isinstance(proof, str | Path):
            raise TypeError(f"`proof` must be True or the name of a file, got {proof!r}.")
        check_free(proof, force=True)
    return ProofRecorder(problem, memory_limit)


def _incumbent(problem: Problem, first: Result) -> Incumbent:
    """The heuristic's point, with the kept columns in its support."""
    w = problem.from_given(first.coef)
    return Incumbent(w, problem.objective(w), problem.units.count(w))


def no_bound(problem: Problem, w: Floats, reason: str) -> str:
    """Why nothing can be proven, and what would help, in a sentence."""
    support = problem.units.support(w)
    doors = f"certify(level={min(2 * support.size, problem.n_features)}) where it is within reach"
    if support.size:
        slope = np.abs(problem.gradient(w) - problem.ridge * w)
        slope[support] = 0.0
        enough = slope.max(initial=0.0) / np.abs(w[support]).min()
        doors = f"a ridge of about {enough:.2g} would suffice at this point, else " + doors
    return f"No bound exists, as {reason}; {doors}, or at most three columns by enumeration."


def _next_quota(quota: int, n_made: int, started: float) -> int:
    """Nodes of the next slice; a slice that a doubt cut short tells nothing about longer ones."""
    pace = SLICE_SECONDS / max(time.perf_counter() - started, 1e-6)
    if n_made < quota:
        return max(1, int(quota * min(pace, 1.0)))
    return min(max(1, int(quota * min(max(pace, 0.1), 2.0))), MOST_NODES)
