"""The interface to X: solvers do not know how the matrix is stored.

Columns of extreme size are scaled by powers of two, so that no square over- or underflows. Powers
of two change no digit: the scaled problem is the given one, with w_j = scale_j·v_j. Methods whose
steps depend on units, such as proximal gradients, work in the scaled ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import Block
from blockl0.run import look

if TYPE_CHECKING:
    from blockl0.data.passes import PassBatcher

Floats = NDArray[np.float64]

VANISHING = 1e-150
"""Lengths below this come from squares that underflow: the squares of numbers below 1e-154 are
subnormal.
"""
SHORT_CHUNK = 64
"""Columns read at a time when such short lengths are recomputed."""


class Design(ABC):
    """The matrix X (m, n) through the operations that solvers need.

    A storage implements the abstract ones; the others have defaults that are right for any X and
    are overridden where a storage can do better.
    """

    chunk: int
    """Number of columns to process at a time in a pass over X."""

    rounding: float = 1.0
    """Rounding error of products with columns, relative to that of products with stored numbers."""

    most_factored: int = 0
    """Largest number of columns for which a triangular factor of all rows saves more than it costs.
    """

    total: float | None = None
    """Total weight of the original rows if these rows stand for others; None if they are the data.
    """

    is_flat: NDArray[np.bool_] | None = None
    """Columns that centring made zero, (n,); None if X is not centred."""

    is_constant: NDArray[np.bool_] | None = None
    """Columns that were constant and nonzero before centring, (n,); None if X is not centred."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes used by the stored entries."""

    @abstractmethod
    def matvec(self, w: Floats) -> Floats:
        """Compute X w, (m,)."""

    @abstractmethod
    def rmatvec(self, r: Floats) -> Floats:
        """Compute X' r, (n,)."""

    @abstractmethod
    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new dense Fortran-ordered array (m, k)."""

    @abstractmethod
    def row_chunks(self, step: int, rows: Any = None) -> Iterator[Floats]:
        """Yield the rows, or those in the index array `rows`, `step` at a time.

        Each chunk is a new Fortran-ordered array (k, n).
        """

    @abstractmethod
    def column_matvec(self, idx: Any, v: Floats) -> Floats:
        """Return X[:, idx] v, (m,)."""

    @abstractmethod
    def take(self, idx: Any) -> Design:
        """Return X[:, idx] as a design with the same storage."""

    @abstractmethod
    def cross(self, V: Floats, part: slice) -> Floats:
        """Compute V' X[:, part] for V (m, k), (k, c)."""

    @abstractmethod
    def gram(self, idx: Any, weights: Floats | None = None) -> Floats:
        """Compute X_B' diag(weights) X_B for the columns B = idx, (k, k)."""

    @abstractmethod
    def full_gram(self, weights: Floats | None = None) -> Floats:
        """Return X' diag(weights) X, dense (n, n), with looks at the clock."""

    @abstractmethod
    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Compute Σ_i weights_i x_ij² for every column j, (n,)."""

    @abstractmethod
    def ranges(self) -> tuple[Floats, Floats]:
        """Return the smallest and the largest entry of every column, (n,) each; one pass over X."""

    @abstractmethod
    def scaled(self, scale: Floats) -> Design:
        """Return a copy of X diag(scale) with the same storage."""

    def parts(self) -> Sequence[slice]:
        """Return slices that partition the columns into chunks of a convenient size."""
        n = self.shape[1]
        return [slice(i, min(i + self.chunk, n)) for i in range(0, n, self.chunk)]

    def scan(
        self, kernel: Callable[..., Any], *shared: Any, split: tuple[Any, ...] = ()
    ) -> Iterator[tuple[Any, Any]]:
        """Yield (part, kernel(block, *shared, *own)) over all columns; one pass over X.

        A part is a slice or an index array of columns, in any order. `own` holds the same part of
        the arrays in `split`, whose last axis runs over the columns. The kernel is a module-level
        function, as it may run in another process, where the `Block` is stored.
        """
        for part in self.parts():
            look()
            yield part, kernel(DesignPart(self, part), *shared, *(a[..., part] for a in split))

    def scan_for(
        self, ranking: Callable[[Any], Floats], kernel: Callable[..., Any], *shared: Any,
        split: tuple[Any, ...] = (),
    ) -> Iterator[tuple[Any, Any]]:  # fmt: skip
        """Scan X and prefetch the columns that `ranking` ranks first.

        `ranking` maps the answer for a block to scores (r, c), lower is better. Only storages where
        reading single columns is expensive do more than a plain scan.
        """
        return self.scan(kernel, *shared, split=split)

    def look(self, y: Floats | None = None, weights: Floats | None = None) -> None:
        """Read X once for everything that a search needs first, if reading it is expensive."""
        return

    def known_products(self, y: Floats, weights: Floats | None) -> Floats | None:
        """Return X'(weights ∘ y), (n,), if an earlier pass computed it, else None."""
        return None

    pool_bytes: float = np.inf
    """Memory limit for the columns of a pool, in bytes."""
    n_searches = 1
    """Number of searches that share the memory for pools."""

    @property
    def n_read(self) -> float | None:
        """Number of passes over X so far, by bytes read; None if X is in memory."""
        return None

    @property
    def batcher(self) -> PassBatcher:
        """Runner of tasks that share their passes over X; only for X that is read from a source."""
        raise TypeError("X is in memory: there are no reads to share.")

    def gathered(self, idx: Any) -> Design:
        """Return X[:, idx], idx ascending, in memory for many products.

        Returns self if X is in memory and all columns are selected.
        """
        return self if len(idx) == self.shape[1] else self.take(idx)

    def as_centred(self, weights: Floats | None = None) -> Design | None:
        """Return X less its weighted means if the storage has its own way to centre, else None.

        See `centred`.
        """
        return None

    def recentred(self, weights: Floats, target: Floats | None = None) -> Design:
        """Return X centred by the means for other weights; X itself if it is not centred.

        `target`, already centred, is one whose product with these weights is needed next.
        """
        return self

    def shift_from(self, other: Any) -> Floats:
        """Return the means of this centring less those of another one of the same X, (n,)."""
        return np.zeros(self.shape[1])

    def entry_moments(self, weights: Floats, means: Floats) -> tuple[Floats, Floats] | None:
        """Return Σ_i weights_i (x_ij − mean_j) and the same sum of squares, (n,) each.

        Rounding is relative to the means. Returns None if the stored entries offer no quicker way
        than reading all columns.
        """
        return None

    def is_moderate(self, most: float) -> bool:
        """Return whether a cheap check shows that all nonzero lengths are in [1/most, most].

        False if that would take computing the lengths.
        """
        return False

    def lengths(self) -> Floats:
        """Return the lengths of the columns, (n,); the largest |entry| where squares underflow."""
        lengths = np.sqrt(self.sq_norms())
        short = np.flatnonzero((lengths < VANISHING) & ~self.is_zero())
        for start in range(0, short.size, SHORT_CHUNK):
            part = short[start : start + SHORT_CHUNK]
            lengths[part] = np.abs(self.columns(part)).max(axis=0)
        return lengths

    def is_zero(self) -> NDArray[np.bool_]:
        """Return which columns are known to be zero without reading them, (n,)."""
        return np.zeros(self.shape[1], dtype=np.bool_)


class DesignPart(Block):
    """A slice of the columns of a design, as a block."""

    def __init__(self, design: Design, part: slice) -> None:
        self.design, self.part = design, part

    @property
    def shape(self) -> tuple[int, int]:
        """(m, c)."""
        return self.design.shape[0], self.part.stop - self.part.start

    def product(self, V_t: Floats, part: slice) -> Floats:
        """Return V_t X[:, part] for V_t (k, m), (k, c), by the design's own product."""
        start = self.part.start
        return self.design.cross(V_t.T, slice(start + part.start, start + part.stop))

    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return self.design.columns(np.arange(self.part.start, self.part.stop)[idx])


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
