"""Easy data beside abess: a few strong columns carry the signal, and everyone finds them.

    python benchmarks/bench_easy.py                      all cases, CPU time; needs abess
    python benchmarks/bench_easy.py logistic-2000x500    some of them

The estimators with an intercept, as a user calls them, on the same arrays in the same run. Every
answer is judged by the same formula: the loss on the columns that were chosen, re-fitted by the
same code. Times are CPU seconds, the least of some calls after a first one that compiles.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable

import numpy as np
from abess.linear import (
    LinearRegression,
    LogisticRegression,
    MultinomialRegression,
    PoissonRegression,
)
from threadpoolctl import threadpool_limits

from blockl0 import L0Classifier, L0Regressor

CASES = [
    ("squared", 300, 300, 10), ("squared", 5000, 1000, 10), ("squared", 100_000, 30, 5),
    ("logistic", 20_000, 50, 5), ("logistic", 2000, 500, 10), ("logistic", 300, 3000, 5),
    ("logistic", 97_854, 30, 5),
    ("poisson", 20_000, 50, 5), ("poisson", 500, 2000, 5), ("poisson", 97_854, 30, 5),
    ("softmax", 5000, 40, 5), ("softmax", 300, 1000, 5),
]  # fmt: skip
RIDGE = 1e-3
REPEATS, REPEAT_SECONDS = 5, 1.0
TARGETS = {"fast": 1.0, "balanced": 4.0}
"""Times relative to abess's, in the geometric mean."""
PEERS = {
    "squared": LinearRegression, "logistic": LogisticRegression, "poisson": PoissonRegression,
    "softmax": MultinomialRegression,
}  # fmt: skip


def make(loss: str, m: int, n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Independent columns, k of them with coefficients that stand out."""
    rng = np.random.default_rng(seed)
    X, chosen = rng.standard_normal((m, n)), rng.choice(n, k, replace=False)
    size = {"poisson": 0.3, "logistic": 1.0}.get(loss, 1.5)
    coef = size * rng.choice([-1.0, 1.0], k) * rng.uniform(0.8, 1.2, k)
    eta = X[:, chosen] @ coef
    if loss == "softmax":
        W = 1.5 * rng.standard_normal((k, 3))
        y = np.argmax(X[:, chosen] @ W + rng.gumbel(size=(m, 3)), axis=1)
    elif loss == "logistic":
        y = (eta + rng.logistic(size=m) > 0).astype(int)
    elif loss == "poisson":
        y = rng.poisson(np.exp(eta)).astype(float)
    else:
        y = eta + rng.standard_normal(m)
    return X, y


def ours(loss: str, k: int, **options: object) -> L0Regressor | L0Classifier:
    """The estimator of a loss."""
    if loss in ("logistic", "softmax"):
        return L0Classifier(k, ridge=RIDGE, random_state=0, **options)
    return L0Regressor(k, loss=loss, random_state=0, **options)


def by_abess(loss: str, X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Its support of one size."""
    target = np.eye(3)[y] if loss == "softmax" else y
    coef = PEERS[loss](support_size=k, thread=1).fit(X, target).coef_
    return np.flatnonzero(np.any(np.reshape(coef, (X.shape[1], -1)) != 0.0, axis=1))


def methods(loss: str, k: int) -> dict[str, Callable]:
    """Calls that return a support, by name."""
    calls: dict[str, Callable] = {"abess": lambda X, y: by_abess(loss, X, y, k)}
    for effort in TARGETS:
        calls[effort] = lambda X, y, effort=effort: ours(loss, k, effort=effort).fit(X, y).support_
    return calls


def objective(loss: str, X: np.ndarray, y: np.ndarray, support: np.ndarray) -> float:
    """With room for all columns the estimator only fits."""
    return ours(loss, support.size).fit(np.asfortranarray(X[:, support]), y).objective_


def seconds_of(call: Callable, X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The least CPU seconds of some calls, and the support."""
    taken: list[float] = []
    while len(taken) < 2 or (len(taken) < REPEATS and sum(taken) < REPEAT_SECONDS):
        started = time.process_time()
        support = call(X, y)
        taken.append(time.process_time() - started)
    return min(taken), support


def main(names: list[str]) -> int:
    ratios: dict[str, list[float]] = {effort: [] for effort in TARGETS}
    n_worse = 0
    print(f"{'case':24s}{'abess':>10s}" + "".join(f"{e + ' / abess':>18s}" for e in TARGETS))
    for loss, m, n, k in CASES:
        name = f"{loss}-{m}x{n}"
        if names and name not in names:
            continue
        small, (X, y) = make(loss, 120, 20, 3), make(loss, m, n, k)
        cells, first, peer = [], 0.0, 0.0
        for method, call in methods(loss, k).items():
            call(*small)
            taken, support = seconds_of(call, X, y)
            value = objective(loss, X, y, support)
            if method == "abess":
                first, peer = value, taken
                continue
            is_worse = value > first * (1.0 + 1e-9)
            n_worse += is_worse
            ratios[method].append(taken / peer)
            note = "worse" if is_worse else "better" if value < first * (1.0 - 1e-9) else "same"
            cells.append(f"{taken / peer:11.2f} {note:6s}")
        print(f"{name:24s}{peer:9.3f}s" + "".join(cells), flush=True)
    met = n_worse == 0
    for effort, most in TARGETS.items():
        mean = float(np.exp(np.mean(np.log(ratios[effort]))))
        met &= mean <= most
        print(f"{effort}: {mean:.2f} of abess's time in the geometric mean (at most {most:g})")
    print(f"worse objectives: {n_worse}. {'PASS' if met else 'FAIL'}")
    return 0 if met else 1


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main(sys.argv[1:]))
