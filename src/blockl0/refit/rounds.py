"""Method "refit": a pool of columns, blocks with re-fitted outside, and pricing over all of X.

    pool:   the support and the columns that look best from it; their swept tableau
    search: additions, removals and swaps inside the pool, support always re-fitted
    price:  all columns: would any addition or swap improve? then it joins the pool

until no column prices out: the point is then 1-swap stationary over all columns, re-fit included.
Rounds of exact blocks and of kicks (drop part of the support, refill differently, descend again,
search the difference as a block) diversify, first among few columns, then among all; and under a
budget walks from nothing, which end the search where they agree.
"""

from __future__ import annotations

from functools import partial
from math import comb

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate import TOL, Certificate
from blockl0.incumbent import Incumbent
from blockl0.methods import method
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import tolerance_at
from blockl0.problem.problem import Problem
from blockl0.problem.reduction import refined
from blockl0.refit.beside import Beside
from blockl0.refit.elsewhere import is_time_to_look, make_round
from blockl0.refit.frontier import Frontier
from blockl0.refit.local_search import LocalSearch
from blockl0.refit.pool_sizes import SearchOptions
from blockl0.refit.pooled_search import PooledSearch
from blockl0.refit.quadratic_search import QuadraticSearch
from blockl0.refit.search import Search
from blockl0.refit.together import Second
from blockl0.refit.walks import Walks
from blockl0.result import Result, Status
from blockl0.run import Run, timed_by
from blockl0.units import Columns, Groups
from blockl0.validate import check_choice, check_integer, count_jobs

Floats = NDArray[np.float64]

EFFORTS = {"fast": 0, "balanced": 16, "thorough": 60}
"""Rounds in a row without improvement, beyond the first round, that end a run, by name."""
EASY = 2
"""Rounds in a row without improvement that end a run where nothing else is nearly as good."""

WIDE = 512
"""Columns beyond which a loss other than the squared one is searched in pools of them."""


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
    block: tuple[int, int, int] = (8, 8, 2),
    pool: int | None = None,
    patience: int = 2,
    n_jobs: int | None = None,
) -> Result:
    """Pool, search, price; then rounds of blocks and kicks, each settled, keeping the best.

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
        After the first round of kicks, the rounds in a row without improvement that end the run: 0,
        16, 60, or as given; under a budget it also ends where walks from nothing agree, at a price
        other starts are tried after many of them. A run with more effort goes through the same
        rounds first, so for the same seed it is never worse.
    block : (int, int, int)
        Columns of an exact block: from outside the support, from the support, at random.
    pool : int, optional
        Columns in the pool; about a thousand by default, or all when there are not many more.
    patience : int
        Exact blocks in a row without improvement that end their part of a round.
    n_jobs : int, optional
        Threads for walks that are made at the same time, see `blockl0.refit.walks` and
        `blockl0.refit.annealing`, and for two searches of a long run, `blockl0.refit.together`.
    """
    options, rounds = refit_options(effort, block, pool, patience, n_jobs)
    return run_search(make_search(problem, options), init, run, rng, rounds)


def refit_options(
    effort: str | int = "balanced",
    block: tuple[int, int, int] = (8, 8, 2),
    pool: int | None = None,
    patience: int = 2,
    n_jobs: int | None = None,
) -> tuple[SearchOptions, int]:
    """The options checked: how to search, and for how many fruitless rounds."""
    options = SearchOptions(
        *_sizes(block),
        pool=None if pool is None else check_integer("pool", pool, low=1),
        patience=check_integer("patience", patience, low=0),
        n_jobs=count_jobs(n_jobs),
    )
    return options, _rounds(effort)


def make_search(problem: Problem, options: SearchOptions, proves: bool = True) -> Search:
    """The search for the problem's loss; for the squared one with proofs where they are cheap."""
    if problem.is_quadratic and problem.is_plain:
        return QuadraticSearch(problem, options, proves=proves)
    is_wide = options.pool is None and problem.n_features > WIDE and not problem.is_quadratic
    return (PooledSearch if is_wide else LocalSearch)(problem, options)


def run_search(
    search: Search, init: Floats | None, run: Run, rng: np.random.Generator, rounds: int
) -> Result:
    """The result of a search."""
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
    """Settle a start, then rounds of blocks and kicks until `rounds` in a row bring nothing.

    A frontier that other points have filled saves the annealing of a large support.
    """
    incumbent: Incumbent | None = None
    status: Status | None = None
    beside, second = Beside(search, run, rng, rounds, frontier), Second(search, run, rng)
    walks = Walks(search, run, rng, rounds)
    try:
        given = _without_choice(search)
        incumbent = given or search.start(search.problem.zero() if init is None else init, run)
        if not incumbent.is_settled:
            incumbent = search.settle(incumbent, run, rng)
        is_done = given is not None
        if rounds > 0 and not (is_done or incumbent.is_proven):
            incumbent, is_done = search.exhaust(incumbent, run)
        is_done = is_done or incumbent.is_proven or search.is_alone(incumbent)
        if not is_done:
            beside.begin(incumbent)
            if frontier is None:
                walks.begin(incumbent)
        status = run.record(beside.better(incumbent))
        rounds = -1 if is_done else beside.rounds_left(rounds)
        # the first round is always made, and is narrow
        fruitless, n_looks = -1, 0
        while status is None and fruitless < rounds and not incumbent.is_proven:
            before = incumbent.objective
            is_perfect = before <= search.negligible
            # of a perfect fit only changes for their price are left
            if is_perfect:
                pass
            elif walks.are_made and fruitless >= 0:
                kick = partial(search.kick_round, incumbent, run, rng)
                incumbent = walks.beside(kick, incumbent, rng)
            else:
                make = partial(make_round, search, incumbent, run, rng, fruitless, n_looks)
                n_looks += is_time_to_look(fruitless)
                incumbent = second.beside(make, incumbent, fruitless)
            # whatever the effort, so that a run with more of it goes through the same points
            incumbent = search.settle_checked(incumbent, run, rng)
            if is_perfect:
                break
            fruitless = 0 if incumbent.objective < before else fruitless + 1
            is_easy = fruitless >= EASY and search.is_alone(incumbent)
            incumbent.iteration += 1
            beside.advance(incumbent)
            status = run.record(second.better(beside.better(incumbent)))
            if is_easy or walks.agree:
                break
        while status is None and beside.is_alone and not beside.is_over:
            incumbent.iteration += 1
            beside.advance(incumbent)
            status = run.record(beside.better(incumbent))
    except KeyboardInterrupt as stop:
        incumbent, status = incumbent or _nothing(search.problem), run.status_of(stop)
    incumbent = second.better(beside.better(incumbent))
    if status is None:
        status = Status.OPTIMAL if incumbent.is_proven else Status.CONVERGED
    return incumbent, status


def _without_choice(search: Search) -> Incumbent | None:
    """The fit where there is nothing to choose: of all columns for nothing, or of the kept ones.

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


def _nothing(problem: Problem) -> Incumbent:
    """The point to return when there was no time for any other."""
    w = problem.zero()
    return Incumbent(w, problem.objective(w), 0)


def finish(search: Search, incumbent: Incumbent, status: Status, run: Run) -> Result:
    """The result at an incumbent, its objective recomputed from the data."""
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


def _sizes(block: tuple[int, int, int]) -> tuple[int, int, int]:
    if not isinstance(block, tuple | list) or len(block) != 3:
        raise ValueError(
            "`block` must be three sizes (outside the support, from the support, at random), "
            f"got {block!r}; the default is (8, 8, 2)."
        )
    outside, support, random = (check_integer("block", size, low=0) for size in block)
    return outside, support, random


def _rounds(effort: str | int) -> int:
    if isinstance(effort, str):
        return EFFORTS[check_choice("effort", effort, EFFORTS)]
    return check_integer("effort", effort, low=0)


def _certificate(
    problem: Problem, incumbent: Incumbent, rounding: float, objective: float
) -> Certificate | None:
    """What the last pricing proved: no single change, and under a full budget no swap, improves."""
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
