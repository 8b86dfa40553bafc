"""Every compiled function of blockl0, in one file.

Plain functions of arrays, scalars and NamedTuples of arrays are cached on disk, so that the next
process starts in milliseconds. All of them live here because editing a callee in another file would
leave a stale cached caller behind.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from blockl0.compiling import cached

# `kernel` is called from Python; `inner` only from kernels, which saves compiling a wrapper.
# None of them makes an array: without reference counting there is less to compile.
_options: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
kernel: Callable[[Any], Any] = cached(**_options)
_options_inner = {**_options, "no_cpython_wrapper": True}
inner: Callable[[Any], Any] = njit(**_options_inner)
# A part of a kernel, split off for readability: it is inlined into its caller before compilation,
# so it takes no compile time of its own.
part: Callable[[Any], Any] = njit(inline="always", **_options_inner)


@inner
def smaller(a, b):
    """Return min(a, b), which numba would otherwise compile for the options of every caller."""
    return b if b < a else a


@inner
def larger(a, b):
    """Return max(a, b), for the same reason."""
    return b if b > a else a


# --------------------------------------------------------------------------------------------------
# 1. The exact block search:  min_z  ½ z'Hz + c'z + price·nnz(z)   s.t.  nnz(z) <= budget
# --------------------------------------------------------------------------------------------------


class Tree(NamedTuple):
    """State of the depth-first search: a level per *include* decision, exclusions happen in place.

    A level splits the coordinates into I (included), E (excluded) and U (undecided). Its slots are
    the members of U; a slot is removed by moving the last one into its place.
    """

    tableau: NDArray[np.float64]  # (levels + 1, 2, k, k)
    slots: NDArray[np.float64]  # (levels + 1, 7, k + 2)
    index: NDArray[np.int64]  # (levels + 1, 3, k)
    value: NDArray[np.float64]  # (levels + 1, 5)
    count: NDArray[np.int64]  # (levels + 1, 5)
    notes: NDArray[np.int64]  # (capacity, k + 2)


# Few arrays, because every call compiles the passing of each. Per level they hold:
# tableau: the Schur complement M of H on U after eliminating I, and K = inv(M); of K only the upper
# triangle is kept, of M both, since the relaxation reads whole rows
FORWARD, BACKWARD = 0, 1
# slots: gradient g on U at the best point on I; z = -K g, the point with all of U let in; the point
# of the perspective relaxation; d > 0 with M - diag(d) positive semidefinite
GRADIENT, POINT, RELAXED, CURVATURE = 0, 1, 2, 3
# index: the coordinate in each slot
COORDINATE = 0
# value: f(I), f(I + U), lower bound on what is open at the level, price of the relaxation, and the
# product of the pivots of I: of unit columns none is nearer to the others than its root
F_IN, F_ALL, BOUND, MULTIPLIER, APART = 0, 1, 2, 3, 4
# count: |U|, |I|, slot whose exclusion is still open (or -1), |U| when d was last raised, |I|
# when I itself was last offered
SIZE, N_IN, BRANCH, FRESH, OFFERED = 0, 1, 2, 3, 4

# The last level, [-1], belongs to the search as a whole:
# tableau: scratch for factorizations
SCRATCH = 0
# slots: a tableau column; single drops; a sorted list; memberships; h = g + Mx; scores; and the
# pivots of M up to which a coordinate is redundant
COLUMN, DROP, TOP, MEMBERSHIP, FIELD, SCORE, TINY = 0, 1, 2, 3, 4, 5, 6
# index: the members of I in order; the incumbent; slots to decide next, j + 1 to include slot j and
# -(j + 1) to exclude it
CHOSEN, BEST, ACTIONS = 0, 1, 2
# value: of the incumbent; tolerance on improvements; rounding of values for orthogonal columns,
# or 0 if H is exact; rounding of the bounds; and the squared distance of the nearest unit column
# from all others, 0 without a backward side
BEST_VALUE, SLACK, BLUR, BOUND_ERROR, NEAREST = 0, 1, 2, 3, 4
# count: level of the search (-1: finished), size of the incumbent, nodes, slots to decide next, and
# notes
LEVEL, BEST_SIZE, NODES, N_ACTIONS, N_NOTES = 0, 1, 2, 3, 4
# A search whose H carries rounding (BLUR > 0) names no incumbent: it notes the supports to check
# on the data, and pauses. A note holds: the coordinates in, the number that may join them (0:
# only this support is in doubt), and then the coordinates, included ones first
NOTE_IN, NOTE_OPEN, NOTE_COORDINATES = 0, 1, 2

CLOSED = -1  # results of `examine`, which otherwise names the slot to branch on
FIXED = -2
RAISE_AT = 0.85  # raise the curvature again when U has shrunk to this share
STALL = 0.02  # stop relaxing when a pass closes less than this share of the gap
DAMPING = 0.3  # of the multiplier; undamped updates alternate between none and all active
POWER_STEPS, SHIFT_SHARE = 6, 0.95  # steps that estimate the largest shift, and the share tried
SHIFT_TRIALS, SHIFT_FALL = 10, 0.7  # shifts tried, each this share of the one before
PIVOT_FLOOR = 1e-10  # relative: smaller pivots are redundant coordinates
ROUNDING, EPSILON = 1e-13, 4e-16  # relative, of values; and of one operation on the tableau
SINGULAR = 1e-9  # relative pivot below which a block has no backward side


@inner
def copy_level(tree, src, dst, pivoted):
    """Copy a level but for the tableau that the next pivot computes anew."""
    u, other = tree.count[src, SIZE], 1 - pivoted
    for q in range(5):
        tree.value[dst, q], tree.count[dst, q] = tree.value[src, q], tree.count[src, q]
    tree.count[dst, BRANCH] = -1
    for i in range(u):
        tree.index[dst, COORDINATE, i] = tree.index[src, COORDINATE, i]
        for q in range(4):
            tree.slots[dst, q, i] = tree.slots[src, q, i]
        # of the inverse only the upper triangle is kept
        for l in range(i if pivoted == FORWARD else 0, u):
            tree.tableau[dst, other, i, l] = tree.tableau[src, other, i, l]


@inner
def decide_slot(tree, src, dst, j, include):
    """Move slot j from U to I (pivot M, drop j from K) or to E (pivot K, drop j from M).

    Writes level `dst`, which may be `src`. O(u²).
    """
    slots, index, value, count = tree.slots[dst], tree.index[dst], tree.value[dst], tree.count[dst]
    u, v, pivoted = tree.count[src, SIZE], tree.slots[-1, COLUMN], FORWARD if include else BACKWARD
    row, last = GRADIENT if include else POINT, u - 1
    A, P, Q = tree.tableau[src, pivoted], tree.tableau[dst, pivoted], tree.tableau[dst, 1 - pivoted]
    if src != dst:
        copy_level(tree, src, dst, pivoted)
    for i in range(u):
        v[i] = A[i, j] if i < j else A[j, i]
    head, pivot = slots[row, j], v[j]
    # A - v v' / pivot, and the same for the bordering vector
    for i in range(u):
        a = v[i] / pivot
        slots[row, i] -= a * head
        for l in range(0 if include else i, u):
            P[i, l] = A[i, l] - a * v[l]
    if include:
        tree.index[-1, CHOSEN, count[N_IN]] = index[COORDINATE, j]
        count[N_IN] += 1
        value[F_IN] -= 0.5 * head * head / pivot
        if tree.value[-1, BLUR] > 0.0:
            value[APART] *= pivot
    else:
        value[F_ALL] += 0.5 * head * head / pivot
    # the last slot fills the gap
    for i in range(u):
        if i < j:
            P[i, j], Q[i, j] = P[i, last], Q[i, last]
        elif j < i < last:
            P[j, i], Q[j, i] = P[i, last], Q[i, last]
    P[j, j], Q[j, j] = P[last, last], Q[last, last]
    M = tree.tableau[dst, FORWARD]
    for i in range(last):
        M[larger(i, j), smaller(i, j)] = M[smaller(i, j), larger(i, j)]
    for q in range(4):
        slots[q, j] = slots[q, last]
    index[COORDINATE, j], count[SIZE] = index[COORDINATE, last], last


@inner
def note(tree, level, slot, second, is_open):
    """Note I plus the given slots (or -1); if open, with the slots that may join them.

    Those are earlier slots, and later ones whose pivots are well above rounding, since the others
    were noted before. `search_tree` has ensured that there is room.
    """
    u, n, index = tree.count[level, SIZE], tree.count[level, N_IN], tree.index[level, COORDINATE]
    row, M = tree.notes[tree.count[-1, N_NOTES]], tree.tableau[level, FORWARD]
    for i in range(n):
        row[NOTE_COORDINATES + i] = tree.index[-1, CHOSEN, i]
    if slot >= 0:
        row[NOTE_COORDINATES + n] = index[slot]
        n += 1
    if second >= 0:
        row[NOTE_COORDINATES + n] = index[second]
        n += 1
    row[NOTE_IN], row[NOTE_OPEN] = n, 0
    if is_open:
        for l in range(u):
            if l < slot or (l > slot and M[l, l] > tree.slots[-1, TINY, index[l]]):
                row[NOTE_COORDINATES + n + row[NOTE_OPEN]] = index[l]
                row[NOTE_OPEN] += 1
    tree.count[-1, N_NOTES] += 1


@inner
def note_leaves(tree, level, price):
    """Note I plus each slot that may improve the incumbent, given rounding.

    Values of a support are wrong by no more than (rounding of H) ‖w‖₁², which is the rounding over
    the product of the pivots.
    """
    u, M, g = tree.count[level, SIZE], tree.tableau[level, FORWARD], tree.slots[level, GRADIENT]
    base = tree.value[level, F_IN] + price * (tree.count[level, N_IN] + 1)
    cutoff = tree.value[-1, BEST_VALUE] - tree.value[-1, SLACK]
    error = tree.value[-1, BLUR] / tree.value[level, APART]
    for j in range(u):
        if base + (-0.5 * g[j] * g[j] - error) / M[j, j] < cutoff:
            note(tree, level, j, -1, False)


@inner
def note_pairs(tree, level, price):
    """Note I plus each pair of slots that may improve; return False if there is no room for all.

    A pair that nearly depends on I may always improve.
    """
    u, M, g = tree.count[level, SIZE], tree.tableau[level, FORWARD], tree.slots[level, GRADIENT]
    base = tree.value[level, F_IN] + price * (tree.count[level, N_IN] + 2)
    need = 2.0 * (base - tree.value[-1, BEST_VALUE] + tree.value[-1, SLACK])
    error = 2.0 * tree.value[-1, BLUR] / tree.value[level, APART]
    for i in range(u):
        mii, gi = M[i, i], g[i]
        for j in range(i + 1, u):
            mij, mjj = M[i, j], M[j, j]
            det = mii * mjj - mij * mij
            gain = gi * gi * mjj - 2.0 * gi * g[j] * mij + g[j] * g[j] * mii + error
            if gain > need * det or det <= mii * tree.slots[-1, TINY, 0]:
                if tree.count[-1, N_NOTES] >= tree.notes.shape[0]:
                    return False
                note(tree, level, i, j, False)
    return True


@inner
def accept(tree, level, value, first, second):
    """Make I plus the given slots (or -1) the incumbent."""
    index, n = tree.index[-1], tree.count[level, N_IN]
    for i in range(n):
        index[BEST, i] = index[CHOSEN, i]
    if first >= 0:
        index[BEST, n] = tree.index[level, COORDINATE, first]
        n += 1
    if second >= 0:
        index[BEST, n] = tree.index[level, COORDINATE, second]
        n += 1
    tree.count[-1, BEST_SIZE] = n
    tree.value[-1, BEST_VALUE] = value


@inner
def try_pairs(tree, level, price):
    """Offer I plus every pair of slots as incumbents; O(u²/2) without a division per pair."""
    u, M, g = tree.count[level, SIZE], tree.tableau[level, FORWARD], tree.slots[level, GRADIENT]
    base = tree.value[level, F_IN] + price * (tree.count[level, N_IN] + 2)
    need = 2.0 * (base - tree.value[-1, BEST_VALUE])
    for i in range(u):
        mii, gi = M[i, i], g[i]
        for j in range(i + 1, u):
            mij, mjj = M[i, j], M[j, j]
            det = mii * mjj - mij * mij
            gain = gi * gi * mjj - 2.0 * gi * g[j] * mij + g[j] * g[j] * mii
            if (
                gain > need * det
                and det > mii * tree.slots[-1, TINY, tree.index[level, COORDINATE, j]]
            ):
                value = base - 0.5 * gain / det
                if value < tree.value[-1, BEST_VALUE]:
                    accept(tree, level, value, i, j)
                    need = 2.0 * (base - value)


@inner
def keep_top(top, count, limit, value):
    """Insert value into the descending list top[:count] of at most `limit`; return its length."""
    if count < limit:
        i = count
        count += 1
    elif limit == 0 or value <= top[count - 1]:
        return count
    else:
        i = count - 1
    while i > 0 and top[i - 1] < value:
        top[i] = top[i - 1]
        i -= 1
    top[i] = value
    return count


@inner
def scan_slots(tree, level, price, room):
    """Offer the best single addition; bound the node by single drops; pick a slot; O(ut).

    Returns the bound in general and with three or more additions, the slot of the costliest drop,
    and how many redundant slots were queued for exclusion: a slot whose pivot vanished lies in the
    span of I and can never help below. With t of the u undecided slots let in, the rest is dropped,
    and dropping a set costs at least the largest single drop z_j²/2K_jj in it.
    """
    M, K, slots = tree.tableau[level, FORWARD], tree.tableau[level, BACKWARD], tree.slots[level]
    index, whole, top = tree.index[level, COORDINATE], tree.slots[-1], tree.slots[-1, TOP]
    u, n_in, cutoff = tree.count[level, SIZE], tree.count[level, N_IN], tree.value[-1, BEST_VALUE]
    error, is_blurred = tree.value[-1, BOUND_ERROR], tree.value[-1, BLUR] > 0.0
    base = tree.value[level, F_ALL] + price * n_in
    most, n_top, first = smaller(room, u), 0, 0
    if price > 0.0:
        # each addition costs the price, and f(I + U) is the lowest possible value
        most = np.int64(smaller(float(most), larger(0.0, cutoff + error - base) / price))
    else:
        # without a price more additions never hurt, so only the largest t counts
        first = most
    gain, single, cost, branch, n_redundant = 0.0, -1, -1.0, 0, 0
    for j in range(u - 1, -1, -1):
        g, z, pivot = slots[GRADIENT, j], slots[POINT, j], M[j, j]
        if not pivot > whole[TINY, index[j]]:
            tree.index[-1, ACTIONS, n_redundant] = -(j + 1)
            n_redundant += 1
            if is_blurred and room > 0:
                # it may be in the span of I, or only near it
                note(tree, level, j, -1, True)
        elif 0.5 * g * g > gain * pivot:
            gain, single = 0.5 * g * g / pivot, j
        drop = 0.5 * z * z / K[j, j]
        whole[DROP, j] = drop
        n_top = keep_top(top, n_top, most + 1, drop)
        if drop > cost:
            cost, branch = drop, j
    value = tree.value[level, F_IN] + price * (n_in + 1) - gain
    if single >= 0 and room > 0 and value < cutoff and not is_blurred:
        accept(tree, level, value, single, -1)
    bound, bound3 = np.inf, np.inf
    for t in range(first, most + 1):
        value = base + price * t
        if t < u:
            value += top[t]
        bound = smaller(bound, value)
        if t >= 3:
            bound3 = smaller(bound3, value)
    return bound, bound3, branch, n_redundant


@inner
def relax_coordinate(h, m, d, price):
    """Minimize ½(m - d)x² + hx + min{ d x²/2t + price·t : 0 <= t <= 1 } over x."""
    edge = np.sqrt(2.0 * d * price)
    if abs(h) <= edge:
        return 0.0
    size = (abs(h) - edge) / (m - d)
    if not size * d <= edge:
        size = abs(h) / m
    return -size if h > 0.0 else size


@inner
def relax_value(tree, level, price, room):
    """Compute a lower bound on f(I + A) - f(I) + price·|A|, A in U, |A| <= room, from x.

    With b = g + (M - D)x weak duality gives, for every x, -½x'(M - D)x - sum of the `room` largest
    (b_j²/2d_j - price)_+. Needs slots[-1, FIELD] = g + Mx; fills slots[-1, SCORE] with b_j²/2d_j -
    price and, if the budget binds, slots[-1, TOP] with the largest.
    """
    u, x, d = tree.count[level, SIZE], tree.slots[level, RELAXED], tree.slots[level, CURVATURE]
    h, score, top = tree.slots[-1, FIELD], tree.slots[-1, SCORE], tree.slots[-1, TOP]
    value, positive, n_positive, count, most = 0.0, 0.0, 0, 0, smaller(room, u)
    for j in range(u):
        b = h[j] - d[j] * x[j]
        value -= 0.5 * x[j] * (b - tree.slots[level, GRADIENT, j])
        score[j] = 0.5 * b * b / d[j] - price
        if score[j] > 0.0:
            positive += score[j]
            n_positive += 1
    top[most - 1] = top[most] = 0.0
    if n_positive > most:
        # the budget binds: only the largest scores count
        positive = 0.0
        for j in range(u):
            count = keep_top(top, count, most + 1, score[j])
        for i in range(most):
            positive += top[i]
    return value - positive


@inner
def balance_multiplier(tree, level, room, mu):
    """Find the price at which the memberships t_j = min(1, |x_j| sqrt(d_j/2mu)) sum to `room`."""
    x, d = tree.slots[level, RELAXED], tree.slots[level, CURVATURE]
    membership, active = tree.slots[-1, MEMBERSHIP], 0
    for j in range(tree.count[level, SIZE]):
        if x[j] != 0.0:
            membership[active] = abs(x[j]) * np.sqrt(0.5 * d[j])
            active += 1
    if active == 0:
        return 0.5 * mu
    for _ in range(20):
        full, part, root = 0, 0.0, np.sqrt(mu)
        for j in range(active):
            if membership[j] >= root:
                full += 1
            else:
                part += membership[j] / root
        if part == 0.0 or full >= room:
            factor = 2.0 if full + part > room else 0.5
        else:
            factor = smaller(larger((part / (room - full)) ** 2, 0.25), 4.0)
        if abs(factor - 1.0) < 1e-2:
            break
        mu *= factor
    return mu


@inner
def relax_node(tree, level, price, room, passes):
    """Coordinate descent on the perspective relaxation; return the bound of the last pass.

    The relaxation replaces price·nnz and the budget by memberships t_j in [0, 1]; its point is kept
    as the warm start of the children. A pass costs O(u) plus O(u) for each coordinate that moves.
    """
    u, M = tree.count[level, SIZE], tree.tableau[level, FORWARD]
    x, d, h = tree.slots[level, RELAXED], tree.slots[level, CURVATURE], tree.slots[-1, FIELD]
    base = tree.value[level, F_IN] + price * tree.count[level, N_IN]
    cutoff = tree.value[-1, BEST_VALUE] - tree.value[-1, SLACK] + tree.value[-1, BOUND_ERROR]
    for i in range(u):
        h[i] = tree.slots[level, GRADIENT, i]
    # the first sweep only gathers h = g + Mx, the others minimize
    mu, best, value = larger(price, tree.value[level, MULTIPLIER]), -np.inf, -np.inf
    for sweep in range(passes + 1):
        for j in range(u):
            step = x[j]
            if sweep > 0:
                step = relax_coordinate(h[j] - M[j, j] * x[j], M[j, j], d[j], mu) - x[j]
                x[j] += step
            if step != 0.0:
                row = M[j]
                for i in range(u):
                    h[i] += step * row[i]
        if sweep == 0:
            continue
        value = base + relax_value(tree, level, price, room)
        if value >= cutoff or value - best < STALL * (cutoff - value):
            break
        best = value
        mu = larger(price, mu * (balance_multiplier(tree, level, room, mu) / mu) ** DAMPING)
    tree.value[level, MULTIPLIER] = mu
    return value


@inner
def factor_shifted(M, K, d, t, R, u):
    """Factor R'ER = M - diag(d) - t diag(1/K_jj), R unit upper; return False if indefinite."""
    for i in range(u):
        for j in range(i, u):
            R[i, j] = M[i, j]
        R[i, i] -= d[i] + t / K[i, i]
    for l in range(u):
        pivot = R[l, l]
        if not pivot > 1e-12 * M[l, l]:
            return False
        for i in range(l + 1, u):
            a = R[l, i] / pivot
            for j in range(i, u):
                R[i, j] -= a * R[l, j]
        for i in range(l + 1, u):
            R[l, i] /= pivot
    return True


@part
def largest_shift(R, K, x, u):
    """Take one power iteration step towards the largest t of `raise_curvature`.

    With R'ER = M - diag(d) and S = diag(K)^½, the largest t with M - diag(d) - t S^-2 >= 0 is one
    over the largest eigenvalue of S^-1 inv(R'ER) S^-1. Returns its estimate, slightly reduced.
    """
    norm = 0.0
    for l in range(u):
        x[l] /= np.sqrt(K[l, l])
    for l in range(u):
        for i in range(l + 1, u):
            x[i] -= R[l, i] * x[l]
    for l in range(u - 1, -1, -1):
        x[l] /= R[l, l]
        for i in range(l + 1, u):
            x[l] -= R[l, i] * x[i]
    for l in range(u):
        x[l] /= np.sqrt(K[l, l])
        norm += x[l] * x[l]
    for l in range(u):
        x[l] /= np.sqrt(norm)
    return SHIFT_SHARE / np.sqrt(norm)


@inner
def raise_curvature(tree, level):
    """Add t/K_jj to d, with t about as large as M - diag(d) allows; a larger d bounds better.

    Power iteration on the inverse estimates the largest t, a factorization makes it safe; O(u³).
    """
    u, M, K = tree.count[level, SIZE], tree.tableau[level, FORWARD], tree.tableau[level, BACKWARD]
    d, R, x = tree.slots[level, CURVATURE], tree.tableau[-1, SCRATCH], tree.slots[-1, TOP]
    tree.count[level, FRESH] = u
    if not factor_shifted(M, K, d, 0.0, R, u):
        return
    for j in range(u):
        x[j] = 1.0 + 0.1 * (j % 7)  # a start unlikely to be orthogonal to an eigenvector
    t = 0.0
    for _ in range(POWER_STEPS):
        t = largest_shift(R, K, x, u)
    # the estimate is an upper one: too large a t shows as an indefinite factor
    for _ in range(SHIFT_TRIALS):
        if factor_shifted(M, K, d, t, R, u):
            for j in range(u):
                d[j] += t / K[j, j]
            return
        t *= SHIFT_FALL


@inner
def plan_fixes(tree, level, price, budget, relaxed):
    """Queue the slots that cannot be dropped and those that cannot help; return how many.

    Every test compares a bound on the node with that decision reversed to the incumbent. Slots are
    queued from the last down, since a removal moves the last slot.
    """
    cutoff = tree.value[-1, BEST_VALUE] + tree.value[-1, SLACK] + tree.value[-1, BOUND_ERROR]
    margin = cutoff - tree.value[level, F_ALL] - price * tree.count[level, N_IN]
    drop, score, top = tree.slots[-1, DROP], tree.slots[-1, SCORE], tree.slots[-1, TOP]
    u, gap = tree.count[level, SIZE], cutoff - relaxed
    most = smaller(budget - tree.count[level, N_IN], u)
    last_in, first_out = larger(0.0, top[most - 1]), larger(0.0, top[most])
    n = 0
    for j in range(u - 1, -1, -1):
        if drop[j] > margin or score[j] - first_out > gap:
            tree.index[-1, ACTIONS, n] = j + 1
            n += 1
        elif last_in - score[j] > gap:
            tree.index[-1, ACTIONS, n] = -(j + 1)
            n += 1
    tree.count[-1, N_ACTIONS] = n
    return n


@inner
def offer_included(tree, level, objective):
    """Make I the incumbent if it is better; with rounding, note it once if it may be."""
    value, count, whole = tree.value[level], tree.count[level], tree.value[-1]
    if not whole[BLUR] > 0.0:
        if objective < whole[BEST_VALUE]:
            accept(tree, level, objective, -1, -1)
    elif count[OFFERED] != count[N_IN]:
        count[OFFERED] = count[N_IN]
        doubt = whole[BLUR] / value[APART]
        if objective < whole[BEST_VALUE] - whole[SLACK] + doubt:
            note(tree, level, -1, -1, False)


@inner
def examine(tree, level, price, budget, passes):
    """Bound a node, close it or plan fixes; return CLOSED, FIXED, or the slot to branch on."""
    value, count, whole = tree.value[level], tree.count[level], tree.value[-1]
    u, room, paid = count[SIZE], budget - count[N_IN], price * count[N_IN]
    if room < 0:
        return CLOSED
    error, is_blurred = whole[BOUND_ERROR], whole[BLUR] > 0.0
    offer_included(tree, level, value[F_IN] + paid)
    bound, bound3, branch, n = scan_slots(tree, level, price, room)
    if n > 0:
        tree.count[-1, N_ACTIONS] = n
        return FIXED
    cutoff = whole[BEST_VALUE] - whole[SLACK] + error
    value[BOUND] = larger(bound - error, value[BOUND])
    if bound >= cutoff:
        return CLOSED
    if u <= 1 or room <= 1:
        if is_blurred and room > 0:
            note_leaves(tree, level, price)
        return CLOSED
    # closing by pairs, relaxing and fixing pay off for large blocks only, and cost compile time
    if passes is not None:
        if room == 2 or u == 2 or bound3 >= cutoff:
            if not is_blurred:
                try_pairs(tree, level, price)
                return CLOSED
            note_leaves(tree, level, price)
            if note_pairs(tree, level, price):
                return CLOSED
        if u <= RAISE_AT * count[FRESH]:
            raise_curvature(tree, level)
        # everything below starts from the root, which is therefore solved more accurately
        relaxed = relax_node(tree, level, price, room, passes if level > 0 else 20 * passes)
        value[BOUND] = larger(relaxed - error, value[BOUND])
        if relaxed >= cutoff:
            return CLOSED
        if plan_fixes(tree, level, price, budget, relaxed) > 0:
            return FIXED
        branch = largest_membership(tree, level)
    if value[F_ALL] + paid + tree.slots[-1, DROP, branch] > cutoff:
        # the other side is closed already: no need to branch
        tree.index[-1, ACTIONS, 0], tree.count[-1, N_ACTIONS] = branch + 1, 1
        return FIXED
    return branch


@inner
def largest_membership(tree, level):
    """Return the slot with the largest membership in the relaxation."""
    slots, best, largest = tree.slots[level], 0, -1.0
    for j in range(tree.count[level, SIZE]):
        rank = abs(slots[RELAXED, j]) * np.sqrt(slots[CURVATURE, j])
        if rank > largest:
            best, largest = j, rank
    return best


@kernel
def search_tree(tree, price, budget, passes, node_limit):
    """Search depth first, include side first; return True if exhausted in `node_limit` more nodes.

    Also stops when there may be no room left for the notes of a node, or for another level.
    """
    whole, actions = tree.count[-1], tree.index[-1, ACTIONS]
    level, stop = whole[LEVEL], whole[NODES] + node_limit
    n_levels, is_blurred, has_news = tree.count.shape[0] - 1, tree.value[-1, BLUR] > 0.0, False
    target = level
    while level >= 0:
        for a in range(whole[N_ACTIONS]):
            decide_slot(tree, level, target, abs(actions[a]) - 1, actions[a] > 0)
        whole[N_ACTIONS], whole[LEVEL], level = 0, target, target
        n_notes = whole[N_NOTES]
        # a node may note itself and once each slot; pairs if there is room
        is_full = is_blurred and n_notes + tree.count[level, SIZE] + 1 > tree.notes.shape[0]
        if whole[NODES] >= stop or is_full or has_news:
            return False
        whole[NODES] += 1
        verdict = examine(tree, level, price, budget, passes)
        # candidates are checked at once, since a better incumbent closes more
        has_news = whole[N_NOTES] > n_notes and tree.notes[whole[N_NOTES] - 1, NOTE_OPEN] == 0
        if verdict >= 0:
            if level + 1 >= n_levels:
                # this node is examined again once there is room
                return False
            # the include side one level down; this level keeps the exclude side for later
            tree.count[level, BRANCH] = verdict
            actions[0], whole[N_ACTIONS], target = verdict + 1, 1, level + 1
        elif verdict == CLOSED:
            level -= 1
            while level >= 0 and tree.count[level, BRANCH] < 0:
                level -= 1
            target = level
            if level >= 0:
                actions[0], whole[N_ACTIONS] = -(tree.count[level, BRANCH] + 1), 1
                tree.count[level, BRANCH] = -1
    whole[LEVEL] = -1
    return True


@inner
def invert(H, A, v):
    """Compute A = -inv(H) by sweeps; return the smallest relative pivot, 0 if too small."""
    k, smallest = H.shape[0], 1.0
    for i in range(k):
        for l in range(i, k):
            A[i, l] = H[i, l]
    for j in range(k):
        smallest = smaller(smallest, A[j, j] / H[j, j] if H[j, j] > 0.0 else 0.0)
        if not smallest > SINGULAR:
            return 0.0
        for i in range(k):
            v[i] = A[i, j] if i < j else A[j, i]
        pivot = v[j]
        for i in range(k):
            a = v[i] / pivot
            for l in range(i, k):
                A[i, l] -= a * v[l]
        for i in range(k):
            A[smaller(i, j), larger(i, j)] = v[i] / pivot
        A[j, j] = -1.0 / pivot
    return smallest


@part
def value_of(H, c, price, forced, z):
    """Compute ½z'Hz + c'z + price·nnz(z), infinite if z lacks a forced coordinate."""
    value = 0.0
    for i in range(z.size):
        if z[i] != 0.0:
            for j in range(z.size):
                value += 0.5 * z[i] * H[i, j] * z[j]
            value += price + c[i] * z[i]
        elif forced[i]:
            value = np.inf
    return value


@part
def fill_root(tree, H, c, is_regular, f_all):
    """Set M, K, z and the slots of the root; return f(I + U) and the nearest column's distance.

    The squared distance of a unit column from the span of all others is 1/(K_jj H_jj).
    """
    k, M, K = H.shape[0], tree.tableau[0, FORWARD], tree.tableau[0, BACKWARD]
    slots, nearest = tree.slots[0], 1.0
    if is_regular:
        f_all = 0.0
    for i in range(k):
        z = 0.0
        for j in range(k):
            if is_regular:
                z += K[smaller(i, j), larger(i, j)] * c[j]
            else:
                K[i, j] = -1.0 if i == j else 0.0
            M[i, j] = H[i, j]
        if is_regular:
            f_all += 0.5 * c[i] * z
        slots[POINT, i], slots[GRADIENT, i] = z, c[i]
        slots[RELAXED, i] = slots[CURVATURE, i] = 0.0
        tree.index[0, COORDINATE, i] = i
        tree.slots[-1, TINY, i] = PIVOT_FLOOR * H[i, i]
    for i in range(k):
        for j in range(i, k):
            K[i, j] = -K[i, j]
        if is_regular:
            nearest = smaller(nearest, 1.0 / (K[i, i] * H[i, i]))
    return f_all, nearest if is_regular else 0.0


@kernel
def plant_tree(tree, H, c, price, forced, current, f_all):
    """Fill the root: M = H, K = inv(H), z = -Kc, nothing decided but the forced coordinates.

    The incumbent is `current`, unless it lacks a forced coordinate. A singular H has no backward
    side: with K = I and z = 0 every drop is free and f(I + U) stays at `f_all`, a lower bound that
    the caller supplies (it is not read otherwise). Returns whether there is a backward side.
    """
    k, n = H.shape[0], 0
    smallest = invert(H, tree.tableau[0, BACKWARD], tree.slots[-1, COLUMN])
    f_all, nearest = fill_root(tree, H, c, smallest > 0.0, f_all)
    for i in range(tree.count.shape[0] - 1):
        tree.count[i, BRANCH] = -1
    for j in range(k - 1, -1, -1):
        if forced[j]:
            tree.index[-1, ACTIONS, n] = j + 1
            n += 1
    tree.value[0, F_IN], tree.value[0, F_ALL], tree.value[0, BOUND] = 0.0, f_all, -np.inf
    tree.value[0, MULTIPLIER], tree.value[0, APART] = price, 1.0
    tree.value[-1, BLUR], tree.value[-1, BOUND_ERROR], tree.value[-1, NEAREST] = 0.0, 0.0, nearest
    tree.count[-1, N_NOTES], tree.count[0, OFFERED] = 0, -1
    tree.count[0, SIZE], tree.count[0, N_IN] = k, 0
    tree.count[-1, LEVEL], tree.count[-1, NODES], tree.count[-1, N_ACTIONS] = 0, 0, n
    tree.value[-1, BEST_VALUE] = value_of(H, c, price, forced, current)
    tree.count[-1, BEST_SIZE] = -1
    # the backward side loses digits with the condition number; without one nothing is lost
    blur = ROUNDING + (EPSILON * k / smallest if smallest > 0.0 else 0.0)
    tree.value[-1, SLACK] = blur * abs(f_all)
    return smallest > 0.0


@kernel
def start_relaxation(tree, price, budget):
    """Set curvature and multiplier at the root; return False if M is too close to singular.

    Then, and without a backward side, the search must do without the relaxation.
    """
    k = tree.count[0, SIZE]
    raise_curvature(tree, 0)
    top, count, most = tree.slots[-1, TOP], 0, smaller(budget + 1, k)
    for j in range(k):
        g = tree.slots[0, GRADIENT, j]
        count = keep_top(top, count, most, 0.5 * g * g / tree.slots[0, CURVATURE, j])
    tree.value[0, MULTIPLIER] = larger(price, top[most - 1])
    return tree.slots[0, CURVATURE, 0] > 0.0


# --------------------------------------------------------------------------------------------------
# 2. The swept tableau of a pool of columns: additions, removals and swaps with re-fitted support
# --------------------------------------------------------------------------------------------------

# long loops over the pool, free of NaN: sums may be reordered to use vector registers
_reordered = {"nnan", "nsz", "reassoc", "contract", "arcp"}
wide: Callable[[Any], Any] = cached(fastmath=_reordered, **_options)
# always inlined: otherwise every kernel would have its own copy, which may add in another order,
# and the order of compilation or loading would decide which one is called
wide_inner: Callable[[Any], Any] = njit(forceinline=True, fastmath=_reordered, **_options_inner)


class SweptArrays(NamedTuple):
    """The Gram matrix H of p columns, bordered by the gradients c at zero, swept on a support S.

    Only the rows of the support are kept, so that a move costs O(p |S|) instead of O(p²); the row
    of an entering column is computed from its row of H, which must be known only then.
    """

    gram: NDArray[np.float64]  # (p, p): H, row i valid where known[i]
    known: NDArray[np.bool_]  # (p,)
    kept: NDArray[np.bool_]  # (p,), or by units: never leaves
    rows: NDArray[np.float64]  # (capacity + 1, p): W = K H_SU outside S, -K = -inv(H_SS) inside
    border: NDArray[np.float64]  # (3 + 2q, p), see below
    slot: NDArray[np.int64]  # (p,): the row of a column in the support, -1 outside
    member: NDArray[np.int64]  # (capacity + 1,): the column of each row; last, |S|
    value: NDArray[np.float64]  # (4,), see below


# border: the diagonal of the tableau, M_ii outside, -K_jj inside; pivots up to which a column is in
# the span of S; a line of scratch for the scan; for each of q responses, the gradient g outside S
# and -w inside; and as many lines of scratch, the same with the coefficients within their bounds.
# SCAN_EDGE is the first of these lines for one response
PIVOT, LEAST, SCAN_PIVOT, EDGE, SCAN_EDGE = 0, 1, 2, 3, 4
# value: the minimum on S; the largest drift of a pivot seen; and where an interrupted descent
# continues: the row after which it looks for swaps, and how many rows in a row had none
MINIMUM, DRIFT, SWAP_ROW, N_FAILED = 0, 1, 2, 3
FIRST_ROW = -1.0  # of SWAP_ROW: begin with the first row
# Why `descend` returned, unless it names a column whose row of H it needs to continue: nothing
# improves any more; the limit of moves is reached; the pivots have drifted, so that the table
# must be recomputed. Called again with the same table, it continues where it stopped
DONE, PAUSED, DRIFTED = -1, -2, -3
MAX_DRIFT = 1e-10  # of a pivot, relative to its column's squared norm, before a table is recomputed
# replaces the pivot of a column that may not enter; single precision, in which columns have unit
# length, has less range
BARRED, SINGLE_BARRED = 1e200, 1e30


class Structure(NamedTuple):
    """What a tableau needs beyond single columns at one price: groups, costs, bounds, responses.

    A kernel is compiled once more for it; for single columns at one price there is None, and the
    compiler leaves out whatever asks for it. The columns lie unit by unit.
    """

    starts: NDArray[np.int64]  # (u + 1,): the first column of each unit
    place: NDArray[np.int64]  # (u,): its place among the chosen ones, -1 outside the support
    chosen: NDArray[np.int64]  # (capacity + 1,): the units of the support; last, their number
    costs: NDArray[np.float64]  # (u,): multiples of the price
    tried: NDArray[np.int64]  # (u,): see below
    blocks: NDArray[np.float64]  # the d x d blocks M_JJ of units outside, but for those of a column
    places: NDArray[np.int64]  # (u + 1,): where each begins
    target: NDArray[np.float64]  # (q, p): the gradients at zero
    limits: NDArray[np.float64]  # (2, p): the bounds; (2, 0) for none
    force: NDArray[np.float64]  # (q, p): slopes of the coefficients of S that are at a bound
    side: NDArray[np.int64]  # (q, p): FREE, AT_LOW or AT_HIGH
    # memory: of what leaves, the slots, E = inv(K_II) with P = E w, and E W; a block and its right
    # sides; a small tableau of S and of what enters, and a copy
    left: NDArray[np.int64]  # (d,)
    square: NDArray[np.float64]  # (3, d, d)
    right: NDArray[np.float64]  # (2, q, d)
    small: NDArray[np.float64]  # (2, k, k)
    line: NDArray[np.float64]  # (q + 1, k)
    index: NDArray[np.int64]  # (q + 1, k)


# tried: flags of units with which a move within bounds has failed: an entry or removal, since the
# last move; a swap, for the present member
TRIED_ALONE, TRIED_SWAP = 1, 2
MOST_TRIED = 3  # swaps of a member that are fitted within bounds
FREE, AT_LOW, AT_HIGH, FROZEN = 0, 1, 2, 3  # position of a bounded coefficient
BLOCK_PIVOTS = 3  # changes of all wrong positions at once that may bring nothing, in a row
MARKED = FROZEN + 1  # from here on, numbers that hold a position and its next one
AT_LIMIT = 1e-4  # of the tolerance: smaller violations of bounds are rounding


@part
def barred_pivot(table):
    """Return a value that replaces the pivot of a column that may not enter."""
    return SINGLE_BARRED if table.rows.itemsize == 4 else BARRED


@part
def make_row(table, i):
    """Compute the tableau's row of i outside the support, M_i = H_i - H_iS W, O(p |S|).

    It is stored after the rows of the support, and the drift of its pivot is recorded.
    """
    rows, member, gram, p = table.rows, table.member, table.gram[i], table.slot.size
    size, new = member[-1], rows[member[-1]]
    for l in range(p):
        new[l] = gram[l]
    # four at a time, so that the new row is read and written less often
    whole = size - size % 4
    for a in range(0, whole, 4):
        x, y, z, t = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
        by_x, by_y = gram[member[a]], gram[member[a + 1]]
        by_z, by_t = gram[member[a + 2]], gram[member[a + 3]]
        for l in range(p):
            new[l] -= (by_x * x[l] + by_y * y[l]) + (by_z * z[l] + by_t * t[l])
    for a in range(whole, size):
        row, factor = rows[a], gram[member[a]]
        for l in range(p):
            new[l] -= factor * row[l]
    for a in range(size):
        new[member[a]] = rows[a, i]
    drift = abs(new[i] - table.border[PIVOT, i]) / gram[i]
    table.value[DRIFT] = larger(table.value[DRIFT], drift)


@part
def sweep_rows(table, size, i, j, new, old):
    """Update the first `size` rows for i entering by its row `new` and j leaving by `old`; O(p
    |S|).

    Both changes are made in one pass: rows are long, and reading them dominates.
    """
    rows, p, one = table.rows, table.slot.size, table.rows.dtype.type(1)
    if i >= 0 and j >= 0:
        inn, out = one / new[i], one / old[j]
        for a in range(size):
            row = rows[a]
            factor_out = row[j] * out
            # row[i] after j has left, over the pivot
            factor_in = (row[i] - factor_out * old[i]) * inn
            for l in range(p):
                row[l] -= factor_out * old[l] + factor_in * new[l]
            row[j] = -factor_out - factor_in * new[j]
            row[i] = factor_in
    elif i >= 0:
        inn = one / new[i]
        for a in range(size):
            row = rows[a]
            factor_in = row[i] * inn
            for l in range(p):
                row[l] -= factor_in * new[l]
            row[i] = factor_in
    else:
        out = one / old[j]
        for a in range(size):
            row = rows[a]
            factor_out = row[j] * out
            for l in range(p):
                row[l] -= factor_out * old[l]
            row[j] = -factor_out


@inner
def sweep_blocks(units, row, factor):
    """Update the blocks of the units outside for a column with this row; O(Σd²)."""
    starts, places, blocks = units.starts, units.places, units.blocks
    for unit in range(units.place.size):
        at = places[unit]
        if places[unit + 1] > at and units.place[unit] < 0:
            first, d = starts[unit], starts[unit + 1] - starts[unit]
            for a in range(d):
                by = row[first + a] * factor
                for b in range(d):
                    blocks[at + a * d + b] -= by * row[first + b]


@part
def sweep_border(table, units, row, i, factor):
    """Update pivots, gradients and the minimum for i, outside or inside, by its row; O(pq)."""
    pivots, p = table.border[PIVOT], table.slot.size
    side = 1.0 if table.slot[i] < 0 else -1.0
    if units is None:
        edge = table.border[EDGE]
        step = edge[i] * factor
        table.value[MINIMUM] -= 0.5 * edge[i] * step
        for l in range(p):
            pivots[l] -= row[l] * row[l] * factor
            edge[l] -= row[l] * step
        edge[i] = side * step
    else:
        for l in range(p):
            pivots[l] -= row[l] * row[l] * factor
        for c in range(EDGE, EDGE + units.target.shape[0]):
            edge = table.border[c]
            step = edge[i] * factor
            table.value[MINIMUM] -= 0.5 * edge[i] * step
            for l in range(p):
                edge[l] -= row[l] * step
            edge[i] = side * step
        sweep_blocks(units, row, factor)


@wide_inner
def sweep(table, units, i, j):
    """Sweep on i, which enters the support, and on j, which leaves it; either may be -1; O(p |S|).

    The row of H at i must be known. Returns False, changing nothing but its pivot, if i is in the
    span of the support, or if there is no room for it.
    """
    rows, member, slot, p = table.rows, table.member, table.slot, table.slot.size
    pivots, size, one = table.border[PIVOT], member[-1], rows.dtype.type(1)
    new = rows[size]
    old = new
    if i >= 0:
        make_row(table, i)
        fresh = new[i]
        if j >= 0:
            fresh -= rows[slot[j], i] * rows[slot[j], i] / rows[slot[j], j]
        if not fresh > table.border[LEAST, i] or (j < 0 and size + 1 >= rows.shape[0]):
            pivots[i] = new[i]
            return False
    if j >= 0:
        # the row of j moves after the remaining ones, where it is freed
        size -= 1
        a, old = slot[j], rows[size]
        if a != size:
            moved, row = member[size], rows[a]
            for l in range(p):
                row[l], old[l] = old[l], row[l]
            member[a], slot[moved] = moved, a
        out = one / old[j]
        sweep_border(table, units, old, j, out)
        pivots[j], slot[j] = -out, -1
        if i >= 0:
            # the row of i after j has left
            factor = old[i] * out
            for l in range(p):
                new[l] -= factor * old[l]
            new[j] = -factor
    if i >= 0:
        inn = one / new[i]
        sweep_border(table, units, new, i, inn)
        pivots[i] = -inn
    sweep_rows(table, size, i, j, new, old)
    if i >= 0:
        row, inn = rows[size], one / new[i]
        for l in range(p):
            row[l] = new[l] * inn
        row[i] = -inn
        slot[i], member[size] = size, i
        size += 1
    member[-1] = size
    return True


@inner
def sweep_apart(table, units, i, j):
    """Run `sweep` for a column of a unit, without a copy for every call."""
    return sweep(table, units, i, j)


# -- units: what one gains that enters, and costs that leaves --------------------------------------


@inner
def leave_unit(table, units, unit):
    """Prepare for a unit to leave, if any: return the number of its columns in S, and its cost.

    With E = inv(K_II) it costs ½ tr w'Ew, and P = Ew. A coefficient at a bound has a slope, which
    no longer counts: without it the rest is at a minimum of the Lagrangian, nowhere above the loss
    within the bounds.
    """
    n_left, cost, q = 0, 0.0, units.target.shape[0]
    if unit < 0:
        return 0, 0.0
    left, E, P = units.left, units.square[0], units.right[0]
    for j in range(units.starts[unit], units.starts[unit + 1]):
        if table.slot[j] >= 0:
            left[n_left] = j
            n_left += 1
    for a in range(n_left):
        for b in range(n_left):
            E[a, b] = -table.rows[table.slot[left[a]], left[b]]
    # in place, for a positive definite block
    for k in range(n_left):
        pivot = 1.0 / E[k, k]
        E[k, k] = 1.0
        for b in range(n_left):
            E[k, b] *= pivot
        for a in range(n_left):
            if a != k:
                factor = E[a, k]
                E[a, k] = 0.0
                for b in range(n_left):
                    E[a, b] -= factor * E[k, b]
    for c in range(q):
        w = table.border[EDGE + q + c]
        for a in range(n_left):
            P[c, a] = 0.0
            for b in range(n_left):
                P[c, a] -= E[a, b] * w[left[b]]
            cost -= 0.5 * w[left[a]] * P[c, a]
            if units.limits.shape[1] > 0 and units.side[c, left[a]] != FREE:
                cost += units.force[c, left[a]] * w[left[a]]
    for a in range(n_left):
        left[a] = table.slot[left[a]]
    return n_left, cost


@part
def gain_of_column(table, units, j, n_left):
    """Compute by how much a unit of one column lowers the minimum once the columns have left."""
    rows, left, E, P = table.rows, units.left, units.square[0], units.right[0]
    pivot, q, gain = table.border[PIVOT, j], units.target.shape[0], 0.0
    for a in range(n_left):
        for b in range(n_left):
            pivot += rows[left[a], j] * E[a, b] * rows[left[b], j]
    if not pivot > table.border[LEAST, j]:
        return 0.0
    for c in range(q):
        r = -table.border[EDGE + q + c, j]
        for a in range(n_left):
            r += rows[left[a], j] * P[c, a]
        step = r / pivot
        if units.limits.shape[1] > 0:
            step = smaller(larger(step, units.limits[0, j]), units.limits[1, j])
        gain += step * (r - 0.5 * pivot * step)
    return gain


@inner
def gain_of_unit(table, units, unit, n_left):
    """Compute by how much a unit lowers the minimum once the columns have left; O(d³ + d²q).

    ½ tr r'A⁺r with A = M_JJ + W'EW and r = −g_J + W'P, by a Cholesky factorization that leaves out
    columns in the span of those before them.
    """
    first, d = units.starts[unit], units.starts[unit + 1] - units.starts[unit]
    if d == 1:
        return gain_of_column(table, units, first, n_left)
    rows, left, E, P = table.rows, units.left, units.square[0], units.right[0]
    EW, A, r = units.square[1], units.square[2], units.right[1]
    at, q, gain = units.places[unit], units.target.shape[0], 0.0
    for k in range(n_left):
        for a in range(d):
            EW[k, a] = 0.0
            for b in range(n_left):
                EW[k, a] += E[k, b] * rows[left[b], first + a]
    for a in range(d):
        for b in range(a + 1):
            total = units.blocks[at + a * d + b]
            for k in range(n_left):
                total += rows[left[k], first + a] * EW[k, b]
            for k in range(b):
                total -= A[a, k] * A[b, k]
            if b == a:
                A[a, a] = np.sqrt(total) if total > table.border[LEAST, first + a] else 0.0
            else:
                # a column without a pivot has none below it either
                A[a, b] = total / A[b, b] if A[b, b] > 0.0 else 0.0
    for c in range(q):
        slopes = table.border[EDGE + q + c]
        for a in range(d):
            r[c, a] = 0.0
            if A[a, a] > 0.0:
                total = -slopes[first + a]
                for k in range(n_left):
                    total += rows[left[k], first + a] * P[c, k]
                for k in range(a):
                    total -= A[a, k] * r[c, k]
                r[c, a] = total / A[a, a]
                gain += 0.5 * r[c, a] * r[c, a]
    return gain


@inner
def best_unit(table, units, leaves, low, high, price, most, tried):
    """Find the unit from `low` to `high` that best enters for the one that leaves, -1 for neither.

    -1 if none changes the objective by less than `most`; so flagged units do not count.
    """
    n_left, cost = leave_unit(table, units, leaves)
    if leaves >= 0:
        cost -= price * units.costs[leaves]
    best, scan = -1, table.border[SCAN_PIVOT]
    for unit in range(low, high):
        if units.place[unit] >= 0 or units.tried[unit] & tried:
            continue
        if scan[units.starts[unit]] >= BARRED:
            continue
        paid = cost + price * units.costs[unit]
        gain = gain_of_unit(table, units, unit, n_left)
        if gain > 0.0 and paid - gain < most:
            best, most = unit, paid - gain
    return best


# -- units: the fit within bounds ------------------------------------------------------------------


@part
def gather_small(table, units, enters):
    """Copy the tableau of the support, and of a unit that enters, if any; return its size."""
    Z, index, q = units.small[0], units.index[-1], units.target.shape[0]
    size, k = table.member[-1], table.member[-1]
    for a in range(size):
        index[a] = table.member[a]
    if enters >= 0:
        for j in range(units.starts[enters], units.starts[enters + 1]):
            index[k] = j
            k += 1
    for a in range(size):
        for b in range(k):
            Z[a, b] = table.rows[a, index[b]]
            Z[b, a] = Z[a, b]
    d = k - size
    for a in range(d):
        for b in range(d):
            if d == 1:
                Z[size, size] = table.border[PIVOT, index[size]]
            else:
                Z[size + a, size + b] = units.blocks[units.places[enters] + a * d + b]
    for c in range(q):
        for a in range(k):
            units.line[c, a] = table.border[EDGE + c, index[a]]
    units.line[-1, 0] = k
    return k


@inner
def sweep_small(Z, k, lines, q, i, enters):
    """Sweep a small tableau and its border on i, which enters or leaves; O(k² + kq)."""
    pivot, sign = 1.0 / Z[i, i], 1.0 if enters else -1.0
    for a in range(k):
        if a != i:
            factor = Z[a, i] * pivot
            for b in range(k):
                if b != i:
                    Z[a, b] -= factor * Z[i, b]
            for c in range(q):
                lines[c, a] -= factor * lines[c, i]
    for a in range(k):
        if a != i:
            Z[a, i] *= sign * pivot
            Z[i, a] = Z[a, i]
    for c in range(q):
        lines[c, i] *= sign * pivot
    Z[i, i] = -pivot


@part
def switch_side(Y, k, w, i, before, after, low, high):
    """Bring a coefficient of a small tableau from a bound to FREE, or to a bound; O(k²)."""
    is_held = after != FREE
    limit = low if larger(before, after) == AT_LOW else high
    if is_held:
        sweep_small(Y, k, w, 1, i, False)
    for a in range(k):
        w[0, a] += Y[a, i] * (limit if is_held else -limit)
    if not is_held:
        sweep_small(Y, k, w, 1, i, True)


@part
def is_misplaced(Y, w, i, side, low, high, slack):
    """Tell whether a coefficient violates its bounds, or is held at one that it would leave."""
    if side[i] == FROZEN:
        return False
    if side[i] == FREE:
        v = -w[0, i]
        excess = larger(low - v, v - high)
    else:
        excess = -w[0, i] if side[i] == AT_LOW else w[0, i]
        excess = 0.0 if low == high else excess
    return excess > 0.0 and 0.5 * excess * excess > slack * abs(Y[i, i])


@part
def place_within(units, Y, k, w, side, slack):
    """Find the minimizer within bounds by principal pivots, of one response; False if it fails.

    All misplaced coefficients change sides at once while that leaves fewer of them; else only the
    last one, which ends in a finite number of steps.
    """
    low, high, index = units.limits[0], units.limits[1], units.index[-1]
    fewest, chances = k + 1, BLOCK_PIVOTS
    for _ in range(20 * k + 20):
        count, last = 0, -1
        for i in range(k):
            j = index[i]
            if is_misplaced(Y, w, i, side, low[j], high[j], slack):
                count, last = count + 1, i
        if count == 0:
            return True
        if count < fewest:
            fewest, chances = count, BLOCK_PIVOTS
        elif chances > 0:
            chances -= 1
        is_block = chances > 0
        # all are marked before any is moved, since moves change the others
        for i in range(k):
            j = index[i]
            if is_misplaced(Y, w, i, side, low[j], high[j], slack) and (is_block or i == last):
                goal = FREE
                if side[i] == FREE:
                    goal = AT_LOW if -w[0, i] < low[j] else AT_HIGH
                side[i] = MARKED * (1 + side[i]) + goal
        for i in range(k):
            if side[i] >= MARKED:
                before, side[i] = side[i] // MARKED - 1, side[i] % MARKED
                switch_side(Y, k, w, i, before, side[i], low[index[i]], high[index[i]])
    return False


@inner
def fit_within(table, units, enters, leaves, slack):
    """Compute the minimum within bounds after a unit has entered and one has left; O(k³) at most.

    Infinite where no unit can enter. The slopes and sides are left in `line` and `index`.
    """
    q, low, high = units.target.shape[0], units.limits[0], units.limits[1]
    k = gather_small(table, units, enters)
    size, Z, index, total = table.member[-1], units.small[0], units.index[-1], 0.0
    for a in range(k):
        units.index[0, a] = FREE if a < size else FROZEN
    if leaves >= 0:
        for a in range(size):
            if units.starts[leaves] <= index[a] < units.starts[leaves + 1]:
                sweep_small(Z, k, units.line, q, a, False)
                units.index[0, a] = FROZEN
    has_entered = enters < 0
    for a in range(size, k):
        if Z[a, a] > table.border[LEAST, index[a]]:
            sweep_small(Z, k, units.line, q, a, True)
            units.index[0, a], has_entered = FREE, True
    if not has_entered:
        return np.inf
    for c in range(q - 1, -1, -1):
        Y, w, side = units.small[1], units.line[c : c + 1], units.index[c]
        for a in range(k):
            side[a] = units.index[0, a]
            for b in range(k):
                Y[a, b] = Z[a, b]
        for a in range(k):
            j = index[a]
            # from the sides of the present support
            if side[a] == FREE and a < size and units.side[c, j] != FREE:
                side[a] = units.side[c, j]
                switch_side(Y, k, w, a, FREE, side[a], low[j], high[j])
        if not place_within(units, Y, k, w, side, slack):
            return np.inf
        for a in range(k):
            j, v, slope = index[a], 0.0, 0.0
            if side[a] == FREE:
                v = -w[0, a]
            elif side[a] != FROZEN:
                v, slope = low[j] if side[a] == AT_LOW else high[j], w[0, a]
            total += 0.5 * v * (units.target[c, j] + slope)
    return total


@part
def hold(table, units, value):
    """Take over what `fit_within` has found, where the table has come to that support."""
    units.force[:] = 0.0
    units.side[:] = FREE
    for c in range(units.target.shape[0]):
        for a in range(int(units.line[-1, 0])):
            j = units.index[-1, a]
            if units.index[c, a] == AT_LOW or units.index[c, a] == AT_HIGH:
                units.side[c, j], units.force[c, j] = units.index[c, a], units.line[c, a]
    table.value[MINIMUM] = value


@inner
def exchange_columns(table, units, enters, leaves):
    """Sweep on the columns of a unit that enters and of one that leaves; tell whether any enters.

    In pairs, as far as possible, since every sweep reads all rows. Where none can enter, the unit
    that has left comes back.
    """
    starts, slot, chosen = units.starts, table.slot, units.chosen
    i, end = (starts[enters], starts[enters + 1]) if enters >= 0 else (0, 0)
    if enters >= 0 and leaves < 0 and chosen[-1] + 1 >= chosen.size:
        return False
    if leaves >= 0:
        chosen[-1] -= 1
        a, moved = units.place[leaves], chosen[chosen[-1]]
        chosen[a], units.place[moved], units.place[leaves] = moved, a, -1
        for j in range(starts[leaves], starts[leaves + 1]):
            if slot[j] < 0:
                continue
            if i < end and sweep_apart(table, units, i, j):
                i += 1
            else:
                sweep_apart(table, units, -1, j)
    unit, has_entered = enters, enters < 0
    while unit >= 0:
        is_in = False
        for i in range(starts[unit], starts[unit + 1]):
            if slot[i] < 0 and table.border[PIVOT, i] > table.border[LEAST, i]:
                sweep_apart(table, units, i, -1)
            is_in = is_in or slot[i] >= 0
        if is_in:
            units.place[unit], chosen[chosen[-1]] = chosen[-1], unit
            chosen[-1] += 1
        has_entered = has_entered or (is_in and unit == enters)
        unit = leaves if unit == enters and not is_in else -1
    return has_entered


@part
def complete_units(table, units, leaves):
    """Let columns of the support enter that have depended on the unit that has left it.

    Not within bounds, where they would change the fit. The block of that unit is made anew.
    """
    starts, slot, chosen, n_columns = units.starts, table.slot, units.chosen, 0
    for a in range(chosen[-1]):
        n_columns += starts[chosen[a] + 1] - starts[chosen[a]]
    if n_columns > table.member[-1] and units.limits.shape[1] == 0:
        for a in range(chosen[-1]):
            for j in range(starts[chosen[a]], starts[chosen[a] + 1]):
                if slot[j] < 0 and table.border[PIVOT, j] > table.border[LEAST, j]:
                    sweep_apart(table, units, j, -1)
    if leaves < 0:
        return
    first, d, at = starts[leaves], starts[leaves + 1] - starts[leaves], units.places[leaves]
    if d > 1:
        for a in range(d):
            for b in range(d):
                total = table.gram[first + a, first + b]
                for k in range(table.member[-1]):
                    total -= table.gram[first + a, table.member[k]] * table.rows[k, first + b]
                units.blocks[at + a * d + b] = total


@inner
def exchange_units(table, units, enters, leaves, price, most, tolerance):
    """Let a unit enter and one leave, either may be -1, unless the objective changes by `most`.

    That is known before only of bounds, where a fit on the small tableau decides; tell whether it
    is done.
    """
    value, is_bounded = 0.0, units.limits.shape[1] > 0
    if is_bounded:
        value = fit_within(table, units, enters, leaves, AT_LIMIT * tolerance)
        paid = price * units.costs[enters] if enters >= 0 else 0.0
        paid -= price * units.costs[leaves] if leaves >= 0 else 0.0
        if not value - table.value[MINIMUM] + paid < most:
            return False
    if not exchange_columns(table, units, enters, leaves):
        return False
    complete_units(table, units, leaves)
    if is_bounded:
        hold(table, units, value)
    return True


# -- moves -----------------------------------------------------------------------------------------


@wide_inner
def best_replacement(table, a, low, high, tolerance):
    """Find the column from `low` to `high` that best replaces the a-th member; O(high - low).

    -1 if none lowers the minimum by more than the tolerance, which may be negative. Dropping j
    turns the gradient of i into g_i - W_ij w_j / K_jj and its pivot into M_ii + W_ij² / K_jj, where
    K = inv(H_SS); the swap then gains half the square over the pivot.
    """
    # loops over parts start at zero: an index that might be negative prevents vectorization
    j, row = table.member[a], table.rows[a, low:high]
    slopes, pivots = table.border[SCAN_EDGE, low:high], table.border[SCAN_PIVOT, low:high]
    number = table.rows.dtype.type
    inverse, w = -number(1) / table.border[PIVOT, j], -table.border[EDGE, j]
    ratio = w * inverse
    least = number(w * ratio + 2.0 * tolerance)
    # whether any improves is counted without division or branch, so that the loop vectorizes
    count, best = 0, -1
    for i in range(row.size):
        slope = slopes[i] - row[i] * ratio
        count += slope * slope > least * (pivots[i] + row[i] * row[i] * inverse)
    if count > 0:
        slot, floor = table.slot[low:high], table.border[LEAST, low:high]
        barred = barred_pivot(table)
        for i in range(row.size):
            slope = slopes[i] - row[i] * ratio
            pivot = pivots[i] + row[i] * row[i] * inverse
            usable = slot[i] < 0 and pivots[i] < barred and pivot > floor[i]
            if usable and slope * slope > least * pivot:
                best, least = low + i, slope * slope / pivot
    return best


@wide_inner
def best_entry(table, low, high, least_gain):
    """Find the column from `low` to `high` that gains most, -1 if below half of the threshold."""
    slopes, pivots = table.border[SCAN_EDGE, low:high], table.border[SCAN_PIVOT, low:high]
    count, best, least_gain = 0, -1, table.rows.dtype.type(least_gain)
    for i in range(slopes.size):
        count += slopes[i] * slopes[i] > least_gain * pivots[i]
    if count > 0:
        slot, floor = table.slot[low:high], table.border[LEAST, low:high]
        barred = barred_pivot(table)
        for i in range(slopes.size):
            usable = slot[i] < 0 and pivots[i] > floor[i] and pivots[i] < barred
            if usable and slopes[i] * slopes[i] > least_gain * pivots[i]:
                best, least_gain = low + i, slopes[i] * slopes[i] / pivots[i]
    return best


@part
def best_addition(table, units, low, high, price, most):
    """Find the unit from `low` to `high` that best enters.

    -1 if none changes the objective by less than `most`.
    """
    if units is None:
        return best_entry(table, low, high, 2.0 * (price - most))
    else:
        return best_unit(table, units, -1, low, high, price, most, TRIED_ALONE)


@part
def best_swap(table, units, a, low, high, price, most):
    """Find the unit from `low` to `high` that best replaces the a-th of the support, as above."""
    if units is None:
        return best_replacement(table, a, low, high, -most)
    else:
        leaves = units.chosen[a]
        return best_unit(table, units, leaves, low, high, price, most, TRIED_SWAP)


@part
def removal_change(table, units, a, price):
    """Compute by how much it changes the objective to remove the a-th of the support."""
    if units is None:
        j = table.member[a]
        return -0.5 * table.border[EDGE, j] ** 2 / table.border[PIVOT, j] - price
    else:
        unit = units.chosen[a]
        if units.tried[unit] & TRIED_ALONE:
            return np.inf
        return leave_unit(table, units, unit)[1] - price * units.costs[unit]


@wide_inner
def best_single(table, units, chosen, price, budget, tolerance):
    """Find the best addition or the best removal, -1 if neither improves; O(p)."""
    best = -1
    if chosen[-1] < budget:
        if units is None:
            # this needs no copy for a scan
            edge, pivots, least = table.border[EDGE], table.border[PIVOT], table.border[LEAST]
            top = 2.0 * (price + tolerance)
            for i in range(edge.size):
                if table.slot[i] < 0 and pivots[i] > least[i]:
                    gain = edge[i] * edge[i] / pivots[i]
                    if gain > top:
                        top, best = gain, i
        else:
            best = best_addition(table, units, 0, table.kept.size, price, -tolerance)
    if best < 0 and price > 0.0:
        least = -tolerance
        for a in range(chosen[-1]):
            if not table.kept[chosen[a]]:
                change = removal_change(table, units, a, price)
                if change < least:
                    least, best = change, chosen[a]
    return best


@wide_inner
def prepare_scan(table, units):
    """Copy gradients and pivots for the scans, masking columns that may not enter.

    Of coefficients within bounds these are the gradients there: S moves by K times the slopes of
    those that are at a bound.
    """
    pivots, barred = table.border[SCAN_PIVOT], barred_pivot(table)
    if units is None:
        slopes = table.border[SCAN_EDGE]
        for i in range(pivots.size):
            pivot = table.border[PIVOT, i]
            slopes[i], pivots[i] = table.border[EDGE, i], pivot
            if table.slot[i] >= 0:
                slopes[i], pivots[i] = 0.0, barred
            elif pivot <= table.border[LEAST, i]:
                pivots[i] = 0.0
    else:
        q = units.target.shape[0]
        pivots[:] = 0.0
        for c in range(q):
            slopes = table.border[EDGE + q + c]
            for l in range(slopes.size):
                slopes[l] = table.border[EDGE + c, l]
            if units.limits.shape[1] > 0:
                for a in range(table.member[-1]):
                    force = units.force[c, table.member[a]]
                    if force != 0.0:
                        row = table.rows[a]
                        for l in range(row.size):
                            slopes[l] += force * row[l]


@part
def objective_of(table, units, chosen, price):
    """Compute the minimum on the support plus its price; O(|S|)."""
    total = table.value[MINIMUM] + price * chosen[-1]
    if units is not None:
        for a in range(chosen[-1]):
            total += price * (units.costs[chosen[a]] - 1.0)
    return total


@part
def make_move(table, units, enters, leaves, price, most, tolerance):
    """Let a unit enter and one leave, either may be -1; tell whether it was possible.

    Within bounds it is not where the objective then does not change by less than `most`.
    """
    if units is None:
        return sweep(table, units, enters, leaves)
    else:
        return exchange_units(table, units, enters, leaves, price, most, tolerance)


@part
def unknown_row(table, units, enters):
    """Find a column of a unit whose row of H is not known, -1 if there is none."""
    if units is None:
        return -1 if table.known[enters] else enters
    else:
        for j in range(units.starts[enters], units.starts[enters + 1]):
            if not table.known[j]:
                return j
        return -1


@wide
def descend(table, units, first, price, budget, tolerance, max_moves):
    """Toggle units, then take the best additions and removals, and swaps, while one improves.

    Of the first units, members leave and others enter, in this order; dependent ones stay out.
    Swaps cycle through the members: each is replaced by the best unit for it, at once. Returns
    DONE, PAUSED after `max_moves`, DRIFTED, or a column whose row of H is needed to continue.
    """
    a, n_failed = np.int64(table.value[SWAP_ROW]), np.int64(table.value[N_FAILED])
    is_fresh, n_units = False, table.kept.size
    if units is None:
        chosen, place = table.member, table.slot
    else:
        chosen, place = units.chosen, units.place
    for move in range(first.size + max_moves):
        enters, leaves, single, most = -1, -1, -1, np.inf
        if move < first.size:
            j = first[move]
            if place[j] >= 0:
                leaves = j
            elif units is not None or table.border[PIVOT, j] > table.border[LEAST, j]:
                enters = j
            else:
                continue
        else:
            most = -tolerance
            if units is not None and not is_fresh:
                prepare_scan(table, units)
                is_fresh = True
            single = best_single(table, units, chosen, price, budget, tolerance)
            if single >= 0 and place[single] < 0:
                enters = single
            elif single >= 0:
                leaves = single
            if single < 0 and not is_fresh:
                prepare_scan(table, units)
                is_fresh = True
            while single < 0 and enters < 0:
                if n_failed >= chosen[-1]:
                    return DONE
                a = a + 1 if a + 1 < chosen[-1] else 0
                n_failed += 1
                leaves = chosen[a]
                if not table.kept[leaves]:
                    enters = best_swap(table, units, a, 0, n_units, price, -tolerance)
            unknown = unknown_row(table, units, enters) if enters >= 0 else -1
            if unknown >= 0:
                # loading rows must not change the order of moves: continue with the same member
                back = 1 if single < 0 else 0
                table.value[SWAP_ROW], table.value[N_FAILED] = a - back, n_failed - back
                return unknown
        before = objective_of(table, units, chosen, price)
        if make_move(table, units, enters, leaves, price, most, tolerance):
            n_failed = 0
            if units is not None:
                units.tried[:] = 0
            # a gain that does not materialize is rounding, and its moves would cycle
            after = objective_of(table, units, chosen, price)
            if move >= first.size and not after < before - 0.5 * tolerance:
                return DONE if not table.value[DRIFT] > MAX_DRIFT else DRIFTED
        elif units is not None and move >= first.size:
            a, n_failed = bar_failed(units, enters, leaves, a, n_failed)
        is_fresh = False
        if move >= first.size and table.value[DRIFT] > MAX_DRIFT:
            return DRIFTED
    table.value[SWAP_ROW], table.value[N_FAILED] = a, n_failed
    return PAUSED


@inner
def bar_failed(units, enters, leaves, a, n_failed):
    """Flag the units of a move that has failed, and return where swaps continue, with their count.

    Of a member some swaps are tried, the best first.
    """
    if enters < 0 or leaves < 0:
        units.tried[larger(enters, leaves)] |= TRIED_ALONE
        return a, n_failed
    count = 0
    units.tried[enters] |= TRIED_SWAP
    for unit in range(units.tried.size):
        count += (units.tried[unit] & TRIED_SWAP) // TRIED_SWAP
    if count < MOST_TRIED:
        return a - 1, n_failed - 1
    for unit in range(units.tried.size):
        units.tried[unit] &= TRIED_ALONE
    return a, n_failed


class Cooling(NamedTuple):
    """Simulated annealing with a falling price, recording the best support of every size."""

    plan: NDArray[np.float64]  # (8,), see below
    chances: NDArray[np.uint64]  # (1,): state of the random number generator, not zero
    away: NDArray[np.int64]  # (2, MOST_AWAY): tabu units, and until which move
    values: NDArray[np.float64]  # (most + 1,): the lowest minimum found, by size
    members: NDArray[np.int32]  # (most + 1, most): its units


# plan: first and last price; the temperature, in multiples of the price; operations in total and
# so far; the drift of a pivot beyond which the table must be recomputed; all moves so far; and the
# price at which supports of a size are compared, where costs differ
PRICE_FROM, PRICE_TO, HEAT, WORK, WORK_DONE, MOST_DRIFT, MOVES, COMPARED = 0, 1, 2, 3, 4, 5, 6, 7
WINDOW = 128  # columns per trial: the best of all columns would lead down too directly
SINGLES = 0.2  # share of trials that are additions or removals, not swaps
# moves for which a column that has left is tabu, at most; half as many on average. Otherwise
# hundreds of moves in a row exchange the same few columns, and lead nowhere
MOST_AWAY = 20


@part
def draw_chance(state):
    """Draw a number in [0, 1), by shifts of 64 bits."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@part
def note_support(table, units, chosen, cooling):
    """Record the support if it is the best of its size; O(|S|)."""
    size, value = chosen[-1], table.value[MINIMUM]
    if units is not None:
        price = cooling.plan[COMPARED]
        value = objective_of(table, units, chosen, price) - price * size
    if size < cooling.values.size and value < cooling.values[size]:
        cooling.values[size] = value
        for a in range(size):
            cooling.members[size, a] = chosen[a]


@part
def rest(cooling, n_outside, j):
    """Count a move, and make the unit j that it removed, if any, tabu for some moves."""
    move = int(cooling.plan[MOVES]) + 1
    cooling.plan[MOVES] = move
    # most units outside can always enter, and none is tabu after its slot is reused
    longest = min(MOST_AWAY, n_outside // 4)
    cooling.away[0, move % MOST_AWAY] = j
    cooling.away[1, move % MOST_AWAY] = move + int(longest * draw_chance(cooling.chances))


@part
def bar_those_away(table, units, cooling):
    """Mask tabu units for trials."""
    barred, move = barred_pivot(table), int(cooling.plan[MOVES])
    for k in range(MOST_AWAY):
        j = cooling.away[0, k]
        if j >= 0 and cooling.away[1, k] > move:
            if units is None:
                table.border[SCAN_EDGE, j], table.border[SCAN_PIVOT, j] = 0.0, barred
            else:
                table.border[SCAN_PIVOT, units.starts[j]] = barred


@wide
def anneal(table, units, cooling, budget, tolerance, until):
    """Run trials at a falling price until a number of operations is reached; all of H is known.

    A trial is the best addition among some units, the removal of a member, or the best swap of a
    member with some units; it is accepted if it raises the objective by less than an exponential
    random number times the temperature, a fixed share of the price. A unit that has left is tabu
    for some moves. A trial takes O(WINDOW), an accepted one O(p |S|). Returns DONE, or DRIFTED;
    called again it continues.
    """
    plan, chances, p, n_units = cooling.plan, cooling.chances, table.slot.size, table.kept.size
    fall = np.log(plan[PRICE_TO] / plan[PRICE_FROM]) / plan[WORK]
    is_fresh, each = False, max(p // max(n_units, 1), 1)
    chosen = table.member if units is None else units.chosen
    # of groups fewer, so that a trial takes about as long
    window, trial = max(WINDOW // each, 4), (WINDOW + 16) * each
    while plan[WORK_DONE] < until:
        if not is_fresh:
            prepare_scan(table, units)
            bar_those_away(table, units, cooling)
            is_fresh = True
        price = plan[PRICE_FROM] * np.exp(fall * plan[WORK_DONE])
        ceiling = -plan[HEAT] * price * np.log(1.0 - draw_chance(chances))
        # all units are tried equally often, including the first and the last
        first = int(draw_chance(chances) * (n_units + window - 1)) - window + 1
        low, high = max(first, 0), min(first + window, n_units)
        kind, size = draw_chance(chances), chosen[-1]
        enters, leaves, a = -1, -1, int(draw_chance(chances) * size)
        plan[WORK_DONE] += trial
        if kind < 0.5 * SINGLES:
            if size < budget:
                enters = best_addition(table, units, low, high, price, ceiling)
        elif size > 0 and not table.kept[chosen[a]]:
            j = chosen[a]
            if kind >= SINGLES:
                enters = best_swap(table, units, a, low, high, price, ceiling)
                leaves = j if enters >= 0 else -1
            elif removal_change(table, units, a, price) < ceiling:
                leaves = j
        if enters < 0 and leaves < 0:
            continue
        work = 1.5 if enters >= 0 and leaves >= 0 else 1.0
        work = each * p * (4.0 + table.member[-1] * work)
        is_fresh = not make_move(table, units, enters, leaves, price, ceiling, tolerance)
        if units is not None and is_fresh:
            plan[WORK_DONE] += 4.0 * table.member[-1] ** 2
            continue
        plan[WORK_DONE] += work
        rest(cooling, n_units - chosen[-1], leaves)
        if table.value[DRIFT] > plan[MOST_DRIFT]:
            return DRIFTED
        note_support(table, units, chosen, cooling)
    return DONE


@wide
def removal_costs(table, units, costs):
    """Compute by how much the removal of each unit of the support raises the minimum."""
    prepare_scan(table, units)
    for a in range(units.chosen[-1]):
        costs[a] = leave_unit(table, units, units.chosen[a])[1]


@wide
def unit_changes(table, units, price, has_room, change):
    """Lower `change` to that of the objective by the best addition or swap with each unit.

    O(|S|) times the gains of all units. Within bounds no move is better, but some are worse.
    """
    prepare_scan(table, units)
    for a in range(-1 if has_room else 0, units.chosen[-1]):
        leaves = units.chosen[a] if a >= 0 else -1
        if a >= 0 and table.kept[leaves]:
            continue
        n_left, cost = leave_unit(table, units, leaves)
        cost -= price * units.costs[leaves] if a >= 0 else 0.0
        for unit in range(units.place.size):
            if units.place[unit] < 0:
                gain = gain_of_unit(table, units, unit, n_left)
                paid = cost + price * units.costs[unit] - gain
                if gain > 0.0:
                    change[unit] = smaller(change[unit], paid)


@wide
def price_swaps(W, diagonal, w, free, slopes, pivots, least, change):
    """Lower `change`, per column outside the support, to its best swap for a free member; O(s c).

    W (s, c) are the regressions of c columns on the support, `diagonal` that of K = inv(H_SS), w
    the coefficients; `slopes`, `pivots` and `least` the gradient, the pivots M_ii and the smallest
    pivots that count.
    """
    for a in range(w.size):
        if not free[a]:
            continue
        row, inverse = W[a], 1.0 / diagonal[a]
        ratio = w[a] * inverse
        cost = 0.5 * w[a] * ratio
        for i in range(row.size):
            slope = slopes[i] - row[i] * ratio
            pivot = larger(pivots[i] + row[i] * row[i] * inverse, least[i])
            change[i] = smaller(change[i], cost - 0.5 * slope * slope / pivot)


# --------------------------------------------------------------------------------------------------
# 4. The perspective relaxation:  min over v and 0 <= z <= 1 with Σz <= room over free columns, of
#    ½v'(H − D)v − c'v + ½ Σ d_j v_j²/z_j + price·Σz,   z_j = 1 for columns that are in
# --------------------------------------------------------------------------------------------------


class Relaxation(NamedTuple):
    """The units of a node, their directions in H, and what is relaxed.

    A direction is a column of length one, or one of an orthonormal basis of a group. With x the
    coefficients of a unit u, ‖√d_u x‖ = s, and b = c − (H − D)v, memberships are z_u = min(1, s/θ)
    for one θ: full units have b = d_u x, fractional ones ‖b‖/√d_u = θ, absent ones less. A unit
    that costs more has a larger θ, and one direction within bounds is full at its bound at the
    latest.
    """

    H: NDArray[np.float64]  # (n, n)
    at: NDArray[np.int64]  # (N,) directions
    starts: NDArray[np.int64]  # (q + 1,) where each unit starts in `at`
    is_in: NDArray[np.bool_]  # (q,)
    rows: NDArray[np.float64]  # (19, C, N), for C responses
    square: NDArray[np.float64]  # (p, p), for systems of up to p unknowns
    chosen: NDArray[np.int64]  # (2, N), directions and units of the unknowns
    state: NDArray[np.float64]  # (14,)


# rows of directions and responses: c as given; the point v and g = c − Hv; the same of the best
# bound, and of a trial
# (with a type, since numba compiles a function once for every literal that it is given)
LINEAR, V, G, BEST_V, BEST_G, TRIAL_V, TRIAL_G = np.arange(7)
FIRST_RESPONSE = np.int64(0)
# rows of units: d; the largest curvature of its block of H; what its price is above the least one,
# doubled; numbers to choose from
SHARE, STEEP, EXTRA, SIZES = range(7, 11)
# rows of directions: bounds, and d of their units
LOWEST, HIGHEST, OWN = range(11, 14)
# rows of the unknowns of `polish`: √d times the direction of fractional units, 0 for others; the
# curvature of their norm across it; the start of a step; and two right-hand sides, or solutions
SIGN, ACROSS, START, FIRST, SECOND = range(14, 19)
RELAXATION_ROWS = 19

# state: θ; the lowest value and the θ of its memberships; the best bound; sweeps so far; a
# bracket of θ; sweeps and remainder at the last check of progress; the unknowns of a system that
# the caller must solve, 0 for none, negative if it has no solution; the exponent of the next step
# of θ, and the side of the last one; 1 if there are bounds, or several prices; and 1 if every unit
# is one direction, and there is one response
THETA, VALUE, VALUE_THETA, PROVEN, SWEEPS, LOW, HIGH, WATCHED, REST, ASKED, PACE, SIDE = range(12)
MIXED, SINGLE, RELAXATION_STATE = 12, 13, 14

CHECK_EVERY, POLISH_EVERY, MOST_SWEEPS = 4, 8, 400  # sweeps
POLISH_SHIFT = 1e-9  # relative: keeps a singular system of fractional columns solvable
FIRST_PACE, MOST_PACE = 0.4, 8.0  # exponent of the overcrowding by which the threshold moves
PACE_GROWS, PACE_FALLS = 1.2, 0.5  # factors of that exponent while it moves one way, and on turning
THETA_SLACK = 0.05  # relative uncertainty of the threshold added by a sweep
PATIENT_SWEEPS, PATIENT_SHARE = 32, 0.7  # share of the gap that may remain after this many sweeps
FLAT = 1e-14  # relative decrease of a value that counts as none
MOST_GROWN = 1e6  # factor of a threshold searched within bounds
BISECTIONS = 40  # of a membership, and of a threshold with bounds or several prices


@inner
def move_largest(a, n, k):
    """Reorder a[:n] so that its k largest numbers are the last, 0 < k < n; O(n) on average."""
    low, high, first = 0, n - 1, n - k
    while low < high:
        pivot = a[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if first <= j:
            high = j
        elif first >= i:
            low = i
        else:
            return


@inner
def size_of_unit(relaxation, which, u):
    """Compute √d‖x‖ of the coefficients of a unit at one of the points."""
    rows, first = relaxation.rows, relaxation.starts[u]
    root = np.sqrt(rows[SHARE, 0, u])
    if relaxation.state[SINGLE] > 0.0:
        return root * abs(rows[which, 0, first])
    total = 0.0
    for c in range(rows.shape[1]):
        for i in range(first, relaxation.starts[u + 1]):
            total += rows[which, c, i] * rows[which, c, i]
    return root * np.sqrt(total)


@inner
def threshold_of_unit(relaxation, which, u, theta):
    """Return the size from which a unit is full at a threshold, given the side of its point."""
    rows, i = relaxation.rows, relaxation.starts[u]
    if relaxation.state[MIXED] == 0.0:
        return theta
    own = np.sqrt(theta * theta + rows[EXTRA, 0, u])
    if relaxation.starts[u + 1] - i != 1 or rows.shape[1] != 1:
        return own
    side = rows[HIGHEST, 0, i] if rows[which, 0, i] > 0.0 else -rows[LOWEST, 0, i]
    return smaller(own, side * np.sqrt(rows[SHARE, 0, u]))


@inner
def crowd(relaxation, which, theta):
    """Sum the memberships of the free units at a point, for a threshold."""
    total = 0.0
    for u in range(relaxation.is_in.size):
        size = 0.0 if relaxation.is_in[u] else size_of_unit(relaxation, which, u)
        if size > 0.0:
            full = threshold_of_unit(relaxation, which, u, theta)
            total += size / full if size < full else 1.0
    return total


@inner
def threshold_of(relaxation, which, room, least):
    """Find θ with Σ min(1, size/θ) = room over free units, or `least` if all fit.

    Searched from above: too large a θ makes too few units full. With bounds or several prices it is
    bisected.
    """
    sizes, n, below = relaxation.rows[SIZES, 0], 0, 0.0
    for u in range(relaxation.is_in.size):
        size = 0.0 if relaxation.is_in[u] else size_of_unit(relaxation, which, u)
        if size > 0.0:
            sizes[n] = size
            below += size
            n += 1
    if n <= room:
        return least
    theta, n_full = below / room, -1
    if relaxation.state[MIXED] > 0.0:
        if crowd(relaxation, which, least) <= room:
            return least
        low, high = least, larger(theta, least)
        # memberships at a bound do not shrink, so that there may be no such θ
        while crowd(relaxation, which, high) > room and high < MOST_GROWN * theta:
            low, high = high, 2.0 * high
        if not high < MOST_GROWN * theta:
            return larger(theta, least)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if crowd(relaxation, which, middle) > room:
                low = middle
            else:
                high = middle
        return high
    while True:
        n_now, below = 0, 0.0
        for i in range(n):
            if sizes[i] >= theta:
                n_now += 1
            else:
                below += sizes[i]
        if n_now <= n_full or n_now >= room:
            return larger(theta, least)
        n_full = n_now
        theta = below / (room - n_full)


@inner
def tangent_gain(relaxation, v, g, u):
    """Compute how far coefficients of a unit, within bounds, can lower the tangent at v."""
    rows, first, gain = relaxation.rows, relaxation.starts[u], 0.0
    d = rows[SHARE, 0, u]
    for c in range(rows.shape[1]):
        for i in range(first, relaxation.starts[u + 1]):
            b = rows[g, c, i] + d * rows[v, c, i]
            x = smaller(larger(b / d, rows[LOWEST, 0, i]), rows[HIGHEST, 0, i])
            gain += x * (b - 0.5 * d * x)
    return gain


@inner
def first_threshold(relaxation, room):
    """Return the θ at which as many free units as there is room would be full from b alone."""
    rows, n = relaxation.rows, 0
    for u in range(relaxation.is_in.size):
        if not relaxation.is_in[u]:
            gain = 2.0 * tangent_gain(relaxation, V, G, u) - rows[EXTRA, 0, u]
            rows[SIZES, 0, n] = np.sqrt(larger(gain, 0.0))
            n += 1
    move_largest(rows[SIZES, 0], n, room)
    return rows[SIZES, 0, n - room]


@inner
def relaxed_value(relaxation, v, g, price, theta):
    """Compute the relaxed objective at v, with g = c − Hv."""
    rows, value = relaxation.rows, 0.0
    for c in range(rows.shape[1]):
        for i in range(relaxation.at.size):
            x = rows[v, c, i]
            if x != 0.0:
                value -= 0.5 * x * (rows[LINEAR, c, i] + rows[g, c, i] + rows[OWN, 0, i] * x)
    for u in range(relaxation.is_in.size):
        size = size_of_unit(relaxation, v, u)
        if size == 0.0:
            continue
        own = price + 0.5 * rows[EXTRA, 0, u]
        full = threshold_of_unit(relaxation, v, u, theta)
        if relaxation.is_in[u]:
            value += 0.5 * size * size
        elif size < full:
            value += 0.5 * size * full + own * size / full
        else:
            value += 0.5 * size * size + own
    return value


@inner
def tangent_bound(relaxation, v, g, room, price):
    """Compute the lowest objective allowed by the tangent at v, g = c − Hv; O(N) on average."""
    rows, bound, n = relaxation.rows, 0.0, 0
    for c in range(rows.shape[1]):
        for i in range(relaxation.at.size):
            x = rows[v, c, i]
            if x != 0.0:
                bound -= 0.5 * x * (rows[LINEAR, c, i] - rows[g, c, i] - rows[OWN, 0, i] * x)
    is_plain = relaxation.state[SINGLE] > 0.0 and relaxation.state[MIXED] == 0.0
    for u in range(relaxation.is_in.size):
        if is_plain:
            d = rows[SHARE, 0, u]
            b = rows[g, 0, u] + d * rows[v, 0, u]
            score = 0.5 * b * b / d
        else:
            score = tangent_gain(relaxation, v, g, u)
        if relaxation.is_in[u]:
            bound -= score
            continue
        score -= price + 0.5 * rows[EXTRA, 0, u]
        if score > 0.0:
            rows[SIZES, 0, n] = score
            n += 1
    if 0 < room < n:
        move_largest(rows[SIZES, 0], n, room)
    for i in range(larger(n - room, 0), n):
        bound -= rows[SIZES, 0, i]
    return bound


@inner
def subtract_column(relaxation, i, step, g):
    """Compute g −= step·H_i."""
    row, at = relaxation.H[relaxation.at[i]], relaxation.at
    for l in range(at.size):
        g[l] -= row[at[l]] * step


@inner
def move_direction(relaxation, c, i, x):
    """Set a coefficient, and update g; O(N) unless it stays."""
    step = x - relaxation.rows[V, c, i]
    if step != 0.0:
        relaxation.rows[V, c, i] = x
        subtract_column(relaxation, i, step, relaxation.rows[G, c])


@inner
def sweep_direction(relaxation, u, theta):
    """Minimize over a unit of one direction; return its membership."""
    rows, i, z = relaxation.rows, relaxation.starts[u], 1.0
    d, steep = rows[SHARE, 0, u], rows[STEEP, 0, u]
    pull = rows[G, 0, i] + steep * rows[V, 0, i]
    most = rows[HIGHEST, 0, i] if pull > 0.0 else -rows[LOWEST, 0, i]
    size, root = abs(pull), np.sqrt(d)
    x = smaller(size / steep, most)
    if not relaxation.is_in[u]:
        own, slope, full = theta, theta * root, theta / root
        if relaxation.state[MIXED] > 0.0:
            own = np.sqrt(theta * theta + rows[EXTRA, 0, u])
            slope, full = own * root, own / root
            if most < full:
                full = most
                slope = 0.5 * (d * full + own * own / full) if full > 0.0 else np.inf
        if size <= slope:
            x = 0.0
        elif x < full:
            x = smaller((size - slope) / (steep - d), full)
        z = 0.0 if x == 0.0 else (x / full if x < full else 1.0)
    move_direction(relaxation, FIRST_RESPONSE, i, x if pull > 0.0 else -x)
    return z


@inner
def sweep_block(relaxation, u, theta):
    """Take the best step of a majorizer over a unit of several coefficients; return its membership.

    It is exact if the directions are orthonormal. With bounds on several directions the membership
    is bisected.
    """
    rows, first, last = relaxation.rows, relaxation.starts[u], relaxation.starts[u + 1]
    d, steep = rows[SHARE, 0, u], rows[STEEP, 0, u]
    rho, is_bounded = 0.0, False
    for c in range(rows.shape[1]):
        for i in range(first, last):
            pull = rows[G, c, i] + steep * rows[V, c, i]
            rows[TRIAL_V, c, i] = pull
            rho += pull * pull
            is_bounded |= rows[LOWEST, 0, i] > -np.inf or rows[HIGHEST, 0, i] < np.inf
    rho, z, share = np.sqrt(rho), 1.0, 1.0 / steep
    if not relaxation.is_in[u]:
        own, root = np.sqrt(theta * theta + rows[EXTRA, 0, u]), np.sqrt(d)
        if is_bounded and rows.shape[1] == 1 and steep > d:
            z = membership(relaxation, u, 0.5 * own * own)
            share = z / ((steep - d) * z + d)
        elif rho <= own * root:
            z = share = 0.0
        elif rho * root < own * steep:
            size = (rho - own * root) / (steep - d)
            z, share = size * root / own, size / rho
    for c in range(rows.shape[1]):
        for i in range(first, last):
            x = share * rows[TRIAL_V, c, i]
            move_direction(
                relaxation, c, i, smaller(larger(x, rows[LOWEST, 0, i]), rows[HIGHEST, 0, i])
            )
    return z


@inner
def membership(relaxation, u, level):
    """Find z in [0, 1] minimizing ½r‖x‖² − p'x + ½d‖x‖²/z + level·z within bounds, r = steep − d.

    For a z the best x is p·z/(r·z + d) within bounds. The slope in z, level − ½d‖x/z‖², rises with
    z, and is bisected. O(d) a bisection.
    """
    rows, first, last = relaxation.rows, relaxation.starts[u], relaxation.starts[u + 1]
    d, rest = rows[SHARE, 0, u], rows[STEEP, 0, u] - rows[SHARE, 0, u]
    bottom, top, z = 0.0, 2.0, 1.0
    for _ in range(BISECTIONS):
        total = 0.0
        for i in range(first, last):
            x = rows[TRIAL_V, 0, i] * z / (rest * z + d)
            x = smaller(larger(x, rows[LOWEST, 0, i]), rows[HIGHEST, 0, i])
            total += x * x
        if 0.5 * d * total > level * z * z:
            if z == 1.0:
                return 1.0
            bottom = z
        else:
            top = z
        z = 0.5 * (bottom + top)
    return bottom


@inner
def sweep_units(relaxation, theta):
    """Minimize over every unit in turn; return Σz of the free. O(N) for each direction moved."""
    rows, total = relaxation.rows, 0.0
    is_single, square = relaxation.state[SINGLE] > 0.0, theta * theta
    for u in range(relaxation.is_in.size):
        if is_single and rows[V, 0, u] == 0.0 and not relaxation.is_in[u]:
            # most columns are absent, and remain so: bounds and costs only raise the threshold
            if rows[G, 0, u] * rows[G, 0, u] <= square * rows[SHARE, 0, u]:
                continue
        n_directions = relaxation.starts[u + 1] - relaxation.starts[u]
        if n_directions == 0:
            continue
        if n_directions == 1 and rows.shape[1] == 1:
            z = sweep_direction(relaxation, u, theta)
        else:
            z = sweep_block(relaxation, u, theta)
        total += 0.0 if relaxation.is_in[u] else z
    return total


@inner
def factor(U, n):
    """Factor a positive definite matrix in place, upper triangular; return False if it is not."""
    for j in range(n):
        if not U[j, j] > 0.0:
            return False
        root = np.sqrt(U[j, j])
        for l in range(j, n):
            U[j, l] /= root
        for i in range(j + 1, n):
            share = U[j, i]
            if share != 0.0:
                for l in range(i, n):
                    U[i, l] -= share * U[j, l]
    return True


@inner
def solve_factored(U, n, x):
    """Compute x = inv(U'U) x."""
    for j in range(n):
        x[j] /= U[j, j]
        for l in range(j + 1, n):
            x[l] -= U[j, l] * x[j]
    for j in range(n - 1, -1, -1):
        for l in range(j + 1, n):
            x[j] -= U[j, l] * x[l]
        x[j] /= U[j, j]


@inner
def count_full(relaxation, theta):
    """Count free units with a membership of one."""
    n_full = 0
    for u in range(relaxation.is_in.size):
        size = 0.0 if relaxation.is_in[u] else size_of_unit(relaxation, V, u)
        if size > 0.0 and size >= threshold_of_unit(relaxation, V, u, theta):
            n_full += 1
    return n_full


@inner
def set_up_polish(relaxation, room, theta):
    """Set up directions, signs and right-hand sides of `polish`; return the number of unknowns.

    The system is solved for a step from v, so that its shift moves no point that is right. If full
    units take all the room, the others are left out, and there is no shift. With bounds or several
    prices θ stays, and so do coefficients at a bound. The norm of a group is replaced by its
    second-order model.
    """
    rows, chosen, k = relaxation.rows, relaxation.chosen, 0
    is_mixed = relaxation.state[MIXED] > 0.0
    has_room = is_mixed or count_full(relaxation, theta) < room
    for u in range(relaxation.is_in.size):
        size, d = size_of_unit(relaxation, V, u), rows[SHARE, 0, u]
        full = threshold_of_unit(relaxation, V, u, theta)
        is_full = relaxation.is_in[u] or (size > 0.0 and size >= full)
        if not is_full and (size == 0.0 or not has_room):
            continue
        n_directions = relaxation.starts[u + 1] - relaxation.starts[u]
        slope = theta
        if is_mixed and not is_full:
            slope = 0.5 * (full + (theta * theta + rows[EXTRA, 0, u]) / full)
        for i in range(relaxation.starts[u], relaxation.starts[u + 1]):
            x, g = rows[V, 0, i], rows[G, 0, i]
            if is_mixed and (x <= rows[LOWEST, 0, i] or x >= rows[HIGHEST, 0, i]):
                continue
            chosen[0, k], chosen[1, k] = i, u
            rows[SIGN, 0, k] = 0.0 if is_full else d * x / size
            rows[ACROSS, 0, k] = slope * d / size if n_directions > 1 and not is_full else 0.0
            rows[START, 0, k], rows[SECOND, 0, k] = 0.0, rows[SIGN, 0, k]
            rows[FIRST, 0, k] = rows[LINEAR, 0, i]
            if has_room:
                rows[START, 0, k], rows[FIRST, 0, k] = x, g if is_full else g + d * x
            if is_mixed:
                rows[FIRST, 0, k] -= slope * rows[SIGN, 0, k]
                rows[SECOND, 0, k] = 0.0
            k += 1
    return k


@inner
def solve_polish(relaxation, k):
    """Solve the system of `polish` here; return False if it is singular."""
    rows, chosen, B = relaxation.rows, relaxation.chosen, relaxation.square
    for i in range(k):
        row, d = relaxation.H[relaxation.at[chosen[0, i]]], rows[SHARE, 0, chosen[1, i]]
        across = rows[ACROSS, 0, i]
        for l in range(i, k):
            B[i, l] = row[relaxation.at[chosen[0, l]]]
            if across > 0.0 and chosen[1, i] == chosen[1, l]:
                B[i, l] -= across * rows[SIGN, 0, i] * rows[SIGN, 0, l] / d
        if rows[SIGN, 0, i] != 0.0 or across > 0.0:
            B[i, i] += POLISH_SHIFT * B[i, i] + across - d
    if k == 0 or not factor(B, k):
        return False
    solve_factored(B, k, rows[FIRST, 0])
    solve_factored(B, k, rows[SECOND, 0])
    return True


@inner
def polish(relaxation, room, price, k):
    """Compute the point implied by the full, fractional and absent units of v.

    That is a linear system in v, solved already, in which θ follows from Σz = room, or is
    √(2·price) if there is room. Returns θ, which is 0 only if all units are full for nothing, and
    negative if there is no such point.
    """
    rows, chosen, is_mixed = relaxation.rows, relaxation.chosen, relaxation.state[MIXED] > 0.0
    first, second, theta = rows[FIRST, 0], rows[SECOND, 0], relaxation.state[THETA]
    given, taken, n_full, n_part = 0.0, 0.0, 0, 0
    for i in range(k):
        first[i] += rows[START, 0, i]
        is_new = i == 0 or chosen[1, i] != chosen[1, i - 1]
        if rows[SIGN, 0, i] != 0.0 or rows[ACROSS, 0, i] > 0.0:
            n_part += 1 if is_new else 0
            given += rows[SIGN, 0, i] * first[i]
            taken += rows[SIGN, 0, i] * second[i]
        elif is_new and not relaxation.is_in[chosen[1, i]]:
            n_full += 1
    least = np.sqrt(2.0 * price)
    left = room - n_full + taken
    if n_part > 0 and not is_mixed:
        all_fit = n_full + n_part <= room
        theta = least if all_fit or left <= 0.0 else larger(given / left, least)
    if n_part > 0 and not theta > 0.0 and not is_mixed:
        return -1.0
    for i in range(relaxation.at.size):
        # with bounds the coefficients that are no unknowns stay
        rows[TRIAL_V, 0, i] = rows[V, 0, i] if is_mixed else 0.0
        rows[TRIAL_G, 0, i] = rows[LINEAR, 0, i]
    set_unknowns(relaxation, k, theta)
    for i in range(relaxation.at.size):
        if rows[TRIAL_V, 0, i] != 0.0:
            subtract_column(relaxation, i, rows[TRIAL_V, 0, i], rows[TRIAL_G, 0])
    return theta


@inner
def set_unknowns(relaxation, k, theta):
    """Set the unknowns of `polish`; a unit that would turn around becomes zero."""
    rows, chosen, start = relaxation.rows, relaxation.chosen, 0
    for i in range(k):
        last = i + 1 == k or chosen[1, i + 1] != chosen[1, i]
        if not last:
            continue
        along = 0.0
        for l in range(start, i + 1):
            rows[FIRST, 0, l] -= theta * rows[SECOND, 0, l]
            along += rows[SIGN, 0, l] * rows[FIRST, 0, l]
        for l in range(start, i + 1):
            j = chosen[0, l]
            x = smaller(larger(rows[FIRST, 0, l], rows[LOWEST, 0, j]), rows[HIGHEST, 0, j])
            rows[TRIAL_V, 0, j] = x if along >= 0.0 else 0.0
        start = i + 1


@inner
def copy_point(relaxation, v_from, g_from, v_to, g_to):
    """Copy two rows to two others."""
    for c in range(relaxation.rows.shape[1]):
        for i in range(relaxation.at.size):
            relaxation.rows[v_to, c, i] = relaxation.rows[v_from, c, i]
            relaxation.rows[g_to, c, i] = relaxation.rows[g_from, c, i]


@inner
def start_relaxing(relaxation, room):
    """Compute g = c − Hv and a first θ; return the number of free units."""
    rows, state, n_free = relaxation.rows, relaxation.state, 0
    for u in range(relaxation.is_in.size):
        n_free += 0 if relaxation.is_in[u] else 1
    if state[SWEEPS] > 0.0 or state[ASKED] != 0.0:
        return n_free
    for c in range(rows.shape[1]):
        for i in range(relaxation.at.size):
            rows[G, c, i] = rows[LINEAR, c, i]
        for i in range(relaxation.at.size):
            if rows[V, c, i] != 0.0:
                subtract_column(relaxation, i, rows[V, c, i], rows[G, c])
    if state[THETA] == 0.0 and 0 < room < n_free:
        state[THETA] = first_threshold(relaxation, room)
    state[VALUE], state[VALUE_THETA], state[PROVEN] = np.inf, state[THETA], -np.inf
    state[HIGH], state[REST], state[PACE] = np.inf, np.inf, FIRST_PACE
    return n_free


@inner
def take_polished(relaxation, room, price):
    """Move to the point of `polish` if it is lower, or as low and proves more; return if so."""
    state = relaxation.state
    k, state[ASKED] = int(state[ASKED]), 0.0
    new = polish(relaxation, room, price, k) if k > 0 else -1.0
    if not new >= 0.0:
        return False
    own = threshold_of(relaxation, TRIAL_V, room, np.sqrt(2.0 * price))
    there = relaxed_value(relaxation, TRIAL_V, TRIAL_G, price, own)
    flat = FLAT * abs(state[VALUE])
    if not there < state[VALUE] - flat:
        # near the minimum a value is accurate before its bound is
        bound = tangent_bound(relaxation, TRIAL_V, TRIAL_G, room, price)
        middle = 0.5 * (state[VALUE] + state[PROVEN])
        if not (there <= state[VALUE] + flat and bound > larger(middle, state[PROVEN] + flat)):
            return False
    copy_point(relaxation, TRIAL_V, TRIAL_G, V, G)
    state[THETA] = new
    return True


@inner
def is_relaxed(relaxation, room, price, cutoff, tolerance, share, most_sweeps):
    """Evaluate the point v; return whether it suffices."""
    state, least = relaxation.state, np.sqrt(2.0 * price)
    state[THETA] = larger(state[THETA], least)
    own = threshold_of(relaxation, V, room, least)
    there = relaxed_value(relaxation, V, G, price, own)
    if there < state[VALUE]:
        state[VALUE], state[VALUE_THETA] = there, own
    there = tangent_bound(relaxation, V, G, room, price)
    if there > state[PROVEN]:
        state[PROVEN] = there
        copy_point(relaxation, V, G, BEST_V, BEST_G)
    value, bound, n_sweeps = state[VALUE], state[PROVEN], state[SWEEPS]
    rest = value - bound
    if rest <= tolerance or bound >= cutoff or n_sweeps >= most_sweeps:
        return True
    if value < cutoff and rest <= share * (cutoff - value):
        return True
    if n_sweeps >= state[WATCHED] + PATIENT_SWEEPS:
        if rest > PATIENT_SHARE * state[REST]:
            return True
        state[WATCHED], state[REST] = n_sweeps, rest
    return False


@inner
def pace_of(state, is_crowded):
    """Return the exponent of a step of θ: it grows along a direction, and drops on turning."""
    side = 1.0 if is_crowded else -1.0
    if state[SIDE] != 0.0:
        state[PACE] *= PACE_GROWS if state[SIDE] == side else PACE_FALLS
    state[SIDE], state[PACE] = side, smaller(state[PACE], MOST_PACE)
    return state[PACE]


@inner
def sweep_and_balance(relaxation, room, least, n_free):
    """Sweep, and move θ to where the memberships fill the room."""
    state = relaxation.state
    for _ in range(CHECK_EVERY):
        theta = state[THETA]
        total = sweep_units(relaxation, theta)
        state[SWEEPS] += 1.0
        if room < n_free:
            slack = 1.0 + THETA_SLACK
            # memberships follow θ with a delay, so the bracket is widened continually
            low, high = state[LOW], state[HIGH]
            if total > room:
                low = larger(theta, low)
            else:
                high = smaller(theta, high)
            theta *= (larger(total, 0.1) / room) ** pace_of(state, total > room)
            if low < high and not low < theta < high:
                # no step leads back from a θ of zero
                theta = np.sqrt(low * high) if low > 0.0 else 0.5 * high
            state[LOW], state[HIGH] = low / slack, high * slack
            state[THETA] = larger(theta, least)


@kernel
def relax_units(relaxation, room, price, cutoff, tolerance, share, most_sweeps):
    """Descend in v, from `state[THETA]`, leaving v and g = c − Hv at the best bound.

    Ends when value and bound are within `tolerance`; when the bound reaches the cutoff; when they
    are within `share` of the distance to it, as the rest cannot help much; or after `most_sweeps`.
    Sweeps over units find the sets of full, fractional and absent ones; occasionally the point that
    these sets imply is tried, of one response. If that is a system larger than `square`, it returns
    with the number of unknowns in `state[ASKED]`, to be called again with the solutions in the rows
    FIRST and SECOND, or with a negative number if there is none.
    """
    state, least = relaxation.state, np.sqrt(2.0 * price)
    n_free = start_relaxing(relaxation, room)
    is_answered, is_single = state[ASKED] != 0.0, relaxation.rows.shape[1] == 1
    while True:
        if is_answered:
            is_answered = False
            if not take_polished(relaxation, room, price):
                sweep_and_balance(relaxation, room, least, n_free)
        if is_relaxed(relaxation, room, price, cutoff, tolerance, share, most_sweeps):
            break
        if is_single and state[SWEEPS] % POLISH_EVERY == POLISH_EVERY - CHECK_EVERY:
            k = set_up_polish(relaxation, room, state[THETA])
            state[ASKED] = k
            if k > relaxation.square.shape[0]:
                return
            if not solve_polish(relaxation, k):
                state[ASKED] = -1.0
            is_answered = True
        else:
            sweep_and_balance(relaxation, room, least, n_free)
    copy_point(relaxation, BEST_V, BEST_G, V, G)


# --------------------------------------------------------------------------------------------------
# 5. Supports with two more columns, in closed form
# --------------------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """Free columns after eliminating the others; see `exact.last_columns`."""

    H: NDArray[np.float64]  # (n, n)
    free: NDArray[np.int64]  # (q,) columns of H
    taken: NDArray[np.float64]  # (q, q), what the elimination takes from H
    root: NDArray[np.float64]  # (q,), of the diagonal of M = H − taken
    u: NDArray[np.float64]  # (q,)
    error_u: NDArray[np.float64]  # (q,)
    is_clear: NDArray[np.bool_]  # (q,)
    doubts: NDArray[np.int64]  # (p, 2)


@kernel
def weigh_pairs(pairs, base, cutoff, error_rho, least_apart, roundings):
    """Find the lowest value of a pair that reaches the cutoff; list the others as doubts.

    Returns that value and the number of doubts. A pair gains ½(u_i² − 2ρu_iu_j + u_j²)/(1 − ρ²),
    whose slopes are at most 2(u_i² + u_j²)/(1 − ρ²)² in ρ and 2(|u_i| + |u_j|)/(1 − ρ²) in u.
    """
    u, error_u, lowest, n_doubts = pairs.u, pairs.error_u, np.inf, 0
    for i in range(pairs.free.size - 1):
        row = pairs.H[pairs.free[i]]
        for j in range(i + 1, pairs.free.size):
            rho = (row[pairs.free[j]] - pairs.taken[i, j]) / (pairs.root[i] * pairs.root[j])
            apart = 1.0 - rho * rho
            value = -np.inf
            if pairs.is_clear[i] and pairs.is_clear[j] and apart > least_apart:
                total, shift = u[i] * u[i] + u[j] * u[j], abs(u[i]) + abs(u[j])
                gain = 0.5 * (total - 2.0 * rho * u[i] * u[j])
                gain += roundings * shift * (error_u[i] + error_u[j])
                gain += roundings * total * error_rho / apart
                value = base - gain / apart
            if value >= cutoff:
                lowest = smaller(lowest, value)
            else:
                if n_doubts == pairs.doubts.shape[0]:
                    return lowest, n_doubts
                pairs.doubts[n_doubts, 0], pairs.doubts[n_doubts, 1] = i, j
                n_doubts += 1
    return lowest, n_doubts


# --------------------------------------------------------------------------------------------------
# 6. Losses: values, slopes and curvatures in one pass over the samples
# --------------------------------------------------------------------------------------------------

LOSS, LOSS_SLOPE, LOSS_BEND = 0, 1, 2
LARGEST_EXPONENT = 300.0
NOT_NEAR = 0.5
EXP_REST = tuple(1.0 / factorial(k) for k in range(2, 17))  # of (exp(c) − 1 − c)/c²


@wide
def weighted_squares(X_t, weights, out):
    """Compute Σ_i weights_i x_ij² of the columns j of X, the rows of its transpose (n, m)."""
    for j in range(X_t.shape[0]):
        total = 0.0
        for i in range(X_t.shape[1]):
            total += weights[i] * X_t[j, i] * X_t[j, i]
        out[j] = total


@kernel
def logistic_terms(eta, y, small, logs, out):
    """Compute log(1 + exp(−y·eta)), its slope and its curvature for every sample, out (3, m).

    `small` is exp(−|eta|), and `logs` are log(1 + small): NumPy computes them faster than a loop.
    """
    for i in range(eta.size):
        z = y[i] * eta[i]
        rest = 1.0 / (1.0 + small[i])
        rarer = small[i] * rest
        out[LOSS, i] = larger(-z, 0.0) + logs[i]
        out[LOSS_SLOPE, i] = -y[i] * (rarer if z > 0.0 else rest)
        out[LOSS_BEND, i] = rarer * rest


@kernel
def poisson_terms(eta, y, means, logs, out):
    """Compute exp(eta) − y·eta + y·log(y) − y, its slope and its curvature, out (3, m).

    `means` is exp(min(eta, 300)), and `logs` are log(y) where y > 0.
    """
    for i in range(eta.size):
        t = smaller(eta[i], LARGEST_EXPONENT)
        u = t - logs[i]
        # exp(u) − 1 − u as a series near zero, to avoid cancellation
        c = smaller(larger(u, -NOT_NEAR), NOT_NEAR)
        rest = EXP_REST[-1]
        for k in range(1, len(EXP_REST)):
            rest = EXP_REST[-1 - k] + c * rest
        near, far = y[i] * c * c * rest, means[i] - y[i] * (1.0 + u)
        slope = means[i] - y[i]
        # a product, not a branch, which would be unpredictable
        is_near = 1.0 if abs(u) < NOT_NEAR else 0.0
        out[LOSS, i] = is_near * near + (1.0 - is_near) * far + (eta[i] - t) * slope
        out[LOSS_SLOPE, i] = slope
        out[LOSS_BEND, i] = means[i]


@kernel
def softmax_terms(eta, y, P, U, values):
    """Compute probabilities and slopes (C, m), and losses (m,), at predictors eta (C, m)."""
    n_classes = eta.shape[0]
    for i in range(y.size):
        own, top = eta[y[i], i], 0.0
        for c in range(n_classes):
            if c != y[i]:
                top = larger(top, eta[c, i] - own)
        others, is_first = 0.0, top > 0.0
        for c in range(n_classes):
            if c == y[i]:
                P[c, i] = np.exp(-top)
                continue
            above = eta[c, i] - own
            P[c, i] = np.exp(above - top)
            if is_first and above == top:
                is_first = False  # exactly one, which the logarithm adds
            else:
                others += P[c, i]
        rest = others + (np.exp(-top) if top > 0.0 else 0.0)
        values[i] = top + np.log1p(rest)
        beside = 0.0
        for c in range(n_classes):
            P[c, i] /= 1.0 + rest
            U[c, i] = P[c, i]
            if c != y[i]:
                beside += P[c, i]
        # from the others where the sample's own class is nearly certain
        U[y[i], i] = -beside


@kernel
def softmax_along(P, U, weights, change):
    """Compute slope and curvature of the loss along a change (C, m), from P and slopes U."""
    slope, bend = 0.0, 0.0
    for i in range(weights.size):
        first, mean, second = 0.0, 0.0, 0.0
        for c in range(P.shape[0]):
            first += U[c, i] * change[c, i]
            mean += P[c, i] * change[c, i]
        for c in range(P.shape[0]):
            second += P[c, i] * (change[c, i] - mean) ** 2
        slope += weights[i] * first
        bend += weights[i] * second
    return slope, bend


# --------------------------------------------------------------------------------------------------
# 7. Newton's method for the softmax loss on a few columns of few samples
# --------------------------------------------------------------------------------------------------


class Mixture(NamedTuple):
    """A fit of C classes on a columns, in q = C − 1 contrasts, under construction."""

    columns: NDArray[np.float64]  # (a, m)
    y: NDArray[np.int64]  # (m,)
    weights: NDArray[np.float64]  # (m,)
    ridge: NDArray[np.float64]  # (a,)
    contrasts: NDArray[np.float64]  # (C, q)
    states: NDArray[np.float64]  # (2, 3, C, m): of the point and of one beside it, see below
    change: NDArray[np.float64]  # (C, m): by how much the step changes the predictors
    scratch: NDArray[np.float64]  # (2, m)
    hessian: NDArray[np.float64]  # (a q, a q)
    points: NDArray[np.float64]  # (5, a q): the point, one beside it, slope, step, units


# states: predictors, probabilities, slopes
ETA, PROBABILITY, DUAL = 0, 1, 2
# points; the first two are those of the states
HERE, THERE, SLOPE, STEP, UNITS = 0, 1, 2, 3, 4
# Why `mix` returned: the point is the minimizer; the target is out of reach; or the rest needs
# more care than is taken here
MINIMAL, OUT_OF_REACH, HANDED_OVER = 0, 1, 2
# as in `problem.descent`, which explains them
NEWTON_TOLERANCE, LAST_ROUNDING, UNIT_DAMPING, FEWEST_DIGITS = 1e-12, 1e-14, 1e-13, 1e-9
LEAST_BEND, FAR_AWAY, LENGTHS, FLAT_ENOUGH, LEAST_DESCENT, BOLDER = 1e-20, 1e3, 80, 0.3, 1e-4, 8.0


@wide_inner
def dot(u, v):
    """Compute u'v."""
    total = 0.0
    for i in range(u.size):
        total += u[i] * v[i]
    return total


@inner
def value_of_mixture(mixture, which):
    """Compute the objective at known predictors, and set probabilities and slopes."""
    state, v, q = mixture.states[which], mixture.points[which], mixture.contrasts.shape[1]
    softmax_terms(state[ETA], mixture.y, state[PROBABILITY], state[DUAL], mixture.scratch[0])
    pull = 0.0
    for i in range(v.size):
        pull += mixture.ridge[i // q] * v[i] * v[i]
    return dot(mixture.weights, mixture.scratch[0]) + 0.5 * pull


@inner
def slope_of_mixture(mixture, duals, v, slope):
    """Compute A'(weights·duals)Q + ridge·v."""
    A, Q, weighted = mixture.columns, mixture.contrasts, mixture.scratch[1]
    q = Q.shape[1]
    for i in range(slope.size):
        slope[i] = mixture.ridge[i // q] * v[i]
    for c in range(Q.shape[0]):
        for i in range(weighted.size):
            weighted[i] = mixture.weights[i] * duals[c, i]
        for k in range(A.shape[0]):
            total = dot(weighted, A[k])
            for e in range(q):
                slope[k * q + e] += total * Q[c, e]


@inner
def add_pair(mixture, c, d):
    """Add the contribution of two classes to the upper half of the Hessian."""
    A, Q, P = mixture.columns, mixture.contrasts, mixture.states[HERE, PROBABILITY]
    bends, scaled, H, q = mixture.scratch[0], mixture.scratch[1], mixture.hessian, Q.shape[1]
    for i in range(bends.size):
        bends[i] = mixture.weights[i] * P[c, i] * P[d, i]
    for k in range(A.shape[0]):
        for i in range(bends.size):
            scaled[i] = bends[i] * A[k, i]
        for l in range(k, A.shape[0]):
            total = dot(scaled, A[l])
            for e in range(q):
                share = total * (Q[c, e] - Q[d, e])
                for f in range(q):
                    H[k * q + e, l * q + f] += share * (Q[c, f] - Q[d, f])


@inner
def step_of_mixture(mixture):
    """Compute the Newton step; return False if columns are nearly dependent."""
    H, Q, d = mixture.hessian, mixture.contrasts, mixture.points[UNITS]
    slope, step, n, q = mixture.points[SLOPE], mixture.points[STEP], d.size, Q.shape[1]
    for i in range(n):
        for j in range(n):
            H[i, j] = 0.0
        H[i, i] = mixture.ridge[i // q]
    for c in range(Q.shape[0]):
        for e in range(c + 1, Q.shape[0]):
            add_pair(mixture, c, e)
    for i in range(n):
        d[i] = np.sqrt(larger(H[i, i], LEAST_BEND))
        step[i] = -slope[i] / d[i]
    for i in range(n):
        for j in range(i, n):
            H[i, j] /= d[i] * d[j]
        H[i, i] += UNIT_DAMPING
    if not factor(H, n):
        return False
    for i in range(n):
        if not H[i, i] * H[i, i] > FEWEST_DIGITS:
            return False
    solve_factored(H, n, step)
    for i in range(n):
        step[i] /= d[i]
    return True


@inner
def change_of_mixture(mixture):
    """Compute the change of the predictors by the step."""
    A, Q, step, change = mixture.columns, mixture.contrasts, mixture.points[STEP], mixture.change
    q = Q.shape[1]
    for c in range(Q.shape[0]):
        for i in range(change.shape[1]):
            change[c, i] = 0.0
        for k in range(A.shape[0]):
            share = 0.0
            for e in range(q):
                share += Q[c, e] * step[k * q + e]
            for i in range(change.shape[1]):
                change[c, i] += share * A[k, i]


@inner
def bound_of_mixture(mixture):
    """Compute a lower bound on the objective on these columns, by duality; or −inf.

    The predictors have no part beside the columns. The trial state is overwritten.
    """
    P, dual, change = mixture.states[HERE, PROBABILITY], mixture.states[THERE, DUAL], mixture.change
    total, there = 0.0, mixture.points[THERE]
    for i in range(mixture.y.size):
        mean, entropy = 0.0, 0.0
        for c in range(len(P)):
            mean += P[c, i] * change[c, i]
        for c in range(len(P)):
            u = mixture.states[HERE, DUAL, c, i] + P[c, i] * (change[c, i] - mean)
            dual[c, i] = u
            share = u + (1.0 if c == mixture.y[i] else 0.0)
            if share < 0.0:
                return -np.inf
            entropy += share * np.log(share) if share > 0.0 else 0.0
        total -= mixture.weights[i] * entropy
    for i in range(there.size):
        there[i] = mixture.points[HERE, i] + mixture.points[STEP, i]
    left, q = mixture.points[UNITS], mixture.contrasts.shape[1]
    slope_of_mixture(mixture, dual, there, left)
    for i in range(there.size):
        total -= 0.5 * mixture.ridge[i // q] * there[i] ** 2 + FAR_AWAY * abs(left[i] * there[i])
    return total


@inner
def look_ahead(mixture, length):
    """Compute the state at a step length: its value, slope and curvature along the step."""
    states, points, q = mixture.states, mixture.points, mixture.contrasts.shape[1]
    slope, bend = 0.0, 0.0
    for i in range(points.shape[1]):
        points[THERE, i] = points[HERE, i] + length * points[STEP, i]
        slope += mixture.ridge[i // q] * points[THERE, i] * points[STEP, i]
        bend += mixture.ridge[i // q] * points[STEP, i] ** 2
    for c in range(states.shape[2]):
        for i in range(states.shape[3]):
            states[THERE, ETA, c, i] = states[HERE, ETA, c, i] + length * mixture.change[c, i]
    value = value_of_mixture(mixture, THERE)
    there = states[THERE]
    along = softmax_along(there[PROBABILITY], there[DUAL], mixture.weights, mixture.change)
    return value, slope + along[0], bend + along[1]


@inner
def length_of_step(mixture, here, slope):
    """Return (length of nearly the lowest value, or 0; the last length tried; its value).

    See `descent.search_length`.
    """
    low, high, length, best, lowest = 0.0, np.inf, 1.0, 0.0, here
    for _ in range(LENGTHS):
        value, there, bend = look_ahead(mixture, length)
        if value < lowest:
            best, lowest = length, value
        is_flatter = abs(there) <= FLAT_ENOUGH * abs(slope)
        if is_flatter and value <= here + LEAST_DESCENT * length * slope:
            break
        if there < 0.0:
            low = length
        else:
            high = length
        following = -1.0
        if bend > 0.0 and abs(there) <= abs(slope):
            following = length - there / bend
        if not low < following < smaller(high, 10.0 * BOLDER * length):
            if high == np.inf:
                following = BOLDER * low
            elif low <= 0.0:
                following = high / BOLDER
            else:
                following = np.sqrt(low * high) if high > 4.0 * low else 0.5 * (low + high)
        if following in (low, high, length) or high <= 1e-300 or low >= 1e300:
            break
        length = following
    return best, length, lowest


@inner
def take_step(mixture):
    """Make the trial state the point."""
    for k in range(mixture.states.shape[1]):
        for c in range(mixture.states.shape[2]):
            for i in range(mixture.states.shape[3]):
                mixture.states[HERE, k, c, i] = mixture.states[THERE, k, c, i]
    for i in range(mixture.points.shape[1]):
        mixture.points[HERE, i] = mixture.points[THERE, i]


@kernel
def mix(mixture, at_zero, target, max_steps):
    """Run Newton steps of a mixture, as `descent.descend`; return (reason, value, bound)."""
    value = value_of_mixture(mixture, HERE)
    for _ in range(max_steps):
        slope, step = mixture.points[SLOPE], mixture.points[STEP]
        slope_of_mixture(mixture, mixture.states[HERE, DUAL], mixture.points[HERE], slope)
        if not step_of_mixture(mixture):
            return HANDED_OVER, value, value
        change_of_mixture(mixture)
        size, promised = larger(value, 0.01 * at_zero), -dot(slope, step)
        if promised <= NEWTON_TOLERANCE * size:
            last = look_ahead(mixture, 1.0)[0]
            if last <= value + LAST_ROUNDING * size:
                take_step(mixture)
                value = smaller(value, last)
            return MINIMAL, value, value
        if value - 0.5 * promised > target:
            bound = bound_of_mixture(mixture)
            if bound > target:
                return OUT_OF_REACH, value, smaller(value, bound)
        best, last, lowest = length_of_step(mixture, value, -promised)
        if best == 0.0:
            return MINIMAL, value, value
        if best != last:
            lowest = look_ahead(mixture, best)[0]
        take_step(mixture)
        value = lowest
    return HANDED_OVER, value, value


# --------------------------------------------------------------------------------------------------
# 8. Groups of columns, and coefficients within bounds
# --------------------------------------------------------------------------------------------------


class UnitLayout(NamedTuple):
    """The columns of each unit, and the place of its block among those of all units."""

    order: NDArray[np.int64]  # (n,) the columns by units
    starts: NDArray[np.int64]  # (units + 1,) where each unit starts in it
    places: NDArray[np.int64]  # (units + 1,) where its d x d entries start


@kernel
def unit_pivots(layout, U, T, own, M):
    """Compute M_JJ = G_JJ − U_J'T_J of every unit J, from rows U and T = UK (n, s); O(s Σd²)."""
    order, starts, places = layout
    for unit in range(starts.size - 1):
        first, d, at = starts[unit], starts[unit + 1] - starts[unit], places[unit]
        for a in range(d):
            i = order[first + a]
            for b in range(a + 1):
                j, total = order[first + b], own[at + a * d + b]
                for k in range(U.shape[1]):
                    total -= U[i, k] * T[j, k]
                M[at + a * d + b] = total
                M[at + b * d + a] = total


@inner
def gain_of_block(columns, own, M, T, leaving, q, least, blur, error, work):
    """Compute (gain, doubt) of one unit of several columns, factorizing its block in `work`.

    Below the block `work` has E times the leaving rows, then the right-hand sides.
    """
    d, n_left, gain, doubt = columns.size, leaving.size, 0.0, False
    for a in range(d):
        i = columns[a]
        for b in range(a + 1):
            total = M[a * d + b]
            for k in range(n_left):
                total += T[i, leaving[k]] * work[d + k, b]
            for k in range(b):
                total -= work[a, k] * work[b, k]
            size = own[a * d + a]
            total -= blur * size if a == b else 0.0
            if a > b:
                # a column without a pivot has none below it either
                work[a, b] = total / work[b, b] if work[b, b] > 0.0 else 0.0
            else:
                doubt = doubt or total <= 1e3 * least * size
                work[a, a] = np.sqrt(total) if total > least * size else 0.0
    # reach of the error of the right-hand sides
    reach = work[d + n_left + q]
    for a in range(d):
        total = error * np.sqrt(own[a * d + a])
        for k in range(a):
            total += abs(work[a, k]) * reach[k]
        reach[a] = total / work[a, a] if work[a, a] > 0.0 else 0.0
    for c in range(q):
        r = work[d + n_left + c]
        for a in range(d):
            if work[a, a] > 0.0:
                total = r[a]
                for k in range(a):
                    total -= work[a, k] * r[k]
                r[a] = total / work[a, a]
                gain += 0.5 * (abs(r[a]) + reach[a]) ** 2
            else:
                r[a] = 0.0
    return gain, doubt


@inner
def gains_of_units(
    layout, own, M, R, T, leaving, E, P, low, high, least, blur, error, work, gains, doubts
):
    """Compute the gain of every unit J that enters, ½ r'A⁺r with r = R_J + T'P and A = M_JJ + T'ET.

    T are the rows of the columns `leaving`, E the inverse of their part of K and P = EV: the unit
    enters the table after they have left. A pivot up to `least` of the squared length of its column
    (of `own`) counts as zero; up to a thousand times that it is in doubt, as `doubts` says. A unit
    of one column within bounds takes the best step within them. Gains are the largest for a matrix
    that is smaller by `blur` of the squared lengths, and slopes off by `error` of the lengths.
    `work` is (d + columns leaving + q + 1, d) at least. O(Σ d(d + l)² + d²q).
    """
    order, starts, places = layout
    q, n_left = R.shape[1], leaving.size
    for unit in range(starts.size - 1):
        first, d, at = starts[unit], starts[unit + 1] - starts[unit], places[unit]
        # below the block: E times the leaving rows, then the right-hand sides
        for a in range(d):
            j = order[first + a]
            for k in range(n_left):
                total = 0.0
                for i in range(n_left):
                    total += E[k, i] * T[j, leaving[i]]
                work[d + k, a] = total
            for c in range(q):
                total = R[j, c]
                for k in range(n_left):
                    total += T[j, leaving[k]] * P[k, c]
                work[d + n_left + c, a] = total
        gain, doubt = 0.0, False
        if d == 1:
            j, pivot = order[first], M[at]
            for k in range(n_left):
                pivot += T[j, leaving[k]] * work[d + k, 0]
            pivot -= blur * own[at]
            doubt = pivot <= 1e3 * least * own[at]
            off = error * np.sqrt(own[at])
            if pivot > least * own[at]:
                for c in range(q):
                    most = 0.0
                    # convex in the slope
                    for side in (-off, off):
                        r = work[d + n_left + c, 0] + side
                        step = smaller(larger(r / pivot, low[j]), high[j])
                        most = larger(most, step * (r - 0.5 * pivot * step))
                    gain += most
        else:
            gain, doubt = gain_of_block(
                order[first : first + d], own[at : at + d * d], M[at : at + d * d], T, leaving, q,
                least, blur, error, work,
            )  # fmt: skip
        gains[unit], doubts[unit] = gain, doubt


@kernel
def unit_gains(
    layout, own, M, R, T, leaving, E, P, low, high, least, blur, error, work, gains, doubts
):
    """Compute `gains_of_units` after one removal."""
    gains_of_units(
        layout, own, M, R, T, leaving, E, P, low, high, least, blur, error, work, gains, doubts
    )


@kernel
def unit_exchanges(
    layout, own, M, R, T, K, V, at, ends, low, high, least, E, P, work, costs, gains, doubts
):
    """Compute the cost of removing each unit of a support, and the gains of all others afterwards.

    `at[ends[b] : ends[b + 1]]` are the places of a unit in K, the inverse of the support's Gram
    matrix, and V its coefficients there: it costs ½ tr V'EV with E the inverse of its block. The
    gains, (b, units), are those of `gains_of_units`. E and P are memory for the largest of them.
    O(Σ l³), plus that of the gains.
    """
    for b in range(ends.size - 1):
        leaving = at[ends[b] : ends[b + 1]]
        size, q = leaving.size, V.shape[1]
        for i in range(size):
            for j in range(size):
                E[i, j] = K[leaving[i], leaving[j]]
        # in place, for a positive definite block
        for k in range(size):
            pivot = 1.0 / E[k, k]
            E[k, k] = 1.0
            for j in range(size):
                E[k, j] *= pivot
            for i in range(size):
                if i != k:
                    factor = E[i, k]
                    E[i, k] = 0.0
                    for j in range(size):
                        E[i, j] -= factor * E[k, j]
        cost = 0.0
        for i in range(size):
            for c in range(q):
                P[i, c] = 0.0
                for j in range(size):
                    P[i, c] += E[i, j] * V[leaving[j], c]
                cost += 0.5 * V[leaving[i], c] * P[i, c]
        costs[b] = cost
        gains_of_units(
            layout, own, M, R, T, leaving, E, P, low, high, least, 0.0, 0.0, work, gains[b],
            doubts[b],
        )  # fmt: skip


BOUNDED_PIVOT, BOUNDED_SLOPE = 1e-13, 1e-12  # count as zero: pivots; relative slopes


@inner
def solve_free(H, c, x, status, index, L, goal):
    """Compute the minimizer `goal` over the free coefficients, the others fixed; return their
    number.

    A coefficient whose column depends on those before it is frozen.
    """
    k, n_free = x.size, 0
    for j in range(k):
        goal[j] = x[j]
        if status[j] == FROZEN:
            status[j] = FREE
        if status[j] != FREE:
            continue
        for b in range(n_free + 1):
            i = index[b] if b < n_free else j
            total = H[j, i]
            for a in range(b):
                total -= L[n_free, a] * L[b, a]
            L[n_free, b] = total / L[b, b] if b < n_free else total
        if L[n_free, n_free] <= BOUNDED_PIVOT * H[j, j]:
            status[j] = FROZEN
            continue
        L[n_free, n_free] = np.sqrt(L[n_free, n_free])
        index[n_free] = j
        n_free += 1
    for b in range(n_free):
        j, total = index[b], c[index[b]]
        for i in range(k):
            if status[i] != FREE:
                total -= H[j, i] * x[i]
        for a in range(b):
            total -= L[b, a] * goal[index[a]]
        goal[j] = total / L[b, b]
    for b in range(n_free - 1, -1, -1):
        total = goal[index[b]]
        for a in range(b + 1, n_free):
            total -= L[a, b] * goal[index[a]]
        goal[index[b]] = total / L[b, b]
    return n_free


@kernel
def bounded_quadratic(H, c, low, high, x, status, index, L, goal):
    """Minimize ½x'Hx − c'x within bounds, from a feasible x, by an active set; O(k³) a step.

    H has a diagonal of ones (or zeros). `x` and `status` are set to those of the solution.
    """
    k = x.size
    for _ in range(20 * k + 20):
        solve_free(H, c, x, status, index, L, goal)
        # as far as the bounds allow
        length, hit = 1.0, -1
        for j in range(k):
            if status[j] == FREE:
                side = low[j] if goal[j] < low[j] else high[j]
                if goal[j] < low[j] or goal[j] > high[j]:
                    share = (side - x[j]) / (goal[j] - x[j])
                    if share < length or hit < 0:
                        length, hit = smaller(share, length), j
        for j in range(k):
            if status[j] == FREE:
                x[j] = smaller(larger(x[j] + length * (goal[j] - x[j]), low[j]), high[j])
        if hit >= 0:
            is_low = goal[hit] < low[hit]
            x[hit] = low[hit] if is_low else high[hit]
            status[hit] = AT_LOW if is_low else AT_HIGH
            continue
        # release the bound with the largest multiplier
        worst, best = -1, 0.0
        for j in range(k):
            if low[j] == high[j] or (status[j] != AT_LOW and status[j] != AT_HIGH):
                continue
            slope, size = -c[j], abs(c[j])
            for i in range(k):
                slope += H[j, i] * x[i]
                size += abs(H[j, i] * x[i])
            pull = -slope if status[j] == AT_LOW else slope
            if pull > BOUNDED_SLOPE * size and pull > best:
                worst, best = j, pull
        if worst < 0:
            return True
        status[worst] = FREE
    return False
