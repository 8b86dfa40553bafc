"""How long complete certificates take: level 2 with 2048 columns, level 3 with 300.

Run with OMP_NUM_THREADS=1 for one core. Every point is stationary at its level (it is improved from
certificate to certificate until it is), so that nothing is cut short by an improvement.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from blockl0.certificate import Certificate, certify

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


def descend(X: np.ndarray, y: np.ndarray, start: np.ndarray, **problem) -> tuple[int, Certificate]:
    """Go on from better point to better point until the certificate holds."""
    coef, steps = start, 0
    while True:
        answer = certify(X, y, coef, **problem)
        if answer.better_coef is None:
            return steps, answer
        coef, steps = answer.better_coef, steps + 1


def main() -> None:
    for name, m, n, budget, price, correlation, level in CASES:
        X, y = make(m, n, correlation)
        problem = {"n_nonzero_coefs": budget, "alpha": price}
        start = np.zeros(n)
        if budget is not None:
            start[np.argsort(-np.abs(X.T @ y))[:budget]] = 1.0
        for outside in ("refit", "fixed"):
            coef = start
            answer = None
            steps = 0
            begin = perf_counter()
            while perf_counter() - begin < 60.0:
                tick = perf_counter()
                try:
                    answer = certify(X, y, coef, level=level, outside=outside, **problem)
                except ValueError as error:
                    print(f"{name:30} {outside:6} {perf_counter() - tick:8.3f} s  {error}")
                    break
                seconds = perf_counter() - tick
                if answer.better_coef is None:
                    break
                coef, steps = answer.better_coef, steps + 1
            if answer is not None:
                nnz = np.count_nonzero(coef)
                print(
                    f"{name:30} {outside:6} {seconds:8.3f} s  holds={answer.holds} "
                    f"after {steps} steps, {nnz} nonzeros"
                )


if __name__ == "__main__":
    main()
