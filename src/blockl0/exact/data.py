"""Bounds from the data, for any number of columns and any convex loss, with a ridge.

Here D = ridge·I, so that f − ½w'Dw is the loss alone, Σ_i ℓ(η_i), convex for every X. Its tangent
at any predictor η is a lower bound: with slopes u_i = ℓ'(η_i) and b = −X'u,

    Σ_i ℓ(η'_i) ≥ Σ_i [ℓ(η_i) − u_i η_i] − Σ_j b_j v_j + β Σ_i u_i     for η' = Xv + β.

A group counts the norm of its b, and a column within bounds sup bv − ½·ridge·v² over these. An
intercept β is not penalized; but relevant ones lie inside a box, see `intercept_box`, and Σu is
nearly zero if η has the best intercept.
"""

from __future__ import annotations

from itertools import pairwise
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0 import kernels
from blockl0.exact.bounds import (
    EPSILON,
    Directions,
    Node,
    Relaxed,
    SparsePoint,
    Tangent,
    new_relaxation,
    perspective,
    relax_units,
)
from blockl0.exact.last_columns import Finished
from blockl0.exact.products import least_squares_bound
from blockl0.exact.watch import DENSE, NEVER, Watch
from blockl0.problem.bounded import bounded_minimum
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OUTER, ADDED = 40, 60
"""Working sets per relaxation, and columns added to one, at most."""
PRECISE = 1e-9
"""Relative accuracy of a relaxation, at most."""
NEWTON_STEPS, HALVINGS = 20, 30
"""Quadratic models per working set, and halvings per step, at most."""
FLAT_HALVINGS = 3
"""Halvings after which a step that does not change the value is accepted."""
FLATTEST = 1e-6
"""Smallest curvature of a model, as a share of the largest, so that it has a minimum."""
BOX_DOUBLINGS = 200
BALANCE_STEPS = 4
"""Newton steps to balance an intercept beyond its given accuracy."""
TERM, EXACT_TERM = 20.0, 200.0
"""Work per sample for loss and slopes, and with exact sums."""
LEAF_STEPS = 8
"""Newton steps to prove the value of a fit."""


class Here(NamedTuple):
    """A relaxed point on a working set.

    Attributes
    ----------
    w : ndarray
    eta : ndarray (m,)
        Predictor, including the intercept.
    value : float
        The relaxed objective.
    intercept : float
        Close to the best one; zero without an intercept.
    slope, bend : ndarray (m,)
        Derivatives of the weighted losses at eta; second ones are bounded below by a share of the
        largest, so that a model has a minimum.
    """

    w: Floats
    eta: Floats
    value: float
    intercept: float
    slope: Floats
    bend: Floats


class Working(NamedTuple):
    """Some units of a node, with their columns A, (m, N), and how many free ones may enter."""

    directions: Directions
    A: Floats
    room: int


class DataBounds:
    """Bounds of nodes from passes over X.

    Parameters
    ----------
    problem : Problem
        With a ridge, and one predictor.
    ceiling : float
        Objective of some point; points above it do not matter.
    watch : Watch
        When it says so, a relaxation ends with its current bound.
    """

    def __init__(self, problem: Problem, ceiling: float, watch: Watch = NEVER) -> None:
        self.problem, self.ridge, self.watch = problem, problem.ridge, watch
        self.budget, self.fits = problem.sparsity.budget, make_fits(problem)
        self.weights = problem.weights
        self.norms = np.sqrt(problem.design.sq_norms())
        self.rounding = EPSILON * (problem.n_samples + 16.0) * problem.design.rounding
        self.box = intercept_box(problem, ceiling) if problem.has_intercept else 0.0
        self.directions = Directions.of_columns(problem)
        self.n_passes = 0

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Solve the perspective relaxation on a working set, adding violating units."""
        here = self.directions.part(node.units, node.included.size)
        n_in, n = here.n_in, self.problem.n_features
        room, d = self.budget - n_in, np.full(here.prices.size, self.ridge)
        v, theta, best = node.point.dense(n, 1)[here.at], node.theta, None
        best_v = v
        chosen = np.flatnonzero(here.is_in | (here.norms(v) > 0.0))
        for n_made in range(OUTER):
            missing = cutoff - best.bound if best is not None else np.inf
            part, inside = here.part(chosen, n_in), here.rows(chosen)[0]
            work = Working(part, self.problem.design.columns(part.at), room)
            tolerance = self._tolerance(cutoff, share, missing)
            point, theta = self._descend(work, v[inside, 0], theta, tolerance)
            found = self._prove(here, room, point)
            v = np.zeros((here.at.size, 1))
            v[inside, 0] = point.w
            if best is None or not found.bound <= best.bound:
                best, best_v, node.theta = found, v, theta
            rest = point.value - best.bound
            is_close = point.value < cutoff and rest <= share * (cutoff - point.value)
            is_precise = rest <= PRECISE * abs(point.value)
            if best.bound >= cutoff or is_precise or is_close or self.watch():
                break
            # units with large scores would lower the relaxed objective: it is not yet that of all
            is_here = here.norms(v) > 0.0
            joins = n_in + self._violators(here, found, is_here[n_in:])
            larger = np.union1d(np.flatnonzero(here.is_in | is_here), joins)
            if n_made > 2 and np.isin(larger, chosen).all():
                break
            chosen = larger
        assert best is not None
        moved = np.flatnonzero(best_v)
        node.point, node.size = (
            SparsePoint(here.at[moved], best_v[moved]),
            here.norms(best_v)[n_in:],
        )
        node.z = here.memberships(best_v, d, node.theta)[n_in:]
        return best

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """Return None: there is no closed form."""
        return None

    def sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        """Return False: only the ridge can be taken away."""
        return False

    def coefficients(self, node: Node) -> tuple[Ints, Floats]:
        """Return the node's point: columns with a coefficient, and these."""
        return node.point

    def _tolerance(self, cutoff: float, share: float, missing: float) -> float:
        """Compute the accuracy needed of the point on a working set."""
        far = missing if np.isfinite(missing) else abs(cutoff)
        return max(0.25 * share * max(far, 0.0), 0.25 * PRECISE * abs(cutoff))

    def _descend(
        self, work: Working, w: Floats, theta: float, tolerance: float
    ) -> tuple[Here, float]:
        """Minimize the relaxed objective on a working set by quadratic models, one for squares."""
        problem, directions = self.problem, work.directions
        here, d = self._at(work, w), np.full(directions.prices.size, self.ridge)
        inside = directions._replace(at=np.arange(w.size))
        for _ in range(1 if problem.is_quadratic else NEWTON_STEPS):
            G, c = self._model(work.A, here)
            steep = _steepest(G, directions)
            model = new_relaxation(G, inside, c[:, None], d, here.w[:, None], steep)
            theta, _, _, n_sweeps = relax_units(
                model, work.room, directions.price, theta, np.inf, 0.25 * tolerance, 0.0
            )
            self.watch.spend(n_sweeps * float(w.size) ** 2)
            there = model.rows[kernels.V, 0, : w.size].copy()
            found = self._line(work, here, there, tolerance)
            fall = here.value - found.value
            here = found if fall > 0.0 else here
            if fall <= tolerance or self.watch():
                break
        return here, theta

    def _model(self, A: Floats, here: Here) -> tuple[Any, Floats]:
        """Compute (G, c) such that ½v'Gv − c'v models the loss near a point, with ridge, without
        intercept.
        """
        self.watch.spend(DENSE * len(A) * float(A.shape[1]) ** 2)
        bend, pull = here.bend, here.bend * here.eta - here.slope
        G: Any = (A * bend[:, None]).T @ A
        c = A.T @ pull
        if self.problem.has_intercept:
            # the intercept is free, so minimizing over it subtracts a rank-one term
            own, total = A.T @ bend, bend.sum()
            G -= np.outer(own, own / total)
            c -= own * (pull.sum() / total)
        G.flat[:: A.shape[1] + 1] += self.ridge
        return G, c

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Bound one support near its fit w, whose Newton steps may have ended early."""
        if self.problem.is_quadratic:
            return least_squares_bound(self.problem, self.fits, support, w, cutoff)
        own = self.directions.part(support, support.size)
        work, best = Working(own, self.problem.design.columns(own.at), 0), -np.inf
        here = self._at(work, w[own.at])
        for _ in range(LEAF_STEPS):
            found = self._prove(own, 0, here, work.A).bound
            best = found if found > best else best
            if best >= cutoff or self.watch():
                break
            there = self._at(work, self._newton(work, here), here.intercept)
            # near the fit slopes still decrease although the value no longer does
            is_fine = there.value <= here.value + PRECISE * abs(here.value)
            here = there if is_fine else self._line(work, here, there.w)
        return best

    def _newton(self, work: Working, here: Here) -> Floats:
        """Minimize the model near a point, from its rows: products would square the condition
        number. Within bounds products have to do.
        """
        A, directions = work.A, work.directions
        if directions.is_bounded:
            G, c = self._model(A, here)
            low, high, start = directions.low, directions.high, here.w[:, None]
            return bounded_minimum(G, c[:, None], low, high, start)[0][:, 0]
        root = np.sqrt(here.bend)
        rows, right = root[:, None] * A, root * (here.eta - here.slope / here.bend)
        if self.problem.has_intercept:
            constant = root / np.linalg.norm(root)
            rows = rows - np.outer(constant, constant @ rows)
            right = right - constant * (constant @ right)
        ridge = np.sqrt(self.ridge) * np.eye(A.shape[1])
        stacked = np.concatenate([right, np.zeros(A.shape[1])])
        found: Any = np.linalg.lstsq(np.vstack([rows, ridge]), stacked, rcond=None)
        return found[0]

    def _line(self, work: Working, here: Here, w: Floats, tolerance: float = 0.0) -> Here:
        """Search the line to w by halving; return the given point if nothing is gained."""
        step, best = 1.0, self._at(work, w, here.intercept)
        if self.problem.is_quadratic:
            return best
        for n_halved in range(HALVINGS):
            is_flat = n_halved >= FLAT_HALVINGS and best.value <= here.value + tolerance
            if best.value < here.value or is_flat:
                break
            step *= 0.5
            best = self._at(work, here.w + step * (w - here.w), here.intercept)
        return best

    def _at(self, work: Working, w: Floats, start: float = 0.0) -> Here:
        """Evaluate the relaxed objective, with the best intercept and memberships."""
        problem, directions, intercept = self.problem, work.directions, 0.0
        eta = work.A @ w
        self.watch.spend(float(work.A.size) + TERM * len(eta))
        if problem.has_intercept:
            intercept = problem.best_intercept(eta, start)
            eta = eta + intercept
        losses, slope, bend = self._terms(eta)
        d = np.full(directions.prices.size, self.ridge)
        value = float(losses.sum()) + directions.paid
        value += perspective(directions, w[:, None], d, work.room)
        bend = np.maximum(bend, FLATTEST * bend.max(initial=1e-300))
        return Here(w, eta, value, intercept, slope, bend)

    def _terms(self, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Compute weighted losses, slopes and curvatures of the samples."""
        losses, slope, bend = self.problem.loss.terms(eta, self.problem.y)
        return self.weights * losses, self.weights * slope, self.weights * bend

    def _balanced(self, eta: Floats) -> Floats:
        """Shift the intercept until the slopes cancel: their sum is multiplied by `box`."""
        _, slopes, bends = self._terms(eta)
        left = exact_sum(slopes)
        for _ in range(BALANCE_STEPS):
            bend = float(bends.sum())
            there = eta - left / bend if bend > 0.0 else eta
            _, slopes, bends = self._terms(there)
            now = exact_sum(slopes)
            if not abs(now) < abs(left):
                break
            eta, left = there, now
        return eta

    def _prove(
        self, directions: Directions, room: int, here: Here, A: Floats | None = None
    ) -> Relaxed:
        """Derive the bound of the tangent at a predictor, less possible rounding.

        Slopes are accurate to a few roundings of |ℓ'| + |ℓ''|, like exp(η) − y, and of their
        exponents; b to `rounding` times its terms, less if the columns A are given. Other sums over
        samples are exact.
        """
        problem, columns = self.problem, directions.at
        size = problem.design.nbytes / 8.0 if A is None else float(A.size)
        self.watch.spend(size + EXACT_TERM * problem.n_samples)
        eta = self._balanced(here.eta) if problem.has_intercept else here.eta
        losses, slope, bend = self._terms(eta)
        scale = (np.abs(slope) + bend) * (1.0 + np.abs(eta))
        if A is not None:
            b, rounding = -(slope @ A), self.rounding / problem.design.rounding
        else:
            b, rounding = -problem.design.rmatvec(slope)[columns], self.rounding
            self.n_passes += 1
        base = exact_sum(losses) - exact_sum(slope * eta)
        base -= self.box * abs(exact_sum(slope))
        error = rounding * self.norms[columns] * float(np.linalg.norm(scale))
        far = np.abs(eta) + self.box
        allowance = 8.0 * EPSILON * float(np.abs(losses).sum() + scale @ far)
        d = np.full(directions.prices.size, self.ridge)
        tangent = Tangent(base, b[:, None], error[:, None], d, allowance)
        return tangent.prove(directions, room, here.value)

    def _violators(self, here: Directions, found: Relaxed, is_here: NDArray[np.bool_]) -> Ints:
        """Select the free units outside the working set with the largest scores."""
        least = 0.9 * found.last
        if here.price > 0.0:
            least = max(-0.05 * here.price, least)
        joins = np.flatnonzero(~is_here & (found.scores >= least))
        if joins.size <= ADDED:
            return joins
        return joins[np.argpartition(-found.scores[joins], ADDED)[:ADDED]]


def _steepest(G: Floats, directions: Directions) -> Floats:
    """Bound the largest eigenvalue of every unit's block."""
    if directions.is_single:
        return G.diagonal().copy()
    blocks = [G[i:j, i:j] for i, j in pairwise(directions.starts.tolist())]
    return np.array([float(np.linalg.norm(block)) for block in blocks])


def exact_sum(terms: Floats) -> float:
    """Sum exactly, rounding once; NaN on overflow."""
    try:
        return fsum(terms.tolist())
    except (OverflowError, ValueError):
        return np.nan


def intercept_box(problem: Problem, ceiling: float) -> float:
    """Find B such that no point below the ceiling has a best intercept outside ±B.

    Losses are nonnegative, so ½·ridge·‖v‖² is below the ceiling, and |x_i'v| ≤ r_i; as slopes
    increase, Σ_i ℓ'(x_i'v + B) ≥ Σ_i ℓ'(B − r_i): once that is positive, the best intercept is
    below B. Infinite if there is no such B.
    """
    design, squares = problem.design, np.zeros(problem.n_samples)
    for start in range(0, problem.n_features, design.chunk):
        part = np.arange(start, min(start + design.chunk, problem.n_features))
        squares += (design.columns(part) ** 2).sum(axis=1)
    reach = 1.01 * np.sqrt(squares * 2.0 * max(ceiling, 0.0) / problem.ridge)
    box, largest = 1.0, 0.0
    for sign in (1.0, -1.0):
        for _ in range(BOX_DOUBLINGS):
            slopes = problem.loss.gradient(sign * (box - reach), problem.y)
            if sign * float(problem.weights @ slopes) > 0.0:
                break
            box *= 2.0
        else:
            return np.inf
        largest = max(largest, box)
    return largest
