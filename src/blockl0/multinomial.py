"""The softmax loss of several classes, a column in or out for all of them at once.

min_W Σ_i weight_i (log Σ_c exp(eta_ic) − eta_iy) + ½·ridge·‖W‖² + price·(nonzero rows of W), with
eta = XW + 1b'. The Hessian in a predictor, diag(p) − pp', is at most ½(I − 11'/C) (Böhning): with
that bound, or with its own mean curvature in its place, a step is a least-squares problem of C
responses that share one support, and the gains of moves are sums over responses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.design import Design
from blockl0.grouped_search import GroupedSearch
from blockl0.newton import ROUNDING
from blockl0.preprocess import Centered
from blockl0.quadratic_search import RELATIVE_TOLERANCE, Incumbent, SearchOptions, Tally
from blockl0.run import Run
from blockl0.sparsity import Sparsity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BOHNING = 0.5
"""The bound on the curvature in a predictor, on differences between classes."""
LEAST_CURVATURE = 2e-3
"""Curvature below which a local model would be too flat to be trusted."""
MAX_MODELS, KICKS = 30, 2
"""Models of a settling, and kicks of a round."""
KNOWN_PREDICTORS = 16
"""Supports whose predictors are remembered, (m, C) each."""
MAX_STEPS, STEP_TOLERANCE, DAMPING = 60, 1e-12, 1e-10
"""Newton steps, the share of the objective that ends them, and what is added to the Hessian."""


@dataclass(frozen=True, eq=False)
class MultinomialProblem:
    """The problem record of several classes; fields as in `Problem`, and y holds classes 0..C−1."""

    design: Design
    y: Ints
    n_classes: int
    sparsity: Sparsity
    ridge: float = 0.0
    sample_weight: Floats | None = None
    keep: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    has_intercept: bool = False
    loss: Any = field(default_factory=lambda: SimpleNamespace(name="softmax"))

    @property
    def n_samples(self) -> int:
        """Rows of X."""
        return self.design.shape[0]

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.design.shape[1]

    @property
    def weights(self) -> Floats:
        """Sample weights, (m,)."""
        return np.ones(self.n_samples) if self.sample_weight is None else self.sample_weight

    def predictor(self, W: Floats) -> Floats:
        """eta = XW + 1b' (m, C) with the best intercepts b."""
        support = rows_of(W)
        eta = self.design.columns(support) @ W[support]
        return eta + self.best_intercepts(eta) if self.has_intercept else eta

    def best_intercepts(self, eta: Floats) -> Floats:
        """argmin_b of the loss at eta + 1b', (C,), summing to zero."""
        start = np.zeros((1, self.n_classes))
        ones = np.ones((self.n_samples, 1))
        return minimize_softmax(ones, self.y, self.weights, np.zeros(1), start, eta)[0]

    def value(self, eta: Floats) -> float:
        """Σ_i weight_i (log Σ_c exp(eta_ic) − eta_iy)."""
        return float(self.weights @ softmax_loss(eta, self.y))

    def data_loss(self, W: Floats) -> float:
        """The loss at W, without the ridge."""
        return self.value(self.predictor(as_rows(W, self.n_classes)))

    def objective(self, W: Floats) -> float:
        """Loss + ½·ridge·‖W‖² + price·(nonzero rows); infinite beyond the budget."""
        n_nonzero = rows_of(W).size
        if n_nonzero > self.sparsity.budget:
            return np.inf
        return (
            self.data_loss(W)
            + 0.5 * self.ridge * float(np.sum(W**2))
            + self.sparsity.cost(n_nonzero)
        )


class MultinomialSearch:
    """Search a model of grouped least squares, polish on the true objective, keep what is better.

    The interface is that of the other searches of method "refit".
    """

    def __init__(
        self, problem: MultinomialProblem, options: SearchOptions, tally: Tally | None = None
    ) -> None:
        self.problem = problem
        self.options = options
        zero = np.zeros((problem.n_features, problem.n_classes))
        self.tolerance = RELATIVE_TOLERANCE * problem.objective(zero)
        self.tally = Tally() if tally is None else tally
        # what is known of a support, its predictors too, is not computed again
        self._eta: dict[tuple[int, ...], Floats] = {}
        self._polished: dict[tuple[int, ...], Incumbent] = {}
        self._settled: dict[tuple[int, ...], Incumbent] = {}

    def for_sparsity(self, sparsity: Sparsity) -> MultinomialSearch:
        """The search of the same data under another price and budget."""
        other = MultinomialSearch(
            replace(self.problem, sparsity=sparsity), self.options, self.tally
        )
        if sparsity.price == self.problem.sparsity.price:
            # a fit on a support does not depend on the budget
            other._polished, other._eta = self._polished, self._eta
        return other

    def start(self, w: Floats) -> Incumbent:
        """The minimizer on the rows of w and the kept columns."""
        W = as_rows(w, self.problem.n_classes)
        return self.polish(W, np.union1d(rows_of(W), self.problem.keep).astype(np.int64), 0)

    def scatter(self, rng: np.random.Generator) -> Incumbent:
        """A start elsewhere: additions ranked by gains times random numbers."""
        zero = np.zeros((self.problem.n_features, self.problem.n_classes))
        model = self._model(zero, is_global=False)
        support = model.descend(self.problem.keep, rng.uniform(0.0, 1.0, len(zero)))
        return self.polish(zero, support, 0)

    def shrink(self, w: Floats, size: int) -> Floats:
        """Take out the least missed column of the model at w until `size` are left."""
        model = self._model(w, is_global=False)
        support = model.shrink(rows_of(w), size)
        return self.polish(w, support, 0).w

    def settle(self, incumbent: Incumbent, run: Run, rng: np.random.Generator) -> Incumbent:
        """Model, search, polish, until neither the local nor the global model finds better."""
        is_global, seen = False, []
        for _ in range(MAX_MODELS):
            if run.seconds_left <= 0.0:
                return incumbent
            key = tuple(rows_of(incumbent.w).tolist())
            if key in self._settled:
                incumbent = replace(self._settled[key], iteration=incumbent.iteration)
                break
            seen.append(key)
            model = self._model(incumbent.w, is_global)
            support = model.descend(rows_of(incumbent.w))
            self.tally.n_passes += model.n_passes
            found = self.polish(incumbent.w, support, incumbent.iteration + 1)
            if found.objective < incumbent.objective - self.tolerance:
                incumbent, is_global = found, False
            elif is_global:
                break
            else:
                is_global = True
        self._settled.update(dict.fromkeys(seen, incumbent))
        return incumbent

    def kick_round(
        self, incumbent: Incumbent, run: Run, rng: np.random.Generator, is_narrow: bool = False
    ) -> Incumbent:
        """Drop a part of the support, refill without half of it, settle; keep what is better."""
        for _ in range(KICKS):
            movable = np.setdiff1d(rows_of(incumbent.w), self.problem.keep)
            if movable.size == 0 or run.seconds_left <= 0.0:
                break
            dropped = rng.permutation(movable)[: max(1, int(movable.size * rng.uniform(0.1, 0.6)))]
            W = incumbent.w.copy()
            W[dropped] = 0.0
            here = self.polish(W, rows_of(W), incumbent.iteration)
            weight = rng.uniform(0.5, 1.0, self.problem.n_features)
            weight[dropped[: (dropped.size + 1) // 2]] = 0.0
            support = self._model(here.w, is_global=False).descend(rows_of(here.w), weight)
            found = self.settle(self.polish(here.w, support, incumbent.iteration), run, rng)
            if found.objective < incumbent.objective - self.tolerance:
                incumbent = found
        return incumbent

    def _model(self, W: Floats, is_global: bool) -> GroupedSearch:
        """Least squares with C responses: curvature d_i, targets eta + (Y − P)/d."""
        problem = self.problem
        eta = self._eta.get(tuple(rows_of(W).tolist()))
        if eta is None:
            eta = problem.predictor(as_rows(W, problem.n_classes))
        P = probabilities(eta)
        curvature = np.full(problem.n_samples, BOHNING)
        if not is_global:
            # the trace of diag(p) − pp', spread over C − 1 directions
            curvature = (1.0 - np.sum(P**2, axis=1)) / (problem.n_classes - 1)
            curvature = np.clip(curvature, LEAST_CURVATURE, BOHNING)
        slope = P.copy()
        slope[np.arange(problem.n_samples), problem.y] -= 1.0
        target = eta - slope / curvature[:, None]
        weights, design = problem.weights * curvature, problem.design
        if isinstance(design, Centered):
            design = design.recentred(weights)
            target = target - np.average(target, axis=0, weights=weights)
        return GroupedSearch(
            design, target, weights, problem.ridge, problem.sparsity, problem.keep, self.tolerance
        )

    def polish(self, W: Floats, support: Ints, iteration: int) -> Incumbent:
        """The true minimizer on a support; each support is polished once."""
        key = tuple(support.tolist())
        if key not in self._polished:
            problem = self.problem
            A, n_free = problem.design.columns(support), int(problem.has_intercept)
            start = W[support]
            if n_free:
                A = np.column_stack([np.ones(problem.n_samples), A])
                start = np.vstack([np.zeros(problem.n_classes), start])
            ridge = np.full(A.shape[1], problem.ridge)
            ridge[:n_free] = 0.0
            V = minimize_softmax(A, problem.y, problem.weights, ridge, start)
            eta = A @ V
            found = np.zeros((problem.n_features, problem.n_classes))
            found[support] = V[n_free:]
            n_nonzero = rows_of(found).size
            objective = problem.value(eta) + 0.5 * problem.ridge * float(np.sum(found**2))
            objective += problem.sparsity.cost(n_nonzero)
            self._polished[key] = Incumbent(found, objective, n_nonzero)
            if len(self._eta) == KNOWN_PREDICTORS:
                self._eta.pop(next(iter(self._eta)))
            self._eta[tuple(rows_of(found).tolist())] = eta
        return replace(self._polished[key], iteration=iteration)


def minimize_softmax(
    A: Floats, y: Ints, weights: Floats, ridge: Floats, start: Floats, offset: Floats | float = 0.0
) -> Floats:
    """argmin_V of the softmax loss at offset + AV plus ½ Σ_j ridge_j‖V_j‖², (a, C), by Newton.

    Damped by halving, so it never ends above its start; O(m a² C²) a step. Rows sum to zero. On
    separable data without ridge the minimizer is at infinity; the steps are bounded in number.
    """
    n_classes = start.shape[1]
    if A.shape[1] == 0:
        return start
    # unit columns: damping must not depend on the user's units
    scale = np.sqrt(np.einsum("i,ij,ij->j", weights, A, A))
    scale[scale == 0.0] = 1.0
    A, V, ridge = A / scale, start * scale[:, None], ridge / scale**2
    rows = np.arange(y.size)

    def value(V: Floats) -> float:
        total = weights @ softmax_loss(offset + A @ V, y)
        return float(total + 0.5 * np.sum(ridge[:, None] * V**2))

    here, at_zero = value(V), value(0.0 * V)
    for _ in range(MAX_STEPS):
        P = probabilities(offset + A @ V)
        H = _softmax_hessian(A, P, weights, ridge)
        P[rows, y] -= 1.0
        slope = A.T @ (weights[:, None] * P) + ridge[:, None] * V
        step = -np.linalg.solve(H, slope.T.ravel()).reshape(n_classes, -1).T
        step -= step.mean(axis=1, keepdims=True)
        size = max(here, 0.01 * at_zero)
        if -float(np.sum(slope * step)) <= STEP_TOLERANCE * size:
            # known already, it doubles the digits of V, where those of the value are exhausted
            V = V + step if value(V + step) <= here + ROUNDING * size else V
            break
        before = here
        for length in 0.5 ** np.arange(27):
            if (there := value(V + length * step)) < here:
                V, here = V + length * step, there
                break
        if not here < before:
            break
    V = V - V.mean(axis=1, keepdims=True)
    return V / scale[:, None]


def _softmax_hessian(A: Floats, P: Floats, weights: Floats, ridge: Floats) -> Floats:
    """Blocks A' diag(w p_c (δ_cd − p_d)) A + ridge, made definite along equal shifts of classes."""
    a, n_classes = A.shape[1], P.shape[1]
    H = np.empty((n_classes, a, n_classes, a))
    for c in range(n_classes):
        for d in range(c + 1):
            bend = weights * P[:, c] * (float(c == d) - P[:, d])
            block = (A * bend[:, None]).T @ A
            H[c, :, d, :] = block
            H[d, :, c, :] = block
    H = H.reshape(n_classes * a, n_classes * a)
    largest = max(float(H.diagonal().max()), 1e-8 * float(weights.max()))
    # no gradient points along 1 ⊗ v, so what is added there changes no step
    H += np.kron(np.full((n_classes, n_classes), largest / n_classes), np.eye(a))
    H.flat[:: H.shape[0] + 1] += np.tile(ridge, n_classes) + DAMPING * largest
    return H


def softmax_loss(eta: Floats, y: Ints) -> Floats:
    """log Σ_c exp(eta_ic) − eta_iy per sample, (m,)."""
    shifted = eta - eta.max(axis=1, keepdims=True)
    return np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(y.size), y]


def probabilities(eta: Floats) -> Floats:
    """exp(eta_ic) / Σ_d exp(eta_id), (m, C), without overflow."""
    P = np.exp(eta - eta.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def rows_of(W: Floats) -> Ints:
    """The nonzero rows of W (n, C), ascending."""
    return np.flatnonzero(W if W.ndim == 1 else W.any(axis=1)).astype(np.int64)


def as_rows(w: Floats, n_classes: int) -> Floats:
    """W (n, C); the zero vector (n,) stands for zero rows."""
    return w if w.ndim == 2 else np.zeros((w.size, n_classes))
