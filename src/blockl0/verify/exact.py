"""The verifier of the squared loss in exact arithmetic: no rounding, and no allowance for any.

Floating-point data are integers over powers of two. Products of columns are integers times one
rational `unit`, also less their means beside an intercept; bounds are rational numbers. Proofs that
this is right are in docs/proof_format.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blockl0.verify import check
from blockl0.verify.base import Task, Verified, centred, columns_of, require, require_stated
from blockl0.verify.files import Content
from blockl0.verify.integers import (
    Rational,
    fraction,
    integers,
    product,
    require_semidefinite,
    scale_of,
    shifted,
)

ROWS = 4096
"""Rows of X that are integers at a time."""


def verify_exactly(
    task: Task, claim: Any, arrays: Any, coef: Any, X: Any, y: Any, weights: Any
) -> Any:
    """Return what a proof proves, in fractions."""
    has_effect = (X != X[:1]).any(axis=0) if claim["intercept"] else X.any(axis=0)
    if claim["intercept"] and not task.ridge:
        near = np.flatnonzero(has_effect & ~centred(X, weights).any(axis=0))
        reason = f"Columns {near.tolist()} are constant but for rounding: make them constant."
        require(not near.size, reason)
    content = Content(arrays, task, has_effect | (task.ridge > 0.0))
    parts = np.flatnonzero(coef), arrays["point_columns"], arrays["curve_columns"]
    used = columns_of(np.unique(np.concatenate(parts)), coef.size)
    exact = task._replace(price=Rational(task.price), ridge=Rational(task.ridge))
    squares = ExactSquares(exact, X, y, weights, claim["intercept"], used)
    best, at_zero = squares.objective(coef), squares.at_zero
    require_stated(claim, best, at_zero)
    for columns, d in content.curves:
        squares.prove_definite(columns, d)
    lower, _ = check.lower_bound(exact, coef.size, content.records(), squares.bound)
    lower = min(best, lower)
    gap = (best - lower) / best if best > lower else Rational(0)
    return Verified(*map(fraction, (lower, best, gap, at_zero, Rational(0))))


class ExactSquares:
    """X'ΩX, X'Ωy and y'Ωy, less the means beside an intercept: integers times `unit`.

    Rows of `products` are the columns of X, and y; its columns those in `used`, and y.
    """

    task: Task
    used: Any

    def __init__(
        self, task: Task, X: Any, y: Any, weights: Any, has_intercept: bool, used: Any
    ) -> None:
        n, k, k_weights = X.shape[1], max(scale_of(X), scale_of(y)), scale_of(weights)
        self.task, self.used, some = task, used, np.append(used, n)
        self.products: Any = 0
        sums: Any = 0
        total = 0
        for i in range(0, y.size, ROWS):
            Z = integers(np.column_stack([X[i : i + ROWS], y[i : i + ROWS]]), k)
            omega = integers(weights[i : i + ROWS], k_weights)
            self.products += product(omega[:, None] * Z, Z[:, some])
            sums, total = sums + omega @ Z, total + omega.sum()
        self.unit = Rational(1, 1 << 2 * k + k_weights)
        if has_intercept:
            self.products = total * self.products - np.outer(sums, sums[some])
            self.unit: Any = self.unit / total
        self.at_zero: Any = self.unit * self.products[-1, -1] / 2

    def _pulls(self, w: Any, columns: Any) -> tuple[Any, Any, Any]:
        """Return a_j'A w and a_j't of some columns, and w'A'Aw."""
        at = np.flatnonzero(w)
        k = scale_of(w[at])
        values, places, share = integers(w[at], k), np.searchsorted(self.used, at), 1 << k
        unit = self.unit / share
        pulls = [unit * x for x in self.products[np.ix_(columns, places)] @ values]
        square = unit / share * (values @ (self.products[np.ix_(at, places)] @ values))
        return pulls, [self.unit * x for x in self.products[columns, -1]], square

    def objective(self, coef: Any) -> Any:
        """Compute F at coefficients, which must be admissible."""
        at = np.flatnonzero(coef)
        held = np.union1d(at, self.task.keep).size
        require(held <= self.task.budget, "There are more than the budget.")
        _, products, square = self._pulls(coef, at)
        v = list(map(Rational, coef[at].tolist()))
        loss = self.at_zero + square / 2 - sum(x * z for x, z in zip(products, v, strict=True))
        return loss + self.task.price * held + self.task.ridge * sum(x * x for x in v) / 2

    def bound(self, included: Any, free: Any, is_gone: Any, w: Any, d: Any) -> Any:
        """Bound a node, as `check.bound`, in fractions."""
        price, ridge, n_in = self.task.price, self.task.ridge, included.size
        room, columns = self.task.budget - n_in, np.append(included, free)
        if room < 0 or (room == 0 and is_gone is not None):
            return np.inf, 0
        if w is None:
            return price * n_in, 0
        at = np.flatnonzero(w)
        given = np.isfinite(w[at]).all() and np.isfinite(d[np.append(columns, at)]).all()
        require(given, "A point or a d is not finite, or not given.")
        pulls, products, square = self._pulls(w, columns)
        v = {j: Rational(float(w[j])) for j in at}
        bends = {j: (Rational(float(d[j])) - ridge) * x for j, x in v.items()}
        constant = self.at_zero - (square - sum(bends[j] * x for j, x in v.items())) / 2
        b = [bends.get(j, 0) - x + z for j, x, z in zip(columns, pulls, products, strict=True)]
        gains = [x * x / (2 * Rational(z)) for x, z in zip(b, d[columns].tolist(), strict=True)]
        scores = [x - price for x in gains[n_in:]]
        counted = sorted([x for x in scores if x > 0], reverse=True)[:room]
        lower = constant + price * n_in - sum(gains[:n_in]) - sum(counted)
        if is_gone is None:
            return lower, 0
        # a column that is not counted takes the place of the least that is
        least = counted[-1] if len(counted) == room else 0
        return lower + max(least - max(scores[i] for i in np.flatnonzero(is_gone)), 0), 0

    def prove_definite(self, columns: Any, d: Any) -> None:
        """Show that H − D is semidefinite."""
        G = self.products[np.ix_(columns, np.searchsorted(self.used, columns))]
        D = [(Rational(x) - self.task.ridge) / self.unit for x in d.tolist()]
        k = max((int(x.denominator).bit_length() - 1 for x in D), default=0)
        G = shifted(G, k)
        G[np.diag_indices(columns.size)] -= [int(x * (1 << k)) for x in D]
        require_semidefinite(G)
