"""Method "exact": the block search with the whole problem as its block: the global optimum."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.block_search import NODE_LIMIT, RELAX_FROM, new_tree, open_bound, plant
from blockl0.problem import Problem
from blockl0.refit import solve_refit
from blockl0.result import Result, Status
from blockl0.run import Run
from blockl0.validate import check_integer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST = 1000
"""Columns up to which an exact search is tried; its memory grows with their square."""
SLICE_SECONDS = 0.02
"""Aim for the time between two looks at the clock."""
EASY_COLUMNS, EASY_NODES = 100, 2000
"""Up to this size, that many nodes are searched without the relaxation, which takes seconds to
compile the first time: most small problems end before they need it."""
HEURISTIC_EFFORT = 1
"""Rounds of kicks that method "refit" spends on the first incumbent."""
FLOOR_ROUNDING = 1e-5
"""Share of ½‖y‖² by which the bound at the root of a singular problem may lie below zero."""
PERFECT = 1e-20
"""Share of ½‖y‖² below which a loss is zero but for the rounding of the data."""
ROUNDING = 1e-9
"""Share of the objective up to which the rounding of the search is left out of the gap."""
PARALLEL = 1e-12
"""Columns whose correlation is within this of 1 are the same column."""


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
    """Branch and bound over all supports, from the incumbent of method "refit" to the proof.

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
    _check_applies(problem)
    clock = Run(problem, max(run.seconds_left, 0.0))
    first = solve_refit(problem, clock, init=init, rng=rng, effort=HEURISTIC_EFFORT)
    search = ExactSearch(problem, first.support)
    status, quota = None, 8
    try:
        status = run.record(search.incumbent, search.bound)
        if first.status is Status.INTERRUPTED:
            status = Status.INTERRUPTED
        while status is None:
            started = time.perf_counter()
            search.advance(min(quota, node_limit - search.incumbent.iteration))
            status = run.record(search.incumbent, search.bound)
            if search.finished:
                status = Status.OPTIMAL
            elif status is None and search.incumbent.iteration >= node_limit:
                status = Status.NODE_LIMIT
            pace = SLICE_SECONDS / max(time.perf_counter() - started, 1e-6)
            quota = max(1, int(quota * min(max(pace, 0.1), 2.0)))
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    best = search.incumbent
    return run.result(best.w, status, best.iteration, min(search.bound, best.objective))


class ExactSearch:
    """A search tree over all distinct columns, advanced a slice of nodes at a time.

    Attributes
    ----------
    incumbent : Incumbent
    bound : float
        Lower bound on the optimum, constant included.
    finished : bool
        Whether the incumbent is proven optimal.
    """

    def __init__(self, problem: Problem, support: Ints) -> None:
        self.problem = problem
        H, c, self.constant = normal_equations(problem)
        self.columns = distinct_columns(H, problem.keep)
        self.H, self.c = (
            np.ascontiguousarray(H[np.ix_(self.columns, self.columns)]),
            c[self.columns],
        )
        self.kept = np.isin(self.columns, problem.keep)
        self.incumbent = self._fit(support)
        price, self.budget = problem.sparsity
        n = self.columns.size
        self.budget = min(self.budget, n)
        levels = float(self.budget)
        if price > 0.0:
            # a sum of squares is never negative (but for rounding): more nonzeros cannot pay
            most = self.incumbent.objective + FLOOR_ROUNDING * self.constant
            levels = min(levels, most / price + 1.0)
        self.tree = new_tree(n, int(levels) + 1)
        self.finished = False
        self._nodes_before = 0
        self._plant(relax=n > EASY_COLUMNS)

    def advance(self, n_nodes: int) -> None:
        """Search `n_nodes` more nodes."""
        price = self.problem.sparsity.price
        n = self.columns.size
        if not self._relaxes and n >= RELAX_FROM and self.incumbent.iteration >= EASY_NODES:
            self._nodes_before = self.incumbent.iteration
            self._plant(relax=True)
        self.finished = kernels.search_tree(self.tree, price, self.budget, self._passes, n_nodes)
        self._follow()
        self.bound = max(self.bound, self._open_bound())
        if self.finished:
            # the search cannot tell values apart that are closer than its rounding allowance
            slack, best = float(self.tree.value[-1, kernels.SLACK]), self.incumbent.objective
            is_blurred = slack > ROUNDING * best > ROUNDING * PERFECT * self.constant
            self.bound = max(0.0, best - slack) if is_blurred else best

    def _plant(self, relax: bool) -> None:
        price, current = self.problem.sparsity.price, self.incumbent.w[self.columns]
        self._relaxes = relax
        self._passes = plant(
            self.tree, self.H, self.c, price, self.budget, current, self.kept, relax=relax
        )
        self.bound = self._open_bound()

    def _open_bound(self) -> float:
        """What is left open, less the rounding allowance; a sum of squares is never below zero."""
        slack = float(self.tree.value[-1, kernels.SLACK])
        return max(0.0, self.constant + open_bound(self.tree) - slack)

    def _follow(self) -> None:
        """Bring the node count up to date, and take over a better point if the search has one."""
        nodes = self._nodes_before + int(self.tree.count[-1, kernels.NODES])
        self.incumbent.iteration = nodes
        size = int(self.tree.count[-1, kernels.BEST_SIZE])
        if size < 0:
            return
        self.tree.count[-1, kernels.BEST_SIZE] = -1
        found = self._fit(np.sort(self.columns[self.tree.index[-1, kernels.BEST, :size]]), nodes)
        if found.objective < self.incumbent.objective:
            self.incumbent = found

    def _fit(self, support: Ints, nodes: int = 0) -> Incumbent:
        w = self.problem.fit_on(support)
        return Incumbent(w, self.problem.objective(w), int(np.count_nonzero(w)), nodes)


def normal_equations(problem: Problem) -> tuple[Floats, Floats, float]:
    """H, c and constant with smooth(w) = ½w'Hw + c'w + constant, for the squared loss."""
    H = np.ascontiguousarray(problem.design.full_gram(problem.sample_weight))
    H.flat[:: problem.n_features + 1] += problem.ridge
    zero = np.zeros(problem.n_features)
    return H, problem.gradient(zero), problem.smooth(zero)


def distinct_columns(H: Floats, keep: Ints) -> Ints:
    """All columns but zero ones and copies (up to scale) of others; kept ones come first."""
    diagonal = np.diag(H)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    order = np.concatenate([keep, np.setdiff1d(np.arange(diagonal.size), keep)])
    order = order[diagonal[order] > 0.0]
    R = np.abs(H[np.ix_(order, order)]) / scale[order, None] / scale[order]
    is_copy = np.triu(R >= 1.0 - PARALLEL, 1).any(axis=0)
    distinct = np.sort(order[~is_copy])
    # a problem without any column still needs one to search over
    return distinct if distinct.size else np.zeros(1, dtype=np.int64)


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
