"""A second search beside the rounds of the first: waves through sizes, on large supports."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np

from blockl0.incumbent import Incumbent
from blockl0.refit.search import Search, WaveSearch
from blockl0.run import Run

MEDIUM, LARGE = 24, 96
"""Columns in a support from which on there are waves, and from which on there are no kicks."""
SMALL_GAIN = 2e-3
"""Of the objective: a round that brings less takes back but half of the failures before it."""


class Beside:
    """Waves from a support that was grown size by size, one round for each of the first search.

    It sees what the first search finds, which sees nothing of it: the first search goes through the
    same points as without it, so that the better of the two is never worse. The random numbers are
    its own, and it ends no later than the first search: with more effort both go on from where
    they ended with less.

    Parameters
    ----------
    search : Search
        It is not used itself, but one like it.
    run : Run
    rng : Generator
        Copied.
    rounds : int
        Rounds in a row without improvement that end it.

    Attributes
    ----------
    point : Incumbent or None
        The best point so far, None as long as there are no waves.
    is_alone : bool
        Whether the support is so large that the first search makes only its first round.
    """

    def __init__(self, search: Search, run: Run, rng: np.random.Generator, rounds: int) -> None:
        self.run, self.rng, self.rounds = run, deepcopy(rng), rounds
        self._first = search
        self._search: WaveSearch | None = None
        self.point: Incumbent | None = None
        self.is_alone, self._fruitless = False, -1

    def begin(self, incumbent: Incumbent) -> None:
        """Grow a start of its own, where a price has led the first search to a large support.

        Under a budget alone the first search ends about as low in less time.
        """
        if self._first.problem.sparsity.price == 0.0:
            return
        if incumbent.n_nonzero < MEDIUM or incumbent.objective <= self._first.negligible:
            return
        self._search = self._first.for_waves()
        if self._search is not None:
            self.point = self._search.settle(self._search.grow(self.run), self.run, self.rng)
            self.is_alone = self.point.n_nonzero >= LARGE

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be made."""
        return self.point is None or self._fruitless >= self.rounds

    def advance(self, incumbent: Incumbent) -> None:
        """One round of waves, from the better of its own point and the first search's."""
        if self._search is None or self.point is None or self.is_over:
            return
        before = self.better(incumbent)
        if before is not self.point:
            before = replace(before, frontier=self.point.frontier, walk=None)
        is_first = self._fruitless < 0
        self.point = self._search.wave_round(before, self.run, self.rng, is_first)
        self._fruitless = count_fruitless(
            self._fruitless, before.objective, self.point.objective
        )  # fmt: skip

    def better(self, incumbent: Incumbent) -> Incumbent:
        """The better of the two points, counted as the first search's."""
        point = self.point
        if point is None or not point.objective < incumbent.objective:
            return incumbent
        point.iteration = incumbent.iteration
        return point


def count_fruitless(fruitless: int, before: float, after: float) -> int:
    """The rounds in a row without improvement after one more; a small one takes back but half.

    On a large support nearly every round finds a little.
    """
    if not after < before:
        return fruitless + 1
    return max(fruitless, 0) // 2 if before - after < SMALL_GAIN * abs(before) else 0
