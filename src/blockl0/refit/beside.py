"""A second search beside the rounds of the first: annealings, on large supports."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np

from blockl0.incumbent import Incumbent
from blockl0.refit.annealing import AGAIN, FIRST, LONG, Pace, anneal_again, anneal_at_size
from blockl0.refit.frontier import Frontier
from blockl0.refit.search import AnnealingSearch, Search
from blockl0.run import Run

MEDIUM, LARGE, BETTER = 24, 96, 40
"""Columns in a support at a price from which on there is a second search; from which on the first
makes no round; and from which on it makes one where an annealing does better than a descent: after
that the annealings are ahead."""
FULL = 64
"""Columns in a support under a budget alone from which on there are annealings and nothing else;
smaller ones are walked to from nothing, see `walks`."""
ELSEWHERE, LONGER = 10, 4
"""Fruitless rounds between two long annealings, and how much longer the next one takes."""
FEW_ROUNDS, GIVEN_ROUNDS = 4, 2
"""Twice the walks in a row without improvement that end a search which began with an annealing that
brought nothing, and one with a frontier that was given, where points beside it walk as well."""
WARM = 0.15
"""The temperature of annealings under a budget alone: it is full before the last price, when only
swaps are left, of which colder walks make too few."""
PRICED = LONG._replace(fewest=LARGE)
"""The pace of a long annealing to a price: where supports are small there is time for more moves,
since one round of kicks is made."""
PAIR = AGAIN._replace(walks=2)
"""Two walks again, that can be made at the same time."""
SHORT = AGAIN._replace(moves=AGAIN.moves / 2)
"""The pace of walks on a frontier that was given, to which many points add."""
SMALL_GAIN = 2e-3
"""Of the objective: a round that brings less takes back but half of the failures before it."""


class Beside:
    """An annealing to the price, then walks from higher ones, one for each round of the first.

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
        Copied when the second search begins.
    rounds : int
        Twice the rounds in a row without improvement that end it.
    frontier : Frontier, optional
        One that an annealing has filled: there is no other then, and few walks, which add to it.

    Attributes
    ----------
    point : Incumbent or None
        The best point so far, None as long as there is no second search.
    is_alone : bool
        Whether it goes on when the first search has ended, which makes one round or none.
    """

    def __init__(
        self,
        search: Search,
        run: Run,
        rng: np.random.Generator,
        rounds: int,
        frontier: Frontier | None = None,
    ) -> None:
        self.run, self._given_rng, self.rounds = run, rng, rounds
        self._given = frontier
        self._first = search
        self._search: AnnealingSearch | None = None
        self.point: Incumbent | None = None
        self.is_alone = self._makes_none = False
        self._fruitless = -1
        self._next: Pace | None = None
        self._next_cooling = self._n_more = 0

    def begin(self, incumbent: Incumbent) -> None:
        """Anneal once, where the first search has come to a large support."""
        is_priced, is_given = self._first.problem.sparsity.price > 0.0, self._given is not None
        fewest = 1 if is_given else MEDIUM if is_priced else FULL
        if incumbent.n_nonzero < fewest or incumbent.objective <= self._first.negligible:
            return
        self._search = self._first.for_annealing()
        if self._search is None:
            return
        self.rng = deepcopy(self._given_rng)
        start, is_better = replace(incumbent, frontier=self._given, walk=None), False
        if self._given is None:
            first, then = FIRST, PRICED
            if not is_priced:
                first, then = FIRST._replace(heat=WARM), LONG._replace(heat=WARM)
            self.point = self._search.cool(start, self.run, self.rng, first)
            # where a short annealing is no better than a descent a long one, or many, hardly are
            is_better = self.point is not start
            if is_better:
                self._next = then
            else:
                self.rounds = min(self.rounds, FEW_ROUNDS)
        else:
            self.point, self.rounds = start, min(self.rounds, GIVEN_ROUNDS)
        size = self.point.n_nonzero
        self._makes_none = is_given or size >= (LARGE if is_priced else FULL)
        self.is_alone = self._makes_none or (is_better and size >= BETTER)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be made."""
        return self.point is None or self._fruitless >= (self.rounds + 1) // 2

    def rounds_left(self, rounds: int) -> int:
        """Fruitless rounds that end the first search, one less than none for no round at all."""
        if not self.is_alone:
            return rounds
        return -1 if self._makes_none else min(rounds, 0)

    def advance(self, incumbent: Incumbent) -> None:
        """A walk from a higher price, or a longer annealing, from the better of the two points."""
        if self._search is None or self.point is None or self.is_over:
            return
        before = self.better(incumbent)
        if before is not self.point:
            before = replace(before, frontier=self.point.frontier, walk=None)
        if self._next is not None and self._fruitless >= self._next_cooling:
            self.point = self._search.cool(before, self.run, self.rng, self._next)
            self._next = self._next._replace(moves=LONGER * self._next.moves)
            self._next_cooling += ELSEWHERE
            n_made = 1
        else:
            # the least effort makes but one of them
            pace = SHORT if self._given is not None else AGAIN if self._fruitless < 0 else PAIR
            is_turn = self._n_more == 0 if self._given is not None else self._n_more % 2 == 0
            is_sized = pace is not AGAIN and before.n_nonzero < LARGE and is_turn
            self._n_more += pace is not AGAIN
            how = anneal_at_size if is_sized else anneal_again
            self.point = self._search.cool(before, self.run, self.rng, pace, how)
            n_made = pace.walks
        self._fruitless = count_fruitless(
            self._fruitless, before.objective, self.point.objective, n_made
        )  # fmt: skip

    def better(self, incumbent: Incumbent) -> Incumbent:
        """The better of the two points, counted as the first search's."""
        point = self.point
        if point is None or not point.objective < incumbent.objective:
            return incumbent
        point.iteration = incumbent.iteration
        return point


def count_fruitless(fruitless: int, before: float, after: float, n_made: int = 1) -> int:
    """The walks in a row without improvement after some more; a small one takes back but half.

    On a large support nearly every round finds a little.
    """
    if not after < before:
        return fruitless + n_made
    return max(fruitless, 0) // 2 if before - after < SMALL_GAIN * abs(before) else 0
