"""The baselines on the paper's data: time and objective, and OMP beside scikit-learn's.

Run with OMP_NUM_THREADS=1. Give the path of E2006_5000_10000.mat as BLOCKL0_E2006 for its rows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time

import numpy as np
from sklearn.linear_model import orthogonal_mp

import blockl0
from blockl0.baselines import BUDGET_BASELINES, PRICE_BASELINES
from blockl0.datasets import load_e2006, make_random

OMP_SIZE, OMP_BUDGET = (256, 2048), 50
TARGET_RATIO = 1.0
REPEATS = 60


def omp_against_scikit_learn() -> bool:
    """Alternate the two, so that both see the same machine; compare the fastest calls."""
    X, y = make_random(*OMP_SIZE, random_state=0)
    calls = {
        "scikit-learn": lambda: orthogonal_mp(X, y, n_nonzero_coefs=OMP_BUDGET),
        "blockl0": lambda: (
            blockl0.solve(X, y, n_nonzero_coefs=OMP_BUDGET, method="omp", normalize=False).coef
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    coefs = {}
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            coefs[name] = call()
            times[name].append(time.perf_counter() - start)
    same = np.allclose(coefs["blockl0"], coefs["scikit-learn"], atol=1e-8)
    print(f"OMP at {OMP_SIZE[0]}x{OMP_SIZE[1]}, s = {OMP_BUDGET}; same answer: {same}")
    for name, seconds in times.items():
        print(
            f"  {name:13s} {1e3 * min(seconds):7.2f} ms, median {1e3 * np.median(seconds):7.2f} ms"
        )
    ratio = min(times["blockl0"]) / min(times["scikit-learn"])
    median = np.median(times["blockl0"]) / np.median(times["scikit-learn"])
    met = bool(same and ratio <= TARGET_RATIO)
    print(f"  ratio {ratio:.2f}, of medians {median:.2f}; {'PASS' if met else 'FAIL'}")
    return met


def data_sets():
    yield "random-256-1024", make_random(256, 1024, random_state=0)
    yield "random-256-2048", make_random(256, 2048, random_state=0)
    yield "random-256-1024-C", make_random(256, 1024, corrupted=True, random_state=0)
    if os.environ.get("BLOCKL0_E2006"):
        yield "e2006-5000-1024", load_e2006(5000, 1024, random_state=0)
        yield "e2006-5000-2048-C", load_e2006(5000, 2048, corrupted=True, random_state=0)


def all_methods() -> None:
    forms = [
        (BUDGET_BASELINES, {"n_nonzero_coefs": 20}),
        (BUDGET_BASELINES, {"n_nonzero_coefs": 48}),
    ]
    forms += [(PRICE_BASELINES, {"alpha": alpha}) for alpha in (1.0, 100.0)]
    for name, (X, y) in data_sets():
        print(f"\n{name}: objective, iterations, milliseconds")
        for methods, form in forms:
            print("  " + ", ".join(f"{key} = {value:g}" for key, value in form.items()))
            for method in methods:
                result = blockl0.solve(X, y, method=method, random_state=0, **form)
                print(
                    f"    {method:8s} {result.objective:11.5g} {result.n_iter:5d} "
                    f"{1e3 * result.seconds:8.1f}"
                )


if __name__ == "__main__":
    met = omp_against_scikit_learn()
    all_methods()
    sys.exit(0 if met else 1)
