"""Logistic regression beside abess: objective and CPU time, 1000 x 10000, k = 20, one thread.

Run with OMP_NUM_THREADS=1; needs abess. Every answer is judged by the same formula: the logistic
loss, summed, plus ½·ridge·‖w‖², with an intercept, re-fitted on the columns that were chosen.
Everything is warm (a small problem first), and all methods see the same data in the same run.

Two designs, independent columns and AR(0.7): the 20 true columns lie at random places, with
coefficients that are hard to tell from noise, so that the methods differ.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time

import numpy as np
from abess.linear import LogisticRegression
from threadpoolctl import threadpool_limits

from blockl0 import L0Classifier

M, N, K, SEEDS = 1000, 10_000, 20, 4
RIDGE = 1e-3
TARGET_TIME = 1.0
"""Of effort "fast" beside abess's default, in the sum over instances."""


def make(rho: float, seed: int, m: int = M, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    for j in range(1, n if rho else 0):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    true = rng.choice(n, min(K, n), replace=False)
    eta = X[:, true] @ (rng.choice([-1.0, 1.0], true.size) * rng.uniform(0.2, 0.8, true.size))
    return np.asfortranarray(X), (eta + rng.logistic(size=m) > 0).astype(int)


def by_abess(X: np.ndarray, y: np.ndarray, **options: int) -> np.ndarray:
    model = LogisticRegression(support_size=K, thread=1, **options).fit(X, y)
    return np.flatnonzero(model.coef_)


def by_us(X: np.ndarray, y: np.ndarray, effort: str) -> np.ndarray:
    return L0Classifier(K, ridge=RIDGE, effort=effort, random_state=0).fit(X, y).support_


METHODS = {
    "abess": by_abess,
    "abess, 20 exchanges": lambda X, y: by_abess(X, y, exchange_num=K),
    "blockl0 fast": lambda X, y: by_us(X, y, "fast"),
    "blockl0 balanced": lambda X, y: by_us(X, y, "balanced"),
}


def objective(X: np.ndarray, y: np.ndarray, support: np.ndarray) -> float:
    """The re-fitted objective; with room for all columns the estimator only fits."""
    chosen = np.asfortranarray(X[:, support])
    return L0Classifier(support.size, ridge=RIDGE).fit(chosen, y).objective_


def measure() -> dict[str, list[tuple[float, float]]]:
    """(objective relative to abess's default, CPU seconds) of every instance and method."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    print(f"{'design':22s} seed " + "".join(f"{name:>26s}" for name in METHODS))
    for name, rho in (("independent", 0.0), ("AR(0.7)", 0.7)):
        for seed in range(SEEDS):
            X, y = make(rho, seed)
            cells, first = [], None
            for method, call in METHODS.items():
                start = time.process_time()
                support = call(X, y)
                seconds = time.process_time() - start
                value = objective(X, y, support)
                first = value if first is None else first
                seen[method].append((value / first, seconds))
                cells.append(f"{value:16.4f} {seconds:7.2f} s")
            print(f"{name:22s} {seed:4d} " + "".join(cells), flush=True)
    return seen


def main() -> int:
    X, y = make(0.0, 0, 200, 100)
    for call in METHODS.values():
        call(X, y)
    with threadpool_limits(1):
        seen = measure()
    peer = sum(seconds for _, seconds in seen["abess"])
    print("\nmethod               objective / abess (mean, worst)   CPU time / abess")
    for name, rows in seen.items():
        values = [value for value, _ in rows]
        ratio = sum(seconds for _, seconds in rows) / peer
        print(f"{name:22s} {np.mean(values):14.5f} {max(values):10.5f} {ratio:17.2f}")
    fast = seen["blockl0 fast"]
    time_ratio = sum(seconds for _, seconds in fast) / peer
    mean = np.mean([value for value, _ in fast])
    met = bool(time_ratio <= TARGET_TIME and mean <= 1.0 + 1e-6)
    print(f"\nfast: no slower and no worse on average than abess: {'PASS' if met else 'FAIL'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
