"""The end of a search for the squared loss: a fit from the data, and where it pays, a proof."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.errors import OutOfTime
from blockl0.exact.search import ExactSearch
from blockl0.exact.watch import Watch
from blockl0.problem.fits import make_fits
from blockl0.problem.near_dependence import mark_apart
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent, Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PROOF_NODES, PROOF_SLICE, PROOF_FITS = 200_000, 2000, 80_000
"""Nodes spent on the proof that a small problem is solved, between two looks at the clock, and
doubts that are judged by a fit: of columns far from zero nearly every support is one."""


def fit_with_kept(problem: Problem, support: Ints, sq_norms: Floats, iteration: int) -> Incumbent:
    """The point on a support and the kept columns, its objective from the data.

    A pool leaves a kept column out that is nearly a combination of others; here it comes back, and
    where that is one too many, the least of the others goes.
    """
    keep, budget = problem.keep, problem.sparsity.budget
    support = np.union1d(support, keep) if keep.size else support
    fits = make_fits(problem)
    w = fits.coef_on(support)
    while np.count_nonzero(w) > budget:
        movable = np.setdiff1d(np.flatnonzero(w), keep)
        least = movable[np.argmin(w[movable] ** 2 * sq_norms[movable])]
        w = fits.coef_on(np.setdiff1d(np.flatnonzero(w), least))
    return Incumbent.at(problem, w, iteration)


def prove(
    problem: Problem, incumbent: Incumbent, run: Run, gram: Floats | None = None
) -> Incumbent:
    """The optimum of a small problem, or the incumbent where the nodes or the time run out.

    The Gram matrix, ridge included, may be known.
    """
    iteration, incumbent.iteration = incumbent.iteration, 0  # there it counts nodes
    search = ExactSearch(problem, incumbent, Watch(run), gram=gram)
    mark_apart(problem, search.H)
    while not search.finished and search.incumbent.iteration < PROOF_NODES:
        if run.seconds_left <= 0.0 or search.n_fitted >= PROOF_FITS:
            break
        try:
            search.advance(PROOF_SLICE)
        except OutOfTime:
            break
    best = search.incumbent
    if best.objective < incumbent.objective:
        incumbent = Incumbent(best.w, best.objective, best.n_nonzero, iteration)
    incumbent.iteration = iteration
    incumbent.is_settled = incumbent.is_proven = search.finished
    return incumbent
