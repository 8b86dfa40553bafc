"""Excluding columns that cannot improve a fit of several classes, by duality.

As in `dual_bounds`, with a matrix of curvatures for each sample: for q = p + (diag(p) − pp')z/c the
relative entropy KL(q | p) is at most ½z'(diag(p) − pp')z/c, if |z_c − p'z| ≤ reach and c is the
`entropy_excess` of that reach; and for c = 2 wherever q is not negative, since log(1 + s) ≤ s.

Coefficients are in contrasts of the classes; arrays of samples are (C, k, m), so that sums over
samples and products with columns run along memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.lazy import lazy
from blockl0.losses import entropy_excess
from blockl0.losses.base import SMALLEST
from blockl0.losses.softmax import (
    class_pairs,
    contrasts,
    slope_at,
    softmax_hessian,
    softmax_terms,
)
from blockl0.moves.dual_bounds import (
    CHORDS,
    CHUNK_ENTRIES,
    CLOSELY,
    LEAST_PIVOT,
    ROUNDING,
    FittedSupport,
    Passed,
    by_chance,
    improving_first,
    inverse_of,
    largest_entries,
)
from blockl0.problem.descent import FAR, descend, start_of
from blockl0.problem.newton import SoftmaxPart
from blockl0.problem.problem import Problem
from blockl0.run import look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REACH = 2.0
"""Reach of a pass: change of a predictor for which its bounds hold; its entropy excess is 2."""
CLOSE_REACH = 0.1
"""Reach for single columns; dual points may leave it as long as they are feasible."""
PASS_ENTRIES = 1 << 17
"""Entries of columns per pass step."""
TOGETHER = 5
"""Bases of one pass, at most; the first pass is of one, as a check often ends there."""
ROUGH_STEPS = 2
"""Newton steps towards a fit without one column, which are not tested in between."""
NARROW = 4
"""Directions up to which products of small matrices are quicker without the BLAS."""
ROUNDS = 3
"""Cost of a pass and of a close look per counted multiplication, relative to a fit."""
FEW = 4
"""A pass is cheaper than a fit up to this many columns per support column and class."""


class SoftmaxBounds:
    """Exclusion of columns from a fit of several classes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.largest = largest_entries(problem.design)

    def is_rough_worth(self, support: Ints) -> bool:
        """Decide if approximate fits are worth a pass: only if fits cost more."""
        return self.problem.n_features <= FEW * support.size * self.problem.n_outputs

    def pass_cost(self, support: Ints, n_bases: int) -> float:
        """Count the multiplications of a pass over X for some bases."""
        return n_bases * self.problem.n_features * self._cost(support.size)

    def closer_cost(self, support: Ints) -> float:
        """Count the multiplications of a closer look at one column."""
        chords = CHORDS * CLOSELY * self.problem.n_samples * self.problem.n_outputs
        return self._cost(support.size) + chords

    def _cost(self, size: int) -> float:
        """Count what the model of a base takes for one column."""
        C = self.problem.n_outputs
        a, q, n_pairs = size + 1, C - 1, C * (C - 1) // 2
        own = n_pairs * a * (self.problem.n_samples + q**2) + q * (a * q) ** 2 + (a + q) * q**2
        return float(ROUNDS * own)

    def groups(self, bases: list[FittedSupport]) -> Iterator[list[FittedSupport]]:
        """Yield a few bases at a time, those that need least first.

        Each has a model of its own, and columns are read for all of them.
        """
        bases = sorted(bases, key=lambda base: base.needed)
        cuts = [0, *range(1, len(bases), TOGETHER), len(bases)]
        yield from (bases[i:j] for i, j in pairwise(cuts) if i < j)

    def candidates(self, support: Ints, bases: list[FittedSupport]) -> list[Passed]:
        """Find, for each base, the columns that a pass over X does not exclude."""
        chosen = self.largest > 0.0
        chosen[support] = False
        outside = np.flatnonzero(chosen)
        step = max(1, PASS_ENTRIES // self.problem.n_samples)
        models = [SoftmaxModel(self.problem, base, REACH) for base in bases]
        found: list[list[Ints]] = [[outside[:0]] for _ in bases]
        cheapest = np.full(len(bases), np.inf)
        for part in (outside[i : i + step] for i in range(0, outside.size, step)):
            clipped = Clipped(self.problem.design.columns(part), self.largest[part])
            for i, model in enumerate(models):
                look()
                is_out, least = model.excluded(clipped)
                found[i].append(part[~is_out])
                cheapest[i] = min(cheapest[i], least)
        return [
            Passed(base, np.concatenate(kept), float(least))
            for base, kept, least in zip(bases, found, cheapest, strict=True)
        ]

    roughly = candidates

    def rough_bases(
        self, w: Floats, support: Ints, leaving: Ints, predictor: Any, ceiling: float
    ) -> list[FittedSupport]:
        """Refit approximately after removing one column; see `DualBounds.rough_bases`."""
        problem = self.problem
        loss: Any = problem.loss
        (A, ridge), (eta, intercept) = problem.free_columns(support), predictor
        n_free, v = int(problem.has_intercept), w[support]
        v = np.vstack([intercept, v]) if n_free else v
        part = SoftmaxPart(loss, A, problem.y, problem.weights, ridge)  # type: ignore[arg-type]
        V, q = part.enter(v), part.Q.shape[1]
        K = inverse_of(softmax_hessian(part.A, loss.mean(eta), problem.weights, part.ridge[:, 0]))
        bases: list[FittedSupport] = []
        if K is None:
            return bases
        slopes = (problem.weights * loss.gradient(eta, problem.y).T).ravel()
        bend = q * float(problem.weights @ loss.curvature(eta, problem.y))
        chance = by_chance(problem, float(slopes @ slopes), bend) * q
        for j in leaving:
            place = n_free + int(np.searchsorted(support, j))
            own, rest = slice(place * q, (place + 1) * q), np.arange(len(V)) != place
            # columns worth less than noise are left to fits, as bounds of noise columns fail there
            pull = np.linalg.solve(K[own, own], V[place])
            if not 0.5 * float(pull @ V[place]) > chance:
                continue
            start = V - (K[:, own] @ pull).reshape(V.shape)
            less: Any = SoftmaxPart(loss, A[:, rest], problem.y, problem.weights, ridge[rest])  # type: ignore[arg-type]
            less.at_zero = problem.loss_at_zero
            first = start_of(less, start[rest])
            found = less.begin(first, np.inf, ROUGH_STEPS)
            found = descend(less, first, np.inf, ROUGH_STEPS) if found is None else found
            coefficients, there = less.leave(found.v), support[support != j]
            point = problem.zero()
            point[there] = coefficients[n_free:]
            free = coefficients[0] if n_free else np.zeros(w.shape[1])
            eta, needed = less.predictor(found.v), found.value - ceiling
            bases.append(FittedSupport(there, point, free, found.value, eta, needed, int(j)))
        return bases

    def model_at(self, base: FittedSupport) -> SoftmaxModel | None:
        """Return the model for single columns at a base; None if it excludes nothing."""
        model = SoftmaxModel(self.problem, base, CLOSE_REACH)
        return None if model.K is None else model


class SoftmaxModel:
    """Quadratic model at a fit whose minima are lower bounds within a reach."""

    def __init__(self, problem: Problem, base: FittedSupport, reach: float) -> None:
        self.problem, self.base, self.reach = problem, base, reach
        self.Q, self.share = contrasts(problem.n_outputs), 1.0 / entropy_excess(reach)
        self.loss: Any = problem.loss
        self.P = self.loss.mean(base.eta)
        self.weights, self.dual = problem.weights, slope_at(self.P, problem.y)  # type: ignore[arg-type]
        (A, self.ridge), V = problem.free_columns(base.support), base.w[base.support] @ self.Q
        if problem.has_intercept:
            V = np.vstack([np.zeros(self.Q.shape[1]), V])
        self.A, self.V = A, V
        # a longer reach takes smaller curvatures, with which steps are longer and bounds weaker
        self.K = inverse_of(softmax_hessian(A, self.P, self.share * self.weights, self.ridge))
        slope = A.T @ (self.weights[:, None] * self.dual) @ self.Q
        rest = (slope + self.ridge[:, None] * V).ravel()
        self.rest = rest
        self.shift = np.zeros(0) if self.K is None else self.K @ rest

    @lazy
    def pairs(self) -> tuple[Floats, Floats, Floats]:
        """For each pair of classes the curvatures (m,), A' times these, and their contrasts."""
        pairs = class_pairs(self.P)
        squares = np.stack([np.outer(contrast, contrast) for _, contrast in pairs])
        bends = np.stack([self.share * self.weights * bends for bends, _ in pairs])
        return bends, (self.A.T[None] * bends[:, None]).reshape(-1, len(self.A)), squares

    def products(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute (A'hX, K A'hX) of columns (m, k), (a q, k, q) each."""
        a, q, k = self.A.shape[1], self.Q.shape[1], X.shape[1]
        _, bent, squares = self.pairs
        crosses = (bent @ X).reshape(len(squares), a * k)
        U = (crosses.T @ squares.reshape(-1, q * q)).reshape(a, k, q, q).transpose(0, 2, 1, 3)
        U = U.reshape(a * q, k * q)
        return U.reshape(-1, k, q), (np.asarray(self.K) @ U).reshape(-1, k, q)

    def own(self, products: Floats) -> Floats:
        """Compute x'hy plus ridge, (k, q, q), from products (m, k) of pairs of columns."""
        (bends, _, squares), q = self.pairs, self.Q.shape[1]
        sums = (bends @ products).T @ squares.reshape(-1, q * q)
        return sums.reshape(-1, q, q) + self.problem.ridge * np.eye(q)

    def regress(self, X: Floats) -> tuple[NDArray[np.bool_], Floats, Floats, Floats]:
        """Compute (is free (k,), inv(M) (k, q, q), W (a q, k, q), A'hX (a q, k, q)) of columns (m,
        k).
        """
        U, W = self.products(X)
        own = self.own(X**2)
        M = own - inner_products(U, W)
        return *inverses(M, LEAST_PIVOT * np.trace(own, axis1=1, axis2=2)), W, U

    def minima(self, X: Floats) -> tuple[NDArray[np.bool_], Floats, Floats, Floats]:
        """Find (is free, gains, steps (k, q), changes of the others (a, q, k)) of each column."""
        is_free, inverse, W, U = self.regress(X)
        G = self._reduced_slopes(X, U)
        steps = -np.einsum("kef,kf->ke", inverse, G)
        gains = -0.5 * np.sum(G * steps, axis=1) + self.excess
        moved = np.einsum("ikf,kf->ik", W, steps)
        return is_free, gains, steps, moved.reshape(*self.V.shape, X.shape[1])

    def excluded(self, part: Clipped) -> tuple[NDArray[np.bool_], float]:
        """Find which columns cannot improve, by the minimum of the model, and the cheapest one."""
        X, k = part.X, part.X.shape[1]
        if self.K is None:
            return np.zeros(k, dtype=np.bool_), np.inf
        (U, W), own = self.products(X), self.own(part.squares)
        pivots = own - inner_products(U, W)
        least, slopes = LEAST_PIVOT * np.trace(own, axis1=1, axis2=2), self._reduced_slopes(X, U)
        is_free, inverse = inverses(pivots, least)
        steps = -np.einsum("kef,kf->ke", inverse, slopes)
        gains = -0.5 * np.einsum("ke,ke->k", slopes, steps) + self.excess
        is_out = is_free & (gains <= (1.0 - ROUNDING) * self.base.needed)
        unsure = np.flatnonzero(is_out & (self._farthest(part.largest, steps, W) > self.reach))
        # the bound by the longest row is crude: look at the samples before a column is kept
        if self.Q.shape[1] > NARROW:
            # of few classes clipping costs no more than this look does
            unsure = unsure[~self._is_within(X[:, unsure], steps[unsure], W[:, unsure])]
        if unsure.size:
            given = U[:, unsure], slopes[unsure], least[unsure]
            is_out[unsure] = self._clipped(part, unsure, *given)
        most = float(np.max(gains, initial=-np.inf, where=is_out))
        return is_out, self.base.needed - most

    def _farthest(self, largest: Floats, steps: Floats, W: Floats) -> Floats:
        """Bound the largest change of a predictor by a step along each column, (k,)."""
        moved = np.einsum("ikf,kf->ik", W, steps) + self.shift[:, None]
        changes = largest * np.linalg.norm(steps, axis=1)
        changes += self.longest * np.sqrt(np.einsum("ik,ik->k", moved, moved))
        # the range over classes of contrasts z is at most √2‖z‖
        return np.sqrt(2.0) * changes

    def _clipped(
        self, part: Clipped, some: Ints, U: Floats, slopes: Floats, least: Floats
    ) -> NDArray[np.bool_]:
        """Check which columns cannot improve, by steps along clipped columns."""
        X, C, size = part.X[:, some], part.C[:, some], part.size[some]
        # a step along the clipped column C cancels the slope along X at the cost of C's own length
        U_c, W = self.products(C)
        both = self.own(X * C) - inner_products(U, W)
        alone = self.own(C**2) - inner_products(U_c, W)
        is_free, inverse = inverses(both, least)
        steps = -np.einsum("kef,kf->ke", inverse, slopes)
        gains = 0.5 * np.einsum("ke,kef,kf->k", steps, alone, steps) + self.excess
        is_out = is_free & (gains <= (1.0 - ROUNDING) * self.base.needed)
        unsure = np.flatnonzero(is_out & (self._farthest(size, steps, W) > self.reach))
        is_out[unsure] = self._is_within(C[:, unsure], steps[unsure], W[:, unsure])
        return is_out

    def _is_within(self, X: Floats, steps: Floats, W: Floats) -> NDArray[np.bool_]:
        """Return whether steps along columns (m, k) leave the reach for no sample, (k,)."""
        is_within = np.zeros(len(steps), dtype=np.bool_)
        size = max(1, CHUNK_ENTRIES // (len(X) * len(self.Q)))
        for some in (slice(i, i + size) for i in range(0, len(steps), size)):
            moved = np.einsum("ikf,kf->ik", W[:, some], steps[some]) + self.shift[:, None]
            moved = moved.reshape(*self.V.shape, moved.shape[1])
            Z = self.centred(self.change(X[:, some], steps[some], -moved))
            is_within[some] = Z.min(axis=(0, 2)) >= -self.reach
        return is_within

    @lazy
    def longest(self) -> float:
        """Length of the longest row of A."""
        return float(np.sqrt(np.einsum("ij,ij->i", self.A, self.A).max(initial=0.0)))

    def _reduced_slopes(self, X: Floats, U: Floats) -> Floats:
        """Compute the slopes along columns after the others' slopes are removed, (k, q)."""
        G = X.T @ (self.weights[:, None] * self.dual) @ self.Q
        return G - np.einsum("i,ikf->kf", self.shift, U)

    @property
    def excess(self) -> float:
        """Gain of the other coefficients from removing their slopes."""
        return 0.5 * float(self.rest @ self.shift)

    def change(self, X: Floats, steps: Floats, moved: Floats) -> Floats:
        """Compute the change of predictors, (C, k, m), by steps of k columns and the others."""
        others = np.tensordot(self.Q, moved, (1, 1)).transpose(0, 2, 1)
        # one matrix product: many small ones on strided arrays are slow
        change = others.reshape(len(self.Q) * X.shape[1], self.A.shape[1]) @ self.A.T
        change = change.reshape(len(self.Q), *X.T.shape)
        change += X.T * (steps @ self.Q.T).T[:, :, None]
        return change

    def centred(self, Z: Floats) -> Floats:
        """Compute z_c − p'z of every sample, (C, k, m)."""
        return Z - (Z * self.P.T[:, None, :]).sum(axis=0)

    def left(self, columns: Ints) -> Ints:
        """Return the columns not excluded by their own dual points, improving ones first."""
        return improving_first(columns, *self.decide(columns))

    def decide(self, columns: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Decide for each column if it certainly fails to improve the point, and if it improves,
        (k,).

        Re-fits with one more column each, by steps that share the curvatures of the base, as in
        `dual_bounds.ColumnModel`. Stops at the first column that improves.
        """
        X, needed = self.problem.design.columns(columns), self.base.needed
        excluded, improving = np.zeros((2, columns.size), dtype=np.bool_)
        is_free, inverse, W, _ = self.regress(X)
        left = np.flatnonzero(is_free)
        if left.size == 0:
            return excluded, improving
        X, inverse, W = X[:, left], inverse[left], W[:, left]
        V, t = np.repeat(self.V[:, :, None], left.size, axis=2), np.zeros((left.size, W.shape[2]))
        eta, dual = self.base.eta.T[:, None, :], self.dual.T[:, None, :]
        bends = self.share * self.P.T[:, None, :]
        values = np.full(left.size, self.base.value)
        for chord in range(CHORDS):
            slopes, slope = self._slopes(X, dual, V, t)
            rest = slopes.reshape(-1, left.size)
            step = -np.einsum("kef,kf->ke", inverse, slope - np.einsum("ikf,ik->kf", W, rest))
            steps = -(np.asarray(self.K) @ rest) - np.einsum("ikf,kf->ik", W, step)
            V, t = V + steps.reshape(V.shape), t + step
            Z = self.change(X, step, steps.reshape(V.shape))
            lower = self._dual_values(X, dual + bends * self.centred(Z), V, t)
            excluded[left] = is_out = lower >= -needed
            # a column whose value has met its bound is decided: it is the fit, and no better
            is_open = ~is_out & (values - self.base.value - lower > ROUNDING * needed)
            eta = (eta + Z)[:, is_open]
            X, inverse, W, t = X[:, is_open], inverse[is_open], W[:, is_open], t[is_open]
            V, left = V[:, :, is_open], left[is_open]
            if chord == CHORDS - 1 or left.size == 0:
                break
            values, dual = self._losses(eta, V, t)
            improving[left] = values < self.base.value - needed
            if improving.any():
                break
        return excluded, improving

    def _losses(self, eta: Floats, V: Floats, t: Floats) -> tuple[Floats, Floats]:
        """Compute the objectives (k,) and slopes (C, k, m) at predictors (C, k, m)."""
        (C, k, m), y = eta.shape, np.tile(self.problem.y, eta.shape[1])
        _, dual, values = softmax_terms(eta.reshape(C, k * m).T, y)  # type: ignore[arg-type]
        ridged = np.einsum("a,aek->k", self.ridge, V**2) + self.problem.ridge * np.sum(t**2, axis=1)
        return values.reshape(k, m) @ self.weights + 0.5 * ridged, dual.T.reshape(C, k, m)

    def _slopes(self, X: Floats, dual: Floats, V: Floats, t: Floats) -> tuple[Floats, Floats]:
        """Find gradients in the others' coefficients, (a, q, k), and the columns' own, (k, q)."""
        weighted = X.T * self.weights
        own = np.einsum("km,ckm->kc", weighted, np.broadcast_to(dual, (len(dual), *weighted.shape)))
        left = dual.reshape(-1, self.weights.size) @ (self.A * self.weights[:, None])
        left = left.reshape(*dual.shape[:2], self.A.shape[1])
        left = np.tensordot(left, self.Q, (0, 0)).transpose(1, 2, 0)
        return left + self.ridge[:, None, None] * V, own @ self.Q + self.problem.ridge * t

    def _dual_values(self, X: Floats, dual: Floats, V: Floats, t: Floats) -> Floats:
        """Compute lower bounds (k,) on the change by each column, from dual points (C, k, m)."""
        value, used = np.full(t.shape[0], -np.inf), self.weights > 0.0
        probabilities = dual + one_hot(self.problem.y, len(dual))[:, None, :]  # type: ignore[arg-type]
        is_feasible = (probabilities.min(axis=0) >= 0.0)[:, used].all(axis=1)
        some = np.flatnonzero(is_feasible)
        if some.size == 0:
            return value
        entropies = negative_entropies(probabilities[:, some])
        X, dual, V, t = X[:, some], dual[:, some], V[:, :, some], t[some]
        bound = -(entropies if used.all() else np.where(used, entropies, 0.0)) @ self.weights
        bound -= 0.5 * np.einsum("a,aek->k", self.ridge, V**2)
        bound -= 0.5 * self.problem.ridge * np.sum(t**2, axis=1)
        # infeasibility left by rounding
        left, own = self._slopes(X, dual, V, t)
        bound -= FAR * np.sum(np.abs(own * t), axis=1)
        value[some] = bound - FAR * np.sum(np.abs(left * V), axis=(0, 1)) - self.base.value
        return value


class Clipped:
    """Columns X (m, k) and the same clipped to their size, shared by all bases.

    A dual step along a clipped column also cancels a slope along the column, and stays within the
    reach where a few large entries would leave it; see `dual_bounds`.
    """

    def __init__(self, X: Floats, largest: Floats) -> None:
        self.X, self.squares, self.largest = X, X**2, largest
        self.size = np.sqrt(self.squares.sum(axis=0) / len(X))

    @lazy
    def C(self) -> Floats:
        """The clipped columns, (m, k)."""
        return np.minimum(np.maximum(self.X, -self.size), self.size)


def inner_products(U: Floats, W: Floats) -> Floats:
    """Compute U_k'W_k, (k, q, q), of every k of U and W (i, k, q)."""
    if U.shape[2] <= NARROW:
        return np.einsum("ike,ikf->kef", U, W)
    return np.matmul(U.transpose(1, 2, 0), W.transpose(1, 0, 2))


def inverses(M: Floats, least: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return which of some matrices (k, q, q) are surely regular, and their inverses; of others I.

    Regular means that no singular value is below `least` (k,): the least is not less than one over
    the Frobenius norm of the inverse.
    """
    is_free = np.all(M.diagonal(axis1=1, axis2=2) > 0.0, axis=1)
    if M.shape[1] == 2:
        # in closed form, since most problems have three classes and a call per matrix is slow
        a, b, c, d = M[:, 0, 0], M[:, 0, 1], M[:, 1, 0], M[:, 1, 1]
        determinant = a * d - b * c
        is_free &= determinant > 0.0
        inverse = np.stack([d, -b, -c, a], axis=1) / np.where(is_free, determinant, 1.0)[:, None]
        inverse = inverse.reshape(-1, 2, 2)
    else:
        eye = np.eye(M.shape[1])
        try:
            inverse = np.linalg.inv(np.where(is_free[:, None, None], M, eye))
        except np.linalg.LinAlgError:
            is_free &= np.linalg.cond(np.where(is_free[:, None, None], M, eye)) < 1.0 / LEAST_PIVOT
            inverse = np.linalg.inv(np.where(is_free[:, None, None], M, eye))
    is_free &= np.einsum("kef,kef->k", inverse, inverse) * least**2 < 1.0
    return is_free, np.where(is_free[:, None, None], inverse, np.eye(M.shape[1]))


def one_hot(y: Ints, n_classes: int) -> Floats:
    """Encode classes as (C, m), 1 where a sample is of a class."""
    return (np.arange(n_classes)[:, None] == y).astype(np.float64)


def negative_entropies(probabilities: Floats) -> Floats:
    """Compute Σ_c q_c log q_c, (k, m), of (C, k, m), taking nonpositive q as zero."""
    Q = np.maximum(probabilities, 0.0)
    return (Q * np.log(np.maximum(Q, SMALLEST))).sum(axis=0)
