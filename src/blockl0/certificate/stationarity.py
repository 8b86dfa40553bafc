"""Tests of stationarity: each returns a better point, or None when the condition holds.

All of them work on the quadratic with Hessian Q = X' diag(D) X + ridge·I around the point: the
smooth part itself for squared loss, its majorizer for the others. A better point of the quadratic
is a better point of the objective, and is confirmed on the data before it is returned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from blockl0 import kernels
from blockl0.block_search import new_tree, search_block
from blockl0.certificate.move_search import OutOfReachError, find_move
from blockl0.certificate.move_tableau import Tableau, inverse
from blockl0.certificate.moves import Move
from blockl0.problem import Problem

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

TOL = 1e-8
"""Relative decrease of the objective that counts as an improvement."""
ROUNDING = 1e-13
"""Decrease, relative to the objective at zero, that rounding alone can feign."""
SMALL = 64
"""Number of columns up to which L comes from a dense eigenvalue decomposition."""
GLOBAL_FROM = 4
"""Block size from which the proof of global optimality is tried first."""
GLOBAL_BYTES = 500_000_000
"""Most memory of that search."""
GLOBAL_WORK = 1_000_000_000
"""Its nodes times the squared number of columns: about a second."""
LEAST_NODES = 100
"""Its nodes at least, however many columns there are."""
FULL_WORK = 30 * GLOBAL_WORK
"""The same when the block holds all columns, so that hardly anything else can answer."""


class Better(NamedTuple):
    """A feasible point with a lower objective, and the columns that show it."""

    block: tuple[int, ...]
    coef: Floats
    objective: float


class Point:
    """The point under test with what all tests need; two passes over X."""

    def __init__(self, problem: Problem, w: Floats, tol: float = TOL):
        self.problem, self.w = problem, w
        self.grad = problem.gradient(w)
        self.objective = problem.objective(w)
        self.weights = problem.hessian_bound_weights()
        self.members: Indices = np.union1d(np.flatnonzero(w), problem.keep).astype(np.int64)
        self.at_zero = problem.smooth(np.zeros_like(w))
        self.slack = tol * self.objective + ROUNDING * self.at_zero

    def curve(self, d: Floats) -> Floats:
        """Q d, (n,)."""
        design, eta = self.problem.design, self.problem.design.matvec(d)
        eta = eta if self.weights is None else self.weights * eta
        return design.rmatvec(eta) + self.problem.ridge * d

    def gram(self, idx: Indices) -> Floats:
        """Q on the given columns, (k, k)."""
        Q = self.problem.design.gram(idx, self.weights)
        Q[np.diag_indices_from(Q)] += self.problem.ridge
        return Q

    def fit(self, free: Indices, dropped: Indices) -> Floats:
        """The best point of the quadratic with `dropped` at zero and all but `free` as they are."""
        z = self.w.copy()
        z[dropped] = 0.0
        Q = self.gram(free)
        scale = np.sqrt(np.where(np.diag(Q) > 0.0, np.diag(Q), 1.0))
        K = inverse(Q / scale[:, None] / scale) / scale[:, None] / scale
        for _ in range(2):  # the second step removes the rounding of the first
            z[free] -= K @ (self.grad + self.curve(z - self.w))[free]
        return z

    def confirm(self, block: NDArray[np.integer], z: Floats) -> Better | None:
        """The better point, if it is better on the data by more than the slack."""
        objective = self.problem.objective(z)
        if not objective < self.objective - self.slack:
            return None
        return Better(tuple(sorted(int(j) for j in block)), z, objective)


def improve_basic(point: Point, size: int | None = None) -> Better | None:
    """Whether the point is the best on its support; the block holds its largest `size` gradients.

    The gain is ½ g_S' (Q_SS)⁻¹ g_S.
    """
    S = point.members
    if not S.size:
        return None
    z = point.fit(S, S[:0])
    gain = 0.5 * float(point.grad[S] @ (point.w - z)[S])
    if not gain > point.slack:
        return None
    block = S[np.argsort(-np.abs(z - point.w)[S], kind="stable")][:size]
    return point.confirm(block, z)


def largest_curvature(point: Point) -> float:
    """L, the largest eigenvalue of Q, by Lanczos on products with X unless X has few columns."""
    n = point.w.size
    if n <= SMALL:
        return float(np.linalg.eigvalsh(point.gram(np.arange(n)))[-1])
    operator = LinearOperator((n, n), matvec=point.curve, dtype=np.float64)  # type: ignore[call-arg]
    start = np.random.default_rng(0).standard_normal(n)
    scale = float(np.linalg.norm(point.curve(start)))
    if scale == 0.0:
        return 0.0
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def improve_l(point: Point) -> Better | None:
    """Whether the point minimizes ⟨g, z − w⟩ + L/2‖z − w‖² + price·‖z‖₀ within the budget."""
    price, budget = point.problem.sparsity
    w, L = point.w, max(largest_curvature(point), np.finfo(float).tiny)
    target = w - point.grad / L
    worth = 0.5 * L * target**2 - price  # of having the coordinate at its target and not at zero
    worth[point.problem.keep] = np.inf
    chosen = np.argsort(-worth, kind="stable")[:budget]
    chosen = chosen[worth[chosen] > 0.0]
    z = np.zeros_like(w)
    z[chosen] = target[chosen]
    d = z - w
    n_more = np.count_nonzero(z) - np.count_nonzero(w)
    change = point.grad @ d + 0.5 * L * (d @ d) + price * n_more
    return point.confirm(np.flatnonzero(d), z) if change < -point.slack else None


def improve_block(point: Point, k: int, refit: bool) -> Better | None:
    """Whether no block of k coordinates improves the point; all blocks, by search and bounds."""
    n, sizes = point.w.size, sorted({1, min(2, k, point.w.size)})
    better = improve_basic(point, k) if refit else None
    if better is not None:
        return better
    tableau = Tableau(point.problem, point.w, point.grad, point.members, refit)
    for size in sizes:
        better = _improve_by_moves(point, tableau, size)
        if better is not None or size >= min(k, n):
            return better
    if k >= n or k >= GLOBAL_FROM:
        better, is_optimal = improve_global(point, FULL_WORK if k >= n else GLOBAL_WORK)
        if is_optimal or (better is not None and k >= n):
            return better
    return _improve_by_moves(point, tableau, min(k, n))


def _improve_by_moves(point: Point, tableau: Tableau, k: int) -> Better | None:
    """The complete search over blocks of k columns."""

    def accept(move: Move) -> Better | None:
        block, gone = (np.array(part, dtype=np.int64) for part in (move.columns, move.dropped))
        free = np.union1d(point.members, block) if tableau.refit else block
        return point.confirm(block, point.fit(np.setdiff1d(free, gone), gone))

    try:
        price = point.problem.sparsity.price
        return find_move(tableau, k, price, -point.slack, accept)
    except OutOfReachError as error:
        raise ValueError(
            f"`level`={k} is out of reach of a complete certificate with {point.w.size} columns: "
            f"{error}. Give `n_samples` for a sampled certificate, or ask for a lower level."
        ) from error


def improve_global(point: Point, work: int) -> tuple[Better | None, bool]:
    """(better point or None, whether it is proven that no point is better than this one).

    The search prunes within an allowance for the rounding of the Gram matrix. Where that exceeds
    the slack, as for a nearly perfect fit on dependent columns, it proves nothing.
    """
    n, (price, budget) = point.w.size, point.problem.sparsity
    if 16 * (min(n, budget) + 2) * n**2 > GLOBAL_BYTES:
        return None, False
    H = np.ascontiguousarray(point.gram(np.arange(n)))
    c = point.grad - H @ point.w
    forced = _mask(point.problem.keep, np.arange(n))
    tree, node_limit = new_tree(n, min(n, budget) + 1), max(LEAST_NODES, work // n**2)
    found = search_block(
        H, c, price, budget, current=point.w, forced=forced, node_limit=node_limit, tree=tree
    )
    here = 0.5 * point.w @ (point.grad + c) + price * np.count_nonzero(point.w)
    if not found.value < here - point.slack:
        return None, found.proven and float(tree.value[-1, kernels.SLACK]) <= point.slack
    support = np.flatnonzero(found.z)
    z = point.fit(support, np.setdiff1d(point.members, support))
    return point.confirm(np.flatnonzero(z != point.w), z), False


def _mask(keep: Indices, block: Indices) -> NDArray[np.bool_] | None:
    return np.isin(block, keep) if keep.size else None


def improve_sampled(
    point: Point, k: int, refit: bool, n_samples: int, rng: np.random.Generator
) -> Better | None:
    """Whether none of `n_samples` blocks drawn uniformly improves the point."""
    n, k = point.w.size, min(k, point.w.size)
    better = improve_basic(point, k) if refit else None
    if better is not None:
        return better
    tableau = Tableau(point.problem, point.w, point.grad, point.members, refit)
    for _ in range(n_samples):
        block = np.sort(rng.choice(n, size=k, replace=False))
        better = _improve_in(point, tableau, block)
        if better is not None:
            return better
    return None


def _improve_in(point: Point, tableau: Tableau, block: Indices) -> Better | None:
    """Solve one block exactly, in unit columns."""
    scale, (price, budget) = tableau.scale[block], point.problem.sparsity
    is_rest = ~np.isin(point.members, block)
    rest = point.members[is_rest]
    H = point.gram(block) / scale[:, None] / scale
    if tableau.refit:
        # the Schur complement: the rest of the support follows the block
        U = tableau.U[block][:, is_rest]
        H -= U @ inverse(tableau.U[rest][:, is_rest]) @ U.T
    w, g = point.w[block] * scale, point.grad[block] / scale
    c = g - H @ w
    found = search_block(
        np.ascontiguousarray(H),
        c,
        price,
        budget - rest.size,
        current=w,
        forced=_mask(point.problem.keep, block),
    )
    if found.value < 0.5 * w @ (g + c) + price * np.count_nonzero(w) - point.slack:
        gone = np.setdiff1d(block[w != 0.0], block[found.z != 0.0])
        kept = block[found.z != 0.0]
        return point.confirm(
            block, point.fit(np.union1d(rest, kept) if tableau.refit else kept, gone)
        )
    if not found.proven:
        raise ValueError(
            f"`level`={block.size} is too large: the search of one block hit its node limit; "
            "ask for a lower level."
        )
    return None
