"""Method "exact": seconds, nodes and gaps to proven optimality, and how well time limits are kept.

Run with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import blockl0

TIME_LIMIT = 20.0
SEEDS = range(5)
TARGET_SECONDS = 10.0
TARGET_LATE = 0.1


def autoregressive(m, n, rho, n_true, sigma, seed):
    """Columns with correlation rho^|i-j|, `n_true` features with standard normal coefficients."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((m, n))
    X = np.empty((m, n), order="F")
    X[:, 0] = noise[:, 0]
    for j in range(1, n):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * noise[:, j]
    w = np.zeros(n)
    w[rng.choice(n, n_true, replace=False)] = rng.standard_normal(n_true)
    return X, X @ w + sigma * rng.standard_normal(m)


def report(name, X, y, **form):
    start = time.perf_counter()
    result = blockl0.solve(X, y, method="exact", time_limit=TIME_LIMIT, **form)
    took = time.perf_counter() - start
    print(
        f"  {name:34} {took:8.3f} s  {result.n_iter:9d} nodes  {result.status!s:10}"
        f"  gap {result.gap:7.2%}  nonzeros {result.n_nonzero:2d}  F {result.objective:.6g}"
    )
    return result, took


def family(title, m, n, rho, sigma, form, n_true=10):
    print(title)
    rows = [
        report(f"seed {seed}", *autoregressive(m, n, rho, n_true, sigma, seed), **form)
        for seed in SEEDS
    ]
    times = [took for _, took in rows]
    proven = sum(result.status is blockl0.Status.OPTIMAL for result, _ in rows)
    met = proven == len(rows) and max(times) < TARGET_SECONDS
    print(
        f"  proven {proven} of {len(rows)}; median {np.median(times):.3f} s, worst "
        f"{max(times):.3f} s   all within {TARGET_SECONDS:.0f} s: {'PASS' if met else 'FAIL'}"
    )
    return met


def time_limits():
    print("time limits")
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((60, 120)), rng.standard_normal(60)
    wide = autoregressive(2000, 1000, 0.5, 50, 10.0, 0)
    blockl0.solve(*noise, n_nonzero_coefs=8, method="exact", node_limit=1)  # compile
    met = True
    for name, (X, y), s, limit in (
        ("noise 60x120", noise, 8, 0.1),
        ("noise 60x120", noise, 8, 0.5),
        ("noise 60x120", noise, 8, 2.0),
        ("AR(0.5) 2000x1000", wide, 50, 0.5),
    ):
        start = time.perf_counter()
        result = blockl0.solve(X, y, n_nonzero_coefs=s, method="exact", time_limit=limit)
        late = time.perf_counter() - start - limit
        met &= late < TARGET_LATE
        print(
            f"  {name:18} limit {limit:.1f} s: late by {late:+.3f} s, {result.status}"
            f"   below {TARGET_LATE} s: {'PASS' if late < TARGET_LATE else 'FAIL'}"
        )
    return met


def main():
    blockl0.solve(np.eye(20), np.ones(20), n_nonzero_coefs=3, method="exact")  # compile
    small, medium, large = (200, 60, 0.6, 2.0), (200, 100, 0.6, 2.0), (2000, 500, 0.5, 3.0)
    # several prices: near the level of the noise many supports are almost optimal
    met = [
        family("200x60 AR(0.6), sigma 2, s = 10", *small, {"n_nonzero_coefs": 10}),
        family("200x60 AR(0.6), sigma 2, alpha = 10", *small, {"alpha": 10.0}),
        family("200x100 AR(0.6), sigma 2, s = 10", *medium, {"n_nonzero_coefs": 10}),
        family("200x100 AR(0.6), sigma 2, alpha = 10", *medium, {"alpha": 10.0}),
        family("200x100 AR(0.6), sigma 2, alpha = 15", *medium, {"alpha": 15.0}),
        family("2000x500 AR(0.5), sigma 3, s = 10", *large, {"n_nonzero_coefs": 10}),
        family("2000x500 AR(0.5), sigma 3, alpha = 40", *large, {"alpha": 40.0}),
        family("2000x500 AR(0.5), sigma 3, alpha = 60", *large, {"alpha": 60.0}),
        family("2000x500 AR(0.5), sigma 3, alpha = 80", *large, {"alpha": 80.0}),
        time_limits(),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
