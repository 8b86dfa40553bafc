"""Moves of few coordinates, read off a tableau; the best last one or two of them at once.

Around a point w with support S the objective is a quadratic with Hessian Q and gradient g. A move
changes at most k coordinates. Its value is read off one tableau T, scaled to a unit diagonal:

- outside "fixed": T = Q and v = g. A coordinate is freed (an addition, or a change of a member of
  S), or a member of S is dropped, which shifts the gradient.
- outside "refit": T is Q swept on S, so that inside S it holds −(Q_SS)⁻¹ and v = −w. Toggling the
  membership of the coordinates B changes the smooth part by −½ v_B' T_BB⁻¹ v_B, additions and
  removals alike, with all of the support re-fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

CHUNK = 256
"""Rows of the tableau formed or scanned at a time, which bounds the memory."""
FLOOR = 1e-11
"""Relative pivots are raised to this: a column below it is redundant given the others."""


class Move(NamedTuple):
    """Change of the objective, the coordinates that move, and those of them that become zero."""

    change: float
    columns: tuple[int, ...]
    dropped: tuple[int, ...]


class Rules(NamedTuple):
    """What stays the same during a search."""

    price: float
    threshold: float  # a move counts when its change is below this negative number
    sign_in: float  # T_jj for j in S: -1 when toggles remove it, 1 when it is freed
    step_in: int  # change of the number of nonzeros by doing so: -1 or 0


class Node(NamedTuple):
    """A partial move and the tableau that is left, members of S first."""

    v: Floats  # (N,)
    drop: Floats  # (N,) w_j where j can be dropped with the outside fixed, else 0
    columns: Indices  # (N,)
    n_in: int
    value: float
    room: int
    taken: tuple[int, ...]
    dropped: tuple[int, ...]


def chunk_ranges(n_in: int, n: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most CHUNK positions that cover [0, n_in) and then [n_in, n)."""
    for start, stop in ((0, n_in), (n_in, n)):
        for low in range(start, stop, CHUNK):
            yield low, min(low + CHUNK, stop)


def best_completion(
    node: Node, rows: Callable[[int, int], Floats], r: int, rules: Rules
) -> Move | None:
    """The best way to end the move with at most r <= 2 more coordinates, if it is good enough."""
    best = _best_single(node, rules)
    if r == 2:
        for low, high in chunk_ranges(node.n_in, node.columns.size):
            inside = low < node.n_in
            step = rules.step_in if inside else 1
            drops = inside and bool(node.drop.any())
            if 2 * step > node.room and not (inside and node.room >= 0) and not drops:
                continue  # no partner makes the pair feasible
            T = rows(low, high)
            best = min(best, _best_pair(node, T, low, rules), key=_change)
            if drops:
                best = min(best, _best_drop_pair(node, T, low, rules), key=_change)
    return best if best.change < rules.threshold else None


def _best_single(node: Node, rules: Rules) -> Move:
    """Nothing more, one coordinate freed or toggled, or one dropped; O(N)."""
    best = Move(node.value if node.room >= 0 else np.inf, node.taken, node.dropped)
    for start, stop, sign, step in _segments(node, rules):
        if step <= node.room and start < stop:
            # the best is the one with the largest |v|, or the smallest when it is a removal
            i = start + int(np.argmax(sign * np.abs(node.v[start:stop])))
            change = node.value - 0.5 * sign * node.v[i] ** 2 + rules.price * step
            best = min(best, _move(node, change, (i,), (i,) if step < 0 else ()), key=_change)
    candidates = np.flatnonzero(node.drop)
    if candidates.size and node.room >= -1:
        w = node.drop[candidates]
        changes = node.value - node.v[candidates] * w + 0.5 * w * w - rules.price
        j = int(np.argmin(changes))
        i = int(candidates[j])
        best = min(best, _move(node, float(changes[j]), (i,), (i,)), key=_change)
    return best


def _best_pair(node: Node, T: Floats, low: int, rules: Rules) -> Move:
    """The best pair with its first position in the given rows: −½ v_B' T_BB⁻¹ v_B + price."""
    best = Move(np.inf, (), ())
    high, inside = low + T.shape[0], low < node.n_in
    sign, step = (rules.sign_in, rules.step_in) if inside else (1.0, 1)
    a = node.v[low:high]
    for start, stop, other, other_step in _segments(node, rules):
        start = max(start, low)
        if step + other_step > node.room or start >= stop:
            continue
        t, b = T[:, start:stop], node.v[start:stop]
        # (a² σ_b − 2abt + b² σ_a) / (σ_a σ_b − t²)
        gain = np.multiply.outer(-2.0 * a, b)
        gain *= t
        gain += other * a[:, None] ** 2
        gain += sign * b**2
        determinant = sign * other - t**2
        if sign == other:
            np.maximum(determinant, FLOOR, out=determinant)
        gain /= determinant
        if start < high:
            gain[np.tril_indices(high - start, 0, gain.shape[1])] = -np.inf
        i, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
        change = node.value - 0.5 * float(gain[i, j]) + rules.price * (step + other_step)
        pair = (low + int(i), start + int(j))
        dropped = tuple(p for p in pair if p < node.n_in) if rules.step_in < 0 else ()
        best = min(best, _move(node, change, pair, dropped), key=_change)
    return best


def _best_drop_pair(node: Node, T: Floats, low: int, rules: Rules) -> Move:
    """The best pair that drops one of the given rows, with the outside fixed."""
    best = Move(np.inf, (), ())
    local = np.flatnonzero(node.drop[low : low + T.shape[0]])
    if not local.size:
        return best
    first, T = low + local, T[local]
    w = node.drop[first]
    value = node.value - node.v[first] * w + 0.5 * w * w - rules.price
    shifted = node.v - w[:, None] * T  # the gradient once the row is dropped
    itself = (np.arange(first.size), first)
    for start, stop, _, step in _segments(node, rules):
        if step <= node.room + 1 and start < stop:
            change = value[:, None] - 0.5 * shifted**2 + rules.price * step
            change[itself] = np.inf
            best = min(best, _at_minimum(node, change[:, start:stop], first, start, 1), key=_change)
    if node.room >= -2:
        u = node.drop
        change = value[:, None] - shifted * u + 0.5 * u**2 - rules.price
        change[itself] = np.inf
        change[:, u == 0.0] = np.inf
        best = min(best, _at_minimum(node, change, first, 0, 2), key=_change)
    return best


def _at_minimum(node: Node, change: Floats, first: Indices, start: int, n_dropped: int) -> Move:
    i, j = np.unravel_index(int(np.argmin(change)), change.shape)
    pair = (int(first[i]), start + int(j))
    return _move(node, float(change[i, j]), pair, pair[:n_dropped])


def _segments(node: Node, rules: Rules) -> tuple[tuple[int, int, float, int], ...]:
    """(start, stop, sign, step) of the positions inside and outside S."""
    inside = (0, node.n_in, rules.sign_in, rules.step_in)
    return inside, (node.n_in, node.columns.size, 1.0, 1)


def _move(node: Node, change: float, positions: tuple[int, ...], dropped: tuple[int, ...]) -> Move:
    columns = tuple(int(node.columns[p]) for p in positions)
    gone = tuple(int(node.columns[p]) for p in dropped)
    return Move(float(change), node.taken + columns, node.dropped + gone)


def _change(move: Move) -> float:
    return move.change
