"""What each of some columns would bring to fits of least squares, from products with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = tuple[Floats, Floats, NDArray[np.bool_]]
"""Of a fit: K = inv(X_S'X_S + ridge), (s, s); its coefficients, (s,); and what may leave, (s,)."""

LEAST_PIVOT = 1e-9
"""Of a squared length: with a smaller pivot a column is in the span of the support."""
SMALLEST = 1e-300
"""Keeps a zero column from dividing zero by zero."""


def sent_table(table: Table, sent: Callable[..., Any]) -> tuple[Any, ...]:
    """A table where columns lie: K, its diagonal, coefficients, and what may leave, by numbers."""
    K, w, free = table
    return sent(K), sent(np.diag(K).copy()), sent(w), sent(np.flatnonzero(free), np.int64)


def prices_at(U: Any, tables: Sequence[tuple[Any, ...]], sq: Any, space: Any = np) -> Any:
    """Gains by additions, changes by the best swaps, and pivots, at each of some fits, (k, 3, c).

    Parameters
    ----------
    U : array (Σ(s + 1), c)
        For every fit X_S'X, and below it the gradient of the columns.
    tables : sequence of tables that were sent
    sq : array (c,)
        Squared lengths of the columns, the ridge included.
    space : module
        The functions of these arrays, those of the array API.
    """
    found, at = [], 0
    for table in tables:
        size = table[0].shape[0]
        found.append(_prices(U[at : at + size, :], U[at + size, :], table, sq, space))
        at += size + 1
    return space.stack(found)


def _prices(U: Any, g: Any, table: tuple[Any, ...], sq: Any, xp: Any) -> Any:
    """Gains, swaps and pivots of some columns, (3, c); U = X_S' X_part, (s, c)."""
    W = table[0] @ U
    # here without a product of all, whose memory would cost more than its entries
    taken = np.einsum("ij,ij->j", U, W) if xp is np else xp.sum(U * W, axis=0)
    M = xp.clip(sq - taken, min=0.0)
    least, is_zero, never = LEAST_PIVOT * sq, sq <= 0.0, xp.full_like(sq, np.inf)
    gains = 0.5 * g * g / xp.where(M > least, M, never)
    swaps = (_swaps_here if xp is np else _swaps)(W, g, M, least + SMALLEST, table, xp)
    return xp.stack((xp.where(is_zero, -never, gains), xp.where(is_zero, never, swaps), M))


def _swaps(W: Any, g: Any, M: Any, least: Any, table: tuple[Any, ...], xp: Any) -> Any:
    """The best swap with each column, by arrays."""
    _, diagonal, w, free = table
    if free.shape[0] == 0:
        return xp.full_like(g, np.inf)
    W, diagonal, w = xp.take(W, free, axis=0), xp.take(diagonal, free), xp.take(w, free)
    diagonal, w = diagonal[:, None], w[:, None]
    slope = g[None, :] - W * (w / diagonal)
    pivot = xp.maximum(M[None, :] + W * W / diagonal, least[None, :])
    return xp.min(0.5 * w * w / diagonal - 0.5 * slope * slope / pivot, axis=0)


def _swaps_here(W: Any, g: Any, M: Any, least: Any, table: tuple[Any, ...], xp: Any) -> Any:
    """The same, compiled."""
    from blockl0 import (
        kernels,  # with the compiler, which a table that is refused does not wait for
    )

    _, diagonal, w, free = table
    may_leave = np.zeros(w.size, dtype=np.bool_)
    may_leave[free] = True
    swaps = np.full(g.size, np.inf)
    kernels.price_swaps(W, diagonal, w, may_leave, g, M, least, swaps)
    return swaps
