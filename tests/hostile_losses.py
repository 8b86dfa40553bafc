"""Small problems of losses other than the squared one, whose optimum needs several columns at once.

The truth is the least value on every support, by the damped Newton steps of `hostile_minima`, or
for several classes by scipy. What the default search returns must not be above it. Where columns
nearly depend on each other, supports are fitted on orthonormal columns made in long double.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

import blockl0
import convex
import hostile_minima
from blockl0.problem.orthogonal import DEPENDENT, ROUNDED
from blockl0.problem.problem import as_problem
from long_double import LONG, gram_schmidt
from targets import as_target

SLACK = 1e-6
"""Share of the objective at zero that a search may be above the truth: fits end before that."""
NAMES = ("logistic", "poisson", "huber", "squared_hinge", "gamma", "tweedie", "softmax")
RIDGES = (0.0, 1e-3, 0.1)


def make_problem(seed: int, largest: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """A problem of a seed: random columns or suppressors, a price or a budget, a ridge."""
    rng = np.random.default_rng(seed)
    name = NAMES[seed % len(NAMES)]
    n = int(rng.integers(2, (5 if name == "softmax" else largest) + 1))
    m = int(rng.integers(max(8, 2 * n), 50))
    X, u = rng.standard_normal((m, n)), rng.standard_normal(m)
    kind = ("random", "alike", "suppressed")[seed // len(NAMES) % 3]
    if kind == "alike":
        X += rng.uniform(0.5, 3.0) * rng.standard_normal((m, 1))
        u = X @ rng.standard_normal(n) + 0.5 * u
    elif kind == "suppressed":
        X[:, 0] = X[:, 1] + rng.uniform(0.05, 0.3) * u
    else:
        u = X @ (rng.standard_normal(n) * rng.integers(0, 2, n)) + rng.uniform(0.1, 2.0) * u
    if name == "softmax":
        y = np.digitize(u, np.quantile(u, [1 / 3, 2 / 3])).astype(float)
    else:
        y = as_target(name, u + (rng.logistic(size=m) * rng.integers(0, 2)), growth=0.7)
    # some noise in labels, so that not all of them separate
    ridge = RIDGES[1 + seed % 2] if name in ("logistic", "softmax") else RIDGES[seed % 3]
    options = {"loss": name, "ridge": max(ridge, 1e-3)}
    if rng.random() < 0.6:
        options["alpha"] = float(10.0 ** rng.uniform(-2.0, 1.0))
    if "alpha" not in options or rng.random() < 0.2:
        options["n_nonzero_coefs"] = int(rng.integers(1, n + 1))
    return X, y, options


def check_losses(seed: int, largest: int = 7) -> list[str]:
    """What is wrong with the default answer to the problem of a seed; empty when nothing is."""
    X, y, options = make_problem(seed, largest)
    problem = as_problem(X, y, **options)
    values = _softmax_minima(problem) if options["loss"] == "softmax" else _minima(problem)
    sizes = np.array([mask.bit_count() for mask in range(values.size)])
    price, budget = problem.sparsity
    allowed = sizes <= budget
    best = float((values + price * sizes)[allowed].min())
    result = blockl0.solve(X, y, random_state=0, **options)
    if result.objective <= best + SLACK * values[0]:
        return []
    mask = int(np.argmin(np.where(allowed, values + price * sizes, np.inf)))
    return [
        f"seed {seed}, {X.shape}, {options}: {result.objective:.6g} on {result.support.tolist()}, "
        f"but {best:.6g} on {[j for j in range(X.shape[1]) if mask >> j & 1]}"
    ]


def _minima(problem) -> np.ndarray:
    return hostile_minima.minima_of(problem)[0]


def _softmax_minima(problem) -> np.ndarray:
    """The same for several classes, by a quasi-Newton method."""
    n, C = problem.n_features, problem.n_outputs
    X, labels = problem.design.columns(np.arange(n)), problem.y
    values = []
    for mask in range(1 << n):
        A = X[:, [j for j in range(n) if mask >> j & 1]]

        values.append(_softmax_minimum(A, labels, C, problem.ridge))
    return np.array(values)


def _softmax_minimum(A: np.ndarray, labels: np.ndarray, C: int, ridge: float) -> float:
    """The least value on some columns."""
    rows = np.arange(len(A))

    def look(v):
        W = v.reshape(A.shape[1], C)
        eta = A @ W
        top = logsumexp(eta, axis=1)
        P = np.exp(eta - top[:, None])
        P[rows, labels] -= 1.0
        value = np.sum(top - eta[rows, labels]) + 0.5 * ridge * np.sum(W**2)
        return value, (A.T @ P + ridge * W).ravel()

    start = np.zeros(A.shape[1] * C)
    if not start.size:
        return look(start)[0]
    how = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000}
    return float(minimize(look, start, jac=True, method="L-BFGS-B", options=how).fun)


# columns that nearly depend on others ------------------------------------------------------------


def make_near(seed: int, largest: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """A problem of a seed with columns 1e-13 to 1e-4 from the span of others, and no ridge."""
    rng = np.random.default_rng([seed, 5])
    name, n = NAMES[seed % len(NAMES)], int(rng.integers(3, largest + 1))
    m = int(rng.integers(max(10, 3 * n), 40))
    X = rng.standard_normal((m, n))
    for _ in range(int(rng.integers(1, 3))):
        i = int(rng.integers(n))
        some = rng.choice(np.setdiff1d(np.arange(n), i), int(rng.integers(1, min(n, 4))), False)
        X[:, i] = X[:, some] @ rng.choice([1.0, -1.0, 0.5, 2.0], size=some.size)
        X[:, i] += 10.0 ** rng.uniform(-13.0, -4.0) * rng.standard_normal(m)
    u = X[:, 0] + 0.7 * rng.standard_normal(m)
    if name == "softmax":
        y = np.digitize(u, np.quantile(u, [1 / 3, 2 / 3])).astype(float)
    else:
        # labels of both kinds beside each other, so that hardly any support separates them
        y = as_target(name, u + rng.logistic(size=m) * (name == "logistic"), growth=0.7)
    options = {"loss": name, "n_nonzero_coefs": int(rng.integers(1, n + 1))}
    if rng.random() < 0.3:
        options["alpha"] = float(10.0 ** rng.uniform(-2.0, 1.0))
    if rng.random() < 0.2:
        options["keep"] = [int(rng.integers(n))]
    if rng.random() < 0.2:
        options["sample_weight"] = rng.integers(1, 4, m).astype(float)
    return X, y, options


def near_minima(
    X: np.ndarray, y: np.ndarray, options: dict
) -> dict[tuple[int, ...], tuple[float, float]]:
    """The (distance, objective) of every support with the kept columns, not below `ROUNDED`."""
    times = options.get("sample_weight", np.ones(len(y))).astype(int)
    X, y = np.repeat(X, times, axis=0).astype(LONG), np.repeat(y, times)
    unit, found = X / np.sqrt((X * X).sum(axis=0)), {}
    labels = np.unique(y, return_inverse=True)[1]
    for size in range(X.shape[1] + 1):
        for support in combinations(range(X.shape[1]), size):
            if size > options["n_nonzero_coefs"] or not set(options.get("keep", [])) <= set(
                support
            ):
                continue
            made = gram_schmidt(unit[:, list(support)])
            if made is None:
                continue
            distance = 1 / np.sqrt((made[1] ** 2).sum(axis=1)).max() if size else 1.0
            if distance <= ROUNDED:
                continue
            if options["loss"] == "softmax":
                Q = made[0].astype(np.float64)
                value = _softmax_minimum(Q, labels, int(labels.max()) + 1, 0.0)
            else:
                value = float(convex.Fit(options["loss"], made[0], y, 0.0, False).value)
            found[support] = float(distance), value + options.get("alpha", 0.0) * size
    return found


def check_near(seed: int, largest: int = 5) -> tuple[list[str], bool, bool]:
    """What is wrong; whether a support that is left out is lower, and whether that is said."""
    X, y, options = make_near(seed, largest)
    minima = near_minima(X, y, options)
    apart = min(value for distance, value in minima.values() if distance > DEPENDENT)
    near = [value for distance, value in minima.values() if distance <= DEPENDENT]
    problem = as_problem(X, y, **options)
    said, wrong, is_lower = [], [], False
    for method in ("exact", "refit"):
        found = blockl0.solve(X, y, method=method, random_state=0, **options)
        support = {*found.support.tolist(), *options.get("keep", [])}
        distance, value = minima.get(tuple(sorted(support)), (0.0, -np.inf))
        if distance <= DEPENDENT * (1.0 - 1e-4):
            wrong.append(f"the support has a distance of {distance:.1e}")
        # predictors are rounded, those of huge coefficients more
        slopes = np.abs(problem.loss.gradient(problem.linear(found.coef), problem.y).T)
        sizes = np.abs(X) @ np.abs(found.coef.T).T
        rounding = 2e-15 * float(np.sum(problem.weights * slopes * sizes.T))
        tolerance = 1e-8 * (abs(apart) + problem.smooth_at_zero) + rounding
        is_lower |= min(near, default=np.inf) < apart - 10.0 * tolerance
        if abs(found.objective - value) > tolerance:
            wrong.append(f"{found.objective} on its support, where {value} is least")
        if found.lower_bound is not None and found.lower_bound > apart + tolerance:
            wrong.append(f"a bound of {found.lower_bound} above {apart}")
        if str(found.status) == "optimal":
            if found.objective > apart + tolerance:
                wrong.append(f"{found.objective} is not optimal, {apart} is")
            said.append(bool(found.near_dependent))
            if is_lower and not said[-1]:
                wrong.append(f"{min(near)} is left out, below {found.objective}")
    return [f"seed {seed}, {options}: {line}" for line in wrong], is_lower, any(said)
