"""Linearly dependent columns of a table, and targets that are sums of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables.recipe import Feature
from blockl0.problem.orthogonal import (
    DEPENDENT,
    WRITTEN,
    distances,
    independent_positions,
    least_squares,
)
from blockl0.text import LISTED, as_text, listing, weighted_sum
from blockl0.validate import is_sparse

Floats = NDArray[np.float64]

MOST_COLUMNS = 500
"""More columns are not checked: it would take too long."""
VISIBLE = 1e-6
"""Smallest coefficient, for unit columns, that counts as a contribution."""


class CentredFactor(NamedTuple):
    """Triangular factor of centred columns and targets, in place of the rows.

    Attributes
    ----------
    R : ndarray (n, n)
        Triangular factor of the columns, each of length 1.
    T : ndarray (k, q)
        The targets in the same coordinates; rows beyond the first n are what no column explains.
    sizes : ndarray (n,)
        Lengths of the columns.
    """

    R: Floats
    T: Floats
    sizes: Floats


def dependent_notes(
    X: Any, y: Any, names: Sequence[str], features: Sequence[Feature] | None,
    targets: Sequence[str],
) -> Iterator[str]:  # fmt: skip
    """Yield a note on columns that are sums of others and a constant, and one on such targets.

    The dependence among the levels of a category is expected and not mentioned. O(m n²), less if
    some of the rows already show that there is none.
    """
    used = _columns(names, features)
    m, n = X.shape[0], len(used)
    if is_sparse(X) or not 2 <= n <= min(MOST_COLUMNS, m - 1):
        return
    Y = y.reshape(m, -1) if y.dtype.kind == "f" else np.empty((m, 0))
    part = 20 * n + 1000
    if part < m:
        first = _factor(X[:part, used], Y[:part])
        if _are_independent(first.R) and not any(_is_sum(first, j) for j in range(Y.shape[1])):
            return
    yield from _said(_factor(X[:, used], Y), used, names, targets, m)


def dependent_in_factor(
    R: Floats, names: Sequence[str], features: Sequence[Feature] | None, target: str, n_rows: int
) -> Iterator[str]:
    """Yield the same from a factor of the centred columns and target, (k, n + 1), of many rows."""
    used = _columns(names, features)
    if 2 <= len(used) <= min(MOST_COLUMNS, len(R) - 1):
        yield from _said(_factored(R[:, used], R[:, -1:]), used, names, [target], n_rows)


def _said(
    factor: CentredFactor,
    used: list[int],
    names: Sequence[str],
    targets: Sequence[str],
    n_rows: int,
) -> Iterator[str]:
    """Yield the notes, by a factor of the columns."""
    if not _are_independent(factor.R):
        yield _determined(factor.R, used, names)
    for j in range(factor.T.shape[1]):
        said = _sum_of(factor, j, used, names) if n_rows > 2 * (len(used) + 1) else None
        if said is not None:
            yield (
                f"{targets[j]!r} is {said}, up to a constant and rounding. If these columns become "
                "known only with the target, they cannot predict it: --drop leaves a column out."
            )


def _determined(R: Floats, used: list[int], names: Sequence[str]) -> str:
    """Name the columns that others determine, with these others."""
    n, chosen = R.shape[1], independent_positions(R)
    said = []
    for j in np.setdiff1d(np.arange(n), chosen).tolist():
        shares = least_squares(R[:, chosen], R[:, j])
        others = [names[used[chosen[i]]] for i in np.flatnonzero(np.abs(shares) > VISIBLE)]
        said.append(f"{names[used[j]]} (by {listing(others, 4)})")
    return (
        f"Columns that others determine: {listing(said)}; which of them is chosen is arbitrary, "
        "and --drop leaves one out."
    )


def _is_sum(factor: CentredFactor, j: int) -> bool:
    """Return whether the columns leave nothing of a target but rounding."""
    t, n = factor.T[:, j], len(factor.R)
    return float(np.linalg.norm(t[n:])) <= WRITTEN * float(np.linalg.norm(t))


def _sum_of(factor: CentredFactor, j: int, used: list[int], names: Sequence[str]) -> str | None:
    """Return the few columns that add up to a target; None where there are none."""
    R, t = factor.R, factor.T[: len(factor.R), j]
    size = float(np.linalg.norm(t))
    if size == 0.0 or not _is_sum(factor, j):
        return None
    chosen = independent_positions(R)
    shares = least_squares(R[:, chosen], t)
    at = np.flatnonzero(np.abs(shares) > WRITTEN * size)
    is_whole = np.linalg.norm(t - R[:, chosen[at]] @ shares[at]) <= WRITTEN * size * LISTED
    if at.size > LISTED or not is_whole:
        return None
    columns = chosen[at]
    coefs = shares[at] / factor.sizes[columns]
    return as_text(weighted_sum([names[used[int(i)]] for i in columns], coefs.tolist()))


def _columns(names: Sequence[str], features: Sequence[Feature] | None) -> list[int]:
    """Select all columns but one level of each category without a reference."""
    last = {
        f.column: j
        for j, f in enumerate(features or ())
        if f.levels is not None and len(f.levels) > 2 and f.reference is None
    }
    return [j for j in range(len(names)) if j not in set(last.values())]


def _factor(X: Floats, Y: Floats) -> CentredFactor:
    """Factor the columns and targets, centred."""
    return _factored(X - X.mean(axis=0), Y - Y.mean(axis=0))


def _factored(A: Floats, B: Floats) -> CentredFactor:
    """Factor centred columns and targets."""
    n, sizes = A.shape[1], np.sqrt(np.einsum("ij,ij->j", A, A))
    sizes[sizes == 0.0] = 1.0
    whole: Any = np.linalg.qr(np.column_stack([A / sizes, B]), mode="r")
    return CentredFactor(whole[:n, :n], whole[:, n:], sizes)


def _are_independent(R: Floats) -> bool:
    return R.shape[0] == R.shape[1] and float(distances(R).min()) > DEPENDENT
