"""Small problems of losses other than the squared one, whose optimum needs several columns at once.

The truth is the least value on every support, by the damped Newton steps of `hostile_minima`, or
for several classes by scipy. What the default search returns must not be above it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

import blockl0
import hostile_minima
from blockl0.problem.problem import as_problem
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
    X, rows, labels = problem.design.columns(np.arange(n)), np.arange(problem.n_samples), problem.y
    values = []
    for mask in range(1 << n):
        A = X[:, [j for j in range(n) if mask >> j & 1]]

        def look(v, A=A):
            W = v.reshape(A.shape[1], C)
            eta = A @ W
            top = logsumexp(eta, axis=1)
            P = np.exp(eta - top[:, None])
            P[rows, labels] -= 1.0
            value = np.sum(top - eta[rows, labels]) + 0.5 * problem.ridge * np.sum(W**2)
            return value, (A.T @ P + problem.ridge * W).ravel()

        start = np.zeros(A.shape[1] * C)
        values.append(
            look(start)[0]
            if not A.shape[1]
            else minimize(look, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-13}).fun
        )
    return np.array(values)
