"""The stages of an exact search: tableaus while they are fast, then nodes with convex bounds."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.errors import OutOfReachError, OutOfTime
from blockl0.exact.few_columns import may_enumerate
from blockl0.exact.proof import Recorder
from blockl0.exact.prover import Prover, obstacle, trivial_bound
from blockl0.exact.search import ExactSearch, are_apart, has_tableaus
from blockl0.exact.tree import ProofTree
from blockl0.exact.units import NoBoundError
from blockl0.exact.watch import Watch
from blockl0.problem.kinds import LEAST_SQUARES
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent, timed_by
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]

SMALL, SMALL_NODES = 128, 200_000
"""Columns up to which the tableau search is faster, and its nodes before the tree takes over."""
BOUNDED_NODES, BOUNDED_FITS = 20_000, 300
"""With bounds: nodes, and supports to fit, before the tree takes over."""
HOPELESS, HOPELESS_NODES, MOST_ENUMERATED = 1000, 200_000, 1e8
"""Without a bound: columns up to which supports are enumerated, nodes for that, and supports below
which all of them are.
"""


def may_prove(problem: Problem) -> bool:
    """Check if a search may prove anything: by bounds, or by enumerating few columns."""
    return may_enumerate(problem) or may_bound(problem)


def may_bound(problem: Problem) -> bool:
    """Check if bounds, or tableaus of few columns, may prove anything."""
    if not problem.is_plain and problem.is_quadratic:
        return True
    if problem.n_outputs > 1:
        return False
    is_few = problem.is_quadratic and problem.n_features <= HOPELESS
    return is_few or obstacle(problem) is None


def ungrouped(problem: Problem) -> Problem:
    """Return the problem with columns for units where every group is one column."""
    if problem.units is COLUMNS or problem.n_units < problem.n_features:
        return problem
    units = problem.units.each(np.arange(problem.n_features))
    costs = None if problem.costs is None else problem.costs[units]
    keep = np.sort(problem.units.columns(problem.keep))
    return replace(problem, units=COLUMNS, costs=costs, keep=keep)


class Stages:
    """An exact search, advanced a slice of nodes at a time.

    Parameters
    ----------
    problem : Problem
    start : Incumbent
    watch : Watch
        Checked between nodes.
    gap : float
        Relative gap at which the search ends.
    memory_limit : float
        Bytes for products and waiting nodes of the tree.
    recorder : Recorder, optional
        Records the search, for a proof that others can check.

    Attributes
    ----------
    incumbent : Incumbent
    reason : str or None
        Why no bound exists, if none does.
    """

    def __init__(
        self,
        problem: Problem,
        start: Incumbent,
        watch: Watch,
        gap: float,
        memory_limit: float,
        recorder: Recorder | None = None,
    ) -> None:
        problem = ungrouped(problem)
        self.problem, self.watch = problem, watch
        self.recorder = Recorder() if recorder is None else recorder
        self.gap, self.memory_limit = gap, memory_limit
        self.reason: str | None = None
        self._start, self._bound = start, trivial_bound(problem, problem.keep)
        self._tree: ProofTree | None = None
        self._tableau: ExactSearch | None = None
        self._allowed: float = SMALL_NODES
        self._most_fitted: float = np.inf
        self._n_before = 0
        # a proof for others needs nodes with convex bounds
        is_small = problem.n_features <= SMALL and not self.recorder.is_on
        if is_small and has_tableaus(problem) and problem.bounds is None:
            self._tableau = ExactSearch(problem, start.support, watch)
        elif is_small and has_tableaus(problem) and are_apart(problem):
            # where bounds hold back, tableaus know too little: they are given up soon
            self._allowed, self._most_fitted = BOUNDED_NODES, BOUNDED_FITS
            self._tableau = ExactSearch(problem, start, watch)
        else:
            self._plant()

    @property
    def incumbent(self) -> Incumbent:
        """The best point so far; its `iteration` counts the nodes."""
        if self._tree is not None:
            best = self._tree.incumbent
            best.iteration = self._n_before + self._tree.n_nodes
            return best
        return self._start if self._tableau is None else self._tableau.incumbent

    @property
    def bound(self) -> float:
        """Lower bound on the objective of all admissible supports."""
        here = self._bound
        if self._tree is not None:
            here = self._tree.bound
        elif self._tableau is not None:
            here = self._tableau.bound
        self._bound = max(self._bound, here)
        return min(self._bound, self.incumbent.objective)

    @property
    def is_finished(self) -> bool:
        """Whether the incumbent is optimal, or within the requested gap."""
        if self._tree is not None:
            return self._tree.is_finished
        if self._tableau is None or self._tableau.finished:
            return self._tableau is not None
        best = self._tableau.incumbent.objective
        return self.gap > 0.0 and best - self._tableau.bound <= self.gap * abs(best)

    @property
    def is_optimal(self) -> bool:
        """Whether nothing is better than the incumbent by more than rounding."""
        if self._tree is not None:
            return self._tree.is_optimal
        return self._tableau is not None and self._tableau.finished

    @property
    def tolerance(self) -> float:
        """Rounding tolerance: nothing is better than an optimum by more."""
        if self._tree is not None:
            return self._tree.tolerance
        return np.inf if self._tableau is None else self._tableau.tolerance

    @property
    def is_within_gap(self) -> bool:
        """Whether nothing is better than the incumbent by more than the requested gap."""
        return self._tree is None or self._tree.is_within_gap

    def advance(self, n_nodes: int) -> None:
        """Search up to this many more nodes, or until time is up."""
        try:
            with timed_by(self.watch):
                self._advance(n_nodes)
        except OutOfTime:
            # the bound counts what was being searched
            return

    def _advance(self, n_nodes: int) -> None:
        if self._tree is not None:
            last = self._tree.n_nodes + n_nodes
            while self._tree.n_nodes < last and not self._tree.is_finished and not self.watch():
                self._tree.advance()
            return
        if self._tableau is None:
            return
        n_made = self._tableau.incumbent.iteration
        self._tableau.advance(int(max(1, min(n_nodes, self._allowed - n_made))))
        is_given_up = self._tableau.incumbent.iteration >= self._allowed
        is_given_up |= self._tableau.n_fitted >= self._most_fitted
        if not self.is_finished and is_given_up:
            self._plant()

    def _plant(self) -> None:
        """Continue with the tree; without a bound with tableaus for a while, or not at all."""
        if self.reason is not None:
            self._start, self._bound = self.incumbent, self.bound
            self._tableau = None
            return
        self._n_before = self.incumbent.iteration
        how: dict[str, Any] = {
            "gap": self.gap,
            "memory_limit": self.memory_limit,
            "watch": self.watch,
            "recorder": self.recorder,
        }
        try:
            with timed_by(self.watch):
                self._tree = Prover(self.problem, self.incumbent, **how).tree
        except OutOfTime:
            self._start = self.incumbent
        except NoBoundError as error:
            if self.recorder.is_on:
                raise OutOfReachError(
                    f"There is no proof to write, as {error}; give a `ridge`, or leave `proof` out."
                ) from error
            self.reason = str(error)
            self._start = self.incumbent
            self._allowed = self._n_before + self._enumerated()
            n = self.problem.n_features
            can_enumerate = self.problem.kind is LEAST_SQUARES and n <= HOPELESS
            if self._tableau is None and can_enumerate:
                self._tableau = ExactSearch(self.problem, self._start.support, self.watch)

    def _enumerated(self) -> float:
        """Return the nodes allowed without a bound: unlimited if enumeration is within reach."""
        n, budget = self.problem.n_features, self.problem.sparsity.budget
        n_supports = sum(comb(n, size) for size in range(budget + 1)) if n <= SMALL else np.inf
        return np.inf if n_supports <= MOST_ENUMERATED else HOPELESS_NODES

    @property
    def is_stuck(self) -> bool:
        """Whether nothing more can be done without a bound."""
        return self.reason is not None and self._tableau is None
