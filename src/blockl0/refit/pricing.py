"""What every column of X would bring at a point: the best addition or swap with it, in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate.moves import CLEAR
from blockl0.problem.problem import Problem
from blockl0.storage.block import Block

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    free = ~np.isin(support, problem.keep)
    change, pivots = np.empty(problem.n_features), np.empty(problem.n_features)
    price_of_one = price if support.size < budget else np.inf
    for part, answer in problem.design.scan_for(
        by_change, kernel_price, weighted, K, w[support], free, price_of_one, split=(sq_norms,)
    ):
        change[part], pivots[part] = answer
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


def by_change(answer: tuple[Floats, Floats]) -> Floats:
    """What `kernel_price` ranks columns by, (1, c)."""
    return answer[0][None]


def kernel_price(
    block: Block,
    V: Floats,
    K: Floats,
    w: Floats,
    free: NDArray[np.bool_],
    price: float,
    sq: Floats,
) -> tuple[Floats, Floats]:
    """The prices of the columns of a block, and their pivots, (c,) each; V = [X_S, residual]."""
    return block.prices(V, K, w, free, price, sq)
