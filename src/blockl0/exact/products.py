"""Bounds from products of columns: H = X'X + ridge, with as much curvature taken away as possible.

Columns are scaled to length 1, including weights and ridge. H − D must be positive semidefinite,
which is proven by a Cholesky factorization that succeeds with a margin for its own rounding and
that of H. The proof covers all descendants of a node, whose columns are a subset, so that only
changes of D are checked.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.data.panels import cholesky, inverse_squares
from blockl0.errors import OutOfTime
from blockl0.exact.bounds import EPSILON, Node, Relaxed, Tangent, new_relaxation, relax_columns
from blockl0.exact.last_columns import ROOM, Finished, finish
from blockl0.exact.watch import DENSE, NEVER, Watch
from blockl0.problem.problem import Problem

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


class Frame:
    """Some columns, their products, and error bounds.

    Attributes
    ----------
    columns : ndarray of int64
        Ascending.
    H, c : ndarray (q, q) and (q,)
        smooth(w) = ½v'Hv − c'v + constant for coefficients v of unit columns.
    ridge : ndarray (q,)
        The ridge in H's diagonal: it can always be taken away.
    constant : float
    rounding : float
        Bound on |H − true H| and |c − true c|/‖y‖: m products of unit columns, each rounded a few
        times.

    Raises
    ------
    OutOfTime
        If time is up before all products of all columns are made.
    """

    def __init__(self, problem: Problem, columns: Ints, watch: Watch = NEVER) -> None:
        m, n = problem.design.shape
        self.columns, self.n_samples = columns, m
        weights = problem.sample_weight
        watch.spend(0.5 * DENSE * m * float(columns.size) ** 2)
        design, is_whole = problem.design, columns.size == n
        gram = design.full_gram(weights) if is_whole else design.gram(columns, weights)
        H = np.array(gram, order="C")
        H.flat[:: columns.size + 1] += problem.ridge
        squares = H.diagonal().copy()
        squares[squares == 0.0] = 1.0
        length = np.sqrt(squares)
        H /= length[:, None]
        H /= length
        np.fill_diagonal(H, 1.0)
        target = problem.y if weights is None else weights * problem.y
        self.H, self.c = H, problem.design.rmatvec(target)[columns] / length
        # slightly less, so that rounding of the quotient never takes away more than the ridge
        self.lengths, self.ridge = length, (1.0 - 8.0 * EPSILON) * problem.ridge / squares
        self.constant = problem.smooth(np.zeros(n))
        self.rounding = EPSILON * (m + 16.0) * problem.design.rounding

    @property
    def nbytes(self) -> int:
        """Bytes of the products."""
        return self.H.nbytes

    def positions(self, columns: Ints) -> Ints:
        """Return the positions of columns in the frame."""
        return np.searchsorted(self.columns, columns)

    def margin(self, size: int) -> float:
        """Compute the margin on a diagonal for a factorization to prove definiteness.

        The norm of an error of at most `rounding` in each entry is at most size·rounding; a
        factorization that succeeds is that of a matrix within size·(size + 1)·ε of the given one,
        whose diagonal is at most one.
        """
        return size * (self.rounding + (size + 2.0) * EPSILON)

    def are_definite(self, at: Ints, d: Floats, watch: Watch = NEVER) -> Floats | None:
        """Factorize H − D with the margin; None unless that proves it positive definite."""
        watch.spend(DENSE * at.size**3 / 6.0)
        A = self.H[np.ix_(at, at)]
        A.flat[:: at.size + 1] -= d + self.margin(at.size)
        return cholesky(A.T)


class ProductBounds:
    """Bounds of the nodes of one frame, for the squared loss."""

    def __init__(
        self,
        frame: Frame,
        price: float,
        budget: int,
        watch: Watch = NEVER,
    ) -> None:
        self.frame, self.price, self.budget, self.watch = frame, price, budget, watch
        self.length = float(np.sqrt(2.0 * frame.constant))
        self.n_sweeps, self._pace = 0, 0.0

    # relaxation ------------------------------------------------------------------------------

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Solve the perspective relaxation on all columns of the node."""
        assert node.d is not None
        return self._relax(node, node.d, cutoff, share, 0.0)

    def _relax(
        self, node: Node, d: Floats, cutoff: float, share: float, tolerance: float
    ) -> Relaxed:
        at = self.frame.positions(np.concatenate([node.included, node.free]))
        n_in = node.included.size
        room, paid = self.budget - n_in, self.price * n_in + self.frame.constant
        relaxation = new_relaxation(self.frame.H, at, self.frame.c[at], d, n_in, node.w)
        started = time.perf_counter()
        theta, value, _, n_sweeps = relax_columns(
            relaxation, room, self.price, node.theta,
            cutoff - paid, max(tolerance, PRECISE * abs(paid)), share, self._sweeps_left(at.size),
        )  # fmt: skip
        self.watch.spend((n_sweeps + 1.0) * float(at.size) ** 2)
        if n_sweeps > 0:
            self._pace = (time.perf_counter() - started) / (n_sweeps * at.size)
        v = relaxation.rows[kernels.V].copy()
        self.n_sweeps += n_sweeps
        node.w, node.theta = v, theta
        size = np.abs(v[n_in:]) * np.sqrt(d[n_in:])
        node.z = np.minimum(size / theta, 1.0) if theta > 0.0 else (size > 0.0) * 1.0
        return self._prove(at, d, n_in, room, v, value + paid)

    def _sweeps_left(self, n_columns: int) -> int:
        """Estimate the sweeps that time allows: any point has a bound."""
        left, each = self.watch.seconds_left, self._pace * n_columns
        if self.watch():
            return 0
        most = min(kernels.MOST_SWEEPS, self.watch.work_left / max(n_columns, 1) ** 2)
        return int(most if left >= each * most else left / each)

    def _prove(self, at: Ints, d: Floats, n_in: int, room: int, v: Floats, value: float) -> Relaxed:
        """Derive the bound of the tangent at v, less possible rounding.

        Products are recomputed, as those of the sweeps carry the rounding of every step. Entries of
        H, at most one, are accurate to `rounding`, those of c to rounding·‖y‖; so b = c − Hv + Dv
        is accurate to rounding·(‖v‖₁ + ‖y‖), plus its own operations.
        """
        chosen = np.flatnonzero(v)
        pulled = (v[chosen] @ self.frame.H[at[chosen]])[at]
        c = self.frame.c[at]
        b = c - pulled + d * v
        size = float(np.abs(v).sum())
        error = self.frame.rounding * (size + self.length) + EPSILON * (chosen.size + 4.0) * size
        error = error + 4.0 * EPSILON * (np.abs(c) + d * np.abs(v))
        base = self.frame.constant + self.price * n_in - 0.5 * float(v @ (c - b))
        # error of ½v'(H − D)v: that of b in every product, and of their sum
        allowance = 0.5 * float(np.abs(v) @ error) + self.frame.rounding * self.frame.constant
        allowance += EPSILON * (chosen.size + 4.0) * float(np.abs(v) @ np.abs(c - b))
        tangent = Tangent(base, b, d, error, allowance)
        return tangent.prove(n_in, room, self.price, value)

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Return infinity: fits of squares are accurate up to rounding."""
        return np.inf

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """Bound all supports of a node with room for one or two more columns, in closed form."""
        room = self.budget - node.included.size
        if not 0 < room <= ROOM:
            return None
        frame, paid = self.frame, self.price * node.included.size + self.frame.constant
        inside, free = frame.positions(node.included), frame.positions(node.free)
        found = finish(
            frame.H,
            frame.c,
            inside,
            free,
            room,
            frame.rounding,
            self.length,
            self.price,
            cutoff - paid,
        )
        return None if found is None else found._replace(bound=found.bound + paid)

    # curvature -------------------------------------------------------------------------------

    def start(self, node: Node) -> bool:
        """Set the initial curvature, a multiple of 1/diag(inv(H)); False if it is negligible.

        Raises
        ------
        OutOfTime
            If time is up; the node then has the ridge.
        """
        at = self.frame.positions(np.concatenate([node.included, node.free]))
        least = self.frame.ridge[at]
        if least.min(initial=np.inf) > 0.0 and at.size > WIDE * self.frame.n_samples:
            # some combination of the columns nearly vanishes: only the ridge can be taken away
            node.d = least
            return True
        node.fresh = node.free.size
        node.d = least
        L = self.frame.are_definite(at, np.zeros(at.size), self.watch)
        if L is None:
            return bool(least.min(initial=np.inf) > 0.0)
        own = 1.0 / self._inverse_squares(L)
        root = np.sqrt(own)
        x, largest = np.ones(at.size), 1.0
        for _ in range(POWER_STEPS):
            x /= np.linalg.norm(x)
            x = root * _lapack.dpotrs(L, root * x, lower=1)[0]
            largest = float(np.linalg.norm(x))
        share = START_SHARE / largest
        while share > FLOOR:
            d = share * own
            if self.frame.are_definite(at, d, self.watch) is not None:
                node.d = d if d.sum() > least.sum() else least
                return True
            share *= START_FALL
        return bool(least.min() > 0.0)

    def _inverse_squares(self, L: Floats) -> Floats:
        self.watch.spend(DENSE * len(L) ** 3 / 3.0)
        return inverse_squares(L)

    def _own_step(self, node: Node, d: Floats, L: Floats, mu: float) -> Floats:
        """Compute a damped Newton step with the diagonal of the barrier's Hessian.

        The slopes are ½w_j²(1/z_j − 1) − μ·inv(H − D)_jj.
        """
        K = self._inverse_squares(L)
        z, w = np.concatenate([np.ones(node.included.size), node.z]), node.w
        slope = np.where(z > 0.0, 0.5 * w * w * (1.0 / np.maximum(z, 1e-12) - 1.0), 0.0)
        return np.clip(0.5 * (slope / mu - K) / (K * K), -0.5 * d, 0.5 / K)

    def _joint_step(self, node: Node, relaxed: Relaxed, d: Floats, L: Floats, mu: float) -> Floats:
        """Compute a Newton step of the relaxed value plus μ·log det(H − D), with LL' = H − D.

        With K = inv(H − D), slopes are ½w_j²(1/z_j − 1) − μK_jj. Second derivatives are those of
        the barrier, −μK_ij², and of the tangent at a fixed point, −w_j²(1/z_j − 1)(1 − z_j)/d_j, a
        lower bound on the relaxed value. Where w_j = 0 there is nothing to gain, and d_j drops as
        far as it may, which makes room for others.
        """
        self.watch.spend(DENSE * float(d.size) ** 3)
        K = _lapack.dpotri(L, lower=1)[0]
        w, z = node.w, np.concatenate([np.ones(node.included.size), node.z])
        is_up = (w != 0.0) & (z > 0.0)
        shares = np.where(is_up, z, 1.0)
        gain = 0.5 * w * w * (1.0 / shares - 1.0)
        slope = gain - mu * K.diagonal()
        square = np.tril(K) ** 2
        square += np.tril(square, -1).T
        least = _lowered(node, relaxed, d, self.price)
        step = least.copy()
        for _ in range(STEP_ROUNDS):
            here = np.flatnonzero(is_up)
            if here.size == 0:
                break
            A = mu * square[np.ix_(here, here)]
            A.flat[:: here.size + 1] += 2.0 * gain[here] * (1.0 - shares[here]) / d[here]
            side = (slope - mu * (square @ np.where(is_up, 0.0, least)))[here]
            _, found, info = _lapack.dposv(A, side, lower=1, overwrite_a=1)
            if info != 0:
                break
            step[here] = np.maximum(found, least[here])
            falls = found < least[here]
            if not falls.any():
                break
            is_up[here[falls]] = False
        return step

    def sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        """Take one step up in d on the relaxed value plus a barrier, μ·log det(H − D); O(q³).

        If time is up the node stays unchanged.
        """
        try:
            return self._sharpen(node, relaxed, cutoff)
        except OutOfTime:
            return False

    def _sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        assert node.d is not None
        at = self.frame.positions(np.concatenate([node.included, node.free]))
        d, q = node.d, at.size
        if node.fresh == 0:
            return q <= NARROW * self.frame.n_samples and self.start(node)
        L = self.frame.are_definite(at, d, self.watch)
        if L is None:
            # the ridge is valid without a factorization, but no step leads up from it
            d = 0.98 * d
            L = self.frame.are_definite(at, d, self.watch)
            if L is None:
                return False
        gap = cutoff - relaxed.bound
        mu = BARRIER * gap / q
        # tiny curvatures of 1e-300 are divisors, and factorizations of NaN succeed silently
        with np.errstate(over="ignore", invalid="ignore"):
            if gap > FAR * abs(cutoff):
                step = self._joint_step(node, relaxed, d, L, mu)
            else:
                step = self._own_step(node, d, L, mu)
        if not np.isfinite(step).all():
            return False
        before = relaxed.value + 2.0 * mu * float(np.log(L.diagonal()).sum())
        length = 1.0
        for _ in range(RAISE_TRIALS):
            there = np.maximum(d + length * step, np.minimum(FLOOR, d))
            L = self.frame.are_definite(at, there, self.watch)
            if L is None:
                length *= 0.5
                continue
            trial = Node(node.included, node.free, node.bound, node.z, w=node.w, theta=node.theta)
            found = self._relax(trial, there, np.inf, 0.0, 0.02 * gap)
            is_solved = found.bound > relaxed.bound - UNSOLVED * gap
            if is_solved and found.value + 2.0 * mu * float(np.log(L.diagonal()).sum()) > before:
                node.d, node.z, node.w, node.theta = there, trial.z, trial.w, trial.theta
                return True
            length *= 0.4
        return False


def _lowered(node: Node, relaxed: Relaxed, d: Floats, price: float) -> Floats:
    """Compute how far d may drop: absent columns stay so while b²/2d is below the threshold."""
    ratio = np.full(d.size, LEAST_LEFT)
    top = relaxed.last + price
    if 0.0 < top < np.inf:
        n_in = node.included.size
        gains = np.where(node.w[n_in:] == 0.0, (relaxed.scores + price) / top, 0.0)
        ratio[n_in:] = np.clip(gains, LEAST_LEFT, 1.0)
    least = np.minimum(d, FLOOR_SHARE * float(d.mean()))
    return np.maximum(d * ratio, least) - d
