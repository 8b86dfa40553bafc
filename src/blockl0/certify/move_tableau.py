"""Moves of few coordinates, read off a tableau; the best final one or two at once.

Around a point w with support S the objective is a quadratic with Hessian Q and gradient g. A move
changes at most k coordinates. Its value is read off one tableau T, scaled to a unit diagonal:

- outside "fixed": T = Q and v = g. A coordinate is freed (an addition, or a change of a member of
  S), or a member of S is dropped, which shifts the gradient.
- outside "refit": T is Q swept on S, so that inside S it holds −(Q_SS)⁻¹ and v = −w. Toggling the
  membership of the coordinates B changes the smooth part by −½ v_B' T_BB⁻¹ v_B, for additions and
  removals alike, with all of the support re-fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.panels import orthogonal_factors
from blockl0.moves.projected_tableau import unit_columns_outside
from blockl0.moves.tableau import CLEAR
from blockl0.problem.orthogonal import DEPENDENT, EPSILON, project_away
from blockl0.problem.problem import Problem
from blockl0.run import look

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

CHUNK = 256
"""Rows of the tableau computed or scanned at a time, which bounds the memory."""
RELATIVE_ROUNDING = 1e-9
"""Rounding of values read off clear pivots, relative to their terms."""
LEAST_PIVOT = 1e-24
"""Pivot of a column in the span of the support, so that swaps with it can be read off."""


class BlockMove(NamedTuple):
    """Change of the objective, the coordinates that move, and those that become zero."""

    change: float
    columns: tuple[int, ...]
    dropped: tuple[int, ...]


LISTED = 1000
"""Candidate pairs listed per chunk of rows; for a bad point almost all pairs are candidates."""
MORE = BlockMove(np.inf, (), ())
"""Marks that further candidates were not listed."""


class MoveRules(NamedTuple):
    """Constants of a search."""

    price: float
    threshold: float  # a move counts if its change is below this negative number
    sign_in: float  # T_jj for j in S: -1 if toggling removes it, 1 if it is freed
    step_in: int  # change of the number of nonzeros by doing so: -1 or 0
    rounding: float = RELATIVE_ROUNDING  # relative rounding of values read off the tableau


class PartialMove(NamedTuple):
    """A partial move and the remaining tableau, members of S first."""

    v: Floats  # (N,)
    drop: Floats  # (N,) w_j where j can be dropped with a fixed outside, else 0
    pivots: Floats  # (N,) squared distance of unit columns from the span of those in; 1 inside S
    columns: Indices  # (N,)
    n_in: int
    value: float
    room: int
    taken: tuple[int, ...]
    dropped: tuple[int, ...]


def chunk_ranges(n_in: int, n: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of at most CHUNK positions that cover [0, n_in) and then [n_in, n)."""
    for start, stop in ((0, n_in), (n_in, n)):
        for low in range(start, stop, CHUNK):
            yield low, min(low + CHUNK, stop)


class MoveTableau:
    """The quadratic around w, computed some rows at a time, with columns scaled to unit norm.

    With a re-fitted outside, w is the best point on its support, whose columns are independent.
    Pivots of columns near its span, and all of them if it is nearly dependent itself, come from
    orthogonal projections. Building it costs O(m n s); `rows` costs O(m n) per row outside S, O(n
    s) inside.
    """

    model: Problem
    design: Any
    weights: Floats | None
    refit: bool
    members: Indices

    def __init__(self, model: Problem, w: Floats, grad: Floats, members: Indices, refit: bool):
        self.model, self.design, self.weights = model, model.design, model.sample_weight
        self.refit, self.members = refit, members
        self.rounding = RELATIVE_ROUNDING
        norms = np.sqrt(model.design.sq_norms(self.weights) + model.ridge)
        # a zero column must stay zero after scaling, whatever its coefficient
        self.scale: Any = np.where(norms > 0.0, norms, np.finfo(float).tiny ** 0.5)
        self.U = self._products(members)
        self.U[members, np.arange(members.size)] += model.ridge / self.scale[members] ** 2
        v, w_in = grad / self.scale, (w * self.scale)[members]
        pivots = np.where(norms > 0.0, 1.0, 0.0)
        can_drop = ~np.isin(members, model.keep)
        if refit:
            v, pivots = self._sweep(v, w, members, pivots)
        place = np.flatnonzero(can_drop) if refit else np.arange(members.size)
        self._order(v, pivots, members, place, norms)
        drop = np.zeros(self.columns.size)
        if not refit:
            drop[: place.size] = np.where(can_drop, w_in, 0.0)[self.place] * self.unit[: place.size]
        left = np.ones(self.columns.size)
        left[place.size :] = np.maximum(pivots[self.columns[place.size :]], LEAST_PIVOT)
        self.root: PartialMove = PartialMove(
            v[self.columns] / self.unit, drop, left, self.columns, place.size, 0.0,
            model.sparsity.budget - members.size, (), (),
        )  # fmt: skip

    def _sweep(
        self, g: Floats, w: Floats, members: Indices, pivots: Floats
    ) -> tuple[Floats, Floats]:
        """Compute v and the diagonal with S swept, and store K = inv(Q_SS) and W = U K."""
        A, b, scale = self.model.unit_columns(members)
        Q, R = orthogonal_factors(A)
        inverse = np.linalg.inv(R)
        self.K = inverse @ inverse.T
        # regressions on columns at distance d are accurate to the machine precision over d
        self.rounding: float = max(
            RELATIVE_ROUNDING, 64.0 * EPSILON * float(np.sqrt(self.K.diagonal().max(initial=1.0)))
        )
        self.W = self.U @ self.K
        v = g - self.W @ g[members]
        diag = pivots - np.einsum("ij,ij->i", self.W, self.U)
        outside = pivots > 0.0
        outside[members] = False
        if self.K.diagonal().max(initial=1.0) * CLEAR < 1.0:
            outside &= diag < CLEAR
        residual = b - A @ (w[members] * scale)
        for low in range(0, np.count_nonzero(outside), CHUNK):
            look()
            part = np.flatnonzero(outside)[low : low + CHUNK]
            X, own, _ = unit_columns_outside(self.model, part)
            X = np.vstack([X, np.zeros((len(A) - len(X), part.size))])
            rest, shares = project_away(Q, X)
            self.W[part] = (inverse @ shares).T
            diag[part] = np.einsum("ij,ij->j", rest, rest) + own**2
            v[part] = -(residual @ rest)
        v[members] = -w[members] * self.scale[members]
        diag[members] = self.K.diagonal()
        return v, diag

    def rows(self, low: int, high: int) -> Floats:
        """Compute T[low:high, :] in the order of `columns`, with unit diagonal.

        The rows are all inside S or all outside.
        """
        look()
        a, n_in = self.columns[low:high], self.root.n_in
        if low < n_in:
            place = self.place[low:high]
            T = (self.W if self.refit else self.U)[np.ix_(self.columns, place)].T
            if self.refit:
                T[:, :n_in] = -self.K[np.ix_(place, self.place)]
        else:
            T = self._products(a)[self.columns].T
            if self.refit:
                T = T - self.W[a] @ self.U[self.columns].T
                T[:, :n_in] = self.W[np.ix_(a, self.place)]
        T = T / self.unit[low:high, None] / self.unit
        diagonal = np.arange(low, high)
        T[diagonal - low, diagonal] = -1.0 if self.refit and low < n_in else 1.0
        return T

    def dense(self) -> Floats:
        """Compute the whole tableau (N, N)."""
        chunks = chunk_ranges(self.root.n_in, self.columns.size)
        N = self.columns.size
        return np.vstack([np.empty((0, N)), *(self.rows(low, high) for low, high in chunks)])

    def _products(self, idx: Indices) -> Floats:
        """Compute X' diag(weights) X[:, idx] for unit columns, (n, |idx|)."""
        X = self.design.columns(idx)
        if self.weights is not None:
            X *= self.weights[:, None]
        return self.design.cross(X, slice(None)).T / self.scale[:, None] / self.scale[idx]

    def _order(
        self, v: Floats, diag: Floats, members: Indices, place: Indices, norms: Floats
    ) -> None:
        """Put the most promising coordinates first: cheap removals, then strong additions."""
        unit = np.sqrt(np.maximum(diag, LEAST_PIVOT))
        score = np.abs(v) / unit
        is_out = norms > 0.0
        is_out[members] = False
        out = np.flatnonzero(is_out)
        self.place: Any = place[np.argsort(score[members[place]], kind="stable")]
        out = out[np.argsort(-score[out], kind="stable")]
        self.columns: NDArray[np.int64] = np.concatenate([members[self.place], out])
        self.unit: Any = unit[self.columns]


def suspects(
    node: PartialMove, rows: Callable[[int, int], Floats], r: int, rules: MoveRules
) -> Iterator[list[BlockMove]]:
    """Yield lists of promising ways to end the move with at most r <= 2 more coordinates.

    The best come first in each list. All other ways fail by more than rounding.
    """
    yield _singles(node, rules)
    if r < 2:
        return
    for low, high in chunk_ranges(node.n_in, node.columns.size):
        inside = low < node.n_in
        step = rules.step_in if inside else 1
        drops = inside and bool(node.drop.any())
        if 2 * step > node.room and not (inside and node.room >= 0) and not drops:
            continue  # no partner makes the pair feasible
        T = rows(low, high)
        found = _pairs(node, T, low, rules)
        if drops:
            found += _drop_pairs(node, T, low, rules)
        yield sorted(found, key=_change)


def _singles(node: PartialMove, rules: MoveRules) -> list[BlockMove]:
    """List completions by nothing, or by one coordinate freed, toggled or dropped; O(N)."""
    found = []
    if node.room >= 0 and node.value < rules.threshold:
        found.append(BlockMove(node.value, node.taken, node.dropped))
    for start, stop, sign, step in _segments(node, rules):
        if step <= node.room and start < stop:
            gain = 0.5 * node.v[start:stop] ** 2
            change = node.value - sign * gain + rules.price * step
            is_real = node.pivots[start:stop] > DEPENDENT**2
            is_real &= change - rules.rounding * gain < rules.threshold
            for i in np.flatnonzero(is_real).tolist():
                single = (start + i,)
                found.append(_move(node, change[i], single, single if step < 0 else ()))
    candidates = np.flatnonzero(node.drop)
    if candidates.size and node.room >= -1:
        w, v = node.drop[candidates], node.v[candidates]
        change = node.value - v * w + 0.5 * w * w - rules.price
        rounding = rules.rounding * (np.abs(v * w) + 0.5 * w * w)
        for j in np.flatnonzero(change - rounding < rules.threshold):
            i = int(candidates[j])
            found.append(_move(node, change[j], (i,), (i,)))
    return sorted(found, key=_change)


def _pairs(node: PartialMove, T: Floats, low: int, rules: MoveRules) -> list[BlockMove]:
    """List pairs with their first position in the given rows."""
    found: list[BlockMove] = []
    inside = low < node.n_in
    sign, step = (rules.sign_in, rules.step_in) if inside else (1.0, 1)
    for start, stop, other, other_step in _segments(node, rules):
        start, both = max(start, low), step + other_step
        # removals alone never help without a price
        if both > node.room or start >= stop or (both < 0 and rules.price == 0.0):
            continue
        change, wanted = _pair_changes(node, T, low, (start, stop), (sign, other), rules, both)
        for i, j in _listed(change, wanted, found):
            pair = (low + i, start + j)
            gone = tuple(p for p in pair if p < node.n_in) if rules.step_in < 0 else ()
            found.append(_move(node, change[i, j], pair, gone))
    return found


def _pair_changes(
    node: PartialMove,
    T: Floats,
    low: int,
    part: tuple[int, int],
    signs: tuple[float, float],
    rules: MoveRules,
    step: int,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Compute changes −½ v_B' T_BB⁻¹ v_B + price of pairs, and mark promising ones.

    −v'T⁻¹v is (a² σ_b − 2abt + b² σ_a) / (t² − σ_a σ_b).
    """
    (start, stop), (sign, other), high = part, signs, low + T.shape[0]
    a, b, t = node.v[low:high], node.v[start:stop], T[:, start:stop]
    gain = np.multiply.outer(-2.0 * a, b)
    gain *= t
    gain += other * a[:, None] ** 2
    gain += sign * b**2
    determinant = sign * other - t**2
    is_near = None
    if sign == other:
        pivots = np.minimum.outer(node.pivots[low:high], node.pivots[start:stop])
        # a column in the span of the others makes no support
        gain[pivots <= DEPENDENT**2] = -np.inf
        is_near = ((determinant < CLEAR) | (pivots < CLEAR)) & np.isfinite(gain)
        np.maximum(determinant, CLEAR, out=determinant)
    gain /= determinant
    change = node.value + rules.price * step - 0.5 * gain
    once = np.arange(start, stop) > np.arange(low, high)[:, None]
    change[~once] = np.inf
    largest = 2.0 * (np.max(a**2) + np.max(b**2)) * (1.0 + np.max(np.abs(t)))
    wanted = change < rules.threshold + rules.rounding * largest / np.min(np.abs(determinant))
    if wanted.any():
        terms = a[:, None] ** 2 + b**2 + 2.0 * np.abs(np.outer(a, b) * t)
        wanted = change - rules.rounding * terms / np.abs(determinant) < rules.threshold
    return change, wanted if is_near is None else wanted | (is_near & once)


def _listed(
    change: Floats, wanted: NDArray[np.bool_], found: list[BlockMove]
) -> list[tuple[int, int]]:
    """Return the positions of the best promising changes; append MORE to `found` if there are
    others.
    """
    rows, columns = np.nonzero(wanted)
    if rows.size > LISTED:
        best = np.argpartition(change[rows, columns], LISTED)[:LISTED]
        rows, columns = rows[best], columns[best]
        found.append(MORE)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _drop_pairs(node: PartialMove, T: Floats, low: int, rules: MoveRules) -> list[BlockMove]:
    """List pairs that drop one of the given rows, with a fixed outside."""
    found: list[BlockMove] = []
    local = np.flatnonzero(node.drop[low : low + T.shape[0]])
    if not local.size:
        return found
    first, T = low + local, T[local]
    w = node.drop[first]
    value = node.value - node.v[first] * w + 0.5 * w * w - rules.price
    size = np.abs(node.v[first] * w) + 0.5 * w * w
    shifted = node.v - w[:, None] * T  # gradient after dropping the row
    itself = (np.arange(first.size), first)
    for start, stop, _, step in _segments(node, rules):
        if step <= node.room + 1 and start < stop:
            gain = 0.5 * shifted**2
            change = value[:, None] - gain + rules.price * step
            change[itself] = np.inf
            # rounding must not confuse the added column with the dropped one
            rounding = rules.rounding * (
                size[:, None] + gain + 0.5 * node.v**2 + (w[:, None] * T) ** 2
            )
            found += _within(node, change, rounding, first, (start, stop), 1, rules)
    if node.room >= -2:
        u = node.drop
        change = value[:, None] - shifted * u + 0.5 * u**2 - rules.price
        change[itself] = np.inf
        change[:, u == 0.0] = np.inf
        rounding = rules.rounding * (size[:, None] + np.abs(shifted * u) + 0.5 * u**2)
        found += _within(node, change, rounding, first, (0, u.size), 2, rules)
    return found


def _within(
    node: PartialMove, change: Floats, rounding: Floats, first: Indices, part: tuple[int, int],
    n_dropped: int, rules: MoveRules,
) -> list[BlockMove]:  # fmt: skip
    start, stop = part
    wanted = (change - rounding < rules.threshold)[:, start:stop]
    found: list[BlockMove] = []
    for i, j in _listed(change[:, start:stop], wanted, found):
        pair = (int(first[i]), start + j)
        found.append(_move(node, change[i, start + j], pair, pair[:n_dropped]))
    return found


def _segments(node: PartialMove, rules: MoveRules) -> tuple[tuple[int, int, float, int], ...]:
    """Return (start, stop, sign, step) of the positions inside and outside S."""
    inside = (0, node.n_in, rules.sign_in, rules.step_in)
    return inside, (node.n_in, node.columns.size, 1.0, 1)


def _move(
    node: PartialMove, change: float, positions: tuple[int, ...], dropped: tuple[int, ...]
) -> BlockMove:
    columns = tuple(int(node.columns[p]) for p in positions)
    gone = tuple(int(node.columns[p]) for p in dropped)
    return BlockMove(float(change), node.taken + columns, node.dropped + gone)


def _change(move: BlockMove) -> float:
    return move.change
