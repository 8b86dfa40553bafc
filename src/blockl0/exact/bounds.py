"""Bounds of nodes: what a relaxation proves about a subtree, and which units it fixes.

A node holds the supports that contain all `included` units and some `free` ones; a unit is a column
or a group. The smooth part is f, H its Hessian, and D a diagonal, d_u on the directions of unit u,
such that f − ½w'Dw is still convex. For any point w, any v has

    f(v) + Σ prices of the units of v  ≥  constant − b'v + ½ v'Dv + Σ prices,

the tangent of f − ½w'Dw at w, with b = Dw − ∇f(w). Its minimum over the supports of the node has a
closed form: an included unit adds −‖b_u‖²/2d_u, a free one that enters subtracts its *score* s_u =
‖b_u‖²/2d_u − price_u, of which the `room` largest positive ones count. Within bounds sup b'v −
½d‖v‖² over these replaces ‖b‖²/2d. The bounds with one more unit included, or excluded, follow from
the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.exact.last_columns import Finished
from blockl0.problem.problem import Problem
from blockl0.run import is_late

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_lapack: Any = lapack

EPSILON = float(np.finfo(np.float64).eps)
SWEEP_WORK = 5e7
"""Multiplications of the sweeps between two looks at the clock."""
SMALL_SYSTEM = 128
"""Unknowns up to which the kernel solves a linear system itself, without LAPACK."""
BISECTIONS = 60
"""Bisections of a threshold, with bounds or several prices."""


class SparsePoint(NamedTuple):
    """The nonzero coefficients of a point, and their columns; of groups, their directions."""

    at: Ints
    values: Floats

    def dense(self, n: int, n_outputs: int) -> Floats:
        """Return all n coefficients, (n, C)."""
        found = np.zeros((n, n_outputs))
        if self.at.size:
            found[self.at] = self.values
        return found


NOWHERE = SparsePoint(np.empty(0, dtype=np.int64), np.empty((0, 1)))
"""The point zero."""


@dataclass(eq=False)
class Node:
    """The supports with all of `included` and some of `free`, none of them below `bound`.

    Attributes
    ----------
    included, free : ndarray of int64
        Units.
    bound : float
        Lower bound on the full objective.
    z : ndarray, as `free`
        Memberships of the last relaxation.
    size : ndarray, as `free`
        Norms of the coefficients there.
    point : SparsePoint
        That point, where the next relaxation starts.
    d : ndarray, as `included` and `free` together, or None
        Curvature taken away, in the frame's units; None for that of the ridge.
    frame : int
        Which products the node is relaxed on; −1 for the data themselves.
    depth : int
    fresh : int
        Free units when `d` was last raised.
    tried : int
        Free units when the tableau search was last tried on it.
    record : int
        The node's place in the recorded proof.
    """

    included: Ints
    free: Ints
    bound: float
    z: Floats
    d: Floats | None = None
    frame: int = -1
    depth: int = 0
    fresh: int = 0
    tried: int = 0
    theta: float = 0.0
    record: int = -1
    size: Floats = field(default_factory=lambda: np.zeros(0))
    point: SparsePoint = NOWHERE

    @property
    def units(self) -> Ints:
        """All units that may occur, included ones first."""
        return np.concatenate([self.included, self.free])

    @property
    def nbytes(self) -> int:
        """Memory of the node while it waits, in bytes."""
        arrays = (self.included, self.free, self.z, self.size, self.d, *self.point)
        return 400 + sum(a.nbytes for a in arrays if a is not None)

    def only(self, is_left: Bools) -> None:
        """Exclude free units."""
        if self.d is not None:
            chosen = np.concatenate([np.ones(self.included.size, dtype=np.bool_), is_left])
            self.d = self.d[chosen]
        self.free, self.z, self.size = self.free[is_left], self.z[is_left], self.size[is_left]

    def include(self, joins: Bools) -> None:
        """Move free units to the included ones."""
        n_in = self.included.size
        if self.d is not None:
            order = [np.arange(n_in), n_in + np.flatnonzero(joins), n_in + np.flatnonzero(~joins)]
            self.d = self.d[np.concatenate(order)]
        self.included = np.concatenate([self.included, self.free[joins]])
        self.free, self.z, self.size = self.free[~joins], self.z[~joins], self.size[~joins]


class Directions(NamedTuple):
    """The coefficients of some units, unit by unit; of a node's, included units first.

    Attributes
    ----------
    at : ndarray of int64 (N,)
        Their places: rows of products, or columns of X.
    starts : ndarray of int64 (units + 1,)
        Where each unit starts in `at`.
    prices : ndarray (units,)
    price : float
        The least price of all units of the problem.
    low, high : ndarray (N,)
        Bounds.
    n_in : int
        Included units.
    is_single : bool
        Whether every unit has one direction.
    is_bounded, is_mixed : bool
        Whether there are bounds; and whether there are bounds, or several prices.
    """

    at: Ints
    starts: Ints
    prices: Floats
    price: float
    low: Floats
    high: Floats
    n_in: int
    is_single: bool
    is_bounded: bool
    is_mixed: bool

    @classmethod
    def of(
        cls, problem: Problem, units: Ints, at: Ints, starts: Ints, low: Floats, high: Floats
    ) -> Directions:
        """Collect the directions of some units of a problem."""
        prices = unit_prices(problem)
        price = float(prices.min(initial=np.inf)) if prices.size else 0.0
        is_bounded = bool(np.isfinite(low).any() or np.isfinite(high).any())
        is_single = at.size == units.size and bool((np.diff(starts) == 1).all())
        is_mixed = is_bounded or bool((prices != price).any())
        return cls(at, starts, prices[units], price, low, high, 0, is_single, is_bounded, is_mixed)

    @classmethod
    def of_columns(cls, problem: Problem) -> Directions:
        """Return the columns of all units of a problem as their directions."""
        n, n_units = problem.n_features, problem.n_units
        owners = problem.units.each(np.arange(n))
        at = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[at], np.arange(n_units + 1))
        low, high = np.full(n, -np.inf), np.full(n, np.inf)
        if problem.bounds is not None:
            low, high = problem.bounds[0][at], problem.bounds[1][at]
        return cls.of(problem, np.arange(n_units), at, starts, low, high)

    def rows(self, chosen: Ints) -> tuple[Ints, Ints]:
        """Return the rows of some of the units, by their places, and where each starts there."""
        if self.is_single:
            return chosen, np.arange(chosen.size + 1)
        sizes = self.starts[chosen + 1] - self.starts[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], sizes), starts

    def part(self, chosen: Ints, n_in: int) -> Directions:
        """Return those of some of the units, by their places, of which the first are included."""
        rows, starts = self.rows(chosen)
        return self._replace(
            at=self.at[rows], starts=starts, prices=self.prices[chosen], low=self.low[rows],
            high=self.high[rows], n_in=n_in,
        )  # fmt: skip

    @property
    def is_in(self) -> Bools:
        """Which units are included."""
        return np.arange(self.prices.size) < self.n_in

    @property
    def paid(self) -> float:
        """Price of the included units."""
        return float(self.prices[: self.n_in].sum())

    def spread(self, of_units: Floats) -> Floats:
        """Repeat a number per unit for each of its directions, (N, 1)."""
        return (of_units if self.is_single else np.repeat(of_units, np.diff(self.starts)))[:, None]

    def sums(self, entries: Floats) -> Floats:
        """Sum the rows (N,) or (N, C) of each unit."""
        rows = entries.sum(axis=1) if entries.ndim == 2 else entries
        if self.is_single:
            return rows
        # a segment without entries would have the next entry as its sum
        found = np.add.reduceat(np.append(rows, 0.0), self.starts[:-1])
        return np.where(np.diff(self.starts) > 0, found, 0.0)

    def blocks(self, squares: Floats) -> Floats:
        """Sum the entries (N, N) of every pair of units."""
        sizes = np.diff(self.starts)
        # a last row and column, as a segment may start behind the end
        found = np.add.reduceat(np.pad(squares, (0, 1)), self.starts[:-1], axis=0)
        found = np.add.reduceat(found, self.starts[:-1], axis=1)
        return np.where(np.outer(sizes, sizes) > 0, found, 0.0)

    def norms(self, v: Floats) -> Floats:
        """Compute the norm of every unit's coefficients v (N, C)."""
        return np.abs(v[:, 0]) if self.is_single and v.shape[1] == 1 else np.sqrt(self.sums(v * v))

    def full_sizes(self, v: Floats, d: Floats, theta: float) -> Floats:
        """Return √d‖v‖ of every unit from which its membership is one, for a threshold.

        One coefficient within bounds is full at its bound at the latest.
        """
        found = np.full(self.prices.size, theta)
        if not self.is_mixed:
            return found
        found = np.sqrt(theta * theta + 2.0 * (self.prices - self.price))
        if v.shape[1] == 1:
            alone = np.flatnonzero(np.diff(self.starts) == 1)
            at = self.starts[alone]
            sides = np.where(v[at, 0] > 0.0, self.high[at], -self.low[at])
            found[alone] = np.minimum(found[alone], sides * np.sqrt(d[alone]))
        return found

    def memberships(self, v: Floats, d: Floats, theta: float) -> Floats:
        """Compute the memberships of a point for a threshold."""
        sizes, full = np.sqrt(d) * self.norms(v), self.full_sizes(v, d, theta)
        found: Any = np.where(sizes < full, sizes / np.maximum(full, 1e-300), sizes > 0.0)
        return found


def unit_prices(problem: Problem) -> Floats:
    """Return the price of every unit."""
    costs = np.ones(problem.n_units) if problem.costs is None else problem.costs
    return problem.sparsity.price * costs


class Relaxed(NamedTuple):
    """A relaxed point of a node, and what it proves.

    Attributes
    ----------
    bound : float
        Lower bound on the full objective, less rounding.
    value : float
        The relaxed objective at the point: no relaxation with the same d proves more.
    scores : ndarray, as `node.free`
        s_u of every free unit.
    last, following : float
        The last score that counts, and the first that does not; at least zero.
    rounding : float
        Error bound of a difference of scores.
    """

    bound: float
    value: float
    scores: Floats
    last: float
    following: float
    rounding: float

    def with_it_in(self) -> Floats:
        """Bound the supports that contain each free unit, as `node.free`."""
        return self.bound - self.rounding + np.maximum(self.last - self.scores, 0.0)

    def with_it_out(self) -> Floats:
        """Bound the supports that do not contain it."""
        return self.bound - self.rounding + np.maximum(self.scores - self.following, 0.0)


class Tangent(NamedTuple):
    """A tangent of f − ½w'Dw, with rounding errors.

    Attributes
    ----------
    base : float
        Its constant.
    b, error : ndarray (N, C)
        Negative slopes, with error bounds.
    d : ndarray (units,)
        The curvature.
    allowance : float
        Bound on the error of `base`.
    """

    base: float
    b: Floats
    error: Floats
    d: Floats
    allowance: float

    def prove(self, here: Directions, room: int, value: float) -> Relaxed:
        """Derive the bound of a node, less all possible rounding.

        A gain ‖b‖²/2d is off by at most (‖b‖e + ½e²)/d; at most `room` free units count, and none
        whose score is not positive even so.
        """
        b, error, n_in = self._norms(here), here.norms(self.error), here.n_in
        gains = 0.5 * b * b / self.d
        errors = (b * error + 0.5 * error * error) / self.d
        scores, free = gains[n_in:] - here.prices[n_in:], errors[n_in:]
        total, last, following = counted(scores, room)
        base, taken = self.base + here.paid, float(gains[:n_in].sum()) + total
        most = float(free.max(initial=0.0))
        could = min(room * most, float(free[~(scores + free <= 0.0)].sum()))
        allowance = self.allowance + float(errors[:n_in].sum()) + could
        # rounding of the sums here, with at most so many terms
        allowance += EPSILON * (self.b.size + 16.0) * (abs(base) + taken)
        return Relaxed(base - taken - allowance, value, scores, last, following, 2.0 * most)

    def _norms(self, here: Directions) -> Floats:
        """Compute the norm of every unit's slopes; with bounds, of slopes with the same gain.

        √(2d sup bv − ½dv²) within bounds is |b| without them, and changes by no more than b does.
        """
        b = self.b
        if here.is_bounded:
            d = here.spread(self.d)
            v = np.clip(b / d, here.low[:, None], here.high[:, None])
            b = np.sqrt(np.maximum(2.0 * d * v * (b - 0.5 * d * v), 0.0))
        if here.is_single and b.shape[1] == 1:
            return np.abs(b[:, 0])
        # a sum of this many squares, each rounded a few times
        terms = float(np.diff(here.starts).max(initial=0)) * b.shape[1]
        return here.norms(b) * (1.0 + EPSILON * (terms + 8.0))


class Bounds(Protocol):
    """Interface of objects that bound nodes."""

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Relax a node, starting at its point, and update that.

        Stops once the bound reaches the cutoff, or cannot come closer by more than a `share` of the
        distance.
        """
        ...

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Bound the single support, of units, whose fit is w."""
        ...

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """Bound all supports of a node at once if few columns may enter; None if impossible."""
        ...

    def sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        """Take away more curvature for a better next relaxation; False if impossible."""
        ...

    def coefficients(self, node: Node) -> tuple[Ints, Floats]:
        """Return the node's point: columns with a coefficient, and these, (k, C)."""
        ...


# relaxation ---------------------------------------------------------------------------------------


def new_relaxation(
    H: Floats, here: Directions, c: Floats, d: Floats, v: Floats, steep: Floats
) -> kernels.Relaxation:
    """Allocate a relaxation on the directions `at` of H that starts at v (N, C).

    `steep` bounds the eigenvalues of every unit's block of H; of one direction it is the diagonal.
    """
    (N, n_outputs), q = v.shape, d.size
    rows = np.zeros((kernels.RELAXATION_ROWS, n_outputs, max(N, q)))
    rows[kernels.LINEAR, :, :N], rows[kernels.V, :, :N] = c.T, v.T
    rows[kernels.SHARE, 0, :q] = d
    rows[kernels.STEEP, 0, :q] = np.maximum(steep, d)
    rows[kernels.EXTRA, 0, :q] = 2.0 * (here.prices - here.price)
    rows[kernels.LOWEST, 0, :N], rows[kernels.HIGHEST, 0, :N] = here.low, here.high
    rows[kernels.OWN, 0, :N] = here.spread(d)[:, 0]
    # larger systems are returned to the caller, who has LAPACK
    size = min(N, SMALL_SYSTEM)
    state = np.zeros(kernels.RELAXATION_STATE)
    state[kernels.MIXED] = here.is_mixed
    state[kernels.SINGLE] = here.is_single and n_outputs == 1
    return kernels.Relaxation(
        H, here.at, here.starts, here.is_in, rows, np.empty((size, size)),
        np.empty((2, N), dtype=np.int64), state,
    )  # fmt: skip


def relax_units(
    relaxation: kernels.Relaxation, room: int, price: float, theta: float, cutoff: float,
    tolerance: float, share: float, most_sweeps: int = kernels.MOST_SWEEPS,
) -> tuple[float, float, float, int]:  # fmt: skip
    """Run a relaxation; return θ, value, bound and sweeps, leaving v at the bound's point.

    It ends soon after a limit of time, as any point has a bound, and answers Ctrl-C.
    """
    state = relaxation.state
    at_once = max(1, int(SWEEP_WORK / max(relaxation.at.size, 1) ** 2))
    state[kernels.THETA], most = theta, min(at_once, most_sweeps)
    while True:
        kernels.relax_units(relaxation, room, price, cutoff, tolerance, share, most)
        is_whole = state[kernels.SWEEPS] < most or most >= most_sweeps
        if is_late() or (state[kernels.ASKED] == 0.0 and is_whole):
            break
        if state[kernels.ASKED] == 0.0:
            most = min(most + at_once, most_sweeps)
        elif not _solve_polish(relaxation, int(state[kernels.ASKED])):
            state[kernels.ASKED] = -1.0
    found = state[[kernels.VALUE_THETA, kernels.VALUE, kernels.PROVEN]].tolist()
    return found[0], found[1], found[2], int(state[kernels.SWEEPS])


def _solve_polish(relaxation: kernels.Relaxation, k: int) -> bool:
    """Solve a linear system for the kernel; return False if it is singular. O(k³)."""
    rows, (chosen, owner) = relaxation.rows[:, 0], relaxation.chosen[:, :k]
    at, d = relaxation.at[chosen], rows[kernels.SHARE, owner]
    B: Any = relaxation.H[np.ix_(at, at)]
    sign, across = rows[kernels.SIGN, :k], rows[kernels.ACROSS, :k]
    is_part = (sign != 0.0) | (across > 0.0)
    own = np.where(is_part, kernels.POLISH_SHIFT * B.diagonal() + across - d, 0.0)
    if across.any():
        B -= (owner[:, None] == owner) * np.outer(across * sign / d, sign)
    B.flat[:: k + 1] += own
    sides = rows[kernels.FIRST : kernels.SECOND + 1, :k].T
    _, found, info = _lapack.dposv(B.T, sides, lower=1, overwrite_a=1)
    if info != 0:
        return False
    rows[kernels.FIRST : kernels.SECOND + 1, :k] = found.T
    return True


def counted(scores: Floats, room: int) -> tuple[float, float, float]:
    """Sum the `room` largest positive scores; return also the last and the next, at least 0."""
    n = scores.size
    if room >= n:
        return float(np.maximum(scores, 0.0).sum()), 0.0, 0.0
    if room == 0:
        return 0.0, np.inf, float(max(scores.max(), 0.0))
    # a partition suffices: only the last counted and the first uncounted score need their places
    ordered = np.partition(scores, (n - room - 1, n - room))
    total = float(np.maximum(ordered[n - room :], 0.0).sum())
    return total, float(max(ordered[n - room], 0.0)), float(max(ordered[n - room - 1], 0.0))


def perspective(here: Directions, v: Floats, d: Floats, room: int) -> float:
    """Minimize Σ ½d‖v_u‖²/z_u + price_u·z_u over memberships z, which are 1 for included units."""
    sizes, is_in = np.sqrt(d) * here.norms(v), here.is_in
    value = 0.5 * float(sizes[is_in] @ sizes[is_in])
    is_free = ~is_in & (sizes > 0.0)
    theta = _threshold(here, v, d, sizes, is_free, room)
    full = here.full_sizes(v, d, theta)[is_free]
    s, prices = sizes[is_free], here.prices[is_free]
    is_full = s >= full
    value += float((0.5 * s * s + prices)[is_full].sum())
    s, full, prices = s[~is_full], full[~is_full], prices[~is_full]
    return value + float((s * (0.5 * full + prices / full)).sum())


def _threshold(
    here: Directions, v: Floats, d: Floats, sizes: Floats, is_free: Bools, room: int
) -> float:
    """Find the threshold at which memberships fill the room, at least that of the least price."""
    least, s = float(np.sqrt(2.0 * here.price)), np.sort(sizes[is_free])
    if here.is_mixed:
        return _bisected(here, v, d, is_free, room, least, float(s.sum()) / max(room, 1))
    n = s.size
    if not (np.minimum(s, least).sum() > room * least or (least == 0.0 and n > room)):
        return least
    # with the i + 1 smallest fractional and the others full, Σ s/θ + n_full = room gives θ
    below = np.cumsum(s)
    n_full = n - 1 - np.arange(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        thetas = np.where(n_full < room, below / (room - n_full), -1.0)
    fits = (thetas >= s) & (np.append(s[1:], np.inf) >= thetas)
    return float(thetas[np.argmax(fits)]) if fits.any() else float(below[-1] / room)


def _bisected(
    here: Directions, v: Floats, d: Floats, is_free: Bools, room: int, least: float, size: float
) -> float:
    """Bisect the threshold, beginning at a size; memberships at a bound may never fit."""

    def is_crowded(theta: float) -> bool:
        return bool(here.memberships(v, d, theta)[is_free].sum() > room)

    if not is_crowded(least):
        return least
    low, high = least, max(size, least)
    while is_crowded(high):
        low, high = high, 2.0 * high
        if high > kernels.MOST_GROWN * size:
            return max(size, least)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_crowded(middle) else (low, middle)
    return high
