"""Bounds for units of several columns, several responses and bounded coefficients, squared loss.

Every unit J has orthonormal columns Z_J that span its own (including weights and ridge), so that
the loss is ½‖y − Σ Z_J v_J‖² and the diagonal blocks of H = Z'Z are identities. A number t_J for
each unit, with H − diag(t) positive semidefinite, replaces the curvature of a column: the tangent
of the remainder is a bound in which an entering unit counts ½‖b_J‖²/t_J less its price. A unit of
one column within bounds counts sup b'v − ½t‖v‖² over these, which is less.

Directions shared with other units, such as the constant that the levels of every category add up
to, have no such curvature. They are projected out of all columns and y: the bound is that of a
problem in which they are free, and so no higher.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from blockl0 import kernels
from blockl0.data.panels import cholesky, inverse, products
from blockl0.exact.bounds import EPSILON, Node, Relaxed, Tangent
from blockl0.exact.last_columns import Finished
from blockl0.exact.unit_levels import best_level, effective, first_level
from blockl0.exact.watch import DENSE, NEVER, Watch
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import DEPENDENT, PRECISION, ROUNDED, orthonormal, project_away
from blockl0.problem.problem import Problem
from blockl0.run import look
from blockl0.units import COLUMNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_lapack: Any = lapack

MOST = 6000
"""Directions of all units together for which products are formed."""
FLAT, MOST_SHARED, ROUNDS = 1e-9, 0.2, 6
"""Curvature below which a direction is flat; share of the rows that flat directions may take up;
and rounds of searching for them.
"""
EIGENVALUES, LEVEL = 1.0, 5e5
"""Work of all eigenvalues of a matrix, in cubes of its size; and of a level beside its sweeps."""
NEARLY_ALL = 1.0 - 1e-6
"""Share of a unit's curvature taken away at most: descent needs some of it."""
START_SHARE, START_FALL, TRIALS = 0.95, 0.8, 40
"""First share of the largest multiple of the first t, its decrease, and number of trials."""
SMALL = 300
"""Directions up to which the largest eigenvalue is found with all others."""
SWEEPS = 6
"""Passes at one level."""
BARRIER = 0.5
"""Weight of the barrier that keeps H − D definite, relative to the gap."""


class UnitBounds:
    """Bounds of all nodes of a problem, whose columns are units.

    Parameters
    ----------
    problem : Problem
        With the squared loss.
    watch : Watch

    Attributes
    ----------
    t : ndarray (units,)
        Curvature taken away at the root; zero for none.
    reason : str or None
        Why there is no bound.
    """

    def __init__(self, problem: Problem, watch: Watch = NEVER) -> None:
        self.problem, self.watch, self._fits = problem, watch, make_fits(problem)
        price, self.budget = problem.sparsity
        costs = np.ones(problem.n_units) if problem.costs is None else problem.costs
        self.prices = price * costs
        self.reason: str | None = None
        self.t: Floats = np.zeros(problem.n_units)
        self._set_up()

    # -- the directions ----------------------------------------------------------------------------

    def _set_up(self) -> None:
        """Compute orthonormal columns of all units, their products, and the first curvature."""
        problem = self.problem
        n = problem.n_features
        if n > MOST:
            self.reason = f"products of {n} columns do not fit; the most is {MOST}"
            return
        # products, and their eigenvalues
        self.watch.spend((DENSE * problem.n_samples + EIGENVALUES * n) * float(n) ** 2)
        self.watch.check()
        A, b, scale = problem.unit_columns(np.arange(n))
        look()
        b = b if b.ndim == 2 else b[:, None]
        self.length = float(np.linalg.norm(b))
        parts = [A[:, problem.units.members(unit)] for unit in range(problem.n_units)]
        for i in range(ROUNDS):
            # whatever is not rounding of the data may be used, with large coefficients
            nearest = ROUNDED if i else 2.0 * PRECISION
            parts = [orthonormal_of(part, nearest) for part in parts]
            Z, shared = np.hstack(parts), None
            look()
            if Z.shape[1] == 0:
                self.reason = "no column is left beside those that depend on others"
                return
            H = products(Z)
            null = _null_space(H)
            if null.shape[1] == 0:
                break
            shared = _shared(parts, null)
            if shared.shape[1] > MOST_SHARED * len(A):
                self.reason = "columns of different groups depend on each other, without a `ridge`"
                return
            parts = [project_away(shared, part)[0] for part in parts]
            b = project_away(shared, b)[0]
        else:
            self.reason = "columns of different groups depend on each other, without a `ridge`"
            return
        self.starts = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])]).astype(
            np.int64
        )
        self.H, self.c = np.ascontiguousarray(H), np.ascontiguousarray(Z.T @ b)
        self.constant = 0.5 * float(np.vdot(b, b))
        # products of unit columns, each rounded a few times
        self.rounding = EPSILON * (len(A) + 16.0) * problem.design.rounding
        self._set_limits(parts, scale)
        self._last = np.zeros(self.c.shape)
        self._set_first_curvature()

    def _set_limits(self, parts: list[Floats], scale: Floats) -> None:
        """Convert bounds of one-column units to their own direction; others have none."""
        N = self.H.shape[0]
        self.low, self.high = np.full(N, -np.inf), np.full(N, np.inf)
        bounds = self.problem.bounds
        if bounds is None:
            return
        A = self.problem.unit_columns(np.arange(self.problem.n_features))[0]
        for unit, part in enumerate(parts):
            members = self.problem.units.members(unit)
            if members.size != 1 or part.shape[1] != 1:
                continue
            j, at = int(members[0]), int(self.starts[unit])
            # length of the column along its direction; the part projected out is free
            along = float(part[:, 0] @ A[:, j])
            if along <= DEPENDENT:
                continue
            low, high = np.array([bounds[0][j], bounds[1][j]]) * (scale[j] * along)
            # widened by as much as rounding may have narrowed them
            self.low[at], self.high[at] = low * (1.0 + self.rounding), high * (1.0 + self.rounding)

    def _set_first_curvature(self) -> None:
        """Set the largest multiple of 1/λmax(K_JJ), K = inv(H), that leaves H − D definite."""
        K = self._inverse(self.H)
        if K is None:
            self.reason = "columns nearly depend on each other, and there is no `ridge`"
            return
        first = np.array([1.0 / top if top > 0.0 else 0.0 for top in self._largest(K)])
        # D^½ K D^½ has unit diagonal blocks; its largest eigenvalue gives the largest multiple
        root = np.sqrt(self._spread(first, np.arange(first.size)))
        most = 1.0 / _largest_eigenvalue(K * root * root[:, None])
        share = START_SHARE
        for _ in range(TRIALS):
            t = np.minimum(share * most * first, NEARLY_ALL)
            if self._is_definite(t, np.arange(t.size)):
                self.t = t
                return
            share *= START_FALL
        self.reason = "columns nearly depend on each other, and there is no `ridge`"

    def _inverse(self, H: Floats) -> Floats | None:
        """Compute inv(H), or None if H is not definite."""
        if H.size == 0:
            return H
        factor = cholesky(np.array(H, order="F"))
        return None if factor is None else inverse(factor)

    def _largest(self, K: Floats) -> list[float]:
        """Compute the largest eigenvalue of every diagonal block."""
        blocks = [K[a:b, a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]
        return [float(np.linalg.eigvalsh(block)[-1]) if block.size else 0.0 for block in blocks]

    def _rows(self, units: Ints) -> Ints:
        """Return the directions of some units."""
        ends = self.starts.tolist()
        ranges = [np.arange(ends[unit], ends[unit + 1]) for unit in units.tolist()]
        return np.concatenate([np.empty(0, dtype=np.int64), *ranges])

    def _spread(self, of_units: Floats, units: Ints) -> Floats:
        """Repeat a number per unit for each of its directions."""
        return np.repeat(of_units, (self.starts[1:] - self.starts[:-1])[units])

    def _is_definite(self, t: Floats, units: Ints) -> bool:
        """Prove that H − D is positive semidefinite on some units.

        A factorization succeeds with a margin for its rounding, at most (N + 1)ε times the trace,
        and that of H, at most N times that of an entry.
        """
        rows = self._rows(units)
        N = rows.size
        self.watch.spend(DENSE * N**3 / 6.0)
        margin = 2.0 * N * (self.rounding + (N + 2.0) * EPSILON)
        M = np.array(self.H[np.ix_(rows, rows)], order="F")
        M.flat[:: N + 1] -= self._spread(t, units) + margin
        return N == 0 or cholesky(M) is not None

    # -- what the tree asks ------------------------------------------------------------------------

    def relax(self, node: Node, cutoff: float, share: float) -> Relaxed:
        """Solve the perspective relaxation by block descent, at levels that use up the room."""
        units = np.concatenate([node.included, node.free])
        n_in, room = node.included.size, self.budget - node.included.size
        t = self.t[units] if node.d is None else node.d
        v, g, z = self._start(units, t)
        rows = self._rows(units)
        is_in, price = np.arange(units.size) < n_in, self.prices[units]

        def descend(mu: float) -> float:
            self.watch.spend(LEVEL + SWEEPS * float(len(rows)) * self.c.size)
            for _ in range(SWEEPS):
                total = kernels.sweep_units(
                    self.H, t, self.starts, units, is_in, price + mu, self.low, self.high, v, g, z
                )
            return total

        def keep() -> None:
            node.z, node.w, self._last = z[n_in:].copy(), self._norms(v, units), v.copy()

        return best_level(
            node, room, cutoff, descend, lambda: self._prove(units, n_in, room, t, v, node), keep,
            lambda: self._first_level(units, n_in, room, t, g),
        )  # fmt: skip

    def _first_level(self, units: Ints, n_in: int, room: int, t: Floats, g: Floats) -> float:
        """Estimate a level from the gain of the first unit without room."""
        gains = 0.5 * self._norms(g, units)[n_in:] ** 2 / np.maximum(t[n_in:], 1e-300)
        return first_level(gains, room, self.constant)

    def _start(self, units: Ints, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (v, g, z) at the last point, restricted to these units."""
        v, rows = np.zeros_like(self._last), self._rows(units)
        v[rows] = self._last[rows]
        return v, self._slopes(v, units, t), np.zeros(units.size)

    def _slopes(self, v: Floats, units: Ints, t: Floats) -> Floats:
        """Compute c − (H − D)v."""
        g, rows = self.c - self.H @ v, self._rows(units)
        g[rows] += self._spread(t, units)[:, None] * v[rows]
        return g

    def _norms(self, rows: Floats, units: Ints) -> Floats:
        """Compute the norm of every unit's rows."""
        squares = np.einsum("ij,ij->i", rows, rows)
        sums = np.concatenate([[0.0], np.cumsum(squares)])
        # differences of sums may round below zero; these norms only rank
        return np.sqrt(np.maximum(sums[self.starts[units + 1]] - sums[self.starts[units]], 0.0))

    def _prove(
        self, units: Ints, n_in: int, room: int, t: Floats, v: Floats, node: Node
    ) -> Relaxed:
        """Derive the bound of the tangent at v, less all possible rounding.

        An entry of b is accurate to `rounding` for c and for every product with v, and to the
        rounding of a sum of N terms. With bounds b is replaced by what has the same gain without
        them, which changes by no more than b itself does.
        """
        b, rows = self._slopes(v, units, t), self._rows(units)
        N = self.H.shape[0]
        reach = float(np.abs(v).sum(axis=0).max(initial=0.0))
        entry = self.rounding * (self.length + reach) + EPSILON * (N + 8.0) * (reach + self.length)
        bends = v * (self.c - b)
        base = self.constant - 0.5 * float(bends.sum())
        allowance = 0.5 * entry * float(np.abs(v).sum()) + EPSILON * (N + 16.0) * float(
            np.abs(bends).sum() + self.constant
        )
        allowance += self.rounding * self.length * self.length
        effective = self._effective(b, rows, self._spread(t, units))
        sizes = (self.starts[1:] - self.starts[:-1])[units]
        error = entry * np.sqrt(sizes * b.shape[1])
        sums = np.add.reduceat(np.append((effective**2).sum(axis=1), 0.0), _offsets(sizes))
        norms = np.sqrt(np.where(sizes > 0, sums, 0.0))
        price = self.prices[units]
        tangent = Tangent(
            base + float(self.prices[node.included].sum()), norms, np.maximum(t, 1e-300),
            error, allowance,
        )  # fmt: skip
        # a unit without curvature has an unbounded gain
        flat = (t <= 0.0) & (sizes > 0)
        if flat.any():
            return Relaxed(-np.inf, np.inf, np.zeros(units.size - n_in), 0.0, 0.0, np.inf)
        return tangent.prove(n_in, room, price[n_in:], base)

    def _effective(self, b: Floats, rows: Ints, t: Floats) -> Floats:
        """Compute √(2t sup_v bv − ½tv²) within bounds, entry by entry: |b| without bounds."""
        return effective(b[rows], t[:, None], self.low[rows, None], self.high[rows, None])

    def bound_of(self, support: Ints, w: Floats, cutoff: float) -> float:
        """Return infinity if the fit is exact, else a lower bound on its support.

        The least-squares value is exact unless the fit dropped one of several nearly dependent
        columns. (Without groups each such choice is a separate support.)
        """
        problem, columns = self.problem, self.problem.units.columns(np.sort(support))
        doubt = self._fits.doubt(columns, w)
        is_single = problem.units is COLUMNS and problem.bounds is None
        if doubt == 0.0 or is_single or problem.objective(w) - doubt >= cutoff:
            return np.inf
        least = self._fits.least_on(columns) + float(self.prices[support].sum())
        return least - self.rounding * self.length * self.length

    def finish(self, node: Node, cutoff: float) -> Finished | None:
        """Return None: there is no closed form."""
        return None

    def sharpen(self, node: Node, relaxed: Relaxed, cutoff: float) -> bool:
        """Take one step of t towards a higher bound, with a barrier μ·logdet(H − D).

        The bound grows by ½‖v_J‖²(1/z_J − 1) with t_J, the barrier decreases by the trace of the
        block of K = inv(H − D), with second derivative its squared norm.
        """
        units = np.concatenate([node.included, node.free])
        t, n_in = (self.t[units] if node.d is None else node.d), node.included.size
        rows, gap = self._rows(units), cutoff - relaxed.bound
        self.watch.spend(DENSE * float(rows.size) ** 3)
        M = self.H[np.ix_(rows, rows)].copy()
        M.flat[:: rows.size + 1] -= self._spread(t, units)
        K = self._inverse(np.asfortranarray(M))
        if K is None or not gap > 0.0:
            return False
        offsets = _offsets((self.starts[1:] - self.starts[:-1])[units])
        ends = np.append(offsets[1:], rows.size)
        blocks = [K[a:b, a:b] for a, b in zip(offsets, ends, strict=True)]
        traces = np.array([float(np.trace(block)) for block in blocks])
        bends = np.array([max(float(np.vdot(block, block)), 1e-300) for block in blocks])
        z = np.concatenate([np.ones(n_in), np.maximum(node.z, 1e-6)])
        rise = 0.5 * self._norms(self._last, units) ** 2 * (1.0 / z - 1.0)
        mu = BARRIER * gap / units.size
        most = 0.5 / np.maximum(traces, 1e-300)
        step = np.clip(0.5 * (rise / mu - traces) / bends, -0.5 * t, most)
        for _ in range(8):
            there = np.clip(t + step, 1e-6, NEARLY_ALL)
            if self._is_definite(there, units):
                node.d = there
                return bool(np.abs(there - t).max(initial=0.0) > 1e-9)
            step = 0.5 * step
        return False


def orthonormal_of(part: Floats, nearest: float) -> Floats:
    """Orthonormal columns that span those of a unit, with a look at the clock."""
    look()
    return orthonormal(part, nearest)


def _null_space(H: Floats) -> Floats:
    """Find orthonormal directions of nearly no curvature, for a unit diagonal, (N, r)."""
    N = len(H)
    M = np.array(H, order="F")
    M.flat[:: N + 1] -= FLAT + N * (N + 2.0) * EPSILON
    if cholesky(M) is not None:
        return np.empty((N, 0))
    look(EIGENVALUES * float(N) ** 3)
    values, vectors = np.linalg.eigh(H)
    return vectors[:, values <= FLAT]


def _largest_eigenvalue(A: Floats) -> float:
    """Compute the largest eigenvalue of a symmetric matrix, to three digits if it is large."""
    if len(A) <= SMALL:
        return float(np.linalg.eigvalsh(A)[-1])
    from scipy.sparse.linalg import LinearOperator, eigsh  # no small search waits for it

    def product(v: Floats) -> Floats:
        look()
        return A @ v

    operator = LinearOperator(A.shape, matvec=product, dtype=np.float64)  # type: ignore[call-arg]
    given: Any = {"v0": np.ones(len(A)), "tol": 1e-3, "return_eigenvectors": False}
    return float(eigsh(operator, k=1, which="LA", **given)[0])


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def _shared(parts: list[Floats], null: Floats) -> Floats:
    """Compute orthonormal columns that span what units share, from vanishing combinations."""
    starts = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])])
    common = [part @ null[a:b] for part, a, b in zip(parts, starts[:-1], starts[1:], strict=True)]
    U, values, _ = np.linalg.svd(np.hstack(common), full_matrices=False)
    return U[:, values > 1e-6]
