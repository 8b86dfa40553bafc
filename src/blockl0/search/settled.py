"""The end of a search for the squared loss: a fit from the data, and where it pays, a proof."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.errors import OutOfTime
from blockl0.exact import few_columns
from blockl0.exact.search import ExactSearch
from blockl0.exact.watch import Watch
from blockl0.problem.fits import Fits
from blockl0.problem.near_dependence import mark_apart
from blockl0.problem.problem import Problem
from blockl0.run import Incumbent, Run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PROOF_NODES, PROOF_SLICE, PROOF_FITS = 200_000, 2000, 80_000
"""Nodes spent on the proof that a small problem is solved, between two looks at the clock, and
doubts that are judged by a fit: of columns far from zero nearly every support is one."""


def fit_with_kept(
    problem: Problem, fits: Fits, support: Ints, sq_norms: Floats, iteration: int
) -> Incumbent:
    """Return the point on a support and the kept units, its objective from the data.

    A pool leaves a kept unit out that is nearly a combination of others; here it comes back, and
    where that is one too many, the least of the others goes.
    """
    units, keep, budget = problem.units, problem.keep, problem.sparsity.budget
    support = np.union1d(support, keep) if keep.size else support
    w = fits.coef_on(units.columns(support))
    while (support := problem.occupied(w)).size > budget:
        movable = np.setdiff1d(support, keep)
        squares = np.square(w).reshape(len(w), -1).sum(axis=1) * sq_norms
        sizes = [squares[units.members(int(unit))].sum() for unit in movable]
        support = np.setdiff1d(support, movable[np.argmin(sizes)])
        w = fits.coef_on(units.columns(support))
    return Incumbent.at(problem, w, iteration)


def prove_by_subsets(
    problem: Problem, fits: Fits, incumbent: Incumbent, tolerance: float, run: Run
) -> tuple[Incumbent, bool]:
    """Return the best of all subsets, if there are few units, and whether all were searched."""
    if problem.n_units > few_columns.MOST_COLUMNS:
        return incumbent, False
    subsets = few_columns.Subsets(problem, fits, incumbent.w, incumbent.objective, tolerance)
    subsets.search(Watch(run))
    if subsets.objective < incumbent.objective:
        found = Incumbent.at(problem, subsets.best, incumbent.iteration)
        incumbent = found if found.objective < incumbent.objective else incumbent
    # single changes of the best of all are among those that are no better
    incumbent.is_settled |= subsets.is_complete
    incumbent.is_proven |= subsets.is_complete
    return incumbent, subsets.is_complete


def prove(
    problem: Problem, incumbent: Incumbent, run: Run, gram: Floats | None = None
) -> Incumbent:
    """Find the optimum of a small problem; the incumbent if the nodes or the time run out.

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
