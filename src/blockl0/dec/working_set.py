"""(S1) Which block to search next: DEC-RiGj of the paper, all in turn, or your own object."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from blockl0.dec.state import State
from blockl0.validate import check_choice

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CYCLIC_SIZE = 2
"""Block size of ``"cyclic"`` without a number: the smallest that can swap."""
GREEDY = ("paper", "ranked", "split")
"""Rules for choosing the greedy coordinates of RiGj, see `RandomGreedy`."""


class WorkingSet(Protocol):
    """Chooses blocks; anything with this method may be given as ``working_set=``."""

    def select(self, state: State, rng: np.random.Generator) -> Ints:
        """Return distinct coordinates, ascending, for the next block."""
        ...


class RandomGreedy:
    """RiGj of the paper: j coordinates by greedy scores, i more uniformly at random from the rest.

    The scores are the changes of F when one coordinate moves alone: for zeros the best step,
    c_i = −g_i²/2Q_ii + price, for the support the step to zero, d_j = −g_j w_j + ½Q_jj w_j² − price
    (the paper writes this step with a sign slip). The budget does not enter: it would forbid every
    addition to a full support. The minimum in c over no step at all is left out too, since it would
    only make ties. `greedy="paper"` has both, as printed.

    Parameters
    ----------
    n_random, n_greedy : int
    greedy : {"split", "ranked", "paper"}
        "split" takes half from the zeros and half from the support, which gets the odd one; the
        authors' code does so under a budget, where it works better, because only a removal makes
        room for an addition. "ranked" merges both lists into one ranking, as their code does at a
        price. "paper" is one
        ranking by c_i = min over α of F(w + αe_i) − F(w) to the letter: never above 0, and 0 for
        all zeros once the support fills the budget. Of equal scores the lowest indices come first.
    """

    def __init__(self, n_random: int, n_greedy: int, greedy: str = "split") -> None:
        check_choice("greedy", greedy, GREEDY)
        if n_random < 0 or n_greedy < 0 or n_random + n_greedy == 0:
            raise ValueError(f"`working_set` R{n_random}G{n_greedy} selects no coordinate.")
        self.n_random = n_random
        self.n_greedy = n_greedy
        self.greedy = greedy

    def __repr__(self) -> str:
        return f"R{self.n_random}G{self.n_greedy}({self.greedy})"

    def select(self, state: State, rng: np.random.Generator) -> Ints:
        """Return greedy coordinates, updated only after a move, and random others; ascending."""
        n = state.w.size
        if "greedy" not in state.memo:
            picked = np.sort(self._pick(state))
            state.memo["greedy"] = picked, picked - np.arange(picked.size)
        picked, gaps = state.memo["greedy"]
        # drawn as if the picked ones were not there, then stepping over those that come before
        rest = draw_distinct(rng, n - picked.size, self.n_random)
        rest += np.searchsorted(gaps, rest, side="right")
        block = np.concatenate([picked, rest])
        block.sort()
        return block

    def _pick(self, state: State) -> Ints:
        if self.n_greedy == 0:
            return np.empty(0, dtype=np.int64)
        price = state.problem.sparsity.price
        support = np.flatnonzero(state.w)
        j = min(self.n_greedy, state.w.size)
        # change of F by the best step from zero, (n,), and by the step to zero, on the support
        enter = price - state.descent
        leave = state.w[support]
        leave = leave * (0.5 * state.curvature[support] * leave - state.gradient[support]) - price
        if self.greedy == "paper":
            # α = 0 is one of the steps, and under a full budget the only one where F is finite
            is_full = support.size >= state.problem.sparsity.budget
            enter = np.zeros_like(enter) if is_full else np.minimum(enter, 0.0)
            enter[support] = leave
            return np.argsort(enter, kind="stable")[:j]
        if self.greedy == "ranked":
            enter[support] = leave
            return _lowest(enter, j)
        enter[support] = np.inf
        n_leave = min((j + 1) // 2, support.size)
        n_enter = min(j - n_leave, state.w.size - support.size)
        return np.concatenate([_lowest(enter, n_enter), support[_lowest(leave, j - n_enter)]])


class Cyclic:
    """All C(n, size) blocks in lexicographic order, again and again.

    A whole round without a change proves block-`size` stationarity (of the proximal subproblems).
    """

    def __init__(self, size: int = CYCLIC_SIZE) -> None:
        if size < 1:
            raise ValueError(f"`working_set` 'cyclic' needs blocks of at least 1, got {size}.")
        self.size = size
        self._blocks: Iterator[tuple[int, ...]] | None = None

    def __repr__(self) -> str:
        return f"cyclic{self.size}"

    def cycle_length(self, n: int) -> int:
        """Return the number of blocks after which every one has been seen."""
        return comb(n, min(self.size, n))

    def select(self, state: State, rng: np.random.Generator) -> Ints:
        """Return the next block."""
        n = state.w.size
        if state.iteration == 0 or self._blocks is None:
            self._blocks = _all_blocks(n, min(self.size, n))
        return np.array(next(self._blocks), dtype=np.int64)


class Checked:
    """A user's working set, its blocks checked before they are used."""

    def __init__(self, working_set: WorkingSet) -> None:
        self.working_set = working_set
        if hasattr(working_set, "cycle_length"):
            self.cycle_length: Any = working_set.cycle_length  # type: ignore[attr-defined]

    def select(self, state: State, rng: np.random.Generator) -> Ints:
        """Return the user's block, sorted; a ValueError unless it is distinct columns in range."""
        given = np.asarray(self.working_set.select(state, rng))
        block, n = np.unique(given), state.w.size
        is_integer = np.issubdtype(given.dtype, np.integer) and block.size > 0
        if not (is_integer and 0 <= block[0] and block[-1] < n and block.size == given.size):
            raise ValueError(
                f"`working_set` must select distinct columns between 0 and {n - 1}, got {given!r}."
            )
        return block.astype(np.int64)


def draw_distinct(rng: np.random.Generator, n: int, count: int) -> Ints:
    """Draw a uniformly random subset of range(n) of `count` elements by Floyd's algorithm.

    One call of the generator and a few set look-ups: several times faster than ``rng.choice``.
    """
    count = min(count, n)
    chosen: set[int] = set()
    for top, u in zip(range(n - count, n), rng.random(count).tolist(), strict=True):
        j = int(u * (top + 1))
        chosen.add(top if j in chosen else j)
    return np.fromiter(chosen, np.int64, count)


def as_working_set(working_set: Any, greedy: str = "split") -> WorkingSet:
    """Turn "RiGj", "cyclic" or "cyclicK" into an object; pass an object with `select` through."""
    check_choice("greedy", greedy, GREEDY)
    if isinstance(working_set, RandomGreedy | Cyclic):
        return working_set
    if callable(getattr(working_set, "select", None)):
        return Checked(working_set)
    text = working_set if isinstance(working_set, str) else ""
    if match := re.fullmatch(r"R(\d+)G(\d+)", text):
        return RandomGreedy(int(match[1]), int(match[2]), greedy)
    if match := re.fullmatch(r"cyclic(\d*)", text):
        return Cyclic(int(match[1] or CYCLIC_SIZE))
    raise ValueError(
        f"`working_set` must be like 'R10G2' (10 random and 2 greedy coordinates), 'cyclic', "
        f"'cyclic3', or an object with a method select(state, rng); got {working_set!r}."
    )


def _lowest(scores: Floats, count: int) -> Ints:
    """Return the positions of the `count` lowest scores."""
    if count <= 1:
        return np.array([np.argmin(scores)] if count else [], dtype=np.int64)
    if count < scores.size:
        return np.argpartition(scores, count)[:count]
    return np.arange(scores.size)


def _all_blocks(n: int, size: int) -> Iterator[tuple[int, ...]]:
    while True:
        yield from itertools.combinations(range(n), size)
