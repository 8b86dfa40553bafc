"""Stationarity without a quadratic majorizer: every change is tested on the loss itself.

This applies if curvature is unbounded, or if a sample has several predictors. There is no tableau:
columns that cannot improve are excluded by duality, the others re-fitted. Groups, bounds, costs and
several responses are tested here as well, for every loss: blocks are then blocks of units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.certify.levels import Better, PointUnderTest
from blockl0.certify.optimality import improve_globally
from blockl0.errors import OutOfReachError
from blockl0.problem.fits import Fits, make_fits
from blockl0.problem.problem import Problem
from blockl0.units import COLUMNS
from blockl0.validate import check_choice, check_integer

Floats = NDArray[np.float64]


def applies(problem: Problem) -> bool:
    """Check if only the loss itself can be tested: no majorizer, or structure beyond a tableau."""
    has_none = problem.n_outputs > 1 or not np.isfinite(problem.loss.curvature_bound)
    return has_none or not problem.is_plain


def improve(
    point: PointUnderTest, level: Any, outside: str, n_samples: int | None
) -> Better | None:
    """Find a better point by a change that the level covers; None if there is none."""
    problem = point.problem
    size = _check_level(problem, level, outside, n_samples)
    if size > 0 and size == problem.n_units:
        return improve_globally(point, level)
    is_full = problem.sparsity.price == 0.0 and point.members.size == problem.sparsity.budget
    if size == 2 and not is_full:
        raise OutOfReachError(
            f"`level`=2 of {_lacking(problem)} is known only without a price and for a "
            f"budget that is used up, got alpha={problem.sparsity.price:g} and "
            f"{point.members.size} of n_nonzero_coefs={problem.sparsity.budget} {_what(problem)}; "
            "ask for level=1."
        )
    fits, units = make_fits(problem), problem.units
    fit = fits.minimum(units.columns(point.members), point.w)
    moved = np.square(np.atleast_2d((fit.w - point.w).T)).sum(axis=0)
    change = np.array([moved[units.members(int(unit))].sum() for unit in point.members])
    block = point.members[np.argsort(-change, kind="stable")][:size]
    better = point.confirm(block, fit.w)
    if better is not None or size == 0:
        return better
    return _improve_by_one(point, fits, fit.w, size)


def _improve_by_one(point: PointUnderTest, fits: Fits, w: Floats, size: int) -> Better | None:
    """Try every addition and removal, and for blocks of two every swap, all re-fitted."""
    problem = point.problem
    moves = problem.kind.load("moves")(problem, fits)
    # the point's own units: its fit may leave out a unit that depends on others
    verdict = moves.check(w, point.objective, point.slack, swaps=size == 2, units=point.members)
    if verdict.better is None:
        if not verdict.is_complete:
            raise OutOfReachError(
                f"`level`={size} is out of reach of a complete certificate with "
                f"{problem.n_units} {_what(problem)} and loss={problem.loss.name!r}: "
                f"{verdict.why}. Ask for level='basic', or leave out {_what(problem)}."
            )
        return None
    there = problem.units.support(verdict.better)
    better = point.confirm(np.setxor1d(point.members, there), verdict.better)
    if better is None:
        raise OutOfReachError(
            f"`level`={size}: a change was found that is lower by rounding only, so that nothing "
            "can be said; ask again with another `tol`."
        )
    return better


def _check_level(problem: Problem, level: Any, outside: str, n_samples: int | None) -> int:
    """Return the block size, 0 for the support alone, refusing what needs a quadratic."""
    lacks = f"needs a quadratic above the loss, and loss={problem.loss.name!r} has none"
    if not problem.is_plain:
        lacks = "is known for columns that are chosen one by one, at one price and without bounds"
    if n_samples is not None:
        raise ValueError(f"`n_samples` {lacks}; leave it out.")
    if level == "basic":
        return 0
    if isinstance(level, str):
        check_choice("level", level, ("basic", "L"))
        raise ValueError(f"`level`='L' {lacks}; ask for level='basic', 1 or 2.")
    if outside == "fixed":
        raise ValueError(
            f"`outside`='fixed' {lacks}; leave it out: the outside is then re-fitted, which is the "
            "stronger statement."
        )
    n = problem.n_units
    size = min(check_integer("level", level, low=1), n)
    if 2 < size < n:
        raise OutOfReachError(
            f"`level`={level} {lacks}; ask for level='basic', 1 or 2, or for level={n}, that is "
            f"all {_what(problem)}."
        )
    return size


def _what(problem: Problem) -> str:
    """Name what a level counts."""
    return "columns" if problem.units is COLUMNS else "groups"


def _lacking(problem: Problem) -> str:
    """Name the reason why there is no tableau."""
    if problem.is_plain:
        return f"loss={problem.loss.name!r}"
    return "groups, bounds, costs or several responses"
