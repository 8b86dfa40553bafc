"""Long factorizations and products in steps, with a look at the clock between two of them.

The libraries below NumPy answer neither clocks nor Ctrl-C. Small matrices are theirs at once; of
large ones every step makes about `STEP` multiplications, some hundredths of a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from blockl0.blas import all_blas_threads, cubic
from blockl0.run import look

Floats = NDArray[np.float64]
_blas: Any = blas
_lapack: Any = lapack

STEP = 1e9
"""Multiplications between two looks at the clock."""
SHORT = 0.01
"""Share of that for which no clock is looked at."""
LEAST, MOST = 64, 512
"""Columns of a panel."""
REFLECTED_AT_ONCE = 32
"""Columns per LAPACK block, which determines the size of its workspace."""


def panel(multiplications: float, n_columns: int) -> int:
    """Return how many of n columns to work on at once, so that a step takes no more than `STEP`."""
    if multiplications <= STEP:
        return max(n_columns, 1)
    return int(np.clip(STEP * n_columns / multiplications, LEAST, MOST))


def reflections(A: Floats) -> tuple[Floats, Floats]:
    """Return Householder reflections that make A (m, k), m ≥ k > 0, triangular, as LAPACK does.

    The triangle is in the upper part of the first array, (m, k), the scales in the second. Of many
    columns the left half is made triangular first, and its reflections applied to the right half.
    """
    m, k = A.shape
    work = float(m) * k * k
    if work <= STEP or k <= LEAST:
        if work > SHORT * STEP:
            look(work)
        vectors, scales, _, info = _lapack.dgeqrf(A, lwork=REFLECTED_AT_ONCE * k)
        assert info == 0
        return vectors, scales
    # halves meet in products of matrices, which are the fast part
    half = k // 2
    left, first = reflections(A[:, :half])
    found = np.empty((m, k), order="F")
    found[:, :half] = left
    found[:, half:] = reflected_by(left, first, A[:, half:])
    found[half:, half:], second = reflections(found[half:, half:])
    return found, np.concatenate([first, second])


def reflected_by(vectors: Floats, scales: Floats, B: Floats, transposed: str = "T") -> Floats:
    """Return Q'B, or QB for transposed="N", for reflections Q of k columns and B (m, c)."""
    m, k = vectors.shape
    c, found = B.shape[1], np.empty(B.shape, order="F")
    step = panel(2.0 * m * k * c, c)
    for start in range(0, c, step):
        part = slice(start, min(start + step, c))
        look(2.0 * m * k * (part.stop - start))
        room = REFLECTED_AT_ONCE * max(k, part.stop - start)
        with all_blas_threads(2.0 * m * k * (part.stop - start)):
            turned = _lapack.dormqr("L", transposed, vectors, scales, B[:, part], room)
        assert turned[2] == 0
        found[:, part] = turned[0]
    return found


def triangle(A: Floats) -> Floats:
    """Return R of A = QR, (min(m, k), k)."""
    m, k = A.shape
    if float(m) * k * min(m, k) <= STEP or m < k:
        return np.asarray(np.linalg.qr(A, mode="r"))
    return np.triu(reflections(A)[0][:k])


def orthogonal_factors(A: Floats) -> tuple[Floats, Floats]:
    """Return Q (m, r) and R (r, k) of A (m, k) = QR, r = min(m, k)."""
    m, k = A.shape
    if float(m) * k * min(m, k) <= STEP or m < k:
        return np.linalg.qr(A)
    vectors, scales = reflections(A)
    return reflected_by(vectors, scales, np.eye(m, k), "N"), np.triu(vectors[:k])


@cubic(1 / 6)
def cholesky(A: Floats) -> Floats | None:
    """Return L of A = LL', the lower triangle of the result; None if A is not definite.

    The columns of a panel are reduced by those before it, then factorized. A (q, q), by columns, is
    overwritten; O(q³). Every entry of L comes from one sum of at most q products and a division, in
    whatever order, so that the bound on rounding is that of a factorization at once. Above the
    diagonal is anything.
    """
    q = A.shape[0]
    # a panel of a large matrix is a step between two looks at the clock
    step = panel(q**3 / 6.0, q)
    for start in range(0, q, step):
        look()
        stop = min(start + step, q)
        if start:
            A[start:, start:stop] -= (A[start:stop, :start] @ A[start:, :start].T).T
        L, info = _lapack.dpotrf(A[start:stop, start:stop], lower=1, clean=0)
        if info != 0:
            return None
        A[start:stop, start:stop] = L
        if stop < q:
            below = A[stop:, start:stop]
            A[stop:, start:stop] = _blas.dtrsm(1.0, L, below, side=1, lower=1, trans_a=1)
    return A


@cubic(1 / 3)
def inverse_squares(L: Floats) -> Floats:
    """Return diag(inv(LL')) of a lower triangle L, (q,), O(q³); what is above it is not read.

    Raises
    ------
    LinAlgError
        If the diagonal has a zero.
    """
    q = L.shape[0]
    step = panel(q**3 / 3.0, q)
    if q == 0:
        return np.empty(0)
    if step >= q:
        look()
        inverse, info = _lapack.dtrtri(L, lower=1, overwrite_c=0)
        if info != 0:
            raise np.linalg.LinAlgError("the triangle is singular")
        inverse = np.tril(inverse)
        with np.errstate(over="ignore"):
            return np.einsum("ij,ij->j", inverse, inverse)
    # the clock apart, that is quicker than the whole inverse, too
    found = np.empty(q)
    for start in range(0, q, step):
        look()
        stop = min(start + step, q)
        unit = np.zeros((q - start, stop - start), order="F")
        np.fill_diagonal(unit, 1.0)
        part, info = _lapack.dtrtrs(L[start:, start:], unit, lower=1, overwrite_b=1)
        if info != 0:
            raise np.linalg.LinAlgError("the triangle is singular")
        with np.errstate(over="ignore"):
            found[start:stop] = np.einsum("ij,ij->j", part, part)
    return found


@cubic(2 / 3)
def inverse(L: Floats) -> Floats:
    """Return inv(LL') of a lower triangle L, (q, q), O(q³); what is above it is not read."""
    q = L.shape[0]
    step = panel(q**3 / 1.5, q)
    if step >= q:
        lower = np.tril(_lapack.dpotri(L, lower=1)[0])
        return lower + np.tril(lower, -1).T
    found = np.empty((q, q), order="F")
    for start in range(0, q, step):
        look()
        stop = min(start + step, q)
        unit = np.zeros((q - start, stop - start), order="F")
        np.fill_diagonal(unit, 1.0)
        # what is above a column of the inverse is known by symmetry
        found[start:, start:stop] = _lapack.dpotrs(L[start:, start:], unit, lower=1)[0]
        found[start:stop, start:] = found[start:, start:stop].T
    return found


def products(X: Floats, weights: Floats | None = None) -> Floats:
    """Return X' diag(weights) X, (n, n), for X (m, n); half the work, as it is symmetric."""
    X = X if weights is None else X * np.sqrt(weights)[:, None]
    m, n = X.shape
    work = 0.5 * m * float(n) ** 2
    # most products are small, and a search makes many of them
    if work <= STEP:
        return X.T @ X
    step = panel(work, n)
    # by columns every entry is written once; by rows each part would be added to all of it
    G = np.empty((n, n))
    for start in range(0, n, step):
        stop = min(start + step, n)
        these, work = X[:, start:stop], m * (stop - start) * float(stop)
        look(work)
        with all_blas_threads(work):
            G[start:stop, start:stop] = these.T @ these
            G[start:stop, :start] = these.T @ X[:, :start]
        G[:start, start:stop] = G[start:stop, :start].T
    return G
