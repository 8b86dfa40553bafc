"""Sets of columns that are nearly as good as a chosen one: those one exchange away are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.certify.levels import is_perfect, objective_at_zero
from blockl0.moves.projected_tableau import ProjectedTableau
from blockl0.moves.single_moves import STEPS
from blockl0.problem.factors import reduced
from blockl0.problem.fits import Fits, make_fits
from blockl0.problem.problem import Problem, Sparsity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLOSE = 0.005
"""Share of the objective within which another set is as good for most purposes."""
MOST_WORK = 1e8
"""Multiplications up to which exchanges are counted: about a tenth of a second."""


def count_close(problem: Problem, coef: Any, share: float = CLOSE) -> int | None:
    """Count the exchanges of one unit for another that raise the objective by at most a share.

    Every exchange is re-fitted, for the squared loss all at once by projections. Return None where
    that takes too long, and within bounds, where projections only limit what an exchange is worth.
    """
    if problem.bounds is not None:
        return None
    problem = reduced(problem)
    w = problem.from_given(coef)
    units = problem.occupied(w)
    movable = np.setdiff1d(units, problem.keep)
    if not movable.size or units.size == problem.n_units:
        return None
    problem = replace(problem, sparsity=Sparsity(problem.sparsity.price, int(units.size)))
    columns, fits = problem.units.columns(units), make_fits(problem)
    if problem.is_quadratic:
        work = float(problem.n_samples) * problem.n_features * (1.0 + columns.size)
    else:
        n_exchanges = movable.size * (problem.n_units - units.size)
        size = columns.size * problem.loss.n_directions
        work = STEPS * float(problem.n_samples) * n_exchanges * size**2
    if work > MOST_WORK:
        return None
    fit = fits.minimum(columns, w)
    if is_perfect(fit.value, objective_at_zero(problem)):
        return 0
    count: Callable[..., int | None] = _projected if problem.is_quadratic else _fitted
    ceiling = (1.0 + share) * (fit.value + problem.cost(units))
    return count(problem, fits, units, fit.w, movable, ceiling)


def _projected(
    problem: Problem, fits: Fits, units: Ints, w: Floats, movable: Ints, ceiling: float
) -> int | None:
    """Count by projections; None where columns of the support nearly depend on each other."""
    tableau = ProjectedTableau(problem)
    tableau.load(units, w)
    if not tableau.support.is_resolved:
        return None
    here = problem.smooth(w) + problem.cost(units)
    return int(np.count_nonzero(tableau.changes().entries() <= ceiling - here))


def _fitted(
    problem: Problem, fits: Fits, units: Ints, w: Floats, movable: Ints, ceiling: float
) -> int:
    """Count by fits, each of which ends where it provably stays above the ceiling."""
    n_found = 0
    for leaving in movable:
        rest = units[units != leaving]
        for entering in np.setdiff1d(np.arange(problem.n_units), units):
            chosen = np.sort(np.append(rest, entering))
            most = ceiling - problem.cost(chosen)
            n_found += fits.minimum(problem.units.columns(chosen), w, most).value <= most
    return n_found
