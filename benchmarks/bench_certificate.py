"""How long complete certificates take: level 2 with 2048 columns, level 3 with 300.

Run with OMP_NUM_THREADS=1 for one core. Every point is first improved until it is stationary
at its level, so that no search is cut short.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from blockl0.certify import certify

CASES = [
    # name, rows, columns, budget, price, correlation, level
    ("level 2, budget", 256, 2048, 50, None, 0.0, 2),
    ("level 2, price", 256, 2048, None, 2.0, 0.0, 2),
    ("level 3, budget", 200, 300, 20, None, 0.0, 3),
    ("level 3, price", 200, 300, None, 20.0, 0.0, 3),
    ("level 3, budget, correlated", 200, 300, 20, None, 0.9, 3),
    ("level 3, price, correlated", 200, 300, None, 20.0, 0.9, 3),
    ("level 4, budget", 200, 300, 20, None, 0.0, 4),
    ("level 10, price, m >> n", 20000, 300, None, 4000.0, 0.0, 10),
]


def make(m: int, n: int, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, n))
    for j in range(1, n):
        X[:, j] = correlation * X[:, j - 1] + (1.0 - correlation**2) ** 0.5 * X[:, j]
    w = np.zeros(n)
    w[rng.choice(n, 20, replace=False)] = rng.choice([-3.0, 3.0], 20)
    return X, X @ w + 2.0 * rng.standard_normal(m)


def descend(X: np.ndarray, y: np.ndarray, coef: np.ndarray, **options) -> tuple[np.ndarray, float]:
    """Go on to better points until the certificate holds; the point and the time of the last."""
    while True:
        start = perf_counter()
        answer = certify(X, y, coef, **options)
        if answer.better_coef is None:
            return coef, perf_counter() - start
        coef = answer.better_coef


def main() -> None:
    certify(np.eye(3), np.ones(3), np.zeros(3), alpha=1.0, level=3)  # waits for the compiler
    for name, m, n, budget, price, correlation, level in CASES:
        X, y = make(m, n, correlation)
        options = {"n_nonzero_coefs": budget, "alpha": price, "level": level}
        coef = np.zeros(n)
        if budget is not None:
            coef[np.argsort(-np.abs(X.T @ y))[:budget]] = 1.0
        for outside in ("refit", "fixed"):
            coef, seconds = descend(X, y, coef, outside=outside, **options)
            nnz = np.count_nonzero(coef)
            print(f"{name:28} {m:5} x {n:4}, {nnz:2} nonzeros, {outside:5}: {seconds:7.3f} s")


if __name__ == "__main__":
    main()
