"""Supports that no search looks at, as their columns nearly depend on each other.

A search leaves out supports with a column that is within `DEPENDENT` of the span of the others. Of
exact combinations nothing is lost, since fewer columns fit as well. Of others the rest is a
direction of its own, which a fit follows with coefficients of 1e8: such a support may be lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0.lazy import lazy
from blockl0.problem.orthogonal import (
    DEPENDENT,
    EPSILON,
    OPERATIONS,
    ROUNDED,
    UnitLengthColumns,
    independent_positions,
    least_squares,
    smallest_distance,
    tolerance_at,
)
from blockl0.problem.problem import Problem
from blockl0.problem.reduction import reduced
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

NONE = np.empty(0, dtype=np.int64)
CLEAR = 1e-6
"""Least singular value of unit columns that their products, rounded, can tell."""
MOST_ENTRIES = 50_000_000
"""Entries of X, or of the factor that stands for it, that are looked at."""
MOST_SUPPORTS = 5000
"""Supports that are all looked at; of more only those around dependences of one column."""
AT_ONCE = 500
"""Supports whose singular values, and pairs whose distances, are found by one call."""
FEIGNED = 1e-13
"""Share of the loss of no columns that rounding may feign."""
NO_SHARE = 1e-6
"""Coefficient of a unit column that takes no part in a dependence."""
MOST_CIRCUITS = 200
"""Dependent columns whose dependences are looked at, and pairs."""
NEIGHBOURS, MOST_NEIGHBOURS = 2.0 * DEPENDENT, 200
"""Distance of unit columns of which one is nearly the other, and neighbours that are compared."""


def left_out(problem: Problem, w: Floats, objective: float | None = None) -> Ints:
    """Return the columns of a dependence whose supports, left out, may be lower than w; or none.

    For plain problems with the squared loss; all supports within the budget are covered where they
    are few. Of many, those around each dependence of one column on others: what dependences may
    become by being added up is not searched, nor are more than `MOST_ENTRIES` entries, nor more
    than `MOST_NEIGHBOURS` copies of a column. O(mn·min(m, n)).
    """
    if not (problem.is_quadratic and problem.is_plain):
        return NONE
    problem = reduced(problem)
    is_large = problem.n_samples * problem.n_features > MOST_ENTRIES
    if is_large or _is_apart(problem):
        return NONE
    columns = UnitLengthColumns(problem)
    live = np.flatnonzero(problem.sq_norms > 0.0)
    Z = columns.Z[:, live]
    if live.size == 0 or smallest_distance(Z) > DEPENDENT:
        return NONE
    search = _Left(problem, Z, columns.b, live)
    objective = problem.objective(w) if objective is None else objective
    negligible = tolerance_at(problem, w, objective) + FEIGNED * problem.smooth_at_zero
    return search.lowest(objective - negligible)


def mark_apart(problem: Problem, H: Floats) -> None:
    """Remember that no column depends on others, if products H of unit columns tell.

    No singular value of the columns is below 1/‖inv(L)‖, with H = LL'.
    """
    L, info = _lapack.dpotrf(H, lower=1)
    if info != 0:
        return
    inverse, info = _lapack.dtrtri(L, lower=1)
    if info == 0 and float(np.vdot(inverse, inverse)) < CLEAR**-2:
        problem.shared["apart"] = problem.ridge


def _is_apart(problem: Problem) -> bool:
    """Return whether it is known that columns are apart, or the ridge alone sees to it."""
    if problem.ridge >= problem.shared.get("apart", np.inf):
        return True
    largest = float(problem.sq_norms.max(initial=0.0))
    return problem.ridge > DEPENDENT**2 * largest


class _Left:
    """The unit columns Z (r, n) of a problem with dependences, and the unit target."""

    def __init__(self, problem: Problem, Z: Floats, b: Floats, live: Ints) -> None:
        self.problem, self.Z, self.b, self.live = problem, Z, b, live
        self.price, budget = problem.sparsity
        self.scale = problem.smooth_at_zero
        self.kept = np.flatnonzero(np.isin(live, problem.keep))
        # a kept column of zeros has its place, too
        idle = problem.keep.size - self.kept.size
        self.free = np.setdiff1d(np.arange(live.size), self.kept)
        self.room = min(budget - problem.keep.size, self.free.size)
        self.paid = self.price * idle

    def lowest(self, ceiling: float) -> Ints:
        """Return the columns of the near dependence with the lowest support below a ceiling."""
        # of larger supports exact combinations among their columns may hide what is near
        sizes = range(max(self.room, 0) + 1)
        # of thousands of columns these are numbers of thousands of digits: none beyond is made
        counts = accumulate(comb(self.free.size, size) for size in sizes)
        if all(count <= MOST_SUPPORTS for count in counts):
            found = [self._among(size, ceiling) for size in sizes]
        else:
            found = [self._around(core, ceiling) for core in self._cores()]
        _, part = min(found, key=lambda item: item[0], default=(np.inf, NONE))
        return np.sort(self.live[part])

    def _among(self, size: int, ceiling: float) -> tuple[float, Ints]:
        """Return (value, columns) of the lowest near-dependent support of a size."""
        best, part = np.inf, NONE
        chosen = np.array(list(combinations(self.free, size)), dtype=np.int64)
        chosen = chosen.reshape(comb(self.free.size, size), size)
        kept = np.broadcast_to(self.kept, (len(chosen), self.kept.size))
        for some in np.array_split(np.hstack([kept, chosen]), len(chosen) // AT_ONCE + 1):
            if not some.size:
                continue
            look()
            for support, value, core in self._near(some):
                if value < min(best, ceiling):
                    best, part = value, support[core]
        return best, part

    def _near(self, supports: Ints) -> Iterator[tuple[Ints, float, Ints]]:
        """Yield (support, least value, positions of a core) of the nearly dependent ones."""
        U, values, V = np.linalg.svd(np.moveaxis(self.Z[:, supports], 0, 1), full_matrices=False)
        is_near = _near_directions(values, V)
        for i in np.flatnonzero(is_near.any(axis=1)):
            look()
            value = self._value(U[i], values[i]) + self.price * supports.shape[1]
            core = np.flatnonzero(np.abs(V[i][is_near[i]]).max(axis=0) > NO_SHARE)
            yield supports[i], value, core

    def _value(self, U: Floats, values: Floats) -> float:
        """Return what the objective of a support is at least, as far as rounding lets it be known.

        A direction is known to the precision of the entries, divided by its singular value.
        """
        is_real = values > ROUNDED / np.sqrt(values.size)
        along = np.abs(U.T @ self.b)[is_real]
        error = np.minimum(OPERATIONS * EPSILON / values[is_real], 1.0)
        rest = float(self.b @ self.b) - float(np.sum(np.minimum(along + error, 1.0) ** 2))
        return self.scale * max(rest, 0.0) + self.paid

    # many supports -------------------------------------------------------------------------------

    def _cores(self) -> Iterator[Ints]:
        """Yield sets of columns that nearly depend on each other and fit into the budget."""
        basis = independent_positions(self.Z)
        others = np.setdiff1d(np.arange(self.live.size), basis)
        yield from filter(self._is_near, _near_pairs(self.Z))
        for j in others[:MOST_CIRCUITS]:
            look()
            columns = np.append(basis, j)
            v = np.append(-least_squares(self.Z[:, basis], self.Z[:, j]), 1.0)
            order = np.argsort(-np.abs(v), kind="stable")
            v = v[order] / np.abs(v).max()
            rest = np.linalg.norm(np.cumsum(self.Z[:, columns[order]] * v, axis=1), axis=0)
            enough = np.flatnonzero(rest <= DEPENDENT)
            if enough.size:
                core = np.sort(columns[order[: enough[0] + 1]])
                if self._is_near(core):
                    yield core

    @lazy
    def _of_all(self) -> float:
        """Compute a lower bound on the loss with any columns."""
        U, values, _ = np.linalg.svd(self.Z, full_matrices=False)
        return self._value(U, values)

    def _is_near(self, core: Ints) -> bool:
        """Return whether columns nearly, and not wholly, depend on each other, and may be in."""
        if np.setdiff1d(core, self.kept).size > self.room:
            return False
        _, values, V = np.linalg.svd(self.Z[:, core], full_matrices=False)
        return bool(_near_directions(values, V).any())

    def _around(self, core: Ints, ceiling: float) -> tuple[float, Ints]:
        """Return (bound, core) of the supports that contain a core, if these may be lower."""
        inside = np.union1d(core, self.kept)
        U, values, _ = np.linalg.svd(self.Z[:, inside], full_matrices=False)
        here = self._value(U, values) + self.price * inside.size
        room = self.room - np.setdiff1d(inside, self.kept).size
        if room > 0 and here >= ceiling:
            # more columns can do no more than all of them
            here = self._of_all + self.price * inside.size
        return (here, core) if here < ceiling else (np.inf, core)


def _near_pairs(Z: Floats) -> Ints:
    """Return pairs of unit columns that are nearly, and not wholly, one up to sign, (p, 2).

    Columns that are near each other are so along any direction, too: they are neighbours when
    sorted by it, so that nothing of the size of all pairs is made. O(mn) where few are.
    """
    direction = np.random.default_rng(0).standard_normal(Z.shape[0])
    along = np.abs(direction @ Z) / np.linalg.norm(direction)
    order = np.argsort(along, kind="stable")
    found = [np.empty((0, 2), dtype=np.int64)]
    for step in range(1, min(MOST_NEIGHBOURS, order.size - 1) + 1):
        look()
        first, second = order[:-step], order[step:]
        is_close = along[second] - along[first] <= NEIGHBOURS
        if not is_close.any():
            break
        pairs = np.sort(np.column_stack([first, second])[is_close], axis=1)
        for some in np.array_split(pairs, len(pairs) // AT_ONCE + 1):
            A, B = Z[:, some[:, 0]], Z[:, some[:, 1]]
            rest = np.linalg.norm(A - B * np.sign(np.einsum("ij,ij->j", A, B)), axis=0)
            found.append(some[(rest <= NEIGHBOURS) & (rest > 0.5 * ROUNDED)])
        if sum(map(len, found)) >= MOST_CIRCUITS:
            break
    return np.concatenate(found)[:MOST_CIRCUITS]


def _near_directions(values: Floats, V: Floats) -> NDArray[np.bool_]:
    """Return which singular directions of k unit columns are those of near dependences.

    No column is nearer to the others than the least singular value, none of which is below a k-th
    part, by its root, of the least distance. Directions below that of exact combinations are
    rounding.
    """
    k = values.shape[-1]
    is_real = values > ROUNDED / np.sqrt(k)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = np.where(is_real, 1.0 / values, 0.0)
    sizes = np.sqrt(np.einsum("...ij,...i->...j", V**2, inverse**2)).max(axis=-1)
    return is_real & (values <= DEPENDENT) & (sizes >= 1.0 / DEPENDENT)[..., None]
