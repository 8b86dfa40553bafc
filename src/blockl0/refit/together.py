"""A second walk beside the rounds of a long run, at the same time where there are two threads.

One round after the other is the way down: where a walk has come to is worth more than many starts.
Where so many rounds in a row have brought nothing that a run with the default effort would end,
each of the next ones is made together with a round of a second search, with random numbers and
memory of its own. It sees what the first search finds, which sees nothing of it: so the better of
the two is never worse than the first alone, and neither depends on how many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np

from blockl0.incumbent import Incumbent, Walk
from blockl0.refit.search import Search
from blockl0.refit.threads import in_threads
from blockl0.run import Run

FROM = 16
"""Rounds in a row without improvement from which on, till the end, there is a second search."""


class Second:
    """The second search of a run.

    Parameters
    ----------
    search : Search
        The first one; a twin of it is used.
    run : Run
    rng : Generator
        Of the first search; copied.

    Attributes
    ----------
    point : Incumbent or None
        The best point that this search has seen, None as long as there is none.
    """

    def __init__(self, search: Search, run: Run, rng: np.random.Generator) -> None:
        self.run, self.point = run, None
        self._first, self._first_rng = search, rng
        self._search: Search | None = None
        self._walk: Walk | None = None

    def beside(
        self, make_round: Callable[[], Incumbent], incumbent: Incumbent, fruitless: int
    ) -> Incumbent:
        """What a round of the first search returns; one of the second is made with it, in time."""
        if self._search is None:
            if fruitless < FROM:
                return make_round()
            self._search = self._first.twin()
            self._rng = np.random.default_rng(int(deepcopy(self._first_rng).integers(2**63)))
        start = replace(self.better(incumbent), walk=self._walk, frontier=None)
        own = partial(self._make_round, self._search, start)
        found, self.point = self._run([make_round, own])
        self._first.tally.take(self._search.tally)
        return found

    def _run(self, work: list[Callable[[], Incumbent]]) -> list[Incumbent]:
        """Both rounds; of an X that is read they share passes."""
        first = self._first
        if first.problem.design.n_read is None:
            return in_threads(work, first.options.n_jobs, self.run)
        return first.problem.design.batcher.run(work, self.run.interrupt)

    def _make_round(self, search: Search, start: Incumbent) -> Incumbent:
        """A round from a point, on from where the last walk has led; what is better is checked."""
        found = search.kick_round(start, self.run, self._rng)
        if found is not start:
            found = search.settle_checked(found, self.run, self._rng)
        self._walk = found.walk
        return found

    def better(self, incumbent: Incumbent) -> Incumbent:
        """The better of the two points, counted as the first search's."""
        point = self.point
        if point is None or not point.objective < incumbent.objective:
            return incumbent
        point.iteration = incumbent.iteration
        return point
