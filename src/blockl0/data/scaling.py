"""Scaling of extreme columns by powers of two, so that no square over- or underflows.

Powers of two change no digit: the scaled problem is the given one, with w_j = scale_j·v_j. Methods
whose steps depend on units, such as proximal gradients, work in the scaled ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.data.design_base import Design

Floats = NDArray[np.float64]

MODERATE = 2.0**100
"""Columns with lengths between the inverse of this and this, 1.3e30, are not scaled."""
IDLE = 1e-100
"""With a ridge, columns shorter than this times its square root change no digit of any objective.
"""
LEAST_RIDGE = 1e-200
"""Smallest ridge that scaling all columns by a common factor may lead to."""


def balance(design: Design, ridge: float) -> tuple[Design, Floats | None, float]:
    """Scale columns to moderate lengths; return the design, the factors and the new ridge.

    Nothing is done, and the factors are None, unless a column is extreme. With a ridge only a
    common factor of all columns is possible: it is used if all of them are too short or all too
    long. A column so short beside a ridge that its squares underflow has a coefficient of nearly
    zero: both are then set to zero. O(mn).
    """
    if design.is_moderate(MODERATE):
        return design, None, ridge
    lengths = design.lengths()
    is_extreme = (lengths > 0.0) & ((lengths < 1.0 / MODERATE) | (lengths > MODERATE))
    if not is_extreme.any():
        return design, None, ridge
    scale = np.ones(lengths.size)
    if ridge == 0.0:
        scale[is_extreme] = _inverse_powers(lengths[is_extreme])
        return design.scaled(scale), scale, ridge
    is_idle = (lengths > 0.0) & (lengths < IDLE * np.sqrt(ridge))
    if is_idle.any():
        design = design.scaled(np.where(is_idle, 0.0, 1.0))
        lengths[is_idle] = 0.0
    factor = _common_factor(lengths)
    # multiply twice, as the square of the factor may not be a float64
    other = ridge * factor * factor
    if factor == 1.0 or other < LEAST_RIDGE:
        return design, None, ridge
    scale[:] = factor
    return design.scaled(scale), scale, other


def _common_factor(lengths: Floats) -> float:
    """Return the power of two for columns that are all too short or all too long; else 1."""
    real = lengths[lengths > 0.0]
    if real.size and real.max() < 1.0 / MODERATE:
        return float(_inverse_powers(real.max()))
    if real.size and real.min() > MODERATE:
        return float(_inverse_powers(real.min()))
    return 1.0


def unscaled(w: Floats, scale: Floats | None) -> Floats:
    """Convert coefficients of the given columns into those of the scaled ones, (n,) or (n, C)."""
    return w if scale is None else w / (scale if w.ndim == 1 else scale[:, None])


def rescaled(w: Floats, scale: Floats | None) -> Floats:
    """Convert coefficients of the scaled columns into those of the given ones, (n,) or (n, C)."""
    if scale is None:
        return w
    with np.errstate(over="ignore"):
        coef = w * (scale if w.ndim == 1 else scale[:, None])
    if not np.isfinite(coef).all():
        j = int(np.argwhere(~np.isfinite(coef))[0][0])
        raise ValueError(
            f"The coefficient of column {j} exceeds the largest float64, 1.8e308, since the "
            f"column is of size {1.0 / scale[j]:.0e}; multiply the column by {scale[j]:.0e}."
        )
    return coef


def _inverse_powers(lengths: Floats) -> Floats:
    """Return powers of two that bring lengths to between ½ and 1."""
    # the inverse of the smallest float64, 5e-324, overflows, so the exponent is capped
    return np.ldexp(1.0, np.minimum(-np.frexp(lengths)[1], 1000))
