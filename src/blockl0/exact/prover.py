"""Choice of the bounds of a node: products of its columns if they fit, else the data."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from blockl0.exact.bounds import NOWHERE, Bounds, Node, SparsePoint
from blockl0.exact.data import DataBounds
from blockl0.exact.dependence import independent_parts
from blockl0.exact.products import ProductBounds, frame_of_columns
from blockl0.exact.proof import Recorder
from blockl0.exact.tree import ProofTree
from blockl0.exact.units import NoBoundError, frame_of_groups
from blockl0.exact.watch import NEVER, Watch
from blockl0.problem.orthogonal import UnitLengthColumns
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent
from blockl0.units import COLUMNS

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
NEARLY = "columns nearly depend on each other, and there is no `ridge`"


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


def _refuse(problem: Problem) -> None:
    """Refuse a loss with several predictors per sample, and problems without any bound."""
    if problem.n_outputs > 1 and not problem.is_quadratic:
        raise NoBoundError(f"loss={problem.loss.name!r} has several predictors for a sample")
    reason = obstacle(problem)
    # columns of groups, or within bounds, are judged when their products are known
    if reason is not None and (problem.is_plain or not problem.is_quadratic):
        raise NoBoundError(reason)


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
        _refuse(problem)
        self.problem, self.memory_limit, self.watch = problem, memory_limit, watch
        self.recorder = Recorder() if recorder is None else recorder
        self._frames: OrderedDict[int, ProductBounds] = OrderedDict()
        self._n_frames, self._is_projected, self._may_enter = 0, False, problem.is_quadratic
        self._data: DataBounds | None = None
        if problem.ridge > 0.0 and problem.n_outputs == 1:
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
        if self._data is None or (self._may_enter and (is_small or node.frame >= 0)):
            try:
                return self._enter(node)
            except NoBoundError:
                # groups that nearly depend on each other, beside a weak ridge
                assert self._data is not None
                self._may_enter, node.frame, node.point = False, -1, NOWHERE
        assert self._data is not None
        return self._data

    def _enter(self, node: Node, watch: Watch = NEVER) -> ProductBounds:
        """Form the products of a node's units; only at the root may this be interrupted."""
        is_new, units = node.frame < 0, np.sort(node.units)
        is_single = self.problem.units is COLUMNS and not self._is_projected
        frame = (frame_of_columns if is_single else frame_of_groups)(self.problem, units, watch)
        bounds = ProductBounds(self.problem, frame, self.watch)
        self._n_frames += 1
        node.frame = self._n_frames
        self._frames[node.frame] = bounds
        while len(self._frames) > 1 and self._frame_bytes() > 0.5 * self.memory_limit:
            # the least recently used one; its nodes form their products again if need be
            self._frames.popitem(last=False)
        places = frame.positions(node.units)
        if is_new:
            at, values = node.point
            is_known = np.isin(at, units) if is_single else np.zeros(at.size, dtype=np.bool_)
            lengths = frame.lengths[frame.positions(at[is_known])]
            node.point = SparsePoint(at[is_known], values[is_known] * lengths[:, None])
            node.d = frame.ridge[places]
            if not is_single and self._data is not None and node.d.min(initial=1.0) == 0.0:
                self._start(bounds, node)
        elif not is_single:
            # of other units other directions are shared, and bases differ
            node.point = NOWHERE
            self._start(bounds, node)
        elif node.d is not None:
            # recomputed lengths differ by rounding, and the margin may have been used up
            node.d = (1.0 - 4.0 * frame.rounding) * node.d
        return bounds

    def _start(self, bounds: ProductBounds, node: Node) -> None:
        """Set the first curvature of a node that others share directions with."""
        if not bounds.start(node):
            raise NoBoundError(NEARLY)

    def _frame_bytes(self) -> int:
        return sum(bounds.frame.nbytes for bounds in self._frames.values())

    # roots -----------------------------------------------------------------------------------

    def _roots(self, incumbent: Incumbent) -> list[Node]:
        """Build nodes that cover all supports: one, unless columns are dependent."""
        problem = self.problem
        n, keep = problem.n_features, problem.keep
        root = self._node(keep, np.setdiff1d(np.arange(problem.n_units), keep), incumbent)
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
        if problem.is_plain:
            return self._independent(bounds, incumbent)
        if problem.units is COLUMNS:
            # the fit within bounds may need all of some dependent columns
            self._is_projected, root.frame = True, -1
            if self._enter(root, self.watch).start(root):
                return [root]
        raise NoBoundError(NEARLY)

    def _independent(self, bounds: ProductBounds, incumbent: Incumbent) -> list[Node]:
        """Build a root for each part of a problem with dependent columns."""
        if self.recorder.is_on:
            raise NoBoundError("columns depend on each other, and there is no `ridge`")
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
            node.frame, (at, values) = self._n_frames, node.point
            node.point = SparsePoint(at, values * frame.lengths[at, None])  # of all columns
            if not bounds.start(node):
                raise NoBoundError("too many columns depend on others, and there is no `ridge`")
            roots.append(node)
        return roots

    def _node(self, included: Ints, free: Ints, incumbent: Incumbent) -> Node:
        """Build a node that starts at the incumbent."""
        at = COLUMNS.support(incumbent.w)
        values = incumbent.w[at] if incumbent.w.ndim == 2 else incumbent.w[at, None]
        zero = np.zeros(free.size)
        bound = trivial_bound(self.problem, included)
        return Node(included, free, bound, zero, size=zero, point=SparsePoint(at, values))
