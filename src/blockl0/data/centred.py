"""X − 1·means' for a stored X, accurate relative to the spread of every column.

In float64 X'r − means·Σr loses a digit for every power of ten between a column's mean and its
spread. Where that matters, a column is read as (x − mean) − rest, with the mean split into its
float64 value and a remainder: each difference is then accurate to its last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import FAR
from blockl0.data.design import Dense, Design
from blockl0.data.panels import products
from blockl0.run import look
from blockl0.units import is_rounding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MILD = 16.0
"""Ratio of the raw to the centred sum of squares up to which subtracting costs at most a digit or
two.
"""
CHUNK_BYTES = 8 << 20
"""Bytes of entries centred at a time for products with many vectors."""
CACHE_BYTES = 1 << 20
"""Bytes of entries centred at a time for sums and squares, so that they stay in cache."""


class Centered(Design):
    """X − 1·means' for a stored X, which is neither changed, copied nor densified.

    Constant columns become exactly zero. Operations cost as much as on the stored design; columns
    far from zero are copied in small chunks whenever they are read.

    Parameters
    ----------
    base : Design
        X as it is stored.
    weights : ndarray (m,), optional
        Of the means that are taken away; None for equal ones.

    Attributes
    ----------
    means, rests : ndarray (n,)
        Their sums are the means; a rest is zero unless a column is far from zero.
    is_constant : ndarray of bool (n,)
        Columns whose range, over the rows of positive weight, is within rounding of one number
        other than zero.
    is_flat : ndarray of bool (n,)
        Those, and columns whose squares are all zero.
    """

    is_flat: NDArray[np.bool_]
    is_constant: NDArray[np.bool_]

    rounding: float = 2.0 * (
        FAR + 1.0
    )  # entries and means of columns that are not far are up to FAR spreads
    chunk: int
    most_factored: int

    def __init__(self, base: Design, weights: Floats | None = None) -> None:
        m, n = base.shape
        self.base = base
        self.chunk, self.most_factored = base.chunk, base.most_factored
        ones = np.ones(m) if weights is None else weights
        total = float(ones.sum())
        self.means: Floats = base.rmatvec(ones) / total
        self.rests: Floats = np.zeros(n)
        self.is_constant = np.zeros(n, dtype=np.bool_)
        # none is far or flat before the moments below, which read columns through this object
        self.is_flat = np.zeros(n, dtype=np.bool_)
        self._set_far(np.empty(0, dtype=np.int64))
        sums, norms = base.entry_moments(ones, self.means) or self._moments(ones)
        far = np.flatnonzero(FAR**2 * norms < total * self.means**2)
        correction = sums / total
        correction[far] = 0.0
        self.means += correction
        # only columns far from zero are read: for others sums of squares have enough digits
        for part in self._parts(far):
            X_B = base.columns(part)
            self.is_constant[part] = _is_constant(X_B, ones)
            X_B -= self.means[part]
            self.rests[part] = ones @ X_B / total
        self.rests[self.is_constant] = 0.0
        self.is_flat = self.is_constant | (norms == 0.0)
        self._set_far(far[~self.is_flat[far]])

    @classmethod
    def known(
        cls, base: Design, means: Floats, rests: Floats, is_constant: Bools, is_flat: Bools,
        is_far: Bools,
    ) -> Centered:  # fmt: skip
        """Build a centred design from known means and flags, without reading X."""
        new = object.__new__(cls)
        new.base, new.chunk, new.most_factored = base, base.chunk, base.most_factored
        new.means, new.rests, new.is_constant, new.is_flat = means, rests, is_constant, is_flat
        new._set_far(np.flatnonzero(is_far))
        return new

    def recentred(self, weights: Floats, target: Floats | None = None) -> Centered:
        """Return the same X centred by the means for other weights."""
        other = copy(self)
        total, far = float(weights.sum()), self._far
        other.means = self.base.rmatvec(weights) / total
        # far columns keep their mean and change its remainder, which alone has the digits
        other.means[far], other.rests = self.means[far], np.zeros_like(self.rests)
        for part in self._parts(far):
            other.rests[part] = self.rests[part] + weights @ self.columns(part) / total
        return other

    def shift_from(self, other: Centered) -> Floats:
        """Return the difference of the means of two centrings of the same X, (n,).

        Computed without cancellation between means and remainders.
        """
        return (self.means - other.means) + (self.rests - other.rests)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        return self.base.shape

    @property
    def nbytes(self) -> int:
        """Bytes used by the stored entries."""
        return self.base.nbytes

    def matvec(self, w: Floats) -> Floats:
        """Compute X w − means'w, (m,)."""
        support = np.flatnonzero(w)
        if self._far.size and self._is_far[support].any():
            return self.column_matvec(support, w[support])
        # flat columns are zero after centring, and not in the base
        w = np.where(self.is_flat, 0.0, w)
        return self.base.matvec(w) - float(self.means @ w)

    def rmatvec(self, r: Floats) -> Floats:
        """Compute X' r − means·Σr, (n,)."""
        result = self.base.rmatvec(r) - self.means * float(r.sum())
        for part in self._parts(self._far):
            result[part] = r @ self.columns(part)
        return np.where(self.is_flat, 0.0, result)

    def columns(self, idx: Any) -> Floats:
        """Return the centred X[:, idx] as a new dense Fortran-ordered array (m, k)."""
        idx = np.asarray(idx, dtype=np.intp)
        X_B = self.base.columns(idx)
        X_B -= self.means[idx]
        if self._far.size and self._is_far[idx].any():
            # in two steps, as mean + rest would be rounded to the digits of the mean
            X_B -= self.rests[idx]
        X_B[:, self.is_flat[idx]] = 0.0
        return X_B

    def row_chunks(self, step: int, rows: Any = None) -> Iterator[Floats]:
        """Yield the centred rows, or those in `rows`, `step` at a time, as in `columns`."""
        for X_part in self.base.row_chunks(step, rows):
            X_part -= self.means
            if self._far.size:
                X_part -= self.rests
            X_part[:, self.is_flat] = 0.0
            yield X_part

    def column_matvec(self, idx: Any, v: Floats) -> Floats:
        """Compute X[:, idx] v − means'v, (m,)."""
        idx = np.asarray(idx, dtype=np.intp)
        is_far = self._is_far[idx]
        v_near = np.where(self.is_flat[idx] | is_far, 0.0, v)
        if is_far.any():
            near = ~is_far
            result = self.column_matvec(idx[near], v[near])
            for part in self._parts(np.flatnonzero(is_far)):
                result += self.columns(idx[part]) @ v[part]
            return result
        return self.base.column_matvec(idx, v_near) - float(self.means[idx] @ v_near)

    def take(self, idx: Any) -> Centered:
        """Return X[:, idx] as a design with the same centring."""
        idx = np.asarray(idx, dtype=np.intp)
        facts: Any = self.means, self.rests, self.is_constant, self.is_flat, self._is_far
        return Centered.known(self.base.take(idx), *(fact[idx] for fact in facts))

    def cross(self, V: Floats, part: slice) -> Floats:
        """Compute V' (X − 1·means')[:, part] for V (m, k), (k, c)."""
        U = self.base.cross(V, part) - np.outer(V.sum(axis=0), self.means[part])
        if self._far.size:
            columns = np.arange(self.shape[1])[part]
            for far in self._parts(np.flatnonzero(self._is_far[part]), CHUNK_BYTES):
                U[:, far] = V.T @ self.columns(columns[far])
        U[:, self.is_flat[part]] = 0.0
        return U

    def gram(self, idx: Any, weights: Floats | None = None) -> Floats:
        """Compute X_B' diag(weights) X_B of the centred columns B = idx, (k, k)."""
        return products(self.columns(idx), weights)

    def full_gram(self, weights: Floats | None = None) -> Floats:
        """Compute X' diag(weights) X of the centred X, dense (n, n), by chunks of columns."""
        n = self.shape[1]
        G = np.empty((n, n), order="F")
        for part in self._parts(np.arange(n), CHUNK_BYTES):
            look()
            V = self.columns(part)
            V = V if weights is None else V * weights[:, None]
            G[part] = self.cross(V, slice(None))
        # halves were computed by different sums: symmetric to the last digit
        return 0.5 * (G + G.T)

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Compute Σ_i weights_i (x_ij − mean_j)² for every column j, (n,), without cancellation."""
        ones = np.ones(self.shape[0]) if weights is None else weights
        quick = self.base.entry_moments(ones, self.means)
        if quick is None:
            raw, total = self.base.sq_norms(weights), float(ones.sum())
            norms = raw - self.means * (2.0 * self.base.rmatvec(ones) - total * self.means)
            # where the means make up most of the sum, centre the entries first
            for part in self._parts(np.flatnonzero(~(MILD * norms >= raw))):
                norms[part] = ones @ self.columns(part) ** 2
        else:
            norms = quick[1]
            # for columns far from zero the quick result is mostly rounding error
            for part in self._parts(self._far):
                norms[part] = ones @ self.columns(part) ** 2
        return np.where(self.is_flat, 0.0, norms)

    def ranges(self) -> tuple[Floats, Floats]:
        """Return the smallest and the largest entry of every column, (n,) each; one pass over X."""
        low, high = (np.where(self.is_flat, 0.0, x - self.means) for x in self.base.ranges())
        return low, high

    def scaled(self, scale: Floats) -> Centered:
        """Return X diag(scale), centred alike; exact for powers of two."""
        other = copy(self)
        other.base = self.base.scaled(scale)
        other.means, other.rests = self.means * scale, self.rests * scale
        return other

    def _set_far(self, far: NDArray[np.intp]) -> None:
        """Record the columns that need two subtractions; flat ones are excluded."""
        self._far = far
        self._is_far = np.zeros(self.shape[1], dtype=np.bool_)
        self._is_far[far] = True

    def _parts(self, columns: NDArray[np.intp], size: int = CACHE_BYTES) -> list[NDArray[np.intp]]:
        """Split columns into chunks whose entries take `size` bytes."""
        step = max(1, size // (8 * self.shape[0]))
        return [columns[i : i + step] for i in range(0, columns.size, step)]

    def _moments(self, weights: Floats) -> tuple[Floats, Floats]:
        """Compute Σ_i weights_i (x_ij − mean_j) and the same sum of squares, (n,) each."""
        n = self.shape[1]
        sums, norms = np.zeros(n), np.empty(n)
        for part in self._parts(np.arange(n)):
            X_B = self.columns(part)
            sums[part] = weights @ X_B
            X_B *= X_B
            norms[part] = weights @ X_B
        return sums, norms


class CentredCopy(Dense):
    """A small dense X with its centred copy kept, so that products need no correction.

    The attributes are those of `Centered`.
    """

    rounding: float = Centered.rounding
    means: Floats
    rests: Floats
    is_constant: Bools
    is_flat: Bools

    def __init__(self, centred: Centered, entries: Floats | None = None) -> None:
        n = centred.shape[1]
        super().__init__(centred.columns(np.arange(n)) if entries is None else entries)
        self._centred = centred
        self.means, self.rests = centred.means, centred.rests
        self.is_constant, self.is_flat = centred.is_constant, centred.is_flat

    @classmethod
    def of(cls, base: Dense, weights: Floats | None = None) -> CentredCopy:
        """Centre a small dense X by its weighted means in one step.

        Falls back to `Centered` if a column is far from zero.
        """
        (m, n), X = base.shape, base.X
        ones = np.ones(m) if weights is None else weights
        total = float(np.add.reduce(ones))
        means = base.rmatvec(ones) / total
        entries = X - means
        norms = ones @ (entries * entries)
        if (FAR**2 * norms < total * means**2).any():
            return cls(Centered(base, weights))
        # a second pass over the small array corrects the rounding of the first mean
        means += ones @ entries / total
        np.subtract(X, means, out=entries)
        none, is_flat = np.zeros(n, dtype=np.bool_), norms == 0.0
        entries[:, is_flat] = 0.0
        return cls(Centered.known(base, means, np.zeros(n), none, is_flat, none), entries)

    def recentred(self, weights: Floats, target: Floats | None = None) -> Centered:
        """Return the same X centred by the means for other weights."""
        return self._centred.recentred(weights, target)

    def shift_from(self, other: Any) -> Floats:
        """Return the difference of the means of two centrings of the same X, (n,)."""
        return self._centred.shift_from(other)

    def take(self, idx: Any) -> CentredCopy:
        """Return X[:, idx] as a design with the same centring."""
        return CentredCopy(self._centred.take(idx))

    def scaled(self, scale: Floats) -> CentredCopy:
        """Return X diag(scale), centred alike; exact for powers of two."""
        return CentredCopy(self._centred.scaled(scale))


def centred(design: Design, weights: Floats | None = None) -> Any:
    """Return X less its weighted means, in the way of its storage; copied only if it is small."""
    own = design.as_centred(weights)
    if own is not None:
        return own
    if isinstance(design, Dense) and design.nbytes <= CACHE_BYTES:
        return CentredCopy.of(design, weights)
    return Centered(design, weights)


def _is_constant(X_B: Floats, weights: Floats) -> NDArray[np.bool_]:
    """Return whether columns are constant up to rounding in the rows of positive weight."""
    if not np.all(weights > 0.0):
        X_B = X_B[weights > 0.0]
    return is_rounding(X_B.min(axis=0), X_B.max(axis=0))
