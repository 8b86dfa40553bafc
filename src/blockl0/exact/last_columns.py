"""Nodes in which one or two more columns may join: all of these supports at once, in closed form.

After the included columns I have been eliminated, r = c_F − H_FI inv(H_II) c_I and
M = H_FF − H_FI inv(H_II) H_IF: one column gains r_j²/2M_jj, and two, with u_j = r_j/√M_jj and
ρ = M_ij/√(M_ii M_jj), gain ½(u_i² − 2ρ u_i u_j + u_j²)/(1 − ρ²).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

ROOM = 2
"""Columns that may join, at most."""
MOST_PAIRED = 1500
"""Free columns up to which all pairs are looked at."""
MOST_DOUBTS = 40
"""Supports that are fitted because rounding, or a better objective, leaves them open."""
CLEAR, SAFE = 1e-3, 20.0
"""M_jj, or 1 − ρ², below which a support is in doubt; and by how much they must exceed their
rounding, so that its first order is nearly all of it."""
ROUNDINGS = 16.0
"""Room for constants in the estimates of rounding."""


class Reduced(NamedTuple):
    """r and the products W of H_IF with the factor of H_II; the base value; rounding of M and r."""

    r: Floats
    W: Floats
    base: float
    error_m: float
    error_r: float


class Finished(NamedTuple):
    """No support of a node is below `bound`, but for those in doubt, as positions in `free`."""

    bound: float
    doubts: list[Ints]


def reduce(H: Floats, c: Floats, inside: Ints, free: Ints, blur: float, y: float) -> Reduced | None:
    """Eliminate the columns `inside`; None where they are too near to each other.

    With T = ‖inv(L)‖² for H_II = LL', a change of at most `blur` in every product changes
    inv(H_II) by at most T² a·blur in norm, hence M_jj by about (1 + aT)²·blur, and r by
    (1 + aT)²·blur·‖y‖.
    """
    a = inside.size
    if a == 0:
        error = ROUNDINGS * blur
        return Reduced(c[free], np.zeros((0, free.size)), 0.0, error, error * y)
    L, info = _lapack.dpotrf(H[np.ix_(inside, inside)].T, lower=1, clean=1)
    if info != 0:
        return None
    inverse, info = _lapack.dtrtri(L, lower=1)
    if info != 0:
        return None
    spread = (1.0 + a * float(np.sum(inverse**2))) ** 2
    W, own = inverse @ H[np.ix_(inside, free)], inverse @ c[inside]
    error = ROUNDINGS * blur * spread
    return Reduced(c[free] - W.T @ own, W, -0.5 * float(own @ own), error, error * y)


def finish(
    H: Floats, c: Floats, inside: Ints, free: Ints, room: int, blur: float, y: float,
    price: float, cutoff: float,
) -> Finished | None:  # fmt: skip
    """Bounds on all supports with at most `room` ≤ 2 more columns; None where it cannot tell.

    `cutoff` is what a support must stay below, price of the included columns and constant apart.
    """
    if room == 2 and free.size > MOST_PAIRED:
        return None
    reduced = reduce(H, c, inside, free, blur, y)
    if reduced is None:
        return None
    single = 1.0 - np.einsum("ij,ij->j", reduced.W, reduced.W)
    is_clear = single > max(CLEAR, SAFE * reduced.error_m)
    root = np.sqrt(np.where(is_clear, single, 1.0))
    # of u: that of r over √M, and r times that of 1/√M
    u = np.abs(reduced.r) / root
    error_u = (reduced.error_r + u * reduced.error_m) / root**3
    most = np.where(is_clear, 0.5 * (u + error_u) ** 2, np.inf)
    base = reduced.base - reduced.error_r * y
    values = base + price - most
    doubts = [np.array([j]) for j in np.flatnonzero(~(values >= cutoff))[: MOST_DOUBTS + 1]]
    bound = float(values[values >= cutoff].min(initial=np.inf))
    if not base >= cutoff:
        doubts.append(np.empty(0, dtype=np.int64))
    else:
        bound = min(bound, base)
    if room == 2 and free.size > 1:
        signed = reduced.r / root
        lowest, pairs = _pairs(
            H, free, reduced, signed, error_u, is_clear, base + 2.0 * price, cutoff
        )
        bound, doubts = min(bound, lowest), doubts + pairs
    return None if len(doubts) > MOST_DOUBTS else Finished(bound, doubts)


def _pairs(
    H: Floats, free: Ints, reduced: Reduced, u: Floats, error_u: Floats,
    is_clear: NDArray[np.bool_], base: float, cutoff: float,
) -> tuple[float, list[Ints]]:  # fmt: skip
    """The least value of a pair that reaches the cutoff, and the pairs that do not."""
    taken = reduced.W.T @ reduced.W
    root = np.sqrt(np.where(is_clear, 1.0 - taken.diagonal(), 1.0))
    error_rho = 4.0 * reduced.error_m / float(root.min()) ** 2
    found = np.empty((MOST_DOUBTS + 1, 2), dtype=np.int64)
    pairs = kernels.Pairs(H, free, taken, root, u, error_u, is_clear, found)
    least_apart = max(CLEAR, SAFE * error_rho)
    lowest, n = kernels.weigh_pairs(pairs, base, cutoff, error_rho, least_apart, ROUNDINGS)
    return float(lowest), list(found[:n])
