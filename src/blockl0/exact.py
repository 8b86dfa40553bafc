"""Method "exact": the block search with the whole problem as its block: the global optimum."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.block_search import NODE_LIMIT, RELAX_FROM, floor, new_tree, open_bound, plant
from blockl0.dependence import (
    dependent_columns,
    distance_to_span,
    distinct_columns,
    independent_columns,
    independent_parts,
)
from blockl0.problem import FULL_RANK, Problem
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
HIDDEN = (
    "Some columns are combinations of others to about five digits, but not exactly: the search "
    "treats them as such, and proves nothing about subsets that hold all of them. Leave one out, "
    "or set a `ridge`."
)


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
                status = Status.OPTIMAL if search.is_proven else Status.CONVERGED
            elif status is None and search.incumbent.iteration >= node_limit:
                status = Status.NODE_LIMIT
            pace = SLICE_SECONDS / max(time.perf_counter() - started, 1e-6)
            quota = max(1, int(quota * min(max(pace, 0.1), 2.0)))
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    best = search.incumbent
    if search.finished and not search.is_proven:
        run.warn_once(HIDDEN)
    return run.result(best.w, status, best.iteration, min(search.bound, best.objective))


class ExactSearch:
    """A search tree over all distinct columns, advanced a slice of nodes at a time.

    Where columns depend on others, as all levels of a category do, the search falls into parts
    without such dependence, one tree after the other.

    Attributes
    ----------
    incumbent : Incumbent
    bound : float
        Lower bound on the optimum, constant included.
    finished : bool
        Whether there is nothing left to search.
    is_proven : bool
        Whether the incumbent is proven optimal then: not where it is above what all columns reach
        and some depend on others only nearly.
    """

    def __init__(self, problem: Problem, support: Ints) -> None:
        self.problem = problem
        self.H, self.c, self.constant = normal_equations(problem)
        self.incumbent = self._fit(support)
        self.finished = False
        columns = distinct_columns(self.H, problem.keep)
        self._parts = independent_parts(self.H, columns, problem.keep, problem.sparsity.budget)
        # what all columns together reach; for one tree its own root says more
        self._floor = floor(self.H, self.c) if len(self._parts) > 1 else np.inf
        self._ceiling, self._bound = np.inf, 0.0
        if self._misjudges():
            self._ceiling = problem.smooth(problem.fit_on(np.arange(problem.n_features)))
        self._nodes_before = 0
        self._next_part()

    @property
    def bound(self) -> float:
        """What the trees say, but no more than is known of columns that they misjudge."""
        return min(self._bound, self._ceiling)

    @property
    def is_proven(self) -> bool:
        """Whether the trees see every subset as it is, or leave no room for a better one."""
        return self.finished and self.bound >= self._bound

    def _misjudges(self) -> bool:
        """Whether a column that counts as dependent by its products with others is not."""
        real, base = np.flatnonzero(self.H.diagonal() > 0.0), self._parts[0][0]
        if real.size == 0:
            return False
        if dependent_columns(self.H, base).size:
            base = independent_columns(self.H, real)
        return distance_to_span(self.problem, self.H, base, np.setdiff1d(real, base)) > FULL_RANK

    def advance(self, n_nodes: int) -> None:
        """Search `n_nodes` more nodes."""
        price, n = self.problem.sparsity.price, self.columns.size
        here = self.incumbent.iteration - self._first_node
        if not self._relaxes and n >= RELAX_FROM and here >= EASY_NODES:
            self._nodes_before = self.incumbent.iteration
            self._plant(relax=True)
        is_done = kernels.search_tree(self.tree, price, self.budget, self._passes, n_nodes)
        self._follow()
        if is_done and self._parts:
            self._nodes_before = self.incumbent.iteration
            self._next_part()
            return
        self.finished = is_done
        self._bound = max(self._bound, self._open_bound())
        if self.finished:
            # the search cannot tell values apart that are closer than its rounding allowance
            slack, best = float(self.tree.value[-1, kernels.SLACK]), self.incumbent.objective
            is_blurred = slack > ROUNDING * best > ROUNDING * PERFECT * self.constant
            self._bound = max(0.0, best - slack) if is_blurred else best

    def _next_part(self) -> None:
        """A tree for the next part, in which only what beats the incumbent is of interest."""
        self.columns, forced = self._parts.pop(0)
        self.forced = np.isin(self.columns, forced)
        price, budget = self.problem.sparsity
        n = self.columns.size
        self.budget = min(budget, n)
        levels = float(self.budget)
        if price > 0.0:
            # a sum of squares is never negative (but for rounding): more nonzeros cannot pay
            rounding = max(FLOOR_ROUNDING, kernels.EPSILON * n / kernels.SINGULAR)
            most = self.incumbent.objective + rounding * self.constant
            levels = min(levels, most / price + 1.0)
        self.tree = new_tree(n, max(int(levels), int(self.forced.sum())) + 1)
        self._first_node = self.incumbent.iteration
        self._plant(relax=n > EASY_COLUMNS)

    def _plant(self, relax: bool) -> None:
        price, current = self.problem.sparsity.price, self.incumbent.w[self.columns]
        H = np.ascontiguousarray(self.H[np.ix_(self.columns, self.columns)])
        self._relaxes = relax
        self._passes = plant(
            self.tree, H, self.c[self.columns], price, self.budget, current, self.forced,
            relax=relax,
        )  # fmt: skip
        best, is_here = self.tree.value[-1], np.count_nonzero(current) == self.incumbent.n_nonzero
        # where the incumbent lies in this part, with all that is forced, the tree has its value
        if not (is_here and np.isfinite(best[kernels.BEST_VALUE])):
            known = self.incumbent.objective - self.constant
            best[kernels.BEST_VALUE] = min(best[kernels.BEST_VALUE], known)
        self._bound = max(self._bound, self._open_bound())

    def _open_bound(self) -> float:
        """What is left open, less the rounding allowance; a sum of squares is never below zero."""
        slack = float(self.tree.value[-1, kernels.SLACK])
        lowest = open_bound(self.tree) - slack
        return max(0.0, self.constant + (min(lowest, self._floor) if self._parts else lowest))

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
