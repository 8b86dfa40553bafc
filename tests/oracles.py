"""Slow and obviously right: brute force over subsets, in plain NumPy.

A problem here is ``f(x) = 1/2 x'Qx + p'x`` with ``price`` per nonzero and a ``budget`` of nonzeros
(None: no limit). `quadratic_of` turns least squares data into that form.
"""

from itertools import combinations

import numpy as np

TOL = 1e-9


def quadratic_of(X, y, ridge=0.0):
    """Return (Q, p, constant) with 1/2||y - Xw||^2 + ridge/2||w||^2 = 1/2 w'Qw + p'w + constant."""
    X, y = np.asarray(X, float), np.asarray(y, float)
    return X.T @ X + ridge * np.eye(X.shape[1]), -X.T @ y, 0.5 * y @ y


def smooth(Q, p, x):
    return 0.5 * x @ Q @ x + p @ x


def objective(Q, p, x, price=0.0):
    return smooth(Q, p, x) + price * np.count_nonzero(x)


def subsets(indices, max_size=None):
    indices = list(indices)
    top = len(indices) if max_size is None else min(len(indices), max_size)
    for size in range(top + 1):
        yield from combinations(indices, size)


def fit_on(Q, p, support):
    """Return the minimizer of f supported on ``support`` (scaled least norm if singular)."""
    x = np.zeros(len(p))
    if len(support):
        s = list(support)
        H = Q[np.ix_(s, s)]
        d = np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
        x[s] = np.linalg.lstsq(H / np.outer(d, d), -p[s] / d, rcond=1e-12)[0] / d
    return x


def brute_force(Q, p, price=0.0, budget=None):
    """Return (z, value): the minimum of 1/2 z'Qz + p'z + price nnz(z), nnz(z) <= budget."""
    best, best_value = np.zeros(len(p)), 0.0
    for support in subsets(range(len(p)), budget):
        z = fit_on(Q, p, support)
        value = smooth(Q, p, z) + price * len(support)
        if value < best_value:
            best, best_value = z, value
    return best, best_value


def block_minimum(Q, p, x, block, price=0.0, budget=None, theta=0.0):
    """Return the best x+ that differs from x on ``block`` only, with the term theta/2||x+ - x||^2.

    x itself is kept unless something is strictly better, so a converged run stands still.
    """
    block = list(block)
    outside = x.copy()
    outside[block] = 0.0
    room = None if budget is None else budget - np.count_nonzero(outside)
    H = Q[np.ix_(block, block)] + theta * np.eye(len(block))
    c = (Q @ outside + p)[block] - theta * x[block]
    z, value = brute_force(H, c, price, room)
    current = objective(H, c, x[block], price)
    if value < current - TOL * max(1.0, abs(current)):
        outside[block] = z
        return outside
    return x.copy()


def is_basic_stationary(Q, p, x, budget=None, tol=TOL):
    feasible = budget is None or np.count_nonzero(x) <= budget
    return bool(feasible and np.all(np.abs((Q @ x + p)[x != 0]) <= tol))


def is_l_stationary(Q, p, x, price=0.0, budget=None, lipschitz=None, tol=TOL):
    """Tell whether x is in argmin_y <grad, y - x> + L/2||y - x||^2 + h(y), by comparing values."""
    L = np.linalg.eigvalsh(Q)[-1] if lipschitz is None else lipschitz
    grad = Q @ x + p
    _, best = brute_force(L * np.eye(len(p)), grad - L * x, price, budget)
    return bool(
        smooth(L * np.eye(len(p)), grad - L * x, x) + price * np.count_nonzero(x) <= best + tol
    )


def is_block_stationary(Q, p, x, k, price=0.0, budget=None, outside="fixed", theta=0.0, tol=TOL):
    """Tell whether no block of k coordinates improves x, by trying all of them.

    outside="fixed": the paper's definition. outside="refit": for every subset kept in the block the
    support outside the block is re-fitted too.
    """
    value = objective(Q, p, x, price)
    n = len(p)
    for block in combinations(range(n), min(k, n)):
        if outside == "fixed":
            z = block_minimum(Q, p, x, block, price, budget, theta)
            gain = value - objective(Q, p, z, price) - 0.5 * theta * np.sum((z - x) ** 2)
            if gain > tol:
                return False
            continue
        rest = [i for i in np.flatnonzero(x) if i not in block]
        for kept in subsets(block, None if budget is None else budget - len(rest)):
            z = fit_on(Q, p, sorted((*rest, *kept)))
            if smooth(Q, p, z) + price * (len(rest) + len(kept)) < value - tol:
                return False
    return True


def dec_reference(Q, p, x0, k, theta, n_iter, rng, price=0.0, budget=None):
    """Run Algorithm 1 with uniform random blocks; return all iterates, shape (n_iter + 1, n)."""
    iterates = [np.array(x0, float)]
    for _ in range(n_iter):
        block = np.sort(rng.choice(len(p), size=k, replace=False))
        iterates.append(block_minimum(Q, p, iterates[-1], block, price, budget, theta))
    return np.array(iterates)
