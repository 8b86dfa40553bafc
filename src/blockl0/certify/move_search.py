"""The complete search for an improving move among all blocks of k coordinates.

The last two coordinates of a move are scanned at once, O(N²); those before by pivots, smallest
position first, S before its complement. Restricted curvature excludes most of them: with t_j the
sum of the r − 1 largest |T_ij|, the form on at most r coordinates is at least Σ (T_jj − t_j) δ_j².
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from math import comb
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from blockl0.certify.move_tableau import (
    CHUNK,
    MORE,
    BlockMove,
    MoveRules,
    MoveTableau,
    PartialMove,
    suspects,
)
from blockl0.errors import OutOfReachError
from blockl0.moves.tableau import CLEAR
from blockl0.problem.orthogonal import DEPENDENT
from blockl0.run import look

Floats = NDArray[np.float64]
Answer = TypeVar("Answer")

DENSE_LIMIT = 6000
"""Most columns for a tableau in memory (about 300 MB)."""
WORK_LIMIT = 1_000_000_000
"""Tableau entries visited before a complete search gives up; some twenty seconds."""
DEPTH_LIMIT = 100
"""Coordinates of a move decided one by one before a complete search gives up."""
FIT_LIMIT = 10_000
"""Moves that need a fit before a complete search gives up; some ten seconds."""
LEAST_CURVATURE = 1e-11
"""Curvature of unit columns below which nothing is bounded."""


def find_move(
    tableau: MoveTableau,
    k: int,
    price: float,
    threshold: float,
    accept: Callable[[BlockMove], Answer | None],
    is_barred: Callable[[BlockMove], bool],
) -> Answer | None:
    """Search for a move of at most k coordinates that changes the objective by less than
    `threshold`.

    Returns the result of `accept` for the first move for which it is not None; `is_barred` says
    whether the columns after a move are dependent. None proves that there is no such move. O(m n²)
    for k = 2, and O(m n s) if the budget is used up.
    """
    refit, root = tableau.refit, tableau.root
    rules = MoveRules(
        price, threshold, -1.0 if refit else 1.0, -1 if refit else 0, tableau.rounding
    )
    if refit and price == 0.0 and root.room == 0 and k > 1:
        k -= k % 2  # an addition needs a removal, and a removal alone only costs
    search = MoveSearch(rules, accept, is_barred)
    if k <= 2:
        return search.end(root, tableau.rows, k)
    if root.columns.size > DENSE_LIMIT:
        raise OutOfReachError(f"{root.columns.size} columns exceed the limit of {DENSE_LIMIT}")
    return search.run_clear(root, tableau.dense(), k)


class MoveSearch(Generic[Answer]):
    """Depth-first search over the first k − 2 coordinates of a move."""

    rules: MoveRules
    work: int

    def __init__(
        self,
        rules: MoveRules,
        accept: Callable[[BlockMove], Answer | None],
        is_barred: Callable[[BlockMove], bool],
    ):
        self.rules, self.accept, self.is_barred = rules, accept, is_barred
        self.work = self.n_fits = 0

    def run(self, node: PartialMove, T: Floats, r: int) -> Answer | None:
        """Find an improving completion by at most r coordinates; None proves there is none."""
        look()
        self.work += T.size
        if self.work > WORK_LIMIT or len(node.taken) > DEPTH_LIMIT:
            raise OutOfReachError(f"the search visited {self.work:.0e} tableau entries")
        if r <= 2:
            return self.end(node, lambda low, high: T[low:high], r)
        if node.room >= 0 and node.value < self.rules.threshold:
            answer = self.try_move(BlockMove(node.value, node.taken, node.dropped))
            if answer is not None:
                return answer
        node, T = screen(node, T, r, self.rules)
        for child, child_T in self.children(node, T, r):
            answer = self.run_clear(child, child_T, r - 1)
            if answer is not None:
                return answer
        return None

    def end(self, node: PartialMove, rows: Callable[[int, int], Floats], r: int) -> Answer | None:
        """Find one for r <= 2, reading off all completions at once."""
        for found in suspects(node, rows, r, self.rules):
            look()
            for move in found:
                answer = self.try_move(move)
                if answer is not None:
                    return answer
        return None

    def try_move(self, move: BlockMove) -> Answer | None:
        """Pass a move to `accept`, counting the fit."""
        look()
        self.n_fits += 1
        if self.n_fits > FIT_LIMIT or move is MORE:
            raise OutOfReachError(
                "columns that nearly depend on each other leave too many changes to be fitted"
            )
        return self.accept(move)

    def run_clear(self, node: PartialMove, T: Floats, r: int) -> Answer | None:
        """Try all completions with nearly dependent coordinates by fits, then `run` on the others.

        A coordinate in the span of the others may still replace one of them.
        """
        is_dependent = node.pivots <= DEPENDENT**2
        is_near = (node.pivots < CLEAR) & ~is_dependent
        for i in np.flatnonzero(is_near):
            answer = self.try_all(node, int(i), r)
            if answer is not None:
                return answer
        left = ~(is_near | is_dependent) if node.n_in == 0 else ~is_near
        if not left.all():
            node, T = _restrict(node, T, left)
        return self.run(node, T, r)

    def try_all(self, node: PartialMove, i: int, r: int) -> Answer | None:
        """Try every completion of a node by at most r coordinates that include position i."""
        if node.n_in == 0 and all(map(self.is_barred, _all_moves(node, (i,), self.rules))):
            return None  # nor any superset
        others = np.delete(np.arange(node.columns.size), i)
        if self.n_fits + sum(comb(others.size, size) for size in range(r)) > FIT_LIMIT:
            self.n_fits: int = FIT_LIMIT
        for size in range(r):
            for rest in combinations(others.tolist(), size):
                for move in _all_moves(node, (i, *rest), self.rules):
                    answer = self.try_move(move)
                    if answer is not None:
                        return answer
        return None

    def children(
        self, node: PartialMove, T: Floats, r: int
    ) -> Iterator[tuple[PartialMove, Floats]]:
        """Yield the node with one more coordinate decided; drops before the others."""
        for j in np.flatnonzero(node.drop):
            yield drop_at(node, T, int(j), self.rules)
        for i in range(node.columns.size):
            step = self.rules.step_in if i < node.n_in else 1
            n_left = max(node.n_in - i - 1, 0) if self.rules.step_in < 0 else 0
            # a coordinate in the span of the others cannot join them
            is_real = node.pivots[i] > DEPENDENT**2
            if is_real and node.room - step + min(n_left, r - 1) >= 0:
                yield free_at(node, T, i, self.rules)


def drop_at(node: PartialMove, T: Floats, j: int, rules: MoveRules) -> tuple[PartialMove, Floats]:
    """Set w_j to zero with a fixed outside; earlier members of S may change, but not drop."""
    rest = np.delete(np.arange(node.columns.size), j)
    w, column = node.drop[j], int(node.columns[j])
    drop = np.where(rest > j, node.drop[rest], 0.0)
    value = node.value - node.v[j] * w + 0.5 * w * w - rules.price
    child = PartialMove(
        node.v[rest] - T[rest, j] * w,
        drop,
        node.pivots[rest],
        node.columns[rest],
        node.n_in - 1,
        value,
        node.room + 1,
        (*node.taken, column),
        (*node.dropped, column),
    )
    return child, T[np.ix_(rest, rest)]


def free_at(node: PartialMove, T: Floats, i: int, rules: MoveRules) -> tuple[PartialMove, Floats]:
    """Pivot on position i and keep the later ones, rescaled to a unit diagonal."""
    inside = i < node.n_in
    sign, step = (rules.sign_in, rules.step_in) if inside else (1.0, 1)
    t, n_in, column = T[i + 1 :, i], max(node.n_in - i - 1, 0), int(node.columns[i])
    T = T[i + 1 :, i + 1 :] - np.outer(sign * t, t)
    left = np.abs(np.diag(T))
    # pivots smaller than this are not used; see `run_clear`
    unit = np.sqrt(np.maximum(left, CLEAR * CLEAR))
    T /= unit[:, None]
    T /= unit
    np.fill_diagonal(T, np.where(np.arange(unit.size) < n_in, rules.sign_in, 1.0))
    child = PartialMove(
        (node.v[i + 1 :] - t * (sign * node.v[i])) / unit,
        np.zeros(unit.size),
        _smaller(node.pivots[i + 1 :], left),
        node.columns[i + 1 :],
        n_in,
        node.value - 0.5 * sign * node.v[i] ** 2 + rules.price * step,
        node.room - step,
        (*node.taken, column),
        (*node.dropped, column) if step < 0 else node.dropped,
    )
    return child, T


def _smaller(pivots: Floats, share: Floats) -> Floats:
    """Scale pivots by a share, without declaring independent columns dependent."""
    return np.where(
        pivots > DEPENDENT**2, np.maximum(pivots * share, 4.0 * DEPENDENT**2), pivots * share
    )


def screen(node: PartialMove, T: Floats, r: int, rules: MoveRules) -> tuple[PartialMove, Floats]:
    """Remove coordinates that no improving completion by at most r holds; O(N²) per pass."""
    while node.columns.size:
        keep, can_drop = _suspects(node, T, r, rules)
        node = node._replace(drop=np.where(can_drop, node.drop, 0.0))
        if keep.all():
            return node, T
        node, T = _restrict(node, T, keep)
    return node, T


def _restrict(node: PartialMove, T: Floats, keep: NDArray[np.bool_]) -> tuple[PartialMove, Floats]:
    """Restrict a node to some of its coordinates."""
    node = node._replace(
        v=node.v[keep], drop=node.drop[keep], pivots=node.pivots[keep], columns=node.columns[keep],
        n_in=int(keep[: node.n_in].sum()),
    )  # fmt: skip
    return node, T[np.ix_(keep, keep)]


def _all_moves(
    node: PartialMove, positions: tuple[int, ...], rules: MoveRules
) -> Iterator[BlockMove]:
    """Yield all moves of exactly these positions: members of S toggled, freed or dropped."""
    ways: list[list[int]] = []
    for i in positions:
        if i >= node.n_in or rules.step_in < 0:
            ways.append([1 if i >= node.n_in else -1])
        else:
            ways.append([0, -1] if node.drop[i] != 0.0 else [0])
    for steps in product(*ways):
        if sum(steps) <= node.room:
            taken = tuple(int(node.columns[i]) for i in positions)
            gone = tuple(j for j, step in zip(taken, steps, strict=True) if step < 0)
            yield BlockMove(node.value, node.taken + taken, node.dropped + gone)


def _suspects(
    node: PartialMove, T: Floats, r: int, rules: MoveRules
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find coordinates that an improving completion may hold, and those it may drop.

    A completion costs at least the sum of its terms: −v²/2d for a freed coordinate, v²/2(1 + t) for
    a removal by toggling, −vw + ½dw² for a drop, where d = 1 − t; plus the prices.
    """
    n_in, spread = node.n_in, _largest_sums(T, r - 1)
    curvature = 1.0 - spread
    freed = -0.5 * node.v**2 / np.maximum(curvature, LEAST_CURVATURE)
    freed[curvature <= 0.0] = -np.inf
    adds, nothing = freed[n_in:] + rules.price, np.empty(0)
    if rules.step_in < 0:
        changes, drops = nothing, 0.5 * node.v[:n_in] ** 2 / (1.0 + spread[:n_in]) - rules.price
        is_open = np.ones(n_in, dtype=bool)
    else:
        w, changes = node.drop[:n_in], freed[:n_in]
        drops = -node.v[:n_in] * w + 0.5 * curvature[:n_in] * w**2 - rules.price
        is_open = w != 0.0
    lists = [np.sort(terms)[:r] for terms in (adds, drops[is_open], changes)]
    limit = rules.threshold - node.value
    after_drop, after_add, after_change = (
        _least_cost(lists, r - 1, node.room - step) for step in (-1, 1, 0)
    )
    can_drop = is_open & (drops + after_drop < limit)
    keep = np.zeros(node.v.size, dtype=bool)
    keep[n_in:] = (adds < limit - after_add) & (after_add < np.inf)
    keep[:n_in] = can_drop
    if changes.size:
        keep[:n_in] |= (changes < limit - after_change) & (after_change < np.inf)
    return keep, np.concatenate([can_drop, np.zeros(node.v.size - n_in, dtype=bool)])


def _largest_sums(T: Floats, count: int) -> Floats:
    """Sum the `count` largest |T_ij|, i ≠ j, of every row; O(N²)."""
    sums = np.empty(T.shape[0])
    for low in range(0, T.shape[0], CHUNK):
        A = np.abs(T[low : low + CHUNK])
        A[np.arange(A.shape[0]), low + np.arange(A.shape[0])] = 0.0
        if count < A.shape[1]:
            A = np.partition(A, A.shape[1] - count, axis=1)[:, -count:]
        sums[low : low + CHUNK] = A.sum(axis=1)
    return sums


def _least_cost(lists: list[Floats], r: int, room: int) -> float:
    """Minimize the sum of at most r sorted terms (additions, drops, changes) within `room`."""
    adds, drops, changes = (np.concatenate([[0.0], np.cumsum(terms)]) for terms in lists)
    best = np.inf
    for n_adds in range(min(r, adds.size - 1) + 1):
        for n_drops in range(max(0, n_adds - room), min(r - n_adds, drops.size - 1) + 1):
            # a change never costs, so use as many as possible
            n_changes = min(r - n_adds - n_drops, changes.size - 1)
            best = min(best, adds[n_adds] + drops[n_drops] + changes[n_changes])
    return best
