"""Method "exact": the block search with the whole problem as its block: the global optimum."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.block_search import NODE_LIMIT, new_tree, open_bound, plant
from blockl0.problem import Problem
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.tableau import descend
from blockl0.validate import check_integer

Floats = NDArray[np.float64]

LARGEST = 1000
"""Columns up to which an exact search is tried; its memory grows with their square."""
SLICE_SECONDS = 0.02
"""Aim for the time between two looks at the clock."""


@dataclass
class Incumbent:
    """The best point so far, in the shape `Run.record` wants."""

    w: Floats
    objective: float
    n_nonzero: int
    iteration: int = 0


def solve_exact(
    problem: Problem,
    run: Run,
    *,
    init: Floats | None = None,
    rng: np.random.Generator,
    node_limit: int = 100 * NODE_LIMIT,
) -> Result:
    """Branch and bound over all supports, from a 1-swap stationary incumbent to the proof.

    Parameters
    ----------
    problem : Problem
        Squared loss, at most 1000 columns.
    run : Run
        Its time limit is honoured; the result then carries the lower bound reached.
    init : ndarray (n,), optional
        Another start for the incumbent.
    rng : Generator
        Unused: the search is deterministic.
    node_limit : int
        Nodes after which the search stops without a proof.
    """
    node_limit = check_integer("node_limit", node_limit, low=1)
    _check_applies(problem)
    H, c, constant = normal_equations(problem)
    n, (price, budget) = c.size, problem.sparsity
    kept = np.zeros(n, dtype=np.bool_)
    kept[problem.keep] = True
    support = _first_support(H, c, problem, init, kept)
    incumbent = _incumbent(problem, support)
    levels = min(n, budget)
    if price > 0.0:  # the squared loss is never negative, so more nonzeros than this cannot pay
        levels = int(min(levels, incumbent.objective / price + 1.0))
    tree = new_tree(n, levels + 1)
    passes = plant(tree, H, c, price, budget, incumbent.w, kept)
    bound = _lower_bound(tree, constant)
    status = run.record(incumbent, bound)
    quota = 8
    try:
        while status is None:
            started = time.perf_counter()
            quota = min(quota, node_limit - incumbent.iteration)
            finished = kernels.search_tree(tree, price, budget, passes, quota)
            incumbent = _follow(tree, problem, incumbent)
            bound = incumbent.objective if finished else _lower_bound(tree, constant)
            status = run.record(incumbent, bound)
            if finished:
                status = Status.OPTIMAL
            elif status is None and incumbent.iteration >= node_limit:
                status = Status.NODE_LIMIT
            pace = SLICE_SECONDS / max(time.perf_counter() - started, 1e-6)
            quota = max(1, int(quota * min(max(pace, 0.25), 4.0)))
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    bound = min(bound, incumbent.objective)
    return run.result(incumbent.w, status or Status.OPTIMAL, incumbent.iteration, bound)


def normal_equations(problem: Problem) -> tuple[Floats, Floats, float]:
    """H, c and constant with smooth(w) = ½w'Hw + c'w + constant, for the squared loss."""
    weights = problem.sample_weight
    H = np.ascontiguousarray(problem.design.full_gram(weights))
    H.flat[:: problem.n_features + 1] += problem.ridge
    zero = np.zeros(problem.n_features)
    return H, problem.gradient(zero), problem.smooth(zero)


def _check_applies(problem: Problem) -> None:
    if not problem.is_quadratic:
        raise ValueError(
            f"method='exact' solves loss='squared' only, got loss={problem.loss.name!r}; "
            "use method='dec'."
        )
    if problem.n_features > LARGEST:
        raise ValueError(
            f"method='exact' takes at most {LARGEST} columns, got {problem.n_features}; "
            "select columns first, or use method='dec'."
        )


def _first_support(
    H: Floats, c: Floats, problem: Problem, init: Floats | None, kept: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The better of two descents: from the kept columns alone, and from `init` or a full fit."""
    price, budget = problem.sparsity
    other = np.flatnonzero(init) if init is not None else _backward_start(H, c, budget)
    starts = [problem.keep, np.union1d(problem.keep, other)]
    candidates = [
        descend(H, c, price, budget, start, kept) for start in starts if start.size <= budget
    ]
    best = min(candidates, key=lambda tableau: tableau.value + price * tableau.support.size)
    return best.support


def _backward_start(H: Floats, c: Floats, budget: int) -> NDArray[np.int64]:
    """The `budget` columns that matter most in a lightly damped fit on all of them."""
    diagonal = np.diag(H)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    R = H / scale[:, None] / scale
    R.flat[:: c.size + 1] += 1e-3
    importance = np.abs(np.linalg.solve(R, c / scale))
    importance[diagonal <= 0.0] = 0.0
    top = np.argsort(-importance, kind="stable")[:budget]
    return np.sort(top[importance[top] > 0.0]).astype(np.int64)


def _incumbent(problem: Problem, support: NDArray[np.int64], nodes: int = 0) -> Incumbent:
    w = problem.fit_on(support)
    return Incumbent(w, problem.objective(w), int(np.count_nonzero(w)), nodes)


def _lower_bound(tree: kernels.Tree, constant: float) -> float:
    """What is left open, less the rounding allowance; a sum of squares is never below zero."""
    return max(0.0, constant + open_bound(tree) - float(tree.value[-1, kernels.SLACK]))


def _follow(tree: kernels.Tree, problem: Problem, incumbent: Incumbent) -> Incumbent:
    """The incumbent with the node count up to date, or the new point if the search has one."""
    incumbent.iteration = int(tree.count[-1, kernels.NODES])
    size = int(tree.count[-1, kernels.BEST_SIZE])
    if size < 0:
        return incumbent
    tree.count[-1, kernels.BEST_SIZE] = -1
    support = np.sort(tree.index[-1, kernels.BEST, :size])
    found = _incumbent(problem, support, incumbent.iteration)
    return found if found.objective < incumbent.objective else incumbent
