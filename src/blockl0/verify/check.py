"""The verifier, for the squared loss: plain NumPy, and nothing of the search.

Minimized is F(v) = loss(v) + ½·ridge·‖v‖² + price·|v|₀. A node holds the supports with all of its
`included` columns and some `free` ones, at most `budget` in all. A record closes the last open
node, fixes columns of it out, or splits it by one; when none is open, all supports are covered.
Where loss(v) + ½Σ(ridge − d_j)v_j² is convex, its tangent at any point w is a lower bound,

    F(v) ≥ constant + Σ_j (½d_j v_j² − b_j v_j + price·[v_j ≠ 0]),   b = (d − ridge)·w − ∇loss(w),

so that a column takes away its score b_j²/2d_j − price at most. The curvature d is the ridge, or
what a Cholesky factorization allows. Points and curvatures may be any: the file is not believed.
Sums of m products are right to (m + 16)·ε times two lengths. Proofs: docs/proof_format.md.
"""

from typing import Any

import numpy as np

from blockl0.verify.base import FIX, MODERATE, SPLIT, Task, centred, require

EPSILON = float(np.finfo(np.float64).eps)


class Squares:
    """½‖Av − t‖²: rows times the roots of their weights; centred, the best intercept is zero."""

    t: Any

    def __init__(self, X: Any, y: Any, weights: Any, has_intercept: bool) -> None:
        X, y = (centred(X, weights), centred(y, weights)) if has_intercept else (X, y)
        self.A, self.t = np.sqrt(weights)[:, None] * X, np.sqrt(weights) * y
        self.norms: Any = np.linalg.norm(self.A, axis=0)
        require((self.A.any(axis=0) == X.any(axis=0)).all(), "A column vanishes: scale it.")

    def tangent(self, w: Any) -> tuple[float, float, float, Any, float]:
        """Return loss(w); c and u with loss(v) ≥ c + u'Av; errors of c and of a_j'u over ‖a_j‖."""
        at = np.flatnonzero(w)
        r = self.A[:, at] @ w[at] - self.t
        reach = np.linalg.norm(self.t) + self.norms[at] @ abs(w[at]) + 1.0 / MODERATE
        error = EPSILON * (self.t.size + at.size + 16.0) * reach  # which ‖r‖ and ‖Aw‖ are at most
        return 0.5 * r @ r, -r @ (0.5 * r + self.t), 2.0 * error * reach, r, error


def objective(task: Task, loss: Any, coef: Any) -> float:
    """Compute F at coefficients, which must be admissible."""
    held = np.union1d(np.flatnonzero(coef), task.keep)  # kept columns are paid for, at zero as well
    require(held.size <= task.budget, "There are more than the budget.")
    return float(loss.tangent(coef)[0] + task.price * held.size + 0.5 * task.ridge * coef @ coef)


def lower_bound(task: Task, n_features: int, records: Any, bound: Any) -> Any:
    """Return what F is not below on any admissible support, and what of it was allowed for.

    A bound of a record is a pair of both; the least counts.
    """
    waiting, lower = [(task.keep, np.setdiff1d(np.arange(n_features), task.keep))], (np.inf, 0.0)
    for kind, column, out, w, d in records:
        require(waiting, "There are more records than nodes.")
        included, free = waiting.pop()
        is_gone = free == column if kind == SPLIT else np.isin(free, out)
        n_gone, rest = 1 if kind == SPLIT else out.size, free[~is_gone]
        require(is_gone.sum() == n_gone, "Columns to be fixed, or split by, are not free.")
        if kind == SPLIT:
            waiting += [(included, rest), (np.append(included, column), rest)]
            continue
        lower = min(lower, bound(included, free, is_gone if kind == FIX else None, w, d))
        waiting += [(included, rest)] if kind == FIX else []
    require(not waiting, f"{len(waiting)} nodes stay open: supports are left out.")
    return max(lower, (task.price * task.keep.size, 0.0))  # as losses are not negative


def bound(task: Task, loss: Any, included: Any, free: Any, is_gone: Any, w: Any, d: Any) -> Any:
    """Return a bound on a node: only on its supports with a column of `is_gone`, if given."""
    n_in, room, columns = included.size, task.budget - included.size, np.append(included, free)
    least = task.price * n_in if room >= 0 else np.inf
    if room < 0 or w is None:
        return least, 0.0
    _, constant, doubt, u, error = loss.tangent(w)
    pull = np.where(w != 0.0, (d - task.ridge) * w, 0.0)  # no number where d is not given
    exact = abs(pull[columns] - u @ loss.A[:, columns])  # but for rounding
    gains = (0.5 + 32.0 * EPSILON) * (
        (exact + error * loss.norms[columns]) / np.sqrt(d[columns])
    ) ** 2
    scores = gains[n_in:] - task.price
    order = np.argsort(-scores)[:room]
    counted = np.append(np.maximum(scores[order], 0.0), np.zeros(room - order.size))
    taken, size = gains[:n_in].sum() + counted.sum(), abs(constant) + abs(pull) @ abs(w) + least
    doubt += EPSILON * (np.count_nonzero(w) + 64.0) * (size + taken)
    lower = constant + 0.5 * pull @ w + least - taken - doubt
    require(np.isfinite([lower, *gains]).all(), "A point or a d is not finite, or not given.")
    widened = (gains - 0.5 * exact**2 / d[columns])[np.append(np.arange(n_in), order + n_in)]
    # a column that is not counted takes the place of the least that is
    more = 0.0 if is_gone is None else counted.min(initial=np.inf) - scores[is_gone].max()
    return lower + max(more, 0.0), doubt + widened.sum()


def prove_definite(loss: Any, ridge: float, curves: Any) -> None:
    """Factor H − D of columns of length one, ridge included, less a margin for rounding."""
    squares, known, H = loss.norms**2 + ridge, np.empty(0, int), np.empty((0, 0))
    for columns, d in curves:
        if not np.isin(columns, known).all():
            B = loss.A[:, columns] / np.sqrt(squares[columns])
            known, H = columns, B.T @ B
        at, q = np.searchsorted(known, columns), columns.size
        # entries of H are wrong by (m + 16)·ε/2 at most, and H by q times that; a factorization
        # that ends is that of a matrix within q·(q + 2)·ε/2
        G, margin = H[np.ix_(at, at)], 0.5 * EPSILON * q * (len(loss.A) + q + 18.0)
        np.fill_diagonal(G, 1.0 - d / squares[columns] - margin)
        np.linalg.cholesky(G)  # an error where that is not definite
