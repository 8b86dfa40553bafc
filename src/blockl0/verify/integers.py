"""Integers in place of floating-point numbers, products of which no digit is lost, definiteness.

A floating-point number is an integer over a power of two. Integers are split into limbs of so few
bits that a sum of m products of two limbs stays within 2⁵³: floating-point matrix products of limbs
round nothing, in any order, so that a BLAS computes them exactly. A matrix is semidefinite if what
is left of it beside LL', for any L, is diagonally dominant: L is a floating-point Cholesky factor,
what is left is computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from blockl0.verify.base import ProofError, require

try:  # fractions with less waiting, and the same values
    from gmpy2 import mpq as _rational  # type: ignore
except ImportError:
    _rational = Fraction
Rational: Any = _rational

MANTISSA, ROWS = 53, 256
"""Bits of a double; rows of a product that are made at a time."""
BITS = 50
"""Bits of a factor L after the point."""
LEAST, LARGER, TRIES = 2.0**-50, 4.0, 8
"""Share of the diagonal, times the columns, that is left beside LL' first; how it grows; times."""


def fraction(x: Any) -> Fraction:
    """Convert a rational number to the standard library's."""
    return Fraction(int(x.numerator), int(x.denominator))


def shifted(numbers: Any, bits: int) -> Any:
    """Multiply integers by a power of two."""
    return numbers * (1 << bits)


def scale_of(x: Any) -> int:
    """Return the least k ≥ 0 for which all of 2ᵏx are integers."""
    odd, lowest = _odd(x)
    return max(0, -int(lowest[odd != 0].min(initial=0)))


def integers(x: Any, k: int) -> Any:
    """Convert 2ᵏx to Python's integers, of which k makes whole numbers."""
    odd, lowest = _odd(x)
    return odd.astype(object) << np.where(odd == 0, 0, lowest + k).astype(object)


def _odd(x: Any) -> tuple[Any, Any]:
    """Split x into odd integers, or zero, times powers of two; return both and the exponents."""
    share, exponent = np.frexp(x)
    whole = (share * 2.0**MANTISSA).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(float))[1] - 1
    zeros = np.where(whole == 0, 0, zeros).astype(np.int64)
    return whole >> zeros, exponent - MANTISSA + zeros


def product(A: Any, B: Any) -> Any:
    """Multiply A'B for matrices of Python's integers, exactly."""
    bits = (MANTISSA - len(A).bit_length()) // 2
    right = list(_limbs(B, bits))
    blocks = [_block(list(_limbs(A[:, i : i + ROWS], bits)), right, bits)
              for i in range(0, A.shape[1], ROWS)]  # fmt: skip
    return np.concatenate([np.zeros((0, B.shape[1]), object), *blocks])


def _block(left: Any, right: Any, bits: int) -> Any:
    """Add up the products of limbs: in 64 bits for each power of two, then in Python's integers."""
    shape, sums = (left[0].shape[1], right[0].shape[1]), {}
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            if a.any() and b.any():
                sums[i + j] = sums.get(i + j, 0) + (a.T @ b).astype(np.int64)
    total = np.zeros(shape, object)
    for power, part in sums.items():
        total += shifted(part.astype(object), bits * power)
    return total


def _limbs(A: Any, bits: int) -> Iterator[Any]:
    """Yield the digits of a matrix in base 2^bits, with its signs, as floating-point numbers."""
    signs, rest = np.where(A < 0, -1.0, 1.0), abs(A)
    yield signs * (rest & (1 << bits) - 1).astype(float)
    while (rest := rest >> bits).any():
        yield signs * (rest & (1 << bits) - 1).astype(float)


def require_semidefinite(G: Any) -> None:
    """Refuse a matrix of integers that is not shown to be semidefinite."""
    reason, q = "A curvature is too large: H − D is not definite", len(G)
    require(all(x > 0 for x in G.diagonal()), f"{reason}, its diagonal is not positive.")
    halves = [int(x).bit_length() // 2 for x in G.diagonal()]
    # powers of two bring the diagonal to between 1/2 and 2, times 4^top
    top = max([*halves, BITS])
    powers = np.array([1 << top - x for x in halves], object)
    G = G * powers[:, None] * powers
    near = (G / (1 << 2 * top)).astype(float)
    for margin in q * LEAST * LARGER ** np.arange(TRIES if q else 0):
        try:
            L = np.linalg.cholesky(near - margin * np.eye(q))
        except np.linalg.LinAlgError:
            seen = f"less than about {margin:.2g} of its diagonal"
            raise ProofError(f"{reason}, or its least eigenvalue is {seen}.") from None
        L = integers(np.rint(2.0**BITS * L.T), 0)
        rest = G - shifted(product(L, L), 2 * (top - BITS))
        least = min(2 * rest.diagonal() - abs(rest).sum(axis=1))
        if least >= 0:
            return
        reason = f"H − D is not shown to be definite: {-float(least / (1 << 2 * top)):.2g}"
    require(not q, f"{reason} of its diagonal is missing.")
