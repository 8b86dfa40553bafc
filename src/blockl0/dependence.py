"""Columns that depend on others, for method "exact": told from H = X'X + ridge·I, or from X."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lapack, solve_triangular

from blockl0 import kernels
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

MOST_PARTS = 64
"""Trees in which a problem with dependent columns is searched; with more, as one without bounds."""
NO_SHARE = 1e-6
"""Of a unit column in a combination of unit columns: smaller coefficients are rounding."""
PARALLEL = 1e-12
"""Columns whose correlation is within this of 1 are the same column."""
CAREFUL_PIVOT = 1e-8
"""Of unit columns, above which they are independent whatever their order."""
CORRECTIONS = 3
"""Of a projection by normal equations; each gains as many digits as those have."""


def distinct_columns(H: Floats, keep: Ints) -> Ints:
    """All columns but zero ones and copies (up to scale) of others; kept ones come first."""
    diagonal = np.diag(H)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    order = np.concatenate([keep, np.setdiff1d(np.arange(diagonal.size), keep)])
    order = order[diagonal[order] > 0.0]
    R = np.abs(H[np.ix_(order, order)]) / scale[order, None] / scale[order]
    is_copy = np.triu(R >= 1.0 - PARALLEL, 1).any(axis=0)
    distinct = np.sort(order[~is_copy])
    # a problem without any column still needs one to search over
    return distinct if distinct.size else np.zeros(1, dtype=np.int64)


def independent_parts(H: Floats, columns: Ints, keep: Ints, budget: int) -> list[tuple[Ints, Ints]]:
    """Sets of columns and forced columns that together hold an optimal support.

    When x_j is a combination of columns C with no zero coefficient, a support that holds all of
    C + j fits no better than without any one of them. So one of them is out: the first; or the
    first is in and the second is out; and so on. Each such part is taken apart in the same way.
    """
    waiting, parts = [(columns, np.intersect1d(columns, keep))], []
    while waiting:
        part, forced = waiting.pop(0)
        circuit = dependent_columns(H, part)
        free = np.setdiff1d(circuit, forced)
        # all of a circuit in: one of the earlier parts has the same fit with fewer columns
        if not free.size and np.isin(circuit, keep).all():
            parts.append((part, forced))
        for i, out in enumerate(free[: budget - forced.size + 1]):
            waiting.append((part[part != out], np.union1d(forced, free[:i])))
        if len(waiting) + len(parts) > MOST_PARTS:
            return [(columns, np.intersect1d(columns, keep))]
    return parts


def dependent_columns(H: Floats, columns: Ints) -> Ints:
    """The first column that is a combination of those before it, and those; or none."""
    scale = np.sqrt(H[columns, columns])
    scale[scale == 0.0] = 1.0
    R = H[np.ix_(columns, columns)] / scale[:, None] / scale
    try:
        if np.linalg.cholesky(R).diagonal().min(initial=1.0) ** 2 > kernels.PIVOT_FLOOR:
            return columns[:0]
    except np.linalg.LinAlgError:
        pass
    # row by row, up to the first pivot that vanishes
    L = np.zeros_like(R)
    for j in range(columns.size):
        row = _triangular(L[:j, :j], R[:j, j], 0)
        pivot = R[j, j] - row @ row
        if pivot <= kernels.PIVOT_FLOOR:
            share = _triangular(L[:j, :j], row, 1)
            return columns[np.append(np.flatnonzero(np.abs(share) > NO_SHARE), j)]
        L[j, :j], L[j, j] = row, np.sqrt(pivot)
    return columns[:0]


def independent_columns(H: Floats, columns: Ints) -> Ints:
    """A largest set of columns that are clearly independent of each other."""
    scale = np.sqrt(H[columns, columns])
    R = H[np.ix_(columns, columns)] / scale[:, None] / scale
    _, order, rank, _ = _lapack.dpstrf(R, tol=CAREFUL_PIVOT)
    return np.sort(columns[order[:rank] - 1])


def distance_to_span(problem: Problem, H: Floats, base: Ints, others: Ints) -> float:
    """The largest distance of other columns, of length 1, from the span of independent ones.

    From the columns themselves: their products tell nothing below the root of their rounding.
    O(mn) for each of the others.
    """
    if others.size == 0:
        return 0.0
    scale = np.sqrt(np.where(H.diagonal() > 0.0, H.diagonal(), 1.0))
    factor = cho_factor(H[np.ix_(base, base)] / scale[base, None] / scale[base])
    weights = 1.0 if problem.sample_weight is None else problem.sample_weight
    longest = 0.0
    for j in others:
        rest = problem.design.columns([j])[:, 0] / scale[j]
        for _ in range(CORRECTIONS):
            slopes = problem.design.rmatvec(weights * rest)[base] / scale[base]
            rest -= problem.design.column_matvec(base, cho_solve(factor, slopes) / scale[base])
        longest = max(longest, float(np.sqrt(np.sum(weights * rest**2))))
    return longest


def _triangular(L: Floats, b: Floats, trans: int) -> Floats:
    """inv(L) b, or inv(L') b; SciPy before 1.13 refuses systems without unknowns."""
    if b.size == 0:
        return b
    return solve_triangular(L, b, lower=True, trans=trans, check_finite=False)
