"""The search tree over nodes with convex bounds: best first, every bound proven.

Its columns are units: groups of columns, if the problem has any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from blockl0.exact.bounds import Bounds, Node, Relaxed
from blockl0.exact.proof import Recorder
from blockl0.exact.search import (
    SupportMemory,
    has_tableaus,
    is_for_tableaus,
    search_tableaus,
)
from blockl0.exact.watch import NEVER, Watch
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import TIE_TOLERANCE, independent_columns, rounding_of
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROOT_SHARE, SHARE = 0.02, 0.05
"""Accuracy of a relaxation, as a share of the distance to the cutoff, at the root and below."""
ROOT_STALL, ROOT_STALLS, STALL, STALLS = 0.02, 3, 0.1, 1
"""Share of the gap that a sharper curvature must close, and how often it may fail to."""
MOST_SHARPENED = 30
RESOLVED = 1e-13
"""Of the squared target: what relaxations resolve."""
MOST_UNRESOLVED = 1e-8
"""Relative rounding assumed for losses other than squares, at most."""
RELAXATION, FIT, NEWTON_STEPS = 1e5, 1e5, 8
"""Work of a relaxation and of a fit beside multiplications; Newton steps counted per fit."""
LAZY_SIZE, LAZY_SHARE = 200, 0.85
"""Larger nodes are sharpened only once their columns fell to this share since the last time."""


class ProofTree:
    """Nodes waiting in the order of their bounds, and the best point so far.

    Parameters
    ----------
    problem : Problem
    incumbent : Incumbent
    bounds_of : callable
        Returns the bounds for a node, which it may prepare for them.
    roots : list of Node
        They cover all supports.
    gap : float
        Relative gap at which the search ends.
    memory_limit : float
        Bytes of waiting nodes beyond which the deepest one is next, so that no more are added.
    watch : Watch
        When it says so, a node is left as it is.
    recorder : Recorder
        Records what is done with every node.
    """

    def __init__(
        self,
        problem: Problem,
        incumbent: Incumbent,
        bounds_of: Callable[[Node], Bounds],
        roots: list[Node],
        *,
        gap: float = 0.0,
        memory_limit: float = np.inf,
        watch: Watch = NEVER,
        recorder: Recorder | None = None,
    ) -> None:
        self.problem, self.incumbent, self.gap = problem, incumbent, gap
        self.recorder = Recorder() if recorder is None else recorder
        self.fits = make_fits(problem)
        self.bounds_of, self.memory_limit, self.watch = bounds_of, memory_limit, watch
        self.n_bytes = 0
        self.n_nodes, self.n_sharpened, self.n_relaxed, self.n_handed = 0, 0, 0, 0
        self._order = 0
        self._waiting: list[tuple[float, int, Node]] = []
        self._new = list(roots)
        self._closed_below = np.inf  # the lowest bound of a closed node
        self._memory = SupportMemory()
        self._set_cutoff()

    def _set_cutoff(self) -> None:
        size = abs(self.incumbent.objective)
        self._tolerance = TIE_TOLERANCE * size + self._unresolved()
        self._cutoff = self.incumbent.objective - max(self._tolerance, self.gap * size)

    def _unresolved(self) -> float:
        """Compute the rounding error at the incumbent: smaller improvements cannot be detected.

        For squares it is known from the data; for other losses it is the distance between objective
        and bound at the incumbent's support, at most 1e-8 of the objective: more is not rounding.
        """
        best = self.incumbent
        if self.problem.is_quadratic:
            return rounding_of(self.problem, best.w)
        support = np.union1d(self.problem.units.support(best.w), self.problem.keep)
        none = np.empty(0, dtype=np.int64)
        bounds = self.bounds_of(Node(support, none, -np.inf, np.zeros(0)))
        missing = best.objective - bounds.bound_of(support, best.w, best.objective)
        most = MOST_UNRESOLVED * abs(best.objective)
        return min(max(2.0 * missing, 0.0), most) if np.isfinite(missing) else most

    @property
    def tolerance(self) -> float:
        """Rounding tolerance: nothing is better than an optimum by more."""
        return self._tolerance

    @property
    def cutoff(self) -> float:
        """Bound at which a node holds nothing that counts as better."""
        return self._cutoff

    @property
    def bound(self) -> float:
        """Lower bound on the objective of all supports."""
        waiting = self._waiting[0][0] if self._waiting else np.inf
        new = min((node.bound for node in self._new), default=np.inf)
        return min(waiting, new, self._closed_below, self.incumbent.objective)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to search."""
        return not self._waiting and not self._new

    @property
    def is_optimal(self) -> bool:
        """Whether the search has ended, and nothing is better by more than rounding."""
        return self.is_finished and self.bound >= self.incumbent.objective - self._tolerance

    @property
    def is_within_gap(self) -> bool:
        """Whether nothing is better by more than the requested gap."""
        return self.bound >= self.cutoff

    def advance(self) -> None:
        """Process the next node: relax a new one, or split a waiting one."""
        if self._new:
            node = self._new.pop()
            try:
                is_open = self._tighten(node)
            except KeyboardInterrupt:
                # its supports still count in the bound
                self._new.append(node)
                raise
            if is_open:
                self._order += 1
                self.n_bytes += node.nbytes
                heappush(self._waiting, (node.bound, self._order, node))
            return
        bound, _, node = self._next()
        self.n_bytes -= node.nbytes
        if bound >= self.cutoff:
            self.recorder.closed(node)
            self._close(bound)
            return
        self._new.extend(self._split(node))

    def _next(self) -> tuple[float, int, Node]:
        """Take the node with the lowest bound; the deepest one if memory is short."""
        if self.n_bytes <= self.memory_limit:
            return heappop(self._waiting)
        at = max(range(len(self._waiting)), key=lambda i: (self._waiting[i][2].depth, i))
        entry = self._waiting[at]
        self._waiting[at] = self._waiting[-1]
        self._waiting.pop()
        heapify(self._waiting)
        return entry

    def _close(self, bound: float) -> None:
        self._closed_below = min(self._closed_below, bound)

    def _split(self, node: Node) -> tuple[Node, Node]:
        """Branch on the most important column: return nodes with and without it."""
        # of equal sizes prefer a fractional column
        size = node.size * np.where(node.z < 1.0, 1.0, 0.999)
        is_it = np.zeros(node.free.size, dtype=np.bool_)
        is_it[int(np.argmax(size))] = True
        children = []
        for is_in in (True, False):
            child = replace(node, depth=node.depth + 1)
            child.include(is_it) if is_in else child.only(~is_it)
            children.append(child)
        self.recorder.split(node, int(node.free[is_it][0]), *children)
        return children[0], children[1]

    def _tighten(self, node: Node) -> bool:
        """Relax, fix columns and sharpen; return False if the node is closed."""
        self.n_nodes += 1
        is_root = node.depth == 0
        stall, stalls = (ROOT_STALL, ROOT_STALLS) if is_root else (STALL, STALLS)
        n_stalled, n_sharpened, last = 0, 0, np.inf
        while True:
            if self._is_leaf(node):
                return False
            bounds = self.bounds_of(node)
            self.watch.spend(RELAXATION)
            relaxed = bounds.relax(node, self.cutoff, ROOT_SHARE if is_root else SHARE)
            self.n_relaxed += 1
            self.recorder.relaxed(node, bounds, relaxed)
            node.bound = max(node.bound, relaxed.bound)
            self._try_rounded(node)
            if node.bound >= self.cutoff:
                self.recorder.closed(node)
                self._close(node.bound)
                return False
            if self.watch():
                return True
            if self._decide(node, relaxed):
                continue
            # neither leaves anything that others could check
            if not self.recorder.is_on and (self._finish(node, bounds) or self._hand_over(node)):
                return False
            missing = self.cutoff - node.bound
            n_stalled = n_stalled + 1 if missing > (1.0 - stall) * last else 0
            last = missing
            is_large = node.free.size > LAZY_SIZE and node.free.size > LAZY_SHARE * node.fresh
            if n_stalled >= stalls or n_sharpened >= MOST_SHARPENED or (not is_root and is_large):
                return True
            if not bounds.sharpen(node, relaxed, self.cutoff):
                return True
            node.fresh = node.free.size
            n_sharpened += 1
            self.n_sharpened += 1

    def _finish(self, node: Node, bounds: Bounds) -> bool:
        """Close a node by bounding all of its supports at once, except doubtful ones to fit."""
        found = bounds.finish(node, self.cutoff)
        if found is None:
            return False
        for doubt in found.doubts:
            self._try(np.concatenate([node.included, node.free[doubt]]))
        self._close(found.bound)
        return True

    def _hand_over(self, node: Node) -> bool:
        """Let the tableau search try a node; return whether it finished."""
        problem = self.problem
        if not (has_tableaus(problem) and is_for_tableaus(problem, node)):
            return False
        is_done, best = search_tableaus(problem, node, self.incumbent, self.watch)
        if best is not self.incumbent:
            best.iteration = self.n_nodes
            self.incumbent = best
            self._set_cutoff()
        self.n_handed += is_done
        if is_done:
            self._close(self.cutoff)
        return is_done

    def _decide(self, node: Node, relaxed: Relaxed) -> bool:
        """Exclude and include columns whose alternative is no better than the incumbent."""
        cutoff = self.cutoff
        with_in, with_out = relaxed.with_it_in(), relaxed.with_it_out()
        is_out, is_in = with_in >= cutoff, with_out >= cutoff
        if not (is_out.any() or is_in.any()):
            return False
        self._close(min(with_in[is_out].min(initial=np.inf), with_out[is_in].min(initial=np.inf)))
        is_in &= ~is_out
        self.recorder.fixed(node, is_out, is_in)
        node.only(~is_out)
        node.include(is_in[~is_out])
        return True

    def _is_leaf(self, node: Node) -> bool:
        """Close a node of one support, or of one that is no worse than all others."""
        room = self.problem.sparsity.budget - node.included.size
        if room < 0:
            self.recorder.closed(node)
            return True
        is_free = self.problem.sparsity.price == 0.0 and 0 < node.free.size <= room
        if room > 0 and node.free.size > 0 and not is_free:
            return False
        support = np.concatenate([node.included, node.free]) if is_free else node.included
        if is_free and not self._are_independent(support):
            if self._close_doubtful(node, support):
                return True
            # the fit drops some of them; keeping these instead may be better
            return self.problem.is_plain and not self._are_independent(node.included)
        self._try(support)
        self._count_fit(support)
        fit = self.fits.minimum(self.problem.units.columns(np.sort(support)))
        proven = self.bounds_of(node).bound_of(support, fit.w, self.cutoff)
        self._close(max(node.bound, proven))
        self.recorder.leaf(node, support, self.bounds_of)
        return True

    def _close_doubtful(self, node: Node, support: Ints) -> bool:
        """Close a node within bounds whose fit leaves a choice that no relaxation resolves.

        Relaxations are as accurate as the target's length allows. What the choice among dependent
        columns may gain is known better than that.
        """
        problem = self.problem
        if problem.bounds is None or not problem.is_quadratic:
            return False
        columns = problem.units.columns(np.sort(support))
        w = self.fits.minimum(columns).w
        doubt = self.fits.doubt(columns, w)
        if not doubt <= RESOLVED * problem.smooth_at_zero:
            return False
        self._try(support)
        self._close(max(node.bound, problem.objective(w) - doubt))
        return True

    def _are_independent(self, support: Ints) -> bool:
        """Check that no fit has to drop a column, or with units, one that others cannot replace."""
        problem = self.problem
        if support.size == 0:
            return True
        if not problem.is_plain:
            columns = problem.units.columns(np.sort(support))
            w = self.fits.minimum(columns).w
            doubt = self.fits.doubt(columns, w)
            return doubt == 0.0 or problem.objective(w) - doubt >= self.cutoff
        return independent_columns(problem, support).size == support.size

    def _try_rounded(self, node: Node) -> None:
        """Fit the support nearest to the relaxed point."""
        room = self.problem.sparsity.budget - node.included.size
        order = np.argsort(-node.z, kind="stable")[:room]
        joins = node.free[order[node.z[order] > 0.5]]
        self._try(np.concatenate([node.included, joins]))

    def _try(self, support: Ints) -> None:
        support = np.sort(support)
        if support in self._memory:
            return
        self._count_fit(support)
        fit = self.fits.minimum(self.problem.units.columns(support))
        found = Incumbent.at(self.problem, fit.w, self.n_nodes)
        self._memory.add(support)
        if found.objective < self.incumbent.objective:
            self.incumbent = found
            self._set_cutoff()

    def _count_fit(self, support: Ints) -> None:
        """Count the work of a fit: one factorization, or some Newton steps."""
        size = self.problem.units.columns(np.sort(support)).size
        steps = 1 if self.problem.is_quadratic else NEWTON_STEPS
        self.watch.spend(FIT + steps * self.problem.n_samples * float(size) ** 2)
