"""Objective and time of blockl0 beside peers, same data, same run, one thread, warm.

Needs ``pip install -e '.[peers]'``. Every method returns a support; the objective ½‖y − Xw‖² is
that of least squares on it, in per cent above the best that any method of this run found.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import orthogonal_mp

import blockl0

SEEDS = range(5)
SIZES = (20, 48)


def paper_random(m: int, n: int, seed: int, corrupted: bool = False):
    """The paper's random data: 100 true nonzeros, noise 10; optionally 2 % of X times 100."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((m, n)), np.zeros(n)
    if corrupted:
        X.flat[rng.choice(m * n, round(0.02 * m * n), replace=False)] *= 100.0
    w[rng.choice(n, 100, replace=False)] = rng.standard_normal(100)
    return np.asfortranarray(X), X @ w + 10.0 * rng.standard_normal(m)


def autoregressive(m: int, n: int, seed: int, rho: float = 0.9):
    """Columns with correlation rho^|i-j|, 20 true nonzeros, noise 1."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((m, n)), np.zeros(n)
    for j in range(1, n):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    w[rng.choice(n, 20, replace=False)] = rng.standard_normal(20)
    return np.asfortranarray(X), X @ w + rng.standard_normal(m)


DATA: dict[str, Callable] = {
    "random-256-1024": lambda seed: paper_random(256, 1024, seed),
    "random-256-2048": lambda seed: paper_random(256, 2048, seed),
    "random-256-1024-C": lambda seed: paper_random(256, 1024, seed, corrupted=True),
    "AR(0.9) 100x1000": lambda seed: autoregressive(100, 1000, seed),
}


def methods() -> dict[str, Callable]:
    """Name to a function (X, y, s) -> coefficients."""

    def ours(**options):
        return lambda X, y, s: (
            blockl0.solve(X, y, n_nonzero_coefs=s, random_state=0, **options).coef
        )

    known = {
        "refit fast": ours(effort="fast"),
        "refit balanced": ours(effort="balanced"),
        "refit thorough": ours(effort="thorough"),
        "dec R10G2": ours(method="dec"),
        "OMP (scikit-learn)": lambda X, y, s: orthogonal_mp(
            X / np.linalg.norm(X, axis=0), y, n_nonzero_coefs=s
        ),
    }
    try:
        from abess.linear import LinearRegression
    except ImportError:
        print("abess is not installed: its rows are missing (pip install -e '.[peers]')")
    else:
        known["abess"] = lambda X, y, s: (
            LinearRegression(support_size=s, fit_intercept=False, thread=1).fit(X, y).coef_
        )
    return known


def refitted(X, y, coef) -> float:
    """½‖y − Xw‖² by least squares on the support of coef."""
    X_S = X[:, np.flatnonzero(coef)]
    return 0.5 * float(np.sum((y - X_S @ np.linalg.lstsq(X_S, y, rcond=None)[0]) ** 2))


def main() -> None:
    """Print one table per kind of data."""
    known = methods()
    for name, make in DATA.items():
        gaps = {method: [] for method in known}
        seconds = {method: [] for method in known}
        for seed in SEEDS:
            X, y = make(seed)
            for s in SIZES:
                objective = {}
                for method, run in known.items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        run(X, y, s)
                        started = time.perf_counter()
                        coef = run(X, y, s)
                        seconds[method].append(time.perf_counter() - started)
                    objective[method] = refitted(X, y, coef)
                best = min(objective.values())
                for method, value in objective.items():
                    gaps[method].append(100.0 * (value / best - 1.0))
        print(f"{name}, s = {SIZES}, {len(SEEDS)} seeds: % above the best, median ms")
        for method in known:
            print(
                f"  {method:20s} mean {np.mean(gaps[method]):6.2f} %  worst "
                f"{np.max(gaps[method]):6.2f} %  {1e3 * np.median(seconds[method]):8.1f} ms"
            )


if __name__ == "__main__":
    main()
