"""Tall tables: a path of ten budgets, and a choice by five folds, beside what others would call.

    python benchmarks/scale/tall.py                all sizes, ten minutes and more
    python benchmarks/scale/tall.py --largest 1e6  only tables of at most so many entries
    python benchmarks/scale/tall.py --method LassoCV --smallest 1e7  some columns of the table

Every cell is a process of its own, one thread, warmed up on a small table; it prints the least
processor time of up to three calls, and ½‖y − Xw − b‖²/m by least squares on the columns chosen.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

SIZES = (
    (10_000, 10), (10_000, 100), (10_000, 300), (100_000, 30), (100_000, 100), (100_000, 300),
    (1_000_000, 10), (1_000_000, 30),
)  # fmt: skip
BUDGET = 10
"""The largest number of columns of a path."""
TIME_LIMIT, WALL_LIMIT = 60, 1200.0
"""Processor seconds of a cell, set-up included, and seconds on the wall, where others are busy."""
CALLS, CALL_SECONDS = 3, 10.0
"""Calls of a cell, unless so much time has gone before."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def make(m: int, n: int, seed: int = 0) -> tuple[Any, Any]:
    """Columns with common factors, sizes 1e-3 to 1e4 and means up to 1e7, half of them in y."""
    rng = np.random.default_rng(seed)
    common, X = rng.standard_normal((m, 8)), np.empty((m, n), order="F")
    y = 15.0 * rng.standard_normal(m)
    for j in range(n):
        z = 0.6 * common @ rng.standard_normal(8) + rng.standard_normal(m)
        y += 20.0 * z * rng.standard_normal() * (rng.uniform() < 0.5) * 2.0 ** -np.sqrt(j)
        mean = 10.0 ** rng.uniform(-1, 7) if j % 3 else 0.0
        X[:, j] = z * 10.0 ** rng.uniform(-3, 4) + mean
    return X, y


# methods: (X, y) -> the columns chosen ------------------------------------------------------------


def our_path(X: Any, y: Any) -> Any:
    """All budgets to ten, by the criterion that needs no folds; the columns of the last."""
    from blockl0 import L0RegressorCV

    model = L0RegressorCV(range(1, min(BUDGET, X.shape[1]) + 1), rule="bic", random_state=0)
    return model.fit(X, y).path_[-1].support


def our_folds(X: Any, y: Any) -> Any:
    """The same, and a choice by five folds."""
    from blockl0 import L0RegressorCV

    return L0RegressorCV(min(BUDGET, X.shape[1]), random_state=0, cv=5).fit(X, y).support_


def abess_path(X: Any, y: Any) -> Any:
    """abess along the same budgets, by its own criterion; the columns of the last."""
    from abess.linear import LinearRegression

    size = min(BUDGET, X.shape[1])
    model = LinearRegression(support_size=size, thread=1)
    for k in range(1, size + 1):
        model = LinearRegression(support_size=k, thread=1).fit(X, y)
    return np.flatnonzero(model.coef_)


def abess_all(X: Any, y: Any) -> Any:
    """abess along the same budgets in one call, and a choice by five folds."""
    from abess.linear import LinearRegression

    sizes = range(min(BUDGET, X.shape[1]) + 1)
    return np.flatnonzero(LinearRegression(support_size=sizes, cv=5, thread=1).fit(X, y).coef_)


def forward(X: Any, y: Any) -> Any:
    """Forward selection on one triangular factor, as programs for tall data do it."""
    A = np.column_stack([X - X.mean(axis=0), y - y.mean()])
    R = np.linalg.qr(A, mode="r")
    Z, b, chosen = R[:, :-1] / np.linalg.norm(R[:, :-1], axis=0), R[:, -1].copy(), []
    for _ in range(min(BUDGET, X.shape[1])):
        lengths = np.linalg.norm(Z, axis=0)
        gains = np.where(lengths > 1e-8, np.abs(b @ Z) / np.maximum(lengths, 1e-8), -1.0)
        chosen.append(int(np.argmax(gains)))
        q = Z[:, chosen[-1]] / lengths[chosen[-1]]
        Z, b = Z - np.outer(q, q @ Z), b - q * (q @ b)
    return np.array(chosen)


def lasso_folds(X: Any, y: Any) -> Any:
    """scikit-learn's LassoCV on standardized columns."""
    from sklearn.linear_model import LassoCV
    from sklearn.preprocessing import StandardScaler

    return np.flatnonzero(LassoCV(cv=5).fit(StandardScaler().fit_transform(X), y).coef_)


METHODS = {
    "blockl0 path": our_path, "blockl0 folds": our_folds, "abess one by one": abess_path,
    "abess folds": abess_all, "forward": forward, "LassoCV": lasso_folds,
}  # fmt: skip


# measuring ----------------------------------------------------------------------------------------


def refitted(X: Any, y: Any, chosen: Any) -> float:
    """½‖y − Xw − b‖²/m by least squares on some columns."""
    A = X[:, chosen] - X[:, chosen].mean(axis=0)
    b = y - y.mean()
    lengths = np.linalg.norm(A, axis=0)
    r = b - A @ (np.linalg.lstsq(A / lengths, b, rcond=None)[0] / lengths)
    return 0.5 * float(r @ r) / len(y)


def measure(name: str, m: int, n: int) -> dict[str, Any]:
    """A cell, in this process."""
    warnings.simplefilter("ignore")
    call, seconds, chosen = METHODS[name], [], np.empty(0, dtype=int)
    call(*make(2000, 12))
    X, y = make(m, n)
    while len(seconds) < CALLS and sum(seconds) < CALL_SECONDS:
        started = time.process_time()
        chosen = call(X, y)
        seconds.append(time.process_time() - started)
    return {"seconds": min(seconds), "size": len(chosen), "loss": refitted(X, y, chosen)}


def run_cell(name: str, m: int, n: int) -> dict[str, Any] | None:
    """A cell in a process of its own, ended after so much processor time: then None."""
    command = [sys.executable, __file__, "--cell", json.dumps([name, m, n])]
    environment = {**os.environ, **ONE_THREAD}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=WALL_LIMIT, env=environment,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT, TIME_LIMIT)),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if done.returncode > 0:
        sys.exit(f"{name} on {m}×{n} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def shown(found: dict[str, Any] | None) -> str:
    """A cell of the table."""
    if found is None:
        return f"more than {TIME_LIMIT} s"
    return "{seconds:.2f} s, {size}, {loss:.6g}".format_map(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=float, default=np.inf, help="entries of a table")
    parser.add_argument("--smallest", type=float, default=0.0, help="entries of a table")
    parser.add_argument("--method", action="append", choices=METHODS, help="only these columns")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(*json.loads(options.cell))))
        return
    methods = options.method or list(METHODS)
    print("| table | " + " | ".join(methods) + " |")
    print("|---" * (len(methods) + 1) + "|")
    for m, n in SIZES:
        if not options.smallest <= m * n <= options.largest:
            continue
        cells = [shown(run_cell(name, m, n)) for name in methods]
        print(f"| {m:,}×{n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
