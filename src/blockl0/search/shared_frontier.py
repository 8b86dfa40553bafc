"""What the large supports of a path share: one frontier, filled before any of them is searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.problem import Sparsity
from blockl0.run import Incumbent, Run
from blockl0.search.frontier import Frontier
from blockl0.search.search_base import Search

Floats = NDArray[np.float64]

SHARED = 40
"""Columns in a support from which on the next points of a path share what they find."""
FEWEST_POINTS = 4
"""Points of a path that are still to be made, from which on an annealing for all of them pays."""


class SharedFrontier:
    """One annealing down to the last point of a path serves all points before it.

    Parameters
    ----------
    search : Search
        Of any point.
    last : Sparsity
        The largest budget, or the lowest price.
    """

    def __init__(self, search: Search, last: Sparsity) -> None:
        self._search, self._last = search, last
        self.frontier: Frontier | None = None

    def may_serve(self, points: Sequence[Sparsity]) -> bool:
        """Whether any point of a path may come to have a large support."""
        return max(budget for _, budget in points) >= SHARED

    def serves(self, before: Incumbent, n_left: int) -> bool:
        """Whether the next point is one of many with a large support, as the one before has."""
        if self.frontier is not None:
            return True
        is_long = n_left >= FEWEST_POINTS and before.n_nonzero >= SHARED
        return is_long and self._search.has_frontier

    def fill(self, run: Run, rng: np.random.Generator) -> None:
        """Anneal down to the last point of the path."""
        self.frontier = Frontier()
        search = self._search.for_sparsity(self._last)
        point = search.settle(search.start(search.problem.zero(), run), run)
        if point.objective > search.negligible:
            search.fill(self.frontier, point, run, rng)

    def start_for(self, sparsity: Sparsity, before: Incumbent) -> Floats:
        """Return the frontier's best support, marked by ones; if it has none, the point before."""
        frontier = self.frontier
        if frontier is None or frontier.best(sparsity) == np.inf:
            return before.w
        w = np.zeros_like(before.w)
        units = frontier.support(frontier.best_size(sparsity))
        w[self._search.problem.units.columns(units)] = 1.0
        return w
