"""Supports that no search looks at, as their columns nearly depend on each other.

A search leaves out supports with a column that is within `DEPENDENT` of the span of the others. Of
exact combinations nothing is lost, since fewer columns fit as well. Of others the rest is a
direction of its own, which a fit follows with coefficients of 1e8: such a support may be lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from blockl0.data.panels import products, reflected_by
from blockl0.errors import OutOfTime
from blockl0.lazy import lazy
from blockl0.problem.factors import reduced
from blockl0.problem.newton import least_on_span
from blockl0.problem.orthogonal import (
    DEPENDENT,
    EPSILON,
    OPERATIONS,
    ROUNDED,
    TIE_TOLERANCE,
    UnitLengthColumns,
    are_told_apart,
    distances,
    independent_positions,
    reflected,
    tolerance_at,
)
from blockl0.problem.problem import Problem
from blockl0.run import Timer, look, timed_by

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE = np.empty(0, dtype=np.int64)
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
FIRST = 16
"""Columns of the largest shares in a dependence that are looked at first."""


def left_out(problem: Problem, w: Floats, objective: float | None = None) -> tuple[int, ...] | None:
    """Return the columns of a dependence whose supports, left out, may be lower than w; or none.

    None where the time of the surrounding blocks ends first. For plain problems; all supports
    within the budget are covered where they are few. Of many, those around each dependence of one
    column on others: what dependences may become by being added up is not searched, nor are more
    than `MOST_ENTRIES` entries, nor more than `MOST_NEIGHBOURS` copies of a column.
    O(mn·min(m, n)), a quarter of that where products tell columns apart; losses other than the
    squared one need a fit for each support with a dependence.
    """
    if not problem.is_plain:
        return ()
    try:
        with timed_by(Timer(np.inf)):
            return tuple(_left_out(reduced(problem), w, objective).tolist())
    except OutOfTime:
        return None


def _left_out(problem: Problem, w: Floats, objective: float | None) -> Ints:
    is_large = problem.n_samples * problem.n_features > MOST_ENTRIES
    if is_large or _is_apart(problem):
        return NONE
    live = np.flatnonzero(problem.sq_norms > 0.0)
    if problem.n_samples >= live.size:
        # a quarter of a factorization, and enough for most data
        mark_apart(problem, products(problem.unit_columns(live)[0]))
        if _is_apart(problem):
            return NONE
    search = _Left(problem, live)
    if search.are_apart:
        return NONE
    objective = problem.objective(w) if objective is None else objective
    negligible = FEIGNED * problem.smooth_at_zero
    if problem.is_quadratic:
        negligible += tolerance_at(problem, w, objective)
    else:
        negligible += TIE_TOLERANCE * abs(objective)
    return search.lowest(objective - negligible)


def mark_apart(problem: Problem, H: Floats) -> None:
    """Remember that no column depends on others, if products H of unit columns tell."""
    if are_told_apart(H):
        problem.shared["apart"] = problem.ridge


def _is_apart(problem: Problem) -> bool:
    """Return whether it is known that columns are apart, or the ridge alone sees to it."""
    if problem.ridge >= problem.shared.get("apart", np.inf):
        return True
    largest = float(problem.sq_norms.max(initial=0.0))
    return problem.ridge > DEPENDENT**2 * largest


class _Factor(NamedTuple):
    """Independent columns and their distances; the others' shares of them, and the target's length
    along each; the rest of the others, and of the target.
    """

    basis: Ints
    apart: Floats
    others: Ints
    shares: Floats
    along: Floats
    rest: Floats


class _Left:
    """The unit columns Z (r, n) of a problem with dependences, and the unit target."""

    def __init__(self, problem: Problem, live: Ints) -> None:
        columns = UnitLengthColumns(problem)
        self.problem, self.Z, self.b, self.live = problem, columns.Z[:, live], columns.b, live
        self.price, budget = problem.sparsity
        self.scale = problem.smooth_at_zero
        self.kept = np.flatnonzero(np.isin(live, problem.keep))
        # a kept column of zeros has its place, too
        idle = problem.keep.size - self.kept.size
        self.free = np.setdiff1d(np.arange(live.size), self.kept)
        self.room = min(budget - problem.keep.size, self.free.size)
        self.paid = self.price * idle

    @lazy
    def R(self) -> Floats | None:
        """Compute the triangle of the columns; None if there are more than rows."""
        r, n = self.Z.shape
        if r < n or n == 0:
            return None
        top = self.Z[:n]
        # a factor of tall data is triangular already
        is_triangular = not (self.Z[n:].any() or np.tril(top, -1).any())
        return top if is_triangular else reflected(self.Z)[2]

    @property
    def are_apart(self) -> bool:
        """Whether no column depends on others."""
        if self.R is None:
            return self.live.size == 0
        return float(distances(self.R).min()) > DEPENDENT

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
            value = self._least(supports[i], U[i], values[i]) + self.price * supports.shape[1]
            core = np.flatnonzero(np.abs(V[i][is_near[i]]).max(axis=0) > NO_SHARE)
            yield supports[i], value, core

    def _least(self, support: Ints, U: Floats, values: Floats) -> float:
        """Return a lower bound of the loss on a support, of which singular vectors are known."""
        if self.problem.is_quadratic:
            return self._value(U.T @ self.b, values)
        return least_on_span(self.problem, self.live[support]) + self.paid

    def _value(self, along: Floats, values: Floats) -> float:
        """Return what the objective of a support is at least, as far as rounding lets it be known.

        A direction is known to the precision of the entries, divided by its singular value.
        """
        is_real = values > ROUNDED / np.sqrt(values.size)
        error = np.minimum(OPERATIONS * EPSILON / values[is_real], 1.0)
        taken = np.minimum(np.abs(along[is_real]) + error, 1.0)
        rest = float(self.b @ self.b) - float(taken @ taken)
        return self.scale * max(rest, 0.0) + self.paid

    # many supports -------------------------------------------------------------------------------

    def _cores(self) -> Iterator[Ints]:
        """Yield sets of columns that nearly depend on each other and fit into the budget."""
        yield from filter(self._is_near, _near_pairs(self.Z))
        known = self._factor
        for j, shares in zip(known.others[:MOST_CIRCUITS], known.shares.T, strict=False):
            core = self._shortest(np.append(known.basis, j), np.append(-shares, 1.0))
            if core.size and self._is_near(core):
                yield core

    def _shortest(self, columns: Ints, v: Floats) -> Ints:
        """Return the fewest columns, of the largest shares, that v makes dependent; or none."""
        order = np.argsort(-np.abs(v), kind="stable")
        v, size = v[order] / np.abs(v).max(), FIRST
        while True:
            look()
            part = columns[order[:size]]
            rest = np.linalg.norm(np.cumsum(self.Z[:, part] * v[:size], axis=1), axis=0)
            enough = np.flatnonzero(rest <= DEPENDENT)
            if enough.size:
                return np.sort(part[: enough[0] + 1])
            if size >= v.size:
                return NONE
            size *= 2

    @lazy
    def _factor(self) -> _Factor:
        """Factor independent columns, the first ones as far as that will do, then the others."""
        if self.R is not None:
            first = np.flatnonzero(np.abs(self.R.diagonal()) > DEPENDENT)
            found = self._factored(first)
            if found.apart.min() > DEPENDENT:
                return found
        return self._factored(independent_positions(self.Z))

    def _factored(self, basis: Ints) -> _Factor:
        """Factor columns, then the others and the target."""
        others = np.setdiff1d(np.arange(self.live.size), basis)
        vectors, scales, R = reflected(self.Z[:, basis])
        turned = reflected_by(vectors, scales, np.column_stack([self.Z[:, others], self.b]))
        top, rest = turned[: basis.size], turned[basis.size :]
        shares = solve_triangular(R, top[:, :-1], check_finite=False)
        return _Factor(basis, distances(R), others, shares, top[:, -1], rest)

    @lazy
    def _of_all(self) -> float:
        """Compute a lower bound on the loss with any columns.

        The rest of a dependent column has the rounding error of all its shares.
        """
        if not self.problem.is_quadratic:
            return least_on_span(self.problem, self.live) + self.paid
        known = self._factor
        U, values, _ = np.linalg.svd(known.rest[:, :-1], full_matrices=False)
        values = values / (1.0 + np.linalg.norm(known.shares, axis=0).max(initial=0.0))
        least = 1.0 / float(np.linalg.norm(1.0 / known.apart))
        along = np.append(float(np.linalg.norm(known.along)), U.T @ known.rest[:, -1])
        return self._value(along, np.append(least, values))

    def _is_near(self, core: Ints) -> bool:
        """Return whether columns nearly, and not wholly, depend on each other, and may be in."""
        look()
        if np.setdiff1d(core, self.kept).size > self.room:
            return False
        _, values, V = np.linalg.svd(self.Z[:, core], full_matrices=False)
        return bool(_near_directions(values, V).any())

    def _around(self, core: Ints, ceiling: float) -> tuple[float, Ints]:
        """Return (bound, core) of the supports that contain a core, if these may be lower."""
        inside = np.union1d(core, self.kept)
        U, values, _ = np.linalg.svd(self.Z[:, inside], full_matrices=False)
        here = self._least(inside, U, values) + self.price * inside.size
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
