"""Seeded instances, made without temporaries of the size of X."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

SNR = 3.0
"""Variance of the signal over that of the noise."""
CHUNK = 4096
"""Sparse columns drawn at a time."""


def make(m: int, n: int, density: float, s: int, seed: int):
    """X (m, n) and y (m,): s true columns with coefficients ±1, noise at the given ratio.

    X is a Fortran-ordered array of standard normals, or below density 1 a csc_array with
    round(density·m) of them in every column: the forms that blockl0 takes without a copy.
    """
    rng = np.random.default_rng(seed)
    X = dense(m, n, rng) if density == 1.0 else sparse(m, n, max(1, round(density * m)), rng)
    truth = rng.choice(n, s, replace=False)
    signal = X[:, truth] @ rng.choice([-1.0, 1.0], s)
    return X, signal + np.sqrt(signal.var() / SNR) * rng.standard_normal(m)


def dense(m: int, n: int, rng: np.random.Generator):
    X = np.empty((m, n), order="F")
    rng.standard_normal(out=X.T)
    return X


def sparse(m: int, n: int, k: int, rng: np.random.Generator) -> sp.csc_array:
    """Columns of k nonzeros each; 2000×1000000 at k = 20 takes about two seconds."""
    data, indices = rng.standard_normal(n * k), np.empty(n * k, dtype=np.int32)
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        rows = rng.integers(0, m - k + 1, (stop - start, k), dtype=np.int32)
        rows.sort(axis=1)
        rows += np.arange(k, dtype=np.int32)  # sorted with repeats becomes sorted and distinct
        indices[start * k : stop * k] = rows.ravel()
    indptr = np.arange(0, n * k + 1, k, dtype=np.int32)
    return sp.csc_array((data, indices, indptr), shape=(m, n))


def nbytes(X) -> int:
    """Bytes of the arrays that hold X."""
    return sum(a.nbytes for a in (X.data, X.indices, X.indptr)) if sp.issparse(X) else X.nbytes
