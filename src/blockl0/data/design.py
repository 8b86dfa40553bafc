"""X in memory: dense, or sparse by columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockl0.blas import all_blas_threads
from blockl0.data.design_base import Design
from blockl0.data.panels import products
from blockl0.lazy import lazy
from blockl0.losses.base import plain_array
from blockl0.run import look
from blockl0.validate import check_X

__all__ = ["Csc", "Dense", "Design", "as_design", "by_column"]

Floats = NDArray[np.float64]

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
        self.chunk = min(MOST_CHUNK, max(LEAST_CHUNK, CHUNK_ENTRIES // max(len(X), 1)))

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
            return self.column_matvec(support, w[support])
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
            return weighted_gram(self.columns(idx), weights)
        # many rows: work on chunks of rows instead of copying all columns
        step, G = max(1, GRAM_BYTES // (8 * k)), np.zeros((k, k))
        for start in range(0, m, step):
            look()
            rows = slice(start, min(start + step, m))
            part = self.X[rows][:, idx]
            G += weighted_gram(part, None if weights is None else weights[rows])
        return G

    def full_gram(self, weights: Floats | None = None) -> Floats:
        """Compute X' diag(weights) X, dense (n, n), with looks at the clock."""
        return weighted_gram(self.X, weights)

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
        self.indices = self.matrix.indices
        self.indptr = self.matrix.indptr

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


def weighted_gram(X: Floats, weights: Floats | None) -> Floats:
    """Compute X' diag(weights) X."""
    return products(X if weights is None else X * np.sqrt(weights)[:, None])


def _sparse_gram(X: Any, weights: Floats | None) -> Floats:
    """Compute X' diag(weights) X, dense (n, n), by sparse products of some columns at a time."""
    m, n = X.shape
    # pairs of entries in a row, if all rows have as many
    products = float(X.nnz) ** 2 / max(m, 1)
    step = max(1, int(min(GRAM_CHUNK, n * SPARSE_PRODUCTS / max(products, 1.0), n)))
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
