"""Away from where rounds have led: other starts, and the budgets beside the one asked for."""

from __future__ import annotations

import numpy as np

from blockl0.incumbent import Incumbent
from blockl0.problem.sparsity import Sparsity
from blockl0.refit.search import Search
from blockl0.run import Run

ELSEWHERE = 15
"""After so many rounds in a row without improvement, and again after as many, look elsewhere."""
ELSEWHERE_ROUNDS = 3
"""Rounds in a row without improvement that end a search elsewhere."""


def is_time_to_look(fruitless: int) -> bool:
    """Whether the next round after so many without improvement is one elsewhere."""
    return fruitless > 0 and fruitless % ELSEWHERE == 0


def make_round(
    search: Search,
    incumbent: Incumbent,
    run: Run,
    rng: np.random.Generator,
    fruitless: int,
    n_looks: int,
) -> Incumbent:
    """The next round after so many without improvement, −1 before the first, which is narrow.

    Restarts and the neighbouring budgets come by turns; `n_looks` of both were made before.
    """
    if not is_time_to_look(fruitless):
        return search.kick_round(incumbent, run, rng, is_narrow=fruitless < 0)
    look = restart if n_looks % 2 == 0 else ask_neighbours
    return look(search, incumbent, run, rng)


def restart(search: Search, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
    """A search of its own from a start elsewhere; the better of the two."""
    found, fruitless = search.settle(search.scatter(rng, run), run, rng), 0
    while fruitless < ELSEWHERE_ROUNDS and run.seconds_left > 0.0:
        before = found.objective
        found = search.kick_round(found, run, rng)
        fruitless = 0 if found.objective < before else fruitless + 1
    # what comes next around the old point starts from it, not from where a walk had led
    incumbent.walk = None
    return better(found, incumbent)


def better(found: Incumbent, incumbent: Incumbent) -> Incumbent:
    """The better of two points, counted as the second."""
    if found.objective < incumbent.objective:
        found.iteration = incumbent.iteration
        return found
    return incumbent


def ask_neighbours(
    search: Search, incumbent: Incumbent, run: Run, rng: np.random.Generator
) -> Incumbent:
    """Solve with one nonzero fewer and one more, and settle from there; the best of all."""
    price, budget = search.problem.sparsity
    n_kept, n, occupied = search.problem.keep.size, search.problem.n_units, search.problem.occupied
    for other in (budget - 1, budget + 1):
        if budget == n or not max(n_kept, 1) <= other <= n or occupied(incumbent.w).size < budget:
            continue
        neighbour = search.for_sparsity(Sparsity(price, other))
        w = incumbent.w if other > budget else search.shrink(incumbent.w, other)
        point = neighbour.settle(neighbour.start(w, run), run, rng)
        point = neighbour.kick_round(point, run, rng, is_narrow=True)
        back = point.w if occupied(point.w).size <= budget else search.shrink(point.w, budget)
        incumbent = better(search.settle(search.start(back, run), run, rng), incumbent)
    return incumbent
