"""Nodes with room for one or two more columns: all of their supports at once, in closed form.

After eliminating the included columns I, r = c_F − H_FI inv(H_II) c_I and M = H_FF − H_FI inv(H_II)
H_IF: one column gains r_j²/2M_jj, and two, with u_j = r_j/√M_jj and ρ = M_ij/√(M_ii M_jj), gain
½(u_i² − 2ρ u_i u_j + u_j²)/(1 − ρ²).
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
"""Columns that may enter, at most."""
MOST_PAIRED = 1500
"""Free columns up to which all pairs are examined."""
MOST_DOUBTS = 40
"""Largest number of supports to fit because rounding, or a better objective, leaves them open."""
CLEAR, SAFE = 1e-3, 20.0
"""Smallest M_jj, or 1 − ρ², of a support that is not in doubt; and its smallest ratio to its
rounding, so that first-order error estimates suffice.
"""
ROUNDINGS = 16.0
"""Factor for constants in the rounding estimates."""


class Reduced(NamedTuple):
    """r, products W of H_IF with the factor of H_II, base value, and rounding of M and r."""

    r: Floats
    W: Floats
    base: float
    error_m: float
    error_r: float


class Finished(NamedTuple):
    """Bound on all supports of a node except those in doubt, given as positions in `free`."""

    bound: float
    doubts: list[Ints]


def reduce(
    H: Floats, c: Floats, inside: Ints, free: Ints, rounding: float, y: float
) -> Reduced | None:
    """Eliminate the columns `inside`; None if they are nearly dependent.

    With T = ‖inv(L)‖² for H_II = LL', an error of at most `rounding` in every product changes
    inv(H_II) by at most T² a·rounding in norm, hence M_jj by about (1 + aT)²·rounding, and r by (1
    + aT)²·rounding·‖y‖.
    """
    a = inside.size
    if a == 0:
        error = ROUNDINGS * rounding
        return Reduced(c[free], np.zeros((0, free.size)), 0.0, error, error * y)
    L, info = _lapack.dpotrf(H[np.ix_(inside, inside)].T, lower=1, clean=1)
    if info != 0:
        return None
    inverse, info = _lapack.dtrtri(L, lower=1)
    if info != 0:
        return None
    spread = (1.0 + a * float(np.sum(inverse**2))) ** 2
    W, own = inverse @ H[np.ix_(inside, free)], inverse @ c[inside]
    error = ROUNDINGS * rounding * spread
    return Reduced(c[free] - W.T @ own, W, -0.5 * float(own @ own), error, error * y)


def finish(
    H: Floats, c: Floats, inside: Ints, free: Ints, room: int, rounding: float, y: float,
    price: float, cutoff: float,
) -> Finished | None:  # fmt: skip
    """Bound all supports with at most `room` ≤ 2 more columns; None if undecided.

    Supports must stay below `cutoff`, which excludes the price of included columns and the
    constant.
    """
    if room == 2 and free.size > MOST_PAIRED:
        return None
    reduced = reduce(H, c, inside, free, rounding, y)
    if reduced is None:
        return None
    single = 1.0 - np.einsum("ij,ij->j", reduced.W, reduced.W)
    is_clear = single > max(CLEAR, SAFE * reduced.error_m)
    root = np.sqrt(np.where(is_clear, single, 1.0))
    # error of u: that of r over √M, plus r times that of 1/√M
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
    """Find the lowest value of a pair above the cutoff, and the pairs below it."""
    taken = reduced.W.T @ reduced.W
    root = np.sqrt(np.where(is_clear, 1.0 - taken.diagonal(), 1.0))
    error_rho = 4.0 * reduced.error_m / float(root.min()) ** 2
    found = np.empty((MOST_DOUBTS + 1, 2), dtype=np.int64)
    pairs = kernels.Pairs(H, free, taken, root, u, error_u, is_clear, found)
    least_apart = max(CLEAR, SAFE * error_rho)
    lowest, n = kernels.weigh_pairs(pairs, base, cutoff, error_rho, least_apart, ROUNDINGS)
    return float(lowest), list(found[:n])
