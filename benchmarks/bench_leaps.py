"""Compare proofs with R's leaps, the classical branch and bound over all subsets.

200 rows, columns with correlation 0.6^|i-j|, ten true ones, noise 2, the best 10 columns without an
intercept. Both prove the best subset, of the same data; their residual sums must agree. Seconds of
leaps are those of `regsubsets` alone, without the start of R.

Needs R with the package leaps (Debian: r-base-core, r-cran-leaps).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import which

import numpy as np

import blockl0

BUDGET = 10
SCRIPT = """
library(leaps)
given <- commandArgs(TRUE)
data <- as.matrix(read.csv(given[1], header = FALSE))
start <- proc.time()
found <- regsubsets(data[, -1], data[, 1], nvmax = as.integer(given[2]), intercept = FALSE,
                    really.big = TRUE)
seconds <- (proc.time() - start)[1]
cat(seconds, format(found$ress[as.integer(given[2]), 1] / 2, digits = 15))
"""


def make(n: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Make correlated columns and a target of ten of them."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((200, n))
    X = Z.copy()
    for j in range(1, n):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * Z[:, j]
    true = np.linspace(0, n - 1, BUDGET).astype(int)
    return X, X[:, true].sum(axis=1) + 2.0 * rng.standard_normal(200)


def run_leaps(X: np.ndarray, y: np.ndarray, limit: float) -> tuple[float, float] | None:
    """Return the CPU seconds of leaps and half its residual sum, or None after the limit."""
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder, "data.csv"), Path(folder, "leaps.R")
        np.savetxt(data, np.column_stack([y, X]), delimiter=",")
        script.write_text(SCRIPT)
        command = ["Rscript", str(script), str(data), str(BUDGET)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
    if done.returncode:
        sys.exit(f"leaps does not run: {done.stderr.strip()}")
    seconds, objective = map(float, done.stdout.split()[-2:])
    return seconds, objective


def main() -> None:
    """Print seconds and objectives for growing numbers of columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[30, 40, 50, 60, 100])
    parser.add_argument("--limit", type=float, default=100.0, help="seconds for leaps (100)")
    options = parser.parse_args()
    if which("Rscript") is None:
        sys.exit("R is not installed (Debian: r-base-core, r-cran-leaps)")
    print(f"{'columns':>8}{'leaps':>12}{'blockl0':>12}   objective of both")
    for n in options.columns:
        X, y = make(n)
        blockl0.solve(X, y, n_nonzero_coefs=BUDGET, method="exact")  # compiles
        start = time.process_time()
        best = blockl0.solve(X, y, n_nonzero_coefs=BUDGET, method="exact")
        ours, theirs = time.process_time() - start, run_leaps(X, y, options.limit)
        print(f"{n:>8}{'none' if theirs is None else f'{theirs[0]:.2f} s':>12}{ours:>10.4f} s   ",
              f"{best.status} {best.objective:.6f}",
              "" if theirs is None else f"leaps {theirs[1]:.6f}")  # fmt: skip
        if theirs is not None and abs(theirs[1] - best.objective) > 1e-8 * best.objective:
            sys.exit("The objectives differ.")


if __name__ == "__main__":
    main()
