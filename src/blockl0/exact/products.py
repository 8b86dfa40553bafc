"""Bounds from products of columns: H = X'X + ridge, with as much curvature taken away as possible.

Columns are scaled to length 1, weights and ridge included. H − D must be positive semidefinite; a
Cholesky factorization that succeeds with a margin for its own rounding and that of H proves it. It
then holds for all descendants of a node, whose columns are some of the node's, so that only a
change of D is checked.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.exact.bounds import EPSILON, Node, Relaxed, Tangent, new_relaxation, relax_columns
from blockl0.exact.last_columns import ROOM, Finished, finish
from blockl0.exact.watch import DENSE, NEVER, LateError, Watch, cholesky, inverse_diagonal
from blockl0.problem.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

PRECISE = 1e-9
"""Share of a value to which a relaxation is solved at most."""
POWER_STEPS, START_SHARE, START_FALL = 12, 0.9, 0.8
"""Of the first curvature: steps that estimate its largest multiple, the share tried, the next."""
BARRIER = 0.5
"""Weight of the barrier that keeps H − D definite, in shares of the gap."""
FLOOR, FLOOR_SHARE = 1e-6, 0.1
"""Least share of a unit column's curvature that is taken away, and of their mean in a step down:
relaxations with less converge slowly."""
UNSOLVED = 0.05
"""Share of the gap by which a bound may fall in a step: more is a relaxation that does not end."""
FAR = 0.3
"""Gap, as a share of the objective, beyond which steps are joint ones: they prove more of a node,
but cost more, and leave a curvature that suits its descendants less."""
LEAST_LEFT, STEP_ROUNDS = 0.3, 6
"""Share of a curvature that a step leaves at least, and systems that find which are at it."""
RAISE_TRIALS = 8
"""Lengths of a step up that are tried."""
WIDE, NARROW = 1.0, 0.9
"""Columns, as a share of the rows, beyond which no more than the ridge is taken away; and down to
which nodes that began with more have to come."""


class Frame:
    """Some columns, their products, and what these may be wrong by.

    Attributes
    ----------
    columns : ndarray of int64
        Ascending.
    H, c : ndarray (q, q) and (q,)
        smooth(w) = ½v'Hv − c'v + constant for coefficients v of unit columns.
    ridge : ndarray (q,)
        The part of H's diagonal that is ridge: it can always be taken away.
    constant : float
    blur : float
        |H − true H| and |c − true c|/‖y‖ are at most this: m products of unit columns, each rounded
        a few times.

    Raises
    ------
    LateError
        Where the time is up before all products of all columns are made.
    """

    def __init__(self, problem: Problem, columns: Ints, watch: Watch = NEVER) -> None:
        m, n = problem.design.shape
        self.columns, self.n_samples = columns, m
        weights = problem.sample_weight
        watch.spend(0.5 * DENSE * m * float(columns.size) ** 2)
        design, is_whole = problem.design, columns.size == n
        gram = design.full_gram(weights, watch.check) if is_whole else design.gram(columns, weights)
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
        # a little less, so that rounding of the quotient takes no more than the ridge away
        self.lengths, self.ridge = length, (1.0 - 8.0 * EPSILON) * problem.ridge / squares
        self.constant = problem.smooth(np.zeros(n))
        self.blur = EPSILON * (m + 16.0) * problem.design.blur

    @property
    def nbytes(self) -> int:
        """Of the products."""
        return self.H.nbytes

    def positions(self, columns: Ints) -> Ints:
        """Where columns are in the frame."""
        return np.searchsorted(self.columns, columns)

    def margin(self, size: int) -> float:
        """What is taken from a diagonal before a factorization that is to prove definiteness.

        The norm of an error of at most `blur` in each entry is at most size·blur; a factorization
        that ends is that of a matrix within size·(size + 1)·ε of the one given, as its diagonal is
        at most one.
        """
        return size * (self.blur + (size + 2.0) * EPSILON)

    def are_definite(self, at: Ints, d: Floats, watch: Watch = NEVER) -> Floats | None:
        """The factor of H − D, with the margin, if that proves it to be positive definite."""
        A = self.H[np.ix_(at, at)]
        A.flat[:: at.size + 1] -= d + self.margin(at.size)
        return cholesky(A.T, watch)


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
        """The perspective relaxation on all columns of the node."""
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
        """For which there is time, as far as the last relaxation tells: any point has a bound."""
        left, each = self.watch.seconds_left, self._pace * n_columns
        if self.watch():
            return 0
        most = min(kernels.MOST_SWEEPS, self.watch.work_left / max(n_columns, 1) ** 2)
        return int(most if left >= each * most else left / each)

    def _prove(self, at: Ints, d: Floats, n_in: int, room: int, v: Floats, value: float) -> Relaxed:
        """The bound of the tangent at v, less what rounding may have added to it.

        Products are made anew, as those of the sweeps carry the rounding of every step. Entries of
        H, at most one, are known to `blur`, those of c to blur·‖y‖; so b = c − Hv + Dv is known to
        blur·(‖v‖₁ + ‖y‖), and what its own operations add.
        """
        chosen = np.flatnonzero(v)
        pulled = (v[chosen] @ self.frame.H[at[chosen]])[at]
        c = self.frame.c[at]
        b = c - pulled + d * v
        size = float(np.abs(v).sum())
        error = self.frame.blur * (size + self.length) + EPSILON * (chosen.size + 4.0) * size
        error = error + 4.0 * EPSILON * (np.abs(c) + d * np.abs(v))
        base = self.frame.constant + self.price * n_in - 0.5 * float(v @ (c - b))
        # of ½v'(H − D)v: that of b in every product, and of their sum
        allowance = 0.5 * float(np.abs(v) @ error) + self.frame.blur * self.frame.constant
        allowance += EPSILON * (chosen.size + 4.0) * float(np.abs(v) @ np.abs(c - b))
        tangent = Tangent(base, b, d, error, allowance)
        return tangent.prove(n_in, room, self.price, value)

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Fits of squares are as good as their rounding: nothing is to be proven of them."""
        return np.inf

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """All supports of a node with room for one or two more columns, in closed form."""
        room = self.budget - node.included.size
        if not 0 < room <= ROOM:
            return None
        frame, paid = self.frame, self.price * node.included.size + self.frame.constant
        inside, free = frame.positions(node.included), frame.positions(node.free)
        found = finish(
            frame.H, frame.c, inside, free, room, frame.blur, self.length, self.price, cutoff - paid
        )
        return None if found is None else found._replace(bound=found.bound + paid)

    # curvature -------------------------------------------------------------------------------

    def start(self, node: Node) -> bool:
        """The first curvature of a node, a multiple of 1/diag(inv(H)); False if hardly any.

        Raises
        ------
        LateError
            Where the time is up; the node has the ridge then.
        """
        at = self.frame.positions(np.concatenate([node.included, node.free]))
        least = self.frame.ridge[at]
        if least.min(initial=np.inf) > 0.0 and at.size > WIDE * self.frame.n_samples:
            # some combination of the columns is next to nothing: only the ridge can be taken
            node.d = least
            return True
        node.fresh = node.free.size
        node.d = least
        L = self.frame.are_definite(at, np.zeros(at.size), self.watch)
        if L is None:
            return bool(least.min(initial=np.inf) > 0.0)
        own = 1.0 / inverse_diagonal(L, self.watch)
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

    def _own_step(self, node: Node, d: Floats, L: Floats, mu: float) -> Floats:
        """A damped Newton step with the diagonal of the barrier's Hessian.

        The slopes are ½w_j²(1/z_j − 1) − μ·inv(H − D)_jj.
        """
        K = inverse_diagonal(L, self.watch)
        z, w = np.concatenate([np.ones(node.included.size), node.z]), node.w
        slope = np.where(z > 0.0, 0.5 * w * w * (1.0 / np.maximum(z, 1e-12) - 1.0), 0.0)
        return np.clip(0.5 * (slope / mu - K) / (K * K), -0.5 * d, 0.5 / K)

    def _joint_step(self, node: Node, relaxed: Relaxed, d: Floats, L: Floats, mu: float) -> Floats:
        """A Newton step of the relaxed value plus μ·log det(H − D), with LL' = H − D.

        With K = inv(H − D), slopes are ½w_j²(1/z_j − 1) − μK_jj. Second derivatives are those of
        the barrier, −μK_ij², and of the tangent at a fixed point, −w_j²(1/z_j − 1)(1 − z_j)/d_j,
        below which the relaxed value does not fall. Where w_j = 0 there is nothing to gain, and d_j
        falls as far as it may, which makes room for others.
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
        """One step up in d of the relaxed value plus a barrier, μ·log det(H − D); O(q³).

        Where the time is up the node stays as it is.
        """
        try:
            return self._sharpen(node, relaxed, cutoff)
        except LateError:
            return False

    def _sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        assert node.d is not None
        at = self.frame.positions(np.concatenate([node.included, node.free]))
        d, q = node.d, at.size
        if node.fresh == 0:
            return q <= NARROW * self.frame.n_samples and self.start(node)
        L = self.frame.are_definite(at, d, self.watch)
        if L is None:
            # the ridge alone is valid without a factorization, but there is no way up from it
            d = 0.98 * d
            L = self.frame.are_definite(at, d, self.watch)
            if L is None:
                return False
        gap = cutoff - relaxed.bound
        mu = BARRIER * gap / q
        # what is next to no curvature, 1e-300, divides; and factors are made of NaN without a word
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
    """How far d may fall: columns that are absent stay so while b²/2d is below the threshold."""
    ratio = np.full(d.size, LEAST_LEFT)
    top = relaxed.last + price
    if 0.0 < top < np.inf:
        n_in = node.included.size
        gains = np.where(node.w[n_in:] == 0.0, (relaxed.scores + price) / top, 0.0)
        ratio[n_in:] = np.clip(gains, LEAST_LEFT, 1.0)
    least = np.minimum(d, FLOOR_SHARE * float(d.mean()))
    return np.maximum(d * ratio, least) - d
