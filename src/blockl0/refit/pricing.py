"""What every column of X would bring at a point: the best addition or swap with it, in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.certificate.moves import CLEAR
from blockl0.problem.orthogonal import smallest_distance
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALONE_CHANCES, ALONE_SHARE, ALONE_DISTANCE = 4.0, 0.01, 0.5
"""What a swap must cost, in gains by chance and as a share of the objective, for a support beside
which there is nothing else, and how far its columns, of length 1, must be from the others."""
LEAST_PIVOT = 1e-9
"""Of a squared length: with a smaller pivot a column is in the span of the support."""


def stands_alone(problem: Problem, support: Ints, objective: float, least_price: float) -> bool:
    """Whether all swaps raise an objective by far more than chance may take off it again.

    Of n columns that mean nothing the best takes about log n of the variance of the residual, as
    rows and coefficients tell it. Of columns close to each other one alone costs more than both
    together, so that the support must have none. At a price nothing is said of other sizes.

    Parameters
    ----------
    problem : Problem
        Of which the columns, the sparsity and the weights are read.
    support : ndarray of int64
    objective : float
        Of least squares with these rows.
    least_price : float
        What the cheapest addition or swap changes it by.
    """
    n_free = problem.n_samples - support.size
    if problem.sparsity.price > 0.0 or n_free <= 0:
        return False
    share = max(ALONE_CHANCES * np.log(problem.n_features) / n_free, ALONE_SHARE)
    if not least_price >= share * objective:
        return False
    return smallest_distance(problem.unit_columns(support)[0]) >= ALONE_DISTANCE


def price_columns(
    problem: Problem, sq_norms: Floats, w: Floats, support: Ints
) -> tuple[Floats, Ints]:
    """Change of the objective by the best addition or swap that brings in each column, (n,).

    And the columns outside the support for which that is rounding.

    With u = X_S'x_i, K = inv(X_S'X_S + ridge) and W = K u, the pivot of column i is
    M_ii = ‖x_i‖² − u'W; swapping it for j changes the minimum by
    w_j²/2K_jj − (g_i − W_j w_j/K_jj)² / 2(M_ii + W_j²/K_jj). O(mns), one pass over X.

    Parameters
    ----------
    problem : Problem
        With a squared loss.
    sq_norms : ndarray (n,)
        Squared lengths of the columns, weights and ridge included.
    w : ndarray (n,)
        The fit on `support`.
    support : ndarray of int64
        Not empty.
    """
    budget, price = problem.sparsity.budget, problem.sparsity.price
    X_S = problem.design.columns(support)
    # the residual rides along, so that gradient and regressions take one pass
    eta = X_S @ w[support]
    weighted = np.column_stack([X_S, problem.loss.gradient(eta, problem.y)])
    if problem.sample_weight is not None:
        weighted *= problem.sample_weight[:, None]
    H = weighted[:, :-1].T @ X_S
    H.flat[:: support.size + 1] += problem.ridge
    K = _inverse(H)
    free = ~problem.is_kept(support)
    change, pivots = np.empty(problem.n_features), np.empty(problem.n_features)
    for start in range(0, change.size, problem.design.chunk):
        part = slice(start, min(start + problem.design.chunk, change.size))
        U = problem.design.cross(weighted, part)
        change[part], pivots[part] = _price_part(
            U[:-1], K, w[support], U[-1], sq_norms[part], free,
            price if support.size < budget else np.inf,
        )  # fmt: skip
    change[support] = np.inf
    is_apart = 1.0 / (K.diagonal() * H.diagonal()) > CLEAR
    return change, doubtful_columns(sq_norms, pivots, support, bool(is_apart.all()))


def price_first(sq_norms: Floats, target: Floats, price: float, budget: int) -> Floats:
    """The prices where nothing is in yet, (n,), from the gradient at zero."""
    if budget == 0:
        return np.full(target.size, np.inf)
    safe = np.where(sq_norms > 0.0, sq_norms, np.inf)
    return price - 0.5 * target**2 / safe


def doubtful_columns(sq_norms: Floats, pivots: Floats, support: Ints, is_apart: bool) -> Ints:
    """Columns near the span of the support; all of them when that is nearly dependent."""
    doubtful = sq_norms > 0.0
    if is_apart:
        doubtful &= ~(pivots > CLEAR * sq_norms)
    doubtful[support] = False
    return np.flatnonzero(doubtful)


def _inverse(H: Floats) -> Floats:
    """inv(H), or its pseudo-inverse; what is dependent must not depend on the user's units."""
    scale = np.sqrt(np.where(H.diagonal() > 0.0, H.diagonal(), 1.0))
    K = np.linalg.pinv(H / scale / scale[:, None], hermitian=True).astype(np.float64)
    return K / scale / scale[:, None]


def _price_part(
    U: Floats, K: Floats, w: Floats, g: Floats, sq: Floats, free: NDArray[np.bool_], price: float
) -> tuple[Floats, Floats]:
    """The prices of some columns, and their pivots; U = X_S' X_part, (s, c)."""
    W = K @ U
    M = np.maximum(sq - np.einsum("ij,ij->j", U, W), 0.0)
    least = LEAST_PIVOT * sq
    change = price - 0.5 * g * g / np.where(M > least, M, np.inf)
    # the smallest numbers keep a zero column from dividing zero by zero
    kernels.price_swaps(W, np.diag(K).copy(), w, free, g, M, least + 1e-300, change)
    change[sq <= 0.0] = np.inf
    return change, M
