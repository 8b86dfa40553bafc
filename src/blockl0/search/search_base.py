"""What the loop of method "refit" asks of the search of a loss; see `search.improve`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import Problem, Sparsity
from blockl0.run import Incumbent, Run, Tally
from blockl0.search.frontier import Frontier
from blockl0.search.pool_sizes import SearchOptions
from blockl0.search.walks import Walks

Floats = NDArray[np.float64]

MOST_TOGETHER = 32
"""Searches that run side by side at most."""
POOL_COLUMNS, POINT_NUMBERS = 512, 32
"""Columns, and numbers for every column of X, that a search of another loss holds."""


class Search(ABC):
    """A search of one problem.

    Attributes
    ----------
    tally : Tally
        Shared with the searches made from this one.
    tolerance : float
        Smaller improvements are rounding.
    negligible : float
        An objective that counts as none.
    """

    tolerance: float
    negligible: float

    def __init__(
        self, problem: Problem, options: SearchOptions, tally: Tally | None = None
    ) -> None:
        self.problem = problem
        self.options = options
        self.tally = Tally() if tally is None else tally
        # of an X that is read, what was read before this problem was made does not count
        self._read_before = problem.shared.pop("n_read", problem.design.n_read)

    def together(self, most_bytes: float) -> tuple[Self, int]:
        """Return a search that batches passes over X with others, and how many can at a time.

        Where X is read, a pass is worth more than the memory that several searches take.
        """
        if self.problem.design.n_read is None:
            return self, 1
        m, n = self.problem.design.shape
        each = 8.0 * self.problem.n_outputs * (POOL_COLUMNS * m + POINT_NUMBERS * n)
        return self, max(1, min(MOST_TOGETHER, int(most_bytes / each)))

    def run_together(
        self, tasks: Sequence[Callable[[], Any]], interrupt: Callable[[], Any]
    ) -> list[Any]:
        """Return what tasks with searches of this X return; passes requested together are one."""
        return self.problem.design.batcher.run(tasks, interrupt)

    def release(self) -> None:
        """Let go of columns that are held for the next round, where X is one that is read."""
        return

    @property
    def n_passes(self) -> int:
        """Passes over X so far: those of the search, or of an X that is read, all reads of it."""
        if self.problem.design.n_read is None:
            return self.tally.n_passes
        return round(self.problem.design.n_read - (self._read_before or 0.0))

    @abstractmethod
    def for_sparsity(self, sparsity: Sparsity) -> Self:
        """Return the search of the same data under another price and budget; share all else."""

    def for_target(self, y: Floats) -> Self:
        """Return the search of the same columns for another target, with a tally of its own."""
        return type(self)(replace(self.problem, y=y), self.options)

    @abstractmethod
    def start(self, w: Floats, run: Run | None = None) -> Incumbent:
        """Fit the support of w and the kept columns, as far as it is worth its price."""

    @abstractmethod
    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column, re-fitted, until `size` are left; kept ones stay."""

    @abstractmethod
    def settle(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Descend from a point until nothing that the search looks at improves it."""

    @abstractmethod
    def walks(
        self,
        best: Incumbent,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier | None = None,
    ) -> Walks:
        """Begin rounds of walks from a settled point, until so many in a row bring nothing.

        A frontier that points beside it have filled may be given.
        """

    @property
    def has_frontier(self) -> bool:
        """Whether its walks can share a frontier with those of other prices and budgets."""
        return False

    def fill(self, frontier: Frontier, best: Incumbent, run: Run, rng: np.random.Generator) -> None:
        """Fill a frontier with supports of all sizes; asked where there is one."""
        raise NotImplementedError

    def exhaust(self, incumbent: Incumbent, run: Run) -> tuple[Incumbent, bool]:
        """Return the best of all subsets, if there are few, and whether all were searched.

        Not asked where settling does so already, as for the squared loss.
        """
        return incumbent, False

    def best_of_sizes(self, largest: int, run: Run) -> list[Floats] | None:
        """Return the best points of at most 0, 1, …, `largest` units, if there are few; else None.

        Not asked where settling does so already, as for the squared loss.
        """
        return None

    def is_alone(self, incumbent: Incumbent) -> bool:
        """Whether nothing near the incumbent is nearly as good: more rounds will hardly help."""
        return False

    def check(self, incumbent: Incumbent, run: Run) -> Incumbent | None:
        """Find a better point one change away, on the true objective; None if there is none.

        Or no time. Not asked where settling tells already, as for the squared loss by its prices.
        """
        return None

    def settle_checked(self, incumbent: Incumbent, run: Run) -> Incumbent:
        """Settle from what `check` finds, until it finds nothing."""
        while (better := self.check(incumbent, run)) is not None:
            better = self.settle(better, run)
            # rounding may lead back to where it came from
            if not better.objective < incumbent.objective:
                break
            incumbent = better
        return incumbent
