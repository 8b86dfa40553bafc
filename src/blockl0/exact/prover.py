"""Choice of the bounds of a node: products of its columns if they fit, else the data."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from blockl0.exact.bounds import Bounds, Node
from blockl0.exact.data import DataBounds
from blockl0.exact.dependence import independent_parts
from blockl0.exact.products import Frame, ProductBounds
from blockl0.exact.proof import Recorder
from blockl0.exact.tree import ProofTree
from blockl0.exact.unit_bounds import UnitBounds
from blockl0.exact.unit_data import UnitDataBounds
from blockl0.exact.watch import NEVER, Watch
from blockl0.problem.orthogonal import UnitLengthColumns
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHOLE, FEW = 5000, 1200
"""Columns up to which a wide problem starts with all products; and which a node must reach before
its products are formed.
"""
TALL = 1.0
"""Columns per row up to which all products are formed, however many."""
COPIES = 5
"""Matrices of the size of the products kept at a time."""


class NoBoundError(Exception):
    """Raised if no bound exists for a problem; says why."""


def obstacle(problem: Problem) -> str | None:
    """Say why no bound exists, judging by loss, shape and ridge; None if one may."""
    if problem.ridge > 0.0:
        return None
    if not problem.is_quadratic:
        return f"loss={problem.loss.name!r} has a bound only with a `ridge`"
    if problem.n_features > problem.n_samples:
        return "X has more columns than rows, and there is no `ridge`"
    return None


def trivial_bound(problem: Problem, included: Ints) -> float:
    """Bound without search: the price of included units, unless losses may be negative."""
    return problem.cost(included) if problem.loss.is_nonnegative else -np.inf


class UnitProver:
    """Builds the tree of a problem with units, bounds or several responses.

    Raises
    ------
    NoBoundError
        If no bound exists.
    """

    def __init__(
        self,
        problem: Problem,
        incumbent: Incumbent,
        *,
        gap: float = 0.0,
        memory_limit: float = np.inf,
        watch: Watch = NEVER,
    ) -> None:
        bounds = _unit_bounds(problem, incumbent, watch)
        real = problem.units.of(np.flatnonzero(problem.design.sq_norms(problem.sample_weight)))
        free = np.setdiff1d(real, problem.keep)
        n = problem.keep.size + free.size
        lowest = trivial_bound(problem, problem.keep)
        root = Node(problem.keep, free, lowest, np.zeros(free.size), w=np.zeros(n))
        self.tree = ProofTree(
            problem, incumbent, lambda node: bounds, [root], gap=gap,
            memory_limit=0.5 * memory_limit, watch=watch,
        )  # fmt: skip


def _unit_bounds(problem: Problem, incumbent: Incumbent, watch: Watch) -> Bounds:
    """Choose the bounds of a problem in units: from products for squares, else from rows."""
    if problem.is_quadratic:
        found = UnitBounds(problem, watch)
        if found.reason is not None:
            raise NoBoundError(found.reason)
        return found
    _refuse_several_outputs(problem)
    reason = obstacle(problem)
    if reason is not None:
        raise NoBoundError(reason)
    bounds = UnitDataBounds(problem, incumbent.objective, watch)
    check_intercept(problem, bounds.box)
    return bounds


def _refuse_several_outputs(problem: Problem) -> None:
    """Refuse a loss with several predictors per sample, whatever the ridge."""
    if problem.n_outputs > 1:
        raise NoBoundError(f"loss={problem.loss.name!r} has several predictors for a sample")


def check_intercept(problem: Problem, box: float) -> None:
    """Refuse a problem whose intercept is unbounded."""
    if problem.has_intercept and not problem.loss.is_nonnegative:
        raise NoBoundError(
            f"loss={problem.loss.name!r} does not say `is_nonnegative`, without which "
            "nothing is known of the intercept"
        )
    if not np.isfinite(box):
        raise NoBoundError("the best intercept may be anywhere, as with one class only")


class Prover:
    """Builds the tree of a problem, and supplies its nodes with bounds.

    Parameters
    ----------
    problem : Problem
    incumbent : Incumbent
    gap : float
        Relative gap at which the search ends.
    memory_limit : float
        Bytes for products and waiting nodes.
    watch : Watch, optional
        Says whether time is up.
    recorder : Recorder, optional
        Records the search, for a proof that others can check.

    Raises
    ------
    NoBoundError
        If no bound exists.
    OutOfTime
        If the search must end before there is one.
    """

    def __init__(
        self,
        problem: Problem,
        incumbent: Incumbent,
        *,
        gap: float = 0.0,
        memory_limit: float = np.inf,
        watch: Watch = NEVER,
        recorder: Recorder | None = None,
    ) -> None:
        _refuse_several_outputs(problem)
        reason = obstacle(problem)
        if reason is not None:
            raise NoBoundError(reason)
        self.problem, self.memory_limit, self.watch = problem, memory_limit, watch
        self.recorder = Recorder() if recorder is None else recorder
        self._frames: OrderedDict[int, ProductBounds] = OrderedDict()
        self._n_frames = 0
        self._data: DataBounds | None = None
        if problem.ridge > 0.0:
            self._data = DataBounds(problem, incumbent.objective, self.watch)
            check_intercept(problem, self._data.box)
        roots = self._roots(incumbent)
        self.tree = ProofTree(
            problem, incumbent, self.bounds_of, roots,
            gap=gap, memory_limit=0.5 * memory_limit, watch=self.watch, recorder=self.recorder,
        )  # fmt: skip

    def bounds_of(self, node: Node) -> Bounds:
        """Return the bounds for a node, converting its curvature and point to their units."""
        if node.frame in self._frames:
            self._frames.move_to_end(node.frame)
            return self._frames[node.frame]
        is_small = node.included.size + node.free.size <= FEW
        if node.frame < 0 and not (is_small and self.problem.is_quadratic):
            assert self._data is not None
            return self._data
        return self._enter(node)

    def _enter(self, node: Node, watch: Watch = NEVER) -> ProductBounds:
        """Form the products of a node's columns; only at the root may this be interrupted."""
        is_new = node.frame < 0
        columns = np.concatenate([node.included, node.free])
        frame = Frame(self.problem, np.sort(columns), watch)
        bounds = ProductBounds(frame, *self.problem.sparsity, self.watch)
        self._n_frames += 1
        node.frame = self._n_frames
        self._frames[node.frame] = bounds
        while len(self._frames) > 1 and self._frame_bytes() > 0.5 * self.memory_limit:
            # the least recently used one; its nodes form their products again if need be
            self._frames.popitem(last=False)
        if is_new:
            node.w = node.w * frame.lengths[frame.positions(columns)]
            node.d = frame.ridge[frame.positions(columns)]
        elif node.d is not None:
            # recomputed lengths differ by rounding, and the margin may have been used up
            node.d = (1.0 - 4.0 * frame.rounding) * node.d
        return bounds

    def _frame_bytes(self) -> int:
        return sum(bounds.frame.nbytes for bounds in self._frames.values())

    # roots -----------------------------------------------------------------------------------

    def _roots(self, incumbent: Incumbent) -> list[Node]:
        """Build nodes that cover all supports: one, unless columns are dependent."""
        problem = self.problem
        n, keep = problem.n_features, problem.keep
        root = self._node(keep, np.setdiff1d(np.arange(n), keep), incumbent)
        if not problem.is_quadratic:
            return [root]
        is_tall = n <= TALL * problem.n_samples
        fits = COPIES * 8.0 * n * n <= self.memory_limit
        if not fits or not (is_tall or n <= WHOLE):
            if self._data is None:
                why = "is larger than `memory_limit`" if not fits else "has too few rows"
                raise NoBoundError(f"X {why}, and there is no `ridge`")
            return [root]
        bounds = self._enter(root, self.watch)
        if bounds.start(root):
            return [root]
        self.watch.check()
        if self.recorder.is_on:
            raise NoBoundError("columns depend on each other, and there is no `ridge`")
        return self._independent(bounds, incumbent)

    def _independent(self, bounds: ProductBounds, incumbent: Incumbent) -> list[Node]:
        """Build a root for each part of a problem with dependent columns."""
        problem, frame = self.problem, bounds.frame
        columns = UnitLengthColumns(problem)
        live = np.flatnonzero(problem.design.sq_norms(problem.sample_weight) > 0.0)
        parts = independent_parts(
            frame.H,
            live,
            problem.keep,
            problem.sparsity.budget,
            columns.are_independent,
            self.watch,
        )
        self.watch.check()
        roots = []
        for forced, free in parts:
            node = self._node(forced, free, incumbent)
            node.frame = self._n_frames
            node.w = node.w * frame.lengths[np.concatenate([forced, free])]
            if not bounds.start(node):
                raise NoBoundError("too many columns depend on others, and there is no `ridge`")
            roots.append(node)
        return roots

    def _node(self, included: Ints, free: Ints, incumbent: Incumbent) -> Node:
        """Build a node that starts at the incumbent."""
        w = incumbent.w[np.concatenate([included, free])]
        bound = trivial_bound(self.problem, included)
        return Node(included, free, bound, np.zeros(free.size), w=w)
