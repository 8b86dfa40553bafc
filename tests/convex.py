"""An independent fit of a loss on given columns, slow and in extended precision.

Damped Newton steps with Levenberg's parameter in units of the columns, in `longdouble`; a point is
returned with what is left of its slope, so that the oracle shows how far it can be trusted itself.
"""

from itertools import combinations

import numpy as np

from targets import is_positive

Long = np.longdouble


def terms(loss, eta, y):
    """(value, slope, curvature) per sample in extended precision; delta of Huber is 1.35, Tweedie's
    power 1.5."""
    if loss == "logistic":
        z = y * eta
        p = np.where(z > 0, np.exp(-np.abs(z)), Long(1)) / (1 + np.exp(-np.abs(z)))
        value = np.where(z > 0, 0, -z) + np.log1p(np.exp(-np.abs(z)))
        return value, -y * p, np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))) ** 2
    if loss == "squared_hinge":
        h = np.maximum(0, 1 - y * eta)
        return h * h / 2, -y * h, (h > 0).astype(Long)
    if loss == "huber":
        delta, r = Long(1.35), eta - y
        c = np.clip(r, -delta, delta)
        return c * (r - c / 2), c, (np.abs(r) <= delta).astype(Long)
    u = eta - np.log(np.where(y > 0, y, 1))
    if loss == "gamma":
        return np.expm1(-u) + u, -np.expm1(-u), np.exp(-u)
    if loss == "tweedie":
        up, root = np.exp(eta / 2), np.sqrt(y)
        value = 4 * root * (np.cosh(u / 2) - 1)
        slope, bend = 2 * root * np.sinh(u / 2), root * np.cosh(u / 2)
        return tuple(
            np.where(y > 0, *both) for both in ((value, 2 * up), (slope, up), (bend, up / 2))
        )
    mean = np.exp(np.minimum(eta, 300))
    return np.where(y > 0, y * (np.expm1(np.minimum(u, 300)) - u), mean), mean - y, mean


def solve(H, b):
    """inv(H) b by elimination with pivots on the diagonal; H is positive definite."""
    A, x = H.copy(), b.copy()
    p = len(b)
    for k in range(p):
        for i in range(k + 1, p):
            factor = A[i, k] / A[k, k]
            A[i] -= factor * A[k]
            x[i] -= factor * x[k]
    for k in reversed(range(p)):
        x[k] = (x[k] - A[k, k + 1 :] @ x[k + 1 :]) / A[k, k]
    return x


class Fit:
    """The minimum on some columns: `value`, `coef`, `intercept`, and the relative slope left."""

    def __init__(self, loss, A, y, ridge, intercept, max_steps=3000):
        A = np.asarray(A, dtype=Long)
        m = len(A)
        if intercept:
            A = np.column_stack([np.ones(m, dtype=Long), A])
        r = np.full(A.shape[1], Long(ridge))
        r[: int(intercept)] = 0
        scale = np.sqrt((A * A).sum(axis=0) + r)
        scale[scale == 0] = 1
        self.loss, self.A, self.y, self.r = loss, A / scale, np.asarray(y, dtype=Long), r / scale**2
        v = np.zeros(A.shape[1], dtype=Long)
        if intercept and is_positive(loss):
            v[0] = np.log(self.y.mean()) * scale[0]
        if intercept and loss == "huber":
            v[0] = np.median(self.y) * scale[0]
        v = self.descend(v, max_steps)
        self.value, slope, _ = self.look(v)
        _, u, _ = terms(loss, self.A @ v, self.y)
        size = np.abs(self.A).T @ np.abs(u) + np.abs(self.r * v)
        self.slope = float(np.max(np.abs(slope) / np.where(size > 0, size, 1), initial=0))
        v = v / scale
        self.coef, self.intercept = v[int(intercept) :], v[0] if intercept else Long(0)

    def look(self, v):
        eta = self.A @ v
        value, u, bend = terms(self.loss, eta, self.y)
        H = (self.A * bend[:, None]).T @ self.A
        H[np.arange(len(v)), np.arange(len(v))] += self.r
        return value.sum() + (self.r * v * v).sum() / 2, self.A.T @ u + self.r * v, H

    def descend(self, v, max_steps):
        damping = Long(1e-3)
        here, slope, H = self.look(v)
        for _ in range(max_steps if len(v) else 0):
            step = solve(H + damping * np.eye(len(v), dtype=Long), -slope)
            promised = -(slope @ step)
            there = self.look(v + step)
            # where values are rounding, a smaller slope still tells the better point
            is_smaller = np.abs(there[1]).max() < np.abs(slope).max()
            if there[0] < here or (there[0] <= here * (1 + Long(1e-17)) and is_smaller):
                v, (here, slope, H) = v + step, there
                if promised <= Long(1e-28) * max(here, Long(1e-300)) and damping < 1e-6:
                    break
                damping = max(damping / 8, Long(1e-30))
            elif damping > 1e15:
                break
            else:
                damping = 4 * damping
        return v


def neighbours(support, n, budget, price, keep=()):
    """All supports a single addition, removal or swap away; removals only where they can pay."""
    inside, outside = sorted(support), sorted(set(range(n)) - set(support))
    movable = [j for j in inside if j not in keep]
    if len(inside) < budget:
        yield from (tuple(sorted({*inside, i})) for i in outside)
    if price > 0:
        yield from (tuple(sorted(set(inside) - {j})) for j in movable)
    for j in movable:
        yield from (tuple(sorted({*inside, i} - {j})) for i in outside)


def all_supports(n, budget):
    for size in range(budget + 1):
        yield from combinations(range(n), size)
