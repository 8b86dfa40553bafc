"""Method "exact": seconds, nodes and gaps to proven optimality, and how well time limits are kept.

Run with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import time

import numpy as np

import blockl0

TIME_LIMIT = 20.0
SEEDS = range(5)


def autoregressive(m, n, rho, n_true, sigma, seed):
    """Columns with correlation rho^|i-j|; `n_true` random features, standard normal coefficients."""
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
    proven = [took for result, took in rows if result.status is blockl0.Status.OPTIMAL]
    print(
        f"  proven {len(proven)} of {len(rows)}; median {np.median([t for _, t in rows]):.3f} s, "
        f"worst {max(t for _, t in rows):.3f} s"
    )


def time_limits():
    print("time limits on a hard instance (noise, 60x120, s = 8)")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 120)), rng.standard_normal(60)
    for limit in (0.1, 0.5, 0.5, 0.5, 2.0):
        start = time.perf_counter()
        result = blockl0.solve(X, y, n_nonzero_coefs=8, method="exact", time_limit=limit)
        took = time.perf_counter() - start
        print(f"  limit {limit:.1f} s: {took:.3f} s ({took - limit:+.3f}), {result.status}")
    X, y = autoregressive(2000, 1000, 0.5, 50, 10.0, 0)
    start = time.perf_counter()
    result = blockl0.solve(X, y, n_nonzero_coefs=50, method="exact", time_limit=0.5)
    took = time.perf_counter() - start
    print(f"  limit 0.5 s at 2000x1000: {took:.3f} s ({took - 0.5:+.3f}), {result.status}")


def main():
    blockl0.solve(np.eye(20), np.ones(20), n_nonzero_coefs=3, method="exact")  # compile
    family("200x60 AR(0.6), sigma 2, s = 10", 200, 60, 0.6, 2.0, {"n_nonzero_coefs": 10})
    family("200x100 AR(0.6), sigma 2, s = 10", 200, 100, 0.6, 2.0, {"n_nonzero_coefs": 10})
    family("2000x500 AR(0.5), sigma 3, s = 10", 2000, 500, 0.5, 3.0, {"n_nonzero_coefs": 10})
    family("200x60 AR(0.6), sigma 2, alpha = 10", 200, 60, 0.6, 2.0, {"alpha": 10.0})
    family("200x100 AR(0.6), sigma 2, alpha = 10", 200, 100, 0.6, 2.0, {"alpha": 10.0})
    family("2000x500 AR(0.5), sigma 3, alpha = 40", 2000, 500, 0.5, 3.0, {"alpha": 40.0})
    time_limits()


if __name__ == "__main__":
    main()
