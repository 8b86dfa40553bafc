"""A pool of units with its swept tableau: where method "refit" searches between passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from blockl0 import kernels
from blockl0.data.design import Design
from blockl0.problem.kinds import LEAST_SQUARES
from blockl0.problem.problem import Problem
from blockl0.run import Run, look
from blockl0.units import COLUMNS

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


class Pool:
    """Least squares on a support inside the pool, re-fitted by every move.

    Sweeping the Gram matrix H of the pool, bordered by c = −X'y, on the support S leaves the Schur
    complement M and the gradient outside S, −inv(H_SS) and −w_S inside, and the regressions
    W = inv(H_SS) H_SU in the mixed part: all moves are priced by reading entries. Kept are the rows
    of S, the diagonal and the border, so that a move costs O(p|S|); see `kernels.SweptArrays`.
    Rows of H are made when a column first enters.

    Units of several columns, costs, bounds and several responses take the same table, and
    `kernels.Structure`. Within bounds a move whose free fit brings too little is left out at once,
    and what remains is fitted within the bounds, from the coefficients that are at one now.

    Parameters
    ----------
    problem : Problem
        With a squared loss.
    units : ndarray of int64
        The pool, ascending; positions in it are those of units.
    target : ndarray (n,) or (n, q)
        The gradient at zero, of all columns of X.
    sq_norms : ndarray (n,)
        The diagonal of H, of all columns of X.
    tolerance : float
        Smaller improvements do not count.
    like : Pool, optional
        A pool of the same units, whose rows of H are shared.

    Attributes
    ----------
    columns : ndarray of int64 (p,)
        The columns of the units, unit by unit.
    structure : kernels.Structure or None
        None for single columns at one price, without bounds, and one response.
    """

    def __init__(
        self,
        problem: Problem,
        units: Ints,
        target: Floats,
        sq_norms: Floats,
        tolerance: float = 0.0,
        like: Pool | None = None,
    ) -> None:
        self.units, self.sparsity = units, problem.sparsity
        self.columns, self._starts = units, np.arange(units.size + 1)
        capacity = min(units.size, self.sparsity.budget)
        if problem.units is not COLUMNS:
            members = [problem.units.members(int(unit)) for unit in units]
            self.columns = np.concatenate([_NONE, *members])
            sizes = np.array([part.size for part in members], dtype=np.int64)
            self._starts[1:] = np.cumsum(sizes)
            capacity = int(np.sort(sizes)[::-1][:capacity].sum())
        p = self.columns.size
        self.target = np.ascontiguousarray(np.atleast_2d(target[self.columns].T))
        self.sq_norms = sq_norms[self.columns]
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
        border = np.zeros((kernels.EDGE + 2 * len(self.target), p))
        border[kernels.LEAST] = kernels.PIVOT_FLOOR * self.sq_norms
        self.table = kernels.SweptArrays(
            gram=np.empty((p, p)) if like is None else like.table.gram,
            known=np.zeros(p, dtype=np.bool_) if like is None else like.table.known,
            kept=np.isin(units, problem.keep) if problem.keep.size else np.zeros(units.size, bool),
            rows=np.empty((capacity + 1, p)),
            border=border,
            slot=np.empty(p, dtype=np.int64),
            member=np.empty(capacity + 1, dtype=np.int64),
            value=np.zeros(4),
        )
        if like is None and problem.n_samples * p**2 <= LITTLE_WORK:
            self.know_all()
        self._own = self._blocks() if like is None else like._own
        self.structure = None
        if problem.kind is not LEAST_SQUARES:
            self.structure = self._structure(capacity)
        self.clear()

    def _blocks(self) -> Floats:
        """Make the Gram matrices of the units of several columns, one after the other."""
        own, is_block = [np.empty(0)], np.diff(self._starts) > 1
        if not is_block.any():
            return own[0]
        V = self._problem.design.columns(self.columns)
        W = V if self._weights is None else V * self._weights[:, None]
        for unit in np.flatnonzero(is_block):
            part = slice(self._starts[unit], self._starts[unit + 1])
            H = V[:, part].T @ W[:, part]
            H.flat[:: len(H) + 1] = self.sq_norms[part]
            own.append(H.ravel())
        return np.concatenate(own)

    def _structure(self, capacity: int) -> kernels.Structure | None:
        """Lay out what single columns at one price do not need; None where these are such."""
        problem, (q, p), u = self._problem, self.target.shape, self.units.size
        sizes = np.diff(self._starts)
        costs = np.ones(u)
        if problem.costs is not None and self.sparsity.price > 0.0:
            costs = problem.costs[self.units]
        is_bounded = problem.bounds is not None
        if q == 1 and sizes.max(initial=1) == 1 and not is_bounded and np.all(costs == 1.0):
            return None
        d, of_bounds = int(sizes.max(initial=1)), (q, p) if is_bounded else (q, 0)
        k = capacity + d if is_bounded else 0
        limits = np.array([side[self.columns] for side in problem.bounds or ()])
        return kernels.Structure(
            starts=self._starts, place=np.empty(u, dtype=np.int64),
            chosen=np.empty(min(u, self.sparsity.budget) + 1, dtype=np.int64), costs=costs,
            tried=np.zeros(u, dtype=np.int64), blocks=self._own.copy(),
            places=np.concatenate([[0], np.cumsum(np.where(sizes > 1, sizes**2, 0))]),
            target=self.target, limits=limits if is_bounded else np.empty((2, 0)),
            force=np.zeros(of_bounds), side=np.zeros(of_bounds, dtype=np.int64),
            left=np.empty(d, dtype=np.int64), square=np.empty((3, d, d)),
            right=np.empty((2, q, d)), small=np.empty((2, k, k)),
            line=np.empty((q + 1, k)), index=np.empty((q + 1, k), dtype=np.int64),
        )  # fmt: skip

    def part_from_others(self) -> None:
        """Share the rows of H with no other pool any more."""
        self.table = self.table._replace(
            gram=self.table.gram.copy(), known=self.table.known.copy()
        )  # fmt: skip

    # the support -----------------------------------------------------------------------------

    @property
    def _chosen(self) -> Ints:
        """The units of the support, and last, their number."""
        return self.table.member if self.structure is None else self.structure.chosen

    @property
    def _place(self) -> Ints:
        """The place of each unit in the support, -1 outside."""
        return self.table.slot if self.structure is None else self.structure.place

    @property
    def size(self) -> int:
        """Units in the support."""
        return int(self._chosen[-1])

    @property
    def members(self) -> Ints:
        """Positions in the pool of the support, in no order."""
        return self._chosen[: self.size].copy()

    @property
    def support(self) -> Ints:
        """The units of the support, ascending."""
        return np.sort(self.units[self.members])

    @property
    def value(self) -> float:
        """Smooth minimum on the support, less the constant ½‖y‖²; with costs beyond the price."""
        value = float(self.table.value[kernels.MINIMUM])
        if self.structure is None:
            return value
        return value + self.sparsity.price * float(np.sum(self.structure.costs[self.members] - 1.0))

    @property
    def objective(self) -> float:
        """Smooth minimum and price of the support."""
        return self.value + self.sparsity.cost(self.size)

    @property
    def movable(self) -> Ints:
        """Positions of the support that may leave it."""
        members = self.members
        return members[~self.table.kept[members]]

    def _columns_at(self, positions: Ints) -> Ints:
        """Return the places among the columns of the units at some positions."""
        if self._starts.size == self.columns.size + 1:
            return positions
        starts = self._starts.tolist()
        parts = [np.arange(starts[i], starts[i + 1]) for i in positions.tolist()]
        return np.concatenate([_NONE, *parts])

    # moves -----------------------------------------------------------------------------------

    def clear(self) -> None:
        """Return the empty support."""
        table, structure = self.table, self.structure
        table.border[kernels.EDGE : kernels.EDGE + len(self.target)] = self.target
        table.border[kernels.PIVOT] = self.sq_norms
        table.slot[:], table.member[-1], table.value[:] = -1, 0, 0.0
        if structure is not None:
            structure.place[:], structure.chosen[-1], structure.tried[:] = -1, 0, 0
            structure.blocks[:] = self._own
            structure.force[:], structure.side[:] = 0.0, kernels.FREE

    def load(self, support: Ints) -> None:
        """Start afresh from a support (units of the pool), O(|S|² p)."""
        self.clear()
        positions = np.searchsorted(self.units, support)
        if not self._load_at_once(positions):
            # kept columns first: of two dependent ones the other is left out
            self.toggle(positions[np.argsort(~self.table.kept[positions], kind="stable")])

    def is_at(self, support: Ints) -> bool:
        """Whether it holds this support (units of the pool), without much rounding."""
        if self.size != support.size or self.table.value[kernels.DRIFT] > kernels.MAX_DRIFT:
            return False
        if support.size == 0:
            return True
        return bool((self._place[np.searchsorted(self.units, support)] >= 0).all())

    def _load_at_once(self, positions: Ints) -> bool:
        """Load a large support by products of matrices; False where it is nearly dependent.

        They take as many operations as one column after the other, and a fraction of the time.
        """
        table, size = self.table, positions.size
        if self.structure is not None or not AT_ONCE <= size < table.rows.shape[0]:
            return False
        self.know(positions)
        H = table.gram[positions]
        K = _clear_inverse(H[:, positions])
        if K is None:
            return False
        c = self.target[0, positions]
        inside = K @ c
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
        """Whether all these units, ascending, are in the pool."""
        if self.units.size == self._problem.n_units:
            return True
        positions = np.searchsorted(self.units, support)
        inside = positions < self.units.size
        return bool(inside.all()) and np.array_equal(self.units[positions], support)

    def move_to(self, support: Ints) -> None:
        """Go to a support in the pool by the units in which it differs, or afresh if many do."""
        wanted = np.zeros(self.units.size, dtype=np.bool_)
        wanted[np.searchsorted(self.units, support)] = True
        inside = self._place >= 0
        leave, enter = np.flatnonzero(inside & ~wanted), np.flatnonzero(wanted & ~inside)
        if leave.size + enter.size >= support.size:
            self.load(support)
            return
        self.toggle(leave)
        self.toggle(enter)
        self.refresh()

    def toggle(self, positions: Ints) -> None:
        """Move units (positions in the pool) into the support or out of it, in this order."""
        self.know(self._columns_at(positions[self._place[positions] < 0]))
        size = self.table.member[-1] + positions.size + 16
        step = max(20, int(SLICE_WORK / (self.columns.size * size)))
        for start in range(0, max(positions.size, 1), step):
            look()
            self._descend(positions[start : start + step], 0)

    def _descend(self, first: Ints, max_moves: int) -> int:
        price, budget = self.sparsity
        return kernels.descend(
            self.table, self.structure, first, price, budget, self.tolerance, max_moves
        )

    def descend(self) -> None:
        """Best additions, removals and swaps, until none improves."""
        n_rebuilt, n_moves = 0, 0
        self._begin_descent()
        while True:
            n_slice = max(20, int(SLICE_WORK / (self.columns.size * (self.table.member[-1] + 16))))
            wanted = self._descend(_NONE, min(n_slice, MAX_MOVES))
            if self.run is not None and self.run.seconds_left <= 0.0:
                break
            if wanted >= 0:
                unit = np.searchsorted(self._starts, wanted, side="right") - 1
                self.know(self._columns_at(np.array([unit])), is_likely=True)
            elif wanted == kernels.PAUSED and n_moves < MAX_MOVES:
                n_moves += n_slice
            elif wanted == kernels.DRIFTED and n_rebuilt < MAX_REBUILDS:
                self.refresh()
                self._begin_descent()
                n_rebuilt += 1
            else:
                break

    def _begin_descent(self) -> None:
        """Begin swaps with the first member; between two such calls a descent goes on."""
        self.table.value[kernels.SWAP_ROW] = kernels.FIRST_ROW
        self.table.value[kernels.N_FAILED] = 0.0
        if self.structure is not None:
            self.structure.tried[:] = 0

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
        positions = np.searchsorted(self.units, support)
        root = _clear_root(self.table.gram[np.ix_(positions, positions)])
        if root is None:
            return np.inf
        scale, L = root
        c = solve_triangular(L, self.target[0, positions] / scale, lower=True, check_finite=False)
        return float(-0.5 * c @ c)

    def know(self, positions: Ints, is_likely: bool = False) -> None:
        """Make the rows of H of these columns (positions), or also those of likely next ones."""
        table = self.table
        missing = positions[~table.known[positions]]
        if missing.size == 0:
            return
        batch = min(max(self._batch, int(np.count_nonzero(table.known)) // 4), MAX_BATCH)
        if is_likely and missing.size < batch:
            gains = np.where(table.known, -np.inf, self.add_gains())
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
        if self.structure is None:
            edge, pivots = self.table.border[[kernels.EDGE, kernels.PIVOT]][:, positions]
            return -0.5 * edge**2 / pivots
        costs = np.empty(self.size)
        kernels.removal_costs(self.table, self.structure, costs)
        return costs[self._place[positions]]

    def prices(self) -> Floats:
        """Change of the objective by the best addition or swap that brings in each unit."""
        price, budget = self.sparsity
        table, members = self.table, self.members
        change = np.full(self.units.size, np.inf)
        if self.structure is not None:
            kernels.unit_changes(table, self.structure, price, members.size < budget, change)
            return change
        edge, pivots, least = (
            table.border[line] for line in (kernels.EDGE, kernels.PIVOT, kernels.LEAST)
        )
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
        border, q = self.table.border, len(self.target)
        pivots, least = border[kernels.PIVOT], border[kernels.LEAST]
        free = (self.table.slot < 0) & (pivots > least)
        squares = np.square(border[kernels.EDGE : kernels.EDGE + q]).sum(axis=0)
        return np.where(free, 0.5 * squares / np.where(free, pivots, 1.0), -np.inf)


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
