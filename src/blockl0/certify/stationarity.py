"""Tests of stationarity: each returns a better point, or None if the condition holds.

Most of them use the quadratic with Hessian Q = X' diag(D) X + ridge·I around the point: the smooth
part itself for squared loss, its majorizer otherwise. A better point of the quadratic is a better
point of the objective, and is confirmed on the data before it is returned.

Where curvature is unbounded, or a sample has several predictors, there is no majorizer: every
change is tested on the loss itself. Columns that cannot improve are excluded by duality, the others
re-fitted. Groups, bounds, costs and several responses are tested so, too, for every loss: blocks
are then blocks of units.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.block_search import NODE_LIMIT
from blockl0.certify.levels import TOL, Better, PointUnderTest
from blockl0.certify.move_search import find_move
from blockl0.certify.move_tableau import BlockMove, MoveTableau
from blockl0.certify.optimality import improve_globally
from blockl0.errors import OutOfReachError, OutOfTime
from blockl0.exact.search import ExactSearch
from blockl0.losses import LOSSES
from blockl0.problem.fits import Fits, make_fits
from blockl0.problem.orthogonal import DEPENDENT, smallest_distance
from blockl0.problem.problem import Problem, Sparsity, independent
from blockl0.run import look
from blockl0.units import COLUMNS
from blockl0.validate import check_choice, check_integer

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

SMALL = 64
"""Number of columns up to which L comes from a dense eigenvalue decomposition."""
GLOBAL_FROM = 4
"""Block size from which a proof of global optimality is tried first."""
GLOBAL_COLUMNS = 1000
"""Most columns for that proof."""
GLOBAL_WORK = 1_000_000_000
"""Its nodes times the squared number of columns: about a second."""
GLOBAL_FITS = 5000
"""Its most fits of unresolved nodes; about a second."""
LEAST_NODES = 100
"""Its fewest nodes, for any number of columns."""
PROOF_SLICE = 2000
"""Nodes of that search between checks for an interruption."""


class QuadraticPoint(PointUnderTest):
    """The point with the quadratic around it; two passes over X."""

    def __init__(self, problem: Problem, w: Floats, tol: float = TOL) -> None:
        super().__init__(problem, w, tol)
        self.grad: Floats = problem.gradient(w)
        self.weights: Floats | None = problem.hessian_bound_weights()

    @property
    def model(self) -> Problem:
        """The quadratic as a squared loss: the problem itself, or its majorizer at the point."""
        problem = self.problem
        if problem.is_quadratic:
            return problem
        weights = self.weights
        weights = np.ones(problem.n_samples) if weights is None else weights
        eta = problem.predictor(self.w)
        slope = problem.loss.gradient(eta, problem.y)
        if problem.sample_weight is not None:
            slope = slope * problem.sample_weight
        # a row without weight has no slope either
        shift = np.divide(slope, weights, out=np.zeros_like(slope), where=weights > 0.0)
        loss, target = LOSSES["squared"], eta - shift
        if problem.has_intercept:
            # columns are centred by proportional weights, so this is the best intercept
            target = target - np.average(target, weights=weights)
        return replace(
            problem, loss=loss, y=target, sample_weight=weights, has_intercept=False
        )  # fmt: skip

    def curve(self, d: Floats) -> Floats:
        """Compute Q d, (n,)."""
        look()
        design, eta = self.problem.design, self.problem.design.matvec(d)
        eta = eta if self.weights is None else self.weights * eta
        return design.rmatvec(eta) + self.problem.ridge * d

    def gram(self, idx: Indices) -> Floats:
        """Compute Q on the given columns, (k, k)."""
        Q = self.problem.design.gram(idx, self.weights)
        Q[np.diag_indices_from(Q)] += self.problem.ridge
        return Q

    def fit(self, free: Indices, dropped: Indices) -> Floats:
        """Minimize the quadratic over `free`, with `dropped` at zero and all others fixed.

        Uses an orthogonal factorization; some of several dependent columns become zero.
        """
        z, model = self.w.copy(), self.model
        z[dropped] = z[free] = 0.0
        if z.any():
            model = replace(model, y=model.y - model.design.matvec(z))
        return z + make_fits(model).coef_on(free)

    def admit(self, better: Better | None) -> Better | None:
        """Return a better point unless it has dependent columns and the current point has none.

        A re-fit never makes such columns, but a block with a fixed outside may.
        """
        if better is None or _are_independent(self.model, better.coef):
            return better
        return None if _are_independent(self.model, self.w) else better


def _are_independent(model: Problem, w: Floats) -> bool:
    return smallest_distance(model.unit_columns(np.flatnonzero(w))[0]) > DEPENDENT


def improve_basic(point: QuadraticPoint, size: int | None = None) -> Better | None:
    """Test if the point is the best on its support; a block holds its `size` largest changes.

    The gain is ½ g_S' (Q_SS)⁻¹ g_S.
    """
    S = point.members
    if not S.size:
        return None
    z = point.fit(S, S[:0])
    block = S[np.argsort(-np.abs(z - point.w)[S], kind="stable")][:size]
    return point.confirm(block, z)


def largest_curvature(point: QuadraticPoint) -> float:
    """Compute L, the largest eigenvalue of Q, by Lanczos unless X has few columns."""
    n = point.w.size
    if n <= SMALL:
        return float(np.linalg.eigvalsh(point.gram(np.arange(n)))[-1])
    from scipy.sparse.linalg import LinearOperator, eigsh  # slow to import, and `solve` needs none

    operator = LinearOperator((n, n), matvec=point.curve, dtype=np.float64)  # type: ignore[call-arg]
    start = np.random.default_rng(0).standard_normal(n)
    scale = float(np.linalg.norm(point.curve(start)))
    if scale == 0.0:
        return 0.0
    return float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def improve_l(point: QuadraticPoint) -> Better | None:
    """Test if the point minimizes ⟨g, z − w⟩ + L/2‖z − w‖² + price·‖z‖₀ within the budget."""
    price, budget = point.problem.sparsity
    w, L = point.w, max(largest_curvature(point), np.finfo(float).tiny)
    target = w - point.grad / L
    worth = 0.5 * L * target**2 - price  # gain of a coordinate at its target instead of zero
    worth[point.problem.keep] = np.inf
    chosen = np.argsort(-worth, kind="stable")[:budget]
    chosen = chosen[worth[chosen] > 0.0]
    z = np.zeros_like(w)
    z[chosen] = target[chosen]
    d = z - w
    n_more = point.problem.occupied(z).size - point.members.size
    change = point.grad @ d + 0.5 * L * (d @ d) + price * n_more
    return point.confirm(np.flatnonzero(d), z) if change < -point.slack else None


def improve_block(point: QuadraticPoint, k: int, refit: bool) -> Better | None:
    """Test all blocks of k coordinates, by search and bounds."""
    n, sizes = point.w.size, sorted({1, min(2, k)})
    better = improve_basic(point, k) if refit else None
    if better is not None:
        return better
    if k >= n:
        return _improve_all(point, k)
    tableau = _tableau(point, refit)
    for size in sizes:
        better = _improve_by_moves(point, tableau, size)
        if better is not None or size >= k:
            return better
    if k >= GLOBAL_FROM:
        better, is_optimal = improve_global(point, GLOBAL_WORK)
        if is_optimal:
            return better
    return _improve_by_moves(point, tableau, k)


def _improve_all(point: QuadraticPoint, k: int) -> Better | None:
    """Test if any point is better: by global search, else by all changes of the support."""
    try:
        return improve_globally(point, k)
    except OutOfReachError:
        if not point.problem.is_quadratic:
            raise
        try:
            # other supports differ in no more columns than these
            most = point.members.size + point.problem.sparsity.budget
            return _improve_by_moves(point, _tableau(point, True), min(most, point.w.size))
        except OutOfReachError:
            pass
        raise


def _tableau(point: QuadraticPoint, refit: bool) -> MoveTableau:
    """Build the quadratic at the point, or at the best point on its support if re-fitted.

    That point is no better, or it would have been returned, but may have fewer columns if some
    depend on others.
    """
    w, members, grad = point.w, point.members, point.grad
    if refit:
        w = point.fit(members, members[:0])
        members = point.problem.occupied(w)
        grad = grad + point.curve(w - point.w)
    return MoveTableau(point.model, w, grad, members, refit)


def _improve_by_moves(point: QuadraticPoint, tableau: MoveTableau, k: int) -> Better | None:
    """Search all blocks of k columns."""

    def split(move: BlockMove) -> tuple[Indices, Indices, Indices]:
        """Return the block, the columns to fit, and those that become zero."""
        block, gone = (np.array(part, dtype=np.int64) for part in (move.columns, move.dropped))
        if not tableau.refit:
            return block, np.setdiff1d(block, gone), gone
        free = np.setdiff1d(np.union1d(tableau.members, block), gone)
        return block, free, np.setdiff1d(point.members, free)

    def accept(move: BlockMove) -> Better | None:
        block, free, gone = split(move)
        return point.admit(point.confirm(block, point.fit(free, gone)))

    def is_barred(move: BlockMove) -> bool:
        return smallest_distance(tableau.model.unit_columns(split(move)[1])[0]) <= DEPENDENT

    try:
        price = point.problem.sparsity.price
        return find_move(tableau, k, price, -point.slack, accept, is_barred)
    except OutOfReachError as error:
        raise OutOfReachError(
            f"`level`={k} is out of reach of a complete certificate with {point.w.size} columns: "
            f"{error}. Give `n_samples` for a sampled certificate, or ask for a lower level."
        ) from error


def improve_global(point: QuadraticPoint, work: int) -> tuple[Better | None, bool]:
    """Return (better point or None, whether the point is proven to be optimal)."""
    n = point.w.size
    if n > GLOBAL_COLUMNS:
        return None, False
    found = ExactSearch(point.model, np.flatnonzero(point.w))
    node_limit = max(LEAST_NODES, work // n**2)
    while not found.finished and found.incumbent.iteration < node_limit:
        found.advance(PROOF_SLICE)
        if found.n_fitted > GLOBAL_FITS:
            break
    z = found.incumbent.w
    better = point.confirm(np.flatnonzero(z != point.w), z)
    here = point.model.objective(point.w)
    # a proof coarser than the tolerance does not count
    is_sharp = found.finished and found.tolerance <= point.slack
    return better, is_sharp and here <= found.incumbent.objective + point.slack


def improve_sampled(
    point: QuadraticPoint, k: int, refit: bool, n_samples: int, rng: np.random.Generator
) -> tuple[Better | None, int]:
    """Return a better point by one of `n_samples` blocks drawn uniformly, and how many were.

    They are fewer where one improves the point, or where the time is up.
    """
    n, k = point.w.size, min(k, point.w.size)
    better = improve_basic(point, k) if refit else None
    if better is not None:
        return better, n_samples
    model = point.model
    for n_drawn in range(n_samples):
        block = np.sort(rng.choice(n, size=k, replace=False))
        try:
            look()
            better = _improve_in(point, model, block, refit)
        except OutOfTime:
            if n_drawn == 0:
                raise
            return None, n_drawn
        if better is not None:
            return better, n_samples
    return None, n_samples


def _improve_in(
    point: QuadraticPoint, model: Problem, block: Indices, refit: bool
) -> Better | None:
    """Solve one block exactly, as a problem that keeps the rest of the support."""
    rest = np.setdiff1d(point.members, block)
    columns = np.union1d(rest, block) if refit else block
    fixed = np.zeros_like(point.w) if refit else point.w.copy()
    fixed[block] = 0.0
    price, budget = model.sparsity
    kept = np.union1d(rest, np.intersect1d(model.keep, block)) if refit else model.keep
    inside = replace(
        model,
        design=model.design.take(columns),
        y=model.y - model.design.matvec(fixed),
        sparsity=Sparsity(price, min(columns.size, budget - (0 if refit else rest.size))),
        keep=np.flatnonzero(np.isin(columns, kept)).astype(np.int64),
    )
    inside = replace(
        inside, keep=independent(inside.design, inside.keep, model.sample_weight, model.ridge)
    )
    found = ExactSearch(inside, np.flatnonzero(point.w[columns]))
    while not found.finished and found.incumbent.iteration < NODE_LIMIT:
        found.advance(PROOF_SLICE)
    z = fixed
    z[columns] = found.incumbent.w
    better = point.admit(point.confirm(block, z))
    if better is None and not found.finished:
        raise OutOfReachError(
            f"`level`={block.size} is too large: the search of one block hit its node limit; "
            "ask for a lower level."
        )
    return better


# -- on the loss itself --------------------------------------------------------------------------


def is_about_loss(problem: Problem) -> bool:
    """Check if only the loss itself can be tested: no majorizer, or structure beyond a tableau."""
    has_none = problem.n_outputs > 1 or not np.isfinite(problem.loss.curvature_bound)
    return has_none or not problem.is_plain


def improve_on_loss(
    point: PointUnderTest, level: Any, outside: str, n_samples: int | None
) -> Better | None:
    """Find a better point by a change that the level covers; None if there is none."""
    problem = point.problem
    size = _check_level(problem, level, outside, n_samples)
    if size > 0 and size == problem.n_units:
        return improve_globally(point, level)
    is_full = problem.sparsity.price == 0.0 and point.members.size == problem.sparsity.budget
    if size == 2 and not is_full:
        raise OutOfReachError(
            f"`level`=2 of {_lacking(problem)} is known only without a price and for a "
            f"budget that is used up, got alpha={problem.sparsity.price:g} and "
            f"{point.members.size} of n_nonzero_coefs={problem.sparsity.budget} {_what(problem)}; "
            "ask for level=1."
        )
    fits, units = make_fits(problem), problem.units
    fit = fits.minimum(units.columns(point.members), point.w)
    moved = np.square(np.atleast_2d((fit.w - point.w).T)).sum(axis=0)
    change = np.array([moved[units.members(int(unit))].sum() for unit in point.members])
    block = point.members[np.argsort(-change, kind="stable")][:size]
    better = point.confirm(block, fit.w)
    if better is not None or size == 0:
        return better
    return _improve_by_one(point, fits, fit.w, size)


def _improve_by_one(point: PointUnderTest, fits: Fits, w: Floats, size: int) -> Better | None:
    """Try every addition and removal, and for blocks of two every swap, all re-fitted."""
    problem = point.problem
    moves = problem.kind.load("moves")(problem, fits)
    # the point's own units: its fit may leave out a unit that depends on others
    verdict = moves.check(w, point.objective, point.slack, swaps=size == 2, units=point.members)
    if verdict.better is None:
        if not verdict.is_complete:
            raise OutOfReachError(
                f"`level`={size} is out of reach of a complete certificate with "
                f"{problem.n_units} {_what(problem)} and loss={problem.loss.name!r}: "
                f"{verdict.why}. Ask for level='basic', or leave out {_what(problem)}."
            )
        return None
    there = problem.units.support(verdict.better)
    better = point.confirm(np.setxor1d(point.members, there), verdict.better)
    if better is None:
        raise OutOfReachError(
            f"`level`={size}: a change was found that is lower by rounding only, so that nothing "
            "can be said; ask again with another `tol`."
        )
    return better


def _check_level(problem: Problem, level: Any, outside: str, n_samples: int | None) -> int:
    """Return the block size, 0 for the support alone, refusing what needs a quadratic."""
    lacks = f"needs a quadratic above the loss, and loss={problem.loss.name!r} has none"
    if not problem.is_plain:
        lacks = "is known for columns that are chosen one by one, at one price and without bounds"
    if n_samples is not None:
        raise ValueError(f"`n_samples` {lacks}; leave it out.")
    if level == "basic":
        return 0
    if isinstance(level, str):
        check_choice("level", level, ("basic", "L"))
        raise ValueError(f"`level`='L' {lacks}; ask for level='basic', 1 or 2.")
    if outside == "fixed":
        raise ValueError(
            f"`outside`='fixed' {lacks}; leave it out: the outside is then re-fitted, which is the "
            "stronger statement."
        )
    n = problem.n_units
    size = min(check_integer("level", level, low=1), n)
    if 2 < size < n:
        raise OutOfReachError(
            f"`level`={level} {lacks}; ask for level='basic', 1 or 2, or for level={n}, that is "
            f"all {_what(problem)}."
        )
    return size


def _what(problem: Problem) -> str:
    """Name what a level counts."""
    return "columns" if problem.units is COLUMNS else "groups"


def _lacking(problem: Problem) -> str:
    """Name the reason why there is no tableau."""
    if problem.is_plain:
        return f"loss={problem.loss.name!r}"
    return "groups, bounds, costs or several responses"
