"""Method "exact": the global optimum with a proof, or the best point with a true gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.block_search import NODE_LIMIT
from blockl0.exact.few_columns import best_of_all, may_enumerate
from blockl0.exact.proof import Proof, ProofRecorder
from blockl0.exact.prover import trivial_bound
from blockl0.exact.search import are_apart
from blockl0.exact.stages import Stages, may_bound, ungrouped
from blockl0.exact.watch import UNIT, Watch
from blockl0.files import check_free
from blockl0.methods import METHODS, method
from blockl0.problem.factors import refined
from blockl0.problem.kinds import LEAST_SQUARES
from blockl0.problem.orthogonal import DEPENDENT, is_resolved
from blockl0.problem.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Incumbent, Run, timed_by
from blockl0.units import COLUMNS, Columns, Groups
from blockl0.validate import check_integer, check_nonnegative, check_positive
from blockl0.verify import ProofError

Floats = NDArray[np.float64]

SLICE_WORK = 2e7
"""Target for the work between checks of the clock."""
FIRST_NODES, MOST_NODES = 8, 1_000_000
"""Nodes before the first check of the clock, and between checks at most."""
ENUMERATED = 2.0
"""Units of work for fitting all subsets if bounds may prove the optimum as well."""
HEURISTIC_EFFORT = 1
"""Effort of method "refit" for the first incumbent."""
MEMORY = 4e9
"""Default memory for products of columns and waiting nodes, in bytes."""

BLURRED = 1e-6
"""Gap in the proof of an optimum above which a note mentions it."""
BLURRED_NOTE = (
    "The search has proven the optimum. The proof for others knows tangents only, of which "
    "rounding hides more where columns nearly depend on each other or the fit is nearly perfect: "
    "its gap is"
)


@method(
    "exact",
    reduces=True,
    units=(Columns, Groups),
    bounds=True,
    costs=True,
    responses=True,
    several_outputs=True,
)
def solve_exact(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    gap: float = 0.0,
    node_limit: int = 100 * NODE_LIMIT,
    work_limit: float = np.inf,
    memory_limit: float = MEMORY,
    proof: Any = None,
) -> Result:
    """Branch and bound over all supports, from the incumbent of method "refit" to the proof.

    Problems with few columns are searched on tableaus, `ExactSearch`. Larger problems, other
        losses, and problems not solved quickly that way use nodes with convex bounds, `ProofTree`.

    Parameters
    ----------
    problem : Problem
        Without a ridge there are bounds for the squared loss only, and only if X has no more
        columns than rows. Without a bound, few columns are enumerated for a while, and the status
        is NO_BOUND if that does not suffice; the result's `note` says why.
    run : Run
        Its time limit is honoured; the result then carries the lower bound reached.
    init : ndarray (n,), optional
        Start of the heuristic; the result is never worse.
    rng : Generator
        For the heuristic; the search itself is deterministic.
    gap : float
        Relative gap, (objective − bound)/objective, at which to stop; 0 means up to rounding. A
        run that stops before the proof is complete has status GAP.
    node_limit : int
        Nodes after which the search stops without a proof.
    work_limit : float
        Work after which to stop, in units of 1e9 multiplications, about a second each. It is
        counted, not timed, so that a search ends with the same answer and bound on any machine. The
        heuristic does not count.
    memory_limit : float
        Bytes for products of columns and waiting nodes, half of them for each. If the products of
        all columns do not fit, bounds come from X itself, which needs a ridge; if nodes do not fit,
        the deepest one is next. One set of products of at most 1200 columns is always kept.
    proof : str, Path or bool, optional
        A file for a proof that `blockl0.verify` can check, which is replaced if it exists; True for
        `Result.proof` alone. The tableaus, which produce no such proof, are then not used.
    """
    node_limit = check_integer("node_limit", node_limit, low=1)
    watch = Watch(run, _limit(work_limit))
    gap, memory_limit = check_nonnegative("gap", gap), check_positive("memory_limit", memory_limit)
    recorder, problem = _recorder(run.problem, problem, proof, memory_limit), ungrouped(problem)
    first = _first(problem, run, init, rng)
    if first.status is Status.OPTIMAL and recorder is None:
        # few columns: the heuristic is a complete search already
        w = problem.from_given(first.coef)
        said = run.record(Incumbent(w, first.objective, first.n_nonzero), first.lower_bound)
        status = said if said is Status.STOPPED else first.status
        return run.result(w, status, first.n_iter, first.lower_bound)
    best, bound = _incumbent(problem, first), trivial_bound(problem, problem.keep)
    status = Status.INTERRUPTED if first.status is Status.INTERRUPTED else None
    search, note, quota = None, None, FIRST_NODES
    try:
        status = run.record(best, bound) if status is None else status
        if status is None and recorder is None:
            best, is_all = _enumerated(problem, best, watch)
            status = Status.OPTIMAL if is_all else None
        if status is None:
            search = Stages(problem, best, watch, gap, memory_limit, recorder)
        while search is not None and status is None and not search.is_stuck:
            before, done = best.iteration, watch.work
            search.advance(min(quota, node_limit - before))
            best, bound = search.incumbent, search.bound
            status = _status(search, run.record(best, bound), node_limit, watch)
            quota = _next_quota(quota, best.iteration - before, watch.work - done)
    except KeyboardInterrupt as stop:
        # the node being searched is in no list: only the previous bound is valid
        status = run.status_of(stop)
        best = best if search is None else search.incumbent
    if status is None and search is not None and search.reason is not None:
        status, note = Status.NO_BOUND, no_bound(problem, best.w, search.reason)
        # nothing will be proven: then the search deserves its usual effort
        again = METHODS["refit"].solve(problem, run.part(), init=best.w, rng=rng)
        best = min(best, _incumbent(problem, again), key=lambda point: point.objective)
    assert status is not None
    if status is Status.OPTIMAL and _leaves_choice(problem):
        status, bound = Status.CONVERGED, trivial_bound(problem, problem.keep)
    with timed_by(None):
        w = refined(run.problem, best.w)
        made = None if recorder is None else _proof(recorder, run, w, bound, proof)
    if status is Status.OPTIMAL and made is not None and made.gap > BLURRED:
        note = f"{BLURRED_NOTE} {made.gap:.1e}."
    # the remaining distance to an optimum is rounding
    bound = np.inf if status is Status.OPTIMAL else bound
    return run.result(
        w, status, best.iteration, bound, note=note, proof=made, work=watch.work / UNIT
    )


def _first(problem: Problem, run: Run, init: Floats | None, rng: np.random.Generator) -> Result:
    """Search for the first incumbent; without bounds if these turn out not to hold it back."""
    solve = METHODS["refit"].solve
    if problem.bounds is not None and init is None:
        free, whole = (replace(p, bounds=None, limits=None) for p in (problem, run.problem))
        found = solve(free, run.part(whole), rng=rng, effort=HEURISTIC_EFFORT)
        if problem.is_within(problem.from_given(found.coef)):
            # a proof without bounds is none with them where columns depend on each other: within
            # bounds several of them may fit better than those that it compared
            is_proof = found.status is not Status.OPTIMAL or are_apart(problem)
            return found if is_proof else replace(found, status=Status.CONVERGED)
    return solve(problem, run.part(), init=init, rng=rng, effort=HEURISTIC_EFFORT)


def _leaves_choice(problem: Problem) -> bool:
    """Check if bounded columns nearly depend on others: which of them a fit drops is a choice.

    Another choice may fit better within the bounds, and the proofs do not compare them.
    """
    if problem.bounds is None or not problem.is_quadratic:
        return False
    largest = float(problem.design.sq_norms(problem.sample_weight).max(initial=0.0))
    # a ridge keeps unit columns at least this far from each other
    if problem.ridge > DEPENDENT**2 * (largest + problem.ridge):
        return False
    return not is_resolved(problem.unit_columns(np.arange(problem.n_features))[0])


def _enumerated(problem: Problem, best: Incumbent, watch: Watch) -> tuple[Incumbent, bool]:
    """Return the best of all subsets and True, if they are few; else the best point so far.

    Plain least squares is left to the faster tableaus. If a tree can prove the optimum as well, the
    search gives up early.
    """
    if problem.kind is LEAST_SQUARES or not may_enumerate(problem):
        return best, False
    most = ENUMERATED if may_bound(problem) else watch.work_left / UNIT
    inner = Watch(watch, min(most, watch.work_left / UNIT))
    found, is_all = best_of_all(problem, best, inner)
    watch.spend(inner.work)
    return found, is_all


def _limit(work_limit: Any) -> float:
    """Return the limit of work, which may be infinite."""
    is_none = isinstance(work_limit, float) and work_limit == np.inf
    return np.inf if is_none else check_positive("work_limit", work_limit)


def _status(search: Stages, said: Status | None, node_limit: int, watch: Watch) -> Status | None:
    """Return why to stop: finished, or out of time, nodes or work; None to go on."""
    if search.is_finished:
        if search.is_optimal:
            return Status.OPTIMAL
        # fits of some losses end so early that less is proven than was searched
        return Status.GAP if search.is_within_gap and search.gap > 0.0 else Status.CONVERGED
    if said is None and search.incumbent.iteration >= node_limit:
        return Status.NODE_LIMIT
    return Status.WORK_LIMIT if said is None and watch.is_spent else said


def _proof(recorder: ProofRecorder, run: Run, w: Floats, bound: float, proof: Any) -> Proof | None:
    """Return the proof, saved if requested; None if it does not pass the verifier."""
    try:
        made = recorder.proof(w, bound)
    except ProofError as error:
        run.warn_once(f"There is no proof: the one recorded does not pass the verifier. {error}")
        return None
    if not isinstance(proof, bool):
        made.save(proof, force=True)
    return made


def _recorder(
    problem: Problem, searched: Problem, proof: Any, memory_limit: float
) -> ProofRecorder | None:
    """Return a recorder if a proof is requested and possible."""
    if proof is None or proof is False:
        return None
    if not problem.is_plain:
        raise ValueError(
            "`proof` knows columns that are chosen one by one, for one response, without bounds "
            "and costs; leave it out: the status and the lower bound are as true."
        )
    if proof is not True:
        if not isinstance(proof, str | Path):
            raise TypeError(f"`proof` must be True or the name of a file, got {proof!r}.")
        check_free(proof, force=True)
    return ProofRecorder(problem, memory_limit, searched)


def _incumbent(problem: Problem, first: Result) -> Incumbent:
    """Return the heuristic's point, with the kept columns in its support."""
    w = problem.from_given(first.coef)
    return Incumbent(w, problem.objective(w), problem.units.count(w))


def no_bound(problem: Problem, w: Floats, reason: str) -> str:
    """Say why nothing can be proven, and what would help."""
    support, (price, budget) = COLUMNS.support(w), problem.sparsity
    doors = []
    if problem.n_outputs > 1 and not problem.is_quadratic:
        return f"No bound exists, as {reason}; there are too many subsets to fit them all."
    if not problem.is_plain:
        return f"No bound exists, as {reason}; a `ridge` gives one."
    is_single = problem.n_outputs == 1 and problem.scale is None
    if support.size and problem.ridge == 0.0 and is_single:
        slope = np.abs(problem.gradient(w))
        slope[support] = 0.0
        enough = slope.max(initial=0.0) / np.abs(w[support]).min()
        doors.append(f"a ridge of about {enough:.2g} would suffice at this point")
    if problem.is_quadratic and price == 0.0 and 2 * budget < problem.n_features:
        # all other supports are within this many changes
        doors.append(f"certify(level={2 * budget}) is as good as a proof, where it is within reach")
    if problem.is_quadratic:
        doors.append("up to three columns may be enumerated")
    return f"No bound exists, as {reason}{''.join(f'; {door}' for door in doors)}."


def _next_quota(quota: int, n_made: int, work: float) -> int:
    """Choose the nodes of the next slice; interrupted slices only shrink it."""
    pace = SLICE_WORK / max(work, 1.0)
    if n_made < quota:
        return max(1, int(quota * min(pace, 1.0)))
    return min(max(1, int(quota * min(max(pace, 0.1), 2.0))), MOST_NODES)
