"""Measure one cell in this process: ``python worker.py CELL_AS_JSON``.

Prints "ready" when the data are made and the method is warm, then one JSON object. Started by
run.py, which sets the number of threads and keeps the time limit.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import memory
import numpy as np
import scipy.sparse as sp
from cells import OURS, Cell

from data import make, nbytes

MEMORY_LIMIT = 8 * 2**30
"""Bytes that a call may take beside the data."""
CALLS, CALL_SECONDS = 3, 40.0
"""Calls of a cell, unless so much time has gone before; the fastest counts."""
WARM_UP = 50, 30, 3
"""m, n, s of the problem that pays for imports and compilation."""


def method_named(name: str) -> Callable[[Any, Any, int], tuple[Any, dict[str, Any]]]:
    """A function (X, y, s) -> coefficients, what else the method says."""
    if name in OURS:
        import blockl0

        def ours(X, y, s):
            result = blockl0.solve(X, y, n_nonzero_coefs=s, random_state=0, **OURS[name])
            certificate = result.certificate
            return result.coef, {
                "certified": certificate is not None and certificate.holds,
                "n_passes": getattr(result, "n_passes", None),
                "n_iter": result.n_iter,
            }

        return ours
    # making X dense belongs to the call
    if name in ("abess", "abess dense"):
        from abess.linear import LinearRegression

        def abess(X, y, s):
            model = LinearRegression(support_size=s, fit_intercept=False, thread=1)
            return model.fit(dense(X) if name == "abess dense" else X, y).coef_, {}

        return abess
    from sklearn.linear_model import orthogonal_mp

    def omp(X, y, s):
        return orthogonal_mp(dense(X), y, n_nonzero_coefs=s), {}  # it takes no sparse X

    return omp


def dense(X):
    """X as an array."""
    return X.toarray(order="F") if sp.issparse(X) else X


def refitted(X, y, coef) -> float:
    """½‖y − Xw‖² by least squares on the support of coef."""
    X_S = dense(X[:, np.flatnonzero(coef)])
    return 0.5 * float(np.sum((y - X_S @ np.linalg.lstsq(X_S, y, rcond=None)[0]) ** 2))


def measure(cell: Cell) -> dict[str, Any]:
    """Seconds, peak memory beside what was there before the call, and the answer's quality."""
    call = method_named(cell.method)
    m, n, s = WARM_UP
    call(*make(m, n, cell.density, s, cell.seed), s)
    X, y = make(cell.m, cell.n, cell.density, cell.s, cell.seed)
    memory.limit(MEMORY_LIMIT)
    print("ready", flush=True)

    memory.reset_peak()
    before = memory.resident()
    seconds, cpu_seconds = [], []
    extra = 0
    while len(seconds) < CALLS and sum(seconds) < CALL_SECONDS:
        wall, cpu = time.perf_counter(), time.process_time()
        coef, said = call(X, y, cell.s)
        seconds.append(time.perf_counter() - wall)
        cpu_seconds.append(time.process_time() - cpu)
        if len(seconds) == 1:
            extra = max(0, memory.peak() - before)
    return {
        "seconds": min(seconds),
        "cpu_seconds": min(cpu_seconds),
        "first_seconds": seconds[0],
        "calls": len(seconds),
        "data_bytes": nbytes(X),
        "extra_bytes": extra,
        "objective": refitted(X, y, coef),
        "n_nonzero": int(np.count_nonzero(coef)),
        **said,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    cell = Cell(*json.loads(sys.argv[1]))
    try:
        answer = {"status": "ok", **measure(cell)}
    except MemoryError:
        answer = {"status": "out of memory"}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
