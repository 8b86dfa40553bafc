"""Entry changes: what each column would gain a least-squares fit, from products with X."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = tuple[Floats, Floats, NDArray[np.bool_]]
"""A fit: K = inv(X_S'X_S + ridge), (s, s); its coefficients, (s,); which units may leave, (s,)."""

PIVOT_FLOOR = 1e-9
"""Pivots below this share of a column's squared length count it as in the span of the support."""
SMALLEST = 1e-300
"""Keeps a zero column from causing 0 / 0."""


def sent_table(table: Table, sent: Callable[..., Any]) -> tuple[Any, ...]:
    """Move a table to where columns live: K, its diagonal, coefficients, indices that may leave."""
    K, w, free = table
    return sent(K), sent(np.diag(K).copy()), sent(w), sent(np.flatnonzero(free), np.int64)


def changes_at(U: Any, tables: Sequence[tuple[Any, ...]], sq: Any, space: Any = np) -> Any:
    """Compute gains of additions, changes by the best swaps, and pivots at several fits, (k, 3, c).

    Parameters
    ----------
    U : array (Σ(s + 1), c)
        For every fit X_S'X, followed by the gradient of the columns.
    tables : sequence of moved tables
    sq : array (c,)
        Squared lengths of the columns, including the ridge.
    space : module
        The array functions, those of the array API.
    """
    found, at = [], 0
    for table in tables:
        size = table[0].shape[0]
        found.append(_changes(U[at : at + size, :], U[at + size, :], table, sq, space))
        at += size + 1
    return space.stack(found)


def _changes(U: Any, g: Any, table: tuple[Any, ...], sq: Any, xp: Any) -> Any:
    """Compute gains, swaps and pivots of some columns, (3, c), from U = X_S' X_part, (s, c)."""
    W = table[0] @ U
    # einsum avoids the temporary U * W, whose allocation would cost more than its entries
    taken = np.einsum("ij,ij->j", U, W) if xp is np else xp.sum(U * W, axis=0)
    M = xp.clip(sq - taken, min=0.0)
    least, is_zero, never = PIVOT_FLOOR * sq, sq <= 0.0, xp.full_like(sq, np.inf)
    gains = 0.5 * g * g / xp.where(M > least, M, never)
    swaps = (_swaps_here if xp is np else _swaps)(W, g, M, least + SMALLEST, table, xp)
    return xp.stack((xp.where(is_zero, -never, gains), xp.where(is_zero, never, swaps), M))


def _swaps(W: Any, g: Any, M: Any, least: Any, table: tuple[Any, ...], xp: Any) -> Any:
    """Find the best swap with each column, by array operations."""
    _, diagonal, w, free = table
    if free.shape[0] == 0:
        return xp.full_like(g, np.inf)
    W, diagonal, w = xp.take(W, free, axis=0), xp.take(diagonal, free), xp.take(w, free)
    diagonal, w = diagonal[:, None], w[:, None]
    slope = g[None, :] - W * (w / diagonal)
    pivot = xp.maximum(M[None, :] + W * W / diagonal, least[None, :])
    return xp.min(0.5 * w * w / diagonal - 0.5 * slope * slope / pivot, axis=0)


def _swaps_here(W: Any, g: Any, M: Any, least: Any, table: tuple[Any, ...], xp: Any) -> Any:
    """Find the best swap with each column, by the compiled kernel."""
    from blockl0 import (
        kernels,  # imported late: refusing a bad table must not wait for the compiler
    )

    _, diagonal, w, free = table
    may_leave = np.zeros(w.size, dtype=np.bool_)
    may_leave[free] = True
    swaps = np.full(g.size, np.inf)
    kernels.price_swaps(W, diagonal, w, may_leave, g, M, least, swaps)
    return swaps
