"""Columns of a table that others determine: which of them is chosen is arbitrary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.problem.orthogonal import (
    DEPENDENT,
    distances,
    independent_positions,
    least_squares,
)
from blockl0.tables.recipe import Feature
from blockl0.text import listing
from blockl0.validate import is_sparse

Floats = NDArray[np.float64]

MOST_COLUMNS = 500
"""Of more columns nothing is said: it would take too long."""
VISIBLE = 1e-6
"""Coefficients of unit columns from which a column takes part in another one."""


def dependent_notes(
    X: Any, names: Sequence[str], features: Sequence[Feature] | None
) -> Iterator[str]:
    """One note on the columns that are sums of others and a constant, with these others.

    That the values of a category add up to 1 is not news. O(m n²), and less where a part of the
    rows shows that there are none.
    """
    used = _columns(names, features)
    m, n = X.shape[0], len(used)
    if is_sparse(X) or not 2 <= n <= min(MOST_COLUMNS, m - 1):
        return
    part = 20 * n + 1000
    if part < m and _are_independent(_factor(X[:part], used)):
        return
    yield from _said(_factor(X, used), used, names)


def dependent_in_factor(
    R: Floats, names: Sequence[str], features: Sequence[Feature] | None
) -> Iterator[str]:
    """The same from a factor of the centred columns, (k, n), that stands for many rows."""
    used = _columns(names, features)
    if 2 <= len(used) <= min(MOST_COLUMNS, len(R)):
        norms = np.sqrt(np.einsum("ij,ij->j", R[:, used], R[:, used]))
        unit: Any = np.linalg.qr(R[:, used] / np.where(norms > 0.0, norms, 1.0), mode="r")
        yield from _said(unit, used, names)


def _said(R: Floats, used: list[int], names: Sequence[str]) -> Iterator[str]:
    """The note, by a triangular factor of columns of length 1."""
    if _are_independent(R):
        return
    n, chosen = R.shape[1], independent_positions(R)
    said = []
    for j in np.setdiff1d(np.arange(n), chosen).tolist():
        shares = least_squares(R[:, chosen], R[:, j])
        others = [names[used[chosen[i]]] for i in np.flatnonzero(np.abs(shares) > VISIBLE)]
        said.append(f"{names[used[j]]} (by {listing(others, 4)})")
    yield (
        f"Columns that others determine: {listing(said)}; which of them is chosen is arbitrary, "
        "and --drop leaves one out."
    )


def _columns(names: Sequence[str], features: Sequence[Feature] | None) -> list[int]:
    """All but one value of each category; of some, one has no column anyway."""
    last = {
        f.column: j
        for j, f in enumerate(features or ())
        if f.levels is not None and len(f.levels) > 2 and f.reference is None
    }
    return [j for j in range(len(names)) if j not in set(last.values())]


def _factor(X: Floats, used: list[int]) -> Floats:
    """The triangular factor of the centred columns, of length 1 each."""
    A = X[:, used]
    A = A - A.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->j", A, A))
    R: Any = np.linalg.qr(A / np.where(norms > 0.0, norms, 1.0), mode="r")
    return R


def _are_independent(R: Floats) -> bool:
    return R.shape[0] == R.shape[1] and float(distances(R).min()) > DEPENDENT
