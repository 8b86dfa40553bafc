"""What a relaxation proves about a part of the search: a bound, and columns that it decides.

A node holds the supports that contain all `included` columns and some `free` ones. The smooth part
is f, H its Hessian, and D = diag(d) such that f − ½w'Dw is still convex. For any point w, any v is

    f(v) + price·|v|₀  ≥  constant − Σ_j b_j v_j + Σ_j ½ d_j v_j² + price·|v|₀,

the tangent of f − ½w'Dw at w, with b = Dw − ∇f(w). Its minimum over the supports of the node is
known in closed form: a column that is in adds −b_j²/2d_j, a free one that joins its *score*
s_j = b_j²/2d_j − price, of which at most the `room` largest positive ones are counted. The least
bound with one more column in, or out, follows from the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.exact.last_columns import Finished

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_lapack: Any = lapack

EPSILON = float(np.finfo(np.float64).eps)
SMALL_SYSTEM = 128
"""Unknowns up to which a linear system is solved by the kernel, and not by LAPACK."""


@dataclass(eq=False)
class Node:
    """The supports with all of `included` and some of `free`; none is below `bound`.

    Attributes
    ----------
    included, free : ndarray of int64
    bound : float
        Of the full objective.
    z : ndarray, as `free`
        Memberships of the last relaxation, from which the next one starts.
    d : ndarray, as `included` and `free` together, or None
        Curvature taken away, in the frame's units; None for what the ridge gives.
    frame : int
        Which products the node is relaxed on; −1 for the data themselves.
    depth : int
    fresh : int
        Free columns when `d` was last raised.
    tried : int
        Free columns when the tableau search was last tried on it.
    record : int
        Where the proof has come to on the way to this node.
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
        """What it takes in memory while it waits."""
        arrays = (self.included, self.free, self.z, self.w, self.d)
        return 400 + sum(a.nbytes for a in arrays if a is not None)

    def only(self, is_left: Bools) -> None:
        """Leave out free columns."""
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
        On the full objective, rounding taken away.
    value : float
        The relaxed objective at the point: no relaxation with the same d can prove more.
    scores : ndarray, as `node.free`
        s_j of every free column.
    last, following : float
        The last score that is counted, and the first one that is not; at least zero.
    blur : float
        What a difference of scores may be wrong by.
    """

    bound: float
    value: float
    scores: Floats
    last: float
    following: float
    blur: float

    def with_it_in(self) -> Floats:
        """Bounds on supports that hold a free column, as `node.free`."""
        return self.bound - self.blur + np.maximum(self.last - self.scores, 0.0)

    def with_it_out(self) -> Floats:
        """Bounds on supports that do not."""
        return self.bound - self.blur + np.maximum(self.scores - self.following, 0.0)


class Tangent(NamedTuple):
    """A tangent of f − ½w'Dw, and what rounding may have done to it.

    Attributes
    ----------
    base : float
        Its constant, and the price of the included columns.
    b, d, error : ndarray, as `included` and `free` together
        Slopes with the sign turned, the curvature, and what b may be wrong by.
    allowance : float
        What the base may be too high by.
    """

    base: float
    b: Floats
    d: Floats
    error: Floats
    allowance: float

    def prove(self, n_in: int, room: int, price: float, value: float) -> Relaxed:
        """What it proves of a node, less all that rounding may have added.

        A gain b²/2d is wrong by (|b|e + ½e²)/d at most; of the free columns no more than `room`
        count, and none whose score is not positive even so.
        """
        gains = 0.5 * self.b * self.b / self.d
        errors = (np.abs(self.b) * self.error + 0.5 * self.error * self.error) / self.d
        scores, free = gains[n_in:] - price, errors[n_in:]
        total, last, following = counted(scores, room)
        taken = float(gains[:n_in].sum()) + total
        most = float(free.max(initial=0.0))
        could = min(room * most, float(free[~(scores + free <= 0.0)].sum()))
        allowance = self.allowance + float(errors[:n_in].sum()) + could
        # and the sums here, of at most so many terms
        allowance += EPSILON * (self.b.size + 16.0) * (abs(self.base) + taken)
        return Relaxed(self.base - taken - allowance, value, scores, last, following, 2.0 * most)


class Bounds(Protocol):
    """Where the bounds of nodes come from."""

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Relax a node, starting at its memberships, which are updated.

        It ends where the bound has reached the cutoff, or would not come nearer by more than a
        `share` of what is missing.
        """
        ...

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """On the one support whose fit is w."""
        ...

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """All supports of a node at once, where few columns may join; None where it cannot."""
        ...

    def sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        """Take away more curvature, so that the next relaxation proves more; False if it cannot."""
        ...


def new_relaxation(
    H: Floats, at: Ints, c: Floats, d: Floats, n_in: int, v: Floats
) -> kernels.Relaxation:
    """The arrays of a relaxation that starts at v; the first `n_in` columns are in."""
    q = at.size
    rows = np.zeros((kernels.RELAXATION_ROWS, q))
    rows[kernels.LINEAR], rows[kernels.SHARE], rows[kernels.V] = c, d, v
    size = min(q, SMALL_SYSTEM)
    return kernels.Relaxation(
        H, at, np.arange(q) < n_in, rows, np.empty((size, size)), np.empty(q, dtype=np.int64),
        np.zeros(kernels.RELAXATION_STATE),
    )  # fmt: skip


def relax_columns(
    relaxation: kernels.Relaxation, room: int, price: float, theta: float, cutoff: float,
    tolerance: float, share: float, most_sweeps: int = kernels.MOST_SWEEPS,
) -> tuple[float, float, float, int]:  # fmt: skip
    """θ, value, bound and sweeps of a relaxation, whose v is then that of the bound."""
    state = relaxation.state
    state[kernels.THETA] = theta
    while True:
        kernels.relax_columns(relaxation, room, price, cutoff, tolerance, share, most_sweeps)
        if state[kernels.ASKED] == 0.0:
            break
        if not _solve_polish(relaxation, int(state[kernels.ASKED])):
            state[kernels.ASKED] = -1.0
    found = state[[kernels.VALUE_THETA, kernels.VALUE, kernels.PROVEN]].tolist()
    return found[0], found[1], found[2], int(state[kernels.SWEEPS])


def _solve_polish(relaxation: kernels.Relaxation, k: int) -> bool:
    """Solve a system of the kernel's; return whether it could be. O(k³)."""
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
    """(Σ of the `room` largest positive scores, the last of these, the next one), at least 0."""
    n = scores.size
    if room >= n:
        return float(np.maximum(scores, 0.0).sum()), 0.0, 0.0
    if room == 0:
        return 0.0, np.inf, float(max(scores.max(), 0.0))
    ordered = np.partition(scores, (n - room - 1, n - room))
    total = float(np.maximum(ordered[n - room :], 0.0).sum())
    return total, float(max(ordered[n - room], 0.0)), float(max(ordered[n - room - 1], 0.0))


def perspective(w: Floats, is_in: Bools, room: int, price: float) -> float:
    """min over memberships z of ½ Σ w_j²/z_j + price·Σz; columns that are in have z = 1."""
    value = 0.5 * float(w[is_in] @ w[is_in])
    sizes = np.sort(np.abs(w[~is_in]))
    sizes = sizes[sizes > 0.0]
    least, n = np.sqrt(2.0 * price), sizes.size
    theta = least
    if np.minimum(sizes, least).sum() > room * least or (least == 0.0 and n > room):
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
