"""Columns that cannot improve a fit of several classes, excluded by duality.

As in `dual_bounds`, with a matrix of curvatures for each sample: for q = p + (diag(p) − pp')z/c the
relative entropy KL(q | p) is at most ½z'(diag(p) − pp')z/c, if |z_c − p'z| ≤ reach and c is the
`entropy_excess` of that reach. Coefficients are in contrasts of the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.certificate.dual_bounds import LEAST_PIVOT, ROUNDING, Base, inverse_of, largest_entries
from blockl0.losses import entropy_excess
from blockl0.losses.softmax import class_pairs, contrasts, slope_at, softmax_hessian
from blockl0.problem.descent import FAR, weighted_total
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REACH = 2.0
"""Change of a predictor for which the bounds of a pass hold."""
CLOSE_REACH = 0.1
"""The same for single columns, whose dual points may leave it, as long as they are feasible."""
CHUNK = 512
"""Columns bounded at a time."""


class SoftmaxBounds:
    """Which columns might improve a fit of several classes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.largest = largest_entries(problem.design)

    def groups(self, bases: list[Base]) -> Iterator[list[Base]]:
        """Each base alone: matrices of curvatures have no least."""
        yield from ([base] for base in bases)

    def candidates(self, support: Ints, bases: list[Base]) -> list[Ints]:
        """The columns that a pass over X does not exclude, for each base."""
        chosen = self.largest > 0.0
        chosen[support] = False
        outside = np.flatnonzero(chosen)
        parts = [outside[i : i + CHUNK] for i in range(0, outside.size, CHUNK)]
        found = []
        for base in bases:
            model = Model(self.problem, base, REACH)
            kept = [part[~model.excluded(part, self.largest[part])] for part in parts]
            found.append(np.concatenate(kept) if kept else outside)
        return found

    def closer(self, base: Base, columns: Ints) -> Ints:
        """Of some columns those that their own dual points do not exclude."""
        model = Model(self.problem, base, CLOSE_REACH)
        return columns[~(model.lower(columns) >= -base.needed)]


class Model:
    """The quadratic model at a fit whose minima are lower bounds, within a reach."""

    def __init__(self, problem: Problem, base: Base, reach: float) -> None:
        self.problem, self.base, self.reach = problem, base, reach
        self.Q, self.share = contrasts(problem.n_outputs), 1.0 / entropy_excess(reach)
        self.loss: Any = problem.loss
        self.P = self.loss.mean(base.eta)
        self.weights, self.dual = problem.weights, slope_at(self.P, problem.y)  # type: ignore[arg-type]
        A, n_free = problem.design.columns(base.support), int(problem.has_intercept)
        V = base.w[base.support] @ self.Q
        if n_free:
            A = np.column_stack([np.ones(problem.n_samples), A])
            V = np.vstack([np.zeros(self.Q.shape[1]), V])
        self.A, self.V, self.ridge = A, V, np.full(A.shape[1], problem.ridge)
        self.ridge[:n_free] = 0.0
        self.K = inverse_of(softmax_hessian(A, self.P, self.share * self.weights, self.ridge))
        slope = A.T @ (self.weights[:, None] * self.dual) @ self.Q
        rest = (slope + self.ridge[:, None] * V).ravel()
        self.rest = rest
        self.shift = np.zeros(0) if self.K is None else self.K @ rest

    def minima(self, columns: Ints, X: Floats) -> tuple[NDArray[np.bool_], Floats, Floats, Floats]:
        """(is free, gains, steps (k, q), what the others change by (a, q, k)) of each column."""
        a, q, k = self.A.shape[1], self.Q.shape[1], columns.size
        pairs = class_pairs(self.P)
        squares = np.stack([np.outer(contrast, contrast) for _, contrast in pairs])
        bends = [self.share * self.weights * bends for bends, _ in pairs]
        crosses = np.stack([(self.A * h[:, None]).T @ X for h in bends])
        norms = np.stack([h @ X**2 for h in bends])
        U = np.tensordot(crosses, squares, (0, 0)).transpose(0, 2, 1, 3).reshape(a * q, k * q)
        own = np.tensordot(norms, squares, (0, 0)) + self.problem.ridge * np.eye(q)
        W = np.asarray(self.K) @ U
        M = own - np.einsum("ike,ikf->kef", U.reshape(-1, k, q), W.reshape(-1, k, q))
        values, axes = np.linalg.eigh(0.5 * (M + M.transpose(0, 2, 1)))
        is_free = values[:, 0] > LEAST_PIVOT * np.trace(own, axis1=1, axis2=2)
        G = X.T @ (self.weights[:, None] * self.dual) @ self.Q
        G = G - (self.shift @ U).reshape(k, q)
        along = np.einsum("kfe,kf->ke", axes, G)
        safe = np.where(is_free[:, None], values, 1.0)
        steps = -np.einsum("kef,kf->ke", axes, along / safe)
        gains = 0.5 * np.sum(along**2 / safe, axis=1) + 0.5 * float(self.rest @ self.shift)
        moved = np.einsum("ikf,kf->ik", W.reshape(-1, k, q), steps).reshape(a, q, k)
        return is_free, gains, steps, moved

    def excluded(self, columns: Ints, largest: Floats) -> NDArray[np.bool_]:
        """Whether each column cannot improve, by the minimum of the model."""
        if self.K is None:
            return np.zeros(columns.size, dtype=np.bool_)
        X = self.problem.design.columns(columns)
        is_free, gains, steps, moved = self.minima(columns, X)
        tallest = np.abs(self.A).max(axis=0)
        changes = largest * np.linalg.norm(steps, axis=1)
        changes += tallest @ np.linalg.norm(moved, axis=1)
        changes += tallest @ np.linalg.norm(self.shift.reshape(self.V.shape), axis=1)
        # the range over classes of contrasts z is at most √2‖z‖
        is_near = np.sqrt(2.0) * changes <= self.reach
        is_out = is_free & (gains <= (1.0 - ROUNDING) * self.base.needed)
        unsure = np.flatnonzero(is_out & ~is_near)
        if unsure.size:
            V = self.V[:, :, None] - self.shift.reshape(*self.V.shape, 1) - moved[:, :, unsure]
            Z = self.predictors(X[:, unsure], steps[unsure], V)
            is_near[unsure] = np.ptp(Z, axis=1).max(axis=0) <= self.reach
        return is_out & is_near

    def predictors(self, X: Floats, steps: Floats, V: Floats) -> Floats:
        """By how much predictors change, (m, C, k), with k columns and the others' V (a, q, k)."""
        change = np.tensordot(self.A, V - self.V[:, :, None], 1)
        change += X[:, None, :] * steps.T
        return np.einsum("ce,iek->ick", self.Q, change)

    def lower(self, columns: Ints) -> Floats:
        """Lower bounds on the change of the loss by adding each column; −inf for none."""
        if self.K is None:
            return np.full(columns.size, -np.inf)
        problem, X = self.problem, self.problem.design.columns(columns)
        is_free, _, steps, moved = self.minima(columns, X)
        steps = np.where(is_free[:, None], steps, 0.0)
        V = (self.V - self.shift.reshape(self.V.shape))[:, :, None] - moved
        Z, P = self.predictors(X, steps, V), self.P[:, :, None]
        dual = self.dual[:, :, None] + self.share * P * (Z - np.sum(P * Z, axis=1, keepdims=True))
        value = -weighted_total(self.weights, self.loss.conjugate(dual, problem.y))
        value -= 0.5 * np.einsum("a,aek->k", self.ridge, V**2)
        value -= 0.5 * problem.ridge * np.sum(steps**2, axis=1)
        own = np.einsum("ik,ick->kc", X * self.weights[:, None], dual) @ self.Q
        own += problem.ridge * steps
        left = np.tensordot(self.A * self.weights[:, None], dual, (0, 0))
        left = np.einsum("ack,ce->aek", left, self.Q) + self.ridge[:, None, None] * V
        value -= FAR * np.sum(np.abs(own * steps), axis=1)
        value -= FAR * np.sum(np.abs(left * V), axis=(0, 1))
        return np.where(is_free, value - self.base.value, -np.inf)
