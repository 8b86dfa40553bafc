"""A pool of columns with its swept tableau: where method "refit" searches between passes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from blockl0 import kernels
from blockl0.data.design import Design
from blockl0.problem.problem import Problem, Sparsity
from blockl0.run import Run, look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_MOVES = 10_000
"""Moves of one descent; a bound against rounding that feigns progress."""
SLICE_WORK = 2e8
"""Operations of a descent between two looks at the clock; about a tenth of a second."""
CACHED_BYTES, GRAM_BATCH, MAX_BATCH = 8 << 20, 8, 256
"""Rows of the Gram matrix are made one by one from a pool in cache, otherwise 8 at a time or more:
the more are known the more are made together, so that a long search makes few large products."""
LITTLE_WORK = 2e6
"""Multiplications up to which all of H takes no longer than some of its rows: all are made then."""
MAX_REBUILDS = 3
"""Times in one descent that a drifted tableau is built anew."""
AT_ONCE, CLEAR = 64, 1e-6
"""Columns of a support that is loaded by products of matrices, and its least pivot, of a column of
length one, for which they are as accurate as steps that look at each pivot."""


_NONE = np.empty(0, dtype=np.int64)


class Saved(NamedTuple):
    """A copy of what moves in a tableau."""

    rows: Floats
    border: Floats
    slot: Ints
    member: Ints
    value: Floats


class Pool:
    """Least squares on a support inside the pool, re-fitted by every move.

    Sweeping the Gram matrix H of the pool, bordered by c = −X'y, on the support S leaves the Schur
    complement M and the gradient outside S, −inv(H_SS) and −w_S inside, and the regressions
    W = inv(H_SS) H_SU in the mixed part: all moves are priced by reading entries. Kept are the rows
    of S, the diagonal and the border, so that a move costs O(p|S|); see `kernels.SweptArrays`.
    Rows of H are made when a column first enters.

    Parameters
    ----------
    problem : Problem
        With a squared loss.
    columns : ndarray (p,)
        The pool, ascending.
    target, sq_norms : ndarray (p,)
        The gradient at zero and the diagonal of H, of these columns.
    tolerance : float
        Smaller improvements do not count.
    like : Pool, optional
        A pool of the same columns, whose rows of H are shared.
    """

    def __init__(
        self,
        problem: Problem,
        columns: Ints,
        target: Floats,
        sq_norms: Floats,
        tolerance: float = 0.0,
        like: Pool | None = None,
    ) -> None:
        p = columns.size
        self.columns = columns
        self.sparsity = problem.sparsity
        self.target, self.sq_norms = target, sq_norms
        self.tolerance = tolerance
        self.drift = 0.0
        self.run: Run | None = None
        self._weights = problem.sample_weight
        self._problem = problem
        self._design: Design | None = None
        share = p / problem.n_features
        self._batch = 1 if share * problem.design.nbytes <= CACHED_BYTES else GRAM_BATCH
        # H of columns of length one, in single precision, once it was asked for
        self._unit_grams: list[NDArray[np.float32]] = [] if like is None else like._unit_grams
        self.equal = np.ones(p)
        capacity = min(p, self.sparsity.budget)
        border = np.empty((5, p))
        border[kernels.LEAST] = kernels.PIVOT_FLOOR * sq_norms
        self.table = kernels.SweptArrays(
            gram=np.empty((p, p)) if like is None else like.table.gram,
            known=np.zeros(p, dtype=np.bool_) if like is None else like.table.known,
            kept=problem.is_kept(columns),
            rows=np.empty((capacity + 1, p)),
            border=border,
            slot=np.empty(p, dtype=np.int64),
            member=np.empty(capacity + 1, dtype=np.int64),
            value=np.zeros(4),
        )
        if like is None and problem.n_samples * p**2 <= LITTLE_WORK:
            self.know_all()
        self.clear()

    def part_from_others(self) -> None:
        """Share the rows of H with no other pool any more."""
        self.table = self.table._replace(
            gram=self.table.gram.copy(), known=self.table.known.copy()
        )  # fmt: skip

    # the support -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """|S|."""
        return int(self.table.member[-1])

    @property
    def members(self) -> Ints:
        """Positions in the pool of the support, (|S|,), in no order."""
        return self.table.member[: self.size].copy()

    @property
    def support(self) -> Ints:
        """The columns of X in the support, ascending."""
        return np.sort(self.columns[self.members])

    @property
    def coef(self) -> Floats:
        """The coefficients on `members`, (|S|,)."""
        return -self.table.border[kernels.EDGE, self.members]

    @property
    def value(self) -> float:
        """Smooth minimum on the support, less the constant ½‖y‖²."""
        return float(self.table.value[kernels.MINIMUM])

    @property
    def objective(self) -> float:
        """value + price·|S|."""
        return self.value + self.sparsity.cost(self.size)

    @property
    def movable(self) -> Ints:
        """Positions of the support that may leave it."""
        members = self.members
        return members[~self.table.kept[members]]

    # moves -----------------------------------------------------------------------------------

    def clear(self) -> None:
        """The empty support."""
        table = self.table
        table.border[kernels.EDGE], table.border[kernels.PIVOT] = self.target, self.sq_norms
        table.slot[:], table.member[-1], table.value[:] = -1, 0, 0.0

    def load(self, support: Ints) -> None:
        """Start afresh from a support (columns of X in the pool), O(|S|² p)."""
        self.clear()
        positions = np.searchsorted(self.columns, support)
        if not self._load_at_once(positions):
            # kept columns first: of two dependent ones the other is left out
            self.toggle(positions[np.argsort(~self.table.kept[positions], kind="stable")])

    def is_at(self, support: Ints) -> bool:
        """Whether it holds this support (columns of X in the pool), without much rounding."""
        if self.size != support.size or self.table.value[kernels.DRIFT] > kernels.MAX_DRIFT:
            return False
        if support.size == 0:
            return True
        positions = np.searchsorted(self.columns, support)
        return bool((self.table.slot[positions] >= 0).all())

    def _load_at_once(self, positions: Ints) -> bool:
        """Load a large support by products of matrices; False where it is nearly dependent.

        They take as many operations as one column after the other, and a fraction of the time.
        """
        table, size = self.table, positions.size
        if not AT_ONCE <= size < table.rows.shape[0]:
            return False
        self.know(positions)
        H = table.gram[positions]
        K = _clear_inverse(H[:, positions])
        if K is None:
            return False
        c, inside = self.target[positions], K @ self.target[positions]
        rows = table.rows[:size]
        np.matmul(K, H, out=rows)
        table.border[kernels.EDGE] -= c @ rows
        table.border[kernels.PIVOT] -= np.einsum("ij,ij->j", H, rows)
        rows[:, positions] = -K
        table.border[kernels.EDGE, positions] = inside
        table.border[kernels.PIVOT, positions] = -K.diagonal()
        table.value[kernels.MINIMUM] = -0.5 * c @ inside
        table.slot[positions], table.member[:size] = np.arange(size), positions
        table.member[-1] = size
        return True

    def has(self, support: Ints) -> bool:
        """Whether all these columns of X, ascending, are in the pool."""
        if self.columns.size == self._problem.n_features:
            return True
        positions = np.searchsorted(self.columns, support)
        inside = positions < self.columns.size
        return bool(inside.all()) and np.array_equal(self.columns[positions], support)

    def move_to(self, support: Ints) -> None:
        """Go to a support in the pool by the columns in which it differs, or afresh if many do."""
        wanted = np.zeros(self.columns.size, dtype=np.bool_)
        wanted[np.searchsorted(self.columns, support)] = True
        inside = self.table.slot >= 0
        leave, enter = np.flatnonzero(inside & ~wanted), np.flatnonzero(wanted & ~inside)
        if leave.size + enter.size >= support.size:
            self.load(support)
            return
        self.toggle(leave)
        self.toggle(enter)
        self.refresh()

    def toggle(self, positions: Ints) -> None:
        """Move columns (positions in the pool) into the support or out of it, in this order."""
        self.know(positions[self.table.slot[positions] < 0])
        price, budget = self.sparsity
        size = self.size + positions.size + 16
        step = max(20, int(SLICE_WORK / (self.columns.size * size)))
        for start in range(0, max(positions.size, 1), step):
            look()
            some = positions[start : start + step]
            kernels.descend(self.table, some, self.equal, price, budget, self.tolerance, 0)

    def descend(
        self,
        weight: Floats | None = None,
        dropped: Ints | None = None,
        sparsity: Sparsity | None = None,
    ) -> None:
        """Best additions, removals and swaps, until none improves; first some members are dropped.

        Columns of weight 0 do not enter; other weights scale the gains that rank the additions.
        Another price and a smaller budget than the pool's may be given.
        """
        price, budget = self.sparsity if sparsity is None else sparsity
        weight = self.equal if weight is None else weight
        first, n_rebuilt, n_moves = _NONE if dropped is None else dropped, 0, 0
        self._begin_descent()
        while True:
            n_slice = max(20, int(SLICE_WORK / (self.columns.size * (self.size + 16))))
            wanted = kernels.descend(
                self.table, first, weight, price, budget, self.tolerance, min(n_slice, MAX_MOVES)
            )
            first = _NONE
            if self.run is not None and self.run.seconds_left <= 0.0:
                break
            if wanted >= 0:
                self.know(np.array([wanted]), weight)
            elif wanted == kernels.PAUSED and n_moves < MAX_MOVES:
                n_moves += n_slice
            elif wanted == kernels.DRIFTED and n_rebuilt < MAX_REBUILDS:
                self.refresh()
                self._begin_descent()
                n_rebuilt += 1
            else:
                break

    def _begin_descent(self) -> None:
        """Swaps begin with the first member; between two such calls a descent goes on."""
        self.table.value[kernels.SWAP_ROW] = kernels.FIRST_ROW
        self.table.value[kernels.N_FAILED] = 0.0

    def save(self) -> Saved:
        """A copy of the state, for `restore`."""
        return save(self.table)

    def restore(self, state: Saved) -> None:
        """Return to a saved state."""
        restore(self.table, state)

    def refresh(self) -> None:
        """Record the drift; build the tableau anew where rounding has moved its pivots too far."""
        drift = float(self.table.value[kernels.DRIFT])
        self.drift = max(self.drift, drift)
        if drift > kernels.MAX_DRIFT:
            self.load(self.support)

    def know_all(self) -> None:
        """Make all of H in one product, unless it is known."""
        if self.table.known.all():
            return
        self.table.gram[:] = self._problem.design.gram(self.columns, self._weights)
        self.table.gram.flat[:: self.columns.size + 1] = self.sq_norms
        self.table.known[:] = True

    def whole_gram(self) -> Floats:
        """All of H, made now unless it is known."""
        self.know_all()
        return self.table.gram

    def unit_gram(self) -> NDArray[np.float32]:
        """All of H, which is known, of columns of length one in single precision; made once."""
        if not self._unit_grams:
            lengths = np.where(self.sq_norms > 0.0, np.sqrt(self.sq_norms), 1.0)
            scaled = self.table.gram / lengths
            scaled /= lengths[:, None]
            self._unit_grams.append(scaled.astype(np.float32))
        return self._unit_grams[0]

    def value_of(self, support: Ints) -> float:
        """Smooth minimum on a support, less the constant; infinity where it is near dependent."""
        positions = np.searchsorted(self.columns, support)
        root = _clear_root(self.table.gram[np.ix_(positions, positions)])
        if root is None:
            return np.inf
        scale, L = root
        c = solve_triangular(L, self.target[positions] / scale, lower=True, check_finite=False)
        return float(-0.5 * c @ c)

    def know(self, positions: Ints, weight: Floats | None = None) -> None:
        """Make the rows of H at these positions; with a weight, also of likely next columns."""
        table = self.table
        missing = positions[~table.known[positions]]
        if missing.size == 0:
            return
        batch = min(max(self._batch, int(np.count_nonzero(table.known)) // 4), MAX_BATCH)
        if weight is not None and missing.size < batch:
            gains = np.where(table.known | (weight == 0.0), -np.inf, self.add_gains())
            gains[missing] = np.inf
            missing = first_of(-gains, batch)
            missing = missing[~table.known[missing]]
        if self._design is None:
            self._design = self._problem.design.gathered(self.columns)
        V = self._design.columns(missing)
        if self._weights is not None:
            V = V * self._weights[:, None]
        table.gram[missing] = self._design.cross(V, slice(None))
        # the ridge, and one value for the diagonal wherever it is read
        table.gram[missing, missing] = self.sq_norms[missing]
        table.known[missing] = True

    def drop_costs(self, positions: Ints) -> Floats:
        """By how much taking out each of these members raises the minimum."""
        edge, pivots = self.table.border[: kernels.MOVING, positions]
        return -0.5 * edge**2 / pivots

    def prices(self) -> Floats:
        """Change of the objective by the best addition or swap that brings in each column, (p,)."""
        price, budget = self.sparsity
        table, members = self.table, self.members
        edge, pivots, least = table.border[:3]
        change = np.full(edge.size, np.inf)
        if members.size < budget:
            change = price - self.add_gains()
        kernels.price_swaps(
            table.rows[: members.size], -pivots[members], -edge[members], ~table.kept[members],
            edge, pivots, least + 1e-300, change,
        )  # fmt: skip
        change[members] = np.inf
        return change

    def add_gains(self) -> Floats:
        """By how much adding each column lowers the minimum, (p,); −inf where not possible."""
        edge, pivots, least = self.table.border[:3]
        free = (self.table.slot < 0) & (pivots > least)
        safe = np.where(free, pivots, 1.0)
        return np.where(free, 0.5 * edge**2 / safe, -np.inf)


def save(table: kernels.SweptArrays) -> Saved:
    """A copy of what moves in a tableau."""
    t, size = table, int(table.member[-1])
    return Saved(
        t.rows[:size].copy(), t.border[: kernels.MOVING].copy(), t.slot.copy(), t.member.copy(),
        t.value.copy(),
    )  # fmt: skip


def restore(table: kernels.SweptArrays, state: Saved) -> None:
    """Bring a tableau back to where it was."""
    t = table
    t.rows[: state.member[-1]], t.border[: kernels.MOVING] = state.rows, state.border
    t.slot[:], t.member[:], t.value[:] = state.slot, state.member, state.value


def first_of(keys: Floats, count: int) -> Ints:
    """Positions of the `count` smallest keys."""
    return np.argpartition(keys, count)[:count] if count < keys.size else np.arange(keys.size)


def _clear_root(H: Floats) -> tuple[Floats, Floats] | None:
    """Lengths, and the Cholesky factor of H in their units; None unless every pivot is clear."""
    scale = np.sqrt(np.maximum(H.diagonal(), 1e-300))
    try:
        L = np.asarray(np.linalg.cholesky(H / scale / scale[:, None]), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    return (scale, L) if H.size == 0 or L.diagonal().min() ** 2 > CLEAR else None


def _clear_inverse(H: Floats) -> Floats | None:
    """inv(H), symmetric; None unless every pivot is clear of rounding, in whatever units."""
    found = _clear_root(H)
    if found is None:
        return None
    scale, L = found
    root = solve_triangular(L, np.diag(1.0 / scale), lower=True, check_finite=False)
    return root.T @ root
