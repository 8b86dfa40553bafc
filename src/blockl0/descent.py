"""What Newton's method on a fixed support is made of, whatever the loss: a direction, and a step.

Both work in units of the Hessian's own diagonal, so that neither the units of a column nor a ridge
that weighs on some columns only decide which steps are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Floats = NDArray[np.float64]
_lapack: Any = lapack

MAX_STEPS = 200
"""Steps of a fit; separable data without ridge need about forty, others five to twenty."""
TOLERANCE = 1e-12
"""A fit ends where a step promises less than this share of the objective, or of F(0)/100."""
ROUNDING = 1e-14
"""Share of the objective that a last step may seem to raise it by."""

DAMPING = 1e-13
"""Added to the Hessian of unit diagonal: what rounding may take from its least eigenvalue."""
LOST_DIGITS = 1e-9
"""Squared pivot of unit columns below which the Gram matrix has lost too many digits."""
LEAST_VALUE, NOISE = 1e-11, 1e-13
"""Singular value of unit columns, and share of a slope's terms, that count as none."""
FLAT = 1e-20
"""Share of a column's largest curvature below which it has none."""

FAR = 1e3
"""How many times as far from zero as a model's minimum a loss may have its own, for dual bounds:
what rounding leaves of the feasibility of a dual point costs as much as that, without ridge."""

MAX_LENGTHS = 80
"""Lengths of a step that are looked at."""
FLATTER = 0.3
"""Share of the first slope along a step that is small enough to end the search of its length."""
DESCENT = 1e-4
"""Share of what the first slope promises that a step must bring."""
FURTHER = 8.0
"""By how much a length grows, or shrinks, where curvature does not tell a better one."""


def newton_direction(
    H: Floats, slope: Floats, terms: Floats, largest: Floats, rooted: Callable[[], Floats]
) -> Floats:
    """−inv(H) slope, with the columns' dependence decided in units of the diagonal of H.

    Parameters
    ----------
    H : ndarray (p, p)
    slope : ndarray (p,)
    terms : ndarray (p,)
        The sums of the absolute values that a slope is the sum of: its rounding is a share of them.
    largest : ndarray (p,)
        The diagonal of H where the loss bends most; where H has next to nothing of it, it is flat.
    rooted : callable
        Makes R with R'R = H, for columns that depend on each other more than H can tell.
    """
    d = np.sqrt(np.maximum(H.diagonal(), FLAT * largest))
    d[d == 0.0] = 1.0
    unit = H / d / d[:, None]
    unit.flat[:: d.size + 1] += DAMPING
    factor, info = _lapack.dpotrf(unit)
    if info == 0 and factor.diagonal().min() ** 2 > LOST_DIGITS:
        return -_lapack.dpotrs(factor, slope / d)[0] / d
    values, axes = np.linalg.svd(np.linalg.qr(rooted() / d, mode="r"))[1:]
    along = axes @ (slope / d)
    # a direction without curvature is followed where there is a slope, not where it is rounding
    is_real = (values > LEAST_VALUE) | (np.abs(along) > NOISE * float(np.linalg.norm(terms / d)))
    return -axes.T @ np.where(is_real, along / (values**2 + LEAST_VALUE**2), 0.0) / d


def search_length(
    look: Callable[[float], tuple[float, float, float]], here: float, slope: float
) -> tuple[float, float]:
    """(length, value) of a step along which a convex function falls: nearly its minimum.

    `look` gives the value, the slope and the curvature at a length; `here` is the value at 0 and
    `slope` < 0 the slope there. The length is 0 where no value is below `here`. On the flat parts
    of a loss a Newton step may be a million times too long or too short: the length is bracketed
    by the signs of slopes, which are known where differences of values are rounding.
    """
    low, high, length = 0.0, np.inf, 1.0
    best, lowest = 0.0, here
    for _ in range(MAX_LENGTHS):
        value, there, bend = look(length)
        if value < lowest:
            best, lowest = length, value
        is_flatter = abs(there) <= FLATTER * abs(slope)
        if is_flatter and value <= here + DESCENT * length * slope:
            break
        low, high = (length, high) if there < 0.0 else (low, length)
        # far beyond the minimum, as of an exponential, a step of the slope would be a small one
        is_near = bend > 0.0 and abs(there) <= abs(slope)
        following = length - there / bend if is_near else -1.0
        if not low < following < min(high, 10.0 * FURTHER * length):
            following = _between(low, high)
        if following in (low, high, length) or high <= 1e-300 or low >= 1e300:
            break
        length = following
    return best, lowest


def weighted_total(weights: Floats, values: Floats) -> Floats:
    """weights'values for values (m, ...) that may be infinite, also where a weight is zero."""
    is_used = weights > 0.0
    return weights @ values if is_used.all() else weights[is_used] @ values[is_used]


def _between(low: float, high: float) -> float:
    """A length inside a bracket, by its order of magnitude where that is not known."""
    if not np.isfinite(high):
        return FURTHER * low
    if low <= 0.0:
        return high / FURTHER
    return float(np.sqrt(low * high)) if high > 4.0 * low else 0.5 * (low + high)
