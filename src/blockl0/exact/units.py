"""Frames of groups: orthonormal directions of every group instead of columns of length one.

Every unit J has orthonormal columns Z_J that span its own (including weights and ridge), so that
the loss is ½‖y − Σ Z_J v_J‖² and the diagonal blocks of H = Z'Z are identities.

Directions shared with other units, such as the constant that the levels of every category add up
to, have no curvature to take away. They are projected out of all columns and y: the bound is that
of a problem in which they are free, and so no higher.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from blockl0.data.panels import cholesky, products
from blockl0.exact.bounds import EPSILON, Directions
from blockl0.exact.products import Frame
from blockl0.exact.watch import DENSE, NEVER, Watch
from blockl0.problem.orthogonal import DEPENDENT, PRECISION, ROUNDED, orthonormal, project_away
from blockl0.problem.problem import Problem
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 6000
"""Directions of all units together for which products are formed."""
FLAT, MOST_SHARED, ROUNDS = 1e-9, 0.2, 6
"""Curvature below which a direction is flat; share of the rows that flat directions may take up;
and rounds of searching for them.
"""
EIGENVALUES = 1.0
"""Work of all eigenvalues of a matrix, in cubes of its size."""
ROUNDING_DOWN = 1.0 - 1e-12
"""Factor of the ridge's curvature, which is the quotient of an eigenvalue."""


class NoBoundError(Exception):
    """Raised if no bound exists for a problem; says why."""


def frame_of_groups(problem: Problem, units: Ints, watch: Watch = NEVER) -> Frame:
    """Form the products of the directions of some units, ascending, for the squared loss.

    Raises
    ------
    NoBoundError
        If they are too many, or if too many depend on each other.
    OutOfTime
        If time is up before.
    """
    members = Directions.of_columns(problem).part(units, 0)
    columns, ends = members.at, members.starts
    n, m = columns.size, problem.n_samples
    if n > MOST:
        raise NoBoundError(f"products of {n} columns do not fit; the most is {MOST}")
    # products, and their eigenvalues
    watch.spend((DENSE * m + EIGENVALUES * n) * float(n) ** 2)
    watch.check()
    A, b, scale = problem.unit_columns(columns)
    look()
    b = b if b.ndim == 2 else b[:, None]
    given = [A[:, i:j] for i, j in pairwise(ends)]
    parts, b, is_shared = _directions(given, b)
    Z = np.hstack([b[:, :0], *parts])
    starts = np.cumsum([0, *(part.shape[1] for part in parts)]).astype(np.int64)
    low, high = np.full(Z.shape[1], -np.inf), np.full(Z.shape[1], np.inf)
    # products of unit columns, each rounded a few times; twice, as the bases are rounded, too
    rounding = 2.0 * EPSILON * (len(A) + 16.0) * problem.design.rounding
    if members.is_bounded:
        _set_limits(members, scale, given, parts, starts, low, high, rounding)
    H, at = products(Z), np.arange(Z.shape[1])
    for i, j in pairwise(starts):
        H[i:j, i:j] = np.eye(j - i)
    # a projected column has less of the ridge than it was given
    ridge = np.zeros(units.size) if is_shared else _ridge(problem, given, scale, ends)
    return Frame(
        units, Directions.of(problem, units, at, starts, low, high), np.ascontiguousarray(H),
        np.ascontiguousarray(Z.T @ b), ridge, at, np.ones(at.size), 0.5 * float(np.vdot(b, b)),
        rounding, m,
    )  # fmt: skip


def _directions(given: list[Floats], b: Floats) -> tuple[list[Floats], Floats, bool]:
    """Make the columns of every unit orthonormal, with shared directions projected out.

    Returns them, what is left of y, and whether any direction is shared.
    """
    parts, is_shared = given, False
    for i in range(ROUNDS):
        # whatever is not rounding of the data may be used, with large coefficients
        nearest = ROUNDED if i else 2.0 * PRECISION
        parts = [_orthonormal(part, nearest) for part in parts]
        Z = np.hstack([b[:, :0], *parts])
        look()
        null = _null_space(products(Z))
        if null.shape[1] == 0:
            return parts, b, is_shared
        shared, is_shared = _shared(parts, null), True
        if shared.shape[1] > MOST_SHARED * len(Z):
            break
        parts = [project_away(shared, part)[0] for part in parts]
        b = project_away(shared, b)[0]
    raise NoBoundError("columns of different groups depend on each other, without a `ridge`")


def _orthonormal(part: Floats, nearest: float) -> Floats:
    """Orthonormal columns that span those of a unit, with a look at the clock."""
    look()
    return orthonormal(part, nearest)


def _set_limits(
    members: Directions, scale: Floats, given: list[Floats], parts: list[Floats], starts: Ints,
    low: Floats, high: Floats, rounding: float,
) -> None:  # fmt: skip
    """Convert bounds of one-column units to their own direction; others have none."""
    for u, (column, part) in enumerate(zip(given, parts, strict=True)):
        if column.shape[1] != 1 or part.shape[1] != 1:
            continue
        # length of the column along its direction; the part projected out is free
        along = float(part[:, 0] @ column[:, 0])
        if along <= DEPENDENT:
            continue
        j, at = int(members.starts[u]), int(starts[u])
        # widened by as much as rounding may have narrowed them
        wide = scale[j] * along * (1.0 + rounding)
        low[at], high[at] = members.low[j] * wide, members.high[j] * wide


def _ridge(problem: Problem, given: list[Floats], scale: Floats, ends: Ints) -> Floats:
    """Compute the curvature of every unit that the ridge alone allows: ridge over its largest one.

    For v = Rw in an orthonormal basis ‖w‖² is at least ‖v‖² over the largest eigenvalue of R'R.
    """
    if problem.ridge == 0.0:
        return np.zeros(len(given))
    largest = np.empty(len(given))
    for u, part in enumerate(given):
        columns = part * scale[ends[u] : ends[u + 1]]
        look()
        largest[u] = np.linalg.eigvalsh(columns.T @ columns)[-1] if part.shape[1] else 1.0
    return ROUNDING_DOWN * problem.ridge / np.maximum(largest, problem.ridge)


def _null_space(H: Floats) -> Floats:
    """Find orthonormal directions of nearly no curvature, for a unit diagonal, (N, r)."""
    N = len(H)
    M = np.array(H, order="F")
    M.flat[:: N + 1] -= FLAT + N * (N + 2.0) * EPSILON
    if cholesky(M) is not None:
        return np.empty((N, 0))
    look(EIGENVALUES * float(N) ** 3)
    values, vectors = np.linalg.eigh(H)
    return vectors[:, values <= FLAT]


def _shared(parts: list[Floats], null: Floats) -> Floats:
    """Compute orthonormal columns that span what units share, from vanishing combinations."""
    starts = np.cumsum([0, *(part.shape[1] for part in parts)])
    common = [part @ null[a:b] for part, a, b in zip(parts, starts[:-1], starts[1:], strict=True)]
    U, values, _ = np.linalg.svd(np.hstack(common), full_matrices=False)
    return U[:, values > 1e-6]
