"""Bounds from products of columns: H = X'X + ridge, with as much curvature taken away as possible.

Columns are scaled to length 1, including weights and ridge, and groups have orthonormal bases, see
`exact.units`: the diagonal blocks of H are identities. H − D must be positive semidefinite, which
is proven by a Cholesky factorization that succeeds with a margin for its own rounding and that of
H. The proof covers all descendants of a node, whose units are a subset, so that only changes of D
are checked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.data.panels import cholesky, inverse_squares
from blockl0.errors import OutOfTime
from blockl0.exact.bounds import (
    EPSILON,
    Directions,
    Node,
    Relaxed,
    SparsePoint,
    Tangent,
    new_relaxation,
    relax_units,
)
from blockl0.exact.last_columns import ROOM, Finished, finish
from blockl0.exact.watch import DENSE, NEVER, Watch
from blockl0.problem.fits import Fits, make_fits
from blockl0.problem.problem import Problem
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

PRECISE = 1e-9
"""Relative accuracy of a relaxation, at most."""
POWER_STEPS, START_SHARE, START_FALL = 12, 0.9, 0.8
"""Initial curvature: power steps to estimate its largest multiple, the share tried, and its
decrease.
"""
BARRIER = 0.5
"""Weight of the barrier that keeps H − D definite, relative to the gap."""
FLOOR, FLOOR_SHARE = 1e-6, 0.1
"""Smallest share of a unit column's curvature taken away, and of their mean in a step down.

Relaxations with less converge slowly.
"""
UNSOLVED = 0.05
"""Share of the gap by which a bound may drop in a step; more means an unfinished relaxation."""
FAR = 0.3
"""Relative gap beyond which joint steps are used.

They prove more about a node, but cost more and leave a curvature less suited to its descendants.
"""
LEAST_LEFT, STEP_ROUNDS = 0.3, 6
"""Share of a curvature that a step keeps at least, and rounds to find which ones are there."""
RAISE_TRIALS = 8
"""Step lengths to try upwards."""
WIDE, NARROW = 1.0, 0.9
"""Columns per row beyond which only the ridge is taken away; and at which wide nodes may start."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The directions of some units, their products, and error bounds.

    Attributes
    ----------
    units : ndarray of int64
        Ascending.
    directions : Directions
        Of all these units, in this order.
    H, c : ndarray (N, N) and (N, C)
        smooth(w) = ½v'Hv − c'v + constant for coefficients v of the directions.
    ridge : ndarray (units,)
        The curvature that can always be taken away, as the ridge has it.
    names : ndarray of int64 (N,)
        The columns, where each is a direction; else numbers.
    lengths : ndarray (N,)
        Of these columns.
    constant : float
    rounding : float
        Bound on |H − true H| and |c − true c|/‖y‖: m products of unit columns, each rounded a few
        times.
    n_samples : int
    """

    units: Ints
    directions: Directions
    H: Floats
    c: Floats
    ridge: Floats
    names: Ints
    lengths: Floats
    constant: float
    rounding: float
    n_samples: int

    @property
    def nbytes(self) -> int:
        """Bytes of the products."""
        return self.H.nbytes

    def positions(self, units: Ints) -> Ints:
        """Return the positions of units in the frame."""
        return np.searchsorted(self.units, units)

    def of(self, node: Node) -> tuple[Ints, Directions]:
        """Return the positions and the directions of a node's units."""
        places = self.positions(node.units)
        return places, self.directions.part(places, node.included.size)

    def margin(self, size: int) -> float:
        """Compute the margin on a diagonal for a factorization to prove definiteness.

        The norm of an error of at most `rounding` in each entry is at most size·rounding; a
        factorization that succeeds is that of a matrix within size·(size + 1)·ε of the given one,
        whose diagonal is at most one.
        """
        return size * (self.rounding + (size + 2.0) * EPSILON)

    def are_definite(self, at: Ints, d: Floats, watch: Watch = NEVER) -> Floats | None:
        """Factorize H − D with the margin, for d (N,); None unless that proves it definite."""
        watch.spend(DENSE * at.size**3 / 6.0)
        A = self.H[np.ix_(at, at)]
        A.flat[:: at.size + 1] -= d + self.margin(at.size)
        return cholesky(A.T)


def frame_of_columns(problem: Problem, columns: Ints, watch: Watch = NEVER) -> Frame:
    """Form the products of columns, ascending, which are the units.

    Raises
    ------
    OutOfTime
        If time is up before all products of all columns are made.
    """
    (m, n), size = problem.design.shape, columns.size
    weights, design, is_whole = problem.sample_weight, problem.design, columns.size == n
    watch.spend(0.5 * DENSE * m * float(size) ** 2)
    gram = design.full_gram(weights) if is_whole else design.gram(columns, weights)
    H = np.array(gram, order="C")
    H.flat[:: size + 1] += problem.ridge
    squares = H.diagonal().copy()
    squares[squares == 0.0] = 1.0
    length = np.sqrt(squares)
    H /= length[:, None]
    H /= length
    np.fill_diagonal(H, 1.0)
    target = problem.y if weights is None else (weights * problem.y.T).T
    many = target.ndim == 2
    c = design.cross(target, slice(None)).T if many else design.rmatvec(target)[:, None]
    rounding = EPSILON * (m + 16.0) * design.rounding
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    if problem.bounds is not None:
        # wider by as much as rounding may have narrowed them
        low, high = (side[columns] * length * (1.0 + rounding) for side in problem.bounds)
    at, starts = np.arange(size), np.arange(size + 1)
    # slightly less ridge, so that rounding of the quotient never takes away more
    return Frame(
        columns, Directions.of(problem, columns, at, starts, low, high), H,
        np.ascontiguousarray(c[columns] / length[:, None]),
        (1.0 - 8.0 * EPSILON) * problem.ridge / squares, columns, length,
        problem.smooth(problem.zero()), rounding, m,
    )  # fmt: skip


class Step(NamedTuple):
    """Where a step in d starts: the curvature, LL' = H − D, the barrier's weight, and the point.

    `sizes` are the norms of its units' coefficients and z their memberships.
    """

    here: Directions
    d: Floats
    L: Floats
    mu: float
    sizes: Floats
    z: Floats


class ProductBounds:
    """Bounds of the nodes of one frame, for the squared loss."""

    def __init__(self, problem: Problem, frame: Frame, watch: Watch = NEVER) -> None:
        self.problem, self.frame, self.watch = problem, frame, watch
        self.budget, self.fits = problem.sparsity.budget, make_fits(problem)
        self.length = float(np.sqrt(2.0 * frame.constant))
        self.n_sweeps, self._pace = 0, 0.0

    # relaxation ------------------------------------------------------------------------------

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Solve the perspective relaxation on all units of the node."""
        assert node.d is not None
        return self._relax(node, node.d, cutoff, share, 0.0)

    def _point(self, node: Node, here: Directions) -> Floats:
        """Return the node's point, (N, C)."""
        names, n_outputs = self.frame.names[here.at], self.frame.c.shape[1]
        return node.point.dense(self.problem.n_features, n_outputs)[names]

    def _relax(
        self, node: Node, d: Floats, cutoff: float, share: float, tolerance: float
    ) -> Relaxed:
        frame, here = self.frame, self.frame.of(node)[1]
        room, paid, size = self.budget - here.n_in, here.paid + frame.constant, here.at.size
        # diagonal blocks are identities
        relaxation = new_relaxation(
            frame.H, here, frame.c[here.at], d, self._point(node, here), np.ones(d.size)
        )
        started = time.perf_counter()
        theta, value, _, n_sweeps = relax_units(
            relaxation, room, here.price, node.theta,
            cutoff - paid, max(tolerance, PRECISE * abs(paid)), share, self._sweeps_left(size),
        )  # fmt: skip
        self.watch.spend((n_sweeps + 1.0) * float(size) ** 2)
        if n_sweeps > 0:
            self._pace = (time.perf_counter() - started) / (n_sweeps * size)
        self.n_sweeps += n_sweeps
        v = relaxation.rows[kernels.V, :, :size].T
        moved = np.flatnonzero(v.any(axis=1))
        node.point, node.theta = SparsePoint(frame.names[here.at[moved]], v[moved]), theta
        node.size = here.norms(v)[here.n_in :]
        node.z = here.memberships(v, d, theta)[here.n_in :]
        return self._prove(here, d, room, v, value + paid)

    def _sweeps_left(self, n_directions: int) -> int:
        """Estimate the sweeps that time allows: any point has a bound."""
        left, each = self.watch.seconds_left, self._pace * n_directions
        if self.watch():
            return 0
        most = min(kernels.MOST_SWEEPS, self.watch.work_left / max(n_directions, 1) ** 2)
        return int(most if left >= each * most else left / each)

    def _prove(self, here: Directions, d: Floats, room: int, v: Floats, value: float) -> Relaxed:
        """Derive the bound of the tangent at v, less possible rounding.

        Products are recomputed, as those of the sweeps carry the rounding of every step. Entries of
        H, at most one, are accurate to `rounding`, those of c to rounding·‖y‖; so b = c − Hv + Dv
        is accurate to rounding·(‖v‖₁ + ‖y‖) in every response, plus its own operations.
        """
        frame = self.frame
        chosen, own = np.flatnonzero(v.any(axis=1)), here.spread(d)
        pulled = (v[chosen].T @ frame.H[here.at[chosen]]).T[here.at]
        c = frame.c[here.at]
        b = c - pulled + own * v
        size, n_terms = np.abs(v).sum(axis=0), chosen.size + 4.0
        error = frame.rounding * (size + self.length) + EPSILON * n_terms * size
        error = error + 4.0 * EPSILON * (np.abs(c) + own * np.abs(v))
        base = frame.constant - 0.5 * float(np.vdot(v, c - b))
        # error of ½v'(H − D)v: that of b in every product, and of their sum
        allowance = 0.5 * float(np.vdot(np.abs(v), error)) + frame.rounding * frame.constant
        allowance += EPSILON * n_terms * v.shape[1] * float(np.vdot(np.abs(v), np.abs(c - b)))
        return Tangent(base, b, error, d, allowance).prove(here, room, value)

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Bound a support by its fit, which is accurate unless it dropped one of several columns.

        Of columns without bounds each such choice is a support of its own.
        """
        return least_squares_bound(self.problem, self.fits, support, w, cutoff)

    def coefficients(self, node: Node) -> tuple[Ints, Floats]:
        """Return the node's point: columns with a coefficient, and these."""
        at, values = node.point
        return at, values / self.frame.lengths[self.frame.positions(at), None]

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """Bound all supports of a node with room for one or two more columns, in closed form."""
        frame, (places, here) = self.frame, self.frame.of(node)
        room, n_in = self.budget - here.n_in, here.n_in
        is_plain = here.is_single and frame.c.shape[1] == 1
        # bounds on coefficients only raise what is found without them
        if not 0 < room <= ROOM or not is_plain or (here.prices != here.price).any():
            return None
        paid = here.paid + frame.constant
        found = finish(
            frame.H, frame.c[:, 0], places[:n_in], places[n_in:], room, frame.rounding,
            self.length, here.price, cutoff - paid,
        )  # fmt: skip
        return None if found is None else found._replace(bound=found.bound + paid)

    # curvature -------------------------------------------------------------------------------

    def start(self, node: Node) -> bool:
        """Set the initial curvature, a multiple of 1/diag(inv(H)); False if it is negligible.

        Raises
        ------
        OutOfTime
            If time is up; the node then has the ridge.
        """
        frame, (places, here) = self.frame, self.frame.of(node)
        at, least = here.at, frame.ridge[places]
        node.d, is_bent = least, bool(least.min(initial=np.inf) > 0.0)
        if at.size == 0:
            # whatever depends on others alone has no direction of its own
            node.d = np.ones(places.size)
            return True
        if is_bent and at.size > WIDE * frame.n_samples:
            # some combination of the columns nearly vanishes: only the ridge can be taken away
            return True
        node.fresh = node.free.size
        L = frame.are_definite(at, np.zeros(at.size), self.watch)
        if L is None:
            return is_bent
        traces = here.sums(self._inverse_squares(L))
        own = 1.0 / np.where(traces > 0.0, traces, 1.0)
        root = np.sqrt(here.spread(own)[:, 0])
        x, largest = np.ones(at.size), 1.0
        for _ in range(POWER_STEPS):
            x /= np.linalg.norm(x)
            x = root * _lapack.dpotrs(L, root * x, lower=1)[0]
            largest = float(np.linalg.norm(x))
        share = START_SHARE / largest
        while share > FLOOR:
            d = share * own
            if frame.are_definite(at, here.spread(d)[:, 0], self.watch) is not None:
                node.d = d if d.sum() > least.sum() else least
                return True
            share *= START_FALL
        return is_bent

    def _inverse_squares(self, L: Floats) -> Floats:
        self.watch.spend(DENSE * len(L) ** 3 / 3.0)
        return inverse_squares(L)

    def _own_step(self, step: Step) -> Floats:
        """Compute a damped Newton step with the diagonal of the barrier's Hessian.

        With K = inv(H − D) the slopes are ½‖w_u‖²(1/z_u − 1) − μ tr K_uu.
        """
        d, mu = step.d, step.mu
        K = step.here.sums(self._inverse_squares(step.L))
        K = np.where(K > 0.0, K, 1.0)
        w, z = step.sizes, step.z
        slope = np.where(z > 0.0, 0.5 * w * w * (1.0 / np.maximum(z, 1e-12) - 1.0), 0.0)
        return np.clip(0.5 * (slope / mu - K) / (K * K), -0.5 * d, 0.5 / K)

    def _joint_step(self, step: Step, relaxed: Relaxed) -> Floats:
        """Compute a Newton step of the relaxed value plus μ·log det(H − D), with LL' = H − D.

        Second derivatives are those of the barrier, −μ‖K_ut‖², and of the tangent at a fixed point,
        −‖w_u‖²(1/z_u − 1)(1 − z_u)/d_u, a lower bound on the relaxed value. Where w_u = 0 there is
        nothing to gain, and d_u drops as far as it may, which makes room for others.
        """
        here, d, mu = step.here, step.d, step.mu
        self.watch.spend(DENSE * float(here.at.size) ** 3)
        K = _lapack.dpotri(step.L, lower=1)[0]
        w, z = step.sizes, step.z
        is_up = (w != 0.0) & (z > 0.0)
        shares = np.where(is_up, z, 1.0)
        gain = 0.5 * w * w * (1.0 / shares - 1.0)
        slope = gain - mu * here.sums(K.diagonal())
        square = np.tril(K) ** 2
        square += np.tril(square, -1).T
        if not here.is_single:
            square = here.blocks(square)
        least = _lowered(step, relaxed)
        change = least.copy()
        for _ in range(STEP_ROUNDS):
            up = np.flatnonzero(is_up)
            if up.size == 0:
                break
            A = mu * square[np.ix_(up, up)]
            A.flat[:: up.size + 1] += 2.0 * gain[up] * (1.0 - shares[up]) / d[up]
            side = (slope - mu * (square @ np.where(is_up, 0.0, least)))[up]
            _, found, info = _lapack.dposv(A, side, lower=1, overwrite_a=1)
            if info != 0:
                break
            change[up] = np.maximum(found, least[up])
            falls = found < least[up]
            if not falls.any():
                break
            is_up[up[falls]] = False
        return change

    def sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        """Take one step up in d on the relaxed value plus a barrier, μ·log det(H − D); O(N³).

        If time is up the node stays unchanged.
        """
        try:
            return self._sharpen(node, relaxed, cutoff)
        except OutOfTime:
            return False

    def _sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        assert node.d is not None
        frame, here, d = self.frame, self.frame.of(node)[1], node.d
        at, gap = here.at, cutoff - relaxed.bound
        if at.size == 0:
            return False
        if node.fresh == 0:
            return at.size <= NARROW * frame.n_samples and self.start(node)
        L = frame.are_definite(at, here.spread(d)[:, 0], self.watch)
        if L is None:
            # the ridge is valid without a factorization, but no step leads up from it
            d = 0.98 * d
            L = frame.are_definite(at, here.spread(d)[:, 0], self.watch)
            if L is None:
                return False
        mu = BARRIER * gap / d.size
        z = np.concatenate([np.ones(here.n_in), node.z])
        step = Step(here, d, L, mu, here.norms(self._point(node, here)), z)
        # tiny curvatures of 1e-300 are divisors, and factorizations of NaN succeed silently
        with np.errstate(over="ignore", invalid="ignore"):
            is_far = gap > FAR * abs(cutoff)
            change = self._joint_step(step, relaxed) if is_far else self._own_step(step)
        if not np.isfinite(change).all():
            return False
        return self._climb(node, relaxed, step, change, gap)

    def _climb(self, node: Node, relaxed: Relaxed, step: Step, change: Floats, gap: float) -> bool:
        """Take the largest share of a change of d that raises value and barrier; False if none."""
        here, d, mu = step.here, step.d, step.mu
        before, length = relaxed.value + mu * _log_determinant(step.L), 1.0
        for _ in range(RAISE_TRIALS):
            there = np.maximum(d + length * change, np.minimum(FLOOR, d))
            L = self.frame.are_definite(here.at, here.spread(there)[:, 0], self.watch)
            if L is None:
                length *= 0.5
                continue
            trial = replace(node)
            found = self._relax(trial, there, np.inf, 0.0, 0.02 * gap)
            is_solved = found.bound > relaxed.bound - UNSOLVED * gap
            if is_solved and found.value + mu * _log_determinant(L) > before:
                node.d, node.z, node.size = there, trial.z, trial.size
                node.point, node.theta = trial.point, trial.theta
                return True
            length *= 0.4
        return False


def _log_determinant(L: Floats) -> float:
    return 2.0 * float(np.log(L.diagonal()).sum())


def _lowered(step: Step, relaxed: Relaxed) -> Floats:
    """Compute how far d may drop: absent units stay so while b²/2d is below the threshold."""
    here, d = step.here, step.d
    prices = here.prices[here.n_in :]
    ratio, top = np.full(d.size, LEAST_LEFT), relaxed.last + prices
    if 0.0 < relaxed.last + here.price < np.inf:
        is_absent = step.sizes[here.n_in :] == 0.0
        gains = np.where(is_absent, (relaxed.scores + prices) / top, 0.0)
        ratio[here.n_in :] = np.clip(gains, LEAST_LEFT, 1.0)
    least = np.minimum(d, FLOOR_SHARE * float(d.mean()))
    return np.maximum(d * ratio, least) - d


def least_squares_bound(
    problem: Problem, fits: Fits, support: Ints, w: Floats, cutoff: float
) -> float:
    """Return infinity if a fit w of squares is exact, else a lower bound on its support of units.

    It is exact unless it dropped one of several nearly dependent columns; of columns without bounds
    each such choice is a separate support.
    """
    columns = problem.units.columns(np.sort(support))
    if problem.units is COLUMNS and problem.bounds is None:
        return np.inf
    doubt = fits.doubt(columns, w)
    if doubt == 0.0 or problem.objective(w) - doubt >= cutoff:
        return np.inf
    least = fits.least_on(columns) + problem.cost(support)
    rounding = EPSILON * (problem.n_samples + problem.n_features + 16.0) * problem.design.rounding
    return least - 2.0 * rounding * problem.smooth_at_zero
