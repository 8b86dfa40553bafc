"""Walks from nothing under a budget, beside the rounds of kicks, and how many of them agree.

A round of kicks goes on from the best point; a walk takes nothing from it but the columns of its
pool, and how warm to begin. So walks can be made at the same time, and where several of them end at
the best point that is known, by chance and from nothing, there is hardly a better one: the search
ends.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from blockl0.incumbent import Incumbent
from blockl0.refit.annealing import Landing
from blockl0.refit.beside import FULL
from blockl0.refit.search import AnnealingSearch, Search
from blockl0.refit.threads import in_threads
from blockl0.run import Run

KICKED = 32
"""Columns in a support from which on walks are made alone, in pairs."""
AGREED, ROUNDS_EACH = 2, 16
"""Walks that must end at the best point, and one more for so many rounds of effort."""
SAME = 1e-9
"""Of the objective: what differs by less is the same."""


class Walks:
    """The walks of a run; none at a price, to large supports, or where the search knows none.

    Parameters
    ----------
    search : Search
    run : Run
    rng : Generator
        Copied when walks begin.
    rounds : int
        Rounds in a row without improvement that end the run.
    """

    def __init__(self, search: Search, run: Run, rng: np.random.Generator, rounds: int) -> None:
        self._first, self._run, self._given_rng = search, run, rng
        self._needed = AGREED + rounds // ROUNDS_EACH
        self._has_effort = rounds > 0
        self._search: AnnealingSearch | None = None
        self._agreed, self._at = 0, b""
        self._n_made = self._seed = 0

    def begin(self, incumbent: Incumbent) -> None:
        """Make walks from now on, where they are of use."""
        (price, _), size = self._first.problem.sparsity, incumbent.n_nonzero
        is_open = incumbent.objective > self._first.negligible
        if price > 0.0 or size >= FULL or not (is_open and self._has_effort):
            return
        self._search = self._first.for_annealing()
        self._seed = int(deepcopy(self._given_rng).integers(2**63))

    @property
    def are_made(self) -> bool:
        """Whether there are any."""
        return self._search is not None

    @property
    def agree(self) -> bool:
        """Whether as many as the effort asks for have ended at the best point."""
        return self._agreed >= self._needed

    def beside(
        self, kick: Callable[[], Incumbent], incumbent: Incumbent, rng: np.random.Generator
    ) -> Incumbent:
        """The best after a round: of kicks and a walk, or of two walks on a large support."""
        assert self._search is not None
        is_kicked = incumbent.n_nonzero < KICKED
        rngs = [self._next_rng() for _ in range(1 if is_kicked else 2)]
        walks = self._search.set_out(incumbent, self._run, rngs)
        calls: list[Callable[[], Any]] = [*walks]
        if is_kicked or not walks:
            calls.append(kick)
        answers = in_threads(calls, self._first.options.n_jobs, self._run)
        best = answers.pop() if len(calls) > len(walks) else incumbent
        for landing in answers:
            best = self._count(landing, best, rng)
        return best

    def _next_rng(self) -> np.random.Generator:
        self._n_made += 1
        return np.random.default_rng([self._seed, self._n_made])

    def _count(self, landing: Landing, best: Incumbent, rng: np.random.Generator) -> Incumbent:
        """The better of a landing and the best point, and how many have ended there."""
        assert self._search is not None
        same = SAME * abs(best.objective) + self._first.tolerance
        if landing.objective < best.objective - same:
            best = self._search.settle_landing(landing, best, self._run, rng)
        key = best.support.tobytes()
        if key != self._at:
            self._at, self._agreed = key, 0
        is_there = np.array_equal(landing.support, best.support)
        self._agreed += is_there or abs(landing.objective - best.objective) <= same
        return best
