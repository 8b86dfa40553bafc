"""Method "refit": a pool of columns, blocks with re-fitted outside, and pricing over all of X.

    pool:   the support and the columns that look best from it; its Gram matrix, its tableau
    search: additions, removals, swaps and exact blocks inside the pool, support always re-fitted
    price:  one pass over all columns: would any addition or swap improve? then it joins the pool

until no column prices out: the point is then 1-swap stationary over all columns, re-fit included.
Rounds of kicks (drop part of the support, refill differently, search again) diversify.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate import Certificate
from blockl0.local_search import LocalSearch
from blockl0.problem import Problem
from blockl0.quadratic_search import RELATIVE_TOLERANCE, Incumbent, QuadraticSearch, SearchOptions
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.stationarity import TOL
from blockl0.validate import check_choice, check_integer

Floats = NDArray[np.float64]

EFFORTS = {"fast": 0, "balanced": 4, "thorough": 40}
"""Rounds of kicks by name."""


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
) -> Result:
    """Pool, search, price; then rounds of kicks, each followed by pricing, keeping the best.

    Parameters
    ----------
    problem : Problem
        A loss other than the squared one is searched through its local quadratic model, and every
        step is verified on the true objective.
    run : Run
    init : ndarray (n,), optional
        Its support is the first one.
    rng : Generator
    effort : "fast", "balanced", "thorough" or int
        Rounds of kicks: 0, 4, 40, or as given. A run with more effort goes through the same rounds
        first, so for the same seed it is never worse.
    block : (int, int, int)
        Columns of an exact block: from outside the support, from the support, at random.
    pool : int, optional
        Columns in the pool; a few times the support by default.
    patience : int
        Blocks without improvement that end a search.
    """
    rounds = _rounds(effort)
    options = SearchOptions(
        *_sizes(block),
        pool=None if pool is None else check_integer("pool", pool, low=1),
        patience=check_integer("patience", patience, low=0),
    )
    search = (QuadraticSearch if problem.is_quadratic else LocalSearch)(problem, options)
    incumbent = search.start(np.zeros(problem.n_features) if init is None else init)
    status: Status | None = None
    try:
        incumbent = search.settle(incumbent, run, rng)
        status = run.record(incumbent)
        for _ in range(rounds):
            if status is not None:
                break
            incumbent = search.kick_round(incumbent, run, rng)
            incumbent.iteration += 1
            status = run.record(incumbent)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return run.result(
        incumbent.w,
        status or Status.CONVERGED,
        incumbent.iteration,
        certificate=_certificate(problem, incumbent),
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
        return EFFORTS[check_choice("effort", effort, tuple(EFFORTS))]
    return check_integer("effort", effort, low=0)


def _certificate(problem: Problem, incumbent: Incumbent) -> Certificate | None:
    """What the last pricing proved: no single change, and under a full budget no swap, improves."""
    # on a nearly perfect fit the search rounds more coarsely than a certificate may
    rounding = RELATIVE_TOLERANCE * problem.smooth(np.zeros(problem.n_features))
    if not incumbent.is_settled or rounding > TOL * incumbent.objective:
        return None
    price, budget = problem.sparsity
    # without a price and without room every change of two is a swap, and those were priced
    level = 2 if price == 0.0 and incumbent.n_nonzero == budget else 1
    return Certificate(
        holds=True, level=level, outside="refit", complete=True, confidence=1.0, block=None,
        better_coef=None, better_objective=None, n_blocks=comb(problem.n_features, level),
        objective=incumbent.objective,
    )  # fmt: skip
