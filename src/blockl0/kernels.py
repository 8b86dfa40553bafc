"""Every compiled function of blockl0, in one file.

Plain functions of arrays, scalars and NamedTuples of arrays with ``cache=True`` are cached on disk, so that the
second process pays milliseconds. They all live here because an edited callee in another file would leave a
stale cached caller behind. Symmetric tableaus are stored in their upper triangle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

# ----------------------------------------------------------------------------------------------------------
# 1. The exact block search:  min_z  1/2 z'Hz + c'z + price*nnz(z)   s.t.  nnz(z) <= budget
# ----------------------------------------------------------------------------------------------------------


class Tree(NamedTuple):
    """State of the depth-first search, one level per *include* decision; exclusions happen in place.

    At a level the coordinates are split into I (included, ``chosen[:n_in]``), E (excluded) and U (undecided,
    ``index[level, :size]``). ``M`` is the Schur complement of H on U after eliminating I, ``g`` the gradient
    there; ``K = inv(M)`` and ``z = -K g`` describe the point with all of U let in.
    """

    M: NDArray[np.float64]  # (levels, k, k) forward tableau, upper triangle
    K: NDArray[np.float64]  # (levels, k, k) backward tableau, upper triangle
    g: NDArray[np.float64]  # (levels, k)
    z: NDArray[np.float64]  # (levels, k)
    index: NDArray[np.int64]  # (levels, k) original coordinate of each undecided slot
    size: NDArray[np.int64]  # (levels,) |U|
    n_in: NDArray[np.int64]  # (levels,) |I|
    f_in: NDArray[np.float64]  # (levels,) value with support I
    f_all: NDArray[np.float64]  # (levels,) value with support I and U
    branch: NDArray[np.int64]  # (levels,) slot whose exclusion is still to be explored, -1 if none
    bound: NDArray[np.float64]  # (levels,) lower bound of what is left open at the level
    chosen: NDArray[np.int64]  # (k,) included coordinates in order of inclusion
    curvature: NDArray[np.float64]  # (levels, k) d > 0 with M - diag(d) positive semidefinite, by slot
    fresh: NDArray[np.int64]  # (levels,) |U| when the curvature was last computed
    tiny: NDArray[np.float64]  # (k,) pivots below this are redundant
    best: NDArray[np.int64]  # (k,) support of the incumbent
    scalars: NDArray[np.float64]  # best value, rounding slack
    counts: NDArray[np.int64]  # current level (-1: finished), best support size, nodes
    relaxed: NDArray[np.float64]  # (levels, k) point of the perspective relaxation, warm start of the children
    multiplier: NDArray[np.float64]  # (levels,) its price per nonzero (the budget's multiplier)
    work: NDArray[np.float64]  # (7, k + 2) scratch
    factor: NDArray[np.float64]  # (k, k) scratch


BEST_VALUE, SLACK = 0, 1
LEVEL, BEST_SIZE, NODES = 0, 1, 2
REFRESH = 0.85  # recompute the curvature when U has shrunk to this share


@njit(cache=True)
def rank_one_update(A, out, v, pivot, u):
    """out = A - v v' / pivot on the upper triangle of the leading u x u part; O(u^2 / 2)."""
    for i in range(u):
        a = v[i] / pivot
        for j in range(i, u):
            out[i, j] = A[i, j] - a * v[j]


@njit(cache=True)
def copy_upper(A, out, u):
    """Copy the upper triangle of the leading u x u part."""
    for i in range(u):
        for j in range(i, u):
            out[i, j] = A[i, j]


@njit(cache=True)
def read_column(A, j, u, v):
    """v = A[:u, j] from the upper triangle."""
    for i in range(j):
        v[i] = A[i, j]
    for i in range(j, u):
        v[i] = A[j, i]


@njit(cache=True)
def remove_slot(A, j, u):
    """Drop row and column j of the leading u x u part by moving the last slot into its place."""
    last = u - 1
    if j == last:
        return
    for i in range(j):
        A[i, j] = A[i, last]
    for i in range(j + 1, last):
        A[j, i] = A[i, last]
    A[j, j] = A[last, last]


@njit(cache=True)
def include_slot(tree, src, dst, j):
    """Move slot j from U to I: pivot M, drop row and column j of K. Writes level `dst` (may equal `src`)."""
    u = tree.size[src]
    M, K, g, z = tree.M[dst], tree.K[dst], tree.g[dst], tree.z[dst]
    v = tree.work[0]
    read_column(tree.M[src], j, u, v)
    pivot, gj, coordinate = v[j], tree.g[src, j], tree.index[src, j]
    rank_one_update(tree.M[src], M, v, pivot, u)
    if src != dst:
        copy_upper(tree.K[src], K, u)
        for i in range(u):
            z[i] = tree.z[src, i]
            tree.relaxed[dst, i] = tree.relaxed[src, i]
            tree.curvature[dst, i] = tree.curvature[src, i]
            tree.index[dst, i] = tree.index[src, i]
    for i in range(u):
        g[i] = tree.g[src, i] - v[i] * gj / pivot
    remove_slot(M, j, u)
    remove_slot(K, j, u)
    g[j], z[j], tree.index[dst, j] = g[u - 1], z[u - 1], tree.index[dst, u - 1]
    tree.relaxed[dst, j], tree.curvature[dst, j] = tree.relaxed[dst, u - 1], tree.curvature[dst, u - 1]
    tree.fresh[dst] = tree.fresh[src]
    tree.multiplier[dst] = tree.multiplier[src]
    tree.size[dst] = u - 1
    tree.chosen[tree.n_in[src]] = coordinate
    tree.n_in[dst] = tree.n_in[src] + 1
    tree.f_in[dst] = tree.f_in[src] - 0.5 * gj * gj / pivot
    tree.f_all[dst] = tree.f_all[src]


@njit(cache=True)
def exclude_slot(tree, level, j):
    """Move slot j from U to E in place: pivot K, drop row and column j of M."""
    u = tree.size[level]
    M, K, g, z = tree.M[level], tree.K[level], tree.g[level], tree.z[level]
    v = tree.work[0]
    read_column(K, j, u, v)
    pivot, zj = v[j], z[j]
    rank_one_update(K, K, v, pivot, u)
    for i in range(u):
        z[i] -= v[i] * zj / pivot
    remove_slot(M, j, u)
    remove_slot(K, j, u)
    g[j], z[j], tree.index[level, j] = g[u - 1], z[u - 1], tree.index[level, u - 1]
    tree.relaxed[level, j], tree.curvature[level, j] = tree.relaxed[level, u - 1], tree.curvature[level, u - 1]
    tree.size[level] = u - 1
    tree.f_all[level] += 0.5 * zj * zj / pivot


@njit(cache=True)
def accept(tree, level, value, first, second):
    """Make I plus the given slots (or -1) the incumbent."""
    n = tree.n_in[level]
    for i in range(n):
        tree.best[i] = tree.chosen[i]
    if first >= 0:
        tree.best[n] = tree.index[level, first]
        n += 1
    if second >= 0:
        tree.best[n] = tree.index[level, second]
        n += 1
    tree.counts[BEST_SIZE] = n
    tree.scalars[BEST_VALUE] = value


@njit(cache=True)
def try_few(tree, level, price, room):
    """Offer I and I plus one slot as incumbents; O(u)."""
    u, base = tree.size[level], tree.f_in[level] + price * tree.n_in[level]
    if base < tree.scalars[BEST_VALUE]:
        accept(tree, level, base, -1, -1)
    if room < 1:
        return
    M, g = tree.M[level], tree.g[level]
    top, best = 0.0, -1
    for j in range(u):
        if M[j, j] > tree.tiny[tree.index[level, j]] and g[j] * g[j] > top * M[j, j]:
            top = g[j] * g[j] / M[j, j]
            best = j
    if best >= 0 and base + price - 0.5 * top < tree.scalars[BEST_VALUE]:
        accept(tree, level, base + price - 0.5 * top, best, -1)


@njit(cache=True)
def try_pairs(tree, level, price):
    """Offer I plus every pair of slots; O(u^2 / 2) without a division per pair."""
    u, base = tree.size[level], tree.f_in[level] + price * (tree.n_in[level] + 2)
    M, g = tree.M[level], tree.g[level]
    need = 2.0 * (base - tree.scalars[BEST_VALUE])
    for i in range(u):
        mii, gi = M[i, i], g[i]
        if mii <= tree.tiny[tree.index[level, i]]:
            continue
        for j in range(i + 1, u):
            mij, mjj = M[i, j], M[j, j]
            det = mii * mjj - mij * mij
            gain = gi * gi * mjj - 2.0 * gi * g[j] * mij + g[j] * g[j] * mii
            if gain > need * det and det > mii * tree.tiny[tree.index[level, j]]:
                value = base - 0.5 * gain / det
                if value < tree.scalars[BEST_VALUE]:
                    accept(tree, level, value, i, j)
                    need = 2.0 * (base - value)


@njit(cache=True)
def keep_top(top, count, limit, value):
    """Insert value into the descending list top[:count] of at most `limit` entries; return the new count."""
    if count == limit:
        if limit == 0 or value <= top[count - 1]:
            return count
        i = count - 1
    else:
        i = count
        count += 1
    while i > 0 and top[i - 1] < value:
        top[i] = top[i - 1]
        i -= 1
    top[i] = value
    return count


@njit(cache=True)
def node_bounds(tree, level, price, room):
    """Bound what is left of a node from below; return (bound, bound with three or more additions, threshold).

    With t of the u undecided slots let in, two bounds hold and the larger wins: dropping a set costs at least the
    largest single drop z_j^2 / 2K_jj in it, and, since H - diag(d) >= 0, at least the sum of d_j z_j^2 / 2 over it.
    Slots whose d_j z_j^2 / 2 lies below the threshold cannot be part of a better solution.
    Fills work[1] with the single drops and work[2] with d_j z_j^2 / 2. Cost O(u t), t the most that can be let in.
    """
    u, cutoff = tree.size[level], tree.scalars[BEST_VALUE]
    K, z = tree.K[level], tree.z[level]
    drop, soft, top_drop, top_soft = tree.work[1], tree.work[2], tree.work[3], tree.work[4]
    base = tree.f_all[level] + price * tree.n_in[level]
    most = min(room, u)
    if price > 0.0:
        most = min(most, max(0, int((cutoff - base) / price)))
    n_drop, n_soft, total = 0, 0, 0.0
    for j in range(u):
        zz = 0.5 * z[j] * z[j]
        drop[j] = zz / K[j, j]
        soft[j] = zz * tree.curvature[level, j]
        total += soft[j]
        n_drop = keep_top(top_drop, n_drop, most + 1, drop[j])
        n_soft = keep_top(top_soft, n_soft, most + 1, soft[j])
    bound, bound3, threshold = np.inf, np.inf, np.inf
    # without a price more additions never hurt, so only the largest t counts
    first = most if price == 0.0 else 0
    for i in range(first):
        total -= top_soft[i]
    for t in range(first, most + 1):
        hard = top_drop[t] if t < u else 0.0
        value = base + price * t + max(hard, total)
        bound = min(bound, value)
        if t >= 3:
            bound3 = min(bound3, value)
        if t >= 1:
            threshold = min(threshold, base + price * t + total + top_soft[t - 1] - cutoff)
        if t < u:
            total -= top_soft[t]
    return bound, bound3, threshold


@njit(cache=True)
def relax_coordinate(h, m, d, price):
    """Minimize 1/2 (m - d) x^2 + h x + min_t { d x^2 / 2t + price t, 0 <= t <= 1 } over x."""
    edge = np.sqrt(2.0 * d * price)
    if abs(h) <= edge:
        return 0.0
    size = (abs(h) - edge) / max(m - d, 1e-300)
    if size * d > edge:
        size = abs(h) / m
    return -size if h > 0.0 else size


@njit(cache=True)
def relax_pass(tree, level, price):
    """One pass of coordinate descent on the perspective relaxation; work[5] holds h = g + M x, kept up to date."""
    u, M, x, h = tree.size[level], tree.M[level], tree.relaxed[level], tree.work[5]
    for j in range(u):
        old = x[j]
        new = relax_coordinate(h[j] - M[j, j] * old, M[j, j], tree.curvature[level, j], price)
        if new != old:
            x[j] = new
            step = new - old
            for i in range(j):
                h[i] += step * M[i, j]
            for i in range(j, u):
                h[i] += step * M[j, i]


@njit(cache=True)
def relax_value(tree, level, price, room):
    """Lower bound on f(I + A) - f(I) + price |A| over A in U, |A| <= room, certified by the point x of the relaxation.

    With b = g + (M - D) x, weak duality gives  -1/2 x'(M - D)x - sum of the `room` largest (b_j^2 / 2d_j - price)_+ ,
    for every x. Fills work[6] with b_j^2 / 2d_j - price; work[3] holds the largest of them, descending.
    """
    u, x, h, score, top = tree.size[level], tree.relaxed[level], tree.work[5], tree.work[6], tree.work[3]
    value, count, most = 0.0, 0, min(room, u)
    for j in range(u):
        d = tree.curvature[level, j]
        b = h[j] - d * x[j]
        value -= 0.5 * x[j] * (b - tree.g[level, j])
        score[j] = 0.5 * b * b / d - price
        count = keep_top(top, count, most + 1, score[j])
    if count <= most:
        top[most] = -np.inf
    for i in range(most):
        value -= max(0.0, top[i])
    return value


@njit(cache=True)
def balance_multiplier(tree, level, price, room, mu):
    """The price at which the fractional memberships t_j = min(1, |x_j| sqrt(d_j / 2 mu)) add up to `room`."""
    x, membership, active = tree.relaxed[level], tree.work[4], 0
    for j in range(tree.size[level]):
        if x[j] != 0.0:
            membership[active] = abs(x[j]) * np.sqrt(0.5 * tree.curvature[level, j])
            active += 1
    for _ in range(20):
        full, part, root = 0, 0.0, np.sqrt(mu)
        for j in range(active):
            if membership[j] >= root:
                full += 1
            else:
                part += membership[j]
        part /= root
        if part == 0.0 or full >= room:
            factor = 2.0 if full + part > room else 0.5
        else:
            factor = (part / (room - full)) ** 2
        factor = min(max(factor, 0.25), 4.0)
        if abs(factor - 1.0) < 1e-2:
            break
        mu *= factor
    return max(mu, price)


@njit(cache=True)
def relax_node(tree, level, price, room, passes):
    """Improve the relaxation of a node by coordinate descent; return the best bound on the whole node."""
    u, M, x, h = tree.size[level], tree.M[level], tree.relaxed[level], tree.work[5]
    base = tree.f_in[level] + price * tree.n_in[level]
    cutoff = tree.scalars[BEST_VALUE] - tree.scalars[SLACK]
    for i in range(u):
        h[i] = tree.g[level, i]
    for j in range(u):
        if x[j] != 0.0:
            for i in range(j):
                h[i] += x[j] * M[i, j]
            for i in range(j, u):
                h[i] += x[j] * M[j, i]
    mu = max(price, tree.multiplier[level])
    best = -np.inf
    for _ in range(passes):
        relax_pass(tree, level, mu)
        value = base + relax_value(tree, level, price, room)
        progress = value - best
        best = max(best, value)
        if best >= cutoff or progress < 0.02 * (cutoff - best):
            break
        mu = balance_multiplier(tree, level, price, room, mu)
    tree.multiplier[level] = mu
    return value


@njit(cache=True)
def tighten(tree, level, price, budget, threshold, relaxed_bound):
    """Include slots that cannot be dropped and exclude those that cannot help; return how many were fixed.

    work[1] holds the single drops, work[2] the soft drops, and, when there is a relaxed bound, work[6] the scores
    of the relaxation with the largest in work[3].
    """
    cutoff = tree.scalars[BEST_VALUE] + tree.scalars[SLACK]
    margin = cutoff - tree.f_all[level] - price * tree.n_in[level]
    drop, soft, score, top = tree.work[1], tree.work[2], tree.work[6], tree.work[3]
    u = tree.size[level]
    most = min(budget - tree.n_in[level], u)
    use = relaxed_bound > -np.inf
    last_in = max(0.0, top[most - 1]) if use else 0.0
    first_out = max(0.0, top[most]) if use else 0.0
    gap = cutoff - relaxed_bound
    fixed = 0
    # from the last slot down: removal moves the last slot, already examined, into the gap
    for j in range(u - 1, -1, -1):
        if drop[j] > margin or (use and score[j] - first_out > gap):
            if tree.n_in[level] == budget:
                return -1
            include_slot(tree, level, level, j)
            fixed += 1
        elif soft[j] < threshold - tree.scalars[SLACK] or (use and last_in - score[j] > gap):
            exclude_slot(tree, level, j)
            fixed += 1
    return fixed


@njit(cache=True)
def refresh_curvature(tree, level):
    """d_j = t / K_jj with t just below the smallest eigenvalue of diag(K)^1/2 M diag(K)^1/2, verified by Cholesky.

    Power iteration on the scaled K estimates 1/t from below; the factorization of M - diag(d) makes it safe.
    """
    u, M, K, R, d = tree.size[level], tree.M[level], tree.K[level], tree.factor, tree.curvature[level]
    x, y, scale = tree.work[3], tree.work[4], tree.work[5]
    for j in range(u):
        scale[j] = 1.0 / np.sqrt(K[j, j])
        x[j] = 1.0 + 0.1 * (j % 7)
    largest = 1.0
    for _ in range(12):
        norm = 0.0
        for j in range(u):
            x[j] *= scale[j]
            y[j] = 0.0
        for i in range(u):
            total, xi = K[i, i] * x[i], x[i]
            for j in range(i + 1, u):
                total += K[i, j] * x[j]
                y[j] += K[i, j] * xi
            y[i] += total
        for j in range(u):
            y[j] *= scale[j]
            norm += y[j] * y[j]
        largest = np.sqrt(norm)
        for j in range(u):
            x[j] = y[j] / largest
    t = 0.98 / largest
    for _ in range(60):
        if positive_definite_shift(M, K, t, R, u):
            break
        t *= 0.93
    for j in range(u):
        d[j] = t / K[j, j]
    tree.fresh[level] = u


@njit(cache=True)
def positive_definite_shift(M, K, t, R, u):
    """Is M - t diag(1 / K_jj) positive definite? Row-oriented Cholesky in the scratch matrix R."""
    for i in range(u):
        for j in range(i, u):
            R[i, j] = M[i, j]
        R[i, i] -= t / K[i, i]
    for l in range(u):
        pivot = R[l, l]
        if pivot <= 1e-12 * M[l, l]:
            return False
        for i in range(l + 1, u):
            a = R[l, i] / pivot
            for j in range(i, u):
                R[i, j] -= a * R[l, j]
    return True


@njit(cache=True)
def process_node(tree, level, price, budget, passes):
    """Bound, tighten and close the node at `level`; return the slot to branch on, or -1 when it is finished."""
    while True:
        u, room = tree.size[level], budget - tree.n_in[level]
        # pivots that vanished: the slot lies in the span of I and can never help below this node
        redundant = -1
        for j in range(u):
            if tree.M[level, j, j] <= tree.tiny[tree.index[level, j]]:
                redundant = j
        if redundant >= 0:
            exclude_slot(tree, level, redundant)
            continue
        try_few(tree, level, price, room)
        if u == 0 or room == 0:
            return -1
        bound, bound3, threshold = node_bounds(tree, level, price, room)
        cutoff = tree.scalars[BEST_VALUE] - tree.scalars[SLACK]
        tree.bound[level] = max(bound, tree.bound[level])
        if bound >= cutoff or room == 1 or u == 1:
            return -1
        if room == 2 or u == 2 or bound3 >= cutoff:
            try_pairs(tree, level, price)
            return -1
        relaxed_bound = -np.inf
        if passes > 0:
            if u <= REFRESH * tree.fresh[level]:
                refresh_curvature(tree, level)
            relaxed_bound = relax_node(tree, level, price, room, passes)
            tree.bound[level] = max(relaxed_bound, tree.bound[level])
            if relaxed_bound >= cutoff:
                return -1
        fixed = tighten(tree, level, price, budget, threshold, relaxed_bound)
        if fixed < 0:
            return -1
        if fixed == 0:
            break
    drop = tree.work[1]
    best = 0
    for j in range(1, u):
        if drop[j] > drop[best]:
            best = j
    return best


@njit(cache=True)
def search_tree(tree, price, budget, node_limit, passes):
    """Depth-first branch and bound; stops after `node_limit` more nodes. True when the tree is exhausted."""
    level, stop = tree.counts[LEVEL], tree.counts[NODES] + node_limit
    while level >= 0:
        if tree.counts[NODES] >= stop:
            tree.counts[LEVEL] = level
            return False
        pending = tree.branch[level]
        if pending >= 0:
            # the include side of this node is finished: now the same node without that slot
            tree.branch[level] = -1
            exclude_slot(tree, level, pending)
        tree.counts[NODES] += 1
        j = process_node(tree, level, price, budget, passes)
        if j < 0:
            level -= 1
            continue
        tree.branch[level] = j
        tree.bound[level + 1] = tree.bound[level]
        tree.branch[level + 1] = -1
        include_slot(tree, level, level + 1, j)
        level += 1
    tree.counts[LEVEL] = -1
    return True


@njit(cache=True)
def cholesky_upper(H, ridge, R):
    """R'R = H + ridge * diag(H) on the upper triangle; return the smallest pivot relative to its diagonal."""
    k = H.shape[0]
    smallest = np.inf
    for j in range(k):
        for i in range(j + 1):
            R[i, j] = H[i, j]
        diagonal = H[j, j] * (1.0 + ridge)
        R[j, j] = diagonal
        for l in range(j):
            R[l, j] = R[l, j] / R[l, l]
            a = R[l, j]
            for i in range(l + 1, j):
                R[i, j] -= a * R[l, i]
            R[j, j] -= a * a
        relative = R[j, j] / diagonal if diagonal > 0.0 else 0.0
        smallest = min(smallest, relative)
        if relative <= 0.0:
            return smallest
        R[j, j] = np.sqrt(R[j, j])
    return smallest


@njit(cache=True)
def inverse_from_cholesky(R, K):
    """K = inv(R'R), upper triangle, by explicit inversion of R; O(k^3 / 2)."""
    k = R.shape[0]
    # T = inv(R) in the lower triangle of K, stored transposed: K[j, i] = T[i, j], i <= j
    for j in range(k):
        K[j, j] = 1.0 / R[j, j]
        for i in range(j - 1, -1, -1):
            total = 0.0
            for l in range(i + 1, j + 1):
                total += R[i, l] * K[j, l]
            K[j, i] = -total / R[i, i]
    # K_ij = sum over l >= max(i, j) of T_il T_jl; the diagonal is read last, so it is kept aside
    for i in range(k):
        for j in range(i + 1, k):
            total = 0.0
            for l in range(j, k):
                total += K[l, i] * K[l, j]
            K[i, j] = total
    for i in range(k):
        total = 0.0
        for l in range(i, k):
            total += K[l, i] * K[l, i]
        R[i, i] = total
    for i in range(k):
        K[i, i] = R[i, i]


@njit(cache=True)
def plant_root(tree, H, c):
    """Fill level 0: M = H, K = inv(H) (already in place), z = -K c, nothing decided."""
    k = H.shape[0]
    M, K, g, z = tree.M[0], tree.K[0], tree.g[0], tree.z[0]
    copy_upper(H, M, k)
    for i in range(k):
        g[i] = c[i]
        z[i] = 0.0
        tree.relaxed[0, i] = 0.0
        tree.index[0, i] = i
    for i in range(k):
        z[i] -= K[i, i] * c[i]
        for j in range(i + 1, k):
            z[i] -= K[i, j] * c[j]
            z[j] -= K[i, j] * c[i]
    value = 0.0
    for i in range(k):
        value += 0.5 * c[i] * z[i]
    tree.size[0], tree.n_in[0], tree.f_in[0], tree.f_all[0] = k, 0, 0.0, value
    tree.branch[0], tree.bound[0], tree.multiplier[0] = -1, -np.inf, 1e-300
    tree.counts[LEVEL], tree.counts[NODES] = 0, 0
