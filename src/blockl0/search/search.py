"""Method "refit": one search, of walks from nothing around the best point.

    settle: pool the columns that look best, descend by additions, removals and swaps with the
            support re-fitted, and price all columns, until none improves the point
    walk:   anneal from nothing, independently, on a pool around the best point; offer what is met
            to a frontier of the best supports of every size; settle what ends lower

until enough walks end at the best point, or so many rounds in a row bring nothing. The point is
then stationary for single changes over all columns, re-fit included, and a certificate says so.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.certify import TOL, Certificate
from blockl0.errors import warn_caller
from blockl0.methods import method
from blockl0.problem.factors import refined
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import tolerance_at
from blockl0.problem.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Incumbent, Run, timed_by
from blockl0.search.frontier import Frontier
from blockl0.search.local_search import LocalSearch
from blockl0.search.pool_sizes import SearchOptions
from blockl0.search.quadratic_search import QuadraticSearch
from blockl0.search.search_base import Search
from blockl0.units import Columns, Groups
from blockl0.validate import check_choice, check_integer, count_jobs

Floats = NDArray[np.float64]

EFFORTS = {"fast": 0, "balanced": 16, "thorough": 60}
"""Rounds in a row without improvement, beyond the first round, that end a run, by name."""
EASY = 2
"""Rounds in a row without improvement that end a run where nothing else is nearly as good."""


@method(
    "refit",
    several_outputs=True,
    reduces=True,
    units=(Columns, Groups),
    bounds=True,
    costs=True,
    responses=True,
)
def solve_refit(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    effort: str | int = "balanced",
    pool: int | None = None,
    n_jobs: int | None = None,
    block: Any = None,
    patience: Any = None,
) -> Result:
    """Settle a start; then rounds of walks, each settled where it is better.

    Parameters
    ----------
    problem : Problem
        A loss other than the squared one is searched through its local quadratic model, and every
        step is verified on the true objective.
    run : Run
    init : ndarray (n,) or (n, C), optional
        Its support is the first one.
    rng : Generator
    effort : "fast", "balanced", "thorough" or int
        After the first round of walks, the rounds in a row without improvement that end the run: 0,
        16, 60, or as given; it also ends where walks from nothing agree. A run with more effort
        goes through the same rounds first, so for the same seed it is never worse.
    pool : int, optional
        Columns in the pool; about a thousand by default, or all when there are not many more.
    n_jobs : int, optional
        Threads for walks that are made at the same time, see `blockl0.search.walks`.
    block, patience : deprecated
        They have no effect: exact blocks have brought nothing that walks do not bring.
    """
    options, rounds = refit_options(effort, pool, n_jobs, block, patience)
    return run_search(make_search(problem, options), init, run, rng, rounds)


def refit_options(
    effort: str | int = "balanced",
    pool: int | None = None,
    n_jobs: int | None = None,
    block: Any = None,
    patience: Any = None,
) -> tuple[SearchOptions, int]:
    """Check the options: how to search, and for how many fruitless rounds."""
    for name, value in (("block", block), ("patience", patience)):
        if value is not None:
            warn_caller(
                f"`{name}` has no effect any more and will be removed: exact blocks have made way "
                "for walks, of which `effort` says how many there are.",
                FutureWarning,
            )
    options = SearchOptions(
        pool=None if pool is None else check_integer("pool", pool, low=1), n_jobs=count_jobs(n_jobs)
    )
    return options, _rounds(effort)


def make_search(problem: Problem, options: SearchOptions, proves: bool = True) -> Search:
    """Make the search for the problem's loss; for the squared one with proofs if they are cheap."""
    if problem.is_quadratic:
        return QuadraticSearch(problem, options, proves=proves)
    return LocalSearch(problem, options)


def run_search(
    search: Search, init: Floats | None, run: Run, rng: np.random.Generator, rounds: int
) -> Result:
    """Run a search and return its result."""
    with timed_by(run):
        incumbent, status = improve(search, init, run, rng, rounds)
    return finish(search, incumbent, status, run)


def improve(
    search: Search,
    init: Floats | None,
    run: Run,
    rng: np.random.Generator,
    rounds: int,
    frontier: Frontier | None = None,
) -> tuple[Incumbent, Status]:
    """Settle a start, then walk in rounds until they agree, or `rounds` in a row bring nothing.

    A frontier that other points have filled may be given.
    """
    best: Incumbent | None = None
    status: Status | None = None
    try:
        given = _without_choice(search)
        best = given or search.start(search.problem.zero() if init is None else init, run)
        best, is_done = _settle_first(search, best, given is not None, run, rounds)
        status = run.record(best)
        # where there is nothing to look for, nobody asks for random numbers
        walks = None if is_done else search.walks(best, run, rng, rounds, frontier)
        while status is None and walks is not None and not walks.are_over:
            # of a perfect fit only changes for their price are left
            is_perfect = best.objective <= search.negligible
            if not is_perfect:
                best = walks.advance(best)
            # whatever the effort, so that a run with more of it goes through the same points
            best = search.settle_checked(best, run)
            best.iteration += 1
            status = run.record(best)
            if is_perfect or best.is_proven or (walks.fruitless >= EASY and search.is_alone(best)):
                break
    except KeyboardInterrupt as stop:
        best, status = best or _given(search.problem, init), run.status_of(stop)
    if status is None:
        status = Status.OPTIMAL if best.is_proven else Status.CONVERGED
    return best, status


def _settle_first(
    search: Search, best: Incumbent, is_done: bool, run: Run, rounds: int
) -> tuple[Incumbent, bool]:
    """Settle the start; return it, and whether there is nothing more to look for."""
    if not best.is_settled:
        best = search.settle(best, run)
    if rounds > 0 and not (is_done or best.is_proven):
        best, is_done = search.exhaust(best, run)
    return best, is_done or best.is_proven or search.is_alone(best)


def _without_choice(search: Search) -> Incumbent | None:
    """Fit where there is nothing to choose: of all columns for nothing, or of the kept ones.

    None where there is a choice; so there is between perfect fits, of which a search takes one of
    few columns.
    """
    problem, (price, budget) = search.problem, search.problem.sparsity
    if budget == problem.keep.size:
        support = problem.keep
    elif price == 0.0 and budget >= problem.n_units:
        support = problem.units.of(np.flatnonzero(problem.design.sq_norms(problem.sample_weight)))
    else:
        return None
    columns = problem.units.columns(support)
    fits = make_fits(problem)
    point = Incumbent.at(problem, fits.coef_on(columns), iteration=1)
    if point.objective <= search.negligible:
        return None
    # of columns that depend on others there is a choice which to leave out
    is_whole = point.n_nonzero == support.size
    point.is_settled = is_whole and fits.doubt(columns, point.w) <= tolerance_at(problem, point.w)
    point.is_proven = point.is_settled and problem.is_quadratic
    return point


def _given(problem: Problem, init: Floats | None) -> Incumbent:
    """Return the point if there was no time for any other: the start, or zero if lower."""
    starts = [problem.zero()] if init is None else [problem.zero(), init]
    with timed_by(None):
        points = [Incumbent(w, problem.objective(w), problem.units.count(w)) for w in starts]
    return min(points, key=lambda point: point.objective)


def finish(search: Search, incumbent: Incumbent, status: Status, run: Run) -> Result:
    """Return the result at an incumbent, its objective recomputed from the data."""
    with timed_by(None):
        w = refined(run.problem, incumbent.w)
        objective = run.problem.objective(w)
    return run.result(
        w,
        status,
        incumbent.iteration,
        lower_bound=np.inf if incumbent.is_proven else None,
        objective=objective,
        n_passes=search.n_passes,
        drift=search.tally.drift,
        certificate=_certificate(search.problem, incumbent, search.tolerance, objective),
    )


def _rounds(effort: str | int) -> int:
    if isinstance(effort, str):
        return EFFORTS[check_choice("effort", effort, EFFORTS)]
    return check_integer("effort", effort, low=0)


def _certificate(
    problem: Problem, incumbent: Incumbent, rounding: float, objective: float
) -> Certificate | None:
    """Certify what the last pricing proved: no change, nor swap at a full budget, improves."""
    # on a nearly perfect fit the search rounds more coarsely than a certificate may
    if not incumbent.is_settled or rounding > TOL * incumbent.objective:
        return None
    price, budget = problem.sparsity
    # without a price and without room every change of two is a swap, and those were priced
    level = 2 if price == 0.0 and problem.occupied(incumbent.w).size == budget else 1
    return Certificate(
        holds=True, level=level, outside="refit", complete=True, confidence=1.0, block=None,
        better_coef=None, better_objective=None, n_blocks=comb(problem.n_units, level),
        objective=objective,
    )  # fmt: skip
