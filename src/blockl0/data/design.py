"""The interface to X, and X in memory: dense, or sparse by columns.

Solvers do not know how the matrix is stored. Columns of extreme size are scaled by powers of two,
so that no square over- or underflows. Powers of two change no digit: the scaled problem is the
given one, with w_j = scale_j·v_j. Methods whose steps depend on units, such as proximal gradients,
work in the scaled ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockl0.blas import all_blas_threads
from blockl0.data.block import Block
from blockl0.data.panels import products
from blockl0.lazy import lazy
from blockl0.losses.base import plain_array
from blockl0.run import look
from blockl0.validate import check_X

if TYPE_CHECKING:
    from blockl0.data.passes import PassBatcher

__all__ = ["Csc", "Dense", "Design", "as_design", "by_column"]

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

    design: Design
    part: slice

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


GRAM_BYTES = 32 << 20
"""Bytes of columns that are copied to form a Gram matrix of some of them."""
GRAM_CHUNK, SPARSE_PRODUCTS = 512, 1e7
"""Columns of a sparse X'X formed at a time, to bound the memory beside the result, and products
between two looks at the clock."""
MANY_ENTRIES, ROWS_AT_A_TIME = 1 << 18, 128
"""Entries from which a row-major array is transposed in chunks of rows, and rows per chunk: rows
that stay in cache are read once, not once for each of their columns.
"""
MOST_CHUNK, LEAST_CHUNK, CHUNK_ENTRIES = 2048, 128, 1 << 22
"""Columns of a dense X that a pass works on at a time, and entries of them."""
CACHE_BYTES = 1 << 20
"""Bytes of X read at a time for sums and squares, so that they stay in cache."""


def by_column(X: Any) -> Floats:
    """Return X (m, n) as float64 in Fortran order; no copy if it is that already."""
    X = np.asarray(X)
    if X.flags.f_contiguous or X.size < MANY_ENTRIES:
        return np.asfortranarray(X, dtype=np.float64)
    columns = np.empty(X.shape, order="F")
    for start in range(0, len(X), ROWS_AT_A_TIME):
        columns[start : start + ROWS_AT_A_TIME] = X[start : start + ROWS_AT_A_TIME]
    return columns


class Dense(Design):
    """Dense X, float64 in Fortran order; copied only if it is not that already.

    matvec, rmatvec and sq_norms cost O(mn); columns O(mk); gram O(mk²); full_gram O(mn²).
    """

    # measured: from 500 columns on, a factor takes longer than one or two searches
    most_factored = 300

    def __init__(self, X: Floats) -> None:
        self.X: Floats = by_column(X)
        # small temporaries stay in cache and their memory is reused
        self.chunk: int = min(MOST_CHUNK, max(LEAST_CHUNK, CHUNK_ENTRIES // max(len(X), 1)))

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        return self.X.shape

    @property
    def nbytes(self) -> int:
        """Bytes held by the stored entries."""
        return self.X.nbytes

    def matvec(self, w: Floats) -> Floats:
        """Compute X w, (m,); columns with w_j = 0 are skipped when most are zero."""
        support = w.nonzero()[0]
        if 4 * support.size < w.size:
            # columns of the C-ordered transpose are read in one contiguous run each
            return self.X.T.take(support, axis=0).T @ w[support]
        return self.X @ w

    def rmatvec(self, r: Floats) -> Floats:
        """Compute X' r, (n,)."""
        return self.X.T @ r

    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new dense Fortran-ordered array (m, k)."""
        # taking rows of the C-ordered transpose copies each column in one contiguous run
        return self.X.T.take(np.asarray(idx, dtype=np.intp), axis=0).T

    def row_chunks(self, step: int, rows: Any = None) -> Iterator[Floats]:
        """Yield the rows, or those in the index array `rows`, `step` at a time, as new (k, n)."""
        for part in _row_parts(self.shape[0], step, rows):
            # copying the transpose reads each column in one contiguous run
            yield self.X.T[:, part].copy().T

    def column_matvec(self, idx: Any, v: Floats) -> Floats:
        """Compute X[:, idx] v, (m,)."""
        return self.columns(idx) @ v

    def take(self, idx: Any) -> Dense:
        """Return X[:, idx] as a dense design."""
        return Dense(self.columns(idx))

    def cross(self, V: Floats, part: slice) -> Floats:
        """Compute V' X[:, part] for V (m, k), (k, c)."""
        X = self.X[:, part]
        with all_blas_threads(V.shape[1] * float(X.size)):
            return V.T @ X

    def gram(self, idx: Any, weights: Floats | None = None) -> Floats:
        """Compute X_B' diag(weights) X_B for the columns B = idx, (k, k)."""
        m, k = self.shape[0], len(idx)
        if 8 * m * k <= GRAM_BYTES:
            return products(self.columns(idx), weights)
        # many rows: work on chunks of rows instead of copying all columns
        step, G = max(1, GRAM_BYTES // (8 * k)), np.zeros((k, k))
        for start in range(0, m, step):
            look()
            rows = slice(start, min(start + step, m))
            part = self.X[rows][:, idx]
            G += products(part, None if weights is None else weights[rows])
        return G

    def full_gram(self, weights: Floats | None = None) -> Floats:
        """Compute X' diag(weights) X, dense (n, n), with looks at the clock."""
        return products(self.X, weights)

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Compute Σ_i weights_i x_ij² for every column j, (n,)."""
        if weights is None:
            return self._squares.copy()
        if not self.X.T.flags.carray:
            # read-only arrays, such as memory shared between processes, would compile the kernel
            # again
            return np.einsum("i,ij,ij->j", weights, self.X, self.X)
        from blockl0 import kernels  # only a search needs the compiler

        squares = np.empty(self.shape[1])
        kernels.weighted_squares(self.X.T, plain_array(weights), squares)
        return squares

    @lazy
    def _squares(self) -> Floats:
        # needed by the check for columns of extreme size and again by a search
        return np.einsum("ij,ij->j", self.X, self.X)

    def is_moderate(self, most: float) -> bool:
        """Return whether all lengths are in [1/most, most], and none is zero."""
        squares = self.sq_norms()
        return bool(squares.min() >= most**-2 and squares.max() <= most**2)

    def ranges(self) -> tuple[Floats, Floats]:
        """Return the smallest and the largest entry of every column, (n,) each; one pass over X."""
        return self.X.min(axis=0), self.X.max(axis=0)

    def scaled(self, scale: Floats) -> Dense:
        """Return X diag(scale), a copy."""
        return Dense(self.X * scale)


class Csc(Design):
    """Sparse X by columns: `data`, sorted row `indices` and `indptr`; never densified.

    matvec, rmatvec and sq_norms cost O(nnz). `columns` and `gram` densify the k selected columns.
    """

    # slicing columns costs more than the memory it saves
    chunk = 16384
    # a factor is made of dense rows
    most_factored = 100

    def __init__(
        self,
        data: Floats,
        indices: NDArray[np.integer[Any]],
        indptr: NDArray[np.integer[Any]],
        shape: tuple[int, int],
    ) -> None:
        # csc_array uses 32-bit indices whenever they suffice, so compiled code sees one type
        self.matrix: Any = sp.csc_array((data, indices, indptr), shape=shape)
        self.matrix.sort_indices()
        self.data: Floats = self.matrix.data
        self.indices: Any = self.matrix.indices
        self.indptr: Any = self.matrix.indptr

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        return self.matrix.shape

    @property
    def nbytes(self) -> int:
        """Bytes used by the stored entries and their indices."""
        return self.data.nbytes + self.indices.nbytes + self.indptr.nbytes

    def matvec(self, w: Floats) -> Floats:
        """Compute X w, (m,); columns with w_j = 0 are skipped when most are zero."""
        support = np.flatnonzero(w)
        if 4 * support.size < w.size:
            return self.column_matvec(support, w[support])
        return self.matrix @ w

    def rmatvec(self, r: Floats) -> Floats:
        """Compute X' r, (n,)."""
        return self.matrix.T @ r

    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new dense Fortran-ordered array (m, k)."""
        return self._take(idx).toarray(order="F")

    def row_chunks(self, step: int, rows: Any = None) -> Iterator[Floats]:
        """Yield the rows, or those in the index array `rows`, `step` at a time, as new dense (k,
        n).

        The entries are copied to row order once.
        """
        by_rows = self.matrix.tocsr()
        for part in _row_parts(self.shape[0], step, rows):
            yield by_rows[part].toarray(order="F")

    def column_matvec(self, idx: Any, v: Floats) -> Floats:
        """Compute X[:, idx] v, (m,)."""
        return self._take(idx) @ v

    def take(self, idx: Any) -> Csc:
        """Return X[:, idx] as a sparse design."""
        part = self._take(idx)
        return Csc(part.data, part.indices, part.indptr, part.shape)

    def cross(self, V: Floats, part: slice) -> Floats:
        """Compute V' X[:, part] for V (m, k), (k, c)."""
        return np.ascontiguousarray((self.matrix[:, part].T @ V).T)

    def gram(self, idx: Any, weights: Floats | None = None) -> Floats:
        """Compute X_B' diag(weights) X_B for the columns B = idx, (k, k)."""
        return _sparse_gram(self._take(idx), weights)

    def full_gram(self, weights: Floats | None = None) -> Floats:
        """Compute X' diag(weights) X, dense (n, n), with looks at the clock."""
        return _sparse_gram(self.matrix, weights)

    def sq_norms(self, weights: Floats | None = None) -> Floats:
        """Compute Σ_i weights_i x_ij² for every column j, (n,)."""
        n, result = self.shape[1], np.empty(self.shape[1])
        # in chunks, to bound the memory beside X
        for start in range(0, n, self.chunk):
            stop = min(start + self.chunk, n)
            entries = slice(self.indptr[start], self.indptr[stop])
            squares = self.data[entries] ** 2
            if weights is not None:
                squares *= weights[self.indices[entries]]
            # unlike np.add.reduceat, bincount by column number is right for empty columns too
            column = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
            result[start:stop] = np.bincount(column, squares, stop - start)
        return result

    def ranges(self) -> tuple[Floats, Floats]:
        """Return the smallest and the largest entry of every column, (n,) each; one pass over X."""
        low, high = self.matrix.min(axis=0), self.matrix.max(axis=0)
        return np.ravel(low.toarray()), np.ravel(high.toarray())

    def scaled(self, scale: Floats) -> Csc:
        """Return X diag(scale), with copied entries."""
        data = self.data * np.repeat(scale, np.diff(self.indptr))
        return Csc(data, self.indices, self.indptr, self.shape)

    def entry_moments(self, weights: Floats, means: Floats) -> tuple[Floats, Floats]:
        """Compute Σ_i weights_i (x_ij − mean_j) and the same sum of squares from stored entries.

        The rounding error is relative to the mean, so for a column far from zero the result only
        shows that it is far.
        """
        n, total = self.shape[1], weights.sum()
        sums, squares = np.zeros(n), np.empty(n)
        for part in self._cached_parts():
            entries = slice(self.indptr[part.start], self.indptr[part.stop])
            n_part, mean = part.stop - part.start, means[part]
            column = np.repeat(np.arange(n_part), np.diff(self.indptr[part.start : part.stop + 1]))
            w = weights[self.indices[entries]]
            off = self.data[entries] - mean[column]
            # entries that are not stored contribute −mean
            left = np.maximum(total - np.bincount(column, w, n_part), 0.0)
            sums[part] = np.bincount(column, w * off, n_part) - left * mean
            squares[part] = np.bincount(column, w * off**2, n_part) + left * mean**2
        return sums, squares

    def is_moderate(self, most: float) -> bool:
        """Return whether the stored entries, none of them zero, show that no column is extreme."""
        if self.data.size == 0:
            return True
        sizes = np.abs(self.data)
        return bool(sizes.min() >= 1.0 / most and sizes.max() * sizes.size <= most)

    def is_zero(self) -> NDArray[np.bool_]:
        """Return which columns have no entry, (n,)."""
        return np.diff(self.indptr) == 0

    def _cached_parts(self) -> list[slice]:
        """Return slices of columns whose entries fit in cache."""
        n, step = self.shape[1], CACHE_BYTES // 8
        ends = np.searchsorted(self.indptr, np.arange(step, self.indptr[-1] + step, step))
        ends = np.unique(np.concatenate([[0], np.minimum(ends, n), [n]])).tolist()
        return [slice(start, stop) for start, stop in pairwise(ends)]

    def _take(self, idx: Any) -> Any:
        return self.matrix[:, np.asarray(idx, dtype=np.intp)]


def as_design(X: Any, memory_limit: float | None = None) -> Design:
    """Check X and wrap it: `Dense` for arrays and array-likes, `Csc` for scipy.sparse.

    Sources that `blockl0.storage` reads in blocks become `Blocks`, not yet validated, unless they
    are small. A design is returned as it is.
    """
    if isinstance(X, Design):
        return X
    if type(X) is not np.ndarray:
        # imported here as `Blocks` itself depends on `Dense`
        from blockl0.data.blocks import stored

        X = stored(X, memory_limit)
        if isinstance(X, Design):
            return X
    X = check_X(X)
    if sp.issparse(X):
        return Csc(X.data, X.indices, X.indptr, X.shape)
    return Dense(X)


def _row_parts(m: int, step: int, rows: Any) -> Iterator[Any]:
    """Yield slices of all rows, or chunks of the given rows."""
    size = m if rows is None else len(rows)
    for start in range(0, size, step):
        part = slice(start, min(start + step, size))
        yield part if rows is None else rows[part]


def _sparse_gram(X: Any, weights: Floats | None) -> Floats:
    """Compute X' diag(weights) X, dense (n, n), by sparse products of some columns at a time."""
    m, n = X.shape
    # pairs of entries in a row, if all rows have as many
    n_pairs = float(X.nnz) ** 2 / max(m, 1)
    step = max(1, int(min(GRAM_CHUNK, n * SPARSE_PRODUCTS / max(n_pairs, 1.0), n)))
    weighted = _scale_rows(X, weights)
    if step >= n:
        return (X.T @ weighted).toarray()
    G = np.empty((n, n), order="F")
    for start in range(0, n, step):
        look()
        chunk = slice(start, min(start + step, n))
        G[:, chunk] = (X.T @ weighted[:, chunk]).toarray()
    return G


def _scale_rows(A: Any, weights: Floats | None) -> Any:
    """Return diag(weights) A with the sparsity pattern of A."""
    if weights is None:
        return A
    return sp.csc_array((A.data * weights[A.indices], A.indices, A.indptr), shape=A.shape)


# -- extreme columns, scaled by powers of two ------------------------------------------------------


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
    # nearly all data: lengths are not even computed
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
    # beside a ridge such a column has no coefficient, and its squares would underflow
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
    # a ridge ties the units of all columns together, so that one factor has to do for all
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
