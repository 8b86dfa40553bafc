"""The search tree over all supports, with every doubtful support checked on the data.

The tree works on products of columns, which carry rounding errors. It notes what it cannot decide:
a support that may be better than the incumbent, which is then fitted from X; or a column in or near
the span of others, which opens a part of its own, where those columns are projected away
orthogonally. It visits thousands of nodes per second, so that small nodes of the tree with convex
bounds are passed on to it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.block_search import RELAX_FROM, RELAX_PASSES, grown_tree, new_tree, open_bound
from blockl0.errors import OutOfTime
from blockl0.exact.bounds import Node
from blockl0.exact.dependence import CLEAR_PIVOT, distinct_columns, independent_parts
from blockl0.exact.watch import NEVER, Watch
from blockl0.problem.fits import least_squares_on
from blockl0.problem.orthogonal import (
    DEPENDENT,
    EPSILON,
    UnitLengthColumns,
    smallest_distance,
    tolerance_at,
)
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EASY_COLUMNS, EASY_NODES = 100, 2000
"""Up to this size, that many nodes are searched without the relaxation, which takes seconds to
compile the first time: most small problems end before they need it.
"""
BLUR = 16.0 * EPSILON
"""Rounding of a product of unit columns, per operation."""
FIRST_LEVELS = 16
"""Nested inclusions for which a tree has memory initially; it grows if necessary."""
NODE, RELAXED_NODE, FIT = 1.0, 4.0, 1e5
"""Work of a node, in squares of the columns, without relaxation and with it; and of a fit beside
its multiplications.
"""
MORE_NOTES = 64
"""Notes that a tree holds beyond those of one node before they are processed."""
REDUCED = 1e-8
"""Relative difference by which a fit on reduced columns must be worse to be trusted."""
MOST_REMEMBERED = 100_000
"""Supports to remember; beyond that, all are forgotten."""
FEW_COLUMNS, FEW_NODES, FEW_FITS = 40, 1000, 50
"""Columns of a node for a tableau search to be tried, its nodes, and with bounds its fits."""
AGAIN = 0.8
"""Share of the columns that descendants must reach before it is tried again."""


class SupportMemory:
    """Bounded memory of supports."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def __contains__(self, support: Ints) -> bool:
        return support.tobytes() in self._keys

    def add(self, support: Ints) -> None:
        """Remember an ascending support, once its fit has come to an end."""
        if len(self._keys) >= MOST_REMEMBERED:
            self._keys.clear()
        self._keys.add(support.tobytes())


class Subproblem(NamedTuple):
    """The supports that hold all of `forced` and some of `columns`, none of them below `bound`."""

    forced: Ints
    columns: Ints
    bound: float


class Quadratic(NamedTuple):
    """A part in unit columns, ½z'Hz + c'z + offset, and the rounding of its products."""

    H: Floats
    c: Floats
    offset: float
    rounding: float


class ExactSearch:
    """A search over all supports without dependent columns, advanced a slice of nodes at a time.

    If columns are dependent, as all levels of a category are, the search splits into parts without
    dependence, one tree after the other.

    Parameters
    ----------
    problem : Problem
        With a squared loss.
    start : ndarray of int64, or Incumbent
        The first incumbent, or its support.
    watch : Watch
        Checked between steps of `advance`, which report their work.
    tolerance : float, optional
        Tolerance of the first incumbent, if that is not a point of this problem.
    gram : ndarray (n, n), optional
        X' diag(weights) X + ridge·I, if known.

    Attributes
    ----------
    incumbent : Incumbent
    bound : float
        Lower bound on the optimum.
    finished : bool
        Whether there is nothing left to search: the incumbent is optimal.
    tolerance : float
        Improvements up to this do not count.
    n_fitted : int
        Supports that had to be fitted.
    """

    def __init__(
        self,
        problem: Problem,
        start: Ints | Incumbent,
        watch: Watch = NEVER,
        tolerance: float | None = None,
        gram: Floats | None = None,
    ) -> None:
        self.problem, self.watch = problem, watch
        self.finished = False
        self._bound = 0.0
        self._nodes_before, self._first_node, self._n_parts = 0, 0, 0
        self.n_fitted = 0
        self._data: UnitLengthColumns | None = None
        self._memory = SupportMemory()
        self._waiting: list[tuple[float, int, Subproblem]] = []  # a heap ordered by bounds
        self._noted: list[Subproblem] = []
        self._part: Subproblem | None = None
        self.constant = problem.smooth_at_zero
        self._unit = 2.0 * self.constant if self.constant > 0.0 else 1.0
        self._price = problem.sparsity.price / self._unit
        self.H, self.c = self._products(gram)
        self.incumbent = best = self._first(start)
        self.tolerance = (
            tolerance_at(problem, best.w, best.objective) if tolerance is None else tolerance
        )
        columns, budget = distinct_columns(problem, self.H), problem.sparsity.budget
        parts = independent_parts(
            self.H, columns, problem.keep, budget, self._are_independent, watch
        )
        self._wait_for(
            [Subproblem(forced, free, self._trivial_bound(forced)) for forced, free in parts]
        )
        self._next_part()

    @property
    def bound(self) -> float:
        """Lower bound on the objective of all admissible supports."""
        if self.finished:
            return self.incumbent.objective
        now = [part.bound for part in self._noted]
        now += [self._waiting[0][0]] if self._waiting else []
        now += [self._open_bound()] if self._part is not None else []
        self._bound = max(self._bound, min(now))
        return min(self._bound, self.incumbent.objective)

    def advance(self, n_nodes: int) -> None:
        """Search `n_nodes` more nodes, or up to the next doubt."""
        if self._part is None:
            self._next_part()
        if self._part is None:
            return
        here = self.incumbent.iteration - self._first_node
        if self._passes is None and self._may_relax and here >= EASY_NODES:
            self._may_relax = False
            self._nodes_before = self.incumbent.iteration
            # the search restarts, and with it its notes
            self._noted.clear()
            self._plant(relax=True)
        k, before = self.tree.slots.shape[-1], int(self.tree.count[-1, kernels.NODES])
        is_done = kernels.search_tree(self.tree, self._price, self._room, self._passes, n_nodes)
        n_made = int(self.tree.count[-1, kernels.NODES]) - before
        self.watch.spend(n_made * (RELAXED_NODE if self._passes else NODE) * float(k) ** 2)
        self._follow()
        if is_done:
            self._nodes_before = self.incumbent.iteration
            self._wait_for(self._noted)
            self._noted.clear()
            self._part = None
            self._next_part()
        elif self.tree.count[-1, kernels.LEVEL] + 2 >= self.tree.count.shape[0]:
            self.tree = grown_tree(self.tree)

    # parts -----------------------------------------------------------------------------------

    def _wait_for(self, parts: list[Subproblem]) -> None:
        for part in parts:
            self._n_parts += 1
            heappush(self._waiting, (part.bound, self._n_parts, part))

    def _next_part(self) -> None:
        """Open the most promising part; finished if there is none."""
        while self._waiting:
            bound, _, part = heappop(self._waiting)
            try:
                if bound < self.incumbent.objective - self.tolerance and self._open(part):
                    return
            except KeyboardInterrupt:
                # it still counts in the bound
                self._part = None
                self._wait_for([part])
                raise
            if self._waiting and self.watch():
                return
        self.finished = True

    def _open(self, part: Subproblem) -> bool:
        """Plant the tree of a part; return False if there is nothing to search."""
        self._room = min(self.problem.sparsity.budget - part.forced.size, part.columns.size)
        if part.forced.size and not self._are_independent(part.forced):
            return False
        if self._room <= 0:
            self._try(part.forced)
            return False
        projected, self._quadratic = self._projected(part)
        k = projected.columns.size
        if k == 0:
            self._try(part.forced)
            return False
        self._part = projected
        self._room = min(self._room, k)
        self.tree = new_tree(k, min(self._room, FIRST_LEVELS) + 1, k + MORE_NOTES)
        self._first_node, self._may_relax = self.incumbent.iteration, k >= RELAX_FROM
        self._plant(relax=k > EASY_COLUMNS)
        return True

    def _projected(self, part: Subproblem) -> tuple[Subproblem, Quadratic]:
        """Project the forced columns away, leaving out columns that vanish.

        The rounding of what is left of a column is that of the whole column.
        """
        forced, columns = part.forced, part.columns
        operations = columns.size + 16.0 + np.sqrt(self.problem.n_samples)
        if forced.size == 0:
            H = self.H
            if columns.size < H.shape[0]:
                H = np.ascontiguousarray(H[columns][:, columns])
            return part, Quadratic(H, self.c[columns], 0.5, 0.5 * BLUR * operations)
        Z, b = self.data.without(forced, columns)
        lengths = np.sqrt(np.einsum("ij,ij->j", Z, Z))
        live = lengths > DEPENDENT
        columns, Z = columns[live], Z[:, live] / lengths[live]
        H = Z.T @ Z
        np.fill_diagonal(H, 1.0)
        # a projection on columns at distance d is accurate to the machine precision over d
        apart = smallest_distance(self.data.Z[:, forced])
        rounding = 0.5 * BLUR * operations / lengths[live].min(initial=1.0) / apart
        offset = 0.5 * float(b @ b) + self._price * forced.size
        return part._replace(columns=columns), Quadratic(H, -(Z.T @ b), offset, rounding)

    def _plant(self, relax: bool) -> None:
        """Fill the tree of the current part, with or without a relaxation."""
        H, c, _, rounding = self._quadratic
        k, tree = c.size, self.tree
        self.watch.spend(float(k) ** 3)
        forced, zero = np.zeros(k, dtype=np.bool_), np.zeros(k)
        if kernels.plant_tree(tree, H, c, self._price, forced, zero, -np.inf):
            relaxes = relax and kernels.start_relaxation(tree, self._price, self._room)
        else:
            kernels.plant_tree(tree, H, c, self._price, forced, zero, -self._explained())
            relaxes = False
        self._passes = RELAX_PASSES if relaxes else None
        tree.slots[-1, kernels.TINY, :k] = CLEAR_PIVOT
        whole = tree.value[-1]
        whole[kernels.BLUR] = rounding
        # without a backward side the given bound stands
        whole[kernels.BOUND_ERROR] = rounding / (whole[kernels.NEAREST] or 1.0)
        self._set_cutoff()

    def _explained(self) -> float:
        """Bound what all columns of the part together explain: ½‖Pb‖² on a space around them."""
        assert self._part is not None
        Z = self.data.Z[:, np.concatenate([self._part.forced, self._part.columns])]
        Q = np.linalg.qr(Z)[0]
        explained = 0.5 * float(np.sum((Q.T @ self.data.b) ** 2))
        # less what the forced ones explain; the space is accurate to the precision over the
        # distance of the columns of any admissible support
        rest = self.data.without(self._part.forced, self._part.columns)[1]
        known = 0.5 * float(self.data.b @ self.data.b - rest @ rest)
        return explained - known + BLUR * Q.shape[1] / DEPENDENT

    def _open_bound(self) -> float:
        """Bound what the current tree leaves open, less rounding; at least its part's bound."""
        lowest = open_bound(self.tree) - self.tree.value[-1, kernels.BOUND_ERROR]
        assert self._part is not None
        return max(self._part.bound, self._unit * (self._quadratic.offset + lowest))

    def _trivial_bound(self, forced: Ints) -> float:
        """Return the price of the forced columns: a sum of squares is never negative."""
        return self.problem.sparsity.cost(forced.size)

    # doubts ----------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Count the nodes, and process the notes of the tree."""
        count = self.tree.count[-1]
        self.incumbent.iteration = self._nodes_before + int(count[kernels.NODES])
        assert self._part is not None
        columns, budget = self._part.columns, self.problem.sparsity.budget
        is_late, stop = self.watch(), None
        for row in self.tree.notes[: count[kernels.N_NOTES]]:
            n_in, n_rest = int(row[kernels.NOTE_IN]), int(row[kernels.NOTE_OPEN])
            noted = columns[row[kernels.NOTE_COORDINATES :][: n_in + n_rest]]
            support = np.union1d(self._part.forced, noted[:n_in])
            bound = max(self._part.bound, self._trivial_bound(support))
            is_whole = n_rest == 0 or support.size >= budget
            rest = support[:0] if is_whole else np.sort(noted[n_in:])
            try:
                is_waiting = is_late or self._waits(support, is_whole)
            except OutOfTime as late:
                is_waiting = is_late = True
                stop = late
            if is_waiting:
                self._noted.append(Subproblem(support, rest, bound))
        count[kernels.N_NOTES] = 0
        self._set_cutoff()
        if stop is not None:
            raise stop

    def _waits(self, support: Ints, is_whole: bool) -> bool:
        """Fit a support if it is whole; else check if it may have independent supersets."""
        if is_whole:
            self._try(support)
            return False
        return support.size <= self.data.Z.shape[0] and self._are_independent(support)

    def _try(self, support: Ints) -> None:
        """Fit a support from the data, and make it the incumbent if it is better."""
        if support in self._memory:
            return
        self.n_fitted += 1
        self.watch.spend(FIT + self.problem.n_samples * float(support.size) ** 2)
        if self._is_tall and self._is_worse(support):
            self._memory.add(support)
            return
        found = self._fit(support, self.incumbent.iteration)
        self._memory.add(support)
        if found.objective < self.incumbent.objective:
            self.incumbent = found
            self.tolerance = tolerance_at(self.problem, found.w, found.objective)

    @property
    def _is_tall(self) -> bool:
        """Whether a fit on the reduced columns is much faster than one on X."""
        return self.problem.n_samples > 4 * (self.problem.n_features + 1)

    def _is_worse(self, support: Ints) -> bool:
        """Check if a support is clearly worse than the incumbent, on the reduced columns."""
        objective = self._unit * self.data.loss(support) + self._trivial_bound(support)
        return objective > self.incumbent.objective * (1.0 + REDUCED) + REDUCED**2 * self._unit

    def _set_cutoff(self) -> None:
        """Pass the incumbent's value and the tolerance to the tree."""
        whole = self.tree.value[-1]
        whole[kernels.BEST_VALUE] = self.incumbent.objective / self._unit - self._quadratic.offset
        whole[kernels.SLACK] = self.tolerance / self._unit

    def _first(self, start: Ints | Incumbent) -> Incumbent:
        if isinstance(start, Incumbent):
            return start
        first = self._fit(np.union1d(start, self.problem.keep), 0)
        return first if np.isfinite(first.objective) else self._fit(self.problem.keep, 0)

    def _fit(self, support: Ints, nodes: int) -> Incumbent:
        return Incumbent.at(self.problem, least_squares_on(self.problem, support), nodes)

    # data ------------------------------------------------------------------------------------

    @property
    def data(self) -> UnitLengthColumns:
        """The columns themselves, made on first use."""
        if self._data is None:
            self._data = UnitLengthColumns(self.problem)
        return self._data

    def _are_independent(self, support: Ints) -> bool:
        return self.data.are_independent(support)

    def _products(self, gram: Floats | None) -> tuple[Floats, Floats]:
        """Compute H and c with smooth(w) = unit·(½z'Hz + c'z + ½) for coefficients z of unit
        columns.
        """
        problem, diagonal = self.problem, slice(None, None, self.problem.n_features + 1)
        if gram is None:
            H = np.array(problem.design.full_gram(problem.sample_weight), order="C")
            H.flat[diagonal] += problem.ridge
        else:
            H = gram.copy()
        length = np.sqrt(H.diagonal())
        is_real = length > 0.0
        scale = np.where(is_real, length, 1.0)
        H /= scale[:, None]
        H /= scale
        H.flat[diagonal] = is_real
        return H, problem.gradient_at_zero / (scale * math.sqrt(self._unit))


# nodes of other trees ---------------------------------------------------------------------------


def has_tableaus(problem: Problem) -> bool:
    """Check if tableaus may search supports: of squares of one response, columns of one price.

    Bounds only raise what a tableau finds for a support, and are kept by the fits that decide.
    """
    is_single = problem.is_quadratic and problem.n_outputs == 1
    return is_single and problem.units is COLUMNS and problem.costs is None


def are_apart(problem: Problem, columns: Ints | None = None) -> bool:
    """Check that no column depends on others: within bounds a fit may need all of them."""
    columns = np.arange(problem.n_features) if columns is None else columns
    return smallest_distance(problem.unit_columns(columns)[0]) > DEPENDENT


def is_for_tableaus(problem: Problem, node: Node) -> bool:
    """Check if a node is worth a try."""
    size = node.included.size + node.free.size
    if size > FEW_COLUMNS or (node.tried > 0 and size > AGAIN * node.tried):
        return False
    return problem.bounds is None or are_apart(problem, np.sort(node.units))


def search_tableaus(
    problem: Problem, node: Node, best: Incumbent, watch: Watch = NEVER
) -> tuple[bool, Incumbent]:
    """Search the supports of a node; return whether it finished, and the best point."""
    columns, bounds = np.sort(node.units), problem.bounds
    node.tried = columns.size
    part = replace(
        problem,
        design=problem.design.take(columns),
        keep=np.sort(np.searchsorted(columns, node.included)),
        sparsity=problem.sparsity._replace(budget=min(problem.sparsity.budget, columns.size)),
        bounds=None if bounds is None else (bounds[0][columns], bounds[1][columns]),
        scale=None,
        limits=None,
    )
    start = Incumbent(np.zeros(columns.size), best.objective, 0)
    # given the rounding of the incumbent: that of zero is as large as the target
    own = Watch()
    search = ExactSearch(part, start, own, tolerance=tolerance_at(problem, best.w))
    while not search.finished and search.incumbent.iteration < FEW_NODES:
        if bounds is not None and search.n_fitted >= FEW_FITS:
            break
        search.advance(FEW_NODES)
    watch.spend(own.work)
    if search.incumbent.objective < best.objective:
        w = problem.zero()
        w[columns] = search.incumbent.w
        best = Incumbent.at(problem, w)
    return search.finished, best
