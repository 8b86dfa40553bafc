"""The best addition or swap that brings in each column of X, for some supports in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import Block
from blockl0.moves.tableau import CLEAR, clear_inverse
from blockl0.problem.orthogonal import smallest_distance
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALONE_CHANCES, ALONE_SHARE, ALONE_DISTANCE = 4.0, 0.01, 0.5
"""For a support to have no rival: the least cost of a swap, in gains by chance and as a share of
the objective, and the least distance of each of its columns, of length 1, from the others."""


class Priced(NamedTuple):
    """The gains of every column outside a support, (n,) each, for any budget and price.

    Attributes
    ----------
    gains : ndarray (n,)
        By how much its addition lowers the smooth part; −inf where it is zero, or in the support.
    swaps : ndarray (n,)
        Change of the objective by its best swap; infinite likewise.
    doubtful : ndarray of int64
        The columns outside the support whose gains may be rounding.
    """

    gains: Floats
    swaps: Floats
    doubtful: Ints

    def change(self, price: float) -> Floats:
        """Return the change by the better of both, (n,).

        An addition is charged `price`, infinity if there is no room.
        """
        return np.minimum(price - self.gains, self.swaps)


def stands_alone(
    problem: Problem, total: float, support: Ints, objective: float, least_price: float
) -> bool:
    """Check if every swap raises the objective by far more than chance could regain.

    The best of n irrelevant columns gains about log n times the variance of the residual, which is
    estimated with the degrees of freedom that are left. Of two columns close to each other, losing
    one costs more than losing both, so the support must have no such columns. At a price nothing is
    claimed about other sizes.

    Parameters
    ----------
    problem : Problem
        Provides the columns and the sparsity.
    total : float
        Sum of the sample weights: a sample of weight two counts as two.
    support : ndarray of int64
    objective : float
        Of least squares on these rows.
    least_price : float
        Its change by the cheapest addition or swap.
    """
    n_free = total - support.size
    if problem.sparsity.price > 0.0 or n_free <= 0:
        return False
    # noise is estimated from the residual, which says nothing without rows to spare
    share = max(ALONE_CHANCES * np.log(problem.n_features) / n_free, ALONE_SHARE)
    if not least_price >= share * objective:
        return False
    return smallest_distance(problem.unit_columns(support)[0]) >= ALONE_DISTANCE


def price_of_one(problem: Problem, size: int) -> float:
    """Return the price of an addition to a support; infinity if there is no room."""
    price, budget = problem.sparsity
    return price if size < budget else np.inf


def price_supports(
    problem: Problem, sq_norms: Floats, points: Sequence[tuple[Floats, Ints]]
) -> list[Priced]:
    """Price every column for each of some supports, in one pass over X.

    With u = X_S'x_i, K = inv(X_S'X_S + ridge) and W = K u, the pivot of column i is
    M_ii = ‖x_i‖² − u'W; swapping it for j changes the minimum by
    w_j²/2K_jj − (g_i − W_j w_j/K_jj)² / 2(M_ii + W_j²/K_jj). O(mns) for each.

    Parameters
    ----------
    problem : Problem
        With a squared loss.
    sq_norms : ndarray (n,)
        Squared lengths of the columns, weights and ridge included.
    points : sequence of (w (n,), support)
        The fits on supports, none of them empty.
    """
    n, scans = problem.n_features, [_scan_of(problem, *point) for point in points]
    found = np.empty((len(points), 3, n))
    V = np.hstack([one.V for one in scans])
    tables = tuple((one.K, one.w, one.free) for one in scans)
    for part, answer in problem.design.scan_for(
        by_gains, kernel_price, V, tables, split=(sq_norms,)
    ):
        found[..., part] = answer
    result = []
    for (gains, swaps, pivots), one, (_, support) in zip(found, scans, points, strict=True):
        gains[support], swaps[support] = -np.inf, np.inf
        doubtful = doubtful_columns(sq_norms, pivots, support, one.is_apart)
        result.append(Priced(gains, swaps, doubtful))
    return result


class Scan(NamedTuple):
    """A support as `kernel_price` takes it: V = [X_S, residual], weighted, and K = inv(H)."""

    V: Floats
    K: Floats
    w: Floats
    free: NDArray[np.bool_]
    is_apart: bool


def _scan_of(problem: Problem, w: Floats, support: Ints) -> Scan:
    X_S = problem.design.columns(support)
    # the residual rides along, so that gradient and regressions take one pass
    eta = X_S @ w[support]
    weighted = np.column_stack([X_S, problem.loss.gradient(eta, problem.y)])
    if problem.sample_weight is not None:
        weighted *= problem.sample_weight[:, None]
    H = weighted[:, :-1].T @ X_S
    H.flat[:: support.size + 1] += problem.ridge
    K = _inverse(H)
    # pivots of the columns of the support, in their own lengths: below CLEAR all is rounding
    is_apart = 1.0 / (K.diagonal() * H.diagonal()) > CLEAR
    free = ~problem.is_kept(support)
    return Scan(weighted, K, w[support], free, bool(is_apart.all()))


def price_first(sq_norms: Floats, target: Floats, price: float, budget: int) -> Floats:
    """Return the changes by entries of an empty support, (n,), from the gradient at zero."""
    if budget == 0:
        return np.full(target.size, np.inf)
    safe = np.where(sq_norms > 0.0, sq_norms, np.inf)
    return price - 0.5 * target**2 / safe


def doubtful_columns(sq_norms: Floats, pivots: Floats, support: Ints, is_apart: bool) -> Ints:
    """Return the columns near the span of the support; all if that is nearly dependent."""
    doubtful = sq_norms > 0.0
    if is_apart:
        doubtful &= ~(pivots > CLEAR * sq_norms)
    doubtful[support] = False
    return np.flatnonzero(doubtful)


def _inverse(H: Floats) -> Floats:
    """Invert a Gram matrix, in the sense of a pseudo-inverse if its columns nearly depend."""
    found = clear_inverse(H, CLEAR)
    if found is not None:
        return found
    scale = np.sqrt(np.where(H.diagonal() > 0.0, H.diagonal(), 1.0))
    K = np.linalg.pinv(H / scale / scale[:, None], hermitian=True).astype(np.float64)
    return K / scale / scale[:, None]


def by_gains(answer: Floats) -> Floats:
    """Return the keys by which to rank columns, for additions and swaps separately, (2k, c)."""
    return np.concatenate([-answer[:, 0], answer[:, 1]])


def kernel_price(
    block: Block, V: Floats, tables: tuple[tuple[Floats, Floats, Any], ...], sq: Floats
) -> Floats:
    """Compute gains, swaps and pivots of the columns of a block at supports, (k, 3, c)."""
    return block.entry_changes(V, tables, sq)
