"""Linearly dependent columns in method "exact": splitting a problem into parts without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

MOST_PARTS = 64
"""Largest number of trees for dependent columns; a problem that needs more has no bound."""
NO_SHARE = 1e-6
"""Coefficients of unit columns below this do not count as part of a combination."""
CLEAR_PIVOT = 1e-8
"""Pivots of unit columns above this come from the Gram matrix; others are recomputed from X."""
NEAR_COPY, COPY = 1e-8, 5e-16
"""Columns whose correlation is within NEAR_COPY of ±1 are compared directly.

Unit columns that differ by at most COPY are multiples of each other up to the last digit. Larger
differences may matter: with a third column 1e-8 away they are multiplied by 1e8.
"""


def distinct_columns(problem: Problem, H: Floats) -> Ints:
    """Select all columns but zeros and (scaled) copies, preferring kept ones.

    H (n, n) holds the products of unit columns.
    """
    n, keep = H.shape[0], problem.keep
    is_near = np.abs(H) >= 1.0 - NEAR_COPY
    # nonzero columns are close to themselves
    if is_near.diagonal().all() and np.count_nonzero(is_near) == n:
        return np.arange(n)
    order = np.concatenate([keep, _without(np.arange(n), keep)])
    order = order[H.diagonal()[order] > 0.0]
    near = np.triu(is_near[np.ix_(order, order)], 1)
    is_copy = np.zeros(order.size, dtype=np.bool_)
    for j in np.flatnonzero(near.any(axis=0)):
        others = np.flatnonzero(near[:, j] & ~is_copy)
        if others.size:
            A = problem.unit_columns(order[np.append(others, j)])[0]
            signs = np.sign(H[order[others], order[j]])
            is_copy[j] = np.linalg.norm(A[:, :-1] * signs - A[:, -1:], axis=0).min() <= COPY
    return np.sort(order[~is_copy])


def independent_parts(
    H: Floats,
    columns: Ints,
    keep: Ints,
    budget: int,
    are_independent: Callable[[Ints], bool],
    is_late: Callable[[], bool],
) -> list[tuple[Ints, Ints]]:
    """Split into pairs (in, open): each admissible support is one "in" plus some of its "open".

    If x_j is nearly a combination of columns C, either the first of C + j is out; or it is in and
    the second is out; and so on; or all are in, which is omitted if they are dependent. Each part
    is split in the same way, unless that makes too many or takes too long.
    """
    whole = keep, _without(columns, keep)
    waiting, parts = [whole], []
    while waiting:
        forced, free = waiting.pop(0)
        circuit = _without(dependent_columns(H, np.concatenate([forced, free])), forced)
        room = budget - forced.size
        if circuit.size == 0 or room <= 0:
            parts.append((forced, free))
            continue
        for i in range(min(circuit.size, room + 1)):
            taken = np.union1d(forced, circuit[:i])
            waiting.append((taken, np.setdiff1d(free, circuit[: i + 1])))
        taken = np.union1d(forced, circuit)
        if circuit.size <= room and are_independent(taken):
            waiting.append((taken, np.setdiff1d(free, circuit)))
        if len(waiting) + len(parts) > MOST_PARTS or is_late():
            return [whole]
    return parts


def dependent_columns(H: Floats, columns: Ints) -> Ints:
    """Find the first column that is nearly a combination of earlier ones, with those; or none."""
    R = H[columns][:, columns]
    L, info = _lapack.dpotrf(R, lower=1)
    # up to the first unclear pivot, or the first that is not positive
    n_made = columns.size if info == 0 else info - 1
    small = (L.diagonal()[:n_made] ** 2 <= CLEAR_PIVOT).nonzero()[0]
    j = int(small[0]) if small.size else n_made
    if j == columns.size:
        return columns[:0]
    share = _triangular(L[:j, :j], _triangular(L[:j, :j], R[:j, j], 0), 1)
    return columns[np.append(np.flatnonzero(np.abs(share) > NO_SHARE), j)]


def _without(columns: Ints, others: Ints) -> Ints:
    """Return the columns not among others, ascending; without others they already are."""
    return np.setdiff1d(columns, others) if columns.size and others.size else columns


def _triangular(L: Floats, b: Floats, trans: int) -> Floats:
    """Compute inv(L) b, or inv(L') b; SciPy before 1.13 refuses systems without unknowns."""
    if b.size == 0:
        return b
    return solve_triangular(L, b, lower=True, trans=trans, check_finite=False)
