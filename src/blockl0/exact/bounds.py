"""Bounds of nodes: what a relaxation proves about a subtree, and which columns it fixes.

A node holds the supports that contain all `included` columns and some `free` ones. The smooth part
is f, H its Hessian, and D = diag(d) such that f − ½w'Dw is still convex. For any point w, any v has

    f(v) + price·|v|₀  ≥  constant − Σ_j b_j v_j + Σ_j ½ d_j v_j² + price·|v|₀,

the tangent of f − ½w'Dw at w, with b = Dw − ∇f(w). Its minimum over the supports of the node has a
closed form: an included column adds −b_j²/2d_j, a free one that enters subtracts its *score* s_j =
b_j²/2d_j − price, of which the `room` largest positive ones count. The bounds with one more column
included, or excluded, follow from the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.exact.last_columns import Finished
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


@dataclass(eq=False)
class Node:
    """The supports with all of `included` and some of `free`, none of them below `bound`.

    Attributes
    ----------
    included, free : ndarray of int64
    bound : float
        Lower bound on the full objective.
    z : ndarray, as `free`
        Memberships of the last relaxation, where the next one starts.
    d : ndarray, as `included` and `free` together, or None
        Curvature taken away, in the frame's units; None for that of the ridge.
    frame : int
        Which products the node is relaxed on; −1 for the data themselves.
    depth : int
    fresh : int
        Free columns when `d` was last raised.
    tried : int
        Free columns when the tableau search was last tried on it.
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
    w: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def nbytes(self) -> int:
        """Memory of the node while it waits, in bytes."""
        arrays = (self.included, self.free, self.z, self.w, self.d)
        return 400 + sum(a.nbytes for a in arrays if a is not None)

    def only(self, is_left: Bools) -> None:
        """Exclude free columns."""
        chosen = np.concatenate([np.ones(self.included.size, dtype=np.bool_), is_left])
        if self.d is not None:
            self.d = self.d[chosen]
        self.w = self.w[chosen]
        self.free, self.z = self.free[is_left], self.z[is_left]

    def include(self, joins: Bools) -> None:
        """Move free columns to the included ones."""
        n_in = self.included.size
        order = np.concatenate(
            [np.arange(n_in), n_in + np.flatnonzero(joins), n_in + np.flatnonzero(~joins)]
        )
        if self.d is not None:
            self.d = self.d[order]
        self.w = self.w[order]
        self.included = np.concatenate([self.included, self.free[joins]])
        self.free, self.z = self.free[~joins], self.z[~joins]


class Relaxed(NamedTuple):
    """A relaxed point of a node, and what it proves.

    Attributes
    ----------
    bound : float
        Lower bound on the full objective, less rounding.
    value : float
        The relaxed objective at the point: no relaxation with the same d proves more.
    scores : ndarray, as `node.free`
        s_j of every free column.
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
        """Bound the supports that contain each free column, as `node.free`."""
        return self.bound - self.rounding + np.maximum(self.last - self.scores, 0.0)

    def with_it_out(self) -> Floats:
        """Bound the supports that do not contain it."""
        return self.bound - self.rounding + np.maximum(self.scores - self.following, 0.0)


class Tangent(NamedTuple):
    """A tangent of f − ½w'Dw, with rounding errors.

    Attributes
    ----------
    base : float
        Its constant, and the price of the included columns.
    b, d, error : ndarray, as `included` and `free` together
        Negative slopes, the curvature, and error bounds of b.
    allowance : float
        Bound on the error of `base`.
    """

    base: float
    b: Floats
    d: Floats
    error: Floats
    allowance: float

    def prove(self, n_in: int, room: int, price: float | Floats, value: float) -> Relaxed:
        """Derive the bound of a node, less all possible rounding.

        The price is one number, or one per free column. A gain b²/2d is off by at most (|b|e +
        ½e²)/d; at most `room` free columns count, and none whose score is not positive even so.
        """
        gains = 0.5 * self.b * self.b / self.d
        errors = (np.abs(self.b) * self.error + 0.5 * self.error * self.error) / self.d
        scores, free = gains[n_in:] - price, errors[n_in:]
        total, last, following = counted(scores, room)
        taken = float(gains[:n_in].sum()) + total
        most = float(free.max(initial=0.0))
        could = min(room * most, float(free[~(scores + free <= 0.0)].sum()))
        allowance = self.allowance + float(errors[:n_in].sum()) + could
        # rounding of the sums here, with at most so many terms
        allowance += EPSILON * (self.b.size + 16.0) * (abs(self.base) + taken)
        return Relaxed(self.base - taken - allowance, value, scores, last, following, 2.0 * most)


class Bounds(Protocol):
    """Interface of objects that bound nodes."""

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Relax a node, starting at its memberships, and update them.

        Stops once the bound reaches the cutoff, or cannot come closer by more than a `share` of the
        distance.
        """
        ...

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Bound the single support whose fit is w."""
        ...

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """Bound all supports of a node at once if few columns may enter; None if impossible."""
        ...

    def sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        """Take away more curvature for a better next relaxation; False if impossible."""
        ...


def new_relaxation(
    H: Floats, at: Ints, c: Floats, d: Floats, n_in: int, v: Floats
) -> kernels.Relaxation:
    """Allocate a relaxation that starts at v, with the first `n_in` columns included."""
    q = at.size
    rows = np.zeros((kernels.RELAXATION_ROWS, q))
    rows[kernels.LINEAR], rows[kernels.SHARE], rows[kernels.V] = c, d, v
    # larger systems are returned to the caller, who has LAPACK
    size = min(q, SMALL_SYSTEM)
    return kernels.Relaxation(
        H, at, np.arange(q) < n_in, rows, np.empty((size, size)), np.empty(q, dtype=np.int64),
        np.zeros(kernels.RELAXATION_STATE),
    )  # fmt: skip


def relax_columns(
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
        kernels.relax_columns(relaxation, room, price, cutoff, tolerance, share, most)
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
    rows, chosen = relaxation.rows, relaxation.chosen[:k]
    at = relaxation.at[chosen]
    B: Any = relaxation.H[np.ix_(at, at)]
    is_part = rows[kernels.SIGN, :k] != 0.0
    own = np.where(is_part, kernels.POLISH_SHIFT * B.diagonal() - rows[kernels.SHARE, chosen], 0.0)
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


def perspective(w: Floats, is_in: Bools, room: int, price: float) -> float:
    """Minimize ½ Σ w_j²/z_j + price·Σz over memberships z, which are 1 for included columns."""
    value = 0.5 * float(w[is_in] @ w[is_in])
    sizes = np.sort(np.abs(w[~is_in]))
    sizes = sizes[sizes > 0.0]
    least, n = np.sqrt(2.0 * price), sizes.size
    theta = least
    if np.minimum(sizes, least).sum() > room * least or (least == 0.0 and n > room):
        # with the i + 1 smallest fractional and the others full, Σ|w|/θ + n_full = room gives θ
        below = np.cumsum(sizes)
        n_full = n - 1 - np.arange(n)
        with np.errstate(divide="ignore", invalid="ignore"):
            thetas = np.where(n_full < room, below / (room - n_full), -1.0)
        fits = (thetas >= sizes) & (np.append(sizes[1:], np.inf) >= thetas)
        theta = float(thetas[np.argmax(fits)]) if fits.any() else float(below[-1] / room)
    if theta == 0.0:
        return value + 0.5 * float(sizes @ sizes)
    part, full = sizes[sizes < theta], sizes[sizes >= theta]
    value += 0.5 * float(full @ full) + price * full.size
    return value + float(part.sum()) * (0.5 * theta + price / theta)
