"""Columns of extreme size, multiplied by powers of two, so that no square over- or underflows.

Powers of two change no digit: the scaled problem is the given one, with w_j = scale_j·v_j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.design import Csc, Dense

Floats = NDArray[np.float64]

MODERATE = 2.0**100
"""Lengths of columns up to this, 1.3e30, and down to its inverse are left as they are."""
VANISHING, SHORT_CHUNK = 1e-150, 64
"""A length that comes of vanishing squares, and the columns that are then read at a time."""
RIDGES = 1e-200, 1e200
"""Ridges that a common factor of all columns may lead to."""


def balance(design: Dense | Csc, ridge: float) -> tuple[Dense | Csc, Floats | None, float]:
    """The design with columns of moderate length, their factors, and the ridge that goes with it.

    Nothing is done, and the factors are None, unless a column is extreme. A ridge allows one factor
    for all columns only: it is used when all of them are too short, or all too long. A single
    column that is short beside a ridge is right as it is: its coefficient is nearly zero. O(mn).
    """
    lengths = _lengths(design)
    real = lengths > 0.0
    if not np.any(real & ((lengths < 1.0 / MODERATE) | (lengths > MODERATE))):
        return design, None, ridge
    scale = np.ones(lengths.size)
    if ridge == 0.0:
        is_extreme = real & ((lengths < 1.0 / MODERATE) | (lengths > MODERATE))
        scale[is_extreme] = _inverse_power(lengths[is_extreme])
        return _multiply(design, scale), scale, ridge
    longest, shortest = lengths.max(), lengths[real].min()
    nearest = longest if longest < 1.0 / MODERATE else shortest if shortest > MODERATE else 1.0
    factor = float(_inverse_power(np.array(nearest)))
    # in two steps: the square of the factor may not be a float64
    other = ridge * factor * factor
    if factor == 1.0 or not RIDGES[0] <= other <= RIDGES[1]:
        return design, None, ridge
    scale[:] = factor
    return _multiply(design, scale), scale, other


def unscaled(w: Floats, scale: Floats | None) -> Floats:
    """Coefficients of the scaled columns from those of the given ones, (n,) or (n, C)."""
    return w if scale is None else w / (scale if w.ndim == 1 else scale[:, None])


def rescaled(w: Floats, scale: Floats | None) -> Floats:
    """Coefficients of the given columns from those of the scaled ones, (n,) or (n, C)."""
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


def _lengths(design: Dense | Csc) -> Floats:
    """The lengths of the columns, or where their squares vanish, the largest entries; (n,)."""
    lengths = np.sqrt(design.sq_norms())
    # squares of numbers below 1e-154 have few digits, or none
    short = lengths < VANISHING
    if isinstance(design, Csc):
        short &= np.diff(design.indptr) > 0
    columns = np.flatnonzero(short)
    for start in range(0, columns.size, SHORT_CHUNK):
        part = columns[start : start + SHORT_CHUNK]
        lengths[part] = np.abs(design.columns(part)).max(axis=0)
    return lengths


def _inverse_power(lengths: Floats) -> Floats:
    """Powers of two that bring lengths to between ½ and 1."""
    # of the least float64, 5e-324, the inverse is not one: short of it, by some powers
    return np.ldexp(1.0, np.minimum(-np.frexp(lengths)[1], 1000))


def _multiply(design: Dense | Csc, scale: Floats) -> Dense | Csc:
    if isinstance(design, Dense):
        return Dense(design.X * scale)
    data = design.data * np.repeat(scale, np.diff(design.indptr))
    return Csc(data, design.indices, design.indptr, design.shape)
