"""The least value of a loss with a ridge on every support, by damped Newton steps.

Shares nothing with the package. Values are those of points, in extended precision: they are reached
whatever the steps miss.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import convex
import hostile
from blockl0.problem.problem import Problem
from targets import is_positive

LOSSES = ("logistic", "huber", "squared_hinge", "poisson", "gamma", "tweedie")
CODES = {name: code for code, name in enumerate(LOSSES)}


@njit(error_model="numpy", cache=True)
def _terms(code, eta, y):  # pragma: no cover
    """(value, slope, curvature) of one sample."""
    if code == 0:
        z = y * eta
        e = np.exp(-abs(z))
        p = (e if z > 0 else 1.0) / (1.0 + e)
        return max(-z, 0.0) + np.log1p(e), -y * p, e / (1.0 + e) ** 2
    if code == 1:
        r = eta - y
        c = min(max(r, -1.35), 1.35)
        return c * (r - 0.5 * c), c, 1.0 if abs(r) <= 1.35 else 0.0
    if code == 2:
        h = max(0.0, 1.0 - y * eta)
        return 0.5 * h * h, -y * h, 1.0 if h > 0 else 0.0
    if code == 3:
        mean = np.exp(min(eta, 300.0))
        if y == 0.0:
            return mean, mean, mean
        u = eta - np.log(y)
        return y * (np.expm1(u) - u), mean - y, mean
    u = eta - np.log(y if y > 0 else 1.0)
    if code == 4:
        return np.expm1(-u) + u, -np.expm1(-u), np.exp(-u)
    if y == 0.0:
        up = np.exp(0.5 * eta)
        return 2.0 * up, up, 0.5 * up
    root = np.sqrt(y)
    half = np.sinh(0.25 * u)
    return 8.0 * root * half * half, 2.0 * root * np.sinh(0.5 * u), root * np.cosh(0.5 * u)


@njit(error_model="numpy", cache=True)
def _look(code, A, y, weights, r, v, slope, H):  # pragma: no cover
    """The smooth part at v, its slope and its Hessian."""
    m, p = A.shape
    value = 0.0
    slope[:] = r * v
    H[:] = 0.0
    for j in range(p):
        value += 0.5 * r[j] * v[j] * v[j]
        H[j, j] = r[j]
    for i in range(m):
        if weights[i] == 0.0:
            continue
        eta = 0.0
        for j in range(p):
            eta += A[i, j] * v[j]
        f, u, bend = _terms(code, eta, y[i])
        value += weights[i] * f
        for j in range(p):
            slope[j] += weights[i] * u * A[i, j]
            for l in range(p):
                H[j, l] += weights[i] * bend * A[i, j] * A[i, l]
    return value


@njit(error_model="numpy", cache=True)
def _minimize(code, A, y, weights, r, v, most):  # pragma: no cover
    """Damped Newton steps; v ends where none helps."""
    p = v.size
    slope, H, other, H2 = np.zeros(p), np.zeros((p, p)), np.zeros(p), np.zeros((p, p))
    here = _look(code, A, y, weights, r, v, slope, H)
    damping, n_small = 1e-8, 0
    for _ in range(most):
        B, largest = H.copy(), 0.0
        for j in range(p):
            largest = max(largest, H[j, j])
        for j in range(p):
            B[j, j] += max(damping, 1e-15) * largest + 1e-14 * H[j, j] + 1e-300
        step = np.linalg.solve(B, -slope)
        there = _look(code, A, y, weights, r, v + step, other, H2)
        if there < here:
            n_small = n_small + 1 if here - there <= 1e-16 * abs(here) else 0
            v += step
            here = there
            slope[:], H[:] = other, H2
            damping = max(damping / 10.0, 1e-30)
            if n_small > 2:
                return
        elif damping > 1e25 or (slope @ step > -1e-17 * abs(here) and damping < 1e-3):
            return
        else:
            damping = max(8.0 * damping, 1e-10)


@njit(error_model="numpy", cache=True)
def _all_minima(code, A, y, weights, r, n_free, points):  # pragma: no cover
    """The minimizer for every bit mask of the columns after the first `n_free`; (2^n, p)."""
    p = A.shape[1]
    n = p - n_free
    for mask in range(1 << n):
        chosen = [j for j in range(n_free)]
        top = 0
        for j in range(n):
            if (mask >> j) & 1:
                chosen.append(n_free + j)
                top = 1 << j
        if len(chosen) == 0:
            continue
        at = np.array(chosen)
        part = np.ascontiguousarray(A[:, at])
        v = points[mask ^ top][at].copy()
        _minimize(code, part, y, weights, r[at], v, 500)
        for i in range(at.size):
            points[mask, at[i]] = v[i]


def minima_of(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The least smooth part on every support, reached by a point, in extended precision.

    With it what predictors that are rounded, as all are, leave of a difference.
    """
    A = problem.design.columns(np.arange(problem.n_features))
    n_free = int(problem.has_intercept)
    if n_free:
        A = np.column_stack([np.ones(len(A)), A])
    weights, y = problem.weights, problem.y
    r = np.full(A.shape[1], problem.ridge)
    r[:n_free] = 0.0
    scale = np.sqrt(weights @ A**2 + r)
    scale[scale == 0.0] = 1.0
    points = np.zeros((1 << problem.n_features, A.shape[1]))
    if n_free and is_positive(problem.loss.name):
        points[0, 0] = np.log(np.average(y, weights=weights) or 1.0) * scale[0]
    code = CODES[problem.loss.name]
    _all_minima(code, A / scale, y, weights, r / scale**2, n_free, points)
    points = (points / scale).astype(convex.Long)
    eta = points @ A.T.astype(convex.Long)
    losses, slopes, bends = convex.terms(problem.loss.name, eta, y.astype(convex.Long))
    delta = hostile.ROUNDING * (np.abs(points) @ np.abs(A.T) + 1.0 + np.abs(_size(problem)))
    slack = (np.abs(slopes) * delta + bends * delta**2) @ weights
    values = losses @ weights + 0.5 * (points**2 @ r)
    return values.astype(np.float64), slack.astype(np.float64)


def _size(problem: Problem) -> np.ndarray:
    """Of the numbers that predictors are compared with."""
    y = np.abs(problem.y)
    return np.log(np.where(y > 0.0, y, 1.0)) if is_positive(problem.loss.name) else y
